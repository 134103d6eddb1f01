/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The class of each cgroup: the numbers of those of its names that rules ask about. The path of a
 * cgroup never changes, so a class is right as long as its epoch is that of the tables; a class of
 * another epoch, or none, means that the cgroup is not known, and then the daemon decides.
 */
#ifndef TARSIER_WORKLOADS_H
#define TARSIER_WORKLOADS_H

#include "base.h"
#include "rows.h"
#include "shared.h"
#include "walk.h"

#define WORKLOAD_FACTS (1U << FACT_UNIT | 1U << FACT_SLICE | 1U << FACT_CONTAINER)

/* By id of the cgroup. Written when a cgroup is made (cgroup_class.h), and by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WORKLOADS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct workload);
} workloads SEC(".maps");

/*
 * Finds the names of the current task's cgroup, once for a call. They are often those of the last
 * call with this work area, whose facts are still there.
 */
__noinline int find_workload(struct work *w, struct table *table)
{
	struct workload *known;
	__u64 id, epoch;

	if (!w || !table)
		return 0;
	w->computed |= WORKLOAD_FACTS;
	id = LOAD(0, untrusted(bpf_get_current_task_btf()), cgroups, dfl_cgrp, kn, id);
	epoch = row_at(table, 0)->b;
	if (id == w->cgroup_id && epoch == w->cgroup_epoch)
		return 0;
	w->cgroup_id = id;
	w->cgroup_epoch = 0;
	/* Up to 6.1, a key cannot be in the memory of a parameter. */
	known = bpf_map_lookup_elem(&workloads, &id);
	if (!known || known->epoch != epoch) {
		w->absent |= WORKLOAD_FACTS;
		return 0;
	}
	w->cgroup_epoch = epoch;
	w->fact[FACT_UNIT] = known->unit;
	w->fact[FACT_SLICE] = known->slice;
	w->fact[FACT_CONTAINER] = known->container;
	return 0;
}

/* Tests a gate that asks about the workload. Who is in an unknown cgroup may be selected. */
__noinline int workload_admits(struct work *w, struct table *table, __u32 gate)
{
	struct table_row *first, *second;
	__u32 fact, value;

	if (!w || !table)
		return 0;
	first = row_at(table, gate & ~TABLE_GATE_LATER);
	second = row_at(table, (gate & ~TABLE_GATE_LATER) + 1);
	fact = first->a;
	w->absent = 0;
	find_workload(w, table);
	if (fact < FACT_UNIT || fact > FACT_CONTAINER || w->absent)
		return 1;
	value = w->fact[fact];
	return value - (__u32)first->b <= first->b >> 32 ||
	       value - (__u32)second->a <= second->a >> 32;
}

#endif /* TARSIER_WORKLOADS_H */
