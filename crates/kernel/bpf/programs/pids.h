/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Process ids, and the tasks that they stand for. */
#ifndef TARSIER_PIDS_H
#define TARSIER_PIDS_H

#include "base.h"

#define PIDS_ARE_KNOWN                                                             \
	(TYPE_HAS(task_struct, thread_pid) && TYPE_HAS(task_struct, pid_links) &&  \
	 TYPE_HAS(pid, level) && TYPE_HAS(pid, numbers) && TYPE_HAS(pid, tasks) && \
	 TYPE_HAS(upid, ns) && TYPE_HAS(upid, nr) && TYPE_HAS(pid_namespace, idr))

#define PROC_SUPER_MAGIC 0x9fa0

/* The task of a pid: the first of the list of PIDTYPE_PID, which has no other. NULL: reaped. */
static __always_inline struct task_struct *task_of_pid(struct pid *pid)
{
	struct hlist_node *first = 0;

	if (!PIDS_ARE_KNOWN || !pid)
		return 0;
	bpf_core_read(&first, sizeof(first), &pid->tasks);
	return first ? (void *)first - bpf_core_field_offset(struct task_struct, pid_links) : 0;
}

static __always_inline struct upid *upid_at(struct pid *pid, __u32 level)
{
	return (void *)&pid->numbers + level * bpf_core_type_size(struct upid);
}

/* The process that an inode of proc(5) belongs to; NULL if it is of none. */
static __always_inline struct pid *pid_of_proc(struct inode *inode)
{
	struct proc_inode *of_proc;

	if (!TYPE_HAS(proc_inode, pid) || !TYPE_HAS(proc_inode, vfs_inode))
		return 0;
	of_proc = (void *)inode - bpf_core_field_offset(struct proc_inode, vfs_inode);
	return READ(of_proc, pid);
}

#endif /* TARSIER_PIDS_H */
