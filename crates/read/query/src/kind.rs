//! Numbers of record types, as ausearch's questions group them.

use crate::number::unsigned;
use crate::Dialect;
use abi::record_type as kinds;

/// MAC_UNLBL_ALLOW to MAC_CALIPSO_DEL: changes of labelled networking.
const MAC_LABELS: std::ops::RangeInclusive<i32> = kinds::MAC_UNLBL_ALLOW..=kinds::MAC_CALIPSO_DEL;

/// LANDLOCK_ACCESS, LANDLOCK_DOMAIN, which audit 4.0 does not know.
const LATER: [i32; 2] = [kinds::LANDLOCK_ACCESS, kinds::LANDLOCK_DOMAIN];

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
        b"SYSCALL" => kinds::SYSCALL,
        b"PROCTITLE" => kinds::PROCTITLE,
        b"PATH" => kinds::PATH,
        b"CWD" => kinds::CWD,
        b"EXECVE" => kinds::EXECVE,
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
    if dialect == Dialect::Compat && !is_of_compat(number) {
        return None;
    }
    abi::record_type_name(number)
}

/// Whether audit 4.0 has a name for the type.
fn is_of_compat(number: u32) -> bool {
    abi::record_type_name(number).is_some() && !LATER.contains(&(number as i32))
}

/// Whether a record says who acted, whatever other records say.
pub(crate) fn is_of_call(kind: i32) -> bool {
    matches!(kind, kinds::SYSCALL | kinds::URINGOP)
}

/// Whether an event that begins with this type has no further records, as ausearch decides. LOGIN of a process with an
/// audit context is followed by records of its call.
pub(crate) fn is_single(kind: i32, dialect: Dialect) -> bool {
    let is_early = match dialect {
        Dialect::Own => kind != kinds::LOGIN && kind < kinds::FIRST_EVENT,
        Dialect::Compat => kind > kinds::LOGIN && kind < kinds::FIRST_EVENT,
    };
    is_early
        || kind == kinds::PROCTITLE
        || kind >= kinds::FIRST_ANOM_MSG
        || kind == kinds::KERNEL
        || MAC_LABELS.contains(&kind)
}
