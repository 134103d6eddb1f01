/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Makes frames of a selected call and puts them into the ring of this CPU. */
#ifndef TARSIER_EMIT_H
#define TARSIER_EMIT_H

#include "arch.h"
#include "base.h"
#include "facts.h"
#include "files.h"
#include "labels.h"
#include "overload.h"
#include "walk.h"

#define AT_FDCWD (-100)
#define FMODE_CREATED 0x100000
_Static_assert(TARSIER_RING_MIN >= TARSIER_EVENT_MAX + FRAME_SLACK + 8,
	       "the smallest ring has room for the largest frame");
/* Bytes that each record takes in the ring in addition to its own, rounding included. */
#define RING_HEADER 16
#define NS_PER_S 1000000000ULL

/* Adds a string from user space; returns its first byte, or 0. */
static __always_inline char part_user_string(struct work *w, __u16 tag, __u8 index, __u64 address)
{
	struct tarsier_part *part = part_begin(w, tag, index);
	char *data, first = 0;
	long n;

	if (!part)
		return 0;
	if (w->len > TARSIER_EVENT_MAX - TARSIER_PATH_MAX - 64) {
		event_of(w)->flags |= TARSIER_TRUNCATED;
		return 0;
	}
	data = frame_at(w, w->len + sizeof(*part));
	n = bpf_probe_read_user_str(data, TARSIER_PATH_MAX + 1, (void *)address);
	if (n < 0) {
		part->flags |= TARSIER_PART_UNREADABLE;
		n = 0;
	} else if (n > 0) {
		n--;
		if (n >= TARSIER_PATH_MAX)
			part->flags |= TARSIER_PART_CUT;
		if (n)
			first = data[0];
	}
	part_end(w, part, n);
	return first;
}

static __always_inline void part_bytes(struct work *w, __u16 tag, const void *data, __u32 len)
{
	struct tarsier_part *part = part_begin(w, tag, 0);

	if (!part)
		return;
	__builtin_memcpy(part + 1, data, len);
	part_end(w, part, len);
}

/* Adds a file. `tag` is that of the part, with its flags << 24. */
static __always_inline void part_of_file(struct work *w, struct file *file, __u8 index, __u32 tag)
{
	struct inode *inode;
	__u32 flags = 0;

	if (!HAS(file, f_path) || !file)
		return;
	inode = READ(file, f_inode);
	if (READ(file, f_mode) & FMODE_CREATED)
		flags = TARSIER_PART_CREATED;
	if (flags || tag >> 24)
		w->find.is_doubted = 1;
	walk_path(w, tag | (__u32)index << 16 | flags << 24, (__u64)&file->f_path, (__u64)inode,
		  true);
}

static __always_inline void part_file(struct work *w, struct task_struct *task, __u32 fd,
				      __u8 index, __u32 tag)
{
	struct file *file = file_of(task, fd);

	if (tag == TARSIER_PART_FILE && !has_own_files(task)) {
		tag |= TARSIER_PART_UNSURE << 24;
		if (file && is_held(file))
			tag |= (__u32)TARSIER_PART_HELD << 24;
	}
	part_of_file(w, file, index, tag);
}

/* Adds bytes from user space: `len` of them, but at most `max`, which FRAME_SLACK has to exceed. */
static __always_inline void part_user_bytes(struct work *w, __u16 tag, const void *addr, __u32 len,
					    __u32 max)
{
	struct tarsier_part *part = part_begin(w, tag, 0);

	if (!part)
		return;
	if (len > max)
		len = max;
	if (len && bpf_probe_read_user(part + 1, len, addr)) {
		part->flags |= TARSIER_PART_UNREADABLE;
		len = 0;
	}
	part_end(w, part, len);
}

static __always_inline void copy_title(__u64 *to, const __u64 *from)
{
	__u32 i;

#pragma unroll
	for (i = 0; i < TARSIER_PROCTITLE_MAX / 8; i++)
		to[i] = from[i];
}

