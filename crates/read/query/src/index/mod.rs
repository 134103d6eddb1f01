//! Index of a log, so that a search reads only the blocks that may hold an event that matches.
//!
//! A log is cut into blocks of about 1 MiB ([`cut`]). A [`Block`] knows the times of its events, [`Terms`] what it may
//! hold, [`Needed`] what a filter needs, and [`Answer`] whether a block has it. [`steps`] says which blocks have to be
//! read. [`Index`] is blocks and terms of a file, in the form in which they are kept beside it; [`IndexAnswer`] is what it
//! says about one question.

mod ask;
mod asked;
mod block;
mod cutter;
mod file;
mod plan;
mod terms;

pub use ask::{Answer, Needed};
pub use asked::IndexAnswer;
pub use block::{cut, Block, Stamp, BLOCK_BYTES, WINDOW_BYTES};
pub use cutter::Blocks;
pub use file::{Index, IndexError, Subject};
pub use plan::{steps, BlockUse};
pub use terms::Terms;
