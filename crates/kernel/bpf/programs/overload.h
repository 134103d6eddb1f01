/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What happens if events are made faster than the daemon reads them. */
#ifndef TARSIER_OVERLOAD_H
#define TARSIER_OVERLOAD_H

#include "base.h"
#include "maps.h"
#include "steps.h"
#include "walk.h"

/* Longest wait at the end of a call while less than 3/4 of the space above the mark is in use. */
#define WAIT_MAX_NS 1000000ULL
/* Longest wait when the ring is full. */
#define WAIT_FULL_NS 20000000ULL
/* Calls do not wait for a reader that has taken no frame from any ring for this long. */
#define STALL_MAX_NS 1000000000ULL
/* Bounds a wait for the verifier: far more rounds of STEPS_MAX steps than fit in WAIT_FULL_NS. */
#define WAIT_ROUNDS_MAX 512
/* Steps between two looks at the ring, whose positions the reader writes; each reads the clock. */
#define STEPS_PER_LOOK 8
/* A uid gets a new share each time the reader has read another 1/RING_STEPS of the ring. */
#define RING_STEPS 16

/* Bytes that a frame of `size` bytes takes in a ring (BPF_RINGBUF_HDR_SZ, kernel/bpf/ringbuf.c). */
static __always_inline __u64 in_ring(__u64 size)
{
	return (size + 8 + 7) & ~7ULL;
}

struct wait {
	void *ring;
	__u64 until_ns;
	__u64 fill; /* the wait ends when at most this many bytes are unread */
};

STEP(wait_step, struct wait *wait, STEPS_MAX)
{
	if (i % STEPS_PER_LOOK == 0 &&
	    bpf_ringbuf_query(wait->ring, BPF_RB_AVAIL_DATA) <= wait->fill)
		return 1;
	return bpf_ktime_get_ns() >= wait->until_ns;
}

STEP(wait_round, struct wait *wait, WAIT_ROUNDS_MAX)
{
	return REPEAT(wait_step, wait) < STEPS_MAX;
}

/* Waits until at most `fill` bytes are unread, but no longer than limit_ns. */
static __always_inline void wait_for(struct cpu_state *cpu, void *ring, __u64 fill, __u64 limit_ns)
{
	struct wait wait = { .ring = ring, .fill = fill };
	__u64 start_ns = bpf_ktime_get_ns();

	wait.until_ns = start_ns + limit_ns;
	REPEAT(wait_round, &wait);
	cpu->waits++;
	cpu->waited_ns += bpf_ktime_get_ns() - start_ns;
}

/*
 * Whether the reader had taken nothing for too long when that was asked last. An event is about at
 * `now_ns`. Signed, since an event that has interrupted this one may have set a later time.
 */
static __always_inline bool has_stalled(struct cpu_state *cpu, __u64 now_ns)
{
	return (__s64)(now_ns - cpu->taken_ns) >= (__s64)STALL_MAX_NS;
}

/*
 * Whether the reader has recently taken frames, from any ring: it takes frames in
 * the order of their times, and for a while those of other rings may be older.
 * `now_ns`: about the time of bpf_ktime_get_ns(); an event has it already.
 */
static __always_inline bool is_reader_alive(struct cpu_state *cpu, __u64 now_ns)
{
	__u64 taken = *(volatile __u64 *)&control.frames_taken;

	if (taken != cpu->taken_seen) {
		cpu->taken_seen = taken;
		cpu->taken_ns = now_ns;
	}
	return !has_stalled(cpu, now_ns);
}

/* How long a call may wait if `over` of the `room` bytes above the mark are unread. */
static __always_inline __u64 wait_limit(__u64 over, __u64 room)
{
	__u64 near = room / 4 * 3;

	if (over < near)
		return over * WAIT_MAX_NS / near;
	if (over > room)
		over = room;
	return WAIT_MAX_NS + (over - near) * (WAIT_FULL_NS - WAIT_MAX_NS) / (room - near);
}

struct share {
	__s64 step; /* position of the reader, rounded down to a sixteenth of the ring */
	__u64 bytes;
	__u64 urgent_bytes; /* those of urgent events that were over the share */
};

/* Shares that are found without a search, of each CPU. */
#define NEAR_SHARES 256

struct near_shares {
	struct near_share {
		__u64 maker; /* as maker_number() */
		struct share share;
	} at[NEAR_SHARES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct near_shares);
} near_shares SEC(".maps");

struct share_key {
	__u64 maker;
	__u32 cpu;
	__u32 pad;
};

