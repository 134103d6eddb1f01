//! Attach points, and what they cost those who are not watched.

use crate::capabilities::Capabilities;
use crate::facts::Entry;
use crate::plan::CallPlan;
use crate::shape::Kind;
use serde::Serialize;
use std::collections::BTreeMap;

/// Attach points of the tracepoint engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hooks {
    /// Where calls that return are seen.
    pub sys_exit: SysExit,
    /// Why [`Hooks::sys_exit`] was chosen.
    pub reason: &'static str,
    /// `task_rename` and `sched_process_exec`: successful execve and execveat.
    pub exec: bool,
    /// `sched_process_exit`: exit and exit_group.
    pub exit: bool,
    /// `sched_process_fork`: the task list.
    pub fork: bool,
    /// `io_uring_submit_req` and `io_uring_complete`: operations of rings.
    pub uring: bool,
}

/// The hook at system-call exit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "hook", content = "calls")]
pub enum SysExit {
    /// No call is watched.
    None,
    /// `tp_btf/sys_exit` behind a bitmap: sees every entry.
    Every,
    /// `tracepoint/syscalls/sys_exit_*` of these calls: does not see 32-bit entries.
    PerSyscall(Vec<u32>),
}

/// More per-syscall tracepoints than this cost more to arm than they save.
pub const PER_SYSCALL_MAX: usize = 128;

/// Measured on the project's reference machine (bench/results/latency.md, getppid), added to a call
/// that nobody watches.
pub const PER_SYSCALL_NS: u32 = 37;
/// The same for `tp_btf/sys_exit`.
pub const TP_BTF_NS: u32 = 74;

impl Hooks {
    /// The cheapest hooks that see every watched call.
    pub fn choose(
        calls: &BTreeMap<(Entry, u32), CallPlan>,
        task_list: bool,
        capabilities: &Capabilities,
    ) -> Hooks {
        let uring = calls.keys().any(|(entry, _)| *entry == Entry::Uring);
        let exec = calls.values().any(|call| call.shape.kind == Kind::Exec);
        let exit = calls.values().any(|call| call.shape.kind == Kind::Exit);
        let native: Vec<u32> = calls
            .iter()
            .filter(|((entry, _), call)| *entry == Entry::Native && call.shape.kind != Kind::Exit)
            .map(|((_, nr), _)| *nr)
            .collect();
        let compat = calls
            .iter()
            .any(|((entry, _), call)| *entry == Entry::Compat && call.shape.kind != Kind::Exit);
        let (sys_exit, reason) = if native.is_empty() && !compat {
            (SysExit::None, "no rule selects a call that returns")
        } else if compat {
            (SysExit::Every, "32-bit entry is possible here and watched")
        } else if native.len() > PER_SYSCALL_MAX {
            (
                SysExit::Every,
                "more calls are watched than tracepoints are worth arming",
            )
        } else if !capabilities.syscall_tracepoints {
            (
                SysExit::Every,
                "per-syscall tracepoints are not available here",
            )
        } else if native
            .iter()
            .any(|nr| capabilities.untraced_calls.contains(nr))
        {
            (
                SysExit::Every,
                "a watched call has no tracepoint of its own in this kernel",
            )
        } else if capabilities.compat_entry {
            (SysExit::PerSyscall(native), "no 32-bit call is watched")
        } else {
            (
                SysExit::PerSyscall(native),
                "32-bit entry is impossible here",
            )
        };
        Hooks {
            sys_exit,
            reason,
            exec,
            exit,
            fork: task_list,
            uring,
        }
    }

    /// Nanoseconds added to a call that no rule names, as measured on the reference machine.
    pub fn unwatched_ns(&self) -> u32 {
        match self.sys_exit {
            SysExit::None => 0,
            SysExit::Every => TP_BTF_NS,
            SysExit::PerSyscall(_) => PER_SYSCALL_NS,
        }
    }
}
