// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Writes a record for every task that has seccomp filters: how many, and the
 * bitmaps in the newest filter of system calls that are always allowed (struct
 * action_cache in kernel/seccomp.c). The tasks are not stopped.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MODE_FILTER 2

/* Types of this program's own, for members that only it reads. */
struct action_cache___tarsier {
	unsigned long allow_native[1];
	unsigned long allow_compat[1];
};

struct seccomp_filter___tarsier {
	struct action_cache___tarsier cache;
};

struct seccomp___tarsier {
	int mode;
	struct {
		int counter;
	} filter_count;
	struct seccomp_filter___tarsier *filter;
};

struct task_struct___tarsier {
	int pid;
	int tgid;
	struct seccomp___tarsier seccomp;
};

struct bpf_iter_meta___tarsier {
	struct seq_file *seq;
};

struct bpf_iter__task___tarsier {
	struct bpf_iter_meta___tarsier *meta;
	struct task_struct___tarsier *task;
};

SEC("iter/task")
int seccomp_caches(struct bpf_iter__task___tarsier *ctx)
{
	struct task_struct___tarsier *task = ctx->task;
	struct seccomp_filter___tarsier *filter;
	struct action_cache___tarsier *cache;
	struct seccomp_record record = {};
	__u32 size;

	if (!task || BPF_CORE_READ(task, seccomp.mode) != MODE_FILTER)
		return 0;
	record.tgid = BPF_CORE_READ(task, tgid);
	record.tid = BPF_CORE_READ(task, pid);
	record.filters = BPF_CORE_READ(task, seccomp.filter_count.counter);
	filter = BPF_CORE_READ(task, seccomp.filter);
	if (!filter)
		return 0;
	cache = __builtin_preserve_access_index(&filter->cache);
	if (bpf_core_field_exists(cache->allow_native)) {
		size = bpf_core_field_size(cache->allow_native);
		if (size > sizeof(record.native))
			size = sizeof(record.native);
		bpf_probe_read_kernel(record.native, size,
				      __builtin_preserve_access_index(&cache->allow_native));
		record.native_bytes = size;
	}
	if (bpf_core_field_exists(cache->allow_compat)) {
		size = bpf_core_field_size(cache->allow_compat);
		if (size > sizeof(record.compat))
			size = sizeof(record.compat);
		bpf_probe_read_kernel(record.compat, size,
				      __builtin_preserve_access_index(&cache->allow_compat));
		record.compat_bytes = size;
	}
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
