//! Names of the kernel functions that implement system calls.

use crate::Arch;

/// Names that the kernel function of a call may have after the prefix `sys_` or `compat_sys_`: mostly
/// the name of the call itself, and more than one if kernels differ. For a 32-bit call, it is the
/// function that a 64-bit kernel runs.
///
/// From arch/x86/entry/syscalls/syscall_{32,64}.tbl, include/uapi/asm-generic/unistd.h and
/// arch/arm64/tools/syscall_32.tbl of Linux. `name` is that of [`crate::syscall_name`].
pub fn entry_points(arch: Arch, name: &str) -> Vec<&str> {
    let named = exceptions(arch).filter(|(call, _)| *call == name);
    let functions: Vec<&str> = named.map(|(_, function)| *function).collect();
    if functions.is_empty() {
        vec![name]
    } else {
        functions
    }
}

/// Pairs of a call and its function, for calls whose function has another name.
fn exceptions(arch: Arch) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let (shared, own): (&[_], _) = match arch {
        Arch::X86_64 => (&[], X86_64),
        Arch::I386 => (BOTH_32, I386),
        Arch::Aarch64 => (&[], AARCH64),
        Arch::Arm => (BOTH_32, ARM),
    };
    shared.iter().chain(own)
}

/// Name of the function that the kernel runs for calls that it does not implement.
pub const NOT_IMPLEMENTED: &str = "ni_syscall";

const X86_64: &[(&str, &str)] = &[
    ("stat", "newstat"),
    ("fstat", "newfstat"),
    ("lstat", "newlstat"),
    ("pread", "pread64"),
    ("pwrite", "pwrite64"),
    ("sendfile", "sendfile64"),
    ("uname", "newuname"),
    ("umount2", "umount"),
    // The functions with these names serve only 32-bit calls.
    ("uselib", NOT_IMPLEMENTED),
    ("_sysctl", NOT_IMPLEMENTED),
    ("set_thread_area", NOT_IMPLEMENTED),
    ("get_thread_area", NOT_IMPLEMENTED),
];

/// Pairs that both 32-bit tables have.
const BOTH_32: &[(&str, &str)] = &[
    ("lchown", "lchown16"),
    ("setuid", "setuid16"),
    ("getuid", "getuid16"),
    ("setgid", "setgid16"),
    ("getgid", "getgid16"),
    ("geteuid", "geteuid16"),
    ("getegid", "getegid16"),
    ("umount2", "umount"),
    ("setreuid", "setreuid16"),
    ("setregid", "setregid16"),
    ("getgroups", "getgroups16"),
    ("setgroups", "setgroups16"),
    ("fchown", "fchown16"),
    ("stat", "newstat"),
    ("lstat", "newlstat"),
    ("fstat", "newfstat"),
    ("uname", "newuname"),
    ("adjtimex", "adjtimex_time32"),
    ("setfsuid", "setfsuid16"),
    ("setfsgid", "setfsgid16"),
    ("sched_rr_get_interval", "sched_rr_get_interval_time32"),
    ("nanosleep", "nanosleep_time32"),
    ("setresuid", "setresuid16"),
    ("getresuid", "getresuid16"),
    ("setresgid", "setresgid16"),
    ("getresgid", "getresgid16"),
    ("rt_sigtimedwait", "rt_sigtimedwait_time32"),
    ("chown", "chown16"),
    ("ugetrlimit", "getrlimit"),
    ("lchown32", "lchown"),
    ("getuid32", "getuid"),
    ("getgid32", "getgid"),
    ("geteuid32", "geteuid"),
    ("getegid32", "getegid"),
    ("setreuid32", "setreuid"),
    ("setregid32", "setregid"),
    ("getgroups32", "getgroups"),
    ("setgroups32", "setgroups"),
    ("fchown32", "fchown"),
    ("setresuid32", "setresuid"),
    ("getresuid32", "getresuid"),
    ("setresgid32", "setresgid"),
    ("getresgid32", "getresgid"),
    ("chown32", "chown"),
    ("setuid32", "setuid"),
    ("setgid32", "setgid"),
    ("setfsuid32", "setfsuid"),
    ("setfsgid32", "setfsgid"),
    ("futex", "futex_time32"),
    ("io_getevents", "io_getevents_time32"),
    ("timer_settime", "timer_settime32"),
    ("timer_gettime", "timer_gettime32"),
    ("clock_settime", "clock_settime32"),
    ("clock_gettime", "clock_gettime32"),
    ("clock_getres", "clock_getres_time32"),
    ("clock_nanosleep", "clock_nanosleep_time32"),
    ("utimes", "utimes_time32"),
    ("mq_timedsend", "mq_timedsend_time32"),
    ("mq_timedreceive", "mq_timedreceive_time32"),
    ("futimesat", "futimesat_time32"),
    ("pselect6", "pselect6_time32"),
    ("ppoll", "ppoll_time32"),
    ("utimensat", "utimensat_time32"),
    ("timerfd_settime", "timerfd_settime32"),
    ("timerfd_gettime", "timerfd_gettime32"),
    ("recvmmsg", "recvmmsg_time32"),
    ("clock_adjtime", "clock_adjtime32"),
    ("clock_gettime64", "clock_gettime"),
    ("clock_settime64", "clock_settime"),
    ("clock_adjtime64", "clock_adjtime"),
    ("clock_getres_time64", "clock_getres"),
    ("clock_nanosleep_time64", "clock_nanosleep"),
    ("timer_gettime64", "timer_gettime"),
    ("timer_settime64", "timer_settime"),
    ("timerfd_gettime64", "timerfd_gettime"),
    ("timerfd_settime64", "timerfd_settime"),
    ("utimensat_time64", "utimensat"),
    ("mq_timedsend_time64", "mq_timedsend"),
    ("mq_timedreceive_time64", "mq_timedreceive"),
    ("semtimedop_time64", "semtimedop"),
    ("futex_time64", "futex"),
    ("sched_rr_get_interval64", "sched_rr_get_interval"),
];

