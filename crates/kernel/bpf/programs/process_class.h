/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The class of each process: one bit for each label that it has, and for each executable that an
 * ancestor of its ran, among those that rules ask about (crates/core/plan/src/past.rs). A process takes
 * over the class of its maker before it runs. A class of another epoch than that of the tables, or
 * none, means that the process is not known, and then the daemon decides.
 */
#ifndef TARSIER_PROCESS_CLASS_H
#define TARSIER_PROCESS_CLASS_H

#include "base.h"
#include "executables.h"
#include "rows.h"
#include "shared.h"
#include "walk.h"

#define PAST_FACTS (1U << FACT_LABELS | 1U << FACT_ANCESTORS)

/* Written when a process is made, executes a program, is given a label or ends, and by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PROCESS_CLASSES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct process_id);
	__type(value, struct process_class);
} process_classes SEC(".maps");

/* Bits of the labels that events of a rule give, among those that rules ask about. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * RULES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct labelling);
	__type(value, __u32);
} labellings SEC(".maps");

#define PROCESS_IDS_ARE_KNOWN \
	(TYPE_HAS(task_struct, group_leader) && TYPE_HAS(task_struct, start_boottime))

static __always_inline void process_id_of(struct process_id *id, struct task_struct *task)
{
	id->start_ns = READ(task, group_leader, start_boottime);
	id->pid = READ(task, tgid);
	id->pad = 0;
}

/* The class of a process, if it is of this epoch; NULL if the process is not known. */
static __always_inline struct process_class *class_of(struct process_id *id, __u64 epoch)
{
	struct process_class *class = bpf_map_lookup_elem(&process_classes, id);

	return class && class->epoch == epoch ? class : 0;
}

/* Finds what is known of the past of the current task's process. */
__noinline int find_past(struct work *w, struct table *table)
{
	struct process_class *class;
	struct process_id id;

	if (!w || !table)
		return 0;
	w->computed |= PAST_FACTS;
	if (!PROCESS_IDS_ARE_KNOWN) {
		w->absent |= PAST_FACTS;
		return 0;
	}
	process_id_of(&id, bpf_get_current_task_btf());
	class = class_of(&id, row_at(table, 0)->b);
	if (!class) {
		w->absent |= PAST_FACTS;
		return 0;
	}
	w->fact[FACT_LABELS] = class->labels;
	w->fact[FACT_ANCESTORS] = class->ancestors;
	if (class->flags & PROCESS_LABELS_ARE_OPEN)
		w->absent |= 1U << FACT_LABELS;
	if (class->flags & PROCESS_ANCESTORS_ARE_OPEN)
		w->absent |= 1U << FACT_ANCESTORS;
	return 0;
}

/*
 * Gives the current process the labels of the rule that selects its call. If the daemon is to find
 * that rule, or the process is not known, only the daemon knows the labels from now on.
 */
__noinline int label_process(struct work *w, __u32 verdict)
{
	struct process_class *class, unknown = {};
	struct labelling labelling = {};
	__u32 *bits, labels = 0;
	struct process_id id;

	if (!w || !PROCESS_IDS_ARE_KNOWN)
		return 0;
	if (verdict == VERDICT_RECORD) {
		labelling.generation = w->label_generation;
		labelling.rule = w->rule;
		bits = bpf_map_lookup_elem(&labellings, &labelling);
		if (!bits)
			return 0;
		labels = *bits;
	}
	process_id_of(&id, bpf_get_current_task_btf());
	class = class_of(&id, w->label_epoch);
	if (!class) {
		unknown.epoch = w->label_epoch;
		unknown.flags =
			PROCESS_LABELS_ARE_OPEN | PROCESS_ANCESTORS_ARE_OPEN | PROCESS_OWN_IS_OPEN;
		bpf_map_update_elem(&process_classes, &id, &unknown, BPF_ANY);
		return 0;
	}
	if (labels)
		__sync_fetch_and_or(&class->labels, labels);
	else
		__sync_fetch_and_or(&class->flags, PROCESS_LABELS_ARE_OPEN);
	return 0;
}

/* The class of the current process; NULL if no rule asks about processes, or it is not known. */
static __always_inline struct process_class *class_of_current(void)
{
	struct table *table = this_table();
	struct process_id id;

	if (!table || !row_at(table, 0)->b)
		return 0;
	process_id_of(&id, bpf_get_current_task_btf());
	return class_of(&id, row_at(table, 0)->b);
}

/*
 * Gives a new process the class of its maker, the current one. If this has executed a program since
 * its class was written, the kernel has not run class_executes() then, and the program is not known.
 */
static __always_inline void class_of_child(struct task_struct *child)
{
	struct process_class *class = class_of_current(), own;
	__u64 image = READ(child, self_exec_id);
	struct process_id id;

	if (!class)
		return;
	own = *class;
	if (own.image != image)
		own.flags |= PROCESS_OWN_IS_OPEN;
	own.image = image;
	own.ancestors |= own.own;
	if (own.flags & PROCESS_OWN_IS_OPEN)
		own.flags |= PROCESS_ANCESTORS_ARE_OPEN;
	process_id_of(&id, child);
	bpf_map_update_elem(&process_classes, &id, &own, BPF_ANY);
}

/* The current process runs another program. */
static __always_inline void class_executes(struct work *w)
{
	struct process_class *class = class_of_current();
	__u32 number;
	bool is_sure;

	if (!class)
		return;
	is_sure = executable_numbers(w);
	number = w->fact[FACT_EXE];
	is_sure &= number == w->fact[FACT_EXE] >> 32;
	class->own = number && number <= PAST_NAMES_MAX ? 1U << ((number - 1) & 31) : 0;
	class->image = READ(bpf_get_current_task_btf(), self_exec_id);
	if (is_sure)
		__sync_fetch_and_and(&class->flags, ~PROCESS_OWN_IS_OPEN);
	else
		__sync_fetch_and_or(&class->flags, PROCESS_OWN_IS_OPEN);
}

static __always_inline void class_ends(void)
{
	struct process_id id;

	process_id_of(&id, bpf_get_current_task_btf());
	bpf_map_delete_elem(&process_classes, &id);
}

#endif /* TARSIER_PROCESS_CLASS_H */
