/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * What the programs and the daemon share, apart from the match tables (tables.h)
 * and the frames (tarsier_event.h): limits, and values of maps. The Rust
 * bindings, crates/kernel/bpf/src/shared.rs, are generated from this file.
 */
#ifndef TARSIER_SHARED_H
#define TARSIER_SHARED_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif
#include "../../../log/record/include/tarsier_event.h"
#include "tables.h"

#define RULES_MAX 8192
/* The most functions that can be hooked at the same time. */
#define FUNCTIONS_MAX 1024
/* The most links of probes at the same time. The low bits of a cookie are the link's number. */
#define PROBE_LINKS_MAX 64
/* Work areas of each CPU (struct work), whose values are too large for a per-CPU map. */
#define WORKS_PER_CPU 4
/* Size of the ring that wakes the daemon. */
#define DOORBELL_BYTES 4096
/* Upper bound for the numbers of io_uring operations. */
#define OBJECT_OPERATIONS 256

/* The most uids against which losses are counted. */
#define LOST_UIDS_MAX 1024

/* The most marks that are kept of a call. */
#define MARKS_MAX 16

/* The marks (tables.h) at the objects that a call has reached so far. */
struct marks {
	__u64 generation; /* of the tables whose numbers these are */
	__u32 known; /* everything that the call reached has been looked at */
	__u32 count;
	__u32 sure; /* one bit per mark: it proves the place of the object */
	__u32 proven; /* one bit per mark: it proves that for the kernel's audit, too */
	__u32 objects; /* upper bound for the number of objects that the call reached */
	__u32 is_crossed; /* the walk has left the file system of the object */
	__u32 value[MARKS_MAX]; /* number << 1 | is above */
	/* The walk from an object to the root; here, because the stack is too small. */
	__u64 dentry_at;
	__u64 mnt_at; /* 0: above the root of a mount that shows a part of a file system */
	__u64 root_at; /* of that mount */
	__u64 shown_at; /* that root, of the first such mount */
	__u32 how;
	__u32 parent; /* how the directory of the first entry counts */
	__u32 is_done; /* the walk has reached the top */
	__u32 head; /* row of the marks to look for: TABLE_MARKS, TABLE_EXECUTABLES */
	__u32 are_all; /* so far, all marks have been found */
	__u32 is_shown_elsewhere; /* the walk left the object's file system before `shown_at` */
	__u32 pad;
	__u32 filter_first; /* row TABLE_MARK_FILTER, kept */
	__u64 filter_last;
	__u64 address; /* see address_in() */
	__u64 path; /* hash of the names of a path so far, the last one first */
	__u64 key[2]; /* row TABLE_MARK_KEY, kept */
	__u64 alias_at; /* the place in the list of entries of an object: see aliases.h */
	__u64 inode_at; /* the object */
	__u64 marked_at; /* the last one of these entries that has a mark; 0: none has */
	__u64 name[32]; /* of an entry, filled with zeros */
};

/* Counters of a CPU. */
struct cpu_state {
	__u64 events; /* frames of kind EVENT that reached the ring */
	__u64 undecided; /* those among them that the second stage has to decide */
	__u64 evaluated; /* watched calls that were matched against the rules */
	__u64 lost[TARSIER_LOSS_CAUSES];
	__u64 serial; /* low part of the next event id */
	__u64 unread_bound; /* upper bound for the unread bytes in the ring */
	__u64 waits; /* calls that had to wait */
	__u64 waited_ns; /* total time of their waits */
	__u64 taken_seen; /* control.frames_taken when this CPU last saw it change */
	__u64 taken_ns; /* time of that change */
	__u64 suppressed; /* events over the budget of their rule */
	__u64 cgroups_lost; /* frames of kind CGROUP that found no room */
	__u64 canary; /* the last canary call that was seen */
	__u64 processes_lost; /* frames of kind PROCESS that found no room */
	__u64 put_bytes; /* bytes of the ring that frames have taken since its beginning */
	__u64 pad[5]; /* up to whole cache lines: other CPUs write to the next entries */
};

/* Events of a rule: selected by the first stage, lost, over budget. Slot 0: undecided events. */
struct rule_count {
	__u64 selected;
	__u64 lost;
	__u64 suppressed;
};

/* Low bits of budget.spent, which count; the second is above them. */
#define BUDGET_COUNT_BITS 32

