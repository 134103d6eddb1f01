// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* Counts the system calls of all tasks, by entry and number. */
#include "arch.h"
#include "shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A row per entry. Calls with other numbers are in the last place of the row. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * COUNTED_CALLS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

SEC("tp_btf/sys_enter")
int count_call(__u64 *ctx)
{
	__u32 nr = ctx[1], place;
	__u64 *count;

	if (nr >= COUNTED_CALLS)
		nr = COUNTED_CALLS - 1;
	place = nr;
	if (entered_compat(bpf_get_current_task_btf()))
		place += COUNTED_CALLS;
	count = bpf_map_lookup_elem(&counts, &place);
	/* A task that is preempted here may lose a count of another one: no more than a share is wanted. */
	if (count)
		(*count)++;
	return 0;
}
