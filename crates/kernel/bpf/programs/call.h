/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* A call or io_uring operation that some rule watches: its entry in the tables. */
#ifndef TARSIER_CALL_H
#define TARSIER_CALL_H

#include "emit.h"
#include "facts.h"
#include "gate.h"
#include "match.h"
#include "number.h"

struct call {
	struct table *table;
	__u64 generation;
	struct table_call what;
};

/* Finds the tables in force and their entry for a call; false if no rule watches it. */
static __always_inline bool find_call(struct call *call, __u32 arch, __u32 nr)
{
	call->table = this_table();
	if (!call->table || nr >= TABLE_CALLS)
		return false;
	call->generation = row_at(call->table, 0)->a;
	call->what =
		*(struct table_call *)row_at(call->table, TABLE_INDEX + arch * TABLE_CALLS + nr);
	return call->what.pages != 0;
}

/* Copies the spec of a call. row_at() takes TABLE_SPEC_ONLY_MARKED off. */
static __always_inline void find_spec(struct call *call, struct work *w)
{
	w->spec_row = *row_at(call->table, call->what.spec);
}

static __always_inline bool audited(struct task_struct *task)
{
	struct task_note *note;

	if (is_daemon(task))
		return false;
	if (!control.use_task_list)
		return true;
	note = bpf_task_storage_get(&task_notes, task, 0, 0);
	return !note || !note->never;
}

static __always_inline bool call_admitted(struct call *call, struct task_struct *task,
					  const struct pt_regs *regs, __s64 ret)
{
	__u32 row = call->what.gate;

	if (!row || row & TABLE_GATE_LATER)
		return true;
	return halves_admit((const __u32 *)row_at(call->table, row),
			    (const __u32 *)row_at(call->table, row + 1), untrusted(task), regs,
			    ret);
}

/* Takes a work area for a call; NULL if none is free, which is counted as a loss. */
static __always_inline struct work *work_for(struct cpu_state *cpu)
{
	struct work *w = work_take();

	if (!w) {
		count_lost(cpu, TARSIER_LOSS_BUSY);
		count_rule(TARSIER_NO_RULE, FATE_LOST);
	}
	return w;
}

static __always_inline __u32 matched(struct call *call, struct work *w, struct task_struct *task,
				     struct cpu_state *cpu, bool returned)
{
	__u32 absent = 0, known = 0;

	if (call->what.gate & TABLE_GATE_LATER) {
		if (!workload_admits(w, call->table, call->what.gate))
			return VERDICT_DROP;
		known = WORKLOAD_FACTS;
		absent = w->absent;
	}
	task_facts(w, task);
	w->computed |= known;
	w->absent = absent;
	call_facts(w, returned);
	__sync_fetch_and_add(&cpu->evaluated, 1);
	return evaluate(call->table, w, call->what.pages, call->what.npages, call->what.list);
}

/* Whether any entry's calls of that number are watched. */
static __always_inline bool watched(__u32 nr)
{
	if (nr >= TABLE_CALLS)
		return false;
	/* One bounded number, for the reasons that frame_at() has. */
	asm volatile("%[nr] &= %[mask]" : [nr] "+r"(nr) : [mask] "i"(TABLE_CALLS - 1));
	return control.watched[nr / 64] & (1ULL << (nr % 64));
}

/* `nr`: in the tables; `given`: what the caller gave. */
static __always_inline void set_call(struct work *w, __u32 compat, __u32 nr, __u32 given)
{
	w->arch = compat;
	w->nr = nr;
	w->given_nr = given;
}

/*
 * Shows that this hook and the ring of this CPU work, if the current task is the daemon: `number` is what it has
 * given as the second argument of the call. A function of its own, which the verifier goes through once.
 */
__noinline int answer_canary(__u64 number)
{
	struct tarsier_frame frame = {
		.size = sizeof(frame),
		.kind = TARSIER_FRAME_CANARY,
		.version = TARSIER_WIRE_VERSION,
		.id = number,
		.time_ns = bpf_ktime_get_ns(),
	};
	__u32 cpu_nr = bpf_get_smp_processor_id();
	struct cpu_state *cpu = state_of_cpu();
	void *ring;

	if (!cpu || !is_daemon(bpf_get_current_task_btf()))
		return 0;
	cpu->canary = number;
	ring = bpf_map_lookup_elem(&rings, &cpu_nr);
	if (ring && !bpf_ringbuf_output(ring, &frame, sizeof(frame), BPF_RB_NO_WAKEUP)) {
		cpu->unread_bound += in_ring(sizeof(frame));
		cpu->put_bytes += in_ring(sizeof(frame));
	}
	return 0;
}

#endif /* TARSIER_CALL_H */