/* The shares of makers whose place among the near ones has another maker in this step. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct share_key);
	__type(value, struct share);
} far_shares SEC(".maps");

/* The most levels of user namespaces below the first one (user_namespaces(7)). */
#define USER_NAMESPACES_MAX 33

/*
 * Whose share an event of this task takes. All uids of a user namespace count as the user who made
 * it, or nobody would need more than newuidmap(1) to have many shares. Root makes them for others,
 * as container managers do: then the namespace itself counts. Of nested ones, the outermost counts.
 */
/* As is_namespace << 32 | id. A function of its own, which the verifier goes through once. */
__noinline __u64 maker_number(__u32 uid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct user_namespace *ns;
	int i, level = 0;
	__u32 owner;

	if (!TYPE_HAS(cred, user_ns) || !TYPE_HAS(user_namespace, parent) ||
	    !TYPE_HAS(user_namespace, level) || !TYPE_HAS(user_namespace, owner) ||
	    !TYPE_HAS(user_namespace, ns))
		return uid;

	if (!LOAD(0, untrusted(task), cred, user_ns, level))
		return uid;

	ns = READ(task, cred, user_ns);
	for (i = 0; i < USER_NAMESPACES_MAX; i++) {
		level = READ(ns, level);
		if (level <= 1)
			break;
		ns = READ(ns, parent);
	}

	if (level != 1)
		return uid;
	owner = READ(ns, owner.val);
	return owner ? owner : 1ULL << 32 | READ(ns, ns.inum);
}

static __always_inline struct maker maker_of(__u32 uid)
{
	__u64 number = maker_number(uid);
	struct maker maker = { .id = number, .is_namespace = number >> 32 };

	return maker;
}

static __always_inline void begin_share(struct share *share, __s64 step)
{
	share->step = step;
	share->bytes = 0;
	share->urgent_bytes = 0;
}

/* In memory of the programs, since up to 6.1 the stack of far_share() is the last that there is room for. */
static const struct share fresh_share;

/* A function of its own, for few makers need it. */
static __noinline struct share *far_share(__u64 maker, __u32 cpu_nr)
{
	struct share_key key = { .maker = maker, .cpu = cpu_nr };
	struct share *share;

	share = bpf_map_lookup_elem(&far_shares, &key);
	if (!share) {
		bpf_map_update_elem(&far_shares, &key, &fresh_share, BPF_ANY);
		share = bpf_map_lookup_elem(&far_shares, &key);
	}
	return share;
}

/* The place among the near shares of who made an event, and his number. */
static __always_inline __u32 near_place(__u32 uid, __u64 *maker)
{
	const struct task_struct *task;

	if (TYPE_HAS(task_struct, cred, user_ns, level)) {
		task = untrusted(bpf_get_current_task_btf());
		/* In the first user namespace, which most are in. */
		if (!task->cred->user_ns->level) {
			*maker = uid;
			return uid % NEAR_SHARES;
		}
	}
	*maker = maker_number(uid);
	return (*maker ^ *maker >> 32) % NEAR_SHARES;
}

/*
 * The bytes that the maker of an event has put into the ring of this CPU above the high mark. A near
 * share of another maker is taken over once it is of an earlier step, or empty, and counts for nothing.
 * `fill`: upper bound for the unread bytes. The step that follows from it may be an earlier one than
 * that of a share, which then goes on.
 */
static ONCE struct share *share_of(struct cpu_state *cpu, __u64 fill, __u32 uid)
{
	__s64 step = cpu->put_bytes - fill;
	struct near_shares *shares;
	struct near_share *near;
	struct share *share;
	__u32 zero = 0, place;
	__u64 maker;

	/* The size of a ring is a power of two. */
	step &= -(__s64)(control.ring_bytes / RING_STEPS);

	place = near_place(uid, &maker);
	shares = bpf_map_lookup_elem(&near_shares, &zero);
	if (!shares)
		return NULL;

	near = &shares->at[place % NEAR_SHARES];
	share = &near->share;
	if (near->maker != maker) {
		if (share->step >= step && (share->bytes || share->urgent_bytes))
			share = far_share(maker, bpf_get_smp_processor_id());
		else
			near->maker = maker;
	}

	if (share && share->step < step)
		begin_share(share, step);
	return share;
}

/*
 * Whether `size` bytes are more than the share of their maker. The share is a quarter of the space
 * that is left (dynamic thresholds, as in switches with shared memory: Choudhury and Hahne 1998), so
 * that there is always space for who makes few events. `fill`: unread bytes; `spare`: bytes that
 * have to be left of the share after these.
 */
