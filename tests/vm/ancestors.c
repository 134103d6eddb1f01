// SPDX-License-Identifier: Apache-2.0
/*
 * Makes processes that fork, execute programs, leave orphans and use numbers again, and that tell what they know
 * themselves: each calls fchmodat on /no/such/LABELS:ID.P/ID.P/…, its own number and program first, then those of the
 * processes that it comes from, the nearest first, each with the program by which it made the next one. A call with a
 * mode of LABEL_MODES gives the process, and what it makes later, a label; LABELS has a bit for each that it has.
 *
 *     ancestors COUNT LIVE DIRECTORY
 *
 * Makes about COUNT processes, of which at most LIVE run at a time. In the directory, which is to be empty, are the
 * programs p0 to p7, copies of this one. Prints how many processes there were.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAMS 8
/* Processes that a process tells, itself included. */
#define TOLD 9
#define DEPTH_MAX 60
#define EXECS_MAX 2

struct shared {
	uint64_t next;
	int64_t live;
	uint64_t failed;
};

struct node {
	uint64_t id;
	unsigned program;
	unsigned execs;
	unsigned depth;
	unsigned labels;
	char above[256]; /* "ID.P/ID.P" */
};

static const unsigned LABEL_MODES[] = { 0640, 0604, 0644 };
#define LABELS (sizeof(LABEL_MODES) / sizeof(*LABEL_MODES))

static struct shared *shared;
static uint64_t count;
static int64_t live_max;
static const char *dir;

static void fail(const char *what)
{
	fprintf(stderr, "ancestors: %s: %s\n", what, strerror(errno));
	if (shared)
		__atomic_fetch_add(&shared->failed, 1, __ATOMIC_SEQ_CST);
	_exit(1);
}

static uint64_t chance(uint64_t id, uint64_t what)
{
	uint64_t x = id * 0x9e3779b97f4a7c15ULL + what * 0xbf58476d1ce4e5b9ULL + 1;

	x ^= x >> 31;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 29;
}

/* What `node` and those above it are, for itself and for what it makes. */
static void told(const struct node *node, char *to, size_t size)
{
	unsigned kept = 1;
	char *at;

	snprintf(to, size, "%llu.%u%s%s", (unsigned long long)node->id, node->program,
		 *node->above ? "/" : "", node->above);
	for (at = to; (at = strchr(at, '/')); at++)
		if (kept++ == TOLD) {
			*at = 0;
			return;
		}
}

static void tell(const struct node *node, unsigned mode)
{
	char path[300];
	int len = snprintf(path, sizeof(path), "/no/such/%u:", node->labels);

	told(node, path + len, sizeof(path) - len);
	syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

/* Becomes another program. */
static void become(const struct node *node, unsigned program)
{
	char path[200], name[4], numbers[6][24];
	char *argv[] = { name,	     "node",	 numbers[0], numbers[1],  numbers[2],
			 numbers[3], numbers[4], numbers[5], (char *)dir, (char *)node->above,
			 NULL };

	snprintf(name, sizeof(name), "p%u", program);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(numbers[0], sizeof(numbers[0]), "%llu", (unsigned long long)node->id);
	snprintf(numbers[1], sizeof(numbers[1]), "%u", program);
	snprintf(numbers[2], sizeof(numbers[2]), "%u", node->execs + 1);
	snprintf(numbers[3], sizeof(numbers[3]), "%u", node->depth);
	snprintf(numbers[4], sizeof(numbers[4]), "%llu/%lld", (unsigned long long)count,
		 (long long)live_max);
	snprintf(numbers[5], sizeof(numbers[5]), "%u", node->labels);
	execv(path, argv);
	fail(path);
}

struct other {
	const struct node *node;
	unsigned program;
};

static void *become_there(void *arg)
{
	struct other *other = arg;

	become(other->node, other->program);
	return NULL;
}

static void run(struct node *node);

/* A child of `node`, which has no number yet. */
static struct node child_of(const struct node *node)
{
	struct node child = { .program = node->program,
			      .depth = node->depth + 1,
			      .labels = node->labels };

	told(node, child.above, sizeof(child.above));
	return child;
}

static void make(const struct node *node, uint64_t how)
{
	struct node child = child_of(node);
	pid_t pid;

	if (__atomic_add_fetch(&shared->live, 1, __ATOMIC_SEQ_CST) > live_max) {
		__atomic_fetch_sub(&shared->live, 1, __ATOMIC_SEQ_CST);
		return;
	}
	child.id = __atomic_fetch_add(&shared->next, 1, __ATOMIC_SEQ_CST);
	switch (how % 4) {
	case 0:
		/* A child of the parent, by the kernel's account. */
		pid = node->id ? syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) : fork();
		break;
	case 1:
		/* It executes a program at once. */
		pid = vfork();
		if (!pid)
			become(&child, how / 4 % PROGRAMS);
		break;
	default:
		pid = fork();
	}
	if (!pid)
		run(&child);
	if (pid < 0)
		__atomic_fetch_sub(&shared->live, 1, __ATOMIC_SEQ_CST);
}

