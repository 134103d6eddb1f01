//! The kernel's audit socket (NETLINK_AUDIT): status, rules, messages and the record stream.
//!
//! * [`message`]: converts messages between bytes and values; pure.
//! * [`AuditSocket`]: one socket, its requests and the records that arrive on it.
//! * [`take_over`]: makes this process the audit daemon, so that records that others make (USER_*,
//!   LOGIN, AVC, SECCOMP, CONFIG_CHANGE, …) reach its log, and restores the former state at the
//!   end, even after a kill -9. [`take_over_with_rules`] does the same for the engine that has the
//!   kernel match the rules.
//!
//! Sources of layouts and meanings: `include/uapi/linux/audit.h`, `kernel/audit.c`.

mod client;
mod error;
mod guard;
mod lock;
pub mod message;
mod ownership;
mod rules;
mod shown;
mod state;

#[cfg(test)]
mod kernel_tests;

pub use client::{AuditSocket, KernelRecord, RECORD_BYTES_MAX};
pub use error::{NetlinkError, TakeOverError};
pub use lock::{KernelLock, LOCKED};
pub use message::{Features, SignalInfo, Status};
pub use ownership::{restore_leftover, take_over, take_over_with_rules, LateRecord, Ownership};
pub use rules::Change;
pub use shown::{ListChange, ShownRules};
pub use state::{written_anew, Found};
