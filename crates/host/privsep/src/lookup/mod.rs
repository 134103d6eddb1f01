//! Look-ups on the running system for composing: objects at paths that audited processes chose, and
//! names of users and groups. A path may lead to a file system that never answers, and a name to a
//! directory service that is down, so the daemon asks a helper process and waits at most
//! [`DEADLINE`] for it.
//!
//! [`Remote`] is the daemon's side, [`serve`] the helper's; [`Host`] looks up in the calling process, for commands that
//! an administrator runs.

mod answer;
mod budget;
mod cgroups;
mod client;
mod containers;
mod counts;
mod devices;
mod digest;
mod files;
mod host;
mod ids;
mod kernel;
mod label_files;
mod link;
pub mod message;
mod names;
mod object;
mod patience;
mod program;
mod remote;
mod rights;
mod serve;
mod walk;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use counts::Counts;
pub use host::Host;
pub use kernel::{monotonic_ns, realtime_ns};
pub use link::DEADLINE;
pub use message::DigestQuestion;
pub use program::{serve_as, COMMAND};
pub use remote::{Remote, HELPERS};
pub use serve::serve;
