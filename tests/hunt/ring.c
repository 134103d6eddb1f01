/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations of io_uring, each in a process of its own: their records have no arguments to tell them apart. */
#include "../one_operation.h"
#include "hunt.h"
#include <linux/openat2.h>
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
	struct one_ring ring;

	if (!one_ring_make(&ring, operation))
		return -ENOSYS;
	return one_ring_submit(&ring, 1) < 0 ? -errno : one_ring_result(&ring);
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
