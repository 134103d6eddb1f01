/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Sends the arguments of an execve in CHUNK frames, as far as there is room: the
 * event itself is complete by then, and its room is kept free.
 */
#ifndef TARSIER_ARGUMENTS_H
#define TARSIER_ARGUMENTS_H

#include "base.h"
#include "emit.h"
#include "overload.h"
#include "steps.h"

/*
 * Chunks are built behind the event, which ends before: see walk_begin(). The 8 bytes are for the
 * verifier, to which a size that is rounded up may be larger than it is.
 */
#define CHUNK_AT \
	(TARSIER_EVENT_MAX + FRAME_SLACK - sizeof(struct tarsier_chunk) - TARSIER_CHUNK_MAX - 8)
/* Memory is read by these pieces where not all of a chunk can be read. */
#define PAGE_BYTES 4096
/* Longest wait for the reader, for all arguments of an execve that do not fit one chunk. */
#define WAIT_ARGUMENTS_NS 100000000ULL
/* The reader, which may have gone to sleep in the meantime, is woken this often. */
#define WAIT_SLICE_NS 1000000ULL
/* Steps of send_chunk() for TARSIER_ARGUMENTS_MAX if no whole chunk can be read, and for waits. */
#define CHUNK_STEPS_MAX (TARSIER_ARGUMENTS_MAX / PAGE_BYTES + 2 * WAIT_ARGUMENTS_NS / WAIT_SLICE_NS)

/* What changes while chunks are sent is in w->sending, whose values the verifier does not follow. */
struct chunks {
	struct work *w;
	struct cpu_state *cpu;
	void *ring;
};

enum room {
	ROOM_NONE,
	ROOM_LATER,
	ROOM_NOW,
};

/*
 * Whether there is room for a chunk of `size` bytes and for the event. The reader is waited for
 * where that would fill the ring beyond the mark. If calls do not wait, or there is no reader, half
 * of the room that was free is left to others, and enough of the uid's share, which is a quarter of
 * what is free after the chunk, to the event.
 */
static __always_inline enum room room_for(struct chunks *c, __u64 size)
{
	__u64 unread = bpf_ringbuf_query(c->ring, BPF_RB_AVAIL_DATA), event = c->w->len;
	__u64 room = size + event + 2 * RING_HEADER, start_ns, waited_ns;
	bool waits = control.throttle && is_reader_alive(c->cpu, bpf_ktime_get_ns());
	struct sending *s = &c->w->sending;

	if (waits && s->wait_ns && unread + room > s->mark) {
		start_ns = bpf_ktime_get_ns();
		ring_bell();
		wait_for(c->cpu, c->ring, s->mark > room ? s->mark - room : 0, WAIT_SLICE_NS);
		waited_ns = bpf_ktime_get_ns() - start_ns;
		s->wait_ns -= waited_ns < s->wait_ns ? waited_ns : s->wait_ns;
		return ROOM_LATER;
	}
	if (unread + room > control.ring_bytes - control.reserve_bytes)
		return ROOM_NONE;
	if (waits)
		return ROOM_NOW;
	if (s->sent_bytes + size > s->sent_max)
		return ROOM_NONE;
	if (!control.throttle && over_share(c->w, unread, size, event + size / 4, false))
		return ROOM_NONE;
	return ROOM_NOW;
}

/* A length below that of a whole chunk. In assembly, for the reasons given at frame_at(). */
static __always_inline __u64 part_of_chunk(__u64 len)
{
	asm volatile("%[len] &= %[mask]" : [len] "+r"(len) : [mask] "i"(TARSIER_CHUNK_MAX - 1));
	return len;
}

/* Reads the next bytes into the chunk, or at least those of a page. Returns how many. */
static __always_inline __u32 read_chunk(struct sending *s, struct tarsier_chunk *chunk)
{
	__u64 left = s->end - s->at, len;

	if (left >= TARSIER_CHUNK_MAX) {
		if (!bpf_probe_read_user(chunk + 1, TARSIER_CHUNK_MAX, (void *)s->at))
			return TARSIER_CHUNK_MAX;
	} else if (!bpf_probe_read_user(chunk + 1, part_of_chunk(left), (void *)s->at)) {
		return left;
	}
	len = PAGE_BYTES - s->at % PAGE_BYTES;
	if (len > left)
		len = left;
	if (!bpf_probe_read_user(chunk + 1, part_of_chunk(len), (void *)s->at))
		return len;
	s->at += len;
	return 0;
}

