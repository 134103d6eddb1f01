/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The hooks that see io_uring operations: tracepoints, which every operation
 * passes; or the functions that prepare and issue the watched operations only,
 * hooked by programs in trampolines or by probes.
 */
#include "base.h"
#include "copies.h"
#include "uring.h"

SEC("tp_btf/io_uring_submit_req")
int uring_submit(__u64 *ctx)
{
	struct io_kiocb *req = (struct io_kiocb *)ctx[0];

	return uring_submitted(req, LOAD(0, req, opcode));
}

/* Before Linux 6.3 the tracepoint had another name. */
SEC("tp_btf/io_uring_submit_sqe")
int uring_submit_sqe(__u64 *ctx)
{
	struct io_kiocb *req = (struct io_kiocb *)ctx[0];

	return uring_submitted(req, LOAD(0, req, opcode));
}

/*
 * Every operation passes the tracepoint. A function of its own for completions that count keeps
 * small what the others pay: no register is saved for them, and no stack is set up.
 */
static __noinline int completed(__u64 *ctx)
{
	struct io_uring_cqe *cqe = (struct io_uring_cqe *)ctx[2];

	if (!uring_may_know(ctx[1]) || (!HAS(cqe, user_data) && !ctx[1]))
		return 0;
	return uring_completed(ctx[0], ctx[1], LOAD(0, cqe, user_data), LOAD(0, cqe, res),
			       LOAD(0, cqe, flags), HAS(cqe, res) ? 0 : TARSIER_RESULT_UNKNOWN);
}

SEC("tp_btf/io_uring_complete")
int uring_complete(__u64 *ctx)
{
	return uring_under_way ? completed(ctx) : 0;
}

/* For kernels that pass the members of the completion as separate arguments. */
static __noinline int completed_args(__u64 *ctx)
{
	if (!uring_may_know(ctx[1]))
		return 0;
	return uring_completed(ctx[0], ctx[1], ctx[2], ctx[3], ctx[4], 0);
}

SEC("tp_btf/io_uring_complete")
int uring_complete_args(__u64 *ctx)
{
	return uring_under_way ? completed_args(ctx) : 0;
}

/* The completion queue is full: the completion waits in the kernel. */
SEC("tp_btf/io_uring_cqe_overflow")
int uring_overflow(__u64 *ctx)
{
	return uring_completed(ctx[0], 0, ctx[1], ctx[2], ctx[3], 0);
}

/*
 * The functions of operations: `int prep(req, sqe)` when an operation is
 * submitted, `int issue(req, flags)` when it is carried out. Each function of a
 * watched operation has a copy of the gate, which jumps to the shared body.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} uring_prep_bodies SEC(".maps"), uring_issue_bodies SEC(".maps");

SEC("fexit")
int uring_prep_body(__u64 *ctx)
{
	struct io_kiocb *req = (struct io_kiocb *)ctx[0];

	return uring_submitted(req, LOAD(0, req, opcode));
}

SEC("fexit")
int uring_prep_gate(__u64 *ctx)
{
	const struct io_kiocb *req = (const struct io_kiocb *)ctx[0];

	if (HAS(req, opcode) && !(__s32)ctx[2] && uring_has(uring_control.watched, req->opcode))
		bpf_tail_call(ctx, &uring_prep_bodies, 0);
	return 0;
}

/*
 * This task is about to carry out an operation that some rule selects or may select: prepares the
 * note for the object hooks. The operation may be given up and tried again by another task; then
 * the note of that task counts.
 */
static __always_inline int issue_begins(__u64 address, __u8 op)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct object_calls *calls = these_object_calls();
	struct object_note *note;
	__u32 class;

	if (!calls || !uring_under_way)
		return 0;
	class = calls->operations[op];
	if (class == OBJECTS_NONE || !bpf_map_lookup_elem(&uring_requests, &address))
		return 0;
	note = bpf_task_storage_get(&object_notes, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!note)
		return 0;
	note_clear(note);
	note->place = call_place((struct pt_regs *)bpf_task_pt_regs(task));
	note->class = class;
	note->open = 0;
	note->operation = address;
	return 0;
}

