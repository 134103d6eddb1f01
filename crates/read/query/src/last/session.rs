//! A session, as it is kept.

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    LoggedIn,
    Started,
    LoggedOut,
    Down,
    Crash,
    Gone,
}

/// A session.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) number: u32,
    pub(super) start: u64,
    /// Second in which it ended, or 0.
    pub(super) end: u64,
    pub(super) auid: u32,
    pub(super) pid: i32,
    /// 0: success, 1: failure, -1: not known.
    pub(super) result: i32,
    pub(super) name: Option<Vec<u8>>,
    pub(super) terminal: Option<Vec<u8>>,
    pub(super) host: Option<Vec<u8>>,
    pub(super) status: Status,
    /// Serial numbers of LOGIN, of USER_LOGIN and of the end; 0 where there is none.
    pub(super) proofs: [u64; 3],
}
