//! socketcall(2) and ipc(2): one number for many calls, distinguished by the first argument.

use super::{Abi, Compare, Condition, Rule};
use crate::Action;

/// `SYS_*` of linux/net.h.
const SOCKETCALL: [(&str, u64); 20] = [
    ("socket", 1),
    ("bind", 2),
    ("connect", 3),
    ("listen", 4),
    ("accept", 5),
    ("getsockname", 6),
    ("getpeername", 7),
    ("socketpair", 8),
    ("send", 9),
    ("recv", 10),
    ("sendto", 11),
    ("recvfrom", 12),
    ("shutdown", 13),
    ("setsockopt", 14),
    ("getsockopt", 15),
    ("sendmsg", 16),
    ("recvmsg", 17),
    ("accept4", 18),
    ("recvmmsg", 19),
    ("sendmmsg", 20),
];

/// `SEMOP` … `SHMCTL` of linux/ipc.h.
const IPC: [(&str, u64); 12] = [
    ("semop", 1),
    ("semget", 2),
    ("semctl", 3),
    ("semtimedop", 4),
    ("msgsnd", 11),
    ("msgrcv", 12),
    ("msgget", 13),
    ("msgctl", 14),
    ("shmat", 21),
    ("shmdt", 22),
    ("shmget", 23),
    ("shmctl", 24),
];

/// Whether the call has a multiplexed form on this ABI, by which libseccomp resolves its name.
pub(crate) fn is_multiplexed(abi: Abi, name: &str) -> bool {
    let tables = [&SOCKETCALL[..], &IPC[..]];
    abi == Abi::I386
        && tables
            .iter()
            .any(|table| table.iter().any(|row| row.0 == name))
}

/// The rule for the multiplexed form of a call on 32-bit x86, with the number of that form.
///
/// socketcall's own arguments are in memory, where filters cannot see them, and ipc's are in other
/// places. So a rule with conditions is left out if it permits, and loses its conditions if it
/// forbids: the result is never weaker than requested. ipc(2) uses only the lower 16 bits of its
/// first argument.
pub(crate) fn multiplexed(abi: Abi, name: &str, rule: &Rule) -> Option<(u32, Rule)> {
    if abi != Abi::I386 {
        return None;
    }

    let find = |table: &[(&str, u64)]| table.iter().find(|row| row.0 == name).map(|row| row.1);
    let (call, value, mask) = match find(&SOCKETCALL) {
        Some(value) => ("socketcall", value, 0xffff_ffff),
        None => ("ipc", find(&IPC)?, 0xffff),
    };
    let permits = rule.verdict.action() >= Action::Log;
    if permits && !rule.conditions.is_empty() {
        return None;
    }

    let condition = Condition {
        arg: 0,
        compare: Compare::MaskedEq { mask },
        value,
    };
    let rule = Rule {
        conditions: vec![condition],
        ..rule.clone()
    };

    Some((abi.number(call)?, rule))
}
