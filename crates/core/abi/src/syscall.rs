//! Names and numbers of system calls.

use crate::calls::added_call;
use crate::generated::{aarch64, arm, i386, ppc64, s390x, x86_64};
use crate::{by_name, by_number, Arch};

/// The name of call `number`, as audit's own tools print it (`pread`, not `pread64`). Calls of x32 have the names of
/// their 64-bit twins.
pub fn syscall_name(arch: Arch, number: u32) -> Option<&'static str> {
    let twin = || {
        if arch == Arch::X86_64 {
            twin_of_x32(number)
        } else {
            None
        }
    };
    let known = by_number(numbers(arch), number).or_else(|| by_number(numbers(arch), twin()?));
    let added = || added_call(arch).filter(|added| added.0 == number);
    known.or_else(|| added().map(|added| added.1))
}

/// Bit in AUDIT_ARCH of machines that store the low byte first (`__AUDIT_ARCH_LE`).
const LOW_BYTE_FIRST: u32 = 0x4000_0000;

/// Machines of 64 bits on which Tarsier does not run, by AUDIT_ARCH: with either order of bytes, PowerPC; and s390x.
const READ_ONLY: [(u32, &[(u32, &str)]); 3] = [
    (0x8000_0015, ppc64::BY_NUMBER),
    (0x8000_0015 | LOW_BYTE_FIRST, ppc64::BY_NUMBER),
    (0x8000_0016, s390x::BY_NUMBER),
];

/// The name of call `number` in a log of a machine that [`Arch`] does not have, as audit's own tools print it; `None` if
/// there is no table or no name.
pub fn read_only_syscall_name(audit_arch: u32, number: u32) -> Option<&'static str> {
    let table = READ_ONLY.iter().find(|machine| machine.0 == audit_arch)?.1;
    by_number(table, number)
}

/// Whether a machine that [`Arch`] does not have has a call of this name.
pub fn has_read_only_syscall(name: &str) -> bool {
    READ_ONLY
        .iter()
        .any(|machine| machine.1.iter().any(|row| row.1 == name))
}

/// The number of the call that audit or the kernel names `name` on a machine that [`Arch`] does not have.
pub fn read_only_syscall_number(audit_arch: u32, name: &str) -> Option<u32> {
    let table = READ_ONLY.iter().find(|machine| machine.0 == audit_arch)?.1;
    table.iter().find(|row| row.1 == name).map(|row| row.0)
}

/// Bit of the numbers of x32 calls (arch/x86/include/uapi/asm/unistd.h).
pub const X32_BIT: u32 = 0x4000_0000;

/// Numbers from here on belong to x32 alone (arch/x86/entry/syscalls/syscall_64.tbl).
const X32_FIRST: u32 = 512;

/// The 64-bit calls that do the same as x32 calls, by number from [`X32_FIRST`] on.
const X32_TWINS: [u32; 36] = [
    13, 15, 16, 19, 20, 45, 46, 47, 59, 101, 127, 128, 129, 131, 222, 244, 246, 247, 273, 274, 278,
    279, 295, 296, 297, 299, 307, 310, 311, 54, 55, 206, 209, 322, 327, 328,
];

/// The number of the 64-bit call that does the same as x32 call `number`, which has [`X32_BIT`]; `None` for any other.
pub fn twin_of_x32(number: u32) -> Option<u32> {
    let own = number.checked_sub(X32_BIT).filter(|own| *own < X32_BIT)?;
    match own.checked_sub(X32_FIRST) {
        None => Some(own),
        Some(place) => X32_TWINS.get(place as usize).copied(),
    }
}

/// Numbers of the 64-bit calls for which x32 has its own functions.
pub fn x32_twins() -> impl Iterator<Item = u32> {
    X32_TWINS.into_iter()
}

