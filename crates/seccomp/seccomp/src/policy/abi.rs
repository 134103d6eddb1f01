//! System-call ABIs, as distinguished by `AUDIT_ARCH_*` and the x32 bit.

use ::abi::Arch;

/// Bit of the number in x32 calls (`__X32_SYSCALL_BIT`, asm/unistd.h).
const X32_BIT: u32 = 0x4000_0000;

/// A way to make system calls. x86-64 and x32 share `AUDIT_ARCH_X86_64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Abi {
    /// 64-bit x86.
    X86_64,
    /// 64-bit x86 with 32-bit pointers.
    X32,
    /// 32-bit x86.
    I386,
    /// 64-bit Arm.
    Aarch64,
    /// 32-bit Arm, EABI.
    Arm,
}

/// Calls of x86-64 that x32 does not have (arch/x86/entry/syscalls/syscall_64.tbl, ABI `64`).
const NOT_X32: [&str; 11] = [
    "_sysctl",
    "create_module",
    "epoll_ctl_old",
    "epoll_wait_old",
    "get_kernel_syms",
    "get_thread_area",
    "nfsservctl",
    "query_module",
    "set_thread_area",
    "uselib",
    "vserver",
];

/// Names that the tables of audit have for 32-bit Arm and libseccomp has not: calls of the old ABI,
/// whose numbers the EABI leaves empty (arch/arm/tools/syscall.tbl, ABI `oabi`), and two calls with
/// names of their own.
const NOT_ARM: [&str; 14] = [
    "alarm",
    "fadvise64_64",
    "getrlimit",
    "ipc",
    "mmap",
    "readdir",
    "select",
    "socketcall",
    "stime",
    "sync_file_range",
    "syscall",
    "time",
    "umount",
    "utime",
];

/// Calls whose x32 number differs from that of x86-64 (syscall_64.tbl, ABI `x32`).
const OWN_X32: [(&str, u32); 36] = [
    ("rt_sigaction", 512),
    ("rt_sigreturn", 513),
    ("ioctl", 514),
    ("readv", 515),
    ("writev", 516),
    ("recvfrom", 517),
    ("sendmsg", 518),
    ("recvmsg", 519),
    ("execve", 520),
    ("ptrace", 521),
    ("rt_sigpending", 522),
    ("rt_sigtimedwait", 523),
    ("rt_sigqueueinfo", 524),
    ("sigaltstack", 525),
    ("timer_create", 526),
    ("mq_notify", 527),
    ("kexec_load", 528),
    ("waitid", 529),
    ("set_robust_list", 530),
    ("get_robust_list", 531),
    ("vmsplice", 532),
    ("move_pages", 533),
    ("preadv", 534),
    ("pwritev", 535),
    ("rt_tgsigqueueinfo", 536),
    ("recvmmsg", 537),
    ("sendmmsg", 538),
    ("process_vm_readv", 539),
    ("process_vm_writev", 540),
    ("setsockopt", 541),
    ("getsockopt", 542),
    ("io_setup", 543),
    ("io_submit", 544),
    ("execveat", 545),
    ("preadv2", 546),
    ("pwritev2", 547),
];

/// Private calls of 32-bit Arm, which no table of the kernel lists (arch/arm/include/uapi/asm/unistd.h,
/// `__ARM_NR_*`). A C library needs `set_tls` to start a program.
const PRIVATE_ARM: [(&str, u32); 6] = [
    ("breakpoint", 0x000f_0001),
    ("cacheflush", 0x000f_0002),
    ("usr26", 0x000f_0003),
    ("usr32", 0x000f_0004),
    ("set_tls", 0x000f_0005),
    ("get_tls", 0x000f_0006),
];

impl Abi {
    /// All ABIs with tables here.
    pub const EVERY: [Abi; 5] = [Abi::X86_64, Abi::X32, Abi::I386, Abi::Aarch64, Abi::Arm];

    /// `AUDIT_ARCH_*`, as in `struct seccomp_data`.
    pub const fn audit_arch(self) -> u32 {
        self.arch().audit_arch()
    }

    const fn arch(self) -> Arch {
        match self {
            Abi::X86_64 | Abi::X32 => Arch::X86_64,
            Abi::I386 => Arch::I386,
            Abi::Aarch64 => Arch::Aarch64,
            Abi::Arm => Arch::Arm,
        }
    }

