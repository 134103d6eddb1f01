//! The log: flush modes, rotation and disk-space actions, as [`conf::Config`] says.
//!
//! Takes bytes, gives durable files. This crate does not know where events come from: it takes
//! whole lines, writes each batch with one write(2), makes it durable as `flush` says, and rotates,
//! warns or suspends as auditd.conf(5) says. What the program has to do or report comes back as
//! [`OwnerAction`]s; what could not be written is counted by cause in [`Counters`].
//!
//! ```no_run
//! let loaded = conf::load("/etc/audit/auditd.conf".as_ref(), Default::default())?;
//! let (mut log, report) = journal::Journal::open(&loaded.config.log_file, &loaded.config)?;
//! log.append(b"type=USER msg=audit(1.000:1): text\n", 1);
//! log.commit()?;
//! for action in log.take_actions() {
//!     eprintln!("{action}");
//! }
//! # let _ = report;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod action;
pub mod compact;
mod counters;
mod error;
mod files;
pub mod index;
mod log;
mod pending;
pub mod read;
mod recover;
mod rotate;
pub mod seal;
mod space;
mod sync;
mod writing;

pub use action::{OwnerAction, Runlevel, Severity};
pub use counters::{Counters, Lost, Position};
pub use error::{OpenError, RotateError, WriteError};
pub use files::log_files;
pub use log::{Committed, Journal, OpenReport, Witness, Write, PENDING_BYTES_MAX};
pub use recover::{Repair, TornLine};
pub use rotate::Rotated;
pub use sync::Synced;
