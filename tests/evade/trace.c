/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tracer that changes the registers of its tracee, and signals in the middle of calls. The tracee is in the
 * technique's group, the tracer is not.
 */
#include "evade.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>

#define EVENT_OF(status) ((status) >> 16)
/* A signal stop of PTRACE_O_TRACESYSGOOD. */
#define SYSCALL_STOP (SIGTRAP | 0x80)

static void ready(void)
{
	if (ptrace(PTRACE_TRACEME, 0, 0, 0))
		fail("PTRACE_TRACEME: %s", strerror(errno));
	raise(SIGSTOP);
	select_calls();
}

/* Waits for the next stop of the tracee; false when it has ended. */
static bool next_stop(pid_t pid, int *status)
{
	if (waitpid(pid, status, __WALL) != pid)
		fail("waitpid: %s", strerror(errno));
	return WIFSTOPPED(*status);
}

static pid_t trace(void (*body)(void *), void *argument, long options)
{
	pid_t pid = start(body, argument);
	int status;

	if (!next_stop(pid, &status))
		fail("the tracee ended with wait status %#x", status);
	if (ptrace(PTRACE_SETOPTIONS, pid, 0, options | PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD))
		fail("PTRACE_SETOPTIONS: %s", strerror(errno));
	return pid;
}

static void set_number(pid_t pid, unsigned long nr)
{
	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), nr))
		fail("PTRACE_POKEUSER: %s", strerror(errno));
}

static void set_argument(pid_t pid, size_t offset, unsigned long value)
{
	if (ptrace(PTRACE_POKEUSER, pid, offset, value))
		fail("PTRACE_POKEUSER: %s", strerror(errno));
}

static unsigned long number_of(pid_t pid)
{
	return ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, orig_rax), 0);
}

/* Lets the tracee run to its end, and calls `at_entry` at each entry of the call `nr`. */
static void run_traced(pid_t pid, unsigned long nr, void (*at_entry)(pid_t))
{
	bool is_entry = true;
	int status;

	for (;;) {
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		if (!next_stop(pid, &status))
			break;
		if (WSTOPSIG(status) != SYSCALL_STOP)
			continue;
		if (is_entry && number_of(pid) == nr)
			at_entry(pid);
		is_entry = !is_entry;
	}
	if (status)
		fail("the tracee ended with wait status %#x", status);
}

static void seem_to_ask(void *count)
{
	ready();
	/* The arguments are those of mkdir. */
	for (int i = 0; i < (int)(intptr_t)count; i++)
		expect("mkdir", syscall(SYS_getppid, "/", 0755), -1);
}

static void become_mkdir(pid_t pid)
{
	set_number(pid, SYS_mkdir);
	made(1);
}

static void become_mkdir_with_high_bits(pid_t pid)
{
	set_number(pid, (1ul << 32) | SYS_mkdir);
	made(1);
}

static void ptrace_number(int count)
{
	run_traced(trace(seem_to_ask, (void *)(intptr_t)count, 0), SYS_getppid, become_mkdir);
}

static void ptrace_high_bits(int count)
{
	run_traced(trace(seem_to_ask, (void *)(intptr_t)count, 0), SYS_getppid,
		   become_mkdir_with_high_bits);
}

static void prepare_tree(void)
{
	make_dir("tree");
}

static const char inside[] = "tree/file", outside[] = "file";

static void unlink_outside(void *unused)
{
	(void)unused;
	ready();
	expect("unlinkat", syscall(SYS_unlinkat, AT_FDCWD, outside, 0), 0);
}

/* The tracee has the same memory layout: it is a fork. */
static void become_inside(pid_t pid)
{
	set_argument(pid, offsetof(struct user_regs_struct, rsi), (unsigned long)inside);
	made(1);
}

static void ptrace_arguments(int count)
{
	for (int i = 0; i < count; i++) {
		write_file(inside, "", 0600);
		run_traced(trace(unlink_outside, NULL, 0), SYS_unlinkat, become_inside);
	}
}

static void seem_to_ask_filtered(void *count)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog fprog = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog))
		fail("a seccomp filter: %s", strerror(errno));
	seem_to_ask(count);
}

/* Lets the tracee run to its end, and calls `at_event` at each stop for this event. */
static void run_to_events(pid_t pid, int event, void (*at_event)(pid_t))
{
	int status;

	for (;;) {
		ptrace(PTRACE_CONT, pid, 0, 0);
		if (!next_stop(pid, &status))
			break;
		if (EVENT_OF(status) == event)
			at_event(pid);
	}
}

static void ptrace_seccomp_stop(int count)
{
	run_to_events(trace(seem_to_ask_filtered, (void *)(intptr_t)count, PTRACE_O_TRACESECCOMP),
		      PTRACE_EVENT_SECCOMP, become_mkdir);
}

/* A child that is traced as well runs on alone. */
static void let_child_go(pid_t pid)
{
	unsigned long child;

	if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &child) == 0 && child > 0 &&
	    child != (unsigned long)pid) {
		int status;

		if (waitpid(child, &status, __WALL) == (pid_t)child && WIFSTOPPED(status))
			ptrace(PTRACE_DETACH, child, 0, 0);
	}
}

