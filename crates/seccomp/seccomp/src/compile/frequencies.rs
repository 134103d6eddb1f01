//! Frequencies of system calls.

use crate::policy::Abi;
use std::collections::HashMap;

/// Relative frequencies of system calls, by kernel name. Calls that are missing count as never
/// made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frequencies {
    by_name: HashMap<String, f64>,
}

/// Calls per million in an ordinary mixture of programs.
///
/// Source: `tarsier seccomp learn --counts` on Linux 6.18, Debian 12, x86-64; the mean of the shares
/// in nine runs: `python3 -m compileall` of a package, `git log -p` and `git status` of this
/// repository, `find /usr`, `tar | gzip` of /usr/share/doc and /usr/share/perl5, a shell loop of ls,
/// cat, grep and date, `apt-cache search`, `perl -V`, gcc of a small program, a Python HTTP server
/// that answers 100 requests of its own client. Calls below 20 per million are left out.
#[rustfmt::skip]
const DEFAULT: &[(&str, u32)] = &[
    ("newfstatat", 183082), ("read", 144795), ("openat", 118145), ("close", 114417),
    ("mmap", 72614), ("fcntl", 46953), ("lseek", 37282), ("rt_sigaction", 37216), ("write", 30457),
    ("getdents64", 25792), ("readlink", 18902), ("munmap", 18343), ("rt_sigprocmask", 15842),
    ("brk", 13992), ("mprotect", 10357), ("ioctl", 8094), ("futex", 7609), ("execve", 7090),
    ("access", 6613), ("pread64", 4795), ("getxattr", 4513), ("set_robust_list", 4317),
    ("wait4", 3714), ("geteuid", 3416), ("prlimit64", 3327), ("dup2", 3296), ("rseq", 3157),
    ("getuid", 2955), ("getgid", 2955), ("getegid", 2873), ("exit_group", 2435),
    ("getrandom", 2433), ("set_tid_address", 2397), ("arch_prctl", 2397), ("gettid", 2317),
    ("statx", 2257), ("sendto", 2257), ("lgetxattr", 2257), ("getpid", 2062),
    ("rt_sigreturn", 1791), ("recvfrom", 1550), ("socket", 1426), ("connect", 1419),
    ("getppid", 1287), ("getcwd", 1234), ("clone", 1160), ("pipe2", 898), ("vfork", 892),
    ("setsockopt", 760), ("poll", 760), ("getsockname", 760), ("clone3", 760), ("shutdown", 752),
    ("madvise", 752), ("exit", 752), ("accept4", 752), ("prctl", 641), ("statfs", 512),
    ("sysinfo", 493), ("mremap", 325), ("uname", 309), ("getpgrp", 301), ("fadvise64", 274),
    ("faccessat2", 258), ("copy_file_range", 226), ("unlink", 193), ("splice", 161),
    ("sigaltstack", 161), ("umask", 154), ("chdir", 154), ("readlinkat", 135), ("getrusage", 73),
    ("rename", 56), ("mkdir", 56), ("chmod", 36), ("mkdirat", 23),
];

impl Frequencies {
    /// The built-in table.
    pub fn usual() -> Frequencies {
        DEFAULT
            .iter()
            .map(|&(name, count)| (name, u64::from(count)))
            .collect()
    }

    /// The weight of call `nr` of `abi`; `nr` includes the x32 bit where it applies.
    pub fn of(&self, abi: Abi, nr: u32) -> f64 {
        let name = abi.name_of(nr);
        name.and_then(|name| self.by_name.get(name))
            .copied()
            .unwrap_or(0.0)
    }
}

/// Counts of calls by kernel name; counts of the same name are added.
impl<S: Into<String>> FromIterator<(S, u64)> for Frequencies {
    fn from_iter<I: IntoIterator<Item = (S, u64)>>(counts: I) -> Frequencies {
        let mut by_name = HashMap::new();
        for (name, count) in counts {
            *by_name.entry(name.into()).or_insert(0.0) += count as f64;
        }
        Frequencies { by_name }
    }
}
