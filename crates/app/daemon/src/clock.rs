//! The clocks of this machine.

pub(super) use privsep::lookup::{monotonic_ns, realtime_ns};
