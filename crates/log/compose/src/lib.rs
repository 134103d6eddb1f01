//! Composes the records of events from the frames in the ring buffers and the plan under which the frames were made.
//! Only this crate decides what a record contains. It reads the running system only through [`System`].

mod call_facts;
mod cgroups;
mod chunks;
mod clock;
mod composer;
mod executable;
mod fcaps;
mod filter;
mod generation;
mod host;
mod identify;
mod labels;
mod lineage;
mod names;
mod past;
mod pending_operations;
mod process_labels;
mod processes;
mod proctitle_cache;
mod queues;
mod record_rate;
mod records;
mod resolve;
mod second_stage;
mod static_system;
mod system;
#[cfg(test)]
mod test_frame;

pub use cgroups::CgroupCounts;
pub use clock::Serials;
pub use composer::{Asked, Composed, Composer, Maker, Outcome, Tally, Watcher};
pub use filter::{drops_message, drops_sent};
pub use generation::Generation;
pub use identify::{identify, names_paths};
pub use labels::LabelTexts;
pub use names::names;
pub use pending_operations::PendingOperations;
pub use processes::{LookedAt, ProcessCounts};
pub use resolve::{elf_interpreter, Item};
pub use static_system::{StaticFile, StaticSystem};
pub use system::{
    directories_above, kernel_dev, Cgroup, ExecutedFile, KernelFile, Origin, Sign, System,
    HEAD_BYTES_MAX,
};
