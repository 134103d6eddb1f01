/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole workloads, each a fixed amount of work: those of UnixBench's kinds, many small files, a walk of
 * a directory tree, an HTTP server, sockets. `bench/run workloads` and tests/vm/workloads-icount run them.
 *
 * usage: loads prepare DIR FILES
 *            creates in DIR the files that the workloads need, among them a tree of FILES files
 *        loads [--gid GID] [--auid UID] DIR WORKLOAD AMOUNT
 *            does AMOUNT units of the workload in DIR and prints WORKLOAD, AMOUNT, elapsed ns and ns of
 *            processor time of all processes of the workload together
 *
 * A workload runs on one processor, so that the scheduler's choice of a processor does not matter.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 1024
#define BLOCKS 2000
#define PIPE_BYTES 512
#define LARGEST_FILE (16 << 10)
#define FILES_PER_DIRECTORY 15
#define PAGE_BYTES 4000

static char data[LARGEST_FILE];
/* The size of blocks that the workload copies. */
static size_t block;

static void fail(const char *what)
{
	fprintf(stderr, "loads: %s: %s\n", what, errno ? strerror(errno) : "not as expected");
	exit(1);
}

static void expect(int is_so, const char *what)
{
	if (!is_so)
		fail(what);
}

/* A pseudorandom number; the sequence is the same in every run. */
static uint32_t next_random(void)
{
	static uint64_t state = 20260101;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 33;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Waits for a child; ends the program if the child failed. */
static void await(pid_t child, const char *what)
{
	int status;

	expect(waitpid(child, &status, 0) == child, what);
	errno = 0;
	expect(status == 0, what);
}

static pid_t begin(void)
{
	pid_t child = fork();

	expect(child >= 0, "fork");
	return child;
}

static void run_program(const char *const argv[])
{
	pid_t child = begin();

	if (child == 0) {
		execvp(argv[0], (char *const *)argv);
		fail(argv[0]);
	}
	await(child, argv[0]);
}

static void write_file(const char *path, int flags, size_t size)
{
	int fd = open(path, O_WRONLY | flags, 0644);

	expect(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0, path);
}

/* UnixBench's mix of system calls that do almost nothing. */
static void syscalls(long amount)
{
	for (long i = 0; i < amount; i++) {
		close(syscall(SYS_dup, 0));
		syscall(SYS_getpid);
		syscall(SYS_getuid);
		syscall(SYS_umask, 022);
	}
}

static void pipe_throughput(long amount)
{
	int ends[2];

	expect(pipe(ends) == 0, "pipe");
	for (long i = 0; i < amount; i++)
		expect(write(ends[1], data, PIPE_BYTES) == PIPE_BYTES &&
			       read(ends[0], data, PIPE_BYTES) == PIPE_BYTES,
		       "pipe");
}

static void bounce(int from, int to, long amount, int begins)
{
	long value = 0;

	for (long i = 0; i < amount; i++) {
		if (begins)
			expect(write(to, &value, sizeof(value)) == sizeof(value), "pipe");
		expect(read(from, &value, sizeof(value)) == sizeof(value), "pipe");
		if (!begins)
			expect(write(to, &value, sizeof(value)) == sizeof(value), "pipe");
	}
}

/* Another process and this one pass a number back and forth. */
static void exchange(const int others[2], const int own[2], long amount)
{
	pid_t child = begin();

	if (child == 0) {
		bounce(others[0], others[1], amount, 0);
		_exit(0);
	}
	bounce(own[0], own[1], amount, 1);
	await(child, "the other process");
}

static void context_switching(long amount)
{
	int there[2], back[2];

	expect(pipe(there) == 0 && pipe(back) == 0, "pipe");
	exchange((int[]){ there[0], back[1] }, (int[]){ back[0], there[1] }, amount);
}

static void process_creation(long amount)
{
	for (long i = 0; i < amount; i++) {
		pid_t child = begin();

		if (child == 0)
			_exit(0);
		await(child, "a process");
	}
}

/* This program executes itself again, with one round fewer left each time. */
static void execl_chain(long amount)
{
	char left[24];

	if (amount == 0)
		exit(0);
	snprintf(left, sizeof(left), "%ld", amount - 1);
	execl("/proc/self/exe", "loads", "execl-next", left, (char *)NULL);
	fail("execl");
}

/* Writes the same blocks of a file again and again. */
static void file_write(long amount)
{
	int fd = open("blocks", O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (long i = 0; i < amount; i++) {
		expect(lseek(fd, 0, SEEK_SET) == 0, "blocks");
		for (int n = 0; n < BLOCKS; n++)
			expect(write(fd, data, BLOCK) == BLOCK, "blocks");
	}
	expect(close(fd) == 0 && unlink("blocks") == 0, "blocks");
}

/* Copies a file again and again, a block at a time; it has as many blocks as UnixBench's. */
static void copy_file(long amount)
{
	static char into[LARGEST_FILE];
	int from = open("copied", O_RDWR | O_CREAT | O_TRUNC, 0644);
	int to = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0644);
	long blocks = block * 125 / 64;

	for (long i = 0; i < blocks; i++)
		expect(write(from, data, block) == (ssize_t)block, "copied");
	for (long i = 0; i < amount; i++) {
		expect(lseek(from, 0, SEEK_SET) == 0 && lseek(to, 0, SEEK_SET) == 0, "copy");
		for (long n = 0; n < blocks; n++)
			expect(read(from, into, block) == (ssize_t)block &&
				       write(to, into, block) == (ssize_t)block,
			       "copy");
	}
	expect(close(from) == 0 && close(to) == 0, "copy");
	expect(unlink("copied") == 0 && unlink("copy") == 0, "copy");
}

/* Work of the processor alone, on strings and numbers, in the manner of Dhrystone. */
static void arithmetic(long amount)
{
	char one[32] = "a text of thirty characters", other[32];
	volatile long sum = 0;

	for (long i = 0; i < amount; i++) {
		memcpy(other, one, sizeof(other));
		other[i % 24] ^= 1;
		sum += strcmp(one, other) > 0 ? sum * 3 / (i % 7 + 1) : i;
	}
}

static void eventfds(long amount)
{
	for (long i = 0; i < amount; i++)
		expect(close(eventfd(0, EFD_CLOEXEC)) == 0, "eventfd");
}

/* A script like UnixBench's: sort, dump, search, count, remove. */
static void shell_scripts(long amount)
{
	static const char script[] =
		"sort -o sorted.$$ words && od sorted.$$ | sort -n >dump.$$ && "
		"grep -c 7 sorted.$$ | tee found.$$ | wc >count.$$ && "
		"rm sorted.$$ dump.$$ found.$$ count.$$";

	for (long i = 0; i < amount; i++)
		run_program((const char *const[]){ "/bin/sh", "-c", script, NULL });
}

static const char *small_path(long i)
{
	static char path[64];

	snprintf(path, sizeof(path), "small/%ld/f%ld", i / 100, i);
	return path;
}

static void read_file(const char *path)
{
	static char into[BLOCK];
	int fd = open(path, O_RDONLY);

	expect(fd >= 0, path);
	while (read(fd, into, sizeof(into)) > 0)
		;
	expect(close(fd) == 0, path);
}

static void make_small(long i)
{
	write_file(small_path(i), O_CREAT | O_EXCL, 500 + next_random() % 9500);
}

/*
 * Work like Postmark's: creates AMOUNT files; as many times reads or extends one and creates or removes
 * one; removes all.
 */
static void small_files(long amount)
{
	char *is_there = calloc(amount, 1);
	char path[64];

	expect(is_there && mkdir("small", 0755) == 0, "small");
	for (long i = 0; i < amount; i++) {
		snprintf(path, sizeof(path), "small/%ld", i / 100);
		expect(i % 100 || mkdir(path, 0755) == 0, path);
		make_small(i);
		is_there[i] = 1;
	}
	for (long n = 0; n < amount; n++) {
		long i = next_random() % amount, j = next_random() % amount;

		if (is_there[i] && n % 2)
			read_file(small_path(i));
		else if (is_there[i])
			write_file(small_path(i), O_APPEND, BLOCK);
		if (is_there[j])
			expect(unlink(small_path(j)) == 0, small_path(j));
		else
			make_small(j);
		is_there[j] = !is_there[j];
	}
	for (long i = 0; i < amount; i++)
		expect(!is_there[i] || unlink(small_path(i)) == 0, small_path(i));
	for (long i = 0; i < amount; i += 100) {
		snprintf(path, sizeof(path), "small/%ld", i / 100);
		expect(rmdir(path) == 0, path);
	}
	expect(rmdir("small") == 0, "small");
	free(is_there);
}

/* Reads the attributes of every file of the tree. */
static void walk(long amount)
{
	for (long i = 0; i < amount; i++)
		run_program((const char *const[]){ "find", "tree", "-size", "+1000k", NULL });
}

/* Reads every file of the tree. The pipe is needed: tar reads no file if its output is /dev/null. */
static void archive(long amount)
{
	for (long i = 0; i < amount; i++)
		run_program((const char *const[]){ "/bin/sh", "-c",
						   "tar -cf - tree | cat >/dev/null", NULL });
}

static void send_page(int to)
{
	char head[128], body[PAGE_BYTES];
	int fd = open("page.html", O_RDONLY), n;
	struct stat found;

	expect(fd >= 0 && fstat(fd, &found) == 0 && read(fd, body, sizeof(body)) == PAGE_BYTES &&
		       close(fd) == 0,
	       "page.html");
	n = snprintf(head, sizeof(head),
		     "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %ld\r\n"
		     "Connection: close\r\n\r\n",
		     (long)found.st_size);
	expect(send(to, head, n, MSG_MORE) == n && send(to, body, PAGE_BYTES, 0) == PAGE_BYTES,
	       "answering");
}

static void serve(int listener, long amount)
{
	char request[512];

	for (long i = 0; i < amount; i++) {
		int client = accept(listener, NULL, NULL);
		size_t have = 0;
		ssize_t n;

		expect(client >= 0, "accept");
		do {
			n = recv(client, request + have, sizeof(request) - 1 - have, 0);
			expect(n > 0, "a request");
			have += n;
			request[have] = 0;
		} while (!strstr(request, "\r\n\r\n"));
		send_page(client);
		close(client);
	}
}

/* A socket with an address of the loopback interface. */
static int bound_socket(int type, struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, type, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	expect(fd >= 0 && bind(fd, (struct sockaddr *)address, size) == 0 &&
		       getsockname(fd, (struct sockaddr *)address, &size) == 0,
	       "a socket");
	return fd;
}

static void connect_to(int fd, const struct sockaddr_in *address)
{
	expect(connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0, "connect");
}

static void get_page(const struct sockaddr_in *server)
{
	static const char request[] =
		"GET /page.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char answer[PAGE_BYTES];
	ssize_t n, have = 0;

	connect_to(fd, server);
	expect(send(fd, request, sizeof(request) - 1, 0) == sizeof(request) - 1, "a request");
	while ((n = recv(fd, answer, sizeof(answer), 0)) > 0)
		have += n;
	errno = 0;
	expect(n == 0 && have > PAGE_BYTES && close(fd) == 0, "an answer");
}

/* A server process and a client, with one connection per page. */
static void http(long amount)
{
	struct sockaddr_in address;
	int listener = bound_socket(SOCK_STREAM, &address);
	pid_t server;

	expect(listen(listener, 16) == 0, "listen");
	server = begin();
	if (server == 0) {
		serve(listener, amount);
		_exit(0);
	}
	for (long i = 0; i < amount; i++)
		get_page(&address);
	await(server, "the server");
}

/* Two sockets of the loopback interface that are connected with each other. */
static void connect_pair(int type, int ends[2])
{
	struct sockaddr_in addresses[2];

	for (int i = 0; i < 2; i++)
		ends[i] = bound_socket(type, &addresses[i]);
	if (type == SOCK_STREAM)
		expect(listen(ends[0], 1) == 0, "listen");
	else
		connect_to(ends[0], &addresses[1]);
	connect_to(ends[1], &addresses[0]);
	if (type == SOCK_STREAM) {
		int listener = ends[0];

		ends[0] = accept(listener, NULL, NULL);
		expect(ends[0] >= 0 && close(listener) == 0, "accept");
	}
}

/* Through a TCP connection. */
static void requests(long amount)
{
	int ends[2];

	connect_pair(SOCK_STREAM, ends);
	exchange((int[]){ ends[0], ends[0] }, (int[]){ ends[1], ends[1] }, amount);
}

/* One process sends packets to itself. */
static void packets(long amount)
{
	char byte = 0;
	int ends[2];

	connect_pair(SOCK_DGRAM, ends);
	for (long i = 0; i < amount; i++)
		expect(send(ends[0], &byte, 1, 0) == 1 && recv(ends[1], &byte, 1, 0) == 1,
		       "a packet");
}

static const struct {
	const char *name;
	void (*run)(long amount);
	size_t block;
} workloads[] = {
	{ "syscall", syscalls, 0 },
	{ "pipe", pipe_throughput, 0 },
	{ "context", context_switching, 0 },
	{ "spawn", process_creation, 0 },
	{ "execl", execl_chain, 0 },
	{ "fswrite", file_write, 0 },
	{ "shell", shell_scripts, 0 },
	{ "find", walk, 0 },
	{ "tar", archive, 0 },
	{ "smallfiles", small_files, 0 },
	{ "http", http, 0 },
	{ "arithmetic", arithmetic, 0 },
	{ "copy256", copy_file, 256 },
	{ "copy1024", copy_file, 1024 },
	{ "copy4096", copy_file, 4096 },
	{ "eventfd", eventfds, 0 },
	{ "requests", requests, 0 },
	{ "packets", packets, 0 },
};

/*
 * Creates the files of the workloads. A directory of the tree has up to FILES_PER_DIRECTORY files and up
 * to 8 directories.
 */
static void prepare(long files)
{
	char path[512];
	FILE *words = fopen("words", "w");

	for (int i = 0; i < 1000; i++)
		expect(words && fprintf(words, "word %u\n", next_random()) > 0, "words");
	expect(fclose(words) == 0, "words");
	write_file("page.html", O_CREAT | O_TRUNC, PAGE_BYTES);
	expect(mkdir("tree", 0755) == 0, "tree");
	for (long i = 0; i < files; i++) {
		long directory = i / FILES_PER_DIRECTORY;
		int n = snprintf(path, sizeof(path), "tree");

		for (; directory > 0; directory = (directory - 1) / 8)
			n += snprintf(path + n, sizeof(path) - n, "/directory%ld",
				      (directory - 1) % 8);
		expect(i % FILES_PER_DIRECTORY || mkdir(path, 0755) == 0 || errno == EEXIST, path);
		snprintf(path + n, sizeof(path) - n, "/source_file_%ld.c", i);
		write_file(path, O_CREAT | O_EXCL, 1 + next_random() % LARGEST_FILE);
	}
}

static void set_login_uid(const char *uid)
{
	int fd = open("/proc/self/loginuid", O_WRONLY);

	expect(fd >= 0 && write(fd, uid, strlen(uid)) == (ssize_t)strlen(uid) && close(fd) == 0,
	       "/proc/self/loginuid");
}

static void set_group(gid_t gid)
{
	expect(setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0, "setresgid");
}

static void stay_on_one_processor(void)
{
	cpu_set_t allowed, one;
	int cpu = 0;

	expect(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "sched_getaffinity");
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	expect(sched_setaffinity(0, sizeof(one), &one) == 0, "sched_setaffinity");
}

static uint64_t in_ns(struct timeval t)
{
	return t.tv_sec * 1000000000ULL + t.tv_usec * 1000ULL;
}

static int measure(void (*run)(long), const char *name, long amount)
{
	uint64_t start = now_ns(), end;
	struct rusage used;
	pid_t child = begin();
	int status;

	if (child == 0) {
		run(amount);
		exit(0);
	}
	expect(wait4(child, &status, 0, &used) == child, "wait4");
	end = now_ns();
	if (status == 0)
		printf("%s\t%ld\t%lu\t%lu\n", name, amount, end - start,
		       in_ns(used.ru_utime) + in_ns(used.ru_stime));
	return status != 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "execl-next"))
		execl_chain(atol(argv[2]));
	memset(data, 'x', sizeof(data));
	if (argc == 4 && !strcmp(argv[1], "prepare")) {
		expect(chdir(argv[2]) == 0, argv[2]);
		prepare(atol(argv[3]));
		return 0;
	}
	for (; argc > 4; argc -= 2, argv += 2) {
		if (!strcmp(argv[1], "--gid"))
			set_group(atoi(argv[2]));
		else if (!strcmp(argv[1], "--auid"))
			set_login_uid(argv[2]);
		else
			break;
	}
	if (argc == 4) {
		expect(chdir(argv[1]) == 0, argv[1]);
		stay_on_one_processor();
		setenv("LC_ALL", "C", 1);
		for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++)
			if (!strcmp(argv[2], workloads[i].name)) {
				block = workloads[i].block;
				return measure(workloads[i].run, argv[2], atol(argv[3]));
			}
	}
	fprintf(stderr,
		"usage: loads prepare DIR FILES | loads [--gid GID] [--auid UID] DIR WORKLOAD AMOUNT\n"
		"workloads:");
	for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++)
		fprintf(stderr, " %s", workloads[i].name);
	fputs("\n", stderr);
	return 2;
}
