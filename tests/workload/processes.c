/* SPDX-License-Identifier: Apache-2.0 */
/* Children, threads, programs, credentials, signals, memory, and calls that must fail. */
#include "workload.h"
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define NOBODY 65534
#define THREADS 4
#define THREAD_CALLS 100
#define STACK_BYTES (256 << 10)

/* The first call of a child: learns its ids, and is recorded. */
static void born(struct self *me, const struct self *parent)
{
	struct record *rec;
	long none[6] = { 0 };

	*me = *parent;
	me->ppid = parent->pid;
	rec = begin(me, "b64", "getpid", none, SYS_getpid);
	me->pid = me->tid = raw(SYS_getpid, 0, 0, 0, 0, 0, 0);
	end(rec, me, me->pid);
}

static void reap(struct self *me, long pid)
{
	int status;

	if (pid > 0)
		CALL(wait4, pid, &status, 0, NULL);
}

/* Makes a child by fork, clone or clone3, which runs `body` and exits with status 7. */
static void child(struct self *me, long how, void (*body)(struct self *, const char *),
		  const char *dir)
{
	static struct clone_args args;
	struct self own;
	long pid;

	args = (struct clone_args){ .exit_signal = SIGCHLD };
	if (how == SYS_clone3)
		pid = CALL(clone3, &args, sizeof(args));
	else if (how == SYS_clone)
		pid = CALL(clone, SIGCHLD);
	else
		pid = CALL(fork, 0);
	if (pid == 0) {
		born(&own, me);
		body(&own, dir);
		call_exit(&own, "exit_group", SYS_exit_group, 7);
	}
	reap(me, pid);
}

/*
 * As child(), by vfork. The child runs on this function's stack frame: the call has to be made here, and
 * the function may not return before the child has ended.
 */
static __attribute__((noinline)) void
vfork_child(struct self *me, void (*body)(struct self *, const char *), const char *dir)
{
	static struct self own;
	long none[6] = { 0 };
	struct record *volatile rec = begin(me, "b64", "vfork", none, SYS_vfork);
	volatile long pid = raw(SYS_vfork, 0, 0, 0, 0, 0, 0);

	if (pid == 0) {
		born(&own, me);
		body(&own, dir);
		call_exit(&own, "exit_group", SYS_exit_group, 9);
	}
	end(rec, me, pid);
	reap(me, pid);
}

/* Starts `run(arg)` as a thread; `tid` is its thread id until it has ended, then 0. */
static long spawn(struct self *me, void *stack, void (*run)(void *), void *arg, int *tid)
{
	const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				    CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |
				    CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
	void **top = (void **)((char *)stack + STACK_BYTES) - 2;
	long args[4] = { flags, (long)top, (long)tid, (long)tid };
	struct record *rec = begin(me, "b64", "clone", args, SYS_clone);
	register void *r10 __asm__("r10") = tid;
	register long r8 __asm__("r8") = 0;
	long ret;

	top[0] = run;
	top[1] = arg;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "pop %%rax\n\t"
			 "pop %%rdi\n\t"
			 "call *%%rax\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone), "D"(flags), "S"(top), "d"(tid), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	end(rec, me, ret);
	return ret;
}

struct thread {
	struct self self;
	int tid;
	char name[16], file[24];
	char stack[STACK_BYTES] __attribute__((aligned(16)));
};

static void thread_calls(void *arg)
{
	struct thread *thread = arg;
	struct self *me = &thread->self;

	me->tid = thread->tid;
	memcpy(me->comm, thread->name, sizeof(me->comm));
	CALL(prctl, PR_SET_NAME, thread->name);
	for (int i = 0; i < THREAD_CALLS / 5; i++) {
		NAMES(thread->file);
		CALL(close, CALL(openat, AT_FDCWD, thread->file, O_CREAT | O_WRONLY, 0600));
		CALL(getppid, 0);
		NAMES(thread->file);
		CALL(chmod, thread->file, 0640);
		NAMES(thread->file);
		CALL(unlink, thread->file);
	}
	call_exit(me, "exit", SYS_exit, 0);
}

/* Thread and file names get their digit in place: nothing here may call libc's printf. */
static void threads(struct self *me)
{
	static struct thread thread[THREADS];

	for (int i = 0; i < THREADS; i++) {
		thread[i].self = *me;
		memcpy(thread[i].name, "worker-0", 9);
		memcpy(thread[i].file, "file of worker 0", 17);
		thread[i].name[7] = thread[i].file[15] = '0' + i;
		spawn(me, thread[i].stack, thread_calls, &thread[i], &thread[i].tid);
	}
	for (int i = 0; i < THREADS; i++)
		while (__atomic_load_n(&thread[i].tid, __ATOMIC_ACQUIRE) != 0)
			__builtin_ia32_pause();
}

