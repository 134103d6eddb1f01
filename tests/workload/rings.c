/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File and network work through io_uring; prints what it did.
 *
 *   workload --rings [--mark GID] MODE DIR        every operation once, inside DIR
 *   workload --rings [--mark GID] --storm N DIR   N rings with operations that are cancelled, linked,
 *                                                 done by workers, or in flight when the ring is
 *                                                 closed
 *   workload --rings --loop OP N                  mean nanoseconds of N operations; OP: nop, read, open
 *   workload --rings --sqpoll-loop OP N           as --loop, but a kernel thread submits them
 *   workload --rings --quickest OP N              as --loop, but the mean of the quickest batch
 *   workload --rings --polled inline|sqpoll DEVICE N   mean nanoseconds of processor time, with the
 *                                                 kernel's thread, of N random reads of 4 KiB from a block
 *                                                 device with poll queues; 128 are in flight
 *
 * MODE: `inline` submits from this thread; `worker` sets IOSQE_ASYNC on every operation, so that a
 * kernel worker does it; `sqpoll` lets a kernel thread submit it.
 *
 * Before its first operation the program sets its real group to GID (default MARK_GID), by which
 * rules select it.
 *
 * Output, tab-separated: mode, pid, operation, result and text; the text is a path, two paths, a
 * socket address in hexadecimal, or `-`. With --storm: the operation and how many of it were submitted.
 */
#include "workload.h"
#include <arpa/inet.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ENTRIES 256
/* Operations that a loop submits at a time. */
#define BATCH 128
/* Polled reads: bytes of each, and how many are submitted, and waited for, at a time. */
#define BLOCK 4096
#define POLLED_BATCH 32
/* Not in the headers of Debian 12. */
#define OP_BIND 56

struct ring {
	int fd;
	unsigned flags;
	unsigned *sq_head, *sq_tail, *sq_mask, *sq_flags, *sq_array;
	unsigned *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	unsigned waiting; /* filled in, not submitted */
	void *map;
	size_t map_len, sqes_len;
};

static const char *mode = "inline";
static __u8 sqe_flags;

static void fail(const char *what)
{
	fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void ring_open(struct ring *ring, unsigned flags)
{
	struct io_uring_params params = { .flags = flags, .sq_thread_idle = 1000 };
	size_t sq, cq;

	ring->fd = syscall(SYS_io_uring_setup, ENTRIES, &params);
	if (ring->fd < 0)
		fail("io_uring_setup");
	ring->flags = flags;
	ring->waiting = 0;
	sq = params.sq_off.array + params.sq_entries * sizeof(unsigned);
	cq = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	ring->map_len = sq > cq ? sq : cq;
	ring->map = mmap(NULL, ring->map_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			 ring->fd, IORING_OFF_SQ_RING);
	ring->sqes_len = params.sq_entries * sizeof(struct io_uring_sqe);
	ring->sqes = mmap(NULL, ring->sqes_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			  ring->fd, IORING_OFF_SQES);
	if (ring->map == MAP_FAILED || ring->sqes == MAP_FAILED)
		fail("mmap of a ring");
	ring->sq_head = ring->map + params.sq_off.head;
	ring->sq_tail = ring->map + params.sq_off.tail;
	ring->sq_mask = ring->map + params.sq_off.ring_mask;
	ring->sq_flags = ring->map + params.sq_off.flags;
	ring->sq_array = ring->map + params.sq_off.array;
	ring->cq_head = ring->map + params.cq_off.head;
	ring->cq_tail = ring->map + params.cq_off.tail;
	ring->cq_mask = ring->map + params.cq_off.ring_mask;
	ring->cqes = ring->map + params.cq_off.cqes;
}

static void ring_close(struct ring *ring)
{
	munmap(ring->map, ring->map_len);
	munmap(ring->sqes, ring->sqes_len);
	close(ring->fd);
}

/* The next entry of the submission queue, cleared; ring_submit() submits it. */
static struct io_uring_sqe *entry(struct ring *ring, int op)
{
	unsigned tail = *ring->sq_tail + ring->waiting++, index = tail & *ring->sq_mask;
	struct io_uring_sqe *sqe = &ring->sqes[index];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op;
	sqe->flags = sqe_flags;
	sqe->user_data = op;
	ring->sq_array[index] = index;
	return sqe;
}

static void ring_submit(struct ring *ring, unsigned wait)
{
	unsigned n = ring->waiting, flags = wait ? IORING_ENTER_GETEVENTS : 0;

	ring->waiting = 0;
	__atomic_store_n(ring->sq_tail, *ring->sq_tail + n, __ATOMIC_RELEASE);
	if (ring->flags & IORING_SETUP_SQPOLL) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(ring->sq_flags, __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP)
			flags |= IORING_ENTER_SQ_WAKEUP;
	}
	while (syscall(SYS_io_uring_enter, ring->fd, n, wait, flags, NULL, 0) < 0)
		if (errno != EINTR)
			fail("io_uring_enter");
}

