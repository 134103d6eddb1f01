/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * io_uring operations. An operation is matched when it is submitted: its names
 * are then kernel copies, and the current task is the submitter (or the ring's
 * SQPOLL thread, which has the submitter's ids). Its event waits in the daemon
 * for a RESULT frame, which is sent when the operation has ended.
 *
 * The hooks that see submissions and ends are in uring_hooks.bpf.inc.c.
 */
#ifndef TARSIER_URING_H
#define TARSIER_URING_H

#include "addresses.h"
#include "base.h"
#include "call.h"
#include "found.h"
#include "objects.h"
#include "parts.h"
#include "uring_args.h"

#define ECANCELED 125
#define CQE_F_MORE 2
#define CQE_F_NOTIF 8

/* Operations in progress, by the address of the request. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARSIER_PENDING_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct uring_request);
} uring_requests SEC(".maps");

struct uring_completion {
	__u64 ctx;
	__u64 user_data;
};

/* Address of the request, for completions that do not have it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARSIER_PENDING_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct uring_completion);
	__type(value, __u64);
} uring_by_data SEC(".maps");

/* Operations in progress, by maker: one alone cannot take all the room that there is. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct maker);
	__type(value, __s64);
} uring_makers SEC(".maps");

struct uring_control uring_control SEC(".bss.uring");

/* Without these members, operations are not captured. */
#define REQUESTS_ARE_KNOWN \
	(TYPE_HAS(io_kiocb, opcode) && TYPE_HAS(io_kiocb, flags) && TYPE_HAS(io_kiocb, ctx))

static __always_inline bool uring_has(const __u64 *operations, __u32 op)
{
	return operations[op >> 6 & 3] & (1ULL << (op & 63));
}

static __always_inline __u64 uring_flags(struct io_kiocb *req)
{
	__u64 flags = 0;

	bpf_core_read(&flags, bpf_core_field_size(req->flags), &req->flags);
	return flags;
}

/* Replaces the ids of the task by those of the request, if the request has its own. */
static __always_inline void uring_ids(struct work *w, struct io_kiocb *req, __u64 flags)
{
	const struct cred *cred;

	if (!(flags >> (uring_control.creds_bit & 63) & 1))
		return;
	if (!HAS(req, creds))
		return;

	cred = BPF_CORE_READ(req, creds);
	set_fact(w, FACT_UID, READ(cred, uid.val));
	set_fact(w, FACT_EUID, READ(cred, euid.val));
	set_fact(w, FACT_SUID, READ(cred, suid.val));
	set_fact(w, FACT_FSUID, READ(cred, fsuid.val));
	set_fact(w, FACT_GID, READ(cred, gid.val));
	set_fact(w, FACT_EGID, READ(cred, egid.val));
	set_fact(w, FACT_SGID, READ(cred, sgid.val));
	set_fact(w, FACT_FSGID, READ(cred, fsgid.val));
}

static __always_inline void part_name(struct work *w, struct task_struct *task,
				      struct uring_names *names, __u32 i)
{
	struct filename *filename = names->name[i];
	const char *text = READ(filename, name);
	struct tarsier_part *part;
	char *data;
	long n;

	w->find.path_len[i & 1] = 0;
	if (!text)
		return;

	part = part_begin(w, TARSIER_PART_PATH, i);
	if (!part)
		return;

	if (w->len > TARSIER_EVENT_MAX - TARSIER_PATH_MAX - 64) {
		event_of(w)->flags |= TARSIER_TRUNCATED;
		return;
	}

	data = frame_at(w, w->len + sizeof(*part));
	n = bpf_probe_read_kernel_str(data, TARSIER_PATH_MAX, text);
	w->find.path_at[i & 1] = w->len + sizeof(*part);
	w->find.path_len[i & 1] = n > 0 ? n - 1 : 0;

	if (n > 0 && data[0] != '/' && names->dir[i] != AT_FDCWD) {
		part_end(w, part, n - 1);
		part_file(w, task, names->dir[i], i, TARSIER_PART_DIR);
		return;
	}

	part_end(w, part, n > 0 ? n - 1 : 0);
}

/*
 * Finds the kernel's copy of the address of a message, which io_sendmsg_prep(), io_uring/net.c, makes when the operation
 * is submitted. What is in user memory may be something else since. Where other operations keep theirs depends on the
 * kernel.
 */
static __always_inline void uring_address(struct work *w, struct io_kiocb *req, __u64 flags,
					  __u32 op)
{
	__u32 async_bit = uring_control.async_bit;
	struct io_async_msghdr *data;

	w->copied_address = 0;
	if (!HAS(req, async_data) || !TYPE_HAS(io_async_msghdr, msg) || async_bit > 63 ||
	    !(flags >> (async_bit & 63) & 1))
		return;
	if (op != OP_SENDMSG && op != OP_SENDMSG_ZC && op != OP_SEND && op != OP_SEND_ZC)
		return;
	data = READ(req, async_data);
	if (!data)
		return;

	w->copied_len = READ(data, msg.msg_namelen);
	w->copied_address = (__u64)READ(data, msg.msg_name);
	/* It has none. */
	if (!w->copied_address) {
		w->copied_address = (__u64)data;
		w->copied_len = 0;
	}
}

/* Adds the socket address that the operation was given. What is in user memory may not be what the kernel uses. */
static __always_inline void part_given_address(struct work *w)
{
	struct tarsier_part *part;
	const void *addr;
	__u32 len = sockaddr_place(w, &addr);

	if (!len && w->fact[FACT_SOCKET_NAME] != MAY_NAME_SOCKET)
		return;
	part = part_begin(w, TARSIER_PART_SOCKADDR, 0);
	if (!part)
		return;
	if (len > 128)
		len = 128;
	if (!len || read_address(w, part + 1, len, addr)) {
		part->flags |= TARSIER_PART_UNREADABLE;
		len = 0;
	}
	if (!w->copied_address)
		part->flags |= TARSIER_PART_OTHER_USED;
	part_end(w, part, len);
}

static __always_inline void uring_objects(struct work *w, struct task_struct *task,
					  struct io_kiocb *req, struct uring_names *names)
{
	struct io_open *open = (struct io_open *)req;

	if (names_socket(w) || names->name[0] || w->spec.fd < 6)
		part_cwd(w, task);

	part_name(w, task, names, 0);
	part_name(w, task, names, 1);
	/*
	 * The number of a registered file is not a descriptor; and a descriptor may stand for another
	 * file when the operation is carried out.
	 */
	if (w->spec.fd < 6 && !(uring_flags(req) & 1))
		part_of_file(w, file_of(task, w->args[w->spec.fd]), 1,
			     TARSIER_PART_FILE | TARSIER_PART_UNSURE << 24);

	part_given_address(w);

	if (w->nr == OP_OPENAT2 && HAS(open, how.flags) && HAS(open, how.mode) &&
	    HAS(open, how.resolve)) {
		__u64 how[3] = { READ(open, how.flags), READ(open, how.mode),
				 READ(open, how.resolve) };

		part_bytes(w, TARSIER_PART_OPEN_HOW, how, sizeof(how));
	}
}

/*
 * Adds what the names lead to now. Operations that are carried out later may find other objects
 * there; the daemon records those of which nobody knows.
 */
__noinline int uring_found(struct work *w, __u32 i)
{
	struct find *f;

	if (!NAMES_ARE_KNOWN || !w)
		return 0;
	i &= 1;
	if (!i && w->spec.flags & SPEC_TEXT_FIRST)
		return 0;

	f = &w->find;
	if (!find_take_text(w, i))
		return 0;

	find_text_of(w, i, false, true);
	find_directories(w, TARSIER_FOUND_TARGET | TARSIER_FOUND_PARENT);
	part_found(w, i, TARSIER_PART_BEFORE, &f->found);
	return 0;
}

/* Adds the objects that the request touched, if this task carried it out. */
__noinline int uring_note(struct work *w, __u64 req)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct object_note *note;

	if (!w)
		return 0;
	note = bpf_task_storage_get(&object_notes, task, 0, 0);
	if (!note || !note->operation || note->operation != req)
		return 0;
	note->operation = 0;
	note_parts(w, note);
	return 0;
}

