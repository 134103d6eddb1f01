//! The kernel's audit, over netlink.

use super::audit::{Applied, Audit, Trouble};
use daemon::protocol::AuditState;
use netlink::{AuditSocket, NetlinkError};
use rules::{Command, FILTER_PREPEND};

/// The kernel's audit; its socket is opened when first needed.
#[derive(Default)]
pub(super) struct Kernel {
    socket: Option<AuditSocket>,
}

/// `AUDIT_USER`: a message sent by auditctl.
const AUDIT_USER: u16 = abi::RecordType::USER.netlink();

impl Kernel {
    fn socket(&mut self) -> Result<&mut AuditSocket, NetlinkError> {
        match &mut self.socket {
            Some(socket) => Ok(socket),
            none => Ok(none.insert(AuditSocket::open()?)),
        }
    }

    fn ask_state(&mut self) -> Result<AuditState, NetlinkError> {
        let socket = self.socket()?;
        let status = socket.status()?;
        let features = socket.features()?;
        Ok(AuditState {
            enabled: status.enabled,
            failure: status.failure,
            pid: status.pid,
            rate_limit: status.rate_limit,
            backlog_limit: status.backlog_limit,
            lost: status.lost,
            backlog: status.backlog,
            backlog_wait_time: status.backlog_wait_time,
            backlog_wait_time_actual: status.backlog_wait_time_actual,
            loginuid_immutable: features.loginuid_immutable(),
            loginuid_immutable_locked: features.loginuid_immutable_locked(),
        })
    }

    /// Carries out one command. Returns the value that a reset counter had.
    fn change(&mut self, command: &Command) -> Result<Option<u32>, NetlinkError> {
        let socket = self.socket()?;
        match command {
            Command::Append(rule) => socket.add_rule(&rules::to_kernel(rule))?,
            Command::Prepend(rule) => {
                let mut bytes = rules::to_kernel(rule);
                let (flags, _) = bytes.split_at_mut(4);
                let list = rule.list as u32 | FILTER_PREPEND;
                flags.copy_from_slice(&list.to_ne_bytes());
                socket.add_rule(&bytes)?;
            }
            Command::Delete(rule) => socket.delete_rule(&rules::to_kernel(rule))?,
            Command::DeleteAll { key } => delete_all(socket, key.as_deref())?,
            Command::Enabled(value) => socket.set_enabled(*value)?,
            Command::Failure(value) => socket.set_failure(*value)?,
            Command::Backlog(value) => socket.set_backlog_limit(*value)?,
            Command::Rate(value) => socket.set_rate_limit(*value)?,
            Command::BacklogWaitTime(value) => socket.set_backlog_wait_time(*value)?,
            Command::LoginuidImmutable => socket.set_loginuid_immutable()?,
            Command::ResetLost => return socket.reset_lost().map(Some),
            Command::ResetBacklogWaitTimeActual => {
                return socket.reset_backlog_wait_time_actual().map(Some)
            }
            Command::Trim => socket.trim()?,
            Command::MakeEquivalent { mount, subtree } => socket.make_equivalent(mount, subtree)?,
            Command::Message(text) => {
                socket.send_user_message(AUDIT_USER, &super::message::text(text))?;
            }
            // The other commands change nothing.
            _ => {}
        }

        Ok(None)
    }
}

/// Deletes the listed rules in the order of the list; with `key`, only those whose key contains it.
fn delete_all(socket: &mut AuditSocket, key: Option<&[u8]>) -> Result<(), NetlinkError> {
    for bytes in socket.list_rules()? {
        let is_meant = match key {
            None => true,
            Some(key) => super::listing::has_key(&bytes, key),
        };
        if is_meant {
            socket.delete_rule(&bytes)?;
        }
    }
    Ok(())
}

impl Audit for Kernel {
    fn state(&mut self) -> Result<AuditState, Trouble> {
        self.ask_state().map_err(Trouble::from)
    }

    fn rules(&mut self) -> Result<Vec<Vec<u8>>, Trouble> {
        Ok(self.socket()?.list_rules()?)
    }

    fn apply(&mut self, commands: &[Command], tolerate_from: usize) -> Result<Applied, Trouble> {
        let mut applied = Applied::default();
        for (place, command) in commands.iter().enumerate() {
            match self.change(command) {
                Ok(value) => applied.value = value.or(applied.value),
                Err(error) => {
                    applied.refused.push((place, error.into()));
                    if place < tolerate_from {
                        break;
                    }
                }
            }
        }

        Ok(applied)
    }

    fn is_atomic(&self) -> bool {
        false
    }
}

impl From<NetlinkError> for Trouble {
    fn from(error: NetlinkError) -> Trouble {
        Trouble {
            errno: error.errno().map(|errno| errno.raw_os_error()),
            reason: error.to_string(),
        }
    }
}