/* Waits for the next completion and returns its result. */
static int completion(struct ring *ring, __u64 *user_data)
{
	unsigned head = *ring->cq_head;
	struct io_uring_cqe *cqe;
	int res;

	while (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		if (syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) <
			    0 &&
		    errno != EINTR)
			fail("io_uring_enter");
	cqe = &ring->cqes[head & *ring->cq_mask];
	res = cqe->res;
	if (user_data)
		*user_data = cqe->user_data;
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return res;
}

/* Submits the one entry that was filled in, and prints and returns its result. */
static int done(struct ring *ring, const char *op, const char *form, ...)
{
	va_list args;
	int res;

	ring_submit(ring, 1);
	res = completion(ring, NULL);
	printf("%s\t%d\t%s\t%d\t", mode, getpid(), op, res);
	va_start(args, form);
	vprintf(form, args);
	va_end(args);
	putchar('\n');
	return res;
}

static void path_entry(struct ring *ring, int op, const char *path, unsigned len, unsigned flags)
{
	struct io_uring_sqe *sqe = entry(ring, op);

	sqe->fd = AT_FDCWD;
	sqe->addr = (uintptr_t)path;
	sqe->len = len;
	sqe->open_flags = flags;
}

static void two_paths(struct ring *ring, int op, const char *from, const char *to)
{
	struct io_uring_sqe *sqe = entry(ring, op);

	sqe->fd = AT_FDCWD;
	sqe->addr = (uintptr_t)from;
	sqe->addr2 = (uintptr_t)to;
	sqe->len = (unsigned)AT_FDCWD;
	if (op == IORING_OP_SYMLINKAT)
		sqe->len = 0;
}

static void buffer_entry(struct ring *ring, int op, int fd, void *buffer, unsigned len)
{
	struct io_uring_sqe *sqe = entry(ring, op);

	sqe->fd = fd;
	sqe->addr = (uintptr_t)buffer;
	sqe->len = len;
}

static int open_path(struct ring *ring, const char *path, int flags)
{
	path_entry(ring, IORING_OP_OPENAT, path, 0600, flags);
	return done(ring, "openat", "%s", path);
}

static void close_fd(struct ring *ring, int fd)
{
	entry(ring, IORING_OP_CLOSE)->fd = fd;
	done(ring, "close", "-");
}

