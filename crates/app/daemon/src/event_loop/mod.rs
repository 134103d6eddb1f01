//! The loop that does what poll(2) reports as ready, and what it can change: rules, settings, its own scheduling.

pub(crate) mod child;
pub(crate) mod daemon;
pub(crate) mod pauses;
pub(crate) mod recording;
pub(crate) mod replacing;
pub(crate) mod scheduling;
pub(crate) mod service;
pub(crate) mod signals;
