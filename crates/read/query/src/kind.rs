//! Numbers of record types, as ausearch's questions group them.

use crate::number::unsigned;
use crate::Dialect;

/// SYSCALL.
pub const SYSCALL: i32 = 1300;
/// Operation of io_uring.
pub const URINGOP: i32 = 1336;
/// PROCTITLE.
pub const PROCTITLE: i32 = 1327;
/// LOGIN.
pub const LOGIN: i32 = 1006;
/// End of an event, which logs of auditd do not have.
pub const EOE: i32 = 1320;
/// First type of the records of calls and their objects.
const FIRST_EVENT: i32 = 1300;
/// First type of anomalies that user space reports.
const FIRST_ANOM_MSG: i32 = 2100;
const KERNEL: i32 = 2000;
/// MAC_UNLBL_ALLOW to MAC_CALIPSO_DEL: changes of labelled networking.
const MAC_LABELS: std::ops::RangeInclusive<i32> = 1406..=1419;

/// LANDLOCK_ACCESS, LANDLOCK_DOMAIN, which audit 4.0 does not know.
const LATER: [u32; 2] = [1423, 1424];

/// The number of a type by its name in a log: a known name, `UNKNOWN[n]` or a number; else -1.
pub fn number(name: &[u8], dialect: Dialect) -> i32 {
    if let Some(rest) = name.strip_prefix(b"UNKNOWN[") {
        let Some(end) = memchr::memchr(b']', rest) else {
            return -1;
        };
        return unsigned(&rest[..end.min(7)], 10).unwrap_or(0) as i32;
    }
    if name.first().is_some_and(u8::is_ascii_digit) {
        return unsigned(name, 10).unwrap_or(u64::MAX) as i32;
    }
    match name {
        b"SYSCALL" => SYSCALL,
        b"PROCTITLE" => PROCTITLE,
        b"PATH" => 1302,
        b"CWD" => 1307,
        b"EXECVE" => 1309,
        _ => rare_number(name, dialect),
    }
}

/// The number of a known name. As in audit, case does not count.
fn rare_number(name: &[u8], dialect: Dialect) -> i32 {
    let number = |name: &str| {
        abi::record_type_number(name)
            .or_else(|| abi::record_type_number(&name.to_ascii_uppercase()))
    };
    std::str::from_utf8(name)
        .ok()
        .and_then(number)
        .filter(|number| dialect == Dialect::Own || is_of_compat(*number))
        .map_or(-1, |number| number as i32)
}

/// The name of a type, as far as the dialect has one.
pub(crate) fn name(number: u32, dialect: Dialect) -> Option<&'static str> {
    let is_known = dialect == Dialect::Own || is_of_compat(number);
    abi::record_type_name(number).filter(|_| is_known)
}

/// Whether audit 4.0 has a name for the type.
fn is_of_compat(number: u32) -> bool {
    abi::record_type_name(number).is_some() && !LATER.contains(&number)
}

/// Whether a record says who acted, whatever other records say.
pub(crate) fn is_of_call(kind: i32) -> bool {
    matches!(kind, SYSCALL | URINGOP)
}

/// Whether an event that begins with this type has no further records, as ausearch decides. LOGIN of a process with an
/// audit context is followed by records of its call.
pub(crate) fn is_single(kind: i32, dialect: Dialect) -> bool {
    let is_early = match dialect {
        Dialect::Own => kind != LOGIN && kind < FIRST_EVENT,
        Dialect::Compat => kind > LOGIN && kind < FIRST_EVENT,
    };
    is_early
        || kind == PROCTITLE
        || kind >= FIRST_ANOM_MSG
        || kind == KERNEL
        || MAC_LABELS.contains(&kind)
}