static void spin(struct self *me, const char *flag)
{
	(void)me;
	__atomic_store_n((int *)flag, 1, __ATOMIC_RELEASE);
	for (;;)
		__builtin_ia32_pause();
}

/* Signals to a child that makes no system calls while it lives. */
static void signals(struct self *me, int *flag)
{
	struct self own;
	long pid, pidfd, word;
	siginfo_t info;
	struct {
		void *base;
		size_t len;
	} here = { &word, sizeof(word) }, there = { flag, sizeof(word) };

	for (int round = 0; round < 3; round++) {
		*flag = 0;
		pid = CALL(fork, 0);
		if (pid == 0) {
			born(&own, me);
			spin(&own, (const char *)flag);
		}
		while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
			__builtin_ia32_pause();
		CALL(kill, pid, 0);
		if (round == 0) {
			CALL(tkill, pid, 0);
			CALL(tgkill, pid, pid, 0);
			CALL(ptrace, PTRACE_SEIZE, pid, 0, 0);
			CALL(ptrace, PTRACE_PEEKDATA, pid, 8, &word);
			CALL(process_vm_readv, pid, &here, 1, &there, 1, 0);
			CALL(getpgid, pid);
			CALL(getsid, pid);
			CALL(waitid, P_PID, pid, &info, WEXITED | WNOHANG, NULL);
			CALL(kill, pid, SIGKILL);
		} else if (round == 1) {
			pidfd = CALL(pidfd_open, pid, 0);
			CALL(pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
			CALL(close, pidfd);
		} else {
			CALL(tgkill, pid, pid, SIGKILL);
		}
		reap(me, pid);
	}
	CALL(kill, 0x3ffffff, 0);
	CALL(tgkill, me->pid, me->tid, 999);
	CALL(ptrace, PTRACE_SEIZE, 0x3ffffff, 0, 0);
}

static void credentials(struct self *me, const char *dir)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct caps[2];

	CALL(capget, &head, caps);
	CALL(capset, &head, caps);
	caps[0].effective &= ~(1u << CAP_SYS_TIME);
	CALL(capset, &head, caps);
	caps[1].permitted = caps[1].effective = ~0u;
	caps[0].inheritable = 0;
	CALL(capset, &head, caps);
	CALL(setgroups, 0, NULL);
	CALL(getgroups, 0, NULL);
	CALL(setregid, -1, 5);
	CALL(setresgid, -1, 6, 7);
	CALL(setfsgid, 8);
	CALL(setfsuid, 9);
	CALL(setreuid, -1, 11);
	CALL(setreuid, -1, 0);
	CALL(setresuid, 12, 0, 0);
	CALL(getuid, 0);
	CALL(geteuid, 0);
	CALL(getresuid, &caps[0].effective, &caps[0].permitted, &caps[1].effective);
	CALL(setuid, NOBODY);
	CALL(setuid, 0);
	CALL(setresuid, 0, 0, 0);
	CALL(setgroups, 1, &head);
	CALL(kill, me->ppid, 0);
	NAMES(dir);
	CALL(mount, "none", dir, "tmpfs", 0, NULL);
	CALL(unshare, CLONE_NEWNS);
	CALL(delete_module, "no_such_module", O_NONBLOCK);
	CALL(sethostname, "x", 1);
}

/* Makes an exec, which has to succeed if `exe` is given. */
static void exec_call(struct self *me, long nr, const long *args, const char *exe, const char *comm,
		      const char *const *seen)
{
	struct record *rec = begin(me, "b64", nr == SYS_execve ? "execve" : "execveat", args, nr);

	if (exe)
		record_exec(rec, me, exe, comm, seen);
	end(rec, me, raw(nr, args[0], args[1], args[2], args[3], args[4], 0));
}

static void execve_call(struct self *me, const char *path, const char *const *argv, const char *exe,
			const char *comm, const char *const *seen)
{
	static const char *const no_environment[] = { NULL };

	NAMES(path);
	exec_call(me, SYS_execve, (long[6]){ (long)path, (long)argv, (long)no_environment }, exe,
		  comm, seen ? seen : argv);
}

#define MANY 10000
static const char *many[MANY + 1];
static char many_text[MANY][12], long_text[100 << 10], too_long_text[200 << 10];
static char odd_text[70 << 10];

static void exec_plain(struct self *me, const char *dir)
{
	static const char *const argv[] = { "/bin/true", "one",	      "two words",
					    "",		 "new\nline", "\xff\x01 bytes",
					    "quo\"te",	 NULL };

	(void)dir;
	execve_call(me, "/bin/true", argv, true_exe, "true", NULL);
}