static void *make_there(void *node)
{
	make(node, chance(((struct node *)node)->id, 77));
	return NULL;
}

static void make_by_thread(struct node *node)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, make_there, node))
		pthread_join(thread, NULL);
}

/* Tells what the process is, makes others, and ends. */
static void run(struct node *node)
{
	uint64_t id = node->id, first = chance(id, node->execs), i;

	tell(node, 0600);
	i = chance(id, 30 + node->execs);
	if (i % 8 == 0) {
		node->labels |= 1 << i / 8 % LABELS;
		tell(node, LABEL_MODES[i / 8 % LABELS]);
	}
	for (i = 0; i < first % 3 && node->depth < DEPTH_MAX; i++)
		if (__atomic_load_n(&shared->next, __ATOMIC_SEQ_CST) < count)
			make(node, chance(id, 10 * (node->execs + 1) + i));
	if (first / 3 % 8 == 0)
		make_by_thread(node);
	if (first / 24 % 2 == 0 && node->execs < EXECS_MAX) {
		unsigned program = chance(id, 50 + node->execs) % PROGRAMS;
		struct other other = { node, program };
		pthread_t thread;

		if (first / 48 % 4 == 0 && !pthread_create(&thread, NULL, become_there, &other))
			pthread_join(thread, NULL);
		become(node, program);
	}
	if (first / 192 % 2 == 0)
		while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
			;
	__atomic_fetch_sub(&shared->live, 1, __ATOMIC_SEQ_CST);
	_exit(0);
}

static void map(int flags)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/shared", dir);
	fd = open(path, O_RDWR | flags, 0666);
	if (fd < 0 || (flags && ftruncate(fd, sizeof(*shared))))
		fail(path);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		fail(path);
	close(fd);
}

static void copy_programs(void)
{
	char path[200];
	struct stat found;
	unsigned i;

	for (i = 0; i < PROGRAMS; i++) {
		int from = open("/proc/self/exe", O_RDONLY), to;
		off_t done = 0;

		snprintf(path, sizeof(path), "%s/p%u", dir, i);
		to = open(path, O_WRONLY | O_CREAT | O_EXCL, 0755);
		if (from < 0 || to < 0 || fstat(from, &found))
			fail(path);
		while (done < found.st_size)
			if (sendfile(to, from, &done, found.st_size - done) <= 0)
				fail(path);
		close(from);
		close(to);
	}
}

static int first_process(void)
{
	struct node node = { 0 };

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	tell(&node, 0600);
	shared->next = 1;
	while (__atomic_load_n(&shared->next, __ATOMIC_SEQ_CST) < count) {
		uint64_t next = shared->next;

		make(&node, chance(next, 99));
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (shared->live >= live_max)
			waitpid(-1, NULL, 0);
	}
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	tell(&node, 0600);
	printf("%llu processes\n", (unsigned long long)shared->next);
	return shared->failed != 0;
}

int main(int argc, char **argv)
{
	if (argc == 10 && !strcmp(argv[1], "node")) {
		struct node node = { .id = strtoull(argv[2], NULL, 10),
				     .program = atoi(argv[3]),
				     .execs = atoi(argv[4]),
				     .depth = atoi(argv[5]),
				     .labels = atoi(argv[7]) };
		char *slash;

		count = strtoull(argv[6], &slash, 10);
		live_max = atoll(slash + 1);
		dir = argv[8];
		snprintf(node.above, sizeof(node.above), "%s", argv[9]);
		map(0);
		if (!node.id)
			return first_process();
		run(&node);
	}
	if (argc != 4) {
		fprintf(stderr, "usage: ancestors COUNT LIVE DIRECTORY\n");
		return 2;
	}
	count = strtoull(argv[1], NULL, 10);
	live_max = atoll(argv[2]);
	dir = argv[3];
	map(O_CREAT | O_EXCL);
	copy_programs();
	become(&(struct node){ 0 }, 0);
	return 1;
}