static void file_work(struct ring *ring, const char *dir)
{
	char file[4200], other[4200], link[4200], hard[4200], sub[4200], missing[4200], text[16];
	struct open_how how = { .flags = O_RDONLY };
	struct io_uring_sqe *sqe;
	int fd;

	snprintf(file, sizeof(file), "%s/%s.file", dir, mode);
	snprintf(other, sizeof(other), "%s/%s.other", dir, mode);
	snprintf(link, sizeof(link), "%s/%s.link", dir, mode);
	snprintf(hard, sizeof(hard), "%s/%s.hard", dir, mode);
	snprintf(sub, sizeof(sub), "%s/%s.dir", dir, mode);
	snprintf(missing, sizeof(missing), "%s/%s.missing", dir, mode);
	fd = open_path(ring, file, O_CREAT | O_RDWR);
	buffer_entry(ring, IORING_OP_WRITE, fd, "through a ring", 14);
	done(ring, "write", "-");
	buffer_entry(ring, IORING_OP_READ, fd, text, sizeof(text));
	done(ring, "read", "-");
	close_fd(ring, fd);
	open_path(ring, missing, O_RDONLY);
	sqe = entry(ring, IORING_OP_OPENAT2);
	sqe->fd = AT_FDCWD;
	sqe->addr = (uintptr_t)file;
	sqe->len = sizeof(how);
	sqe->addr2 = (uintptr_t)&how;
	fd = done(ring, "openat2", "%s", file);
	close_fd(ring, fd);
	two_paths(ring, IORING_OP_LINKAT, file, hard);
	done(ring, "linkat", "%s %s", file, hard);
	two_paths(ring, IORING_OP_RENAMEAT, file, other);
	done(ring, "renameat", "%s %s", file, other);
	two_paths(ring, IORING_OP_SYMLINKAT, other, link);
	done(ring, "symlinkat", "%s %s", other, link);
	path_entry(ring, IORING_OP_MKDIRAT, sub, 0700, 0);
	done(ring, "mkdirat", "%s", sub);
	path_entry(ring, IORING_OP_UNLINKAT, sub, 0, AT_REMOVEDIR);
	done(ring, "unlinkat", "%s", sub);
	path_entry(ring, IORING_OP_UNLINKAT, link, 0, 0);
	done(ring, "unlinkat", "%s", link);
	path_entry(ring, IORING_OP_UNLINKAT, hard, 0, 0);
	done(ring, "unlinkat", "%s", hard);
	path_entry(ring, IORING_OP_UNLINKAT, other, 0, 0);
	done(ring, "unlinkat", "%s", other);
	path_entry(ring, IORING_OP_UNLINKAT, missing, 0, 0);
	done(ring, "unlinkat", "%s", missing);
}

/* Whether this kernel has the bind operation, which Linux has since 6.11. */
static bool has_bind(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	if (uname(&name) || sscanf(name.release, "%d.%d", &major, &minor) != 2)
		fail("uname");
	return major > 6 || (major == 6 && minor >= 11);
}

/* A socket that listens on loopback; `address` receives its address. */
static int listener(struct sockaddr_in *address)
{
	socklen_t len = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (void *)address, len) || listen(fd, 8) ||
	    getsockname(fd, (void *)address, &len))
		fail("listening on loopback");
	return fd;
}

