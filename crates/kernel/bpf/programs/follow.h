/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Tasks that are followed: those that user space marks, and all that they start. An object that includes this has the
 * programs that pass marks on.
 */
#ifndef TARSIER_FOLLOW_H
#define TARSIER_FOLLOW_H

#include "base.h"
#include "shared.h"

/* Bits of a mark. */
#define MARK_FOLLOWED 1
/* Calls of the task count. */
#define MARK_COUNTED 2
/* The task is in a call that its filters allowed. */
#define MARK_IN_CALL 4

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u8);
} recorded SEC(".maps");

struct follow_state state;

static __always_inline __u8 *mark_of(struct task_struct *task)
{
	return bpf_task_storage_get(&recorded, task, 0, 0);
}

/* Marks a task that has no mark yet. */
static __always_inline __u8 *set_mark(struct task_struct *task, __u8 bits)
{
	__u8 *mark = bpf_task_storage_get(&recorded, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!mark) {
		__sync_fetch_and_add(&state.missed[LEARN_MISSED_TASKS], 1);
		return 0;
	}
	*mark = bits;
	__sync_fetch_and_add(&state.alive, 1);
	return mark;
}

SEC("tp_btf/sched_process_fork")
int follow_fork(__u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	__u8 *mark = mark_of(parent);

	/* The child begins at the end of the call that made it. */
	if (mark)
		set_mark(child, *mark | MARK_IN_CALL);
	return 0;
}

#endif
