//! The rings that the programs fill, and a stream of all of them.

mod ring;
mod stream;

pub use ring::Ring;
pub use stream::{frame_time, RingStream};
