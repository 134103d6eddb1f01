//! Plugins as auditd has them: programs that get every event as it is logged.
//!
//! A plugin is a file in `plugin_dir` ([`conf::plugins`], auditd-plugins(5)): a program that reads events
//! from its standard input, or the builtin `af_unix`, a socket from which one program at a time
//! reads them. [`Dispatcher`] starts them, passes events on, starts again what has ended, and
//! follows a changed directory.
//!
//! Nothing here waits for a plugin, except at the end of the daemon for a bounded time. Every
//! plugin has a queue of its own, at most `q_depth` records; what does not fit is counted, and
//! `overflow_action` says what is done about it. Only whole events are left out.

mod dispatcher;
mod frame;
mod process;
mod queue;
mod runner;
mod socket;

pub use dispatcher::{Dispatcher, PluginState, WAITING_BYTES_MAX};