static __always_inline long chunk_out(void *ring, struct tarsier_chunk *chunk, __u64 len)
{
	chunk->frame.size = sizeof(*chunk) + ((len + 7) & ~7ULL);
	if (len >= TARSIER_CHUNK_MAX)
		return bpf_ringbuf_output(ring, chunk, sizeof(*chunk) + TARSIER_CHUNK_MAX,
					  BPF_RB_NO_WAKEUP);
	return bpf_ringbuf_output(ring, chunk, sizeof(*chunk) + ((part_of_chunk(len) + 7) & ~7ULL),
				  BPF_RB_NO_WAKEUP);
}

STEP(send_chunk, struct chunks *c, CHUNK_STEPS_MAX)
{
	struct tarsier_chunk *chunk = (struct tarsier_chunk *)(c->w->frame + CHUNK_AT);
	struct sending *s = &c->w->sending;
	enum room room;
	__u64 len;

	if (s->at >= s->end)
		return 1;
	len = s->end - s->at;
	room = room_for(c, sizeof(*chunk) + (len > TARSIER_CHUNK_MAX ? TARSIER_CHUNK_MAX : len));
	if (room != ROOM_NOW)
		return room == ROOM_NONE;
	len = read_chunk(s, chunk);
	if (!len)
		return 0;
	chunk->frame.kind = TARSIER_FRAME_CHUNK;
	chunk->frame.version = TARSIER_WIRE_VERSION;
	chunk->frame.id = c->w->id;
	chunk->frame.time_ns = bpf_ktime_get_ns();
	chunk->at = s->at - s->start;
	chunk->seq = s->seq;
	chunk->len = len;
	if (chunk_out(c->ring, chunk, len))
		return 1;
	c->cpu->put_bytes += in_ring(chunk->frame.size);
	s->seq++;
	s->sent_bytes += len + sizeof(*chunk) + RING_HEADER;
	s->read += len;
	s->at += len;
	return 0;
}

/* Sends the arguments of the task, whose event is in the frame. */
__noinline int send_arguments(struct work *w, __u32 argc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu_state *cpu = state_of_cpu();
	__u32 cpu_nr = bpf_get_smp_processor_id();
	__u64 arguments[2];
	struct tarsier_event *e;
	struct chunks c = {};
	struct sending *s;
	__u64 unread;

	if (!w || !cpu || !ARGUMENTS_ARE_KNOWN)
		return 0;
	c.w = w;
	c.cpu = cpu;
	c.ring = bpf_map_lookup_elem(&rings, &cpu_nr);
	if (!c.ring)
		return 0;
	e = event_of(w);
	s = &w->sending;
	s->start = READ(task, mm, arg_start);
	s->at = s->start;
	s->end = READ(task, mm, arg_end);
	s->sent_bytes = 0;
	s->read = 0;
	s->seq = 0;
	if (s->end < s->start)
		s->end = s->start;
	arguments[0] = s->end - s->start;
	arguments[1] = argc;
	part_bytes(w, TARSIER_PART_ARGUMENTS, arguments, sizeof(arguments));
	if (arguments[0] > TARSIER_CHUNK_MAX) {
		s->mark = control.high_bytes;
		s->wait_ns = WAIT_ARGUMENTS_NS;
	} else {
		s->mark = control.ring_bytes;
		s->wait_ns = WAIT_FULL_NS;
	}
	unread = bpf_ringbuf_query(c.ring, BPF_RB_AVAIL_DATA);
	s->sent_max = unread < control.ring_bytes ? (control.ring_bytes - unread) / 2 : 0;
	if (arguments[0] > control.watermark_bytes)
		ring_bell();
	if (w->len <= CHUNK_AT)
		REPEAT(send_chunk, &c);
	e->chunks = s->seq;
	if (s->read < arguments[0])
		e->flags |= TARSIER_TRUNCATED;
	/* Frames of a ring are in order of time. */
	e->frame.time_ns = bpf_ktime_get_ns();
	return 0;
}

#endif /* TARSIER_ARGUMENTS_H */