const I386: &[(&str, &str)] = &[
    ("time", "time32"),
    ("oldstat", "stat"),
    ("umount", "oldumount"),
    ("stime", "stime32"),
    ("oldfstat", "fstat"),
    ("utime", "utime32"),
    ("fcntl", "fcntl64"),
    ("oldolduname", "olduname"),
    ("getrlimit", "old_getrlimit"),
    ("select", "old_select"),
    ("oldlstat", "lstat"),
    ("readdir", "old_readdir"),
    ("mmap", "ia32_mmap"),
    ("olduname", "uname"),
    ("vm86old", NOT_IMPLEMENTED),
    ("clone", "ia32_clone"),
    ("_llseek", "llseek"),
    ("_newselect", "select"),
    ("_sysctl", NOT_IMPLEMENTED),
    ("vm86", NOT_IMPLEMENTED),
    ("pread64", "ia32_pread64"),
    ("pwrite64", "ia32_pwrite64"),
    ("mmap2", "mmap_pgoff"),
    ("truncate64", "ia32_truncate64"),
    ("ftruncate64", "ia32_ftruncate64"),
    ("stat64", "ia32_stat64"),
    ("lstat64", "ia32_lstat64"),
    ("fstat64", "ia32_fstat64"),
    ("readahead", "ia32_readahead"),
    ("fadvise64", "ia32_fadvise64"),
    ("fadvise64_64", "ia32_fadvise64_64"),
    ("sys_kexec_load", "kexec_load"),
    ("fstatat64", "ia32_fstatat64"),
    ("sync_file_range", "ia32_sync_file_range"),
    ("fallocate", "ia32_fallocate"),
    ("io_pgetevents_time64", "io_pgetevents_time64"),
    ("io_pgetevents_time64", "io_pgetevents"),
];

const AARCH64: &[(&str, &str)] = &[
    ("umount2", "umount"),
    ("getdents", "getdents64"),
    ("pread", "pread64"),
    ("pwrite", "pwrite64"),
    ("sendfile", "sendfile64"),
    ("fstat", "newfstat"),
    ("uname", "newuname"),
    ("fadvise64", "fadvise64_64"),
    // arch/arm64/kernel/sys.c
    ("personality", "arm64_personality"),
];

/// Functions that arm64 kernels run for calls of 32-bit programs, by name of the call.
const ARM: &[(&str, &str)] = &[
    ("newselect", "select"),
    ("pread64", "aarch32_pread64"),
    ("pwrite64", "aarch32_pwrite64"),
    ("mmap2", "aarch32_mmap2"),
    ("truncate64", "aarch32_truncate64"),
    ("ftruncate64", "aarch32_ftruncate64"),
    ("readahead", "aarch32_readahead"),
    ("statfs64", "aarch32_statfs64"),
    ("fstatfs64", "aarch32_fstatfs64"),
    ("fadvise64_64", "aarch32_fadvise64_64"),
    ("semctl", "old_semctl"),
    ("msgctl", "old_msgctl"),
    ("shmctl", "old_shmctl"),
    ("semtimedop", "semtimedop_time32"),
    ("sync_file_range", "aarch32_sync_file_range2"),
    ("fallocate", "aarch32_fallocate"),
    // The functions with these names serve other calls.
    ("time", NOT_IMPLEMENTED),
    ("umount", NOT_IMPLEMENTED),
    ("stime", NOT_IMPLEMENTED),
    ("alarm", NOT_IMPLEMENTED),
    ("getrlimit", NOT_IMPLEMENTED),
    ("select", NOT_IMPLEMENTED),
    ("mmap", NOT_IMPLEMENTED),
    ("socketcall", NOT_IMPLEMENTED),
    ("ipc", NOT_IMPLEMENTED),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exception_is_about_a_call_that_there_is() {
        for arch in [Arch::X86_64, Arch::I386, Arch::Aarch64, Arch::Arm] {
            for (name, _) in exceptions(arch) {
                assert!(
                    crate::syscall_number(arch, name).is_some(),
                    "{arch:?} {name}"
                );
            }
        }
        assert_eq!(entry_points(Arch::X86_64, "stat"), ["newstat"]);
        assert_eq!(entry_points(Arch::I386, "mkdir"), ["mkdir"]);
        assert_eq!(entry_points(Arch::Arm, "mmap2"), ["aarch32_mmap2"]);
    }
}
