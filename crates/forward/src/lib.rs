//! The log, sent off the host: the log itself is the queue, and a cursor says how far it has come.
//!
//! * [`position`]: where something is in the log of a host.
//! * [`mod@format`]: what an event looks like at the far side.

pub mod format;
pub mod position;
pub mod verify;