/* How many events of a rule may be recorded in a second. */
struct budget {
	__u64 spent; /* second of bpf_ktime_get_ns() << BUDGET_COUNT_BITS | events in it */
	__u32 rate; /* events per second; 0: as many as there are */
	__u32 pad;
};

/* Helper processes of the daemon that run at a time. */
#define HELPERS_MAX 3

/* What dcache.bpf.c shows of directory entries. */
#define DCACHE_SAMPLES 512

struct dcache_sample {
	__u64 pprev; /* address of what points to the entry: of its chain, if it is the first there */
	__u32 hash;
	__u32 computed; /* the hash, as the programs compute it */
};

struct dcache_samples {
	__u64 count;
	struct dcache_sample sample[DCACHE_SAMPLES];
};

/* Settings that the daemon makes and every program reads. */
struct control {
	__u64 watched[TABLE_CALLS / 64]; /* call numbers that are watched at any entry */
	__u32 every; /* calls are seen by tp_btf/sys_exit; 0: by other hooks */
	__u32 daemon_tgid;
	__u32 reader_awake; /* the daemon polls the rings and need not be woken */
	__u32 watermark_bytes; /* fill of a ring at which the daemon is woken anyway */
	__u32 use_task_list; /* some task-list rule is loaded */
	__u32 exit_at_entry; /* native exit calls are seen at their entry */
	__u32 ring_bytes; /* size of a ring */
	__u32 high_bytes; /* fill of a ring above which calls wait, or uids have shares */
	__u32 throttle; /* on overload, calls wait; 0: events are dropped */
	__u32 urgent_undecided; /* an undecided event may belong to an urgent rule */
	__u32 copies; /* copies of the programs on tracepoints are attached */
	__u32 x32; /* the kernel has the calls of x32 */
	__u32 reserve_bytes; /* the end of each ring, which is kept free for urgent events */
	__u32 has_budgets; /* some rule has a budget */
	__u32 canary_call; /* number of the call by which the daemon tests hooks and rings; TABLE_CALLS: none */
	__u32 muted; /* nothing is recorded yet: the programs of an earlier daemon still do that */
	__u32 helper_tgid[HELPERS_MAX]; /* 0: none */
	__u32 pad_helper;
	__u64 daemon_start; /* of daemon_tgid, which may be reused; clock ticks, 0: unknown */
	__u64 helper_start[HELPERS_MAX]; /* the same of helper_tgid */
	__u64 urgent[RULES_MAX / 64]; /* rules whose events wake the daemon at once */
	__u64 probe_links; /* one bit per number: the links of probes that are in force */
	__u64 workload_epoch; /* of the names that rules ask about; 0: no rule asks about workloads */
	__u64 dcache_at; /* address of the kernel's table of directory entries; 0: not known */
	__u32 dcache_shift; /* by which a hash is shifted to an index of that table */
	__u32 label_places; /* see labels.h; 0: labels are not read */
	/* In a cache line of its own, since the reader writes it. */
	__u64 frames_taken; /* frames that the reader has taken from all rings */
	__u64 pad_taken[7];
};

/* The most cgroups whose class is kept; the daemon decides for tasks in others. */
#define WORKLOADS_MAX 65536
/* The most names of units, slices and containers: those of two rule sets. */
#define WORKLOAD_NAMES_MAX 8192

/* Kinds of names that rules ask about. */
enum workload_kind {
	WORKLOAD_UNIT = 0,
	WORKLOAD_SLICE = 1,
	WORKLOAD_CONTAINER = 2,
};

/* A name that rules ask about. */
struct workload_name {
	__u64 epoch; /* of the set of names: their numbers differ from set to set */
	__u32 kind; /* enum workload_kind */
	__u32 pad;
	char name[256]; /* filled with zeros */
};

enum workload_flags {
	WORKLOAD_IS_SETTLED = 1, /* unit and slice of the cgroups below are those of this one */
	WORKLOAD_IS_LXC = 2, /* each cgroup directly below is that of a container */
	WORKLOAD_IS_MACHINE = 4, /* its supervisor is outside of the container */
	WORKLOAD_IS_DELEGATED = 8, /* others than root may have chosen its name, or one above it */
};

/* Number of a container that no rule names. */
#define WORKLOAD_SOME_CONTAINER 1

