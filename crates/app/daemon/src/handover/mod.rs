//! Capture that outlives the daemon: what the last one left, how it is replaced, and what happened meanwhile.

pub(crate) mod joined;
pub(crate) mod recovery;
pub(crate) mod succession;
pub(crate) mod takeover;
