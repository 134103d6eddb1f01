/* SPDX-License-Identifier: Apache-2.0 */
/* Many equal calls: to count losses, and to measure the cost of a call. */
#include "workload.h"
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static const struct {
	const char *name;
	long nr, args[3];
} counted[] = {
	{ "getppid", SYS_getppid, { 0 } },
	{ "getuid", SYS_getuid, { 0 } },
	{ "openat", SYS_openat, { AT_FDCWD, (long)"/no/such/file", O_RDONLY } },
	{ "mkdir", SYS_mkdir, { (long)"/no/such/directory", 0700 } },
	{ "kill", SYS_kill, { 0x3ffffff, 0 } },
};

struct batch {
	pthread_t thread;
	int call;
	unsigned long calls;
};

static void *make_calls(void *arg)
{
	const struct batch *batch = arg;
	const long *a = counted[batch->call].args, nr = counted[batch->call].nr;

	for (unsigned long i = 0; i < batch->calls; i++)
		raw(nr, a[0], a[1], a[2], 0, 0, 0);
	return NULL;
}

/* Makes the calls and prints `calls N in_ns T pid P`, where N is the sum over all threads. */
static int run_batches(int call_index, unsigned long calls, int threads)
{
	struct batch *batch = calloc(threads, sizeof(*batch));
	uint64_t start = now_ns();

	for (int i = 0; i < threads; i++) {
		batch[i] = (struct batch){ .call = call_index, .calls = calls / threads };
		if (i == 0)
			batch[i].calls += calls % threads;
		else if (pthread_create(&batch[i].thread, NULL, make_calls, &batch[i])) {
			fprintf(stderr, "workload: cannot start thread %d\n", i);
			exit(1);
		}
	}
	make_calls(&batch[0]);
	for (int i = 1; i < threads; i++)
		pthread_join(batch[i].thread, NULL);
	printf("calls %lu in_ns %lu pid %d\n", calls, (unsigned long)(now_ns() - start), getpid());
	free(batch);
	return 0;
}

/* As strtoul, but a text that is not a number ends the program. */
static unsigned long number(const char *option, const char *text)
{
	char *stop;
	unsigned long value = strtoul(text, &stop, 10);

	if (*text == 0 || *stop) {
		fprintf(stderr, "workload: %s takes a number, not '%s'\n", option, text);
		exit(2);
	}
	return value;
}

int count_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", 1, NULL, 'n' }, { "threads", 1, NULL, 't' }, { "child", 0, NULL, 'c' },
		{ "mark", 1, NULL, 'm' },  { NULL, 0, NULL, 0 },
	};
	unsigned long calls = 0, threads = 1;
	bool in_child = false;
	long mark = -1;
	int option, status = 0;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			calls = number("--count", optarg);
			break;
		case 't':
			threads = number("--threads", optarg);
			break;
		case 'c':
			in_child = true;
			break;
		case 'm':
			mark = number("--mark", optarg);
			break;
		default:
			return 2;
		}
	}
	if (optind != argc - 1 || threads == 0)
		goto usage;
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
		if (strcmp(counted[i].name, argv[optind]))
			continue;
		if (mark >= 0 && setresgid(mark, -1, -1)) {
			perror("workload: setresgid");
			return 1;
		}
		if (!in_child || fork() == 0)
			return run_batches(i, calls, threads);
		wait(&status);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
usage:
	fprintf(stderr, "usage: workload --count N [--threads T] [--child] [--mark GID] CALL\n"
			"CALL: getppid, getuid, openat, mkdir, kill\n");
	return 2;
}

enum probe {
	NULL_CALL,
	READ,
	WRITE,
	STAT,
	FSTAT,
	OPEN_CLOSE,
	PROBES
};

static const char *const probe_names[] = { "null", "read", "write", "stat", "fstat", "open+close" };

static uint64_t time_probe(enum probe probe, long calls, long zero, long null, const char *file)
{
	struct stat st;
	char byte = 0;
	uint64_t start = now_ns();

#define REPEAT(statement)                \
	for (long i = 0; i < calls; i++) \
	statement
	switch (probe) {
	case NULL_CALL:
		REPEAT(raw(SYS_getppid, 0, 0, 0, 0, 0, 0));
		break;
	case READ:
		REPEAT(raw(SYS_read, zero, (long)&byte, 1, 0, 0, 0));
		break;
	case WRITE:
		REPEAT(raw(SYS_write, null, (long)&byte, 1, 0, 0, 0));
		break;
	case STAT:
		REPEAT(raw(SYS_stat, (long)file, (long)&st, 0, 0, 0, 0));
		break;
	case FSTAT:
		REPEAT(raw(SYS_fstat, zero, (long)&st, 0, 0, 0, 0));
		break;
	default:
		REPEAT(raw(SYS_close, raw(SYS_open, (long)file, O_RDONLY, 0, 0, 0, 0), 0, 0, 0, 0,
			   0));
	}
#undef REPEAT
	return now_ns() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Prints for each probe, tab-separated: name, minimum and median of all rounds in ns per call. */
int latency_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "latency", 0, NULL, 'l' }, { "rounds", 1, NULL, 'r' }, { "calls", 1, NULL, 'n' },
		{ "file", 1, NULL, 'f' },    { NULL, 0, NULL, 0 },
	};
	unsigned long rounds = 15, calls = 20000;
	const char *file = "/usr/bin/env";
	long zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'r')
			rounds = number("--rounds", optarg);
		else if (option == 'n')
			calls = number("--calls", optarg);
		else if (option == 'f')
			file = optarg;
		else if (option != 'l')
			return 2;
	}
	if (rounds == 0 || calls == 0 || zero < 0 || null < 0 || access(file, R_OK)) {
		fprintf(stderr, "usage: workload --latency [--rounds R] [--calls N] [--file PATH]\n"
				"/dev/zero, /dev/null and PATH must exist\n");
		return 2;
	}
	double *ns = calloc(rounds * PROBES, sizeof(*ns));

	for (unsigned long round = 0; round < rounds; round++)
		for (int probe = 0; probe < PROBES; probe++)
			ns[probe * rounds + round] =
				(double)time_probe(probe, calls, zero, null, file) / calls;
	for (int probe = 0; probe < PROBES; probe++) {
		qsort(ns + probe * rounds, rounds, sizeof(*ns), by_value);
		printf("%s\t%.1f\t%.1f\n", probe_names[probe], ns[probe * rounds],
		       ns[probe * rounds + rounds / 2]);
	}
	free(ns);
	return 0;
}
