/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Hooks on what tasks and modules become: a task is made, a module is loaded. */
#include "base.h"
#include "call.h"
#include "copies.h"

/* The number of a new task in the pid namespace of the task that made it; 0: not known. */
static __always_inline __s64 number_of_child(struct task_struct *task, struct task_struct *child)
{
	struct pid *own, *pid;
	__u32 level;
	int nr = 0;

	if (!TYPE_HAS(task_struct, thread_pid) || !TYPE_HAS(pid, level) ||
	    !TYPE_HAS(pid, numbers) || !TYPE_HAS(upid, nr))
		return 0;
	own = READ(task, thread_pid);
	level = READ(own, level);
	pid = READ(child, thread_pid);
	bpf_core_read(&nr, sizeof(nr), &upid_at(pid, level)->nr);
	return nr;
}

/*
 * fork, vfork, clone or clone3 has made a task. The call is recorded here, because a tracer can stop
 * it before it returns, and change its number and arguments (PTRACE_EVENT_FORK and the like).
 */
static __always_inline int fork_ended(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_struct *child = (struct task_struct *)ctx[1];
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 verdict, given = call_number(regs), nr = table_number(given);
	__u32 compat = entered_compat(task);
	struct task_note *note;
	struct cpu_state *cpu;
	struct call call = {};
	struct table_spec *spec;
	struct work *w;
	__u64 start;
	__s64 ret;

	if (LOAD(PF_KTHREAD, task, flags) & (PF_KTHREAD | PF_IO_WORKER) || !watched(nr) ||
	    !find_call(&call, compat, nr))
		return 0;
	spec = (struct table_spec *)row_at(call.table, call.what.spec);
	ret = number_of_child(task, child);
	if (spec->kind != KIND_FORK || ret <= 0 || !HAS(child, start_boottime))
		return 0;
	start = READ(child, start_boottime);
	note = bpf_task_storage_get(&task_notes, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* Without a note, the call is recorded when it returns. */
	if (!note || note->fork_start == start)
		return 0;
	note->fork_start = start;
	note->fork_child = ret;
	cpu = state_of_cpu();
	if (!cpu || !audited(task) || !call_admitted(&call, task, regs, ret))
		return 0;
	w = work_for(cpu);
	if (!w)
		return 0;
	find_spec(&call, w);
	set_call(w, compat, nr, given);
	w->ret = ret;
	call_args(w->args, regs, compat);
	verdict = matched(&call, w, task, cpu, true);
	if (recorded(verdict, w)) {
		w->id = next_id(cpu);
		event_begin(w, call.generation,
			    (compat ? TARSIER_COMPAT : 0) |
				    (verdict == VERDICT_UNDECIDED ? TARSIER_UNDECIDED : 0));
		if (verdict == VERDICT_UNDECIDED)
			event_candidates(w);
		event_end(w);
	}
	work_leave(w);
	return 0;
}

COPIES("tp_btf/sched_process_fork", fork_done, fork_ended(ctx))

/* A module is in place, and its own code will run next: notes its name for the event of the call. */
static __always_inline int module_loaded(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct module *module = (struct module *)ctx[0];
	struct task_note *note =
		bpf_task_storage_get(&task_notes, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (note && HAS(module, name))
		bpf_probe_read_kernel_str(note->module, sizeof(note->module), module->name);
	return 0;
}

COPIES("tp_btf/module_load", module_load, module_loaded(ctx))

/* A task was created: notes if a rule of the task list keeps it from being audited. */
static __always_inline int task_begins(__u64 *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx[1];
	struct task_note *note;
	struct call call = {};
	struct work *w;
	__u32 verdict;
	bool never;

	if (!control.use_task_list)
		return 0;
	call.table = this_table();
	if (!call.table)
		return 0;
	call.what = *(struct table_call *)row_at(call.table, TABLE_TASK_LIST);
	/* Without a work area, the task is audited: too much is better than too little. */
	w = work_take();
	if (!w)
		return 0;
	task_facts(w, child);
	w->absent = ~(1U << FACT_UID | 1U << FACT_EUID | 1U << FACT_SUID | 1U << FACT_FSUID |
		      1U << FACT_GID | 1U << FACT_EGID | 1U << FACT_SGID | 1U << FACT_FSGID |
		      1U << FACT_AUID | 1U << FACT_PERS | 1U << FACT_PID | 1U << FACT_PPID |
		      1U << FACT_SES);
	verdict = evaluate(call.table, w, call.what.pages, call.what.npages, call.what.list);
	never = verdict == VERDICT_DROP && w->rule != TARSIER_NO_RULE;
	work_leave(w);
	if (!never)
		return 0;
	note = bpf_task_storage_get(&task_notes, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (note)
		note->never = 1;
	return 0;
}

COPIES("tp_btf/sched_process_fork", task_made, task_begins(ctx))
