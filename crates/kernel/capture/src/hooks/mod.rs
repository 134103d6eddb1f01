//! The eBPF engines, trampoline and tracepoint: loads the programs, arms what a plan needs, and replaces one rule
//! set with another without a gap.

mod arm;
mod armed;
mod atomic;
mod canary;
mod control;
mod copies;
mod counters;
mod dead_code;
mod detach_queue;
mod doorbell;
mod engine;
mod entries;
mod gate_cells;
mod gate_programs;
mod gates;
mod hook_change;
mod in_force;
mod instructions;
mod intake;
mod integrity;
mod kernel_types;
mod leftover;
mod load;
mod map_access;
pub(crate) mod map_options;
mod needs;
mod operation_probes;
mod operations;
mod options;
mod overload;
mod perf;
pub(crate) mod probes;
mod process_classes;
mod processes;
mod programs;
mod rehearsal;
mod shared_hooks;
mod sums;
mod trampoline;
mod uring;
pub(crate) mod vfs_hooks;
mod workloads;

pub use control::Helpers;
pub use counters::{Counters, RuleCount, LOSS_CAUSES};
pub use engine::EbpfEngine;
pub use hook_change::HookChange;
pub use integrity::Breach;
pub use leftover::Leftover;
pub use options::{Options, Overload, RING_BYTES_MIN};
pub(crate) use programs::attach_trace;
pub use rehearsal::Rehearsal;
pub use shared_hooks::Replacement;
pub(crate) use uring::{enumerator, Uring};
pub use vfs_hooks::functions_can_be_hooked;

use crate::error::CaptureError;

fn missing(what: &str) -> CaptureError {
    CaptureError::System {
        what: format!("missing in the BPF object or this kernel: {what}"),
        source: std::io::ErrorKind::NotFound.into(),
    }
}
