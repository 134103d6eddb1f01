//! The clocks of this machine.

pub(super) use lookup::{monotonic_ns, realtime_ns};
