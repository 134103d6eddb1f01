//! Work that the confined daemon may not do itself, and its confinement.
//!
//! * [`confine`]: what the daemon gives up before it arms anything.
//! * [`spawn`]: a process that keeps the rights that auditd's programs have starts them for the daemon.
//! * [`lookup`]: helper processes look up what may make them wait: objects at paths that callers chose, and names.
//!
//! Daemon and helpers talk over pairs of sockets; each datagram is one [message](frame).

pub mod confine;
mod datagram;
pub mod frame;
pub mod lookup;
pub mod spawn;
