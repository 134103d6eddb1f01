//! Finds out, by trying, what this host can do.

use crate::attach::probes;
use crate::attach::uring::enumerator;
use crate::attach::uring::Uring;
pub use crate::kernel::entries::{compat_entry, x32_calls};
use crate::kernel::preemption;
use crate::kernel::tracefs::SyscallEvents;
use abi::Arch;
use plan::{Capabilities, Entry, IoUring, Preemption};
use std::collections::BTreeSet;

/// The first kernel with everything that the programs need.
pub const OLDEST_KERNEL: &str = "5.15";
/// The newest helper that all programs need where newer ones are missing.
const NEWEST_HELPER: &str = "BPF_FUNC_task_pt_regs";

/// Reason why no eBPF engine can serve here; `None` if one may. Needs no root.
pub fn ebpf_refusal() -> Option<String> {
    bpf::load::keep_libbpf_quiet();
    if !bpf::load::has_btf() {
        return Some("the kernel has no BTF (/sys/kernel/btf/vmlinux)".to_owned());
    }

    if is_too_old() {
        let release = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        return Some(format!("Linux {release} is older than {OLDEST_KERNEL}"));
    }

    if locks_memory() {
        return Some("lockdown=confidentiality hides the kernel's memory from programs".to_owned());
    }

    let gaps = gaps(false);
    let gap = gaps.iter().find(|gap| gap.essential)?;
    Some(format!(
        "the kernel has no {}, for {}",
        gap.name, gap.feature
    ))
}

/// Whether this kernel is older than [`OLDEST_KERNEL`]; kernels with backported features count as newer. False if
/// its types cannot be read.
fn is_too_old() -> bool {
    let types = crate::kernel::kernel_btf::of_this_kernel();
    types.is_some_and(|types| enumerator(types.btf(), NEWEST_HELPER).is_none())
}

/// Whether lockdown refuses programs that read the kernel's memory. Without securityfs that is not known, and loading
/// the programs tells.
fn locks_memory() -> bool {
    let state = std::fs::read_to_string("/sys/kernel/security/lockdown");
    state.is_ok_and(|state| state.contains("[confidentiality]"))
}

/// Opens what this process can no longer open once it is confined: private mounts of the kernel's file systems.
pub fn prepare_confinement() {
    crate::kernel::tracefs::prepare();
}

/// Reason why the trampoline engine does not work here; `None` if it does. Reliable only when run as root.
pub fn trampoline_refusal() -> Option<String> {
    bpf::load::keep_libbpf_quiet();
    if let Err(reason) = crate::tracing::attaches() {
        return Some(reason);
    }
    let known = crate::kernel::syscall_functions::of_this_kernel();
    let found = known.is_some_and(|functions| functions.of_prototype(0).is_some());
    (!found).then(|| "the kernel's functions for system calls are not found".to_owned())
}

/// Calls whose functions cannot be hooked; all calls if the functions are not known.
pub fn unhooked_calls() -> BTreeSet<(Entry, u32)> {
    match crate::kernel::syscall_functions::of_this_kernel() {
        Some(functions) => functions.unhooked(),
        None => BTreeSet::new(),
    }
}

/// Parts that an engine's programs use and the running kernel lacks, essential ones first. Needs no root.
pub fn gaps(trampoline: bool) -> Vec<plan::Gap> {
    bpf::load::keep_libbpf_quiet();
    crate::gaps::of_this_kernel(trampoline).unwrap_or_default()
}

/// Whether the kernel's types contain a function with this name; `false` also if they cannot be read.
pub fn has_function(name: &str) -> bool {
    let types = crate::kernel::kernel_btf::of_this_kernel();
    types.is_some_and(|types| types.functions().contains_key(name))
}

/// Whether an enumeration in the kernel's types has this enumerator; `false` also if they cannot be read.
pub fn has_enumerator(of: &str, name: &str) -> bool {
    let types = crate::kernel::kernel_btf::of_this_kernel();
    types.is_some_and(|types| types.has_enumerator(of, name))
}

/// Whether a function in the kernel's types has a parameter with this name; `false` also if they cannot be read.
pub fn has_parameter(function: &str, name: &str) -> bool {
    let types = crate::kernel::kernel_btf::of_this_kernel();
    types.is_some_and(|types| types.has_parameter(function, name))
}

/// The members that the running kernel has and programs read. For tests.
#[doc(hidden)]
pub fn members_in_use() -> BTreeSet<crate::gaps::relocations::Member> {
    crate::gaps::members_in_use().unwrap_or_default()
}

/// Finds out what matters to a plan for the trampoline engine or the tracepoint engine. Reliable about programs
/// only when run as root.
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
        objects_before: false,
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
        unhooked_calls: if trampoline || probes {
            unhooked_calls()
        } else {
            BTreeSet::new()
        },
        untraced_calls: events.as_ref().map(untraced).unwrap_or_default(),
        cgroup2: cgroup2(),
        gaps: gaps(trampoline),
    }
}

/// Whether a cgroup2 hierarchy is mounted, in the mount namespace of this process. Needs no root.
pub fn cgroup2() -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    // Device, place, type.
    mounts
        .lines()
        .any(|line| line.split(' ').nth(2) == Some("cgroup2"))
}

/// The edition of the kernel's lists of calls for `perm=`. Without root it is derived from the calls that the
/// kernel has.
pub fn perm_lists() -> abi::PermLists {
    crate::kernel::perm_lists::of_this_kernel()
}

/// Visibility of io_uring operations, and the number of operations that the kernel has. Needs no root.
pub fn io_uring() -> (IoUring, u32) {
    match Uring::of_this_kernel() {
        Some(uring) => (IoUring::Twins, uring.operations),
        None => (IoUring::Unseen, 0),
    }
}