SEC("fentry")
int uring_issue_begins(__u64 *ctx)
{
	const struct io_kiocb *req = (const struct io_kiocb *)ctx[0];

	return HAS(req, opcode) ? issue_begins((__u64)req, req->opcode) : 0;
}

SEC("fexit")
int uring_issue_body(__u64 *ctx)
{
	const struct io_kiocb *req = (const struct io_kiocb *)ctx[0];

	return uring_completed(0, (__u64)req, 0, LOAD(0, req, cqe.res), 0,
			       HAS(req, cqe.res) ? 0 : TARSIER_RESULT_UNKNOWN);
}

/* 0 (IOU_OK): the operation has ended. Otherwise other hooks see it tried again or fail. */
SEC("fexit")
int uring_issue_gate(__u64 *ctx)
{
	const struct io_kiocb *req = (const struct io_kiocb *)ctx[0];

	if (HAS(req, opcode) && !(__s32)ctx[2] && uring_has(uring_control.known, req->opcode))
		bpf_tail_call(ctx, &uring_issue_bodies, 0);
	return 0;
}

/* `void f(req, res)`: the operation fails, or is cancelled. */
SEC("fentry")
int uring_failed(__u64 *ctx)
{
	return uring_completed(0, ctx[0], 0, (__s32)ctx[1], 0, 0);
}

/* An operation is cancelled because another one that it was linked to has failed. */
COPIES("tp_btf/io_uring_fail_link", uring_link_failed,
       uring_completed(0, ctx[1], 0, -ECANCELED, 0, 0))

/*
 * Probes on the same functions, which run with preemption off. At the end of a
 * probed function, its arguments are not available: the probe at the entry saves
 * the request in the note of the task. A task runs one of these functions at a
 * time.
 */

/* The function that the cookie stands for: enum uring_part. */
static __always_inline __u64 uring_part(__u64 cookie)
{
	return cookie >> URING_PART_SHIFT;
}

SEC("kprobe.multi")
int uring_probe_on(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 cookie = bpf_get_attach_cookie(ctx), address = probe_argument(ctx, 0);
	struct io_kiocb *req = (struct io_kiocb *)address;
	struct task_note *note;
	struct cpu_state *cpu;

	if (!link_is_in_force(cookie))
		return 0;
	if (uring_part(cookie) == URING_FAILURE)
		return uring_completed(0, address, 0, (__s32)probe_argument(ctx, 1), 0, 0);
	note = bpf_task_storage_get(&task_notes, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!note) {
		cpu = state_of_cpu();
		if (cpu && uring_part(cookie) == URING_PREP)
			count_lost(cpu, TARSIER_LOSS_NO_MEMORY);
		return 0;
	}
	note->operation = address;
	if (uring_part(cookie) == URING_ISSUE && HAS(req, opcode))
		issue_begins(address, READ(req, opcode));
	return 0;
}

SEC("kprobe.multi")
int uring_probe_after(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_note *note = bpf_task_storage_get(&task_notes, task, 0, 0);
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct io_kiocb *req;
	__u32 op;

	if (!note || !link_is_in_force(cookie))
		return 0;
	req = (struct io_kiocb *)note->operation;
	note->operation = 0;
	if (!req || (__s32)probe_result(ctx) || !HAS(req, opcode))
		return 0;
	op = READ(req, opcode);
	if (uring_part(cookie) == URING_PREP)
		return uring_submitted(req, op);
	if (!uring_has(uring_control.known, op))
		return 0;
	return uring_completed(0, (__u64)req, 0, READ(req, cqe.res), 0,
			       HAS(req, cqe.res) ? 0 : TARSIER_RESULT_UNKNOWN);
}
