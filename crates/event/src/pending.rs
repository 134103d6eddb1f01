//! An event that is not written before it has ended.

use core::ops::Range;

use crate::{text, RecordType};

/// Bodies of an event that becomes one JSON object at its end.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) text: Vec<u8>,
    pub(crate) bodies: Vec<(RecordType, Range<usize>)>,
    pub(crate) scratch: Vec<u8>,
    pub(crate) argv: text::ArgvBuilder,
}
