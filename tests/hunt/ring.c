/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations of io_uring, each in a process of its own: their records have no arguments to tell them apart. */
#include "hunt.h"
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct operation {
	int code;
	const char *name;
	/* It takes the object of its first path away, or makes it. */
	bool takes_first;
	bool has_second;
};

static const struct operation operations[] = {
	{ IORING_OP_OPENAT, "OPENAT" },
	{ IORING_OP_OPENAT2, "OPENAT2" },
	{ IORING_OP_UNLINKAT, "UNLINKAT", true },
	{ IORING_OP_RENAMEAT, "RENAMEAT", true, true },
	{ IORING_OP_MKDIRAT, "MKDIRAT", true },
	{ IORING_OP_SYMLINKAT, "SYMLINKAT", false, true },
	{ IORING_OP_LINKAT, "LINKAT", false, true },
};

/* Submits one operation and waits for its result. */
static int submit(const struct io_uring_sqe *operation)
{
	struct io_uring_params params = { 0 };
	int fd = syscall(SYS_io_uring_setup, 1, &params);
	size_t size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe) + 4096;
	char *rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			   IORING_OFF_SQ_RING);
	struct io_uring_sqe *entry = mmap(NULL, sizeof(*entry), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQES);

	if (fd < 0 || rings == MAP_FAILED || entry == MAP_FAILED)
		return -ENOSYS;
	*entry = *operation;
	((unsigned *)(rings + params.sq_off.array))[0] = 0;
	__atomic_store_n((unsigned *)(rings + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -errno;
	return ((struct io_uring_cqe *)(rings + params.cq_off.cqes))->res;
}

void make_operation(void)
{
	const struct operation *drawn = &ONE_OF(operations);
	struct io_uring_sqe entry = { .opcode = drawn->code, .fd = AT_FDCWD };
	char first[PATH_BYTES] = "", second[PATH_BYTES] = "";
	struct open_how how = { .flags = O_RDWR | O_NONBLOCK };
	pid_t pid;

	draw_path(first, NULL, drawn->takes_first);
	entry.addr = (uintptr_t)first;
	if (drawn->has_second) {
		draw_path(second, NULL, true);
		entry.addr2 = (uintptr_t)second;
	}
	entry.flags = chance(30) ? IOSQE_ASYNC : 0;
	if (drawn->code == IORING_OP_OPENAT)
		entry.open_flags = (chance(50) ? O_RDONLY : O_RDWR) | O_NONBLOCK;
	if (drawn->code == IORING_OP_OPENAT2) {
		entry.len = sizeof(how);
		entry.off = (uintptr_t)&how;
	}
	/* The second descriptor of those that have one. */
	if (drawn->code == IORING_OP_RENAMEAT || drawn->code == IORING_OP_LINKAT)
		entry.len = AT_FDCWD;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int result = submit(&entry);

		printf("%d operation %d %s %s %s = %d (in %s)\n", getpid(), drawn->code,
		       drawn->name, first, second, result, place.cwd);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}
