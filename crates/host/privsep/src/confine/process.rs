//! Attributes of the process.

use rustix::process::{set_dumpable_behavior, DumpableBehavior};
use std::io;

const OOM_SCORE: &str = "/proc/self/oom_score_adj";
/// The value of auditd: the kernel does not kill the process when memory runs out.
const NEVER: &str = "-1000";

/// Number of threads of this process.
pub(crate) fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

pub(crate) fn never_ended_for_memory() -> io::Result<()> {
    std::fs::write(OOM_SCORE, NEVER)
}

pub(crate) fn oom_score_adj() -> Option<i32> {
    std::fs::read_to_string(OOM_SCORE).ok()?.trim().parse().ok()
}

/// The bounding set of this thread.
pub(crate) fn bounding() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let bits = status
        .lines()
        .find_map(|line| line.strip_prefix("CapBnd:"))?;
    u64::from_str_radix(bits.trim(), 16).ok()
}

/// Keeps the memory from cores and from other processes of the same user.
pub(crate) fn forbid_dumps() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

pub(crate) fn refuse_new_privileges() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}
