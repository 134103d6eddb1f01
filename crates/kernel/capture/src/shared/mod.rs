//! Memory and maps that the daemon and the programs share.

pub(crate) mod atomic;
pub(crate) mod control;
pub(crate) mod counters;
pub(crate) mod doorbell;
pub(crate) mod gate_cells;
pub(crate) mod map_access;
pub(crate) mod overload;
pub(crate) mod process_classes;
pub(crate) mod workloads;
