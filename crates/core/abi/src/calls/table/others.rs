//! Calls of which nothing else is known: they name no object, no rule of the kernel is about them, and there is no word
//! for them. A new call stands here once somebody has looked at it.

use super::plain;
use crate::calls::row::CallRow;

#[rustfmt::skip]
pub(super) const ROWS: &[CallRow] = &plain([
    "_llseek", "_newselect", "_sysctl", "afs_syscall", "alarm", "arch_prctl", "bdflush", "break", "cachestat",
    "capget", "clock_getres", "clock_getres_time64", "clock_gettime", "clock_gettime64", "clock_nanosleep",
    "clock_nanosleep_time64", "close_range", "copy_file_range", "create_module", "dup", "dup2", "dup3",
    "epoll_create", "epoll_create1", "epoll_ctl_old", "epoll_wait_old", "eventfd", "eventfd2", "fadvise64_64",
    "fanotify_init", "fcntl", "fcntl64", "flock", "ftime", "futex", "futex_requeue", "futex_time64",
    "get_kernel_syms", "get_mempolicy", "get_robust_list", "get_thread_area", "getcpu", "getcwd", "getegid",
    "getegid32", "geteuid", "geteuid32", "getgid", "getgid32", "getgroups", "getgroups32", "getitimer", "getpgid",
    "getpgrp", "getpid", "getpmsg", "getppid", "getpriority", "getrandom", "getresgid", "getresgid32", "getresuid",
    "getresuid32", "getrlimit", "getrusage", "getsid", "gettid", "gettimeofday", "getuid", "getuid32", "gtty",
    "idle", "inotify_init", "inotify_init1", "inotify_rm_watch", "io_cancel", "io_destroy", "io_getevents",
    "io_pgetevents", "io_pgetevents_time64", "io_setup", "io_submit", "io_uring_enter", "io_uring_setup", "ioperm",
    "iopl", "ioprio_get", "ioprio_set", "kcmp", "listmount", "listns", "llseek", "lock", "lookup_dcookie", "lseek",
    "lsm_get_self_attr", "lsm_list_modules", "mbind", "membarrier", "migrate_pages", "mincore", "mlock", "mlock2",
    "mlockall", "mmap2", "modify_ldt", "move_pages", "mprotect", "mpx", "mremap", "msync", "munlock", "munlockall",
    "munmap", "nanosleep", "newselect", "nfsservctl", "nice", "oldolduname", "olduname", "pause", "pciconfig_iobase",
    "pciconfig_read", "pciconfig_write", "perf_event_open", "personality", "pidfd_open", "pkey_alloc", "pkey_free",
    "pkey_mprotect", "poll", "ppoll", "ppoll_time64", "prctl", "pread64", "process_madvise", "process_mrelease",
    "prof", "profil", "pselect6", "pselect6_time64", "putpmsg", "pwrite64", "query_module", "readahead", "readdir",
    "reboot", "remap_file_pages", "restart_syscall", "rseq", "rseq_slice_yield", "rt_sigaction", "rt_sigpending",
    "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_sigtimedwait_time64",
    "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_rr_get_interval64", "sched_setaffinity", "sched_yield",
    "seccomp", "security", "select", "sendfile", "sendfile64", "set_mempolicy", "set_mempolicy_home_node",
    "set_robust_list", "set_thread_area", "set_tid_address", "setitimer", "setns", "setpgid", "setpriority",
    "setsid", "sgetmask", "shmdt", "sigaction", "sigaltstack", "signal", "signalfd", "signalfd4", "sigpending",
    "sigprocmask", "sigreturn", "sigsuspend", "ssetmask", "stty", "sync", "syncfs", "syscall", "sysctl", "sysinfo",
    "syslog", "time", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_gettime64",
    "timer_settime", "timer_settime64", "timerfd_create", "timerfd_gettime", "timerfd_gettime64", "timerfd_settime",
    "timerfd_settime64", "times", "tuxcall", "ugetrlimit", "ulimit", "umask", "uname", "unshare", "uprobe",
    "uretprobe", "userfaultfd", "ustat", "vhangup", "vm86", "vm86old", "vmsplice", "vserver", "wait4", "waitpid",
]);
