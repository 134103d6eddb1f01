//! Capture: from hooks in the kernel to a stream of events. The programs are those of the crate `bpf`.

mod attach;
mod audit_contexts;
mod call_counts;
mod check;
mod error;
mod gaps;
mod ids;
mod in_force;
mod kernel;
mod load;
mod objects_of_programs;
mod own_programs;
mod pins;
mod rings;
mod shared;
mod tracing;

pub use attach::vfs_hooks::functions_can_be_hooked;
pub use audit_contexts::{AuditContexts, Audited};
pub use call_counts::CallCounter;
pub use check::integrity::Breach;
pub use error::CaptureError;
#[doc(hidden)]
pub use gaps::btf;
pub use gaps::relocations;
pub use ids::{link_ids, map_ids, program_ids};
pub use in_force::engine::EbpfEngine;
pub use in_force::hook_change::HookChange;
pub use in_force::leftover::Leftover;
pub use in_force::shared_hooks::Replacement;
#[doc(hidden)]
pub use kernel::kernel_btf;
pub use kernel::probe;
pub use kernel::selinux::{LabelPlaces, PolicyVersion, Selinux};
pub use load::options::{CaptureOptions, Overload, RING_BYTES_MIN};
pub use load::rehearsal::Rehearsal;
pub use objects_of_programs::{inner_maps, maps_by_cpu, program_sizes, ProgramSizes};
pub use own_programs::{own_programs, Loader, Loading, OwnPrograms};
pub use pins::{
    unmount_unused, FrozenMap, Handed, Handover, Pins, UnfinishedWrite, STANDARD_PIN_DIR,
};
pub use rings::{frame_time, Ring, RingStream};
pub use shared::control::Helpers;
pub use shared::counters::{Counters, RuleCount, LOSS_CAUSES};
