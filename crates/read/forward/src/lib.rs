//! The log, sent off the host: the log itself is the queue, and a cursor says how far it has come.
//!
//! * [`position`]: where something is in the log of a host.
//! * [`spool`]: links that keep rotated files until they are sent.
//! * [`events`], [`filter`], [`mod@likeness`]: from bytes to events, which of them are sent, and which are counted
//!   together.
//! * [`mod@format`]: what an event looks like at the destination.
//! * [`batch`]: a range of the log as messages.
//! * [`cursor`]: what is durable about the progress, with marks of what was read, by which a changed log is noticed.
//! * [`sink`]: Kafka, NATS JetStream, OTLP, lines.
//! * [`sender`]: the loop over all of it.
//! * [`mod@verify`]: at the destination, what arrived from which host, and whether it is what was sealed.

pub mod batch;
pub mod config;
pub mod cursor;
pub mod events;
pub mod filter;
/// What an event looks like at the destination.
pub use formats as format;
mod grpc;
mod http;
pub mod likeness;
mod mark;
pub mod metrics;
mod net;
pub mod position;
pub mod replay;
pub mod sender;
pub mod sink;
pub mod spool;
pub mod verify;
