//! Attach points, and what they cost calls that are not watched.

use crate::call_plan::CallPlan;
use crate::capabilities::Capabilities;
use crate::facts::Entry;
use abi::ShapeKind;
use serde::Serialize;
use std::collections::BTreeMap;

/// Attach points of the eBPF engines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hooks {
    /// The hook that sees calls that return.
    pub sys_exit: SysExit,
    /// Whether the entries of some calls are hooked too, in the same way: for what their end no longer shows.
    pub entries: bool,
    /// Reason for the choice of [`Hooks::sys_exit`].
    pub reason: &'static str,
    /// Whether `task_rename` and `sched_process_exec` are needed, for successful execve and execveat.
    pub exec: bool,
    /// Whether `sched_process_exit` is needed, for exit and exit_group.
    pub exit: bool,
    /// Whether `sched_process_fork` is needed for the task list.
    pub task_list: bool,
    /// Whether `sched_process_fork` is needed for successful fork, vfork, clone and clone3.
    pub fork: bool,
    /// Whether `module_load` is needed, for the names of modules that init_module and finit_module load.
    pub module: bool,
    /// Whether `sched_process_fork`, `sched_process_exec` and `sched_process_exit` are needed to follow processes: for
    /// rules on labels and ancestors. The daemon sets it, too, if the log is to name these.
    pub processes: bool,
    /// Name of the hooks that see io_uring operations, if any is watched.
    pub uring: Option<&'static str>,
}

/// The hook at system-call exit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "hook", content = "calls")]
pub enum SysExit {
    /// No call is watched.
    None,
    /// `tp_btf/sys_exit` with a bitmap; it sees the calls of every entry.
    Every,
    /// `tracepoint/syscalls/sys_exit_*` of these calls; it does not see calls of the 32-bit entry.
    PerSyscall(Vec<u32>),
    /// Hooks at the ends of the functions of these calls, of either entry; other calls cost
    /// nothing.
    Functions {
        /// The calls whose functions are hooked.
        calls: Vec<(Entry, u32)>,
        /// Whether the hooks are probes instead of programs in trampolines (`fexit`).
        probes: bool,
        /// Native calls whose functions cannot be hooked; `tracepoint/syscalls/sys_exit_*` sees them.
        per_syscall: Vec<u32>,
    },
}

/// Largest number of per-syscall tracepoints that save more than it costs to attach them.
pub const PER_SYSCALL_MAX: usize = 128;

/// Nanoseconds that per-syscall tracepoints add to a call that is not watched, measured on the
/// project's reference machine (bench/results/latency.md, getppid).
pub const PER_SYSCALL_NS: u32 = 37;
/// Like [`PER_SYSCALL_NS`], for `tp_btf/sys_exit`.
pub const TP_BTF_NS: u32 = 74;

/// Nanoseconds that hooks at the entries of some calls add to a call that is not watched, besides [`PER_SYSCALL_NS`].
const PER_SYSCALL_ENTRY_NS: u32 = 10;
/// Like [`PER_SYSCALL_ENTRY_NS`], besides [`TP_BTF_NS`].
const TP_BTF_ENTRY_NS: u32 = 66;

/// Largest number of hooks on functions that save more than it costs to attach them. With more,
/// almost every call is watched.
pub const FUNCTIONS_MAX: usize = 400;

impl SysExit {
    /// Names of the hooks, as `tarsier plan` and `tarsier status` print them.
    pub fn names(&self) -> Vec<&'static str> {
        match self {
            SysExit::None => Vec::new(),
            SysExit::Every => vec!["tp_btf/sys_exit"],
            SysExit::PerSyscall(_) => vec![PER_SYSCALL_HOOK],
            SysExit::Functions {
                per_syscall,
                probes,
                ..
            } => {
                let functions = if *probes { PROBES_HOOK } else { FUNCTIONS_HOOK };
                let others = (!per_syscall.is_empty()).then_some(PER_SYSCALL_HOOK);
                [functions].into_iter().chain(others).collect()
            }
        }
    }

    /// The native calls that are seen by a tracepoint of their own.
    pub fn per_syscall(&self) -> &[u32] {
        match self {
            SysExit::PerSyscall(calls) => calls,
            SysExit::Functions { per_syscall, .. } => per_syscall,
            SysExit::None | SysExit::Every => &[],
        }
    }

    /// The calls that are seen at the ends of their functions.
    pub fn functions(&self) -> &[(Entry, u32)] {
        match self {
            SysExit::Functions { calls, .. } => calls,
            _ => &[],
        }
    }
}

const PER_SYSCALL_HOOK: &str = "tracepoint/syscalls/sys_exit_*";
const URING_TRACEPOINTS: &str = "tp_btf/io_uring_submit_req and io_uring_complete";
const URING_FUNCTIONS: &str = "fexit/io_* of these operations";
const URING_PROBES: &str = "kprobe.multi/io_* of these operations";
const FUNCTIONS_HOOK: &str = "fexit/*_sys_*";
const PROBES_HOOK: &str = "kretprobe.multi/*_sys_*";

