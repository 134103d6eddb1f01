//! What a host can do, found by trying: see `capture::probe`.

use crate::entries::Entries;
use crate::facts::Entry;
use abi::{Arch, PermLists};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Which programs may be loaded and how calls can enter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// The kernel's architecture.
    #[serde(serialize_with = "arch_name")]
    pub arch: Arch,
    /// 32-bit entry works: a process can make calls under the compat architecture.
    pub compat_entry: bool,
    /// The kernel has the calls of x32 (x86-64 with 32-bit pointers), which rules select like their 64-bit twins.
    pub x32_calls: bool,
    /// The edition of its lists of calls behind `perm=`.
    #[serde(skip)]
    pub perm_lists: PermLists,
    /// `tp_btf` programs load.
    pub tp_btf: bool,
    /// Per-syscall tracepoints can be attached to (tracefs is there, `CONFIG_FTRACE_SYSCALLS`).
    pub syscall_tracepoints: bool,
    /// What is seen of io_uring operations.
    pub io_uring: IoUring,
    /// How many io_uring operations the kernel has, numbered from 0; 0 if that is not known.
    pub uring_operations: u32,
    /// The functions of each operation can be hooked or probed, and the plan is for an engine that does so.
    pub uring_functions: bool,
    /// Programs can be attached to the ends of the kernel's functions (fexit), and the plan is for
    /// the engine that does so.
    pub trampoline: bool,
    /// What the kernel does with a task that is in the kernel when another should run.
    pub preemption: Preemption,
    /// The ends of functions are seen by probes, which run with preemption off, since programs there, or on tracepoints,
    /// may be preempted and be missed.
    pub probes: bool,
    /// Programs on tracepoints may be preempted.
    pub preempted_tracepoints: bool,
    /// Calls whose functions cannot be hooked so.
    #[serde(skip)]
    pub unhooked_calls: BTreeSet<(Entry, u32)>,
    /// Native calls that have no tracepoint of their own here.
    #[serde(skip)]
    pub untraced_calls: BTreeSet<u32>,
    /// What the kernel lacks of what the programs use.
    pub gaps: Vec<Gap>,
}

/// A structure member, function or tracepoint that programs use and the kernel lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// `task_struct.tgid`, `function vfs_link`, `tracepoint sched_process_exit`.
    pub name: String,
    /// What is missing or less exact without it.
    pub feature: &'static str,
    /// No eBPF engine works without it.
    pub essential: bool,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.feature)
    }
}

/// Where an eBPF engine sees calls end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// In trampolines or probes at the kernel's functions, with what the calls touched.
    pub trampoline: bool,
    /// In probes.
    pub probes: bool,
    /// Programs on tracepoints are preempted, and have copies.
    pub copies: bool,
}

/// The kernel's model of preemption (CONFIG_PREEMPT*, `preempt=` on its command line).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preemption {
    /// A task in the kernel is not preempted: `none` and `voluntary`.
    Voluntary,
    /// It is, at the second tick that asks for it.
    Lazy,
    /// It is, at once.
    Full,
    /// The kernel does not tell: any of them.
    Unknown,
}

impl Preemption {
    /// As `preempt=` names it.
    pub fn name(self) -> &'static str {
        match self {
            Preemption::Voluntary => "voluntary",
            Preemption::Lazy => "lazy",
            Preemption::Full => "full",
            Preemption::Unknown => "unknown",
        }
    }
}

/// What is seen of io_uring operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IoUring {
    /// Nothing: the kernel lacks the tracepoints.
    Unseen,
    /// What rules of the io_uring list select.
    List,
    /// That, and what rules on system calls that do the same select (`io_uring_twins = yes`).
    Twins,
}

fn arch_name<S: serde::Serializer>(arch: &Arch, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(arch.name())
}

impl Capabilities {
    /// Where the engine that these are for sees calls end.
    pub fn form(&self) -> Form {
        Form {
            trampoline: self.trampoline,
            probes: self.probes,
            copies: self.preempted_tracepoints,
        }
    }

    /// What the eBPF engines cannot do without, and the kernel lacks.
    pub fn essential_gap(&self) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.essential)
    }

    /// What a stock kernel of this architecture can do under the tracepoint engine: for plans made
    /// without root.
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
            gaps: Vec::new(),
        }
    }

    /// The entries of the host.
    pub fn entries(&self) -> Entries {
        Entries::of(self.arch, self.perm_lists)
    }
}
