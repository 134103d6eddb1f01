/* SPDX-License-Identifier: Apache-2.0 */
/* Builtins, which need more than one plain system call: processes, threads, programs, clocks. */
#define _GNU_SOURCE
#include "acts.h"
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXEC_ARGS_MAX 70

static const char *text_of(char **args, int count, const char *what)
{
	if (count == 0)
		usage_error("an argument is missing", what);
	return args[0];
}

/* The child runs the calls up to `end`; the parent waits for it and continues after them. */
static long after_fork(struct script *script, long pid)
{
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		run_calls(script);
		_exit(0);
	}
	skip_calls(script);
	waitpid((pid_t)pid, NULL, 0);
	return pid;
}

/* child: fork(2), or clone(2) on architectures without fork. */
static long child(struct script *script, char **args, int count)
{
	(void)args, (void)count;
	return after_fork(script, fork_call());
}

/* child3: clone3(2) without flags. */
static long child3(struct script *script, char **args, int count)
{
	struct clone_args how = { .exit_signal = SIGCHLD };

	(void)args, (void)count;
	return after_fork(script, syscall(SYS_clone3, &how, sizeof how));
}

/* vchild PROGRAM: vfork(2), and execve(2) of the program in the child. */
static long vchild(struct script *script, char **args, int count)
{
	const char *path = text_of(args, count, "vchild");
	char *argv[] = { (char *)path, NULL };
	pid_t pid = vfork();

	(void)script;
	if (pid == 0) {
		execve(path, argv, argv + 1);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	return pid;
}

/* A thread's calls, which begin when the call that made it has ended, so that every log has the same order. */
struct thread_start {
	struct script script;
	atomic_bool may_begin;
};

static void *thread_calls(void *argument)
{
	struct thread_start *start = argument;

	/* Waiting makes no call. */
	while (!atomic_load(&start->may_begin))
		;
	run_calls(&start->script);
	return NULL;
}

/* thread: another thread runs the calls up to `end`. */
static long thread(struct script *script, char **args, int count)
{
	struct thread_start start = { .script = *script };
	pthread_t id;
	int error = pthread_create(&id, NULL, thread_calls, &start);

	(void)args, (void)count;
	if (error)
		return -error;
	atomic_store(&start.may_begin, true);
	pthread_join(id, NULL);
	skip_calls(script);
	return 0;
}

/* sleeper COMM [UID]: starts a child of that name and user that waits to be killed; its result is the pid. */
static long sleeper(struct script *script, char **args, int count)
{
	const char *comm = text_of(args, count, "sleeper");
	int ready[2];
	char byte;
	pid_t pid;

	(void)script;
	if (pipe(ready))
		return -errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, comm);
		if (count > 1 && setuid((uid_t)atoi(args[1])))
			_exit(1);
		close(ready[0]);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	byte = (char)read(ready[0], &byte, 1);
	close(ready[0]);
	return pid;
}

/* reap PID: kills a sleeper and waits for it. */
static long reap(struct script *script, char **args, int count)
{
	pid_t pid = (pid_t)value_of(text_of(args, count, "reap"));

	(void)script;
	/* No child: kill(2) would take it for a group of processes, or for all of them. */
	if (pid <= 0)
		return -ESRCH;
	kill(pid, SIGKILL);
	return waitpid(pid, NULL, 0) == pid ? 0 : -errno;
}

/* ignore SIGNAL: ignores a signal from now on. */
static long ignore(struct script *script, char **args, int count)
{
	(void)script;
	return signal(atoi(text_of(args, count, "ignore")), SIG_IGN) == SIG_ERR ? -errno : 0;
}

/* comm NAME: sets the name of the thread. */
static long comm(struct script *script, char **args, int count)
{
	(void)script;
	return prctl(PR_SET_NAME, text_of(args, count, "comm")) ? -errno : 0;
}

/* Fills argv with the arguments as strings; only `many:` and `hex:` are converted. */
static void fill_argv(char **argv, char **args, int count)
{
	if (count >= EXEC_ARGS_MAX)
		usage_error("too many arguments of", args[0]);
	for (int i = 0; i < count; i++) {
		bool is_form =
			strncmp(args[i], "many:", 5) == 0 || strncmp(args[i], "hex:", 4) == 0;

		argv[i] = is_form ? (char *)value_of(args[i]) : args[i];
	}
	argv[count] = NULL;
}

/* exec PATH [ARG…]: execve(2) with PATH as argv[0]; returns only if it fails. */
static long exec(struct script *script, char **args, int count)
{
	char *argv[EXEC_ARGS_MAX], *envp[] = { "PATH=/bin:/sbin", NULL };

	(void)script;
	text_of(args, count, "exec");
	fill_argv(argv, args, count);
	execve(args[0], argv, envp);
	return -errno;
}

/* execat FD PATH FLAGS [ARG…]: execveat(2) with the first ARG as argv[0]; returns only if it fails. */
static long execat(struct script *script, char **args, int count)
{
	char *argv[EXEC_ARGS_MAX], *envp[] = { NULL };

	(void)script;
	if (count < 3)
		usage_error("expected FD PATH FLAGS after", "execat");
	fill_argv(argv, args + 3, count - 3);
	syscall(SYS_execveat, value_of(args[0]), args[1], argv, envp, value_of(args[2]));
	return -errno;
}

/* step SECONDS: moves the clock by so many seconds, by clock_settime(2). */
static long step(struct script *script, char **args, int count)
{
	struct timespec now;

	(void)script;
	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += atoi(text_of(args, count, "step"));
	return clock_settime(CLOCK_REALTIME, &now) ? -errno : 0;
}

/* login UID: writes /proc/self/loginuid. */
static long login(struct script *script, char **args, int count)
{
	const char *uid = text_of(args, count, "login");
	FILE *file = fopen("/proc/self/loginuid", "w");
	bool is_written = file && fputs(uid, file) >= 0;

	(void)script;
	return file && !fclose(file) && is_written ? 0 : -errno;
}

static const struct builtin builtins[] = {
	{ "child", child },	{ "child3", child3 }, { "vchild", vchild }, { "thread", thread },
	{ "sleeper", sleeper }, { "reap", reap },     { "ignore", ignore }, { "comm", comm },
	{ "exec", exec },	{ "execat", execat }, { "step", step },	    { "login", login },
};

const struct builtin *builtin_named(const char *name)
{
	for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++) {
		if (strcmp(builtins[i].name, name) == 0)
			return &builtins[i];
	}
	return NULL;
}
