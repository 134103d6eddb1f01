//! The kernel's audit socket (NETLINK_AUDIT): status, rules, messages and the record stream.
//!
//! * [`message`]: bytes to values and back, pure.
//! * [`AuditSocket`]: one socket, its requests and the records that arrive on it.
//! * [`take_over`]: what a daemon does to own the socket, so that the records that others make
//!   (USER_*, LOGIN, AVC, SECCOMP, CONFIG_CHANGE, …) reach its log, and how everything is put
//!   back as it was, after a kill -9 too. [`take_over_with_rules`] does it for an engine that has
//!   the kernel match rules.
//!
//! Layouts and meanings: `include/uapi/linux/audit.h` and `kernel/audit.c`.

mod client;
mod error;
pub mod message;
mod ownership;
mod rules;
mod state;

#[cfg(test)]
mod kernel_tests;

pub use client::{AuditSocket, KernelRecord, RECORD_BYTES_MAX};
pub use error::{NetlinkError, TakeOverError};
pub use message::{Features, SignalInfo, Status};
pub use ownership::{restore_leftover, take_over, take_over_with_rules, LateRecord, Ownership};
pub use rules::Change;
pub use state::Found;
