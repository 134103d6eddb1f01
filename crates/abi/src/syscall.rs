//! System calls and io_uring operations.

use crate::generated::{aarch64, arm, i386, uring, x86_64};
use crate::{by_name, by_number, Arch};

/// The name of call `number`, as audit's own tools print it (`pread`, not `pread64`).
pub fn syscall_name(arch: Arch, number: u32) -> Option<&'static str> {
    by_number(numbers(arch), number)
}

/// The number of the call that audit or the kernel names `name`.
pub fn syscall_number(arch: Arch, name: &str) -> Option<u32> {
    let table = match arch {
        Arch::X86_64 => x86_64::BY_NAME,
        Arch::I386 => i386::BY_NAME,
        Arch::Aarch64 => aarch64::BY_NAME,
        Arch::Arm => arm::BY_NAME,
    };
    by_name(table, name)
}

/// Every call of an architecture, by ascending number, with the name of [`syscall_name`].
pub fn syscalls(arch: Arch) -> impl Iterator<Item = (u32, &'static str)> {
    numbers(arch).iter().copied()
}

fn numbers(arch: Arch) -> &'static [(u32, &'static str)] {
    match arch {
        Arch::X86_64 => x86_64::BY_NUMBER,
        Arch::I386 => i386::BY_NUMBER,
        Arch::Aarch64 => aarch64::BY_NUMBER,
        Arch::Arm => arm::BY_NUMBER,
    }
}

/// The name of an io_uring operation: `IORING_OP_*` of linux/io_uring.h in lower case, which is
/// how audit-userspace (lib/uringop_table.h) spells those it knows.
pub fn uring_op_name(op: u32) -> Option<&'static str> {
    by_number(uring::BY_NUMBER, op)
}

/// The inverse of [`uring_op_name`].
pub fn uring_op_number(name: &str) -> Option<u32> {
    uring::BY_NUMBER
        .iter()
        .find(|row| row.1 == name)
        .map(|row| row.0)
}

/// Every io_uring operation, by ascending number.
pub fn uring_ops() -> impl Iterator<Item = (u32, &'static str)> {
    uring::BY_NUMBER.iter().copied()
}

/// Whether the kernel's own audit sees operation `op`: those marked `audit_skip` in
/// io_uring/opdef.c never reach it.
pub fn uring_op_is_audited(op: u32) -> bool {
    matches!(op, 9 | 10 | 13 | 16..=19 | 28 | 34..=44 | 46 | 48 | 50..=57 | 64)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn io_uring_operations_have_their_kernel_numbers() {
        assert_eq!(uring_op_number("openat"), Some(18));
        assert_eq!(uring_op_number("read_fixed"), Some(4));
        assert_eq!(uring_op_name(57), Some("listen"));
        assert_eq!(uring_op_name(9999), None);
        assert!(uring_op_is_audited(18) && !uring_op_is_audited(22));
    }
}
