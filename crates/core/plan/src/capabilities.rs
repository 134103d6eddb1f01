//! Capabilities of a host; `capture::probe` finds them by trying.

use crate::entries::Entries;
use crate::facts::Entry;
use abi::{Arch, PermLists};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Capabilities of a host: the programs that can be loaded, and the ways in which calls can enter the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// The kernel's architecture.
    #[serde(serialize_with = "arch_name")]
    pub arch: Arch,
    /// Whether 32-bit entry works: processes can make calls of the compat architecture.
    pub compat_entry: bool,
    /// Whether the kernel has the calls of x32 (x86-64 with 32-bit pointers), which rules select like their 64-bit twins.
    pub x32_calls: bool,
    /// The edition of the kernel's lists of calls for `perm=`.
    #[serde(skip)]
    pub perm_lists: PermLists,
    /// Whether `tp_btf` programs can be loaded.
    pub tp_btf: bool,
    /// Whether programs can be attached to per-syscall tracepoints (needs tracefs and
    /// `CONFIG_FTRACE_SYSCALLS`).
    pub syscall_tracepoints: bool,
    /// The rules that io_uring operations are matched against.
    pub io_uring: IoUring,
    /// Number of io_uring operations that the kernel has, counted from 0; 0 if unknown.
    pub uring_operations: u32,
    /// Whether the functions of operations can be hooked or probed, and the plan is for an engine that
    /// does so.
    pub uring_functions: bool,
    /// Whether programs can be attached to the ends of kernel functions (fexit), and the plan is for
    /// the engine that does so.
    pub trampoline: bool,
    /// The kernel's model of preemption.
    pub preemption: Preemption,
    /// Whether the ends of functions are seen by probes. They run with preemption off; programs in
    /// trampolines or on tracepoints may be preempted, and then miss calls.
    pub probes: bool,
    /// Whether programs on tracepoints may be preempted.
    pub preempted_tracepoints: bool,
    /// Calls whose functions can be neither hooked nor probed.
    #[serde(skip)]
    pub unhooked_calls: BTreeSet<(Entry, u32)>,
    /// Native calls that have no tracepoint of their own on this host.
    #[serde(skip)]
    pub untraced_calls: BTreeSet<u32>,
    /// Whether a cgroup2 hierarchy is mounted.
    pub cgroup2: bool,
    /// Parts that the programs use and the kernel lacks.
    pub gaps: Vec<Gap>,
    /// Whether the tracepoint engine is to record objects that a call changes or removes as they were before it.
    pub objects_before: bool,
}

/// A structure member, function or tracepoint that programs use and the kernel lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Name of what is missing, such as `task_struct.tgid`, `function vfs_link` or `tracepoint
    /// sched_process_exit`.
    pub name: String,
    /// The feature that does not work, or is less exact, without it.
    pub feature: &'static str,
    /// Whether no eBPF engine works without it.
    pub essential: bool,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.feature)
    }
}

/// Places where an eBPF engine sees calls end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// In trampolines or probes on kernel functions, which also see the objects that calls touch.
    pub trampoline: bool,
    /// In probes instead of trampolines.
    pub probes: bool,
    /// Programs on tracepoints can be preempted, and have copies.
    pub copies: bool,
}

/// The kernel's model of preemption (CONFIG_PREEMPT*, `preempt=` on its command line).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preemption {
    /// Tasks in the kernel are not preempted: `none` and `voluntary`.
    Voluntary,
    /// Tasks in the kernel are preempted at the second tick that asks for it.
    Lazy,
    /// Tasks in the kernel are preempted at once.
    Full,
    /// The kernel does not tell; it may be any of them.
    Unknown,
}

impl Preemption {
    /// The name as in `preempt=`.
    pub fn name(self) -> &'static str {
        match self {
            Preemption::Voluntary => "voluntary",
            Preemption::Lazy => "lazy",
            Preemption::Full => "full",
            Preemption::Unknown => "unknown",
        }
    }
}

/// The rules that io_uring operations are matched against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IoUring {
    /// None: operations are not seen, since the kernel lacks the tracepoints.
    Unseen,
    /// Rules of the io_uring list.
    List,
    /// These, and rules on system calls that do the same (`io_uring_twins = yes`).
    Twins,
}

fn arch_name<S: serde::Serializer>(arch: &Arch, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(arch.name())
}

impl Capabilities {
    /// Places where the engine that these capabilities are for sees calls end.
    pub fn form(&self) -> Form {
        Form {
            trampoline: self.trampoline,
            probes: self.probes,
            copies: self.preempted_tracepoints,
        }
    }

    /// The first thing that the kernel lacks and the eBPF engines cannot work without.
    pub fn essential_gap(&self) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.essential)
    }

    /// Capabilities of a stock kernel of this architecture under the tracepoint engine, for plans
    /// that are made without root.
    pub fn assumed(arch: Arch) -> Capabilities {
        Capabilities {
            arch,
            compat_entry: arch.compat().is_some(),
            x32_calls: false,
            perm_lists: PermLists::default(),
            tp_btf: true,
            syscall_tracepoints: true,
            io_uring: IoUring::Unseen,
            uring_operations: 0,
            uring_functions: false,
            trampoline: false,
            preemption: Preemption::Voluntary,
            probes: false,
            preempted_tracepoints: false,
            unhooked_calls: BTreeSet::new(),
            untraced_calls: BTreeSet::new(),
            cgroup2: true,
            gaps: Vec::new(),
            objects_before: false,
        }
    }

    /// The entries of the host.
    pub fn entries(&self) -> Entries {
        Entries::of(self.arch, self.perm_lists)
    }
}
