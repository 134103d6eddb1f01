//! Names and numbers of system calls.

use crate::generated::{aarch64, arm, i386, x86_64};
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

/// Every call of an architecture, by ascending number, with its name as in [`syscall_name`].
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
}
