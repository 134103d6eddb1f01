//! Names and errors that several forms share.

use super::{systemd, ProfileError};
use crate::policy::Abi;

/// Whether some architecture has a call with this name.
pub(super) fn is_call(name: &str) -> bool {
    Abi::EVERY.iter().any(|abi| abi.number(name).is_some())
}

/// Whether libseccomp or systemd knows the name, and no architecture with tables here has the call.
pub(super) fn is_foreign_call(name: &str) -> bool {
    FOREIGN.contains(&name) || systemd::set("@known").is_some_and(|calls| calls.contains(&name))
}

/// Names in libseccomp's table (data/libseccomp_names.py) of calls that only other architectures
/// have, or none any more.
const FOREIGN: [&str; 23] = [
    "atomic_barrier",
    "atomic_cmpxchg_32",
    "cachectl",
    "cmpxchg_badaddr",
    "getpagesize",
    "multiplexer",
    "riscv_flush_icache",
    "riscv_hwprobe",
    "rtas",
    "s390_guarded_storage",
    "s390_pci_mmio_read",
    "s390_pci_mmio_write",
    "s390_runtime_instr",
    "s390_sthyi",
    "spu_create",
    "spu_run",
    "subpage_prot",
    "swapcontext",
    "switch_endian",
    "sync_file_range2",
    "sys_debug_setcontext",
    "sysmips",
    "timerfd",
];

/// The known call whose name is most similar to `name`.
pub(super) fn nearest_call(name: &str) -> Option<&'static str> {
    let calls = Abi::EVERY
        .iter()
        .flat_map(|abi| abi.calls())
        .map(|row| row.1);
    nearest(name, calls)
}

/// The word that is most similar to `name`, if one is similar enough.
pub(super) fn nearest<'a>(name: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, nearest) = words.map(|word| (distance(name, word), word)).min()?;
    (distance <= 2.max(name.len() / 4)).then_some(nearest)
}

/// `did you mean X?`, or another remedy.
pub(super) fn suggestion(name: &str) -> String {
    match nearest_call(name) {
        Some(call) => format!("did you mean {call}?"),
        None => "delete it, or correct its spelling".to_owned(),
    }
}

/// Edit distance between two names (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The largest errno that libseccomp takes from systemd, runc and crun (src/system.h, MAX_ERRNO). The kernel's is one more.
pub(super) const LIBSECCOMP_ERRNO_MAX: u16 = 4094;

/// An errno by name or number, as in systemd units and lists: 0 to 4095 (linux/err.h, MAX_ERRNO).
pub(super) fn errno(text: &str) -> Option<u16> {
    let number = match text.parse::<u16>() {
        Ok(number) => i32::from(number),
        Err(_) => ::abi::errno_number(text)?,
    };
    u16::try_from(number).ok().filter(|&number| number <= 4095)
}

/// The error for a call that no architecture has.
pub(super) fn unknown_call(place: impl Into<String>, name: &str) -> ProfileError {
    ProfileError::new(
        place,
        format!("{name:?}"),
        "a system call that some architecture has",
        suggestion(name),
    )
}