/* Sends a result. `req` is the address of the request, or 0 if its end was not seen. */
static __always_inline void uring_result(struct work *w, struct cpu_state *cpu,
					 struct uring_request *request, __u64 req, __s64 exit,
					 __u32 flags)
{
	struct tarsier_result *result = (struct tarsier_result *)w->frame;
	__u32 cpu_nr = bpf_get_smp_processor_id(), size;
	void *ring = bpf_map_lookup_elem(&rings, &cpu_nr);
	bool is_lost;

	w->len = sizeof(*result);
	w->parts = 0;
	w->ret = exit;

	/* Of one submission, a later operation may have given the descriptor to another file. */
	if (request->opens && exit >= 0 && !(flags & TARSIER_RESULT_UNKNOWN) &&
	    request->tgid == (__u32)(bpf_get_current_pid_tgid() >> 32))
		part_of_file(w, file_of(bpf_get_current_task_btf(), exit), 0,
			     TARSIER_PART_FILE | TARSIER_PART_UNSURE << 24);

	/* The file that the kernel has taken for the operation, whatever its descriptor stands for. */
	if (request->has_file && req && HAS((struct io_kiocb *)req, file))
		part_of_file(w, READ((struct io_kiocb *)req, file), 1, TARSIER_PART_FILE);

	/* Through memory, where the verifier forgets that it may be a pointer. */
	*(volatile __u64 *)&w->own[0] = req;
	uring_note(w, *(volatile __u64 *)&w->own[0]);

	size = w->len;
	if (size > TARSIER_EVENT_MAX)
		size = TARSIER_EVENT_MAX;
	result->frame.size = size;
	result->frame.kind = TARSIER_FRAME_RESULT;
	result->frame.version = TARSIER_WIRE_VERSION;
	result->frame.id = request->id;
	result->frame.time_ns = bpf_ktime_get_ns();
	result->exit = exit;
	result->flags = flags;
	result->parts = w->parts;

	/* Without its first result, an operation is recorded as pending; each further one is an event. */
	is_lost = !ring || bpf_ringbuf_output(ring, w->frame, size, BPF_RB_NO_WAKEUP);
	if (is_lost && request->has_result) {
		count_lost(cpu, TARSIER_LOSS_RING_FULL);
		count_rule(request->rule, FATE_LOST);
	}

	request->has_result |= !!(flags & TARSIER_RESULT_MORE);
	if (is_lost)
		return;
	record_went(cpu, ring, size, BOUND_LACKS_FRAME, false);
}