static void net_work(struct ring *ring)
{
	char hex[64], text[8];
	struct sockaddr_in address;
	int server = listener(&address), client, accepted, ends[2];
	struct iovec iov = { "second", 6 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct io_uring_sqe *sqe;

	for (size_t i = 0; i < sizeof(address); i++)
		sprintf(hex + 2 * i, "%02X", ((unsigned char *)&address)[i]);
	sqe = entry(ring, IORING_OP_SOCKET);
	sqe->fd = AF_INET;
	sqe->off = SOCK_STREAM;
	client = done(ring, "socket", "-");
	if (client >= 0 && has_bind()) {
		struct sockaddr_in any = { .sin_family = AF_INET };

		sqe = entry(ring, OP_BIND);
		sqe->fd = client;
		sqe->addr = (uintptr_t)&any;
		sqe->addr2 = sizeof(any);
		done(ring, "bind", "-");
	}
	sqe = entry(ring, IORING_OP_CONNECT);
	sqe->fd = client;
	sqe->addr = (uintptr_t)&address;
	sqe->off = sizeof(address);
	done(ring, "connect", "%s", hex);
	entry(ring, IORING_OP_ACCEPT)->fd = server;
	accepted = done(ring, "accept", "-");
	buffer_entry(ring, IORING_OP_SEND, client, "first", 5);
	done(ring, "send", "-");
	sqe = entry(ring, IORING_OP_SENDMSG);
	sqe->fd = client;
	sqe->addr = (uintptr_t)&message;
	sqe->len = 1;
	done(ring, "sendmsg", "-");
	buffer_entry(ring, IORING_OP_RECV, accepted, text, 5);
	done(ring, "recv", "-");
	if (pipe2(ends, O_CLOEXEC))
		fail("pipe2");
	sqe = entry(ring, IORING_OP_SPLICE);
	sqe->fd = ends[1];
	sqe->off = -1;
	sqe->splice_fd_in = accepted;
	sqe->splice_off_in = -1;
	sqe->len = 6;
	done(ring, "splice", "-");
	close_fd(ring, client);
	close_fd(ring, accepted);
	close(ends[0]);
	close(ends[1]);
	close(server);
}

static double clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static double now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Fills in the next entry with one of the loop's operations. */
static void loop_entry(struct ring *ring, const char *op, int zero, char *buffer)
{
	struct io_uring_sqe *sqe;

	if (!strcmp(op, "open")) {
		path_entry(ring, IORING_OP_OPENAT, "/dev/null", 0, O_RDONLY);
	} else if (!strcmp(op, "read")) {
		sqe = entry(ring, IORING_OP_READ);
		sqe->fd = zero;
		sqe->addr = (unsigned long)buffer;
		sqe->len = 512;
	} else {
		entry(ring, IORING_OP_NOP);
	}
}

/*
 * Does `n` operations, a batch at a time; descriptors are closed by system call.
 * Prints the mean nanoseconds of an operation, of all batches or of the quickest.
 */
static int loop(unsigned flags, const char *op, long n, bool quickest)
{
	double start, batch, took, best = 0;
	static char buffer[512];
	bool opens = !strcmp(op, "open");
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct ring ring;

	if (zero < 0)
		fail("/dev/zero");
	ring_open(&ring, flags);
	start = now_ns();
	for (long i = 0; i < n; i += BATCH) {
		batch = now_ns();
		for (int k = 0; k < BATCH; k++)
			loop_entry(&ring, op, zero, buffer);
		ring_submit(&ring, BATCH);
		for (int k = 0; k < BATCH; k++) {
			int res = completion(&ring, NULL);

			if (res < 0) {
				fprintf(stderr, "workload: %s: %s\n", op, strerror(-res));
				return 1;
			}
			if (opens)
				close(res);
		}
		took = now_ns() - batch;
		if (!i || took < best)
			best = took;
	}
	printf("%.1f\n", quickest ? best / BATCH : (now_ns() - start) / n);
	return 0;
}

/* Takes all completions; each frees its buffer. */
static unsigned polled_reap(struct ring *ring, unsigned *idle, unsigned n_idle)
{
	unsigned head = *ring->cq_head;

	while (head != __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
		struct io_uring_cqe *cqe = &ring->cqes[head++ & *ring->cq_mask];

		if (cqe->res != BLOCK) {
			errno = cqe->res < 0 ? -cqe->res : EIO;
			fail("a polled read");
		}
		idle[n_idle++] = cqe->user_data;
	}
	__atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
	return n_idle;
}

/* Keeps BATCH random reads in flight until `n` are done. */
static int polled(unsigned flags, const char *device, long n)
{
	static char buffers[BATCH][BLOCK] __attribute__((aligned(BLOCK)));
	int fd = open(device, O_RDONLY | O_DIRECT | O_CLOEXEC);
	unsigned idle[BATCH], n_idle = 0, in_flight, wanted;
	long submitted = 0;
	struct ring ring;
	__u64 size;
	double start;

	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &size))
		fail(device);
	while (n_idle < BATCH) {
		idle[n_idle] = n_idle;
		n_idle++;
	}
	ring_open(&ring, flags | IORING_SETUP_IOPOLL);
	start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	while (submitted < n || n_idle < BATCH) {
		while (n_idle && submitted < n && ring.waiting < POLLED_BATCH) {
			unsigned buffer = idle[--n_idle];
			struct io_uring_sqe *sqe = entry(&ring, IORING_OP_READ);

			sqe->fd = fd;
			sqe->addr = (unsigned long)buffers[buffer];
			sqe->len = BLOCK;
			sqe->off = (__u64)random() % (size / BLOCK) * BLOCK;
			sqe->user_data = buffer;
			submitted++;
		}
		in_flight = BATCH - n_idle;
		wanted = in_flight < POLLED_BATCH ? in_flight : POLLED_BATCH;
		ring_submit(&ring, n_idle && submitted < n ? 0 : wanted);
		n_idle = polled_reap(&ring, idle, n_idle);
	}
	printf("%.1f\n", (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / n);
	return 0;
}

