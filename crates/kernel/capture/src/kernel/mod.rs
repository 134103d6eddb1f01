//! The running kernel: its types, symbols and functions, and what it allows.

pub(crate) mod attach_targets;
pub(crate) mod dcache;
pub(crate) mod entries;
pub(crate) mod file_systems;
pub(crate) mod kallsyms;
#[doc(hidden)]
pub mod kernel_btf;
pub(crate) mod memory;
pub(crate) mod missing_helpers;
pub(crate) mod perm_lists;
pub(crate) mod preemption;
pub mod probe;
pub(crate) mod selinux;
pub(crate) mod symbol_names;
pub(crate) mod syscall_functions;
pub(crate) mod tracefs;
pub(crate) mod uring_functions;