static void exec_many(struct self *me, const char *dir)
{
	(void)dir;
	execve_call(me, "/bin/true", many, true_exe, "true", NULL);
}

static void exec_long(struct self *me, const char *dir)
{
	const char *const argv[] = { "true", long_text, "between", odd_text, "last", NULL };

	(void)dir;
	execve_call(me, "/bin/../bin/true", argv, true_exe, "true", NULL);
}

static void exec_script(struct self *me, const char *dir)
{
	static const char *const argv[] = { "script", "arg", NULL };
	static const char *const seen[] = { "/bin/true", "-x y", "./run it.sh", "arg", NULL };

	(void)dir;
	execve_call(me, "./run it.sh", argv, true_exe, "run it.sh", seen);
}

static void exec_at(struct self *me, const char *dir)
{
	static const char *const argv[] = { "by-directory", "arg", NULL };
	static char bin[PATH_BYTES];
	const char *base = strrchr(true_exe, '/') + 1;
	size_t len = base - 1 - true_exe;
	long fd;

	(void)dir;
	memcpy(bin, true_exe, len);
	NAMES(bin);
	fd = CALL(open, bin, O_PATH | O_CLOEXEC);
	NAMES_AT(bin, base);
	exec_call(me, SYS_execveat, (long[6]){ fd, (long)base, (long)argv, 0, 0 }, true_exe, base,
		  argv);
}

static void exec_fd(struct self *me, const char *dir)
{
	static const char *const argv[] = { "by-descriptor", NULL };
	long fd;

	(void)dir;
	NAMES(true_exe);
	fd = CALL(open, true_exe, O_PATH | O_CLOEXEC);
	exec_call(me, SYS_execveat, (long[6]){ fd, (long)"", (long)argv, 0, AT_EMPTY_PATH },
		  true_exe, NULL, argv);
}

static void exec_failures(struct self *me, const char *dir)
{
	static const char *const argv[] = { "x", "arg", NULL };
	const char *const too_long[] = { "x", too_long_text, NULL };

	execve_call(me, "/no/such/program", argv, NULL, NULL, NULL);
	execve_call(me, "./not executable", argv, NULL, NULL, NULL);
	execve_call(me, "./garbage", argv, NULL, NULL, NULL);
	execve_call(me, dir, argv, NULL, NULL, NULL);
	execve_call(me, "/bin/true", too_long, NULL, NULL, NULL);
	exec_call(me, SYS_execve, (long[6]){ 8, 0, 0 }, NULL, NULL, NULL);
}

