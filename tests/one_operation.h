/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of io_uring for a single operation. */
#ifndef ONE_OPERATION_H
#define ONE_OPERATION_H

#include <linux/io_uring.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct one_ring {
	int fd;
	char *rings;
	struct io_uring_params params;
};

/* Makes a ring with the operation in it; false if there is no io_uring. */
static inline bool one_ring_make(struct one_ring *ring, const struct io_uring_sqe *operation)
{
	struct io_uring_params *params = &ring->params;
	struct io_uring_sqe *entry;
	size_t size;

	*params = (struct io_uring_params){ 0 };
	ring->fd = syscall(SYS_io_uring_setup, 1, params);
	size = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe) + 4096;
	ring->rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
			   IORING_OFF_SQ_RING);
	entry = mmap(NULL, sizeof(*entry), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		     ring->fd, IORING_OFF_SQES);
	if (ring->fd < 0 || ring->rings == MAP_FAILED || entry == MAP_FAILED)
		return false;

	*entry = *operation;
	((unsigned *)(ring->rings + params->sq_off.array))[0] = 0;
	__atomic_store_n((unsigned *)(ring->rings + params->sq_off.tail), 1, __ATOMIC_RELEASE);
	return true;
}

/* Submits it, and waits for so many results: 0 or 1. */
static inline long one_ring_submit(struct one_ring *ring, unsigned results)
{
	return syscall(SYS_io_uring_enter, ring->fd, 1, results, IORING_ENTER_GETEVENTS, NULL, 0);
}

static inline bool one_ring_has_result(struct one_ring *ring)
{
	return __atomic_load_n((unsigned *)(ring->rings + ring->params.cq_off.tail),
			       __ATOMIC_ACQUIRE);
}

static inline int one_ring_result(struct one_ring *ring)
{
	return ((struct io_uring_cqe *)(ring->rings + ring->params.cq_off.cqes))->res;
}

#endif
