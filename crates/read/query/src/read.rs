//! Reads the facts of an event from its records: as ausearch and aureport do, or without `--compat`.

use crate::event::{Event, EventView, Record};
use crate::facts::{Facts, Wanted};
use crate::walk::{Malformed, Walk};
use crate::{avc, calls, messages, own, Dialect};
use abi::record_type as kinds;

impl<'e> Facts<'e> {
    /// Reads the wanted facts. In the dialect of ausearch, `None` if a record lacks a field that it requires,
    /// because it drops such events. Otherwise, the facts that could be read.
    pub fn read(event: &'e Event, wanted: &Wanted, dialect: Dialect) -> Option<Facts<'e>> {
        Facts::read_view(event.view(), wanted, dialect)
    }

    /// Like [`Facts::read`], for a borrowed event.
    pub fn read_view(event: EventView<'e>, wanted: &Wanted, dialect: Dialect) -> Option<Facts<'e>> {
        if !dialect.is_compat() {
            return Some(own::read(event, wanted));
        }
        let mut facts = Facts::default();
        for record in event.records() {
            facts.record(record, wanted, dialect).ok()?;
        }
        Some(facts)
    }

    fn record(
        &mut self,
        record: Record<'e>,
        wanted: &Wanted,
        dialect: Dialect,
    ) -> Result<(), Malformed> {
        let walk = Walk::new(record.text);
        match record.kind {
            kinds::SYSCALL => calls::syscall(self, walk, wanted),
            kinds::CWD => calls::cwd(self, calls::behind_head(record), wanted),
            kinds::AVC_PATH => calls::avc_path(self, walk, wanted),
            kinds::PATH => calls::path(self, calls::behind_head(record), wanted),
            kinds::USER
            | kinds::USER_AUTH..=kinds::USER_END
            | kinds::USER_CHAUTHTOK..=kinds::LAST_USER_MSG
            | kinds::FIRST_USER_MSG2..=kinds::LAST_USER_MSG2 => {
                messages::user(self, walk, record.kind, wanted, None)
            }
            kinds::SOCKADDR => calls::sockaddr(self, walk, wanted, dialect),
            kinds::LOGIN => messages::login(self, walk, wanted),
            kinds::IPC | kinds::OBJ_PID => {
                calls::object(self, walk, wanted);
                Ok(())
            }
            kinds::DAEMON_START..=kinds::DAEMON_CONFIG
            | kinds::DAEMON_ROTATE
            | kinds::DAEMON_RESUME => messages::daemon(self, walk, wanted),
            kinds::DAEMON_ACCEPT | kinds::DAEMON_CLOSE => {
                messages::daemon_connection(self, walk, wanted)
            }
            kinds::CONFIG_CHANGE => {
                let result = messages::simple(self, walk, true, wanted);
                // Only newer kernels name a path here.
                let _ = calls::avc_path(self, walk, wanted);
                result
            }
            kinds::AVC | kinds::USER_AVC => avc::avc(self, walk, record.kind, wanted),
            kinds::NETFILTER_PKT => calls::packet(self, walk, wanted),
            kinds::URINGOP => calls::uring(self, walk, wanted),
            kinds::FEATURE_CHANGE | kinds::DM_CTRL | kinds::ANOM_LINK => {
                calls::task(self, walk, wanted)
            }
            kinds::SECCOMP | kinds::ANOM_PROMISCUOUS | kinds::ANOM_ABEND => {
                messages::kernel_anomaly(self, walk, record.kind, wanted)
            }
            kinds::MAC_POLICY_LOAD..=kinds::MAC_UNLBL_STCDEL => {
                messages::simple(self, walk, false, wanted)
            }
            kinds::INTEGRITY_DATA..=kinds::INTEGRITY_RULE => {
                messages::integrity(self, walk, wanted, dialect)
            }
            kinds::NETFILTER_CFG | kinds::EVENT_LISTENER => calls::kernel(self, walk, wanted),
            kinds::TTY => messages::tty(self, walk, wanted, dialect),
            _ => Ok(()),
        }
    }
}
