// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* Copies kernel memory, so that user space can read a table of the kernel. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u8 copy[PEEK_BYTES] SEC(".bss.copy");

/* Arguments: address and number of bytes. Returns 0 if the memory was copied. */
SEC("raw_tp")
int peek(__u64 *ctx)
{
	__u64 len = ctx[1];

	if (len > PEEK_BYTES)
		return 1;
	return bpf_probe_read_kernel(copy, len, (const void *)ctx[0]) != 0;
}

/* Copies the address of the calling thread's structure. */
SEC("raw_tp")
int current_task(__u64 *ctx)
{
	*(__u64 *)copy = bpf_get_current_task();
	return 0;
}
