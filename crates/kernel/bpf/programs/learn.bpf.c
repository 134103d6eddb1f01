// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Records which system calls a program and its descendants make, or the tasks of a cgroup: counts per call and, for
 * calls that user space chooses, the values of the argument that tells what the call is for. User space reads the
 * maps.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "arch.h"
#include "follow.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct call_key);
	__type(value, __u64);
} counts SEC(".maps");

/* Index of the argument that tells what a call is for. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct call_key);
	__type(value, __u32);
} telling SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct value_key);
	__type(value, __u64);
} values SEC(".maps");

/* Processes whose threads are to be followed from their next call on. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u8);
} processes SEC(".maps");

/* Cgroups of the path in the options, by id: a unit has a new one whenever it starts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u8);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct follow_options);
} options SEC(".maps");

static __always_inline const struct follow_options *get_options(void)
{
	const __u32 first = 0;

	return bpf_map_lookup_elem(&options, &first);
}

static __always_inline void count(void *map, const void *key, enum learn_missed what)
{
	const __u64 one = 1;
	__u64 *have = bpf_map_lookup_elem(map, key);

	if (!have && bpf_map_update_elem(map, key, &one, BPF_NOEXIST) == 0)
		return;
	have = bpf_map_lookup_elem(map, key);
	if (have)
		__sync_fetch_and_add(have, 1);
	else
		__sync_fetch_and_add(&state.missed[what], 1);
}

/* Marks a task that belongs to what user space named. */
static __always_inline __u8 *admit(struct task_struct *task)
{
	const struct follow_options *all = get_options();
	__u32 tgid = task->tgid;
	__u64 cgroup;
	__u8 *bits = bpf_map_lookup_elem(&processes, &tgid);

	if (bits)
		return set_mark(task, *bits);
	if (!all || !all->cgroup_level)
		return 0;
	cgroup = bpf_get_current_ancestor_cgroup_id(all->cgroup_level);
	if (!bpf_map_lookup_elem(&cgroups, &cgroup))
		return 0;
	return set_mark(task, all->outer_mount_ns ? MARK_FOLLOWED : MARK_FOLLOWED | MARK_COUNTED);
}

SEC("tp_btf/sys_enter")
int learn_call(__u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	struct task_struct *task = bpf_get_current_task_btf();
	struct value_key key = {};
	__u8 *mark = mark_of(task);
	__u64 args[6];
	bool compat;
	__u32 *arg;

	if (!mark)
		mark = admit(task);
	if (!mark || !(*mark & MARK_COUNTED))
		return 0;
	compat = entered_compat(task);
	key.call.arch = arch_audit(compat);
	key.call.nr = ctx[1];
	count(&counts, &key.call, LEARN_MISSED_CALLS);
	arg = bpf_map_lookup_elem(&telling, &key.call);
	if (!arg)
		return 0;
	call_args(args, regs, compat);
	/* The index must be a constant for the verifier. */
	switch (*arg) {
	case 0:
		key.value = args[0];
		break;
	case 1:
		key.value = args[1];
		break;
	case 2:
		key.value = args[2];
		break;
	default:
		key.value = args[3];
	}
	if (compat)
		key.value = (__u32)key.value;
	count(&values, &key, LEARN_MISSED_VALUES);
	return 0;
}

/* A container's runtime prepares it, and then becomes the container's program, whose calls count. */
SEC("tp_btf/sched_process_exec")
int learn_exec(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	const struct follow_options *all = get_options();
	__u8 *mark = mark_of(task);
	__u32 mount_ns;

	if (!mark || !all || !all->outer_mount_ns)
		return 0;
	mount_ns = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
	if (mount_ns != all->outer_mount_ns)
		*mark |= MARK_COUNTED;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int learn_exit(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];

	if (mark_of(task))
		__sync_fetch_and_add(&state.alive, -1);
	return 0;
}

SEC("tp_btf/cgroup_mkdir")
int learn_cgroup(__u64 *ctx)
{
	struct cgroup *cgroup = (struct cgroup *)ctx[0];
	const struct follow_options *all = get_options();
	union {
		char text[FOLLOW_PATH_BYTES];
		__u64 words[FOLLOW_PATH_BYTES / 8];
	} path = {};
	const __u8 one = 1;
	__u64 id;
	int i;

	if (!all || !all->cgroup_level)
		return 0;
	if (bpf_probe_read_kernel_str(path.text, sizeof(path.text), (void *)ctx[1]) < 0)
		return 0;
	for (i = 0; i < FOLLOW_PATH_BYTES / 8; i++) {
		if (path.words[i] != ((const __u64 *)all->cgroup_path)[i])
			return 0;
	}
	id = BPF_CORE_READ(cgroup, kn, id);
	bpf_map_update_elem(&cgroups, &id, &one, BPF_ANY);
	return 0;
}
