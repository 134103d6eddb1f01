/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The maps that the programs share, and the test for the daemon itself. */
#ifndef TARSIER_MAPS_H
#define TARSIER_MAPS_H

#include "base.h"
#include "shared.h"

/* Match tables of the rule set in force: one update of slot 0 replaces the rule set. */
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

/* One ring per CPU; the daemon creates them. */
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

/* Wakes the daemon, which the rings themselves never do. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, DOORBELL_BYTES);
} doorbell SEC(".maps");

/*
 * One entry per CPU, in an array that the daemon can map into its memory, unlike
 * a per-CPU map: while a process reads a value with bpf(2), the kernel runs no
 * probes on that CPU, not even for other tasks that run there in between.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set to the number of CPUs */
	__type(key, __u32);
	__type(value, struct cpu_state);
} cpu_states SEC(".maps");

static ONCE struct cpu_state *state_of_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpu_states, &cpu);
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RULES_MAX + 1);
	__type(key, __u32);
	__type(value, struct rule_count);
} rule_counts SEC(".maps");

/* Budgets of the rules in force, by place; the daemon writes them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RULES_MAX);
	__type(key, __u32);
	__type(value, struct budget);
} budgets SEC(".maps");

/* Events lost, by real uid of the task that made them, as far as there is room. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LOST_UIDS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} lost_by_uid SEC(".maps");

/* Progress of the last execve of a task, as seen by the hooks. */
enum exec_state {
	EXEC_BEGUN = 1,
	EXEC_SEEN = 2,
};

/* What has to be remembered about a task between two hooks. */
struct task_note {
	__u64 exec_args[6];
	__u64 old_caps[4]; /* inheritable, permitted, effective, ambient */
	__u32 exec_nr; /* in the tables */
	__u32 exec_given; /* as the caller gave it */
	__u32 exec_valid; /* enum exec_state */
	__u32 exec_compat;
	__u32 never; /* a task-list rule with `never` matched */
	__u32 old_uid;
	__u64 operation; /* address of the io_uring request that a probed function works on */
	__u64 fork_start; /* start time of the last child whose creation is recorded */
	__s64 fork_child; /* its number; 0: the call that made it has returned */
	char module[56]; /* the last module that the task has loaded */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_note);
} task_notes SEC(".maps");

/* The bodies that programs on kernel functions jump to, one for each prototype. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} bodies SEC(".maps"), other_bodies SEC(".maps");

/* Gates of the hooked functions. Each has a program that knows its index. */
struct gate gates[FUNCTIONS_MAX] SEC(".bss.gates");

struct control control;

/* Whether the probes of a link are in force. The low bits of their cookies are its number. */
static __always_inline bool link_is_in_force(__u64 cookie)
{
	return control.probe_links >> (cookie & (PROBE_LINKS_MAX - 1)) & 1;
}

/* Nanoseconds of a clock tick, the unit of /proc/PID/stat: USER_HZ is 100. */
#define TICK_NS 10000000ULL

/*
 * The task as an untrusted pointer. For each pointer that is loaded through a trusted one, the
 * verifier goes through all types of the kernel, four times, to find out whether the loaded
 * pointer is trusted too. It does not for loads through an untrusted pointer; they read 0 if the
 * address is not valid.
 */
static __always_inline struct task_struct *untrusted(struct task_struct *task)
{
	if (bpf_ksym_exists(bpf_rdonly_cast))
		return bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct));
	return task;
}

/*
 * The calls of the daemon and of its helpers are not recorded. After the end of such a process, its
 * pid may belong to another one.
 */
static __always_inline bool is_daemon(struct task_struct *task)
{
	__u32 tgid = task->tgid;
	__u64 start;

	if (tgid == control.daemon_tgid)
		start = control.daemon_start;
	else if (tgid == control.helper_tgid[0])
		start = control.helper_start[0];
	else if (tgid == control.helper_tgid[1])
		start = control.helper_start[1];
	else if (tgid == control.helper_tgid[2])
		start = control.helper_start[2];
	else
		return false;
	return !start || !HAS(task, group_leader, start_boottime) ||
	       untrusted(task)->group_leader->start_boottime / TICK_NS == start;
}

#endif /* TARSIER_MAPS_H */
