//! Calls that a profile allows although no program was seen to make them.

/// Calls that the vDSO answers without the kernel where it can. A profile learnt there must allow
/// them, or it fails where the clock source is another one.
const VDSO: [&str; 6] = [
    "clock_getres",
    "clock_gettime",
    "clock_gettime64",
    "getcpu",
    "gettimeofday",
    "time",
];

/// Calls that runc 1.1 and crun 1.8 make after they have installed a container's filter, until its
/// program begins.
const RUNTIME: [&str; 54] = [
    "brk",
    "capget",
    "capset",
    "chdir",
    "clock_nanosleep",
    "clone",
    "close",
    "close_range",
    "dup3",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "eventfd2",
    "execve",
    "exit",
    "exit_group",
    "faccessat2",
    "fchdir",
    "fchown",
    "fcntl",
    "fstat",
    "fstatfs",
    "futex",
    "getcwd",
    "getdents64",
    "getegid",
    "geteuid",
    "getgid",
    "getpid",
    "getppid",
    "gettid",
    "getuid",
    "madvise",
    "mmap",
    "munmap",
    "nanosleep",
    "newfstatat",
    "openat",
    "prctl",
    "read",
    "readlinkat",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sched_yield",
    "setgid",
    "setgroups",
    "setresgid",
    "setresuid",
    "setuid",
    "sigaltstack",
    "statx",
    "tgkill",
    "write",
];

/// Why calls are allowed that the program was not seen to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// The vDSO may answer them.
    Vdso,
    /// The container's runtime makes them.
    Runtime,
}

impl Extra {
    /// The reason, as a comment of a profile.
    pub const fn comment(self) -> &'static str {
        match self {
            Extra::Vdso => "the vDSO answers them where it can",
            Extra::Runtime => "runc and crun make them before the program starts",
        }
    }

    /// The calls, by name.
    pub const fn calls(self) -> &'static [&'static str] {
        match self {
            Extra::Vdso => &VDSO,
            Extra::Runtime => &RUNTIME,
        }
    }
}
