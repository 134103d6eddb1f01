// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * The eBPF engines. One program body is run at the ends of the kernel's functions
 * (engine trampoline), or by tp_btf/sys_exit or the exit tracepoints of single
 * calls (engine tracepoint). Calls that do not return to their caller (execve,
 * exit) have hooks of their own.
 */
#include "arguments.h"
#include "base.h"
#include "call.h"
#include "copies.h"
#include "found.h"
#include "named.h"
#include "parts.h"

#include "object_hooks.bpf.inc.c"
#include "clock_hooks.bpf.inc.c"
#include "ipc_hooks.bpf.inc.c"
#include "entry_hooks.bpf.inc.c"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Says that the call has a name, which is not known. */
static __always_inline void part_unread_path(struct work *w)
{
	struct tarsier_part *part = part_begin(w, TARSIER_PART_PATH, 0);

	if (!part)
		return;
	part->flags |= TARSIER_PART_UNREADABLE;
	part_end(w, part, 0);
}

/* Makes the event of an execve. `bprm`, `note`: NULL if the hooks that provide them were missed. */
static __noinline int exec_event(struct linux_binprm *bprm, struct work *w, struct task_note *note,
				 __u64 generation, struct cpu_state *cpu)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 undecided = w->nundecided ? TARSIER_UNDECIDED : 0;

	w->id = next_id(cpu);
	event_begin(w, generation, TARSIER_ENTRY_ARGS | (w->arch ? TARSIER_COMPAT : 0) | undecided);
	part_cwd(w, task);

	if (bprm) {
		if (HAS(bprm, filename))
			part_kernel_string(w, TARSIER_PART_PATH, bprm->filename);
		part_exec_file(w, bprm);
		event_chain(w);
	} else {
		part_unread_path(w);
	}

	if (note)
		part_fcaps(w, task, note);

	if (undecided)
		event_candidates(w);
	send_arguments(w, bprm ? LOAD(0, bprm, argc) : 0);

	event_end(w);
	return 0;
}

/*
 * A probe sees that execve has succeeded. If the hooks meant for that were missed,
 * which can happen on kernels that preempt tracepoints, the event is made here,
 * with the facts that are still available.
 */
static __always_inline void exec_unseen(struct call *call, struct work *w, struct task_struct *task,
					struct cpu_state *cpu, __u32 compat, __u32 nr, __u32 given)
{
	struct task_note *note = bpf_task_storage_get(&task_notes, task, 0, 0);
	bool is_known = note && note->exec_valid == EXEC_BEGUN;
	__u32 i;

	if (!control.copies)
		return;
	if (note && note->exec_valid == EXEC_SEEN) {
		note->exec_valid = 0;
		return;
	}

	set_call(w, compat, nr, given);
	w->ret = 0;
	for (i = 0; i < 6; i++)
		w->args[i] = is_known ? note->exec_args[i] : 0;

	if (recorded(matched(call, w, task, cpu, true), w))
		exec_event(0, w, is_known ? note : 0, call->generation, cpu);

	if (note)
		note->exec_valid = 0;
}

/* Whether fork_ended() has seen the creation of the child that the call returns. */
static __always_inline bool fork_was_seen(struct task_struct *task, long child)
{
	struct task_note *note = bpf_task_storage_get(&task_notes, task, 0, 0);

	if (!note || note->fork_child != child)
		return false;
	note->fork_child = 0;
	return true;
}

#define AT_EXECVE_CHECK 0x10000

/*
 * Whether an execveat(2) that returns 0 was asked only whether it may execute the file. One that executes
 * it has cleared the registers.
 */
static __always_inline bool only_checks(const struct pt_regs *regs, __u32 compat)
{
	__u64 args[6];

	call_args(args, regs, compat);
	return args[4] & AT_EXECVE_CHECK;
}

enum exec_end {
	EXEC_RETURNS, /* nothing was executed */
	EXEC_REPLACES, /* the new image runs */
	EXEC_BREAKS, /* the task cannot go on: exec_broke() records the call when it ends */
};

/* What an execve that has this result has done. A function of its own, which the verifier goes through once. */
__noinline int exec_end(__s64 ret, __u32 compat)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_note *note;

	if (!ret)
		return only_checks((struct pt_regs *)bpf_task_pt_regs(task), compat)
			       ? EXEC_RETURNS
			       : EXEC_REPLACES;
	note = bpf_task_storage_get(&task_notes, task, 0, 0);
	return note && note->exec_valid == EXEC_BEGUN ? EXEC_BREAKS : EXEC_RETURNS;
}

/* Whether a result is that of a call that has succeeded, for rules too: they compare its low half. */
static __always_inline bool succeeded(long ret)
{
	return !((__u64)ret >> 31);
}

