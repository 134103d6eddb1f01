// SPDX-License-Identifier: Apache-2.0
/*
 * Installs seccomp filters and measures system calls under them; for `bench/run seccomp`.
 *
 * usage: seccomp_calls CALLS FILTER...                     raw filters, oldest first
 *        seccomp_calls --run FILTER... -- PROGRAM ARGUMENT...   executes the program under the filters
 *
 * The first form prints a line per probe: its name, the minimum and the median of the slices in ns per call; and
 * `attach` with the time in ns for installing all filters.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLICES 48
#define FILTERS_MAX 64

/* Calls that fail at once or do nothing, so that only the entry is measured. */
static const struct {
	const char *name;
	long nr, args[6];
} probes[] = {
	{ "getpid", SYS_getpid, { 0 } },
	{ "personality", SYS_personality, { 0xffffffff } },
	{ "clone", SYS_clone, { 0x10000 /* CLONE_THREAD alone: EINVAL */ } },
	{ "socket", SYS_socket, { 99 } },
	{ "mmap", SYS_mmap, { 0, 0 } },
	{ "openat", SYS_openat, { -100, (long)"", O_RDONLY } },
};
#define PROBES (sizeof(probes) / sizeof(*probes))

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double attach(int count, char **paths)
{
	static struct sock_filter programs[FILTERS_MAX][BPF_MAXINSNS];
	struct sock_fprog progs[FILTERS_MAX];
	double start;

	if (count > FILTERS_MAX)
		fail("too many filters");
	for (int i = 0; i < count; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		ssize_t size = fd < 0 ? -1 : read(fd, programs[i], sizeof(programs[i]));

		if (size <= 0)
			fail(paths[i]);
		close(fd);
		progs[i].len = size / sizeof(struct sock_filter);
		progs[i].filter = programs[i];
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("no_new_privs");
	start = now_ns();
	for (int i = 0; i < count; i++)
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &progs[i]))
			fail("seccomp");
	return now_ns() - start;
}

static double slice(unsigned int probe, long calls)
{
	const long *a = probes[probe].args;
	double start = now_ns();

	for (long i = 0; i < calls; i++)
		syscall(probes[probe].nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	return (now_ns() - start) / calls;
}

static int ascending(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;

	return (difference > 0) - (difference < 0);
}

static void run_under(int argc, char **argv)
{
	int filters = 0;

	while (filters < argc && strcmp(argv[filters], "--"))
		filters++;
	if (filters + 1 >= argc)
		fail("expected FILTER... -- PROGRAM");
	attach(filters, argv);
	execv(argv[filters + 1], argv + filters + 1);
	fail(argv[filters + 1]);
}

int main(int argc, char **argv)
{
	static double ns[PROBES][SLICES];
	long calls = argc > 1 ? atol(argv[1]) : 0;
	double attach_ns;

	if (argc > 1 && !strcmp(argv[1], "--run"))
		run_under(argc - 2, argv + 2);
	if (calls < 1) {
		fprintf(stderr, "usage: %s CALLS FILTER...\n", argv[0]);
		return 2;
	}
	/* Before the first line, stdio calls fstat on standard output, which not every filter allows. */
	setvbuf(stdout, NULL, _IOFBF, 1 << 14);
	attach_ns = attach(argc - 2, argv + 2);
	for (int i = 0; i < SLICES; i++)
		for (unsigned int probe = 0; probe < PROBES; probe++)
			ns[probe][i] = slice(probe, calls);
	for (unsigned int probe = 0; probe < PROBES; probe++) {
		qsort(ns[probe], SLICES, sizeof(double), ascending);
		printf("%s %.1f %.1f\n", probes[probe].name, ns[probe][0], ns[probe][SLICES / 2]);
	}
	printf("attach %.0f %.0f\n", attach_ns, attach_ns);
	return 0;
}