/* Whether the kernel's types say where the arguments of a process are. */
#define ARGUMENTS_ARE_KNOWN \
	(TYPE_HAS(task_struct, mm, arg_start) && TYPE_HAS(task_struct, mm, arg_end))

/*
 * Adds the command line. All records of a task have the command line of its first
 * event (audit_log_proctitle(), kernel/auditsc.c). Later events thus need not read
 * user memory, which would be a seventh of their cost.
 */
static __always_inline void part_proctitle(struct work *w, struct task_struct *task)
{
	struct tarsier_part *part = part_begin(w, TARSIER_PART_PROCTITLE, 0);
	struct tarsier_event *e = event_of(w);
	unsigned long start = 0, end = 0;
	struct title *kept = &w->titles[e->tid % TITLES];
	const struct mm_struct *mm;
	__u64 len;
	__u8 first;

	if (ARGUMENTS_ARE_KNOWN) {
		mm = untrusted(task)->mm;
		start = mm->arg_start;
		end = mm->arg_end;
	}
	len = end - start;
	if (!part)
		return;

	/* Events of io_uring may be made by another task than the one that they are about. */
	if (kept->tid == e->tid && kept->start_time_ns == e->start_time_ns &&
	    !(e->flags & TARSIER_URING)) {
		copy_title((__u64 *)(part + 1), kept->words);
		part_end(w, part, kept->len & (2 * TARSIER_PROCTITLE_MAX - 1));
		return;
	}

	if (len > TARSIER_PROCTITLE_MAX)
		len = TARSIER_PROCTITLE_MAX;
	if (!start || bpf_probe_read_user(part + 1, len, (void *)start)) {
		part->flags |= TARSIER_PART_UNREADABLE;
		len = 0;
	}
	part_end(w, part, len);

	first = *(__u8 *)(part + 1);
	/* Without its start time, a task cannot be told from an earlier one with the same id. */
	if (!HAS(task, group_leader, start_boottime))
		return;

	/* The kernel keeps no unprintable title, and none for calls that no rule selects. */
	if (!len || first <= ' ' || first > '~' || e->flags & (TARSIER_UNDECIDED | TARSIER_URING))
		return;

	kept->tid = e->tid;
	kept->start_time_ns = e->start_time_ns;
	kept->len = len;
	copy_title(kept->words, (const __u64 *)(part + 1));
}

static __always_inline void event_identity(struct work *w, struct task_struct *task)
{
	struct tarsier_event *e = event_of(w);
	const struct task_struct *from = untrusted(task);
	struct tty_struct *tty = LOAD(0, from, signal, tty);

	e->start_time_ns = LOAD(0, from, group_leader, start_boottime);
	e->tid = task->pid;
	e->pid = w->fact[FACT_PID];
	e->ppid = w->fact[FACT_PPID];
	e->auid = w->fact[FACT_AUID];
	e->ses = w->fact[FACT_SES];
	e->uid = w->fact[FACT_UID];
	e->gid = w->fact[FACT_GID];
	e->euid = w->fact[FACT_EUID];
	e->suid = w->fact[FACT_SUID];
	e->fsuid = w->fact[FACT_FSUID];
	e->egid = w->fact[FACT_EGID];
	e->sgid = w->fact[FACT_SGID];
	e->fsgid = w->fact[FACT_FSGID];
	e->personality = w->fact[FACT_PERS];

	if (HAS(task, comm))
		__builtin_memcpy(e->comm, task->comm, sizeof(e->comm));
	else
		__builtin_memset(e->comm, 0, sizeof(e->comm));

	e->tty[0] = 0;
	if (HAS(tty, name) && tty)
		bpf_probe_read_kernel_str(e->tty, sizeof(e->tty), tty->name);

	if (HAS(from, mm, exe_file, f_inode))
		known_inode_facts(&e->exe, from->mm->exe_file->f_inode);
	else
		no_inode_facts(&e->exe);
}

