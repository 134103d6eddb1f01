/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of io_uring. */
#define _GNU_SOURCE
#include "../one_operation.h"
#include "calls.h"

int ring_make(long operation, const long *words)
{
	/* What runs within io_uring_enter(2) is part of that call's event in the kernel's log. */
	struct io_uring_sqe entry = { .opcode = operation,
				      .flags = IOSQE_ASYNC,
				      .fd = words[0],
				      .addr = words[1],
				      .len = words[2],
				      .off = words[3],
				      .open_flags = words[4],
				      .addr3 = words[5] };
	struct one_ring ring;

	if (operation == IORING_OP_SEND || operation == IORING_OP_SEND_ZC)
		entry.addr_len = words[5];
	if (!one_ring_make(&ring, &entry) || one_ring_submit(&ring, 0) != 1)
		return -1;

	/* One that waits is cancelled when the process ends. */
	for (int ms = 0; ms < 50 && !one_ring_has_result(&ring); ms++)
		usleep(1000);
	return 0;
}
