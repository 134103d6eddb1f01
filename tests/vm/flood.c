/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls as fast as one process makes them, and a neighbour that makes few.
 *
 *   flood uid|subuids|container GROUP SECONDS   calls getppid(2) without a pause, in this group, and getpgid(2) once in 1,000
 *                                               calls; as user 61300; as 1,000 uids of a user namespace that this user made;
 *                                               as root of one that root made. Prints `made N urgent M`.
 *   flood held GROUP SECONDS                    as uid, when its standard input ends.
 *   flood neighbour GROUP SECONDS               calls getppid(2) a hundred times a second, as user 61301. Prints `made N p50 NS p99 NS`.
 *   flood shell GROUP SECONDS                   starts a login shell that starts a program, fifty times a second and up to 200
 *                                               times, as user 61301. Prints `made N p50 NS p99 NS`; the last one may take longer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FLOODER 61300
#define NEIGHBOUR 61301
#define FIRST_SUBUID 3000000
#define SUBUIDS 1000
#define CALLS_MAX 100000
#define SHELLS_MAX 200

static void fail(const char *what)
{
	fprintf(stderr, "flood: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	long long left = *(const long long *)a, right = *(const long long *)b;

	return (left > right) - (left < right);
}

static void call(void)
{
	syscall(SYS_getppid);
}

static void start_shell(void)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		fail("fork");
	if (child == 0) {
		execl("/bin/sh", "-sh", "-c", "/bin/true; exit 0", (char *)NULL);
		_exit(1);
	}
	if (waitpid(child, &status, 0) != child || status)
		fail("the shell");
}

/* Does something up to `most` times, with a pause after each, and prints how long it took. */
static void be_neighbour(void (*act)(void), unsigned long most, long pause_ns, long long until_ns)
{
	static long long took_ns[CALLS_MAX];
	struct timespec pause = { .tv_nsec = pause_ns };
	unsigned long made = 0;

	if (setresuid(NEIGHBOUR, NEIGHBOUR, NEIGHBOUR))
		fail("setresuid");
	while (now_ns() < until_ns && made < most) {
		long long start_ns = now_ns();

		act();
		took_ns[made++] = now_ns() - start_ns;
		nanosleep(&pause, NULL);
	}
	qsort(took_ns, made, sizeof(*took_ns), compare);
	printf("made %lu p50 %lld p99 %lld\n", made, took_ns[made / 2], took_ns[made * 99 / 100]);
}

static void flood(long long until_ns, int subuids)
{
	unsigned long made = 0, urgent = 0;
	unsigned int uid = 0;

	while (now_ns() < until_ns) {
		if (subuids && setresuid(uid++ % SUBUIDS, 0, 0))
			fail("setresuid in the namespace");
		for (int i = 0; i < 50; i++)
			syscall(SYS_getppid);
		made += 50;
		if (made % 1000 == 0) {
			syscall(SYS_getpgid, 0);
			urgent++;
		}
	}
	printf("made %lu urgent %lu\n", made, urgent);
}

/* Goes on in a child in a user namespace of `owner`; this process waits for it. */
static void enter_namespace(uid_t owner)
{
	int ready[2], go[2], fd, status;
	char path[64], map[64], byte = 0;
	pid_t child;

	if (pipe(ready) || pipe(go))
		fail("pipe");
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		if (setresuid(-1, owner, -1) || unshare(CLONE_NEWUSER))
			fail("unshare");
		if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
			fail("the pipes");
		if (setresuid(0, 0, 0))
			fail("setresuid to root of the namespace");
		return;
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		fail("the child");
	snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
	snprintf(map, sizeof(map), "0 %d %d\n", FIRST_SUBUID, SUBUIDS);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, map, strlen(map)) < 0 || write(go[1], &byte, 1) != 1)
		fail(path);
	if (waitpid(child, &status, 0) != child || status)
		fail("the process in the namespace");
	exit(0);
}

/* Waits for the end of standard input; the time so many seconds later. */
static long long when_released_ns(int seconds)
{
	char byte;

	while (read(0, &byte, 1) > 0)
		;
	return now_ns() + seconds * 1000000000LL;
}

int main(int argc, char **argv)
{
	long long until_ns;

	if (argc != 4) {
		fprintf(stderr,
			"usage: flood uid|held|subuids|container|neighbour|shell GROUP SECONDS\n");
		return 2;
	}
	until_ns = now_ns() + atoi(argv[3]) * 1000000000LL;
	if (setresgid(atoi(argv[2]), atoi(argv[2]), atoi(argv[2])))
		fail("setresgid");
	if (!strcmp(argv[1], "neighbour")) {
		be_neighbour(call, CALLS_MAX, 10000000, until_ns);
	} else if (!strcmp(argv[1], "shell")) {
		be_neighbour(start_shell, SHELLS_MAX, 20000000, until_ns);
	} else if (!strcmp(argv[1], "uid") || !strcmp(argv[1], "held")) {
		if (setresuid(FLOODER, FLOODER, FLOODER))
			fail("setresuid");
		if (!strcmp(argv[1], "held"))
			until_ns = when_released_ns(atoi(argv[3]));
		flood(until_ns, 0);
	} else {
		enter_namespace(strcmp(argv[1], "subuids") ? 0 : FLOODER);
		flood(until_ns, !strcmp(argv[1], "subuids"));
	}
	return 0;
}
