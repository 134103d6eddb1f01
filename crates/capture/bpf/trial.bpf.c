// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* Does nothing: tells whether this kernel lets programs hook functions. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A function that the kernel has for such tests. */
SEC("fexit/bpf_fentry_test1")
int trial(void *ctx)
{
	return 0;
}