impl Hooks {
    /// The cheapest hooks that see every watched call.
    pub fn choose(
        calls: &BTreeMap<(Entry, u32), CallPlan>,
        task_list: bool,
        capabilities: &Capabilities,
    ) -> Hooks {
        let is_uring = calls.keys().any(|(entry, _)| *entry == Entry::Uring);
        let uring = match (capabilities.uring_functions, capabilities.probes) {
            (true, false) => URING_FUNCTIONS,
            (true, true) => URING_PROBES,
            (false, _) => URING_TRACEPOINTS,
        };
        let is = |kind: ShapeKind| calls.values().any(|call| call.shape.kind == kind);
        let returning: Vec<(Entry, u32)> = calls
            .iter()
            .filter(|((entry, _), call)| {
                *entry != Entry::Uring && call.shape.kind != ShapeKind::Exit
            })
            .map(|(call, _)| *call)
            .collect();

        let (sys_exit, reason) = if returning.is_empty() {
            (SysExit::None, "no rule selects a call that returns")
        } else if capabilities.trampoline || capabilities.probes {
            functions(&returning, capabilities)
        } else {
            tracepoints(&returning, capabilities)
        };

        Hooks {
            sys_exit,
            entries: false,
            reason,
            exec: is(ShapeKind::Exec),
            exit: is(ShapeKind::Exit),
            task_list,
            fork: is(ShapeKind::Fork),
            module: is(ShapeKind::Module),
            processes: false,
            uring: is_uring.then_some(uring),
        }
    }

    /// Name of the hooks at the entries of calls, if there are any.
    pub(crate) fn entry_hook(&self) -> Option<&'static str> {
        let name = match self.sys_exit {
            SysExit::Every => "tp_btf/sys_enter",
            _ => "tracepoint/syscalls/sys_enter_*",
        };
        self.entries.then_some(name)
    }

    /// Nanoseconds that hooks at the entries of calls add to every call.
    pub(crate) fn entry_ns(&self) -> u32 {
        match (self.entries, &self.sys_exit) {
            (false, _) => 0,
            (true, SysExit::Every) => TP_BTF_ENTRY_NS,
            (true, _) => PER_SYSCALL_ENTRY_NS,
        }
    }

    /// Nanoseconds that the hooks add to a call that no rule names, measured on the reference machine.
    pub fn unwatched_ns(&self) -> u32 {
        let at_end = match &self.sys_exit {
            SysExit::None => 0,
            SysExit::Every => TP_BTF_NS,
            SysExit::PerSyscall(_) => PER_SYSCALL_NS,
            SysExit::Functions { per_syscall, .. } if per_syscall.is_empty() => 0,
            SysExit::Functions { .. } => PER_SYSCALL_NS,
        };
        at_end + self.entry_ns()
    }
}

/// Hooks at the ends of the functions of these calls. For calls whose functions cannot be hooked,
/// the hook is the one that the tracepoint engine would use.
fn functions(calls: &[(Entry, u32)], capabilities: &Capabilities) -> (SysExit, &'static str) {
    // A single link can have any number of probes.
    if calls.len() > FUNCTIONS_MAX && !capabilities.probes {
        let reason = "more calls are watched than functions are worth hooking";
        return (SysExit::Every, reason);
    }

    let (others, hooked): (Vec<_>, Vec<_>) = calls
        .iter()
        .copied()
        .partition(|call| capabilities.unhooked_calls.contains(call));
    if others.is_empty() {
        let reason = "each watched call is seen where its function ends";
        let functions = SysExit::Functions {
            calls: hooked,
            probes: capabilities.probes,
            per_syscall: Vec::new(),
        };
        return (functions, reason);
    }

    match tracepoints(&others, capabilities) {
        (SysExit::PerSyscall(per_syscall), _) => (
            SysExit::Functions {
                calls: hooked,
                probes: capabilities.probes,
                per_syscall,
            },
            "functions of some watched calls cannot be hooked in this kernel: tracepoints see these",
        ),
        _ => (
            SysExit::Every,
            "the function of a watched call cannot be hooked in this kernel",
        ),
    }
}

fn tracepoints(calls: &[(Entry, u32)], capabilities: &Capabilities) -> (SysExit, &'static str) {
    let of_entry = |wanted: Entry| calls.iter().filter(move |(entry, _)| *entry == wanted);
    let native: Vec<u32> = of_entry(Entry::Native).map(|(_, nr)| *nr).collect();
    let every = |reason| (SysExit::Every, reason);
    if of_entry(Entry::Compat).next().is_some() {
        every("32-bit entry is possible here and watched")
    } else if native.len() > PER_SYSCALL_MAX {
        every("more calls are watched than tracepoints are worth arming")
    } else if capabilities.x32_calls && !native.is_empty() {
        every("calls of x32 are possible here, and have no tracepoints of their own")
    } else if !capabilities.syscall_tracepoints {
        every("per-syscall tracepoints are not available here")
    } else if native
        .iter()
        .any(|nr| capabilities.untraced_calls.contains(nr))
    {
        every("a watched call has no tracepoint of its own in this kernel")
    } else if native.iter().any(|&nr| leaves_no_number(nr, capabilities)) {
        every("a watched call has no number any more when it is over")
    } else if capabilities.compat_entry {
        (SysExit::PerSyscall(native), "no 32-bit call is watched")
    } else {
        let reason = "32-bit entry is impossible here";
        (SysExit::PerSyscall(native), reason)
    }
}

/// Whether the call replaces the register with its number: per-syscall tracepoints then do not see its end.
fn leaves_no_number(nr: u32, capabilities: &Capabilities) -> bool {
    abi::syscall_name(capabilities.arch, nr) == Some("rt_sigreturn")
}
