/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a command's time in the kernel goes.
 *
 *   profile samples COMMAND…   runs the command, and meanwhile notes every 50 µs of processor time, on average, which functions are
 *                              being executed. Prints `samples N`; `audit N` and `bpf N`, in or below a function of the kernel's audit,
 *                              or a BPF program or what enters one; then `FUNCTION N` of those functions, in or below it.
 *   profile stats N FILE       examines a file with stat(2) N times. Prints the mean nanoseconds of a call.
 *   profile nothing N          calls restart_syscall(2) N times, which has nothing to restart: the kernel's do_no_restart_syscall
 *                              only returns.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Several periods, each in the same ring, so that samples do not keep step with a loop. */
static const unsigned long periods_ns[] = { 160001, 190027, 220009, 250007 };
#define PERIODS (sizeof(periods_ns) / sizeof(*periods_ns))
/* 16 MiB, for all samples of a command. */
#define RING_PAGES 4096
#define PAGE 4096
#define SYMBOLS_MAX 300000
#define DEPTH_MAX 127

struct symbol {
	unsigned long address;
	char name[64];
	unsigned long samples;
};

enum {
	AUDIT,
	BPF,
	GROUPS
};

static const char *const group_names[GROUPS] = { "audit", "bpf" };

static struct symbol *symbols;
static size_t n_symbols;

static void fail(const char *what)
{
	fprintf(stderr, "profile: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int by_address(const void *a, const void *b)
{
	unsigned long x = ((const struct symbol *)a)->address,
		      y = ((const struct symbol *)b)->address;

	return (x > y) - (x < y);
}

/* Reads the names of functions, those of BPF programs among them. */
static void read_symbols(void)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[512], kind;

	symbols = calloc(SYMBOLS_MAX, sizeof(*symbols));
	if (!file || !symbols)
		fail("/proc/kallsyms");
	while (n_symbols < SYMBOLS_MAX && fgets(line, sizeof(line), file)) {
		struct symbol *symbol = &symbols[n_symbols];

		if (sscanf(line, "%lx %c %63s", &symbol->address, &kind, symbol->name) == 3 &&
		    strchr("tTwW", kind))
			n_symbols++;
	}
	fclose(file);
	qsort(symbols, n_symbols, sizeof(*symbols), by_address);
}

/* The function with this address; NULL in user space. */
static struct symbol *symbol_at(unsigned long address)
{
	size_t low = 0, high = n_symbols;

	if (!n_symbols || address < symbols[0].address || address >= -4095UL)
		return NULL;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (symbols[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	return &symbols[low];
}

static int begins(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

/* Whether this is a BPF program: bpf_prog_TAG_NAME, with sixteen digits. */
static int is_program(const char *name)
{
	const char *tag = name + strlen("bpf_prog_");

	return begins(name, "bpf_prog_") && strspn(tag, "0123456789abcdef") == 16;
}

/* The group of a function, or GROUPS. */
static int group_of(const char *name)
{
	if (begins(name, "audit_") || begins(name, "__audit_"))
		return AUDIT;
	if (is_program(name) || begins(name, "bpf_trampoline_") || begins(name, "__bpf_prog_") ||
	    begins(name, "bpf_trace_run") || begins(name, "__bpf_trace_") ||
	    begins(name, "__traceiter_"))
		return BPF;
	return GROUPS;
}

/* Counts one sample: each group, and each of its functions, once. */
static void count(const __u64 *chain, __u64 length, unsigned long *groups)
{
	struct symbol *seen[DEPTH_MAX];
	int n_seen = 0, in_group[GROUPS] = { 0 };

	for (__u64 i = 0; i < length; i++) {
		struct symbol *symbol = symbol_at(chain[i]);
		int group = symbol ? group_of(symbol->name) : GROUPS, known = 0;

		if (group == GROUPS)
			continue;
		for (int k = 0; k < n_seen; k++)
			known |= seen[k] == symbol;
		if (known || n_seen == DEPTH_MAX)
			continue;
		seen[n_seen++] = symbol;
		symbol->samples++;
		groups[group] += !in_group[group];
		in_group[group] = 1;
	}
}

/* Counts all samples in the ring; each is a header, a length and that many addresses. */
static void count_all(struct perf_event_mmap_page *ring)
{
	const char *data = (const char *)ring + PAGE;
	unsigned long samples = 0, lost = 0, groups[GROUPS] = { 0 };
	static __u64 record[8192];

	for (__u64 at = 0; at < ring->data_head;) {
		const struct perf_event_header *head = (const void *)(data + at);

		memcpy(record, head, head->size);
		if (head->type == PERF_RECORD_SAMPLE) {
			count(record + 2, record[1], groups);
			samples++;
		} else if (head->type == PERF_RECORD_LOST) {
			lost++;
		}
		at += head->size;
	}
	/* The kernel says that samples were lost when there is room again, which nobody makes. */
	if (lost || !samples || ring->data_head + sizeof(record) > RING_PAGES * PAGE) {
		fprintf(stderr, "profile: %lu samples, too many or none\n", samples);
		exit(1);
	}
	printf("samples %lu\n", samples);
	for (int group = 0; group < GROUPS; group++)
		printf("%s %lu\n", group_names[group], groups[group]);
	for (size_t i = 0; i < n_symbols; i++)
		if (symbols[i].samples)
			printf("%s %lu\n", symbols[i].name, symbols[i].samples);
}

/* Begins to sample this processor with one period, into the ring of `first`, or into one of its own if that is -1. */
static int start_sampling(unsigned long period_ns, int first)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = period_ns,
					.sample_type = PERF_SAMPLE_CALLCHAIN,
					.disabled = 1,
					.exclude_callchain_user = 1,
					.exclude_idle = 1 };
	int fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		fail("perf_event_open");
	if (first >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, first))
		fail("PERF_EVENT_IOC_SET_OUTPUT");
	return fd;
}

static int sample(char **command)
{
	struct perf_event_mmap_page *ring;
	int fds[PERIODS], status;
	pid_t child;

	fds[0] = start_sampling(periods_ns[0], -1);
	ring = mmap(NULL, (RING_PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	if (ring == MAP_FAILED)
		fail("mmap");
	for (size_t i = 1; i < PERIODS; i++)
		fds[i] = start_sampling(periods_ns[i], fds[0]);
	for (size_t i = 0; i < PERIODS; i++)
		ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
	child = fork();
	if (child == 0) {
		dup2(open("/dev/null", O_WRONLY), 1);
		execvp(command[0], command);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		fail(command[0]);
	for (size_t i = 0; i < PERIODS; i++)
		ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0);
	read_symbols();
	count_all(ring);
	return 0;
}

static int call_stat(long n, const char *file)
{
	static char room[256];
	long long start = now_ns();

	for (long i = 0; i < n; i++)
		if (syscall(SYS_stat, file, room))
			fail(file);
	printf("%.1f\n", (double)(now_ns() - start) / n);
	return 0;
}

static int call_nothing(long n)
{
	while (n--)
		syscall(SYS_restart_syscall);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "samples"))
		return sample(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "stats"))
		return call_stat(atol(argv[2]), argv[3]);
	if (argc == 3 && !strcmp(argv[1], "nothing"))
		return call_nothing(atol(argv[2]));
	fprintf(stderr, "usage: profile samples COMMAND… | profile stats N FILE | "
			"profile nothing N\n");
	return 2;
}