/* Operations that do not end as usual: cancelled, linked, failed, cut off by the ring's end. */
static int storm(long n, const char *dir)
{
	char path[4200], text[8];
	long opens = 0;

	snprintf(path, sizeof(path), "%s/storm", dir);
	for (long i = 0; i < n; i++) {
		struct io_uring_sqe *sqe;
		struct ring ring;
		int ends[2];

		if (pipe2(ends, O_CLOEXEC))
			fail("pipe2");
		ring_open(&ring, i % 3 ? 0 : IORING_SETUP_SQPOLL);
		/* A read that only its cancellation or the end of the ring ends. */
		buffer_entry(&ring, IORING_OP_READ, ends[0], text, sizeof(text));
		/* Two linked operations: the second is not started if the first fails. */
		path_entry(&ring, IORING_OP_OPENAT, "/nowhere/at/all", 0, O_RDONLY);
		ring.sqes[(*ring.sq_tail + ring.waiting - 1) & *ring.sq_mask].flags |=
			IOSQE_IO_LINK;
		path_entry(&ring, IORING_OP_OPENAT, "/dev/null", 0, O_RDONLY);
		/* An operation that a worker does. */
		path_entry(&ring, IORING_OP_OPENAT, path, 0600, O_CREAT | O_RDWR);
		ring.sqes[(*ring.sq_tail + ring.waiting - 1) & *ring.sq_mask].flags |= IOSQE_ASYNC;
		opens += 3;
		if (i % 2) {
			sqe = entry(&ring, IORING_OP_ASYNC_CANCEL);
			sqe->addr = IORING_OP_READ;
		}
		ring_submit(&ring, 0);
		if (i % 4) {
			int more = 3 + (i % 2 ? 2 : 0);

			while (more--) {
				__u64 op;
				int res = completion(&ring, &op);

				if (op == IORING_OP_OPENAT && res >= 0)
					close(res);
			}
		}
		/* An entry that the kernel's thread has not taken is never submitted. */
		while (__atomic_load_n(ring.sq_head, __ATOMIC_ACQUIRE) != *ring.sq_tail)
			sched_yield();
		ring_close(&ring);
		close(ends[0]);
		close(ends[1]);
	}
	printf("openat\t%ld\n", opens);
	return 0;
}

int rings_main(int argc, char **argv)
{
	struct ring ring;
	long mark = MARK_GID;
	unsigned flags = 0;

	argc--;
	argv++;
	if (argc == 4 && !strcmp(argv[1], "--loop"))
		return loop(0, argv[2], atol(argv[3]), false);
	if (argc == 4 && !strcmp(argv[1], "--quickest"))
		return loop(0, argv[2], atol(argv[3]), true);
	if (argc == 4 && !strcmp(argv[1], "--sqpoll-loop"))
		return loop(IORING_SETUP_SQPOLL, argv[2], atol(argv[3]), false);
	if (argc == 5 && !strcmp(argv[1], "--polled"))
		return polled(strcmp(argv[2], "sqpoll") ? 0 : IORING_SETUP_SQPOLL, argv[3],
			      atol(argv[4]));
	if (argc > 3 && !strcmp(argv[1], "--mark")) {
		mark = atol(argv[2]);
		argc -= 2;
		argv += 2;
	}
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	if (argc != 3 && !(argc == 4 && !strcmp(argv[1], "--storm"))) {
		fprintf(stderr,
			"usage: workload --rings [--mark GID] inline|worker|sqpoll DIR\n"
			"       workload --rings [--mark GID] --storm N DIR\n"
			"       workload --rings --loop|--sqpoll-loop|--quickest nop|read|open N\n"
			"       workload --rings --polled inline|sqpoll DEVICE N\n");
		return 2;
	}
	if (syscall(SYS_setregid, mark, -1))
		fail("setregid");
	if (argc == 4)
		return storm(atol(argv[2]), argv[3]);
	mode = argv[1];
	if (!strcmp(mode, "sqpoll"))
		flags = IORING_SETUP_SQPOLL;
	if (!strcmp(mode, "worker"))
		sqe_flags = IOSQE_ASYNC;
	ring_open(&ring, flags);
	file_work(&ring, argv[2]);
	net_work(&ring);
	ring_close(&ring);
	return 0;
}
