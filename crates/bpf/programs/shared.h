/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * What the programs and the daemon share, beside the match tables (tables.h) and
 * the frames (tarsier_event.h): limits, and values of maps. The daemon's view,
 * crates/bpf/src/shared.rs, is generated from this file.
 */
#ifndef TARSIER_SHARED_H
#define TARSIER_SHARED_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif
#include "../../event/include/tarsier_event.h"
#include "tables.h"

#define RULES_MAX 8192
/* Functions that can be hooked at a time. */
#define FUNCTIONS_MAX 1024
/* Scratch for calls that are looked at on one CPU at a time: a per-CPU map cannot hold values this large. */
#define WORKS_PER_CPU 4
/* Operations of io_uring that may be under way. */
#define URING_PENDING_MAX 65536
#define OBJECT_OPERATIONS 256

/* Scratch and counters of a CPU. */
struct cpu_state {
	__u64 events; /* frames of kind EVENT that reached the ring */
	__u64 undecided; /* of those, left to the second stage */
	__u64 evaluated; /* watched calls that were matched against the rules */
	__u64 lost[TARSIER_LOSS_CAUSES];
	__u64 serial; /* low part of the next event id */
	__u64 unread_bound; /* no more than this is unread in the ring */
	__u64 waits; /* calls that were slowed */
	__u64 waited_ns; /* by how much, together */
	__u64 read_pos; /* how far the reader was when it was last seen to read */
	__u64 read_ns; /* when that was */
};

/* Per rule: selected by the first stage, and lost. Slot 0: undecided. */
struct rule_count {
	__u64 selected;
	__u64 lost;
};

/* Executables that exe= names, by identity. */
struct object_key {
	__u64 ino;
	__u32 dev;
	__u32 pad;
};

/* Switches that the daemon sets; read by every program. */
struct control {
	__u64 watched[TABLE_CALLS / 64]; /* calls that any entry watches */
	__u32 every; /* tp_btf/sys_exit sees the calls; 0: other hooks do */
	__u32 daemon_tgid;
	__u32 reader_awake; /* the daemon polls the rings: do not ring */
	__u32 watermark_bytes; /* ring fill at which the bell rings anyway */
	__u32 use_task_list; /* some task-list rule is loaded */
	__u32 exit_at_entry; /* native exit calls are seen at their entry */
	__u32 ring_bytes; /* size of a ring */
	__u32 high_bytes; /* ring fill above which calls wait, or uids have shares */
	__u32 throttle; /* calls wait; 0: events are dropped */
	__u32 urgent_undecided; /* an undecided event may be of an urgent rule */
	__u32 copies; /* of programs on tracepoints are attached */
	__u32 pad;
	__u64 daemon_start; /* of daemon_tgid, which may be another's by now; clock ticks, 0: not known */
	__u64 urgent[RULES_MAX / 64]; /* rules whose events wake the daemon at once */
	__u64 probe_links; /* numbers of the links whose probes look at calls */
};

/* Which family each watched call belongs to; the daemon writes it. */
struct object_calls {
	__u64 epoch; /* changes with it: notes of another one are not used */
	__u8 class[2][TABLE_CALLS]; /* native entries, 32-bit ones */
	__u8 operations
		[OBJECT_OPERATIONS]; /* of io_uring, of which the same hooks see the objects */
};

/* Set by the daemon, from the kernel's own types. */
struct uring_control {
	__u64 watched[4]; /* operations that some rule watches */
	__u64 known[4]; /* operations that some rule has watched: some may be under way */
	__u32 creds_bit; /* of io_kiocb.flags: the request has its own credentials */
	__u32 skip_bit; /* no completion on success */
};

#endif /* TARSIER_SHARED_H */
