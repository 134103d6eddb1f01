//! The kinds of access that `perm=` sees in a system call, and which calls `-S 2032` to `-S 2047` select.
//!
//! Sources: `audit_match_perm()` in kernel/auditsc.c, `audit_classify_syscall()` of each
//! architecture, include/asm-generic/audit_*.h. The rows of [`crate::calls`] have the lists of Linux 7.2
//! and 7.3. They have calls that older kernels lack; on those kernels this makes no difference.

use crate::calls::{call_of, CallRow, NameUse, ShapeKind, SyscallClass, NONE};
use crate::{syscalls, Arch};

/// The kinds of access that `perm=` sees in a system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermClass {
    /// Reads: `r`.
    pub read: bool,
    /// Writes: `w`.
    pub write: bool,
    /// Changes attributes: `a`.
    pub attr: bool,
    /// Executes: `x`.
    pub exec: bool,
    /// Opens a file: reads or writes, depending on the access mode, which is found here.
    pub open: Option<OpenFlags>,
    /// socketcall(2): writes if its first argument is `SYS_BIND` (2).
    pub socketcall: bool,
}

/// Place of a call's `O_*` flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFlags {
    /// The argument with this index, counted from 0.
    Arg(u8),
    /// `struct open_how` of openat2(2).
    How,
}

impl PermClass {
    /// The `PERM_*` bits that the call has regardless of its arguments.
    pub const fn bits(self) -> u32 {
        (self.exec as u32)
            | (self.write as u32) << 1
            | (self.read as u32) << 2
            | (self.attr as u32) << 3
    }

    /// The `PERM_*` bits of a call that opens a file with these `O_*` flags: those of the access mode,
    /// where 3 counts as reading and writing (the kernel's `ACC_MODE()`).
    pub const fn open_bits(flags: u32) -> u32 {
        match flags & 3 {
            0 => crate::PERM_READ,
            1 => crate::PERM_WRITE,
            _ => crate::PERM_READ | crate::PERM_WRITE,
        }
    }
}

/// Edition of a kernel's lists of system calls per class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PermLists {
    /// Lists of Linux 7.2 and earlier.
    #[default]
    Short,
    /// Lists of Linux 7.3 and later: calls that read the attributes of a file are in the read class, and quotactl_fd
    /// and file_setattr are in the lists too.
    Long,
}

/// Every edition.
pub const PERM_LISTS: [PermLists; 2] = [PermLists::Short, PermLists::Long];

/// Whether a call is in a class.
fn is_in(row: &CallRow, class: SyscallClass, lists: PermLists) -> bool {
    let in_kernel = match lists {
        PermLists::Short => row.classes,
        PermLists::Long => row.classes | row.later_classes,
    };
    let wanted = match class {
        SyscallClass::Write => SyscallClass::Write.bit() | SyscallClass::DirWrite.bit(),
        _ => class.bit(),
    };
    in_kernel & wanted != 0
}

/// The calls of `arch` that are in `class`.
pub fn class_syscalls(
    arch: Arch,
    class: SyscallClass,
    lists: PermLists,
) -> impl Iterator<Item = u32> {
    syscalls(arch)
        .map(|(number, _)| number)
        .filter(move |&number| is_in(call_of(arch, number), class, lists))
}

