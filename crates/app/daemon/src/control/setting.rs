//! Settings of the kernel's audit.

use crate::protocol::Step;
use netlink::{AuditSocket, NetlinkError, Status};

/// A setting of the kernel's audit; its name is the one in CONFIG_CHANGE records.
#[derive(Clone, Copy)]
pub(super) enum Setting {
    Failure,
    Backlog,
    Rate,
    BacklogWaitTime,
}

impl Setting {
    pub(super) fn of(step: &Step) -> Option<(Setting, u32)> {
        match step {
            Step::Failure(value) => Some((Setting::Failure, *value)),
            Step::Backlog(value) => Some((Setting::Backlog, *value)),
            Step::Rate(value) => Some((Setting::Rate, *value)),
            Step::BacklogWaitTime(value) => Some((Setting::BacklogWaitTime, *value)),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Setting::Failure => "audit_failure",
            Setting::Backlog => "audit_backlog_limit",
            Setting::Rate => "audit_rate_limit",
            Setting::BacklogWaitTime => "audit_backlog_wait_time",
        }
    }

    pub(super) fn member(self, status: &mut Status) -> &mut u32 {
        match self {
            Setting::Failure => &mut status.failure,
            Setting::Backlog => &mut status.backlog_limit,
            Setting::Rate => &mut status.rate_limit,
            Setting::BacklogWaitTime => &mut status.backlog_wait_time,
        }
    }

    pub(super) fn send(
        self,
        socket: &mut AuditSocket,
        value: u32,
        is_engine: bool,
    ) -> Result<(), NetlinkError> {
        match self {
            Setting::Failure if is_engine => socket.set_failure(value),
            // Unless the kernel is the engine, a record that it loses is no reason to stop the
            // machine.
            Setting::Failure => socket.set_failure(value.min(1)),
            Setting::Backlog => socket.set_backlog_limit(value),
            Setting::Rate => socket.set_rate_limit(value),
            Setting::BacklogWaitTime => socket.set_backlog_wait_time(value),
        }
    }
}
