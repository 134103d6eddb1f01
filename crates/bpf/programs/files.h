/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The files that descriptors of a task stand for. */
#ifndef TARSIER_FILES_H
#define TARSIER_FILES_H

#include "base.h"

/* The file that a descriptor of the task refers to; 0 if there is none. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct fdtable *fdt = READ(task, files, fdt);
	struct file **fds, *file = 0;

	if (!fdt || fd >= READ(fdt, max_fds))
		return 0;
	fds = READ(fdt, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), fds + fd))
		return 0;
	return file;
}

/* Whether no other task can give the descriptors of the task to other files. */
static __always_inline bool has_own_files(struct task_struct *task)
{
	return READ(task, files, count.counter) == 1;
}

#endif /* TARSIER_FILES_H */
