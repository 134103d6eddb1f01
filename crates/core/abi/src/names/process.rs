//! Processes, memory and signals, as the headers of Linux name them.
//! A table `LATER_…` has what audit 4.0.2 knows and 3.0.9 does not.

use super::Names;

/// Signals.
#[rustfmt::skip]
pub static SIGNALS: Names = &[
    (0, "SIG0"), (1, "SIGHUP"), (2, "SIGINT"), (3, "SIGQUIT"), (4, "SIGILL"), (5, "SIGTRAP"),
    (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"), (9, "SIGKILL"), (10, "SIGUSR1"), (11, "SIGSEGV"),
    (12, "SIGUSR2"), (13, "SIGPIPE"), (14, "SIGALRM"), (15, "SIGTERM"), (16, "SIGSTKFLT"),
    (17, "SIGCHLD"), (18, "SIGCONT"), (19, "SIGSTOP"), (20, "SIGTSTP"), (21, "SIGTTIN"),
    (22, "SIGTTOU"), (23, "SIGURG"), (24, "SIGXCPU"), (25, "SIGXFSZ"), (26, "SIGVTALRM"),
    (27, "SIGPROF"), (28, "SIGWINCH"), (29, "SIGIO"), (30, "SIGPWR"), (31, "SIGSYS"),
];

/// Capabilities of capabilities(7).
#[rustfmt::skip]
pub static CAPABILITIES: Names = &[
    (0, "chown"), (1, "dac_override"), (2, "dac_read_search"), (3, "fowner"), (4, "fsetid"),
    (5, "kill"), (6, "setgid"), (7, "setuid"), (8, "setpcap"), (9, "linux_immutable"),
    (10, "net_bind_service"), (11, "net_broadcast"), (12, "net_admin"), (13, "net_raw"),
    (14, "ipc_lock"), (15, "ipc_owner"), (16, "sys_module"), (17, "sys_rawio"), (18, "sys_chroot"),
    (19, "sys_ptrace"), (20, "sys_pacct"), (21, "sys_admin"), (22, "sys_boot"), (23, "sys_nice"),
    (24, "sys_resource"), (25, "sys_time"), (26, "sys_tty_config"), (27, "mknod"), (28, "lease"),
    (29, "audit_write"), (30, "audit_control"), (31, "setfcap"), (32, "mac_override"),
    (33, "mac_admin"), (34, "syslog"), (35, "wake_alarm"), (36, "block_suspend"),
    (37, "audit_read"), (38, "perfmon"), (39, "bpf"), (40, "checkpoint_restore"),
];

/// Flags of clone(2), unshare(2) and setns(2).
#[rustfmt::skip]
pub static CLONE_FLAGS: Names = &[
    (0x100, "CLONE_VM"), (0x200, "CLONE_FS"), (0x400, "CLONE_FILES"), (0x800, "CLONE_SIGHAND"),
    (0x2000, "CLONE_PTRACE"), (0x4000, "CLONE_VFORK"), (0x8000, "CLONE_PARENT"),
    (0x10000, "CLONE_THREAD"), (0x20000, "CLONE_NEWNS"), (0x40000, "CLONE_SYSVSEM"),
    (0x80000, "CLONE_SETTLS"), (0x100000, "CLONE_PARENT_SETTID"),
    (0x200000, "CLONE_CHILD_CLEARTID"), (0x400000, "CLONE_DETACHED"), (0x800000, "CLONE_UNTRACED"),
    (0x1000000, "CLONE_CHILD_SETTID"), (0x2000000, "CLONE_STOPPED"), (0x4000000, "CLONE_NEWUTS"),
    (0x8000000, "CLONE_NEWIPC"), (0x10000000, "CLONE_NEWUSER"), (0x20000000, "CLONE_NEWPID"),
    (0x40000000, "CLONE_NEWNET"), (0x80000000, "CLONE_IO"), (0x0, "CLONE_CLEAR_SIGHAND"),
];

/// Flags of mmap(2).
#[rustfmt::skip]
pub static MMAP_FLAGS: Names = &[
    (0x1, "MAP_SHARED"), (0x2, "MAP_PRIVATE"), (0x10, "MAP_FIXED"), (0x20, "MAP_ANONYMOUS"),
    (0x40, "MAP_32BIT"), (0x100, "MAP_GROWSDOWN"), (0x800, "MAP_DENYWRITE"),
    (0x1000, "MAP_EXECUTABLE"), (0x2000, "MAP_LOCKED"), (0x4000, "MAP_NORESERVE"),
    (0x8000, "MAP_POPULATE"), (0x10000, "MAP_NONBLOCK"), (0x20000, "MAP_STACK"),
    (0x40000, "MAP_HUGETLB"), (0x80000, "MAP_SYNC"), (0x100000, "MAP_FIXED_NOREPLACE"),
    (0x4000000, "MAP_UNINITIALIZED"),
];

/// Protection flags of mmap(2) that audit names.
#[rustfmt::skip]
pub static PROTECTIONS: Names = &[
    (1, "PROT_READ"), (2, "PROT_WRITE"), (4, "PROT_EXEC"), (8, "PROT_SEM"),
];

/// Execution domains of personality(2).
#[rustfmt::skip]
pub static PERSONALITIES: Names = &[
    (0x0, "PER_LINUX"), (0x800000, "PER_LINUX_32BIT"), (0x4100001, "PER_SVR4"),
    (0x5000002, "PER_SVR3"), (0x7000003, "PER_SCOSVR3"), (0x6000003, "PER_OSR5"),
    (0x5000004, "PER_WYSEV386"), (0x4000005, "PER_ISCR4"), (0x6, "PER_BSD"),
    (0x4000006, "PER_SUNOS"), (0x5000007, "PER_XENIX"), (0x8, "PER_LINUX32"),
    (0x8000008, "PER_LINUX32_3GB"), (0x4000009, "PER_IRIX32"), (0x400000a, "PER_IRIXN32"),
    (0x400000b, "PER_IRIX64"), (0xc, "PER_RISCOS"), (0x400000d, "PER_SOLARIS"),
    (0x410000e, "PER_UW7"), (0xf, "PER_OSF4"), (0x10, "PER_HPUX"),
];

/// Operations of prctl(2).
#[rustfmt::skip]
pub static PRCTL_OPTIONS: Names = &[
    (1, "PR_SET_PDEATHSIG"), (2, "PR_GET_PDEATHSIG"), (3, "PR_GET_DUMPABLE"),
    (4, "PR_SET_DUMPABLE"), (5, "PR_GET_UNALIGN"), (6, "PR_SET_UNALIGN"), (7, "PR_GET_KEEPCAPS"),
    (8, "PR_SET_KEEPCAPS"), (9, "PR_GET_FPEMU"), (10, "PR_SET_FPEMU"), (11, "PR_GET_FPEXC"),
    (12, "PR_SET_FPEXC"), (13, "PR_GET_TIMING"), (14, "PR_SET_TIMING"), (15, "PR_SET_NAME"),
    (16, "PR_GET_NAME"), (19, "PR_GET_ENDIAN"), (20, "PR_SET_ENDIAN"), (21, "PR_GET_SECCOMP"),
    (22, "PR_SET_SECCOMP"), (23, "PR_CAPBSET_READ"), (24, "PR_CAPBSET_DROP"), (25, "PR_GET_TSC"),
    (26, "PR_SET_TSC"), (27, "PR_GET_SECUREBITS"), (28, "PR_SET_SECUREBITS"),
    (29, "PR_SET_TIMERSLACK"), (30, "PR_GET_TIMERSLACK"), (31, "PR_TASK_PERF_EVENTS_DISABLE"),
    (32, "PR_TASK_PERF_EVENTS_ENABLE"), (33, "PR_MCE_KILL"), (34, "PR_MCE_KILL_GET"),
    (35, "PR_SET_MM"), (36, "PR_SET_CHILD_SUBREAPER"), (37, "PR_GET_CHILD_SUBREAPER"),
    (38, "PR_SET_NO_NEW_PRIVS"), (39, "PR_GET_NO_NEW_PRIVS"), (40, "PR_GET_TID_ADDRESS"),
    (41, "PR_SET_THP_DISABLE"), (42, "PR_GET_THP_DISABLE"), (43, "PR_MPX_ENABLE_MANAGEMENT"),
    (44, "PR_MPX_DISABLE_MANAGEMENT"), (45, "PR_SET_FP_MODE"), (46, "PR_GET_FP_MODE"),
    (47, "PR_CAP_AMBIENT"), (50, "PR_SVE_SET_VL"), (51, "PR_SVE_GET_VL"),
    (52, "PR_GET_SPECULATION_CTRL"), (53, "PR_SET_SPECULATION_CTRL"), (54, "PR_PAC_RESET_KEYS"),
    (55, "PR_SET_TAGGED_ADDR_CTRL"), (56, "PR_GET_TAGGED_ADDR_CTRL"),
];

/// More of [`PRCTL_OPTIONS`].
#[rustfmt::skip]
pub static LATER_PRCTL_OPTIONS: Names = &[
    (57, "PR_SET_IO_FLUSHER"), (58, "PR_GET_IO_FLUSHER"), (59, "PR_SET_SYSCALL_USER_DISPATCH"),
    (60, "PR_PAC_SET_ENABLED_KEYS"), (61, "PR_PAC_GET_ENABLED_KEYS"), (62, "PR_SCHED_CORE"),
    (63, "PR_SME_SET_VL"), (64, "PR_SME_GET_VL"), (65, "PR_SET_MDWE"), (66, "PR_GET_MDWE"),
    (67, "PR_SET_MEMORY_MERGE"), (68, "PR_GET_MEMORY_MERGE"), (69, "PR_RISCV_V_SET_CONTROL"),
    (70, "PR_RISCV_V_GET_CONTROL"),
];

/// Requests of ptrace(2).
#[rustfmt::skip]
pub static PTRACE_REQUESTS: Names = &[
    (0, "PTRACE_TRACEME"), (1, "PTRACE_PEEKTEXT"), (2, "PTRACE_PEEKDATA"), (3, "PTRACE_PEEKUSER"),
    (4, "PTRACE_POKETEXT"), (5, "PTRACE_POKEDATA"), (6, "PTRACE_POKEUSER"), (7, "PTRACE_CONT"),
    (8, "PTRACE_KILL"), (9, "PTRACE_SINGLESTEP"), (12, "PTRACE_GETREGS"), (13, "PTRACE_SETREGS"),
    (14, "PTRACE_GETFPREGS"), (15, "PTRACE_SETFPREGS"), (16, "PTRACE_ATTACH"),
    (17, "PTRACE_DETACH"), (18, "PTRACE_GETFPXREGS"), (19, "PTRACE_SETFPXREGS"),
    (24, "PTRACE_SYSCALL"), (25, "PTRACE_GET_THREAD_AREA"), (26, "PTRACE_SET_THREAD_AREA"),
    (30, "PTRACE_ARCH_PRCTL"), (31, "PTRACE_SYSEMU"), (32, "PTRACE_SYSEMU_SINGLESTEP"),
    (33, "PTRACE_SINGLEBLOCK"), (16896, "PTRACE_SETOPTIONS"), (16897, "PTRACE_GETEVENTMSG"),
    (16898, "PTRACE_GETSIGINFO"), (16899, "PTRACE_SETSIGINFO"), (16900, "PTRACE_GETREGSET"),
    (16901, "PTRACE_SETREGSET"), (16902, "PTRACE_SEIZE"), (16903, "PTRACE_INTERRUPT"),
    (16904, "PTRACE_LISTEN"), (16905, "PTRACE_PEEKSIGINFO"), (16906, "PTRACE_GETSIGMASK"),
    (16907, "PTRACE_SETSIGMASK"), (16908, "PTRACE_SECCOMP_GET_FILTER"),
    (16909, "PTRACE_SECCOMP_GET_METADATA"), (16910, "PTRACE_GET_SYSCALL_INFO"),
];

/// More of [`PTRACE_REQUESTS`].
#[rustfmt::skip]
pub static LATER_PTRACE_REQUESTS: Names = &[
    (16911, "PTRACE_GET_RSEQ_CONFIGURATION"), (16912, "PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG"),
    (16913, "PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG"),
];

/// Resources of getrlimit(2).
#[rustfmt::skip]
pub static RLIMITS: Names = &[
    (0, "RLIMIT_CPU"), (1, "RLIMIT_FSIZE"), (2, "RLIMIT_DATA"), (3, "RLIMIT_STACK"),
    (4, "RLIMIT_CORE"), (5, "RLIMIT_RSS"), (6, "RLIMIT_NPROC"), (7, "RLIMIT_NOFILE"),
    (8, "RLIMIT_MEMLOCK"), (9, "RLIMIT_AS"), (10, "RLIMIT_LOCKS"), (11, "RLIMIT_SIGPENDING"),
    (12, "RLIMIT_MSGQUEUE"), (13, "RLIMIT_NICE"), (14, "RLIMIT_RTPRIO"), (15, "RLIMIT_RTTIME"),
];

/// Policies of sched_setscheduler(2).
#[rustfmt::skip]
pub static SCHED_POLICIES: Names = &[
    (0, "SCHED_OTHER"), (1, "SCHED_FIFO"), (2, "SCHED_RR"), (3, "SCHED_BATCH"), (5, "SCHED_IDLE"),
    (6, "SCHED_DEADLINE"),
];

/// Clocks of clock_settime(2).
#[rustfmt::skip]
pub static CLOCKS: Names = &[
    (0, "CLOCK_REALTIME"), (1, "CLOCK_MONOTONIC"), (2, "CLOCK_PROCESS_CPUTIME_ID"),
    (3, "CLOCK_THREAD_CPUTIME_ID"), (4, "CLOCK_MONOTONIC_RAW"), (5, "CLOCK_REALTIME_COARSE"),
    (6, "CLOCK_MONOTONIC_COARSE"), (7, "CLOCK_BOOTTIME"), (8, "CLOCK_REALTIME_ALARM"),
    (9, "CLOCK_BOOTTIME_ALARM"), (10, "CLOCK_SGI_CYCLE"), (11, "CLOCK_TAI"),
];

/// Actions of seccomp(2), by `SECCOMP_RET_ACTION`.
#[rustfmt::skip]
pub static SECCOMP_ACTIONS: Names = &[
    (0x80000000, "kill-process"), (0x0, "kill"), (0x30000, "trap"), (0x50000, "errno"),
    (0x7fc00000, "user-notify"), (0x7ff00000, "trace"), (0x7ffc0000, "log"), (0x7fff0000, "allow"),
];

/// Commands of bpf(2).
#[rustfmt::skip]
pub static BPF_COMMANDS: Names = &[
    (0, "BPF_MAP_CREATE"), (1, "BPF_MAP_LOOKUP_ELEM"), (2, "BPF_MAP_UPDATE_ELEM"),
    (3, "BPF_MAP_DELETE_ELEM"), (4, "BPF_MAP_GET_NEXT_KEY"), (5, "BPF_PROG_LOAD"),
    (6, "BPF_OBJ_PIN"), (7, "BPF_OBJ_GET"), (8, "BPF_PROG_ATTACH"), (9, "BPF_PROG_DETACH"),
    (10, "BPF_PROG_TEST_RUN"), (11, "BPF_PROG_GET_NEXT_ID"), (12, "BPF_MAP_GET_NEXT_ID"),
    (13, "BPF_PROG_GET_FD_BY_ID"), (14, "BPF_MAP_GET_FD_BY_ID"), (15, "BPF_OBJ_GET_INFO_BY_FD"),
    (16, "BPF_PROG_QUERY"), (17, "BPF_RAW_TRACEPOINT_OPEN"), (18, "BPF_BTF_LOAD"),
    (19, "BPF_BTF_GET_FD_BY_ID"), (20, "BPF_TASK_FD_QUERY"), (21, "BPF_MAP_LOOKUP_AND_DELETE_ELEM"),
    (22, "BPF_MAP_FREEZE"), (23, "BPF_BTF_GET_NEXT_ID"),
];

/// More of [`BPF_COMMANDS`].
#[rustfmt::skip]
pub static LATER_BPF_COMMANDS: Names = &[
    (24, "BPF_MAP_LOOKUP_BATCH"), (25, "BPF_MAP_LOOKUP_AND_DELETE_BATCH"),
    (26, "BPF_MAP_UPDATE_BATCH"), (27, "BPF_MAP_DELETE_BATCH"), (28, "BPF_LINK_CREATE"),
    (29, "BPF_LINK_UPDATE"), (30, "BPF_LINK_GET_FD_BY_ID"), (31, "BPF_LINK_GET_NEXT_ID"),
    (32, "BPF_ENABLE_STATS"), (33, "BPF_ITER_CREATE"), (34, "BPF_LINK_DETACH"),
    (35, "BPF_PROG_BIND_MAP"),
];

/// Calls behind ipc(2).
#[rustfmt::skip]
pub static IPC_CALLS: Names = &[
    (1, "semop"), (2, "semget"), (3, "semctl"), (4, "semtimedop"), (11, "msgsnd"), (12, "msgrcv"),
    (13, "msgget"), (14, "msgctl"), (21, "shmat"), (22, "shmdt"), (23, "shmget"), (24, "shmctl"),
];
