//! What is where in a log, so that a search reads only what may hold an event that matches.
//!
//! A log is cut into blocks of about 1 MiB ([`cut`]). A [`Block`] knows the times of its events; [`Terms`] what it may
//! hold; [`Needed`] what a filter needs; [`steps`] which blocks have to be read. [`Index`] is all of that for a file,
//! and the form in which it is kept beside the file.

mod ask;
mod block;
mod cutter;
mod file;
mod plan;
mod terms;

pub use ask::Needed;
pub use block::{cut, Block, Stamp, BLOCK_BYTES, WINDOW_BYTES};
pub use cutter::Blocks;
pub use file::{Index, IndexError, Subject};
pub use plan::{steps, Step};
pub use terms::Terms;
