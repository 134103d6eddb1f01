//! Checks that what was told to the programs is still there, and that nothing they counted is missing.

pub(crate) mod canary;
pub(crate) mod integrity;
pub(crate) mod sums;