/* The id of the next event. Atomic, since other events on this CPU may be in progress. */
static __always_inline __u64 next_id(struct cpu_state *cpu)
{
	return (__u64)bpf_get_smp_processor_id() << 48 | __sync_fetch_and_add(&cpu->serial, 1);
}

/* The cgroup that rules have compared, if they have. */
static __always_inline __u64 cgroup_of_event(struct work *w, struct task_struct *task)
{
	__u64 id;

	if (w->computed & WORKLOAD_FACTS) {
		id = w->cgroup_id;
		/* Otherwise the compiler merges both loads, which the verifier refuses. */
		asm volatile("" : "+r"(id));
		return id;
	}
	return LOAD(0, untrusted(task), cgroups, dfl_cgrp, kn, id);
}

/* Adds the number of the task's label, where labels are read. */
static __always_inline void part_subject(struct work *w, const struct cred *cred)
{
	__u32 places = control.label_places, label;

	if (!places || !HAS(cred, security))
		return;
	label = label_in(cred->security, SUBJECT_PLACE(places));
	if (label)
		part_bytes(w, TARSIER_PART_SUBJECT, &label, sizeof(label));
}

/* Writes the header and the parts that every event has. The caller has set w->id. */
__noinline int event_begin(struct work *w, __u64 generation, __u32 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct tarsier_event *e;
	__u32 i;

	if (!w)
		return 0;
	e = event_of(w);
	e->frame.kind = TARSIER_FRAME_EVENT;
	e->frame.version = TARSIER_WIRE_VERSION;
	e->cpu = bpf_get_smp_processor_id();
	e->frame.id = w->id;

	/* Before the time: the frame that tells of this cgroup then has an earlier one. */
	e->cgroup_id = cgroup_of_event(w, task);
	e->frame.time_ns = bpf_ktime_get_ns();

	e->generation = generation;
	e->rule = w->rule;
	e->flags = flags;
	e->arch = arch_audit(w->arch);
	e->nr = w->given_nr;
	e->exit = w->ret;
	e->chunks = 0;

	e->mnt_ns = LOAD(0, untrusted(task), nsproxy, mnt_ns, ns.inum);
	for (i = 0; i < 6; i++)
		e->args[i] = w->args[i];

	event_identity(w, task);
	w->len = sizeof(*e);
	w->parts = 0;
	if (LOAD(0, untrusted(task), mm, exe_file))
		walk_own(w, untrusted(task), TARSIER_PART_EXE);
	part_proctitle(w, task);
	part_subject(w, untrusted(task)->cred);
	return 0;
}

/* Wakes the daemon, unless it has been rung already and has not yet read that: it does not sleep then. */
static __always_inline void ring_bell(void)
{
	__u64 word = 1;

	if (bpf_ringbuf_query(&doorbell, BPF_RB_AVAIL_DATA))
		return;
	bpf_ringbuf_output(&doorbell, &word, sizeof(word), BPF_RB_FORCE_WAKEUP);
}

/* How far cpu->unread_bound counts when a frame has been put into the ring. */
enum bound {
	BOUND_LACKS_CHUNKS, /* it is without other frames, too, that were put there since */
	BOUND_LACKS_FRAME,
	BOUND_SUFFICES, /* as before, and above the high mark the exact number is asked for later */
};

/*
 * Called after `size` bytes were put into the ring. Wakes the daemon if the ring
 * reaches the watermark. Returns the number of unread bytes, or 0 if they are below
 * the watermark. The ring is queried only if they may have reached it: reading only
 * makes them fewer.
 */
static __always_inline __u64 record_counted(struct cpu_state *cpu, void *ring, __u32 size,
					    enum bound known)
{
	__u64 before = cpu->unread_bound, bound = before + in_ring(size);

	cpu->put_bytes += in_ring(size);

	if (known != BOUND_LACKS_CHUNKS && bound < control.watermark_bytes) {
		cpu->unread_bound = bound;
		return 0;
	}

