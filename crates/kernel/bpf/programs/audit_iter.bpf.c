// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Counts tasks with an audit context: the kernel audits their calls (it enters
 * audit at the begin and the end of each), whatever the rules.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Tasks of the kernel (PF_KTHREAD) make no calls. */
#define KERNEL_TASK 0x00200000

/* Types of this program's own, for members that only it reads. */
struct task_struct___tarsier {
	unsigned int flags;
	int pid;
	int tgid;
	void *audit_context;
};

struct bpf_iter_meta___tarsier {
	struct seq_file *seq;
};

struct bpf_iter__task___tarsier {
	struct bpf_iter_meta___tarsier *meta;
	struct task_struct___tarsier *task;
};

SEC("iter/task")
int audited_tasks(struct bpf_iter__task___tarsier *ctx)
{
	struct task_struct___tarsier *task = ctx->task;
	struct audited_task record = {};

	if (!task || !bpf_core_field_exists(task->audit_context))
		return 0;
	if (BPF_CORE_READ(task, flags) & KERNEL_TASK || !BPF_CORE_READ(task, audit_context))
		return 0;
	record.tgid = BPF_CORE_READ(task, tgid);
	record.tid = BPF_CORE_READ(task, pid);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
