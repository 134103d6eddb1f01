//! An event that is written only at its end.

use core::ops::Range;

use crate::remembered::RememberedRecords;
use crate::{text, RecordType};

/// The bodies of an event until they become one JSON object.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) text: Vec<u8>,
    pub(crate) bodies: Vec<(RecordType, Range<usize>)>,
    pub(crate) scratch: Vec<u8>,
    pub(crate) argv: text::ArgvBuilder,
    pub(crate) remembered: RememberedRecords,
    /// The workload of the event as a JSON object; empty if it is not told.
    pub(crate) workload: Vec<u8>,
    /// The process of the event as a JSON object; empty if it is not told.
    pub(crate) process: Vec<u8>,
    /// Labels of the process as members of a JSON object, each behind a comma.
    pub(crate) labels: Vec<u8>,
    /// The digests of the files that the event executed, as a JSON list; empty if none are told.
    pub(crate) hashes: Vec<u8>,
}
