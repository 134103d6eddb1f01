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
/* Links of probes at a time: the number of a link is in the low bits of its cookies. */
#define PROBE_LINKS_MAX 64
/* Scratch for calls that are looked at on one CPU at a time: a per-CPU map cannot hold values this large. */
#define WORKS_PER_CPU 4
/* The ring that the daemon is woken through. */
#define DOORBELL_BYTES 4096
/* Numbers of io_uring operations. */
#define OBJECT_OPERATIONS 256

/* Counters of a CPU. */
struct cpu_state {
	__u64 events; /* frames of kind EVENT that reached the ring */
	__u64 undecided; /* of those, left to the second stage */
	__u64 evaluated; /* watched calls that were matched against the rules */
	__u64 lost[TARSIER_LOSS_CAUSES];
	__u64 serial; /* low part of the next event id */
	__u64 unread_bound; /* no more than this is unread in the ring */
	__u64 waits; /* calls that were slowed */
	__u64 waited_ns; /* by how much, together */
	__u64 taken_seen; /* frames that the reader had taken when it was last seen to take any */
	__u64 taken_ns; /* when that was */
	__u64 pad[2]; /* to whole cache lines: other CPUs write beside it */
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
	__u32 x32; /* the kernel has calls of x32 */
	__u64 daemon_start; /* of daemon_tgid, which may be another's by now; clock ticks, 0: not known */
	__u64 urgent[RULES_MAX / 64]; /* rules whose events wake the daemon at once */
	__u64 probe_links; /* bit per number: the links whose probes look at calls */
	/* A cache line of its own, which the reader writes. */
	__u64 frames_taken; /* by the reader, from all rings */
	__u64 pad_taken[7];
};

/* Families of calls, whose objects the same hooks see. */
enum object_class {
	OBJECTS_NONE = 0,
	OBJECTS_ENTRIES = 1, /* make, remove or rename directory entries */
	OBJECTS_OPEN = 2,
	OBJECTS_LOOKUP = 3, /* act on what a path leads to */
	OBJECTS_DIRECTORY = 4, /* change the current or the root directory */
	OBJECTS_MOUNT = 5,
	OBJECTS_ADDRESS = 6, /* take or give socket addresses */
	OBJECTS_SIGNAL = 7,
	OBJECTS_IPC = 8,
	OBJECTS_TIME = 9, /* set the clock */
	/* Open, and no rule can select one for reading alone that succeeds. */
	OBJECTS_OPEN_CHANGES = 10,
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
	__u64 watched[OBJECT_OPERATIONS / 64]; /* operations that some rule watches */
	/* Operations that some rule has watched: some may be under way. */
	__u64 known[OBJECT_OPERATIONS / 64];
	__u32 creds_bit; /* of io_kiocb.flags: the request has its own credentials */
	__u32 skip_bit; /* no completion on success */
};

/* The entry of operations in the tables, where calls have 0 or 1. */
#define ENTRY_URING 2

/* What an operation of io_uring under way is known by. */
struct uring_request {
	__u64 id; /* of its event */
	__u64 ctx; /* of its ring */
	__u64 user_data;
	__u32 rule;
	__u32 tgid; /* whose descriptors a result is one of */
	__u8 opens; /* its result is a descriptor */
	__u8 silent; /* posts a completion only if it fails */
	__u8 pad[6];
};

/* Which function of an operation a probe is at. */
enum uring_part {
	URING_PREP = 0,
	URING_ISSUE = 1,
	URING_FAILURE = 2,
};

/* Where the part is in a cookie; below it is the number of the link. */
#define URING_PART_SHIFT 8

/* What the tables say of a call. */
enum verdict {
	VERDICT_DROP = 0,
	VERDICT_RECORD = 1,
	VERDICT_UNDECIDED = 2,
};

/*
 * Programs beside those of tarsier.bpf.c.
 */

/* learn.bpf.c: a call. */
struct call_key {
	__u32 arch;
	__u32 nr;
};

/* learn.bpf.c: a value of the telling argument of a call. */
struct value_key {
	struct call_key call;
	__u64 value;
};

/* learn.bpf.c: what did not fit a map. */
enum learn_missed {
	LEARN_MISSED_CALLS = 0,
	LEARN_MISSED_VALUES = 1,
	LEARN_MISSED_TASKS = 2,
	LEARN_MISSED_KINDS = 3,
};

/* peek.bpf.c: how much can be copied at once. */
#define PEEK_BYTES 8192

/* seccomp_iter.bpf.c: words of 64 bits that a bitmap may have, for 1024 system calls. */
#define SECCOMP_WORDS_MAX 16

/* seccomp_iter.bpf.c: a task that has filters. */
struct seccomp_record {
	__u32 tgid;
	__u32 tid;
	__u32 filters;
	__u32 native_bytes;
	__u32 compat_bytes;
	__u32 pad;
	__u64 native[SECCOMP_WORDS_MAX];
	__u64 compat[SECCOMP_WORDS_MAX];
};

/* match_test.bpf.c: a call to match. */
struct test_call {
	__u64 fact[FACTS];
	__u64 args[6];
	__s64 ret;
	__u32 absent; /* bit per fact */
	__u32 arch;
	struct table_spec spec;
	struct table_call what;
};

/* match_test.bpf.c: what was decided. */
struct test_verdict {
	__u32 verdict; /* enum verdict */
	__u32 rule;
	__u32 nundecided;
	__u32 pad;
	struct tarsier_candidates undecided[TABLE_UNDECIDED_MAX];
};

#endif /* TARSIER_SHARED_H */
