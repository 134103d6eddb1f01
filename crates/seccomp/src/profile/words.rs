//! Names and errors that several forms share.

use super::ProfileError;
use crate::policy::Abi;

/// Whether some architecture has a call with this name.
pub(super) fn is_call(name: &str) -> bool {
    Abi::EVERY.iter().any(|abi| abi.number(name).is_some())
}

/// Whether the kernel or libseccomp uses the name on an architecture without tables here.
pub(super) fn is_foreign_call(name: &str) -> bool {
    const PREFIXES: [&str; 8] = [
        "s390_", "riscv_", "spu_", "arm_", "sparc_", "mips_", "ppc_", "osf_",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || FOREIGN.contains(&name)
}

/// Calls of other architectures, or removed from all of them: names that libseccomp (syscalls.csv)
/// and systemd know.
const FOREIGN: [&str; 27] = [
    "breakpoint",
    "cachectl",
    "cacheflush",
    "cmpxchg_badaddr",
    "atomic_barrier",
    "atomic_cmpxchg_32",
    "fstatat",
    "fstatat64",
    "getpagesize",
    "llseek",
    "multiplexer",
    "newfstat",
    "pciconfig_iobase",
    "pciconfig_read",
    "pciconfig_write",
    "rtas",
    "set_tls",
    "get_tls",
    "subpage_prot",
    "swapcontext",
    "switch_endian",
    "sync_file_range2",
    "sys_debug_setcontext",
    "sysmips",
    "timerfd",
    "usr26",
    "usr32",
];

/// The known call whose name is most similar to `name`.
pub(super) fn nearest_call(name: &str) -> Option<&'static str> {
    let calls = Abi::EVERY
        .iter()
        .flat_map(|abi| abi.calls())
        .map(|row| row.1);
    let (distance, nearest) = calls.map(|call| (distance(name, call), call)).min()?;
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
