//! The canary: a call of the daemon's own that hooks and rings must see.
//!
//! The call is sched_rr_get_interval(2) of a process that cannot exist. It does nothing, and hardly any program makes
//! it, so that a hook on it costs others nothing. The programs answer only if it is the daemon's
//! (crates/kernel/bpf/programs/call.h).

use plan::{tables, Entry, Gate, Plan, SysExit};
use std::collections::BTreeSet;

/// Number of the native call.
pub(crate) const CALL: u32 = libc::SYS_sched_rr_get_interval as u32;
/// The first argument: a negative process id, for which the kernel returns EINVAL before it looks at anything else.
const PROCESS: i32 = i32::MIN + 0x7a53;

/// Native calls that need a tracepoint of their own.
pub(crate) fn per_syscall(plan: &Plan) -> BTreeSet<u32> {
    let mut calls: BTreeSet<u32> = plan.hooks.sys_exit.per_syscall().iter().copied().collect();
    if matches!(plan.hooks.sys_exit, SysExit::PerSyscall(_)) {
        calls.insert(CALL);
    }
    calls
}

/// Calls whose functions are hooked. The canary's is the last one.
pub(crate) fn functions(plan: &Plan) -> Vec<(Entry, u32)> {
    let mut calls = plan.hooks.sys_exit.functions().to_vec();
    if !calls.is_empty() && !calls.contains(&(Entry::Native, CALL)) {
        calls.push((Entry::Native, CALL));
    }
    calls
}

/// Whether only the canary needs this call.
pub(crate) fn is_alone(plan: &Plan, call: (Entry, u32)) -> bool {
    call == (Entry::Native, CALL) && !plan.calls.contains_key(&call)
}

/// The gate of one of [`functions`]: a canary call passes it.
pub(crate) fn gate(plan: &Plan, (entry, nr): (Entry, u32)) -> Option<Gate> {
    match (entry, nr) {
        (Entry::Native, CALL) if plan.calls.contains_key(&(entry, nr)) => None,
        (Entry::Native, CALL) => Some(Gate::on_first_argument(PROCESS as u32)),
        _ => plan.gate(entry, nr),
    }
}

/// [`Plan::watched`], and the canary.
pub(crate) fn watched(plan: &Plan) -> [u64; tables::CALLS / 64] {
    let mut watched = plan.watched();
    if plan.hooks.sys_exit != SysExit::None {
        watched[CALL as usize / 64] |= 1 << (CALL % 64);
    }
    watched
}

/// Makes the canary call with this number.
pub(crate) fn call(number: u64) {
    // SAFETY: the kernel does not use the second argument, since the first is not valid.
    unsafe { libc::syscall(libc::SYS_sched_rr_get_interval, PROCESS, number) };
}