    /// The ABI of a call with this architecture and number; `None` for an architecture without
    /// tables, and for numbers from 2³¹ on, which no ABI has.
    pub fn of(audit_arch: u32, nr: u32) -> Option<Abi> {
        if nr >= 0x8000_0000 {
            return None;
        }
        match Arch::from_audit_arch(audit_arch)? {
            Arch::X86_64 if nr & X32_BIT != 0 => Some(Abi::X32),
            Arch::X86_64 => Some(Abi::X86_64),
            Arch::I386 => Some(Abi::I386),
            Arch::Aarch64 => Some(Abi::Aarch64),
            Arch::Arm => Some(Abi::Arm),
        }
    }

    /// The ABIs with this `AUDIT_ARCH_*`.
    pub(crate) fn natives(audit_arch: u32) -> impl Iterator<Item = Abi> {
        Abi::EVERY
            .into_iter()
            .filter(move |abi| abi.audit_arch() == audit_arch)
    }

    /// The first number of the ABI, and the first number after it that is not the ABI's.
    pub(crate) const fn numbers(self) -> (u32, u32) {
        match self {
            Abi::X86_64 => (0, X32_BIT),
            Abi::X32 => (X32_BIT, 0x8000_0000),
            Abi::I386 | Abi::Aarch64 | Abi::Arm => (0, 0x8000_0000),
        }
    }

    /// `nr` without the x32 bit.
    pub const fn bare(self, nr: u32) -> u32 {
        match self {
            Abi::X32 => nr & !X32_BIT,
            _ => nr,
        }
    }

    /// The number of a call by its kernel name (or audit's), including the x32 bit.
    pub fn number(self, name: &str) -> Option<u32> {
        if self.lacks().contains(&name) {
            return None;
        }
        if let Some(own) = self.own_calls().iter().find(|row| row.0 == name) {
            return Some(self.with_bit(own.1));
        }
        ::abi::syscall_number(self.arch(), name).map(|nr| self.with_bit(nr))
    }

    /// The name of call `nr` (with the x32 bit where it applies), as the kernel's headers spell it,
    /// or as audit does.
    pub fn name_of(self, nr: u32) -> Option<&'static str> {
        let bare = self.bare(nr);
        if let Some(own) = self.own_calls().iter().find(|row| row.1 == bare) {
            return Some(own.0);
        }

        let name = match (self.arch(), ::abi::syscall_name(self.arch(), bare)?) {
            // OCI profiles, libseccomp and systemd use the kernel's names.
            (Arch::X86_64 | Arch::Aarch64, "pread") => "pread64",
            (Arch::X86_64 | Arch::Aarch64, "pwrite") => "pwrite64",
            (Arch::Aarch64, "getdents") => "getdents64",
            (Arch::Aarch64, "newfstat") => "fstat",
            (Arch::Arm, "fadvise64_64") => "arm_fadvise64_64",
            (Arch::Arm, "sync_file_range") => "arm_sync_file_range",
            (Arch::I386, "sys_kexec_load") => "kexec_load",
            (Arch::I386 | Arch::Arm, "sched_rr_get_interval64") => "sched_rr_get_interval_time64",
            (_, name) => name,
        };

