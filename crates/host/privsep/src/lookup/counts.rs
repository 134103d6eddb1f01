//! Counts of look-ups.

/// Counts of what the helpers did since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects that were looked up.
    pub asked: u64,
    /// Objects that could not be looked up, or not in time, so that records lack them.
    pub unanswered: u64,
    /// Names of users and groups that could not be looked up in time; records say `unknown`.
    pub names_unanswered: u64,
    /// Events of which something was not looked up because it would have taken longer than their budget, or than that
    /// of their maker.
    pub out_of_time: u64,
    /// Helpers that were killed because they did not answer, or answered wrongly, or that ended by themselves.
    pub replaced: u64,
    /// Killed helpers that have not ended, because the kernel waits for a file system.
    pub stuck: u64,
}
