# The system calls of a confined daemon, as a list of `tarsier seccomp`. Written by review of the code, then corrected by
# what daemons of the system tests were refused: each group says what needs it. What is not here is answered with EPERM
# and recorded.
# tests.rs says what must stay out: programs, other processes' memory, mounts, modules, the network.

# Memory. Nothing is made executable: libraries were loaded before.
allow brk munmap mremap madvise
allow mmap a2&0x4==0
allow mprotect a2&0x4==0

# Keys of seals are locked in memory.
allow mlock munlock

# Threads that sync, compress, and attach and detach hooks, but no processes. clone3 has its flags in memory, where a
# filter cannot see them; quiet.profile has glibc take clone.
allow clone a0&0x10000==0x10000
allow clone3
allow exit exit_group futex gettid rseq set_robust_list set_tid_address sigaltstack membarrier
# PR_SET_NAME, and PR_GET_NAME: names of threads.
allow prctl a0==15
allow prctl a0==16
# Threads are put first on their processor while events come fast.
allow getpriority setpriority sched_getaffinity sched_setaffinity sched_setscheduler sched_getscheduler sched_yield
# Stack limits of new threads; no limit is changed.
allow prlimit64 a2==0
allow getrlimit

# Signals: those that a manager sends, a panic's own, and those that end plugins and helpers.
allow rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait restart_syscall tgkill kill pidfd_open
allow pidfd_send_signal wait4 waitid

# Time and facts about this process and the machine.
allow clock_gettime clock_getres gettimeofday time nanosleep clock_nanosleep
allow getpid getppid getuid geteuid getgid getegid getgroups getrusage sysinfo uname getrandom getcpu getcwd

# Waiting.
allow poll ppoll eventfd2 epoll_create1 epoll_ctl epoll_wait epoll_pwait

# The log and its rotation, the run directory, /proc, /sys, configuration and rules. Landlock says where.
allow open openat openat2 close close_range dup fcntl flock
allow read readv pread64 write writev pwrite64 lseek
allow stat lstat fstat newfstatat statx statfs fstatfs getdents64 readlink readlinkat access faccessat faccessat2
allow fsync fdatasync sync_file_range ftruncate fallocate copy_file_range sendfile
allow rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir umask
allow chmod fchmod fchmodat chown fchown fchownat
# Cgroups are opened by their ids.
allow name_to_handle_at open_by_handle_at
# FIONBIO, FIOCLEX, TCGETS (whether it is a terminal), TIOCGWINSZ (how wide, for messages about rules).
allow ioctl a1==0x5421
allow ioctl a1==0x5451
allow ioctl a1==0x5401
allow ioctl a1==0x5413

# Hooks: BPF programs, maps and links, and perf events that they hang on.
allow bpf perf_event_open
# libbpf keeps the places of descriptors with memory files (MFD_CLOEXEC, and MFD_NOEXEC_SEAL since Linux 6.3).
allow memfd_create a1==1
allow memfd_create a1==9
allow dup3
# PERF_EVENT_IOC_ENABLE, _DISABLE, _SET_BPF.
allow ioctl a1==0x2400
allow ioctl a1==0x2401
allow ioctl a1==0x40042408
# The canary, a call whose record shows that the hooks are in force.
allow sched_rr_get_interval

# Sockets: control, plugins, metrics, syslog, the service manager, the spawner (AF_UNIX), and the kernel's audit
# (AF_NETLINK, NETLINK_AUDIT).
allow socket a0==1
allow socket a0==16 a2==9
allow socketpair a0==1
allow bind listen accept accept4 connect shutdown getsockname getpeername getsockopt setsockopt
allow sendto sendmsg recvfrom recvmsg pipe2

# auditctl's -f 2, if the kernel does not panic on request: LINUX_REBOOT_CMD_HALT.
allow reboot a2&0xffffffff==0xcdef0123