        // A name that the ABI lacks, or has at another number, is not this call's.
        (self.number(name) == Some(nr)).then_some(name)
    }

    /// Every call of the ABI: number including the x32 bit, and kernel name.
    pub fn calls(self) -> impl Iterator<Item = (u32, &'static str)> {
        let plain = ::abi::syscalls(self.arch()).map(|row| row.0);
        let own = self.own_calls().iter().map(|row| row.1);
        plain
            .chain(own)
            .map(move |bare| self.with_bit(bare))
            .filter_map(move |nr| Some((nr, self.name_of(nr)?)))
    }

    /// Names in the tables of [`Abi::arch`] that are not calls of this ABI.
    const fn lacks(self) -> &'static [&'static str] {
        match self {
            Abi::X32 => &NOT_X32,
            Abi::Arm => &NOT_ARM,
            Abi::Aarch64 => &["getdents"],
            Abi::X86_64 | Abi::I386 => &[],
        }
    }

    /// Calls that the tables of [`Abi::arch`] lack, by name, with numbers without the x32 bit.
    const fn own_calls(self) -> &'static [(&'static str, u32)] {
        match self {
            Abi::X32 => &OWN_X32,
            Abi::Arm => &PRIVATE_ARM,
            Abi::X86_64 | Abi::I386 | Abi::Aarch64 => &[],
        }
    }

    const fn with_bit(self, nr: u32) -> u32 {
        match self {
            Abi::X32 => nr | X32_BIT,
            _ => nr,
        }
    }

    /// Whether arguments have 64 bits. For 32-bit entries the kernel uses only the lower halves of
    /// registers. Filters see the upper halves, too, which a 64-bit program may have set before
    /// `int $0x80`; they must be ignored. x32 calls pass whole registers.
    pub const fn has_wide_args(self) -> bool {
        matches!(self, Abi::X86_64 | Abi::X32 | Abi::Aarch64)
    }

    /// Whether the kernel gets whole registers from a program whose `long` has 32 bits. Conditions
    /// are then evaluated on both the whole value and its lower half, and the stricter answer
    /// counts.
    pub const fn may_truncate(self) -> bool {
        matches!(self, Abi::X32)
    }

    /// The name in OCI profiles.
    pub const fn oci_name(self) -> &'static str {
        match self {
            Abi::X86_64 => "SCMP_ARCH_X86_64",
            Abi::X32 => "SCMP_ARCH_X32",
            Abi::I386 => "SCMP_ARCH_X86",
            Abi::Aarch64 => "SCMP_ARCH_AARCH64",
            Abi::Arm => "SCMP_ARCH_ARM",
        }
    }

    /// The name in `includes.arches` of OCI profiles, which is Go's name.
    pub const fn go_name(self) -> &'static str {
        match self {
            Abi::X86_64 => "amd64",
            Abi::X32 => "x32",
            Abi::I386 => "x86",
            Abi::Aarch64 => "arm64",
            Abi::Arm => "arm",
        }
    }

    /// The name in `SystemCallArchitectures=` (systemd.exec(5)).
    pub const fn systemd_name(self) -> &'static str {
        match self {
            Abi::X86_64 => "x86-64",
            Abi::X32 => "x32",
            Abi::I386 => "x86",
            Abi::Aarch64 => "arm64",
            Abi::Arm => "arm",
        }
    }

    /// An ABI by any of the names above, or `uname -m`'s.
    pub fn from_name(name: &str) -> Option<Abi> {
        let known = Abi::EVERY
            .into_iter()
            .find(|abi| [abi.oci_name(), abi.go_name(), abi.systemd_name()].contains(&name));
        known.or(match name {
            "x86_64" => Some(Abi::X86_64),
            "i386" | "i686" => Some(Abi::I386),
            "aarch64" => Some(Abi::Aarch64),
            _ => None,
        })
    }

    /// The ABI that this program was compiled for; x86-64 if it has no tables here.
    pub const fn native() -> Abi {
        match Arch::native() {
            Arch::X86_64 => Abi::X86_64,
            Arch::I386 => Abi::I386,
            Arch::Aarch64 => Abi::Aarch64,
            Arch::Arm => Abi::Arm,
        }
    }

    /// This ABI and the others that the same kernel serves.
    pub fn family(self) -> &'static [Abi] {
        match self {
            Abi::X86_64 | Abi::X32 => &[Abi::X86_64, Abi::X32, Abi::I386],
            Abi::I386 => &[Abi::I386],
            Abi::Aarch64 => &[Abi::Aarch64, Abi::Arm],
            Abi::Arm => &[Abi::Arm],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_of_every_abi_agree() {
        for abi in Abi::EVERY {
            let mut count = 0;
            for (nr, name) in abi.calls() {
                assert_eq!(abi.number(name), Some(nr), "{name} {abi:?}");
                assert_eq!(Abi::of(abi.audit_arch(), nr), Some(abi));
                count += 1;
            }
            assert!(count > 300, "{abi:?}: {count}");
        }
    }

    #[test]
    fn x32_has_its_own_numbers() {
        assert_eq!(Abi::X32.number("read"), Some(X32_BIT));
        assert_eq!(Abi::X32.number("execve"), Some(X32_BIT | 520));
        assert_eq!(Abi::X32.number("uselib"), None);
        assert_eq!(Abi::X32.name_of(X32_BIT | 59), None);
        assert_eq!(Abi::of(0xc000_003e, u32::MAX), None);
    }

    #[test]
    fn names_are_the_kernels() {
        assert_eq!(Abi::X86_64.name_of(17), Some("pread64"));
        assert_eq!(Abi::I386.name_of(283), Some("kexec_load"));
        assert_eq!(Abi::Aarch64.name_of(80), Some("fstat"));
    }
}