static __always_inline void uring_drop(__u64 address)
{
	struct uring_request *request = bpf_map_lookup_elem(&uring_requests, &address);
	struct maker maker;
	__s64 *count;

	if (!request)
		return;

	maker = request->maker;
	if (bpf_map_delete_elem(&uring_requests, &address))
		return;

	__sync_fetch_and_add(&uring_under_way, -1);
	count = bpf_map_lookup_elem(&uring_makers, &maker);
	if (count)
		__sync_fetch_and_add(count, -1);
}

static __always_inline void uring_forget(__u64 address, const struct uring_request *request)
{
	struct uring_completion key = { request->ctx, request->user_data };
	__u64 *by_data = bpf_map_lookup_elem(&uring_by_data, &key);

	if (by_data && *by_data == address)
		bpf_map_delete_elem(&uring_by_data, &key);
	uring_drop(address);
}

/*
 * The request is reused although the end of its last operation was not seen: it
 * succeeded without a completion, or its completion was missed.
 */
static __always_inline void uring_ended_unseen(struct work *w, struct cpu_state *cpu, __u64 address)
{
	struct uring_request *known = bpf_map_lookup_elem(&uring_requests, &address);

	if (!known)
		return;
	uring_result(w, cpu, known, 0, 0,
		     known->silent ? TARSIER_RESULT_ASSUMED : TARSIER_RESULT_UNKNOWN);
	uring_forget(address, known);
}

/* Whether another operation of this maker may be remembered, which is counted then. */
static __always_inline bool uring_has_room(struct maker *maker)
{
	__s64 one = 1, *count = bpf_map_lookup_elem(&uring_makers, maker);

	if (!count && !bpf_map_update_elem(&uring_makers, maker, &one, BPF_NOEXIST))
		return true;
	if (!count)
		count = bpf_map_lookup_elem(&uring_makers, maker);
	if (!count || *(volatile __s64 *)count >= MAKER_OPERATIONS_MAX)
		return false;
	__sync_fetch_and_add(count, 1);
	return true;
}

enum memory {
	MEMORY_USED_UP, /* by this maker or by all: the operation is recorded without its result */
	MEMORY_REMEMBERED,
};

/* Whether the file that is opened gets a slot of the ring: then the result is no descriptor. */
static __always_inline bool has_slot(struct io_kiocb *req)
{
	struct io_open *open = (struct io_open *)req;

	return HAS(open, file_slot) && READ(open, file_slot);
}