/// The number of the call that audit or the kernel names `name`.
pub fn syscall_number(arch: Arch, name: &str) -> Option<u32> {
    let table = match arch {
        Arch::X86_64 => x86_64::BY_NAME,
        Arch::I386 => i386::BY_NAME,
        Arch::Aarch64 => aarch64::BY_NAME,
        Arch::Arm => arm::BY_NAME,
    };
    let added = || added_call(arch).filter(|added| added.1 == name);
    by_name(table, name).or_else(|| added().map(|added| added.0))
}

/// Every call of an architecture, by ascending number, with its name as in [`syscall_name`].
pub fn syscalls(arch: Arch) -> impl Iterator<Item = (u32, &'static str)> {
    numbers(arch).iter().copied().chain(added_call(arch))
}

fn numbers(arch: Arch) -> &'static [(u32, &'static str)] {
    match arch {
        Arch::X86_64 => x86_64::BY_NUMBER,
        Arch::I386 => i386::BY_NUMBER,
        Arch::Aarch64 => aarch64::BY_NUMBER,
        Arch::Arm => arm::BY_NUMBER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_machines_elsewhere_have_names() {
        for (arch, number, name) in [
            (0xc000_0015, 286, Some("openat")),
            (0x8000_0015, 11, Some("execve")),
            (0x8000_0016, 288, Some("openat")),
            (0x8000_0016, 181, Some("pwrite")),
            (0x8000_0016, 9999, None),
            (0x8000_0017, 1, None),
        ] {
            assert_eq!(read_only_syscall_name(arch, number), name);
            let back = name.and_then(|name| read_only_syscall_number(arch, name));
            assert_eq!(back, name.map(|_| number));
        }
    }

    #[test]
    fn calls_of_x32_are_those_of_their_twins() {
        let name = |number| syscall_name(Arch::X86_64, number | X32_BIT);
        assert_eq!(name(83), Some("mkdir"));
        assert_eq!(name(520), Some("execve"));
        assert_eq!(name(547), Some("pwritev2"));
        assert_eq!((name(548), name(1 << 31), name(511)), (None, None, None));
        assert_eq!(syscall_name(Arch::I386, 39 | X32_BIT), None);
        assert_eq!(twin_of_x32(83), None);
    }

    #[test]
    fn what_x32_has_of_its_own_has_a_twin_with_a_name() {
        let names: Vec<_> = x32_twins()
            .map(|number| syscall_name(Arch::X86_64, number))
            .collect();
        let at = |place: usize| names[place];
        assert_eq!(at(0), Some("rt_sigaction"));
        assert_eq!(at(29), Some("setsockopt"));
        assert_eq!(at(33), Some("execveat"));
        assert!(names.iter().all(Option::is_some));
    }

    #[test]
    fn names_and_numbers_agree_on_every_architecture() {
        for arch in Arch::EVERY {
            for (number, name) in syscalls(arch) {
                assert_eq!(
                    syscall_number(arch, name),
                    Some(number),
                    "{name} on {arch:?}"
                );
                assert_eq!(syscall_name(arch, number), Some(name));
            }
            assert!(syscalls(arch).last().is_some_and(|row| row.0 >= 470));
        }
    }

    #[test]
    fn tables_are_sorted_for_the_searches() {
        for table in [
            x86_64::BY_NAME,
            i386::BY_NAME,
            aarch64::BY_NAME,
            arm::BY_NAME,
        ] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
        for arch in Arch::EVERY {
            assert!(numbers(arch).is_sorted_by(|a, b| a.0 < b.0));
        }
    }

    #[test]
    fn audit_spellings_are_printed_and_kernel_spellings_accepted() {
        assert_eq!(syscall_name(Arch::X86_64, 17), Some("pread"));
        assert_eq!(syscall_number(Arch::X86_64, "pread64"), Some(17));
        assert_eq!(syscall_name(Arch::I386, 219), Some("madvise"));
        assert_eq!(syscall_number(Arch::I386, "madvise1"), Some(219));
        assert_eq!(syscall_number(Arch::Arm, "mmap"), Some(90));
        assert_eq!(syscall_number(Arch::X86_64, "nosuchcall"), None);
        assert_eq!(syscall_name(Arch::X86_64, 5000), None);
    }
}