/* The class of a cgroup. Numbers of names are 0 if there is none, or no rule names it. */
struct workload {
	__u64 epoch; /* of the numbers */
	__u32 unit;
	__u32 slice;
	__u32 container;
	__u32 flags; /* enum workload_flags */
};

/* The most processes whose class is kept; the daemon decides for others. */
#define PROCESS_CLASSES_MAX 65536
/* The most labels, and the most executables of ancestors, that rules ask about. */
#define PAST_NAMES_MAX 32

/* A process among all that there are from the start of the system to its end. */
struct process_id {
	__u64 start_ns; /* of the thread group leader, CLOCK_BOOTTIME */
	__u32 pid;
	__u32 pad;
};

enum process_class_flags {
	PROCESS_LABELS_ARE_OPEN = 1, /* it may have more labels */
	PROCESS_ANCESTORS_ARE_OPEN = 2, /* it may have more ancestors */
	PROCESS_OWN_IS_OPEN = 4, /* the executable that it runs is not known */
};

/* The class of a process. Bit i of executables is that with number i + 1 in the tables. */
struct process_class {
	__u64 epoch; /* of the bits: see struct control */
	__u64 image; /* self_exec_id of the task when `own` was found */
	__u32 ancestors; /* executables that its ancestors ran when they made the next one */
	__u32 own; /* the executable that it runs */
	__u32 labels;
	__u32 flags; /* enum process_class_flags */
};

/* A rule whose events give labels. */
struct labelling {
	__u64 generation; /* of the tables */
	__u32 rule;
	__u32 pad;
};

/* Families of calls; the same hooks see the objects of all calls of a family. */
enum object_class {
	OBJECTS_NONE = 0,
	OBJECTS_ENTRIES = 1, /* make, remove or rename directory entries */
	OBJECTS_OPEN = 2,
	OBJECTS_LOOKUP = 3, /* act on what a path leads to */
	OBJECTS_DIRECTORY = 4, /* change the current or the root directory */
	OBJECTS_MOUNT = 5,
	OBJECTS_ADDRESS = 6, /* take or return socket addresses */
	OBJECTS_SIGNAL = 7,
	OBJECTS_IPC = 8,
	OBJECTS_TIME = 9, /* set the clock */
	/* Open files, with rules that cannot select a successful open for reading only. */
	OBJECTS_OPEN_CHANGES = 10,
	/* Act on System V objects, with hooks on the entries of calls; in the order of the kernel's kinds. */
	OBJECTS_IPC_SEMAPHORES = 12,
	OBJECTS_IPC_MESSAGES = 13,
	OBJECTS_IPC_MEMORY = 14,
	OBJECTS_CONTROL = 16, /* with one of these: semctl() and the like */
	OBJECTS_BEFORE =
		15, /* change objects that are to be recorded as they were before, with such hooks */
};

/* The family (enum object_class) of each watched call; the daemon writes it. */
struct object_calls {
	__u64 epoch; /* changes with the table: notes with another one are not used */
	__u8 class[2][TABLE_CALLS]; /* native entry, 32-bit entry */
	__u8 operations
		[OBJECT_OPERATIONS]; /* io_uring operations, whose objects the same hooks see */
};

/* Settings for io_uring; the bits are found in the kernel's types. */
struct uring_control {
	__u64 watched[OBJECT_OPERATIONS / 64]; /* operations that some rule watches */
	/* Operations that some rule has ever watched: some may be in progress. */
	__u64 known[OBJECT_OPERATIONS / 64];
	__u32 creds_bit; /* bit of io_kiocb.flags: the request has its own credentials */
	__u32 skip_bit; /* bit of io_kiocb.flags: no completion on success */
	__u32 async_bit; /* bit of io_kiocb.flags: the request has data of its own; 64 without it */
	__u32 unused;
};

/* The entry number of operations in the tables, where calls have 0 or 1. */
#define ENTRY_URING 2

/* Who makes events: a uid, or a user namespace that root has made. See maker_of(). */
struct maker {
	__u32 id;
	__u32 is_namespace;
};

/* The most operations in progress that are remembered of a maker. */
#define MAKER_OPERATIONS_MAX (TARSIER_PENDING_MAX / 4)

