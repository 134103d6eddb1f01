/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes calls from many processes at once, and counts the records of such calls in a log.
 *
 *   press make PROCESSES CALLS    makes CALLS calls in all, in group 61234, and prints `NAME COUNT` for each
 *                                 system call
 *   press count LOG               prints `NAME COUNT` of the SYSCALL records with the key `press`
 *
 * Of 100 calls, 89 are kill(2) without a signal, five openat(2) and five unlinkat(2), both of paths of 200
 * to 4000 bytes that do not exist, and one is execve(2) of /bin/true in a child. From the 2000th call of a
 * process on, ten of 1000 are openat(2) and unlinkat(2), and one of 2000 execve(2): under emulation these take
 * longer than all others together. Processes of this program in that group make no other calls of these names.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK_GID 61234
#define PROCESSES_MAX 1024
#define DENSE_CALLS 2000
#define PATH_BYTES_MIN 200
#define PATH_BYTES_MAX 4000

enum call {
	KILL,
	OPENAT,
	UNLINKAT,
	EXECVE,
	CALLS
};

static const struct {
	const char *name;
	long nr;
} calls[CALLS] = {
	[KILL] = { "kill", SYS_kill },
	[OPENAT] = { "openat", SYS_openat },
	[UNLINKAT] = { "unlinkat", SYS_unlinkat },
	[EXECVE] = { "execve", SYS_execve },
};

struct counts {
	unsigned long of[CALLS];
};

static void fail(const char *what)
{
	fprintf(stderr, "press: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Which call is number `at` of a process. */
static enum call call_at(unsigned long at)
{
	unsigned long execve_period = at < DENSE_CALLS ? 100 : 2000;
	unsigned long path_period = at < DENSE_CALLS ? 20 : 200;

	if (at % execve_period == execve_period / 2)
		return EXECVE;
	if (at % path_period == 7)
		return OPENAT;
	if (at % path_period == 17)
		return UNLINKAT;
	return KILL;
}

/* Writes /nowhere/xxx…/xxx…, of so many bytes. */
static void fill_path(char *path, size_t bytes)
{
	memset(path, 'x', bytes);
	memcpy(path, "/nowhere", 8);
	for (size_t at = 8; at < bytes - 1; at += 200)
		path[at] = '/';
	path[bytes] = 0;
}

static void execute(void)
{
	char *argv[] = { "/bin/true", NULL }, *envp[] = { NULL };
	int status;
	pid_t pid = vfork();

	if (pid < 0)
		fail("vfork");
	if (pid == 0) {
		execve(argv[0], argv, envp);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		fail("/bin/true");
}

static void make(unsigned long count, struct counts *made)
{
	char path[PATH_BYTES_MAX + 1];
	unsigned long length = PATH_BYTES_MIN;
	pid_t self = getpid();

	if (setresgid(MARK_GID, -1, -1))
		fail("setresgid");
	for (unsigned long i = 0; i < count; i++) {
		enum call call = call_at(i);
		long ret = 0;

		if (call == OPENAT || call == UNLINKAT) {
			fill_path(path, length);
			length = PATH_BYTES_MIN +
				 (length * 7 + 13) % (PATH_BYTES_MAX - PATH_BYTES_MIN);
		}
		if (call == OPENAT)
			ret = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
		else if (call == UNLINKAT)
			ret = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
		else if (call == EXECVE)
			execute();
		else if (syscall(SYS_kill, self, 0))
			fail("kill");
		if (ret >= 0 && (call == OPENAT || call == UNLINKAT))
			fail("a path below /nowhere is there");
		made->of[call]++;
	}
}

static void print(const struct counts *counts)
{
	for (int call = 0; call < CALLS; call++)
		printf("%s %lu\n", calls[call].name, counts->of[call]);
}

static int make_main(unsigned long processes, unsigned long count)
{
	struct counts sum = { { 0 } };
	struct counts *made = mmap(NULL, processes * sizeof(*made), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int go[2], status, failed = 0;
	char byte;

	if (made == MAP_FAILED || pipe(go))
		fail("memory, a pipe");
	for (unsigned long i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			/* Returns 0 when the parent closes the pipe, so that all children begin at once. */
			close(go[1]);
			if (read(go[0], &byte, 1))
				fail("waiting for the others");
			make(count / processes + (i < count % processes), &made[i]);
			_exit(0);
		}
	}
	close(go[1]);
	while (wait(&status) > 0)
		failed |= status;
	for (unsigned long i = 0; i < processes; i++)
		for (int call = 0; call < CALLS; call++)
			sum.of[call] += made[i].of[call];
	print(&sum);
	return failed ? 1 : 0;
}

static int count_main(const char *path)
{
	struct counts logged = { { 0 } };
	FILE *log = fopen(path, "r");
	char *line = NULL;
	size_t size = 0;

	if (!log)
		fail(path);
	while (getline(&line, &size, log) > 0) {
		const char *number;

		if (strncmp(line, "type=SYSCALL ", 13) || !strstr(line, " key=\"press\""))
			continue;
		number = strstr(line, " syscall=");
		for (int call = 0; number && call < CALLS; call++)
			logged.of[call] += atol(number + 9) == calls[call].nr;
	}
	if (ferror(log))
		fail(path);
	print(&logged);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "count"))
		return count_main(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "make")) {
		unsigned long processes = strtoul(argv[2], NULL, 10);

		if (processes > 0 && processes <= PROCESSES_MAX)
			return make_main(processes, strtoul(argv[3], NULL, 10));
	}
	fprintf(stderr, "usage: press make PROCESSES CALLS | press count LOG\n");
	return 2;
}