/* In the middle of a call that makes a child, executes or ends: it seems to be getpid from here on. */
static void become_getpid(pid_t pid)
{
	set_number(pid, SYS_getpid);
	made(1);
	let_child_go(pid);
}

/* The rule is on the flags. */
static void lose_flags(pid_t pid)
{
	set_argument(pid, offsetof(struct user_regs_struct, rdi), 0);
	made(1);
	let_child_go(pid);
}

#define CHILDREN 5

static void make_children(void *nr)
{
	ready();
	for (int i = 0; i < CHILDREN; i++) {
		long pid;

		if ((long)nr == SYS_clone)
			pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		else if ((long)nr == SYS_clone3)
			pid = syscall(SYS_clone3, &(unsigned long[8]){ [4] = SIGCHLD }, 64);
		else
			pid = syscall((long)nr);
		if (pid == 0)
			_exit(0);
		/* The next call would fail, and be repeated, while SIGCHLD is pending. */
		while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
			;
	}
	unselect_calls();
}

/* A clone with SIGCHLD is a fork to a tracer. */
static void trace_children(int count, long nr, void (*at_event)(pid_t))
{
	for (int i = 0; i < count; i++)
		run_to_events(trace(make_children, (void *)nr, PTRACE_O_TRACEFORK),
			      PTRACE_EVENT_FORK, at_event);
}

static void ptrace_fork_stop(int count)
{
	trace_children(count, SYS_fork, become_getpid);
}

static void ptrace_clone_stop(int count)
{
	trace_children(count, SYS_clone, become_getpid);
}

static void ptrace_clone_flags(int count)
{
	trace_children(count, SYS_clone, lose_flags);
}

static void ptrace_clone3_stop(int count)
{
	trace_children(count, SYS_clone3, become_getpid);
}

static void vfork_once(void *unused)
{
	(void)unused;
	ready();
	if (vfork() == 0)
		_exit(0);
}

/* The stop after the child has ended or executed, at the end of the call. */
static void ptrace_vfork_stop(int count)
{
	for (int i = 0; i < count; i++)
		run_to_events(trace(vfork_once, NULL, PTRACE_O_TRACEVFORKDONE),
			      PTRACE_EVENT_VFORK_DONE, become_getpid);
}

static void execute_traced(void *unused)
{
	(void)unused;
	ready();
	execute(program(), 0);
}

static void ptrace_exec_stop(int count)
{
	for (int i = 0; i < count; i++)
		run_to_events(trace(execute_traced, NULL, PTRACE_O_TRACEEXEC), PTRACE_EVENT_EXEC,
			      become_getpid);
}

static void kill_tracee(pid_t pid)
{
	made(1);
	kill(pid, SIGKILL);
}

static void exec_killed(int count)
{
	for (int i = 0; i < count; i++)
		run_to_events(trace(execute_traced, NULL, PTRACE_O_TRACEEXEC), PTRACE_EVENT_EXEC,
			      kill_tracee);
}

static void exit_traced(void *unused)
{
	(void)unused;
	ready();
	syscall(SYS_exit_group, 0);
}

static void ptrace_exit_stop(int count)
{
	for (int i = 0; i < count; i++)
		run_to_events(trace(exit_traced, NULL, PTRACE_O_TRACEEXIT), PTRACE_EVENT_EXIT,
			      become_getpid);
}

static void ignore(int signal)
{
	(void)signal;
}

/* Signals a thousand times a second, in and between calls. */
static void signal_storm(int count)
{
	struct itimerval interval = { { 0, 1000 }, { 0, 1000 } }, none = { 0 };

	signal(SIGALRM, ignore);
	setitimer(ITIMER_REAL, &interval, NULL);
	select_calls();
	for (int i = 0; i < count; i++) {
		expect("mkdirat", syscall(SYS_mkdirat, AT_FDCWD, "/", 0755), -1);
		made(1);
	}
	setitimer(ITIMER_REAL, &none, NULL);
}

const struct technique trace_techniques[] = {
	{ "ptrace-number", ptrace_number, 5 },
	{ "ptrace-high-bits", ptrace_high_bits, 5 },
	{ "ptrace-arguments", ptrace_arguments, 5, prepare_tree },
	{ "ptrace-seccomp-stop", ptrace_seccomp_stop, 5 },
	{ "ptrace-fork-stop", ptrace_fork_stop, 1 },
	{ "ptrace-clone-stop", ptrace_clone_stop, 1 },
	{ "ptrace-clone-flags", ptrace_clone_flags, 1 },
	{ "ptrace-clone3-stop", ptrace_clone3_stop, 1 },
	{ "ptrace-vfork-stop", ptrace_vfork_stop, 5 },
	{ "ptrace-exec-stop", ptrace_exec_stop, 5 },
	{ "ptrace-exit-stop", ptrace_exit_stop, 5 },
	{ "exec-killed", exec_killed, 5 },
	{ "signal-storm", signal_storm, 1000 },
	{ 0 },
};
