// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Records the calls that filters deny to a program and its descendants. The kernel runs filters before the tracepoint
 * at the beginning of a call and leaves that one out if they deny the call; the one at its end it reaches all the same.
 * Nothing changes for the program.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "arch.h"
#include "follow.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SIGSYS 31
/* SIGNAL_GROUP_EXIT of signal_struct.flags: linux/sched/signal.h. */
#define SIGNAL_GROUP_EXIT 4

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct denial_key);
	__type(value, struct denial_value);
} denials SEC(".maps");

/* Bits as in DENIAL_ALLOWED_TOO; calls without an entry have none. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct call_key);
	__type(value, __u8);
} looked_at SEC(".maps");

/* A denial is larger than what is left of the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct denial_value);
} scratch SEC(".maps");

static __always_inline void report(struct task_struct *task, struct pt_regs *regs,
				   struct denial_key *key)
{
	const __u32 first = 0;
	struct denial_value *value = bpf_map_lookup_elem(&denials, key);
	bool compat = entered_compat(task);
	int i;

	if (value) {
		__sync_fetch_and_add(&value->count, 1);
		return;
	}
	value = bpf_map_lookup_elem(&scratch, &first);
	if (!value)
		return;
	value->count = 1;
	call_args(value->args, regs, compat);
	if (compat) {
		for (i = 0; i < 6; i++)
			value->args[i] = (__u32)value->args[i];
	}
	value->ip = program_counter(regs);
	value->tid = task->pid;
	bpf_get_current_comm(value->comm, sizeof(value->comm));
	if (bpf_map_update_elem(&denials, key, value, BPF_NOEXIST) == 0)
		return;
	value = bpf_map_lookup_elem(&denials, key);
	if (value)
		__sync_fetch_and_add(&value->count, 1);
	else
		__sync_fetch_and_add(&state.missed[LEARN_MISSED_CALLS], 1);
}

/* The call of the task, with the arguments that conditions look at; the bits of the call. */
static __always_inline __u8 describe(struct task_struct *task, struct pt_regs *regs, __u32 nr,
				     struct denial_key *key)
{
	bool compat = entered_compat(task);
	__u64 args[6];
	__u8 *bits;
	int i;

	key->call.arch = arch_audit(compat);
	key->call.nr = nr;
	bits = bpf_map_lookup_elem(&looked_at, &key->call);
	if (!bits)
		return 0;
	call_args(args, regs, compat);
	for (i = 0; i < 6; i++) {
		if (*bits & (1 << i))
			key->args[i] = compat ? (__u32)args[i] : args[i];
	}
	return *bits;
}

SEC("tp_btf/sys_enter")
int denied_enter(__u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	struct task_struct *task = bpf_get_current_task_btf();
	struct denial_key key = {};
	__u8 *mark = mark_of(task);
	__u8 bits;

	if (!mark)
		return 0;
	*mark |= MARK_IN_CALL;
	if (!(*mark & MARK_COUNTED))
		return 0;
	bits = describe(task, regs, ctx[1], &key);
	if (bits & DENIAL_ALLOWED_TOO)
		report(task, regs, &key);
	return 0;
}

SEC("tp_btf/sys_exit")
int denied_exit(__u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	struct task_struct *task = bpf_get_current_task_btf();
	struct denial_key key = {};
	__u8 *mark = mark_of(task);

	if (!mark)
		return 0;
	if (*mark & MARK_IN_CALL) {
		*mark &= ~MARK_IN_CALL;
		return 0;
	}
	describe(task, regs, call_number(regs), &key);
	report(task, regs, &key);
	return 0;
}

/* A thread of several that a filter kills ends inside its call. */
SEC("tp_btf/sched_process_exit")
int denied_end(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct denial_key key = {};
	__u8 *mark = mark_of(task);
	struct pt_regs *regs;

	if (!mark)
		return 0;
	__sync_fetch_and_add(&state.alive, -1);
	if (*mark & MARK_IN_CALL || task->exit_code != SIGSYS ||
	    task->signal->flags & SIGNAL_GROUP_EXIT)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	describe(task, regs, call_number(regs), &key);
	report(task, regs, &key);
	return 0;
}

/* What the program that installs its own filters does before that is not its own. */
SEC("tp_btf/sched_process_exec")
int denied_exec(__u64 *ctx)
{
	__u8 *mark = mark_of((struct task_struct *)ctx[0]);

	if (mark)
		*mark |= MARK_COUNTED;
	return 0;
}