	if (known != BOUND_SUFFICES || bound <= control.high_bytes)
		bound = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);

	cpu->unread_bound = bound;
	if (before < control.watermark_bytes && bound >= control.watermark_bytes)
		ring_bell();
	return bound;
}

/* As record_counted(). Also wakes the daemon if it sleeps, or if the event is urgent. */
static __always_inline __u64 record_went(struct cpu_state *cpu, void *ring, __u32 size,
					 enum bound known, bool urgent)
{
	/* bpf_ringbuf_output() ends in an xchg(), a full barrier between writing the
	 * record and reading the flag. The daemon clears the flag before it looks at
	 * the ring once more. */
	if (!*(volatile __u32 *)&control.reader_awake || urgent)
		ring_bell();
	return record_counted(cpu, ring, size, known);
}

/*
 * Counts a lost event for the uid of the task. A function of its own, as losses are few: each look-up
 * makes a program longer while the kernel loads it.
 */
__noinline int count_lost_of_uid(void)
{
	__u32 uid = bpf_get_current_uid_gid();
	__u64 one = 1, *by_uid = bpf_map_lookup_elem(&lost_by_uid, &uid);

	/* Another CPU may have added the uid. What finds no room is in no count by uid. */
	if (!by_uid && bpf_map_update_elem(&lost_by_uid, &uid, &one, BPF_NOEXIST))
		by_uid = bpf_map_lookup_elem(&lost_by_uid, &uid);
	else if (!by_uid)
		return 0;
	if (by_uid)
		__sync_fetch_and_add(by_uid, 1);
	return 0;
}

static __always_inline void count_lost(struct cpu_state *cpu, enum tarsier_loss cause)
{
	__sync_fetch_and_add(&cpu->lost[cause], 1);
	count_lost_of_uid();
}

enum fate {
	FATE_SELECTED,
	FATE_LOST,
	FATE_SUPPRESSED,
};

static ONCE void count_rule(__u32 rule, enum fate fate)
{
	__u32 slot = rule == TARSIER_NO_RULE ? 0 : rule + 1;
	struct rule_count *count = bpf_map_lookup_elem(&rule_counts, &slot);

	if (!count)
		return;
	if (fate == FATE_LOST)
		__sync_fetch_and_add(&count->lost, 1);
	else if (fate == FATE_SUPPRESSED)
		__sync_fetch_and_add(&count->suppressed, 1);
	else
		__sync_fetch_and_add(&count->selected, 1);
}

/*
 * Takes an event of this rule from its budget. Returns 1 if there was nothing left: the event is
 * counted then, and is not to be recorded. Of two processors that begin a second, one does.
 */
__noinline int over_budget(__u32 rule)
{
	struct budget *budget = bpf_map_lookup_elem(&budgets, &rule);
	struct cpu_state *cpu = state_of_cpu();
	__u64 second, spent;

	if (!budget || !budget->rate)
		return 0;

	second = bpf_ktime_get_ns() / NS_PER_S;
	spent = *(volatile __u64 *)&budget->spent;

	if (spent >> BUDGET_COUNT_BITS != (__u32)second &&
	    __sync_val_compare_and_swap(&budget->spent, spent, second << BUDGET_COUNT_BITS | 1) ==
		    spent)
		return 0;

	spent = __sync_fetch_and_add(&budget->spent, 1);
	if ((__u32)spent < budget->rate)
		return 0;

	count_rule(rule, FATE_SUPPRESSED);
	if (cpu)
		__sync_fetch_and_add(&cpu->suppressed, 1);
	return 1;
}

/* Whether a matched call is to be recorded. The daemon looks after the budgets of undecided ones. */
static __always_inline bool recorded(__u32 verdict, struct work *w)
{
	if (verdict == VERDICT_DROP || control.muted)
		return false;
	if (w->lookup.labels)
		label_process(w, verdict);
	return !control.has_budgets || verdict != VERDICT_RECORD || !over_budget(w->rule);
}