/* Adds what the call touched. */
static __always_inline void event_touched(struct work *w, __u32 verdict)
{
	if (!touches_nothing(w))
		event_objects(w);
	if (w->spec.kind == KIND_MOUNT || has_object_path(w))
		event_inner_paths(w);
	if (has_names(w))
		event_names(w);

	if (w->spec.kind == KIND_EXEC)
		event_chain(w);
	else if (verdict == VERDICT_UNDECIDED)
		event_aliases(w);

	if (has_memory(w))
		event_memory(w);
	if (verdict == VERDICT_UNDECIDED)
		event_candidates(w);
}

/* A watched call has ended: matches it, and records it if a rule says so. */
static __always_inline int call_returned(struct task_struct *task, struct pt_regs *regs, long ret,
					 __u32 nr, __u32 given, __u32 compat, bool probed)
{
	__u32 verdict, flags;
	struct cpu_state *cpu;
	struct call call = {};
	__u32 ended, ended_as;
	struct work *w;

	/* The canary tests the hook itself, whatever rules watch. */
	if (nr == control.canary_call)
		answer_canary(call_arg(regs, compat, 1));

	if (!find_call(&call, compat, nr))
		return 0;
	if (given == NO_CALL)
		given = nr;
	ret = call_result(ret, compat);

	/* Closed first: the next equal call would take an open note for its own. */
	ended = 0;
	if (has_objects(nr, compat))
		ended = note_end(task, regs, call.generation);

	if (ended == NOTE_NEEDS_MARK)
		return 0;
	if (ended == NOTE_IS_UNMARKED && call.what.spec & TABLE_SPEC_ONLY_MARKED && succeeded(ret))
		return 0;

	/* Asked before a work area is taken, since it needs none. */
	if (!call_admitted(&call, task, regs, ret))
		return 0;
	cpu = state_of_cpu();
	if (!cpu || !audited(task))
		return 0;

	/* From here on, every way out gives the work area back. */
	w = work_for(cpu);
	if (!w)
		return 0;
	find_spec(&call, w);

	/* An execve that succeeds, or breaks, is recorded by hooks of its own. */
	if (w->spec.kind == KIND_EXEC) {
		ended_as = exec_end(ret, compat);
		if (probed && ended_as == EXEC_REPLACES)
			exec_unseen(&call, w, task, cpu, compat, nr, given);
		if (ended_as != EXEC_RETURNS)
			goto out;
	}

	/* The child has not made the call. In the parent, fork_ended() may have recorded it. */
	if (ret == 0 && w->spec.kind == KIND_FORK)
		goto out;
	if (ret > 0 && w->spec.kind == KIND_FORK && fork_was_seen(task, ret))
		goto out;

	w->noted = ended != 0;
	set_call(w, compat, nr, given);
	w->ret = ret;
	call_args(w->args, regs, compat);

	if (succeeded(ret) && is_unmarked(call.table, w, call.what.spec))
		goto out;

	verdict = matched(&call, w, task, cpu, true);
	if (!recorded(verdict, w))
		goto out;

	flags = (compat ? TARSIER_COMPAT : 0) |
		(verdict == VERDICT_UNDECIDED ? TARSIER_UNDECIDED : 0);
	w->id = next_id(cpu);
	event_begin(w, call.generation, flags);
	event_touched(w, verdict);
	event_end(w);
out:
	work_leave(w);
	return 0;
}

/* All calls of all entries, 32-bit ones included. Calls that no rule watches cost a bit test. */
SEC("tp_btf/sys_exit")
int sys_exit(__u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	__u32 given = call_number(regs), nr = table_number(given);
	struct task_struct *task;

	if (!watched(nr) || !control.every)
		return 0;
	task = bpf_get_current_task_btf();
	return call_returned(task, regs, ctx[1], nr, given, entered_compat(task), false);
}

/*
 * The end of a kernel function that implements a watched call. Each function has
 * a copy of `call_gate`, which knows the index of its gate and jumps to a body. A
 * program array can only contain programs for one prototype, so there is a body
 * for each of the two prototypes that these functions have.
 */
static __always_inline int function_returned(__u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	__u32 given = call_number(regs);
	struct task_struct *task;

	if (control.every)
		return 0;
	task = bpf_get_current_task_btf();
	return call_returned(task, regs, ctx[1], table_number(given), given, entered_compat(task),
			     false);
}

SEC("fexit")
int call_body(__u64 *ctx)
{
	return function_returned(ctx);
}

SEC("fexit")
int other_call_body(__u64 *ctx)
{
	return function_returned(ctx);
}

SEC("fexit")
int call_gate(__u64 *ctx)
{
	if (gate_admits(&gates[0], (const struct pt_regs *)ctx[0], ctx[1]))
		bpf_tail_call(ctx, &bodies, 0);
	return 0;
}