static void write_file(struct self *me, const char *path, const char *text, int mode)
{
	long fd;

	NAMES(path);
	fd = CALL(open, path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	CALL(write, fd, text, strlen(text));
	CALL(fchmod, fd, mode);
	CALL(close, fd);
}

static void programs(struct self *me, const char *dir)
{
	static const char *const made[] = { "run it.sh", "garbage", "not executable" };

	for (int i = 0; i < MANY; i++) {
		memcpy(many_text[i], "argument00000", 8);
		for (int n = i, at = 12; n >= 0 && at > 8; n /= 10)
			many_text[i][--at - 1] = '0' + n % 10;
		many[i] = many_text[i];
	}
	memset(long_text, 'x', sizeof(long_text) - 1);
	memset(too_long_text, 'y', sizeof(too_long_text) - 1);
	memset(odd_text, 0xfe, sizeof(odd_text) - 1);
	write_file(me, made[0], "#!/bin/true -x y\n", 0755);
	write_file(me, made[1], "\x01\x02\x03\x04", 0755);
	write_file(me, made[2], "#!/bin/true\n", 0644);
	vfork_child(me, exec_plain, dir);
	child(me, SYS_fork, exec_many, dir);
	child(me, SYS_clone, exec_long, dir);
	vfork_child(me, exec_script, dir);
	child(me, SYS_clone3, exec_at, dir);
	child(me, SYS_fork, exec_fd, dir);
	vfork_child(me, exec_failures, dir);
	for (int i = 0; i < 3; i++) {
		NAMES(made[i]);
		CALL(unlink, made[i]);
	}
}

static void memory(struct self *me)
{
	char resident;
	long fd, at;

	NAMES("mapped");
	fd = CALL(open, "mapped", O_CREAT | O_RDWR, 0600);
	CALL(ftruncate, fd, 8192);
	at = CALL(mmap, NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CALL(msync, at, 8192, MS_ASYNC);
	CALL(madvise, at, 8192, MADV_RANDOM);
	CALL(mprotect, at, 4096, PROT_READ);
	CALL(mincore, at, 4096, &resident);
	CALL(munmap, at, 8192);
	CALL(mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, 999, 0);
	at = CALL(mmap, NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at = CALL(mremap, at, 4096, 8192, MREMAP_MAYMOVE);
	CALL(munmap, at, 8192);
	CALL(munmap, 1, 4096);
	CALL(brk, 0);
	CALL(close, fd);
	NAMES("mapped");
	CALL(unlink, "mapped");
	CALL(close, CALL(memfd_create, "a name", 0));
}

static void small_calls(struct self *me)
{
	struct utsname name;
	struct rlimit limit;
	struct rusage usage;
	const long moment[2] = { 0, 1000 }, wrong[2] = { 0, -1 };
	long words[64], nothing[2] = { 0 };
	int policy = 0;

	CALL(getppid, 0);
	CALL(gettid, 0);
	CALL(uname, &name);
	CALL(sysinfo, words);
	CALL(times, &words);
	CALL(getrusage, RUSAGE_SELF, &usage);
	CALL(getrlimit, RLIMIT_NOFILE, &limit);
	CALL(setrlimit, RLIMIT_NOFILE, &limit);
	CALL(prlimit64, 0, RLIMIT_CORE, NULL, &limit);
	CALL(getpriority, PRIO_PROCESS, 0);
	CALL(sched_yield, 0);
	CALL(sched_getscheduler, policy);
	CALL(sched_getaffinity, 0, sizeof(words), words);
	CALL(getrandom, words, 16, 0);
	CALL(clock_gettime, 1, words);
	CALL(nanosleep, moment, NULL);
	CALL(nanosleep, wrong, NULL);
	CALL(futex, &policy, 1 /* FUTEX_WAKE */, 1);
	CALL(futex, &policy, 0 /* FUTEX_WAIT */, 1);
	CALL(personality, 0xffffffff);
	CALL(alarm, 0);
	CALL(umask, 077);
	CALL(umask, 022);
	CALL(close, CALL(eventfd2, 0, 0));
	CALL(close, CALL(epoll_create1, 0));
	CALL(close, CALL(timerfd_create, 1, 0));
	CALL(close, CALL(inotify_init1, 0));
	CALL(poll, NULL, 0, 0);
	CALL(select, 0, NULL, NULL, NULL, nothing);
	CALL(rt_sigprocmask, SIG_BLOCK, NULL, words, 8);
	CALL(shmctl, CALL(shmget, 0, 4096, 0600), 0 /* IPC_RMID */, NULL);
	CALL(semctl, CALL(semget, 0, 1, 0600), 0, 0 /* IPC_RMID */);
	CALL(msgctl, CALL(msgget, 0, 0600), 0 /* IPC_RMID */, NULL);
}

/* Calls that would change the whole system, with arguments that every kernel refuses. */
static void refused_calls(struct self *me)
{
	NAMES("no such place");
	CALL(mount, "none", "no such place", "tmpfs", 0, NULL);
	NAMES("no such place");
	CALL(umount2, "no such place", 0);
	NAMES("no such place");
	CALL(chroot, "no such place");
	NAMES("no such place");
	CALL(swapon, "no such place", 0);
	NAMES("no such place");
	CALL(acct, "no such place");
	CALL(delete_module, "tarsier_no_such_module", O_NONBLOCK);
	CALL(finit_module, -1, "", 0);
	CALL(unshare, 1);
	CALL(setns, -1, 0);
	CALL(sethostname, "x", -1);
	CALL(bpf, 9999, NULL, 0);
	CALL(io_uring_setup, 0, NULL);
	CALL(perf_event_open, NULL, 0, -1, -1, 0);
	call(me, "unknown", 1999, 1, 2, 3, 4, 5, 6);
}

/* The x32 entry, which audit never sees. */
static void x32_call(struct self *me)
{
	long none[6] = { 0 }, nr = SYS_getppid | 0x40000000;
	struct record *rec = begin(me, "x32", "getppid", none, nr);

	end(rec, me, raw(nr, 0, 0, 0, 0, 0, 0));
}

void processes(struct self *me, const char *dir)
{
	static int *flag;

	flag = (int *)CALL(mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			   0);
	memcpy(me->comm, "main thread", 12);
	CALL(prctl, PR_SET_NAME, "main thread");
	CALL(prctl, -1);
	child(me, SYS_fork, credentials, dir);
	threads(me);
	signals(me, flag);
	programs(me, dir);
	memory(me);
	small_calls(me);
	refused_calls(me);
	x32_call(me);
	CALL(munmap, flag, 4096);
}
