//! Values that are sets of flags.

use super::unknown;
use crate::number::OutOfRange;
use crate::number::{unsigned, unsigned_any};
use abi::names;

type Meaning = Result<Vec<u8>, OutOfRange>;

pub(super) const SET_UID: u64 = 0o4000;
pub(super) const SET_GID: u64 = 0o2000;
pub(super) const STICKY: u64 = 0o1000;

/// The permissions of a mode, and what stands before them.
pub(super) fn permission_bits(mode: u64) -> String {
    let bits = [(SET_UID, "suid,"), (SET_GID, "sgid,"), (STICKY, "sticky,")];
    let special: String = bits
        .iter()
        .filter(|(bit, _)| mode & bit != 0)
        .map(|(_, name)| *name)
        .collect();
    format!("{special}0{:03o}", mode & 0o777)
}

/// Adds the names of the bits of `number` to `first`.
pub(super) fn joined(table: &[(u32, &str)], number: u32, separator: &str, first: String) -> String {
    let mut text = first;
    for (bit, name) in table {
        if number & bit != 0 {
            if !text.is_empty() {
                text += separator;
            }
            text += name;
        }
    }
    text
}

/// The flags of a hexadecimal number; the number itself if it has none of them.
fn bar(table: &[(u32, &str)], value: &[u8], number: u32, first: &str) -> Vec<u8> {
    let text = joined(table, number, "|", first.to_owned());
    if text.is_empty() {
        [b"0x", value].concat()
    } else {
        text.into()
    }
}

/// The flags of a hexadecimal number.
pub(super) fn hex(table: &[(u32, &str)], value: &[u8]) -> Meaning {
    Ok(bar(table, value, unsigned(value, 16)? as u32, ""))
}

pub(super) fn open(value: &[u8], base: u32) -> Meaning {
    let flags = unsigned_any(value, base)? as u32;
    let first = if flags & 3 == 0 { "O_RDONLY" } else { "" };
    Ok(bar(names::OPEN_FLAGS, value, flags, first))
}

pub(super) fn clone(value: &[u8], dialect: crate::Dialect) -> Meaning {
    let flags = unsigned(value, 16)? as u32;
    let mut text = joined(names::CLONE_FLAGS, flags, "|", String::new());
    let signal = flags & 0xff;
    if (1..32).contains(&signal) {
        if let Some(name) = names::find(names::SIGNALS, signal) {
            let is_cut = name == "SIGPWR" && dialect != crate::Dialect::Own;
            let name = if is_cut { "IGPWR" } else { name };
            text = joined(&[(1, name)], 1, "|", text);
        }
    }

    Ok(if text.is_empty() {
        format!("0x{flags:x}").into()
    } else {
        text.into()
    })
}

pub(super) fn protection(value: &[u8], is_mmap: bool) -> Meaning {
    let flags = unsigned(value, 16)? as u32;
    if flags & 7 == 0 {
        return Ok("PROT_NONE".into());
    }
    let count = if is_mmap { 4 } else { 3 };
    Ok(bar(&names::PROTECTIONS[..count], value, flags, ""))
}

pub(super) fn mmap(value: &[u8]) -> Meaning {
    let flags = unsigned(value, 16)? as u32;
    let first = if flags & 15 == 0 { "MAP_FILE" } else { "" };
    Ok(bar(names::MMAP_FLAGS, value, flags, first))
}

/// PER_MASK and ADDR_NO_RANDOMIZE (linux/personality.h).
const PERSONALITY: (u32, u32) = (0xff, 0x0004_0000);

pub(super) fn personality(value: &[u8]) -> Meaning {
    let number = unsigned(value, 16)? as u32;
    Ok(
        match names::find(names::PERSONALITIES, number & PERSONALITY.0) {
            Some(name) if number & PERSONALITY.1 != 0 => {
                format!("{name}|~ADDR_NO_RANDOMIZE").into()
            }
            Some(name) => name.into(),
            None => [b"unknown-personality(0x", value, b")"].concat(),
        },
    )
}

pub(super) fn access(value: &[u8]) -> Meaning {
    let mode = unsigned(value, 16)? as u32;
    if mode & 15 == 0 {
        return Ok("F_OK".into());
    }
    Ok(bar(names::ACCESS_MODES, value, mode, ""))
}

/// SCHED_RESET_ON_FORK (linux/sched.h).
const RESET_ON_FORK: u32 = 0x4000_0000;

pub(super) fn scheduler(value: &[u8]) -> Meaning {
    let policy = unsigned(value, 16)? as u32;
    Ok(match names::find(names::SCHED_POLICIES, policy & 15) {
        Some(name) if policy & RESET_ON_FORK != 0 => format!("{name}|SCHED_RESET_ON_FORK").into(),
        Some(name) => name.into(),
        None => [b"unknown-scheduler-policy(0x", value, b")"].concat(),
    })
}

pub(super) fn shm(value: &[u8]) -> Meaning {
    let flags = unsigned(value, 16)? as u32;
    let text = joined(names::IPC_FLAGS, flags & 0o3000, "|", String::new());
    let text = joined(names::SHM_MODES, flags & 0o14000, "|", text);
    let bits = permission_bits(u64::from(flags & 0o777));
    Ok(joined(&[(1, &bits)], 1, "|", text).into())
}

pub(super) fn resolve(value: &[u8]) -> Meaning {
    hex(names::RESOLVE_FLAGS, value)
}

/// Flags that kernels 2.6.9 wrote into PATH records.
pub(super) fn lookup(value: &[u8]) -> Meaning {
    let flags = unsigned(value, 16)? as u32;
    if flags == 0 {
        return Ok("none".into());
    }
    let text = joined(names::LOOKUP_FLAGS, flags, ",", String::new());
    Ok(if text.is_empty() {
        [b"0x", value].concat()
    } else {
        text.into()
    })
}

pub(super) fn seek(value: &[u8]) -> Meaning {
    let origin = unsigned(value, 16)? as u32 & 0xff;
    Ok(match names::find(names::SEEK_ORIGINS, origin) {
        Some(name) => name.into(),
        None => unknown("unknown-whence", value),
    })
}
