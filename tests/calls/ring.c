/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of io_uring. */
#define _GNU_SOURCE
#include "calls.h"
#include <linux/io_uring.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int ring_make(long operation, const long *words)
{
	struct io_uring_params params = { 0 };
	int fd = syscall(SYS_io_uring_setup, 1, &params);
	size_t size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe) + 4096;
	char *rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			   IORING_OFF_SQ_RING);
	struct io_uring_sqe *entry = mmap(NULL, sizeof(*entry), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQES);

	if (fd < 0 || rings == MAP_FAILED || entry == MAP_FAILED)
		return -1;
	/* What runs within io_uring_enter(2) is part of that call's event in the kernel's log. */
	*entry = (struct io_uring_sqe){ .opcode = operation,
					.flags = IOSQE_ASYNC,
					.fd = words[0],
					.addr = words[1],
					.len = words[2],
					.off = words[3],
					.open_flags = words[4],
					.addr3 = words[5] };
	if (operation == IORING_OP_SEND || operation == IORING_OP_SEND_ZC)
		entry->addr_len = words[5];
	((unsigned *)(rings + params.sq_off.array))[0] = 0;
	__atomic_store_n((unsigned *)(rings + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, fd, 1, 0, 0, NULL, 0) != 1)
		return -1;

	/* One that waits is cancelled when the process ends. */
	for (int ms = 0; ms < 50; ms++) {
		if (__atomic_load_n((unsigned *)(rings + params.cq_off.tail), __ATOMIC_ACQUIRE))
			break;
		usleep(1000);
	}
	return 0;
}
