//! Plugins as in auditd: programs that get every event as it is logged.
//!
//! A plugin is a file in `plugin_dir` ([`conf::plugins`], auditd-plugins(5)). It names a program
//! that reads events from its standard input, or the builtin `af_unix`, a socket from which one
//! program at a time reads them. [`Dispatcher`] starts the programs, passes events on, restarts
//! programs that have ended, and follows changes of the directory.
//!
//! Nothing here waits for a plugin, except for a bounded time at the end of the daemon. Every
//! plugin has its own queue of at most `q_depth` records. Records that do not fit are counted, and
//! `overflow_action` says what else happens. Only whole events are left out.

mod dispatcher;
mod frame;
mod process;
mod queue;
mod runner;
mod socket;

pub use dispatcher::{Dispatcher, PluginState, WAITING_BYTES_MAX};