/*
 * Gates that ask about one fact: the code of the fact is in the program, and only what the fact is
 * compared with is in the gate. NAME is for gates with one range and no mask, NAME_wide for others
 * (gate_programs.rs). Each function has a copy, as of `call_gate`.
 */
#define GATE(name, fact)                                               \
	SEC("fexit") int name(__u64 *ctx)                              \
	{                                                              \
		if (admits(&gates[0], own_value(fact, ctx[1]), false)) \
			bpf_tail_call(ctx, &bodies, 0);                \
		return 0;                                              \
	}                                                              \
	SEC("fexit") int name##_wide(__u64 *ctx)                       \
	{                                                              \
		if (admits(&gates[0], own_value(fact, ctx[1]), true))  \
			bpf_tail_call(ctx, &bodies, 0);                \
		return 0;                                              \
	}

GATE(gate_auid, FACT_AUID)
GATE(gate_uid, FACT_UID)
GATE(gate_euid, FACT_EUID)
GATE(gate_suid, FACT_SUID)
GATE(gate_fsuid, FACT_FSUID)
GATE(gate_exit, FACT_EXIT)
GATE(gate_success, FACT_SUCCESS)

/*
 * A watched call's end, seen by a probe, which runs with preemption off: while a program at the end
 * of a function is preempted, the kernel does not run it for other tasks.
 */
SEC("kprobe.multi")
int call_probe(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 given = call_number(regs), nr = table_number(given);

	if (control.every || !watched(nr) || !link_is_in_force(bpf_get_attach_cookie(ctx)))
		return 0;
	return call_returned(task, regs, probe_result(ctx), nr, given, entered_compat(task), true);
}

/*
 * One watched call of the 64-bit entry: the kernel runs this program for no other call. Its context has
 * the number and the result behind a header that has another size in each edition of the kernel (RHEL
 * 9.3, 9.4); the registers have both.
 */
SEC("tracepoint")
int sys_exit_one(void *ctx)
{
	struct task_struct *task;
	struct pt_regs *regs;
	__u32 nr;

	if (control.every)
		return 0;
	task = bpf_get_current_task_btf();
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	nr = call_number(regs);
	return call_returned(task, regs, call_value(regs), nr, nr, 0, false);
}

/*
 * execve is about to set the new name of the task. The registers still contain
 * the arguments, which are cleared before the call returns.
 */
static __always_inline int exec_begins(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	const struct cred *cred;
	bool compat = entered_compat(task);
	struct task_note *note;
	struct call call = {};
	struct table_spec *spec;
	__u32 given = call_number(regs), nr = table_number(given);

	if (!watched(nr) || !find_call(&call, compat, nr))
		return 0;
	spec = (struct table_spec *)row_at(call.table, call.what.spec);
	if (spec->kind != KIND_EXEC)
		return 0;

	note = bpf_task_storage_get(&task_notes, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!note) {
		struct cpu_state *cpu = state_of_cpu();

		if (cpu)
			count_lost(cpu, TARSIER_LOSS_NO_MEMORY);
		count_rule(TARSIER_NO_RULE, FATE_LOST);
		return 0;
	}

	/* Kept here, since the registers are cleared before the call returns. */
	call_args(note->exec_args, regs, compat);
	note->exec_nr = nr;
	note->exec_given = given;
	note->exec_compat = compat;
	note->exec_valid = EXEC_BEGUN;

	if (!CAPABILITIES_ARE_KNOWN)
		return 0;

	cred = untrusted(task)->cred;
	note->old_caps[0] = capabilities(&cred->cap_inheritable);
	note->old_caps[1] = capabilities(&cred->cap_permitted);
	note->old_caps[2] = capabilities(&cred->cap_effective);
	note->old_caps[3] = capabilities(&cred->cap_ambient);
	note->old_uid = READ(cred, uid.val);
	return 0;
}

COPIES("tp_btf/task_rename", exec_entry, exec_begins())

/* execve succeeded: the task runs the new image, and its argv is in place. */
static __always_inline int exec_ended(__u64 *ctx)
{
	struct linux_binprm *bprm = (struct linux_binprm *)ctx[2];
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_note *note = bpf_task_storage_get(&task_notes, task, 0, 0);
	struct call call = {};
	struct cpu_state *cpu;
	__u32 compat, nr;
	struct work *w;

	if (!note || note->exec_valid != EXEC_BEGUN)
		return 0;
	note->exec_valid = EXEC_SEEN;

	cpu = state_of_cpu();
	compat = note->exec_compat & 1;
	nr = note->exec_nr;
	if (!cpu || !audited(task) || !find_call(&call, compat, nr))
		return 0;

	w = work_for(cpu);
	if (!w)
		return 0;

	find_spec(&call, w);
	set_call(w, compat, nr, note->exec_given);
	w->noted = 0;
	w->ret = 0;
	w->bprm_at = (__u64)bprm;
	__builtin_memcpy(w->args, note->exec_args, sizeof(w->args));

	if (recorded(matched(&call, w, task, cpu, true), w))
		exec_event(bprm, w, note, call.generation, cpu);
	work_leave(w);
	return 0;
}

