// SPDX-License-Identifier: Apache-2.0
/*
 * Makes system calls as fast as it can, or at a given rate; sleeps 1 ms at a
 * time and reports how late it wakes; or syncs a file and reports how long that takes.
 *
 * hammer calls GID PRODUCERS SECONDS [RATE]
 *	processes in group GID call getppid; RATE is calls per second of each.
 *	Prints "producer CALLS SECONDS" for each, SECONDS of its own clock.
 * hammer held GID SECONDS
 *	the same in this process, which first waits until its standard input ends, so
 *	that a rule can name it.
 * hammer execs GID SECONDS RATE
 *	a process in group GID runs /bin/true RATE times per second. Prints the same.
 * hammer timer SECONDS
 *	Prints "timer COUNT P50 P99 P999 MAX", lateness in microseconds.
 * hammer appends FILE SECONDS RATE
 *	appends 500 bytes to FILE and calls fdatasync, RATE times per second. Prints
 *	"appends COUNT P50 P99 P999 MAX", the time of both calls in microseconds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* First argument of getppid, which takes none: rules find these calls by it. */
#define MARK 0x7a53

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == EINTR)
		;
}

/* The clock is read only every few calls, so that it is not what is measured. */
static void produce(double seconds, double rate)
{
	uint64_t start = now_ns(), end = start + seconds * 1e9, now = start, calls = 0;
	char line[80];
	int n;

	while (now < end) {
		int burst = rate > 0 ? (int)(rate / 1000) + (rate < 1000) : 64;

		for (int i = 0; i < burst; i++)
			syscall(SYS_getppid, MARK);
		calls += burst;
		if (rate > 0)
			sleep_until(start + calls / rate * 1e9);
		now = now_ns();
	}
	n = snprintf(line, sizeof(line), "producer %lu %.6f\n", calls, (now - start) / 1e9);
	if (write(1, line, n) != n)
		_exit(1);
}

static int calls(gid_t gid, int producers, double seconds, double rate)
{
	int failed = 0, status;

	if (setresgid(gid, gid, gid)) {
		perror("hammer: setresgid");
		return 1;
	}
	for (int i = 0; i < producers; i++) {
		if (fork() == 0) {
			produce(seconds, rate);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}

static int held(gid_t gid, double seconds)
{
	char byte;

	if (setresgid(gid, gid, gid)) {
		perror("hammer: setresgid");
		return 1;
	}
	while (read(0, &byte, 1) > 0)
		;
	produce(seconds, 0);
	return 0;
}

static int execs(gid_t gid, double seconds, double rate)
{
	char *const argv[] = { "true", NULL }, *const envp[] = { NULL };
	uint64_t start = now_ns(), end = start + seconds * 1e9, now = start, made = 0;
	pid_t pid;

	if (setresgid(gid, gid, gid)) {
		perror("hammer: setresgid");
		return 1;
	}
	while (now < end) {
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, envp) ||
		    waitpid(pid, NULL, 0) != pid) {
			perror("hammer: /bin/true");
			return 1;
		}
		sleep_until(start + ++made / rate * 1e9);
		now = now_ns();
	}
	printf("producer %lu %.6f\n", made, (now - start) / 1e9);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int tell(const char *what, double *us, size_t n)
{
	qsort(us, n, sizeof(*us), by_value);
	if (n)
		printf("%s %zu %.1f %.1f %.1f %.1f\n", what, n, us[n / 2], us[n * 99 / 100],
		       us[n * 999 / 1000], us[n - 1]);
	return n == 0;
}

static int timer(double seconds)
{
	size_t room = seconds * 1000 + 1, n = 0;
	double *late = calloc(room, sizeof(*late));
	uint64_t end = now_ns() + seconds * 1e9, due;

	if (!late)
		return 1;
	while (n < room && (due = now_ns() + 1000000) < end) {
		sleep_until(due);
		late[n++] = (now_ns() - due) / 1e3;
	}
	return tell("timer", late, n);
}

static int appends(const char *file, double seconds, double rate)
{
	size_t room = seconds * rate + 1, n = 0;
	double *took = calloc(room, sizeof(*took));
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
	uint64_t start = now_ns(), end = start + seconds * 1e9;
	char bytes[500];

	if (!took || fd < 0) {
		perror("hammer: appends");
		return 1;
	}
	memset(bytes, 'x', sizeof(bytes));
	while (n < room && now_ns() < end) {
		uint64_t before = now_ns();

		if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes) || fdatasync(fd)) {
			perror("hammer: appends");
			return 1;
		}
		took[n++] = (now_ns() - before) / 1e3;
		sleep_until(start + n / rate * 1e9);
	}
	return tell("appends", took, n);
}

int main(int argc, char **argv)
{
	if (argc >= 5 && !strcmp(argv[1], "calls"))
		return calls(atoi(argv[2]), atoi(argv[3]), atof(argv[4]),
			     argc > 5 ? atof(argv[5]) : 0);
	if (argc == 4 && !strcmp(argv[1], "held"))
		return held(atoi(argv[2]), atof(argv[3]));
	if (argc == 5 && !strcmp(argv[1], "execs"))
		return execs(atoi(argv[2]), atof(argv[3]), atof(argv[4]));
	if (argc == 3 && !strcmp(argv[1], "timer"))
		return timer(atof(argv[2]));
	if (argc == 5 && !strcmp(argv[1], "appends"))
		return appends(argv[2], atof(argv[3]), atof(argv[4]));
	fprintf(stderr,
		"usage: hammer calls GID PRODUCERS SECONDS [RATE] | hammer held GID SECONDS |\n"
		"       hammer execs GID SECONDS RATE | hammer timer SECONDS |\n"
		"       hammer appends FILE SECONDS RATE\n");
	return 2;
}
