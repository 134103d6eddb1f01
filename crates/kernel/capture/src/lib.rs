//! Capture: from hooks in the kernel to a stream of events. The programs are those of the crate `bpf`.

mod audit_contexts;
mod call_counts;
mod error;
mod gaps;
pub mod hooks;
mod kernel;
mod objects_of_programs;
mod own_programs;
mod pins;
mod rings;
mod tracing;

pub use audit_contexts::{AuditContexts, Audited};
pub use call_counts::CallCounter;
pub use error::CaptureError;
#[doc(hidden)]
pub use gaps::btf;
pub use gaps::relocations;
pub use hooks::functions_can_be_hooked;
pub use hooks::{EbpfEngine, Helpers, Leftover, Options, Overload, Rehearsal, Replacement};
#[doc(hidden)]
pub use kernel::kernel_btf;
pub use kernel::probe;
pub use objects_of_programs::{inner_maps, maps_by_cpu, program_sizes, ProgramSizes};
pub use own_programs::{own_programs, Loader, Loading, OwnPrograms};
pub use pins::{
    unmount_unused, FrozenMap, Handed, Handover, Pins, UnfinishedWrite, STANDARD_PIN_DIR,
};
pub use rings::{frame_time, Ring, Stream};
