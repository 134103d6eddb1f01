//! The engine: what is in force, and how one rule set replaces another without a gap.

pub(crate) mod engine;
pub(crate) mod hook_change;
pub(crate) mod hooks;
pub(crate) mod intake;
pub(crate) mod leftover;
pub(crate) mod shared_hooks;
