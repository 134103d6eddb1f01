//! Capture: from hooks in the kernel to a stream of events. The programs are in `bpf/`.

#[doc(hidden)]
pub mod btf;
mod elf;
mod error;
mod functions;
mod gaps;
mod kernel_fs;
pub mod learn;
mod map_options;
mod objects;
mod operations;
mod perm_lists;
mod pins;
mod preemption;
pub mod probe;
pub mod relocations;
mod ring;
pub mod seccomp_cache;
mod stream;
mod symbol_names;
mod symbols;
mod tracefs;
pub mod tracepoint;
#[doc(hidden)]
pub mod types;

pub use error::CaptureError;
pub use objects::functions_can_be_hooked;
pub use pins::{Handed, Handover, Pins, UnfinishedWrite, STANDARD_PIN_DIR};
pub use ring::Ring;
pub use stream::{frame_time, Stream};
pub use tracepoint::{Options, Overload, Remains, Tracepoint};
