// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * For tests only: runs evaluate() of match.h, the same code as in the engine, on
 * facts that the test provides. Other facts that are looked up on demand (open
 * flags, socket address, groups) are those of the task that runs the test.
 */
#include "base.h"
#include "facts.h"
#include "gate.h"
#include "match.h"
#include "objects.h"
#include "shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct test_call);
} test_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct test_verdict);
} test_verdicts SEC(".maps");

SEC("raw_tp")
int match_one(void *ctx)
{
	__u32 zero = 0;
	struct test_call *call = bpf_map_lookup_elem(&test_calls, &zero);
	struct test_verdict *out = bpf_map_lookup_elem(&test_verdicts, &zero);
	struct table *table = this_table();
	struct work *w = work_take();

	if (!w)
		return 1;
	if (!call || !out || !table) {
		work_leave(w);
		return 1;
	}
	bpf_probe_read_kernel(w->fact, sizeof(w->fact), call->fact);
	bpf_probe_read_kernel(w->args, sizeof(w->args), call->args);
	w->ret = call->ret;
	w->arch = call->arch;
	w->spec = call->spec;
	w->absent = call->absent;
	w->computed = ~(__u32)ON_DEMAND | call->given;
	bpf_probe_read_kernel(&w->marks, sizeof(w->marks), &call->marks);
	out->verdict = evaluate(table, w, call->what.pages, call->what.npages, call->what.list);
	out->rule = w->rule;
	out->nundecided = w->nundecided;
	bpf_probe_read_kernel(out->undecided, sizeof(out->undecided), w->undecided);
	work_leave(w);
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct test_gate);
} test_gates SEC(".maps");

/* What the two programs of a fact say. */
static __always_inline void ask_own(struct test_gate *test, __u32 fact)
{
	if (test->gate.fact != fact)
		return;
	test->own[0] = admits(&test->gate, own_value(fact, test->ret), false);
	test->own[1] = admits(&test->gate, own_value(fact, test->ret), true);
}

SEC("raw_tp")
int gate_one(void *ctx)
{
	__u32 zero = 0;
	struct test_gate *test = bpf_map_lookup_elem(&test_gates, &zero);
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	if (!test)
		return 1;
	test->interpreted =
		halves_admit(&test->gate.fact, &test->gate.range[1].first, task, regs, test->ret);
	ask_own(test, FACT_AUID);
	ask_own(test, FACT_UID);
	ask_own(test, FACT_EUID);
	ask_own(test, FACT_SUID);
	ask_own(test, FACT_FSUID);
	ask_own(test, FACT_EXIT);
	ask_own(test, FACT_SUCCESS);
	return 0;
}