static __always_inline int lost_for(struct cpu_state *cpu, enum tarsier_loss cause)
{
	count_lost(cpu, cause);
	return 1;
}

/*
 * Puts the finished event into the ring. Returns 1 if it was lost, which is counted.
 * The end of the ring is kept free for urgent events. A function of its own, which the verifier goes
 * through once.
 */
__noinline int event_out(struct work *w, __u32 urgent)
{
	__u64 end = control.ring_bytes, fill, room;
	struct cpu_state *cpu = state_of_cpu();
	bool waits = control.throttle;
	__u32 cpu_nr, size;
	void *ring;

	if (!w || !cpu)
		return 1;

	size = w->len;
	if (size > TARSIER_EVENT_MAX + FRAME_SLACK)
		size = TARSIER_EVENT_MAX + FRAME_SLACK;
	event_of(w)->frame.size = size;

	cpu_nr = event_of(w)->cpu;
	ring = bpf_map_lookup_elem(&rings, &cpu_nr);
	if (!ring)
		return lost_for(cpu, TARSIER_LOSS_RING_FULL);

	room = size + RING_HEADER;
	if (!urgent)
		end -= control.reserve_bytes;
	fill = cpu->unread_bound;
	if (event_of(w)->chunks || fill + room > end)
		fill = ask_fill(cpu, ring);

	if (fill + room > control.high_bytes) {
		if (waits && has_stalled(cpu, event_of(w)->frame.time_ns))
			waits = is_reader_alive(cpu, event_of(w)->frame.time_ns);
		if (!waits && may_be_over_share(w, cpu, ring, fill, size, urgent))
			return lost_for(cpu, TARSIER_LOSS_OVER_SHARE);
	}

	if (fill + room > end || bpf_ringbuf_output(ring, w->frame, size, BPF_RB_NO_WAKEUP)) {
		/* The next event asks again. */
		cpu->unread_bound = control.ring_bytes;
		if (size + 8 > bpf_ringbuf_query(ring, BPF_RB_RING_SIZE))
			return lost_for(cpu, TARSIER_LOSS_TOO_BIG);
		if (!waits || end < room)
			return lost_for(cpu, TARSIER_LOSS_RING_FULL);
		wait_for(cpu, ring, end - room, WAIT_FULL_NS);
		fill = ask_fill(cpu, ring);
		if (fill + room > end || bpf_ringbuf_output(ring, w->frame, size, BPF_RB_NO_WAKEUP))
			return lost_for(cpu, TARSIER_LOSS_RING_FULL);
	}
	return 0;
}

/* Sends the finished event or counts it as lost. Returns 1 if it was sent. */
__noinline int event_end(struct work *w)
{
	struct tarsier_event *e;
	__u32 cpu_nr, size;
	struct cpu_state *cpu = state_of_cpu();
	bool urgent;
	__u64 fill;
	void *ring;

	if (!cpu || !w)
		return 0;

	urgent = is_urgent(w->rule);
	e = event_of(w);
	cpu_nr = e->cpu;
	ring = bpf_map_lookup_elem(&rings, &cpu_nr);
	size = w->len;
	e->parts = w->parts;
	if (size > TARSIER_EVENT_MAX + FRAME_SLACK)
		size = TARSIER_EVENT_MAX + FRAME_SLACK;
	e->frame.size = size;

	if (event_out(w, urgent) || !ring) {
		count_rule(w->rule, FATE_LOST);
		return 0;
	}

	__sync_fetch_and_add(&cpu->events, 1);
	if (e->flags & TARSIER_UNDECIDED)
		__sync_fetch_and_add(&cpu->undecided, 1);
	count_rule(w->rule, FATE_SELECTED);

	fill = record_went(cpu, ring, size, e->chunks ? BOUND_LACKS_CHUNKS : BOUND_SUFFICES,
			   urgent);
	if (fill)
		slow_down(w, cpu, fill, size);
	return 1;
}

#endif /* TARSIER_EMIT_H */
