//! The rings that the programs fill, and all of them as one stream.

mod ring;
mod stream;

pub use ring::Ring;
pub use stream::{frame_time, Stream};
