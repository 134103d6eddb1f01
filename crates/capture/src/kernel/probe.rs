//! What this host can do, found by trying.

use crate::hooks::{enumerator, probes, Uring};
pub use crate::kernel::entries::{compat_entry, x32_calls};
use crate::kernel::preemption;
use crate::kernel::tracefs::SyscallEvents;
use abi::Arch;
use plan::{Capabilities, Entry, IoUring, Preemption};
use std::collections::BTreeSet;

/// The first kernel that has what the programs cannot do without.
pub const OLDEST_KERNEL: &str = "5.17";
/// The helper that came last of those that they all need.
const NEWEST_HELPER: &str = "BPF_FUNC_loop";

/// Whether this kernel, which may have been given features of later ones, is older than [`OLDEST_KERNEL`]. Where
/// its types cannot be read this is not known, and it is not.
pub fn is_too_old() -> bool {
    let types = crate::kernel::kernel_btf::of_this_kernel();
    types.is_some_and(|types| enumerator(types.btf(), NEWEST_HELPER).is_none())
}

/// Why the trampoline engine does not work here, if so. Needs root to tell the truth.
pub fn trampoline_refusal() -> Option<String> {
    bpf::load::keep_libbpf_quiet();
    if let Err(reason) = crate::hooks::trampolines_attach() {
        return Some(reason);
    }
    let known = crate::kernel::syscall_functions::of_this_kernel();
    let found = known.is_some_and(|functions| functions.of_prototype(0).is_some());
    (!found).then(|| "the kernel's functions for system calls are not found".to_owned())
}

/// Calls whose functions cannot be hooked; every call where functions are not known.
pub fn unhooked_calls() -> BTreeSet<(Entry, u32)> {
    match crate::kernel::syscall_functions::of_this_kernel() {
        Some(functions) => functions.unhooked(),
        None => BTreeSet::new(),
    }
}

/// What the running kernel lacks of what the programs of an engine use, the essential first. Needs no root.
pub fn gaps(trampoline: bool) -> Vec<plan::Gap> {
    crate::gaps::of_this_kernel(trampoline).unwrap_or_default()
}

/// Whether the kernel's types have a function of this name; `false` also where they cannot be read.
pub fn has_function(name: &str) -> bool {
    let types = crate::kernel::kernel_btf::of_this_kernel();
    types.is_some_and(|types| types.functions().contains_key(name))
}

/// Whether an enumeration of the kernel's types has an enumerator; `false` also where they cannot be read.
pub fn has_enumerator(of: &str, name: &str) -> bool {
    let types = crate::kernel::kernel_btf::of_this_kernel();
    types.is_some_and(|types| types.has_enumerator(of, name))
}

/// Whether a function of the kernel's types has a parameter of this name; `false` also where they cannot be read.
pub fn has_parameter(function: &str, name: &str) -> bool {
    let types = crate::kernel::kernel_btf::of_this_kernel();
    types.is_some_and(|types| types.has_parameter(function, name))
}

/// The members that the running kernel has and programs read. For tests.
#[doc(hidden)]
pub fn members_in_use() -> BTreeSet<crate::gaps::relocations::Member> {
    crate::gaps::members_in_use().unwrap_or_default()
}

/// Tries what matters to a plan, for the trampoline engine or the tracepoint engine. Needs root to
/// tell the truth about programs.
pub fn capabilities(trampoline: bool) -> Capabilities {
    let arch = Arch::native();
    let events = SyscallEvents::open().ok();
    let untraced = |events: &SyscallEvents| {
        let missing = |name: &str| events.exit_event(name).is_none();
        abi::syscalls(arch)
            .filter(|(_, name)| missing(name))
            .map(|(nr, _)| nr)
            .collect()
    };
    let (io_uring, uring_operations) = io_uring();
    let preemption = preemption::of_this_kernel();
    let is_preempted = preemption != Preemption::Voluntary;
    let preempted_tracepoints = is_preempted && preemption::reaches_tracepoints();
    let probes = is_preempted && (trampoline || preempted_tracepoints) && probes::work();
    Capabilities {
        arch,
        compat_entry: compat_entry(),
        x32_calls: x32_calls(),
        perm_lists: perm_lists(),
        tp_btf: bpf::load::has_btf(),
        syscall_tracepoints: events.is_some(),
        io_uring,
        uring_operations,
        uring_functions: (trampoline || probes) && Uring::with_functions(probes).is_some(),
        trampoline,
        preemption,
        probes,
        preempted_tracepoints,
        unhooked_calls: match trampoline || probes {
            true => unhooked_calls(),
            false => BTreeSet::new(),
        },
        untraced_calls: events.as_ref().map(untraced).unwrap_or_default(),
        gaps: gaps(trampoline),
    }
}

/// The edition of the kernel's lists of calls behind `perm=`. Without root it is told by the calls that the kernel has.
pub fn perm_lists() -> abi::PermLists {
    crate::kernel::perm_lists::of_this_kernel()
}

/// What can be seen of io_uring operations, and how many the kernel has. Needs no root.
pub fn io_uring() -> (IoUring, u32) {
    match Uring::of_this_kernel() {
        Some(uring) => (IoUring::Twins, uring.operations),
        None => (IoUring::Unseen, 0),
    }
}
