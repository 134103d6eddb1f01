//! Starts the programs that the daemon needs: plugins, mail, EXEC programs, run levels, helpers for look-ups, and the
//! COMMAND of `tarsier run`.
//!
//! A confined daemon can neither fork nor execute. So a [`Launcher`] asks a spawner: a process that keeps the rights
//! that auditd's programs have, and starts what the configuration files name, nothing else. There are two spawners, of
//! which one is asked; if it ends, the other takes its place, and starts the next one.
//!
//! A spawner is the daemon's child ([`Launcher::start`]), and so is what it starts (CLONE_PARENT of clone(2)): the
//! daemon gets its SIGCHLD and reaps it, and it outlives the spawner. Or it is an instance of a service of its own
//! ([`Launcher::connect`]), so that the daemon's unit can be strict; what it starts is its child then, and it sends the
//! daemon SIGCHLD.

mod child;
mod launcher;
mod link;
mod log_files;
mod member;
mod members;
mod message;
mod permit;
mod serve;
mod start;

pub use child::Child;
pub use launcher::{Launcher, Spawners};
pub use members::{Ended, State};
pub use message::{LogChange, Request, COMMAND, LOOKUP};
pub use permit::INIT;
pub use serve::serve_as;
