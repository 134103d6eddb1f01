/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The files that descriptors of a task stand for. */
#ifndef TARSIER_FILES_H
#define TARSIER_FILES_H

#include "base.h"

/* The file that a descriptor of the task refers to; 0 if there is none. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct fdtable *fdt = OF(task_struct, task, files, fdt);
	struct file *file = 0;

	if (!fdt || fd >= OF(fdtable, fdt, max_fds))
		return 0;
	/* By the helper: global functions do not accept a pointer that was loaded. */
	if (bpf_probe_read_kernel(&file, sizeof(file), OF(fdtable, fdt, fd) + fd))
		return 0;
	return file;
}

/*
 * Whether no other task could give the descriptors of the task to other files during its call. One that
 * shares them now could; so could a thread that has ended, or from which the task has unshared them.
 */
static __always_inline bool has_own_files(struct task_struct *task)
{
	return OF(task_struct, task, files, count.counter) == 1 &&
	       OF(task_struct, task, mm, mm_users.counter) == 1 &&
	       HAS(task, signal, sum_sched_runtime) &&
	       !OF(task_struct, task, signal, sum_sched_runtime);
}

/* Whether more than one descriptor, or something else, holds a file; also if that is not known. */
static __always_inline bool is_held(struct file *file)
{
	struct file___counted *counted = (void *)file;
	struct file___ref *with_ref = (void *)file;

	if (TYPE_HAS(file___ref, f_ref.refcnt.counter))
		return READ(with_ref, f_ref.refcnt.counter) != 0;
	return READ(counted, f_count.counter) != 1;
}

/* The number of bits below the lowest one that is set. */
static __always_inline __u32 bits_below(__u64 word)
{
	__u64 n = (word & -word) - 1;

	n -= n >> 1 & 0x5555555555555555ULL;
	n = (n & 0x3333333333333333ULL) + (n >> 2 & 0x3333333333333333ULL);
	n = (n + (n >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return n * 0x0101010101010101ULL >> 56;
}

/* The lowest descriptor from `fd` on that is free, if it is one of the next 64; otherwise -1. */
static __always_inline __s32 next_free(struct task_struct *task, __u32 fd)
{
	struct fdtable *fdt = READ(task, files, fdt);
	unsigned long *used, words[2] = { ~0UL, ~0UL };
	__u64 is_free;
	__u32 count;

	if (!HAS(fdt, open_fds) || !fdt)
		return -1;
	count = READ(fdt, max_fds);
	used = READ(fdt, open_fds) + fd / 64;
	if (fd >= count || bpf_probe_read_kernel(&words[0], sizeof(words[0]), used))
		return -1;
	if (fd / 64 < (count - 1) / 64 &&
	    bpf_probe_read_kernel(&words[1], sizeof(words[1]), used + 1))
		return -1;
	is_free = ~(words[0] >> fd % 64 | (fd % 64 ? words[1] << (64 - fd % 64) : 0));
	return is_free ? (__s32)(fd + bits_below(is_free)) : -1;
}

#endif /* TARSIER_FILES_H */