static __always_inline enum memory uring_remember(struct work *w, struct io_kiocb *req, __u64 flags)
{
	struct uring_request request = {
		.id = w->id,
		.ctx = (__u64)READ(req, ctx),
		.user_data = READ(req, cqe.user_data),
		.rule = w->rule,
		.tgid = w->fact[FACT_PID],
		.opens = w->spec.kind == KIND_OPEN && !has_slot(req),
		.has_file = w->spec.fd < 6,
		.silent = flags >> (uring_control.skip_bit & 63) & 1,
		.maker = maker_of(w->fact[FACT_UID]),
	};
	struct uring_completion key = { request.ctx, request.user_data };
	__u64 address = (__u64)req;
	__s64 *count;

	if (!uring_has_room(&request.maker))
		return MEMORY_USED_UP;

	if (bpf_map_update_elem(&uring_requests, &address, &request, BPF_NOEXIST)) {
		count = bpf_map_lookup_elem(&uring_makers, &request.maker);
		if (count)
			__sync_fetch_and_add(count, -1);
		return MEMORY_USED_UP;
	}

	__sync_fetch_and_add(&uring_under_way, 1);
	/* Needed to recognise a completion that overflows its ring. */
	if (HAS(req, cqe.user_data))
		bpf_map_update_elem(&uring_by_data, &key, &address, BPF_ANY);
	return MEMORY_REMEMBERED;
}

/* An operation is submitted; the kernel has read and checked its arguments. */
static __always_inline int uring_submitted(struct io_kiocb *req, __u32 op)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 verdict;
	struct uring_names names;
	enum memory memory;
	struct call call = {};
	struct cpu_state *cpu;
	struct work *w;
	__u64 flags;

	if (!REQUESTS_ARE_KNOWN)
		return 0;
	if (!uring_has(uring_control.watched, op))
		return 0;
	op = uring_number(req, op);
	if (!find_call(&call, ENTRY_URING, op))
		return 0;

	cpu = state_of_cpu();
	if (!cpu || !audited(task))
		return 0;

	w = work_for(cpu);
	if (!w)
		return 0;
	flags = uring_flags(req);
	uring_ended_unseen(w, cpu, (__u64)req);

	find_spec(&call, w);
	w->is_operation = 1;
	w->arch = 0;
	w->nr = op;
	w->given_nr = op;
	w->ret = 0;

	uring_args(w, &names, req, op);
	uring_address(w, req, flags, op);
	task_facts(w, task);
	uring_ids(w, req, flags);
	call_facts(w, false);
	__sync_fetch_and_add(&cpu->evaluated, 1);

	verdict = evaluate(call.table, w, call.what.pages, call.what.npages, call.what.list);
	if (!recorded(verdict, w))
		goto out;

	w->id = next_id(cpu);
	memory = uring_remember(w, req, flags);
	event_begin(w, call.generation,
		    TARSIER_URING |
			    (memory == MEMORY_USED_UP ? TARSIER_NO_RETURN : TARSIER_PENDING) |
			    (flags >> (uring_control.skip_bit & 63) & 1 ? TARSIER_SILENT : 0) |
			    (verdict == VERDICT_UNDECIDED ? TARSIER_UNDECIDED : 0));

	uring_objects(w, task, req, &names);
	uring_found(w, 0);
	uring_found(w, 1);
	if (verdict == VERDICT_UNDECIDED)
		event_candidates(w);

	/* An event that is lost has no use for a result. */
	if (!event_end(w) && memory == MEMORY_REMEMBERED)
		uring_drop((__u64)req);
out:
	work_leave(w);
	return 0;
}

/* Whether a completion may be that of an operation in progress. This is asked before anything is read. */
static __always_inline bool uring_may_know(__u64 req)
{
	return !req || bpf_map_lookup_elem(&uring_requests, &req);
}

/* A completion is posted. `req` is 0 if the request has several, or if the queue is full. */
static __always_inline int uring_completed(__u64 ctx, __u64 req, __u64 user_data, __s32 res,
					   __u32 cqe_flags, __u32 result_flags)
{
	struct uring_completion key = { ctx, user_data };
	struct uring_request *request;
	struct cpu_state *cpu;
	bool more = false;
	__u64 *by_data;
	struct work *w;

	if (!uring_under_way || (cqe_flags & CQE_F_NOTIF))
		return 0;

	if (!req) {
		by_data = bpf_map_lookup_elem(&uring_by_data, &key);
		if (!by_data)
			return 0;
		req = *by_data;
		more = cqe_flags & CQE_F_MORE;
	}

	request = bpf_map_lookup_elem(&uring_requests, &req);
	cpu = state_of_cpu();
	if (!request || !cpu)
		return 0;

	w = work_for(cpu);
	if (w) {
		uring_result(w, cpu, request, req, res,
			     result_flags | (more ? TARSIER_RESULT_MORE : 0));
		work_leave(w);
	}

	if (!more)
		uring_forget(req, request);
	return 0;
}

#endif /* TARSIER_URING_H */
