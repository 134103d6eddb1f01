// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Records which system calls a program and its descendants make: counts per
 * call and, for calls that user space chooses, the values of the argument that
 * tells what the call is for. User space reads the maps at the end.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "arch.h"
#include "shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The tasks whose calls are recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u8);
} recorded SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct call_key);
	__type(value, __u64);
} counts SEC(".maps");

/* Index of the argument that tells what a call is for. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct call_key);
	__type(value, __u32);
} telling SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct value_key);
	__type(value, __u64);
} values SEC(".maps");

__u64 missed[LEARN_MISSED_KINDS];

static __always_inline void count(void *map, const void *key, enum learn_missed what)
{
	const __u64 one = 1;
	__u64 *have = bpf_map_lookup_elem(map, key);

	if (!have && bpf_map_update_elem(map, key, &one, BPF_NOEXIST) == 0)
		return;
	have = bpf_map_lookup_elem(map, key);
	if (have)
		__sync_fetch_and_add(have, 1);
	else
		__sync_fetch_and_add(&missed[what], 1);
}

SEC("tp_btf/sys_enter")
int learn_call(__u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	struct task_struct *task = bpf_get_current_task_btf();
	struct value_key key = {};
	__u64 args[6];
	bool compat;
	__u32 *arg;

	if (!bpf_task_storage_get(&recorded, task, 0, 0))
		return 0;
	compat = entered_compat(task);
	key.call.arch = arch_audit(compat);
	key.call.nr = ctx[1];
	count(&counts, &key.call, LEARN_MISSED_CALLS);
	arg = bpf_map_lookup_elem(&telling, &key.call);
	if (!arg)
		return 0;
	call_args(args, regs, compat);
	/* The index must be a constant for the verifier. */
	switch (*arg) {
	case 0:
		key.value = args[0];
		break;
	case 1:
		key.value = args[1];
		break;
	case 2:
		key.value = args[2];
		break;
	default:
		key.value = args[3];
	}
	if (compat)
		key.value = (__u32)key.value;
	count(&values, &key, LEARN_MISSED_VALUES);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int learn_fork(__u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];

	if (bpf_task_storage_get(&recorded, parent, 0, 0) &&
	    !bpf_task_storage_get(&recorded, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		__sync_fetch_and_add(&missed[LEARN_MISSED_TASKS], 1);
	return 0;
}
