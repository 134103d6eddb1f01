/* SPDX-License-Identifier: Apache-2.0 */
/* What the techniques have in common. */
#include "evade.h"
#include <sys/sendfile.h>
#include <sys/wait.h>

/* Only this thread: glibc's setresgid() changes all. The effective group stays, so that root keeps its rights. */
void select_calls(void)
{
	if (syscall(SYS_setresgid, group, -1, -1))
		fail("setresgid: %s", strerror(errno));
}

void unselect_calls(void)
{
	if (syscall(SYS_setresgid, 0, -1, -1))
		fail("setresgid: %s", strerror(errno));
}

void expect(const char *what, long result, long wanted)
{
	if (result != wanted)
		fail("%s: %ld, not %ld (errno %d)", what, result, wanted, errno);
}

pid_t start(void (*body)(void *), void *argument)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (pid > 0)
		return pid;
	body(argument);
	_exit(0);
}

void await(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid: %s", strerror(errno));
	/* A child that has told why it ended has status 1. */
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
		_exit(1);
	if (status)
		fail("a child ended with wait status %#x", status);
}

void in_child(void (*body)(void *), void *argument)
{
	await(start(body, argument));
}

static void *thread_main(void *argument)
{
	struct thread *thread = argument;

	thread->id = syscall(SYS_gettid);
	thread->body(thread->argument);
	return NULL;
}

void thread_start(struct thread *thread, void (*body)(void *), void *argument)
{
	thread->body = body;
	thread->argument = argument;
	thread->id = 0;
	if (pthread_create(&thread->handle, NULL, thread_main, thread))
		fail("no thread");
	while (!thread->id)
		sched_yield();
}

void thread_join(struct thread *thread)
{
	pthread_join(thread->handle, NULL);
}

bool await_blocked(pid_t thread, long nr)
{
	char path[64], text[32];

	/* A child has its thread directory below its own number, a thread below that of the process. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", thread, thread);
	if (!exists(path))
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

		if (fd >= 0)
			close(fd);
		if (length <= 0)
			return false;
		text[length] = 0;
		/* `running`, or the number of the call and its arguments. */
		if (text[0] != 'r' && atol(text) == nr)
			return true;
		usleep(1000);
	}
}

void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(fd, mode))
		fail("writing %s: %s", path, strerror(errno));
	close(fd);
}

void make_dir(const char *path)
{
	if (mkdir(path, 0755) && errno != EEXIST)
		fail("mkdir %s: %s", path, strerror(errno));
}

bool exists(const char *path)
{
	struct stat found;

	return lstat(path, &found) == 0;
}

void copy_program(const char *path)
{
	copy_file("/proc/self/exe", path);
}

void copy_file(const char *source, const char *path)
{
	int from = open(source, O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	ssize_t sent;

	if (from < 0 || to < 0)
		fail("copying %s to %s: %s", source, path, strerror(errno));
	while ((sent = sendfile(to, from, NULL, 1 << 24)) > 0)
		;
	if (sent < 0)
		fail("copying %s to %s: %s", source, path, strerror(errno));
	close(from);
	close(to);
}

const char *program(void)
{
	static _Thread_local char path[sizeof(top) + 8];

	snprintf(path, sizeof(path), "%s/evade", top);
	return path;
}

void execute(const char *path, int count)
{
	char number[16];
	char *argv[] = { (char *)path, "act", number, NULL }, *envp[] = { NULL };

	snprintf(number, sizeof(number), "%d", count);
	execve(path, argv, envp);
	fail("execve %s: %s", path, strerror(errno));
}

struct execution {
	const char *path;
	int count;
};

static void execute_selected(void *argument)
{
	struct execution *execution = argument;

	select_calls();
	execute(execution->path, execution->count);
}

void run_program(const char *path, int count)
{
	struct execution execution = { path, count };

	in_child(execute_selected, &execution);
}