/// The kinds of access that `perm=` sees in call `number` of `arch`. A call in none of the lists
/// has none, so `perm=` never matches it.
pub fn perm_class(arch: Arch, number: u32, lists: PermLists) -> PermClass {
    let none = PermClass::default();
    let row = call_of(arch, number);
    let opens = row.shape.paths[0].is_some_and(|path| path.use_ == NameUse::Open);

    match row.shape.kind {
        ShapeKind::Open if opens && row.shape.how != NONE => PermClass {
            open: Some(OpenFlags::How),
            ..none
        },
        ShapeKind::Open if opens && row.shape.open_flags != NONE => PermClass {
            open: Some(OpenFlags::Arg(row.shape.open_flags)),
            ..none
        },
        ShapeKind::Exec => PermClass { exec: true, ..none },
        ShapeKind::Socketcall if arch == Arch::I386 => PermClass {
            socketcall: true,
            ..none
        },
        _ => PermClass {
            read: is_in(row, SyscallClass::Read, lists),
            write: is_in(row, SyscallClass::Write, lists),
            attr: is_in(row, SyscallClass::ChangeAttr, lists),
            ..none
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::SYSCALL_CLASSES;
    use crate::{syscall_name, syscall_number, PERM_ATTR, PERM_EXEC, PERM_READ, PERM_WRITE};

    fn class(arch: Arch, name: &str) -> PermClass {
        class_in(arch, name, PermLists::Short)
    }

    fn class_in(arch: Arch, name: &str, lists: PermLists) -> PermClass {
        perm_class(arch, syscall_number(arch, name).unwrap(), lists)
    }

    #[test]
    fn calls_have_the_permissions_that_the_kernel_gives_them() {
        assert_eq!(class(Arch::X86_64, "link").bits(), PERM_WRITE | PERM_ATTR);
        assert_eq!(
            class(Arch::X86_64, "quotactl").bits(),
            PERM_WRITE | PERM_READ
        );
        assert_eq!(class(Arch::X86_64, "execveat").bits(), PERM_EXEC);
        assert_eq!(class(Arch::X86_64, "stat").bits(), 0);
        assert_eq!(class(Arch::I386, "lchown32").bits(), PERM_ATTR);
        assert_eq!(class(Arch::Aarch64, "openat").open, Some(OpenFlags::Arg(2)));
        assert_eq!(class(Arch::X86_64, "openat2").open, Some(OpenFlags::How));
        assert!(class(Arch::I386, "socketcall").socketcall);
        for lists in PERM_LISTS {
            assert_eq!(perm_class(Arch::X86_64, 4000, lists), PermClass::default());
        }
    }

    #[test]
    fn a_7_3_kernel_counts_stat_as_reading() {
        for (arch, name) in [
            (Arch::X86_64, "stat"),
            (Arch::X86_64, "newfstatat"),
            (Arch::I386, "fstatat64"),
            (Arch::I386, "lstat64"),
            (Arch::Aarch64, "newfstat"),
            (Arch::Aarch64, "statx"),
        ] {
            assert_eq!(class(arch, name).bits(), 0, "{name}");
            let long = class_in(arch, name, PermLists::Long);
            assert_eq!(long.bits(), PERM_READ, "{name}");
        }
        let long = |name| class_in(Arch::X86_64, name, PermLists::Long).bits();
        assert_eq!(long("quotactl_fd"), PERM_READ | PERM_WRITE);
        assert_eq!(long("file_getattr"), PERM_READ);
        assert_eq!(long("file_setattr"), PERM_ATTR);
        // These calls are in no list.
        let none = ["access", "statfs", "open_tree_attr", "fchroot"];
        assert_eq!(none.map(long), [0; 4]);
    }

    #[test]
    fn longer_lists_take_nothing_away() {
        for arch in Arch::EVERY {
            for class in SYSCALL_CLASSES {
                let of = |lists| class_syscalls(arch, class, lists).collect::<Vec<_>>();
                let long = of(PermLists::Long);
                assert!(of(PermLists::Short).iter().all(|nr| long.contains(nr)));
            }
        }
    }

    #[test]
    fn access_modes_become_permissions() {
        assert_eq!(PermClass::open_bits(0), PERM_READ);
        assert_eq!(PermClass::open_bits(0o101), PERM_WRITE);
        assert_eq!(PermClass::open_bits(2), PERM_READ | PERM_WRITE);
        assert_eq!(PermClass::open_bits(3), PERM_READ | PERM_WRITE);
    }

    #[test]
    fn classes_hold_what_a_6_18_kernel_lists_for_them() {
        // What Linux 6.18 on x86-64 lists after `auditctl -a always,exit -S 2047` and so on.
        let names = |arch, class| {
            let mut numbers: Vec<u32> = class_syscalls(arch, class, PermLists::Short).collect();
            numbers.sort_unstable();
            numbers
                .iter()
                .map(|&nr| syscall_name(arch, nr).unwrap())
                .collect::<Vec<_>>()
                .join(",")
        };
        assert_eq!(
            names(Arch::X86_64, SyscallClass::ChangeAttr),
            "link,chmod,fchmod,chown,fchown,lchown,setxattr,lsetxattr,fsetxattr,removexattr,\
             lremovexattr,fremovexattr,fchownat,linkat,fchmodat,fchmodat2,setxattrat,removexattrat"
        );
        assert_eq!(
            names(Arch::I386, SyscallClass::Write),
            "creat,link,unlink,mknod,rename,mkdir,rmdir,acct,symlink,swapon,truncate,ftruncate,\
             quotactl,truncate64,ftruncate64,mkdirat,mknodat,unlinkat,renameat,linkat,symlinkat,\
             fallocate,renameat2,bind"
        );
        assert_eq!(
            names(Arch::X86_64, SyscallClass::Signal),
            "kill,tkill,tgkill"
        );
        assert_eq!(SyscallClass::DirWrite.selector(false), 2047);
        assert_eq!(SyscallClass::Signal.selector(true), 2038);
    }
}