COPIES("tp_btf/sched_process_exec", exec_done, exec_ended(ctx))

/*
 * An execve that fails after the old image is gone kills its task. Its call may have another number and
 * entry by then, those of the new image (SET_PERSONALITY2() of x86), so that its end is not watched.
 */
static __always_inline int exec_broke(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_note *note = bpf_task_storage_get(&task_notes, task, 0, 0);
	struct pt_regs *regs;
	struct call call = {};
	struct cpu_state *cpu;
	struct work *w;
	__u32 compat;

	if (!note || note->exec_valid != EXEC_BEGUN)
		return 0;
	note->exec_valid = 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	/* If this is another call, the execve has succeeded. */
	if (!is_exec_number(call_number(regs) & ~X32_BIT, entered_compat(task)))
		return 0;

	cpu = state_of_cpu();
	compat = note->exec_compat & 1;
	if (!cpu || !audited(task) || !find_call(&call, compat, note->exec_nr))
		return 0;

	w = work_for(cpu);
	if (!w)
		return 0;

	find_spec(&call, w);
	set_call(w, compat, note->exec_nr, note->exec_given);
	w->ret = call_result(call_value(regs), compat);
	__builtin_memcpy(w->args, note->exec_args, sizeof(w->args));

	if (recorded(matched(&call, w, task, cpu, true), w))
		exec_event(0, w, 0, call.generation, cpu);
	work_leave(w);
	return 0;
}

COPIES("tp_btf/sched_process_exit", exec_broken, exec_broke())

/* Tasks whose exit has already been recorded by one of the copies. */
struct exit_key {
	__u64 start_time_ns;
	__u64 tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct exit_key);
	__type(value, __u32);
} exits SEC(".maps");

static __always_inline bool exit_is_new(struct task_struct *task)
{
	struct exit_key key = { .tid = task->pid };
	__u32 one = 1;

	/* Without the start time: the copies see an exit at nearly the same time. */
	key.start_time_ns = LOAD(bpf_ktime_get_ns() >> 32, task, start_boottime);
	return !control.copies || !bpf_map_update_elem(&exits, &key, &one, BPF_NOEXIST);
}

/* exit and exit_group do not return: the event is made while they are in progress. */
static __always_inline int exit_event(bool at_end)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 verdict, compat = entered_compat(task);
	__u32 given = call_number(regs), nr = table_number(given);
	struct call call = {};
	struct cpu_state *cpu;
	struct work *w;

	/* If both hooks are attached, each handles the entry that the other ignores. */
	if (control.exit_at_entry && at_end != compat)
		return 0;
	if (!watched(nr) || !find_call(&call, compat, nr) || !call_admitted(&call, task, regs, 0))
		return 0;

	cpu = state_of_cpu();
	if (!cpu || !audited(task))
		return 0;

	w = work_for(cpu);
	if (!w)
		return 0;

	find_spec(&call, w);
	if (w->spec.kind != KIND_EXIT)
		goto out;

	set_call(w, compat, nr, given);
	w->ret = 0;
	call_args(w->args, regs, compat);

	verdict = matched(&call, w, task, cpu, false);
	if (verdict == VERDICT_DROP || !exit_is_new(task) || !recorded(verdict, w))
		goto out;

	w->id = next_id(cpu);
	event_begin(w, call.generation,
		    TARSIER_NO_RETURN | (compat ? TARSIER_COMPAT : 0) |
			    (verdict == VERDICT_UNDECIDED ? TARSIER_UNDECIDED : 0));
	if (verdict == VERDICT_UNDECIDED)
		event_candidates(w);
	event_end(w);
out:
	work_leave(w);
	return 0;
}

COPIES("tp_btf/sched_process_exit", exit_call, exit_event(true))

/*
 * The entry of these calls, for kernels before 6.16, on which the task has already
 * released its memory, and with it its executable, at sched_process_exit.
 */
SEC("tracepoint")
int exit_entry(void *ctx)
{
	return exit_event(false);
}

#include "uring_hooks.bpf.inc.c"
#include "cgroup_hooks.bpf.inc.c"
#include "process_hooks.bpf.inc.c"

#include "task_hooks.bpf.inc.c"
