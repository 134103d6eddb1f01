//! Values that are one name, or a few.

use super::flags::{self, permission_bits, SET_GID, SET_UID, STICKY};
use super::unknown;
use crate::number::{unsigned, OutOfRange};
use crate::Dialect;
use abi::names::{self, Names};

type Meaning = Result<Vec<u8>, OutOfRange>;

const FILE_TYPE: u64 = 0o170_000;

/// A number of `base` with a name in a table.
pub(super) fn named(value: &[u8], base: u32, names: Names, prefix: &str) -> Meaning {
    let number = unsigned(value, base)? as u32;
    Ok(match names::find(names, number) {
        Some(name) => name.into(),
        None => unknown(prefix, value),
    })
}

pub(super) fn permissions(value: &[u8]) -> Meaning {
    let number = crate::number::signed_decimal(value)? as u32;
    // None of them means all of them to the kernel.
    let number = if number == 0 { 15 } else { number };
    let words = [
        (abi::PERM_READ, "read"),
        (abi::PERM_WRITE, "write"),
        (abi::PERM_EXEC, "exec"),
        (abi::PERM_ATTR, "attr"),
    ];
    Ok(flags::joined(&words, number, ",", String::new()).into())
}

pub(super) fn mode(value: &[u8], base: u32) -> Meaning {
    let mode = unsigned(value, base)? & 0xffff_ffff;
    let kind = match abi::file_type_name((mode & FILE_TYPE) as u32) {
        Some(name) => name.to_owned(),
        None => format!("{:03o}", (mode & FILE_TYPE) >> 12),
    };
    let mut text = kind;

    for (bit, name) in [(SET_UID, ",suid"), (SET_GID, ",sgid"), (STICKY, ",sticky")] {
        if mode & bit != 0 {
            text += name;
        }
    }

    Ok(format!("{text},{:03o}", mode & 0o777).into())
}

pub(super) fn mode_short(value: &[u8], base: u32) -> Meaning {
    Ok(permission_bits(unsigned(value, base)?).into())
}

pub(super) fn promiscuous(value: &[u8]) -> Meaning {
    let is_off = crate::number::signed_decimal(value)? as i32 == 0;
    Ok(if is_off { "no" } else { "yes" }.into())
}

pub(super) fn capability(value: &[u8], base: u32) -> Meaning {
    let prefix = "unknown-capability";
    match base {
        16 => named(value, base, names::CAPABILITIES, prefix).map(|name| {
            if name.starts_with(b"unknown") {
                [b"unknown-capability(0x", value, b")"].concat()
            } else {
                name
            }
        }),
        _ => named(value, base, names::CAPABILITIES, prefix),
    }
}

pub(super) fn capabilities(value: &[u8]) -> Meaning {
    let bits = unsigned(value, 16)?;
    let found: Vec<&str> = names::CAPABILITIES
        .iter()
        .filter(|(number, _)| bits >> number & 1 != 0)
        .map(|(_, name)| *name)
        .collect();
    Ok(if found.is_empty() {
        "none".into()
    } else {
        found.join(",").into()
    })
}

pub(super) fn success(value: &[u8]) -> Meaning {
    if !value.first().is_some_and(u8::is_ascii_digit) {
        return Ok(value.to_vec());
    }
    Ok(match unsigned(value, 10)? as u32 {
        0 => "no",
        1 => "yes",
        _ => "unset",
    }
    .into())
}

pub(super) fn signal(value: &[u8], base: u32, dialect: Dialect) -> Meaning {
    let number = unsigned(value, base)? as i32;
    let name = u32::try_from(number)
        .ok()
        .and_then(|number| names::find(names::SIGNALS, number));
    Ok(match name {
        // audit has lost the S.
        Some("SIGPWR") if dialect != Dialect::Own => "IGPWR".into(),
        Some(name) => name.into(),
        None if base == 16 => [b"unknown-signal(0x", value, b")"].concat(),
        None => unknown("unknown-signal", value),
    })
}

/// Lists of rules by number (linux/audit.h).
const LISTS: Names = &[
    (0, "user"),
    (1, "task"),
    (4, "exit"),
    (5, "exclude"),
    (6, "filesystem"),
    (7, "io_uring"),
];

pub(super) fn list(value: &[u8]) -> Meaning {
    named(value, 10, LISTS, "unknown-list")
}

/// The action in the value of a seccomp filter (linux/seccomp.h, `SECCOMP_RET_ACTION_FULL`).
const SECCOMP_ACTION_FULL: u64 = 0xffff_0000;

/// The older mask without the bit of KILL_PROCESS (`SECCOMP_RET_ACTION`), which ausearch applies.
const SECCOMP_ACTION: u64 = 0x7fff_0000;

pub(super) fn seccomp(value: &[u8], dialect: Dialect) -> Meaning {
    let mask = match dialect {
        Dialect::Own => SECCOMP_ACTION_FULL,
        Dialect::Compat => SECCOMP_ACTION,
    };
    let action = (unsigned(value, 16)? & mask) as u32;
    Ok(match names::find(names::SECCOMP_ACTIONS, action) {
        Some("kill") => "kill-thread".into(),
        Some(name) => name.into(),
        None => unknown("unknown-seccomp-code", value),
    })
}

pub(super) fn ethernet(value: &[u8]) -> Meaning {
    Ok(match unsigned(value, 16)? as u32 {
        0x0800 => "IP",
        0x0806 => "ARP",
        _ => "UNKNOWN",
    }
    .into())
}

pub(super) fn ioctl(value: &[u8]) -> Meaning {
    let request = unsigned(value, 16)? as u32;
    Ok(match names::find(names::IOCTL_REQUESTS, request) {
        Some(name) => name.into(),
        None => format!("{request:#x}").into(),
    })
}

pub(super) fn fanotify(value: &[u8]) -> Meaning {
    if !value.first().is_some_and(u8::is_ascii_digit) {
        return Ok(value.to_vec());
    }
    Ok(match unsigned(value, 10)? as u32 {
        1 => "allow",
        2 => "deny",
        _ => "unknown",
    }
    .into())
}

pub(super) fn multicast_group(value: &[u8]) -> Meaning {
    Ok(match unsigned(value, 16)? {
        1 => "audit-netlink-multicast",
        _ => "audit-none",
    }
    .into())
}

pub(super) fn trust(value: &[u8]) -> &'static [u8] {
    match value {
        b"0" => b"no",
        b"1" => b"yes",
        _ => b"unknown",
    }
}