static __always_inline bool exceeds(struct share *share, __u64 fill, __u32 size, __u32 spare)
{
	__s64 room = control.ring_bytes - fill;

	return (__s64)(share->bytes + size + spare) * 4 > room;
}

/* Asks the ring of this CPU for its unread bytes. */
static __always_inline __u64 ask_fill(struct cpu_state *cpu, void *ring)
{
	__u64 fill = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);

	cpu->unread_bound = fill;
	return fill;
}

/*
 * Whether `size` bytes of this event are refused because the share of its maker is used up. If not,
 * they are taken from it. A function of its own, which the verifier goes through once.
 */
__noinline int over_share(struct work *w, __u64 fill, __u32 size, __u32 spare, __u32 urgent)
{
	struct cpu_state *cpu = state_of_cpu();
	struct share *share;

	if (!w || !cpu || fill <= control.high_bytes || fill >= control.ring_bytes)
		return 0;

	share = share_of(cpu, fill, w->fact[FACT_UID]);
	if (!share)
		return 0;

	if (exceeds(share, fill, size, spare)) {
		/* Part of the reserve is left for others' urgent events. */
		if (!urgent || share->urgent_bytes + size > control.reserve_bytes / 4)
			return 1;
		share->urgent_bytes += size;
		return 0;
	}

	share->bytes += size;
	return 0;
}

/*
 * As over_share(), for an upper bound of the unread bytes: the ring is asked only for who might have
 * used up his share, which saves his neighbours the time.
 */
static __always_inline int may_be_over_share(struct work *w, struct cpu_state *cpu, void *ring,
					     __u64 fill, __u32 size, __u32 urgent)
{
	struct share *share;

	if (fill <= control.high_bytes)
		return 0;
	share = share_of(cpu, fill, w->fact[FACT_UID]);
	if (!share)
		return 0;
	if (exceeds(share, fill, size, 0))
		return over_share(w, ask_fill(cpu, ring), size, 0, urgent);
	share->bytes += size;
	return 0;
}

/* Waits if the share is used up indeed. A function of its own, which the verifier goes through once. */
__noinline int wait_turn(struct work *w, struct cpu_state *cpu, __u32 size)
{
	__u64 fill, room = control.ring_bytes - control.high_bytes;
	__u32 cpu_nr = bpf_get_smp_processor_id();
	struct share *share;
	void *ring;

	ring = bpf_map_lookup_elem(&rings, &cpu_nr);
	if (!w || !cpu || !ring || !room)
		return 0;

	fill = ask_fill(cpu, ring);
	if (fill <= control.high_bytes) {
		cpu->taken_ns = event_of(w)->frame.time_ns;
		return 0;
	}

	share = share_of(cpu, fill, w->fact[FACT_UID]);
	if (!share)
		return 0;
	/* By now it may be a new one. */
	if (!share->bytes)
		share->bytes = size;

	if (exceeds(share, fill, 0, 0) && is_reader_alive(cpu, event_of(w)->frame.time_ns))
		wait_for(cpu, ring, control.high_bytes,
			 wait_limit(fill - control.high_bytes, room));
	return 0;
}

/*
 * Called after an event of `size` bytes was put into the ring. Above the high mark, who has used up
 * his share waits, longer as the ring fills, so that producers adapt to the pace of the reader.
 * `fill` is an upper bound for the unread bytes.
 */
static __always_inline void slow_down(struct work *w, struct cpu_state *cpu, __u64 fill, __u32 size)
{
	struct share *share;

	if (fill <= control.high_bytes) {
		cpu->taken_ns = event_of(w)->frame.time_ns;
		return;
	}
	/* Where nobody reads, event_out() has taken the bytes from the share. */
	if (!control.throttle || has_stalled(cpu, event_of(w)->frame.time_ns))
		return;

	share = share_of(cpu, fill, w->fact[FACT_UID]);
	if (!share)
		return;

	share->bytes += size;
	if (exceeds(share, fill, 0, 0))
		wait_turn(w, cpu, size);
}

/* Whether the daemon has to be woken at once for an event of this rule. */
static __always_inline bool is_urgent(__u32 rule)
{
	if (rule >= RULES_MAX)
		return control.urgent_undecided;
	return control.urgent[rule / 64] & (1ULL << (rule % 64));
}

#endif /* TARSIER_OVERLOAD_H */
