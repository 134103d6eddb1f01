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

/// Calls that do nothing but what the program's other calls began, and that one run makes and the
/// next does not: a lock that is taken or free (futex, sched_yield), a signal or a stop that comes
/// while it sleeps (rt_sigreturn, restart_syscall), the thread that ends last (exit, exit_group).
const TIMING: [&str; 7] = [
    "exit",
    "exit_group",
    "futex",
    "restart_syscall",
    "rt_sigreturn",
    "sched_yield",
    "sigreturn",
];

/// Calls that runc 1.1 and crun 1.8 make after they have installed a container's filter, until its
/// program begins: in `run`, `exec`, and between `create` and `start`, where crun waits by select(2).
const RUNTIME: [&str; 56] = [
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
    "pselect6",
    "read",
    "readlinkat",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sched_yield",
    "select",
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
    /// Whether a run makes them depends on timing.
    Timing,
    /// The container's runtime makes them.
    Runtime,
}

impl Extra {
    /// The reason, as a comment of a profile.
    pub const fn comment(self) -> &'static str {
        match self {
            Extra::Vdso => "the vDSO answers them where it can",
            Extra::Timing => "whether a run makes them depends on timing",
            Extra::Runtime => "runc and crun make them before the program starts",
        }
    }

    /// The calls, by name.
    pub const fn calls(self) -> &'static [&'static str] {
        match self {
            Extra::Vdso => &VDSO,
            Extra::Timing => &TIMING,
            Extra::Runtime => &RUNTIME,
        }
    }
}
