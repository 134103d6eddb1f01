/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What happens if events are made faster than the daemon reads them. */
#ifndef TARSIER_OVERLOAD_H
#define TARSIER_OVERLOAD_H

#include "base.h"
#include "maps.h"

/* Longest wait at the end of a call while less than 3/4 of the space above the mark is in use. */
#define WAIT_MAX_NS 1000000ULL
/* Longest wait when the ring is full. */
#define WAIT_FULL_NS 20000000ULL
/* Calls do not wait for a reader that has taken no frame from any ring for this long. */
#define STALL_MAX_NS 1000000000ULL
/* Bounds the loop for the verifier: far more steps than can be made within WAIT_FULL_NS. */
#define WAIT_STEPS_MAX (1 << 22)
/* Steps between two looks at the ring, whose positions the reader writes; each reads the clock. */
#define STEPS_PER_LOOK 8
/* A uid gets a new share each time the reader has read another 1/RING_STEPS of the ring. */
#define RING_STEPS 16

struct wait {
	void *ring;
	__u64 until_ns;
	__u64 fill; /* the wait ends when at most this many bytes are unread */
};

static long wait_step(__u32 i, struct wait *wait)
{
	if (i % STEPS_PER_LOOK == 0 &&
	    bpf_ringbuf_query(wait->ring, BPF_RB_AVAIL_DATA) <= wait->fill)
		return 1;
	return bpf_ktime_get_ns() >= wait->until_ns;
}

/* Waits until at most `fill` bytes are unread, but no longer than limit_ns. */
static __always_inline void wait_for(struct cpu_state *cpu, void *ring, __u64 fill, __u64 limit_ns)
{
	struct wait wait = { .ring = ring, .fill = fill };
	__u64 start_ns = bpf_ktime_get_ns();

	wait.until_ns = start_ns + limit_ns;
	bpf_loop(WAIT_STEPS_MAX, wait_step, &wait, 0);
	cpu->waits++;
	cpu->waited_ns += bpf_ktime_get_ns() - start_ns;
}

/*
 * Whether the reader has recently taken frames, from any ring: it takes frames in
 * the order of their times, and for a while those of other rings may be older.
 */
static __always_inline bool is_reader_alive(struct cpu_state *cpu)
{
	__u64 taken = *(volatile __u64 *)&control.frames_taken, now_ns = bpf_ktime_get_ns();

	if (taken != cpu->taken_seen) {
		cpu->taken_seen = taken;
		cpu->taken_ns = now_ns;
	}
	return now_ns - cpu->taken_ns < STALL_MAX_NS;
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

/*
 * Called after an event was put into the ring. Above the high mark, the call
 * waits, longer as the ring fills, so that producers adapt to the pace of the
 * reader. `fill` is the number of unread bytes.
 */
static __always_inline void slow_down(struct cpu_state *cpu, void *ring, __u64 fill, __u64 now_ns)
{
	__u64 room = control.ring_bytes - control.high_bytes;

	if (fill <= control.high_bytes || !room) {
		cpu->taken_ns = now_ns;
		return;
	}
	if (!control.throttle || !is_reader_alive(cpu))
		return;
	wait_for(cpu, ring, control.high_bytes, wait_limit(fill - control.high_bytes, room));
}

/* The bytes that a uid has put into the ring of a CPU above the high mark. */
struct share_key {
	__u32 uid;
	__u32 cpu;
};

struct share {
	__u64 step; /* position of the reader, in sixteenths of the ring */
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct share_key);
	__type(value, struct share);
} shares SEC(".maps");

/*
 * With overload = DROP: whether this uid has used up its share of the space above
 * the high mark. The share is a quarter of the space that is left (dynamic
 * thresholds, as in switches with shared memory: Choudhury and Hahne 1998), so
 * that there is always space for a uid with few events. `fill`: unread bytes;
 * `spare`: bytes that have to be left of the share after these `size` bytes.
 */
static __always_inline bool over_share(void *ring, __u64 fill, __u32 cpu_nr, __u32 uid, __u32 size,
				       __u32 spare)
{
	struct share_key key = { .uid = uid, .cpu = cpu_nr };
	__u64 step;
	struct share *share, fresh = {};

	if (fill <= control.high_bytes || fill >= control.ring_bytes)
		return false;
	step = bpf_ringbuf_query(ring, BPF_RB_CONS_POS) / (control.ring_bytes / RING_STEPS + 1);
	share = bpf_map_lookup_elem(&shares, &key);
	if (!share) {
		bpf_map_update_elem(&shares, &key, &fresh, BPF_ANY);
		share = bpf_map_lookup_elem(&shares, &key);
		if (!share)
			return false;
	}
	if (share->step != step) {
		share->step = step;
		share->bytes = 0;
	}
	if (share->bytes + size + spare > (control.ring_bytes - fill) / 4)
		return true;
	share->bytes += size;
	return false;
}

/* Whether the daemon has to be woken at once for an event of this rule. */
static __always_inline bool is_urgent(__u32 rule)
{
	if (rule >= RULES_MAX)
		return control.urgent_undecided;
	return control.urgent[rule / 64] & (1ULL << (rule % 64));
}

#endif /* TARSIER_OVERLOAD_H */
