//! Starts the programs that the daemon needs: plugins, mail, EXEC programs, run levels, helpers for look-ups, and the
//! COMMAND of `tarsier run`.
//!
//! A confined daemon can neither fork nor execute. So a [`Launcher`] asks the spawner: a process
//! that was started before ([`serve_as`]), keeps the rights that auditd's programs have, and starts
//! only what the configuration files name. These programs are children of the daemon (CLONE_PARENT
//! of clone(2)): the daemon gets SIGCHLD and reaps them, and they outlive the spawner.

mod child;
mod launcher;
mod message;
mod permit;
mod serve;
mod start;

pub use child::Child;
pub use launcher::{Launcher, State};
pub use message::{Request, LOOKUP};
pub use permit::INIT;
pub use serve::{serve_as, COMMAND};
