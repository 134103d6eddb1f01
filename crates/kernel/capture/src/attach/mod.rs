//! Attaches the programs to calls, functions of the kernel, io_uring operations and the lives of processes, and detaches them.

pub(crate) mod arm;
pub(crate) mod armed;
pub(crate) mod copies;
pub(crate) mod detach_queue;
pub(crate) mod entries;
pub(crate) mod gate_programs;
pub(crate) mod gates;
pub(crate) mod operation_probes;
pub(crate) mod operations;
pub(crate) mod perf;
pub(crate) mod probes;
pub(crate) mod processes;
pub(crate) mod programs;
pub(crate) mod trampoline;
pub(crate) mod uring;
pub(crate) mod vfs_hooks;