/* An io_uring operation in progress. */
struct uring_request {
	__u64 id; /* id of its event */
	__u64 ctx; /* address of its ring's context */
	__u64 user_data;
	__u32 rule;
	__u32 tgid; /* process to which a descriptor in the result belongs */
	__u8 opens; /* its result is a descriptor */
	__u8 silent; /* posts a completion only if it fails */
	__u8 has_file; /* it acts on a file, which is recorded */
	__u8 has_result; /* the first of several results has been sent, or was lost */
	__u8 pad[4];
	struct maker maker;
};

/* The function of an operation that a probe is attached to. */
enum uring_part {
	URING_PREP = 0,
	URING_ISSUE = 1,
	URING_FAILURE = 2,
};

/* Shift of the part in a cookie; the number of the link is in the bits below. */
#define URING_PART_SHIFT 8

/* The outcome of matching a call. */
enum verdict {
	VERDICT_DROP = 0,
	VERDICT_RECORD = 1,
	VERDICT_UNDECIDED = 2,
};

/*
 * Programs other than those of tarsier.bpf.c.
 */

/* learn.bpf.c: a call. */
struct call_key {
	__u32 arch;
	__u32 nr;
};

/* learn.bpf.c: a value of the argument that tells what a call is for. */
struct value_key {
	struct call_key call;
	__u64 value;
};

/* learn.bpf.c and denied.bpf.c: what did not fit into a map. */
enum learn_missed {
	LEARN_MISSED_CALLS = 0,
	LEARN_MISSED_VALUES = 1,
	LEARN_MISSED_TASKS = 2,
	LEARN_MISSED_KINDS = 3,
};

/* learn.bpf.c and denied.bpf.c: the programs' own counters. */
struct follow_state {
	__u64 missed[LEARN_MISSED_KINDS];
	/* Threads that are followed now. */
	__s64 alive;
};

/* Bytes of a cgroup's path, with C's zero. */
#define FOLLOW_PATH_BYTES 256

/* learn.bpf.c: whose calls count, besides those of tasks that user space marks. */
struct follow_options {
	/* Tasks in a cgroup of this path, and its level; empty and 0: of no cgroup. */
	__u32 cgroup_level;
	/* Not 0: calls count from the execve on that a task makes in another mount namespace than this. */
	__u32 outer_mount_ns;
	char cgroup_path[FOLLOW_PATH_BYTES];
};

/* denied.bpf.c: a denial; arguments that no condition looks at are 0. */
struct denial_key {
	struct call_key call;
	__u64 args[6];
};

/* denied.bpf.c: the first of equal denials, and how many there were. */
struct denial_value {
	__u64 count;
	__u64 args[6];
	__u64 ip;
	__u32 tid;
	char comm[16];
	__u32 padding;
};

/* denied.bpf.c: what to report of a call: a bit for each argument that conditions look at, and this one. */
#define DENIAL_ALLOWED_TOO 0x80

/* call_counts.bpf.c: places of a row; the last one is for calls with a number from here on. */
#define COUNTED_CALLS 1024

/* peek.bpf.c: the most bytes that can be copied at once. */
#define PEEK_BYTES 8192

/* seccomp_iter.bpf.c: the most 64-bit words of a bitmap: 1024 system calls. */
#define SECCOMP_WORDS_MAX 16

/* seccomp_iter.bpf.c: a task with filters. */
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

/* audit_iter.bpf.c: a task with an audit context. */
struct audited_task {
	__u32 tgid;
	__u32 tid;
};

/* match_test.bpf.c: a call to match. */
struct test_call {
	__u64 fact[FACTS];
	__u64 args[6];
	__s64 ret;
	__u32 absent; /* one bit per fact */
	__u32 given; /* one bit per fact that is not to be looked up on demand */
	__u32 arch;
	__u32 pad;
	struct table_spec spec;
	struct table_call what;
	struct marks marks;
};

/* match_test.bpf.c: the outcome. */
struct test_verdict {
	__u32 verdict; /* enum verdict */
	__u32 rule;
	__u32 nundecided;
	__u32 pad;
	struct tarsier_candidates undecided[TABLE_UNDECIDED_MAX];
};

/* match_test.bpf.c: a gate on a fact that has programs of its own, and what they say of this task. */
struct test_gate {
	struct gate gate;
	__s64 ret;
	__u32 interpreted; /* whether the gate admits the call, if it is interpreted */
	__u32 own[2]; /* the same, by the fact's program for narrow gates, and that for wide ones */
	__u32 pad;
};

#endif /* TARSIER_SHARED_H */
