/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes each system call, of each entry, and each operation of io_uring, once for each kind of rule.
 *
 * usage: calls DIR NUMBERS ARGUMENTS KINDS
 *
 * NUMBERS has a line `b64|b32|uring NAME NUMBER` for each call, ARGUMENTS the words of those calls that reach objects, with
 * `uring/` before the names of operations; the arguments of all other calls are -1, of all other operations 0. Each call is made in a child whose group is GID_FIRST + kind * CALLS_MAX + line, by
 * which its records are told apart. Prints the lines of calls that could not be made, with the reason.
 */
#define _GNU_SOURCE
#include "calls.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GID_FIRST 100000
#define CALLS_MAX 2000
#define OWNER 61999
#define WAIT_MS 150

struct call {
	bool is_32;
	bool is_operation;
	char name[40];
	long nr;
	const char *words;
};

static struct call calls[CALLS_MAX];
static int count;

static char *read_all(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t len = 0;
	char *text = NULL;

	if (!file || getdelim(&text, &len, 0, file) < 0) {
		perror(path);
		exit(2);
	}
	fclose(file);
	return text;
}

/* The words that follow the name in a line of ARGUMENTS; NULL if there is no such line. */
static const char *words_of(const char *arguments, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = arguments; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, len) && (line[len] == ' ' || line[len] == '\n'))
			return line + len;
	}
	return NULL;
}

static void read_calls(char *numbers, const char *arguments)
{
	char *rest = numbers, *line;

	while ((line = strsep(&rest, "\n")) && *line && count < CALLS_MAX) {
		struct call *call = &calls[count++];
		char entry[8], operation[48];

		if (sscanf(line, "%7s %39s %ld", entry, call->name, &call->nr) != 3) {
			fprintf(stderr, "calls: not a call: %s\n", line);
			exit(2);
		}
		call->is_32 = !strcmp(entry, "b32");
		call->is_operation = !strcmp(entry, "uring");
		snprintf(operation, sizeof(operation), "uring/%s", call->name);
		call->words = words_of(arguments, call->is_operation ? operation : call->name);
	}
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0666);

	if (fd < 0 || write(fd, "#!/bin/true\n", 12) < 0 || fchown(fd, OWNER, OWNER) ||
	    fchmod(fd, 0755)) {
		perror(path);
		exit(2);
	}
	close(fd);
}

/* What may be missing, or be left, because an earlier call has removed or made it. */
static void restore(void)
{
	unlink("tree/new");
	rmdir("tree/new");
	unlink("tree/newsock");
	if (access("tree/victim", F_OK))
		make_file("tree/victim");
	mkdir("tree/victimdir", 0755);
}

static void prepare(void)
{
	mkdir("tree", 0755);
	mkdir("tree/dir", 0755);
	if (chown("tree", OWNER, OWNER) || chown("tree/dir", OWNER, OWNER))
		perror("chown");
	make_file("tree/file");
	symlink("file", "tree/link");
	restore();
	sockets_prepare();
}

static long enter32(long nr, const long *args)
{
#ifdef __x86_64__
	long result;
	int left[6];

	for (int i = 0; i < 6; i++)
		left[i] = args[i];
	/* The sixth argument is in ebp. */
	asm volatile("push %%rbp\n\tmov %[sixth], %%ebp\n\tint $0x80\n\tpop %%rbp"
		     : "=a"(result)
		     : "a"(nr), "b"(left[0]), "c"(left[1]), "d"(left[2]), "S"(left[3]),
		       "D"(left[4]), [sixth] "r"(left[5])
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
#else
	(void)nr, (void)args;
	return -ENOSYS;
#endif
}

/* Inline, so that the child of vfork(2) does not return from a function on the stack that it shares. */
static inline __attribute__((always_inline)) long enter64(long nr, const long *args)
{
#ifdef __x86_64__
	register long r10 asm("r10") = args[3], r8 asm("r8") = args[4], r9 asm("r9") = args[5];
	long result;

	asm volatile("syscall"
		     : "=a"(result)
		     : "a"(nr), "D"(args[0]), "S"(args[1]), "d"(args[2]), "r"(r10), "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory");
	return result;
#else
	return syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
#endif
}

static bool makes_tasks(const char *name)
{
	return !strcmp(name, "fork") || !strcmp(name, "vfork") || !strncmp(name, "clone", 5);
}

_Noreturn static void make(const struct call *call, gid_t group)
{
	struct rlimit no_core = { 0, 0 };
	long args[6] = { -1, -1, -1, -1, -1, -1 };
	bool forks = makes_tasks(call->name);

	setrlimit(RLIMIT_CORE, &no_core);
	setsid();
	if (call->is_operation)
		memset(args, 0, sizeof(args));
	if (call->words)
		words_to_args(call->words, args, call->is_32);
	if (setresgid(group, group, group))
		_exit(3);
	if (call->is_operation)
		_exit(ring_make(call->nr, args) < 0 ? 3 : 0);
	if (call->is_32)
		enter32(call->nr, args);
	else if (enter64(call->nr, args) == 0 && forks)
		syscall(SYS_exit_group, 0);
	_exit(0);
}

/* Waits for a child; one that waits itself is killed, and its call has no end. */
static const char *await(pid_t pid)
{
	int status;

	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (waitpid(pid, &status, WNOHANG | __WALL) == pid)
			return WIFEXITED(status) && WEXITSTATUS(status) == 3 ? "cannot be made"
									     : NULL;
		usleep(ms < 20 ? 50 : 1000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, __WALL);
	return "waits";
}

int main(int argc, char **argv)
{
	int kinds;

	if (argc != 5) {
		fprintf(stderr, "usage: calls DIR NUMBERS ARGUMENTS KINDS\n");
		return 2;
	}
	read_calls(read_all(argv[2]), read_all(argv[3]));
	if (chdir(argv[1])) {
		perror(argv[1]);
		return 2;
	}
	kinds = atoi(argv[4]);
	umask(022);
	if (!kinds) {
		prepare();
		return 0;
	}
	arena_make();
	sockets_prepare();
	for (int kind = 0; kind < kinds; kind++) {
		for (int i = 0; i < count; i++) {
			const char *failed;
			pid_t pid;

			restore();
			fflush(stdout);
			pid = fork();
			if (!pid)
				make(&calls[i], GID_FIRST + kind * CALLS_MAX + i);
			failed = await(pid);
			if (failed)
				printf("%d %s %s\n", kind, calls[i].name, failed);
		}
	}
	return 0;
}
