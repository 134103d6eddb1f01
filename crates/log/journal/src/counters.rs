//! Counts of what was written, made durable and lost.

/// A point in the stream of everything given to this journal, across files, counted from 0 at open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Bytes up to here.
    pub bytes: u64,
    /// Whole events up to here.
    pub events: u64,
}

/// Events that are not in the log, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The disk was full, and so was the buffer.
    pub disk_full: u64,
    /// Writing failed for another reason and the buffer was full.
    pub disk_error: u64,
    /// Logging was suspended and the buffer was full.
    pub suspended: u64,
    /// Still unwritten when the journal was closed.
    pub closed: u64,
}

impl Lost {
    /// Lost events, whatever the cause.
    pub fn total(&self) -> u64 {
        self.disk_full + self.disk_error + self.suspended + self.closed
    }
}

/// Counts since the journal was opened.
///
/// At any time: `appended_events` = `written.events` + `unlogged.events` + `pending_events` + `lost.total()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events given to [`crate::Journal::append`].
    pub appended_events: u64,
    /// Events and bytes written to files.
    pub written: Position,
    /// Events and bytes that were appended while `write_logs` was no.
    pub unlogged: Position,
    /// Lines written.
    pub records: u64,
    /// Events in the buffer.
    pub pending_events: u64,
    /// Bytes in the buffer.
    pub pending_bytes: u64,
    /// write(2) calls that wrote something.
    pub writes: u64,
    /// write(2) calls that failed.
    pub write_errors: u64,
    /// fdatasync(2) and fsync(2) calls that succeeded.
    pub syncs: u64,
    /// fdatasync(2) and fsync(2) calls that failed.
    pub sync_errors: u64,
    /// Events that were written but covered only by a failed sync: the kernel may have dropped them
    /// from its cache, and no later sync would report that.
    pub doubtful_events: u64,
    /// Number of rotations.
    pub rotations: u64,
    /// Events that are not in the log.
    pub lost: Lost,
}
