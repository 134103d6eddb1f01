/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Everything that programs and the daemon share. */
#ifndef TARSIER_MAPS_H
#define TARSIER_MAPS_H

#define RULES_MAX 8192

/* Match tables of the rule set in force: one update of slot 0 replaces it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__uint(map_flags, BPF_F_MMAPABLE);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(struct table));
		});
} tables SEC(".maps");

/* One ring per CPU; the daemon makes them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* set to the number of CPUs */
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_RINGBUF);
			__uint(max_entries, 4096);
		});
} rings SEC(".maps");

/* Woken through this one: the rings themselves never wake the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

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

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_state);
} cpu_states SEC(".maps");

/* Per rule: selected by the first stage, and lost. Slot 0: undecided. */
struct rule_count {
	__u64 selected;
	__u64 lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RULES_MAX + 1);
	__type(key, __u32);
	__type(value, struct rule_count);
} rule_counts SEC(".maps");

/* Executables that exe= names, by identity. */
struct object_key {
	__u64 ino;
	__u32 dev;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RULES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct object_key);
	__type(value, __u32);
} objects SEC(".maps");

/* How far the last execve of a task has been seen. */
enum exec_state {
	EXEC_BEGUN = 1,
	EXEC_SEEN = 2,
};

/* What a task needs remembered between two hooks. */
struct task_note {
	__u64 exec_args[6];
	__u64 old_caps[4]; /* inheritable, permitted, effective, ambient */
	__s32 exec_nr;
	__u32 exec_valid; /* enum exec_state */
	__u32 exec_compat;
	__u32 never; /* a task-list rule said never */
	__u32 old_uid;
	__u64 operation; /* address of the io_uring request that a probed function is about */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_note);
} task_notes SEC(".maps");

/* What the programs on kernel functions jump to: one body for each prototype. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} bodies SEC(".maps"), other_bodies SEC(".maps");

/* Gates of the hooked functions. Each has a program that knows its place. */
#define FUNCTIONS_MAX 1024

struct gate gates[FUNCTIONS_MAX] SEC(".bss.gates");

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

struct control control;

/* Whether the probes of a link look at anything: its number is in the low bits of their cookies. */
static __always_inline bool link_is_in_force(__u64 cookie)
{
	return control.probe_links >> (cookie & 63) & 1;
}

/* Nanoseconds of a clock tick as /proc/PID/stat has it: USER_HZ is 100. */
#define TICK_NS 10000000ULL

extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym __weak;

/*
 * The task for loads of pointers. For each that is loaded through a pointer which the verifier trusts, it
 * goes through all types of the kernel, four times, to find whether the loaded one is to be trusted too. Loads
 * through what this gives read 0 where an address is wrong, and are not asked about.
 */
static __always_inline struct task_struct *untrusted(struct task_struct *task)
{
	if (bpf_ksym_exists(bpf_rdonly_cast))
		return bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct));
	return task;
}

/* The daemon's own calls are not recorded. Its number may belong to another process when it is gone. */
static __always_inline bool is_daemon(struct task_struct *task)
{
	if ((__u32)task->tgid != control.daemon_tgid)
		return false;
	return !control.daemon_start || !HAS(task, group_leader, start_boottime) ||
	       untrusted(task)->group_leader->start_boottime / TICK_NS == control.daemon_start;
}

#endif /* TARSIER_MAPS_H */
