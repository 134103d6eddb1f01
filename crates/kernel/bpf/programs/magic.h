/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The links of proc(5) that mean the task which follows them: the kernel follows these by code, not
 * by a text (proc_self_get_link(), fs/proc/self.c; proc_pid_get_link(), fs/proc/base.c).
 */
#ifndef TARSIER_MAGIC_H
#define TARSIER_MAGIC_H

#include "base.h"
#include "files.h"
#include "pids.h"

#define MAGIC_IS_KNOWN                                                                        \
	(PIDS_ARE_KNOWN && TYPE_HAS(super_block, s_magic) && TYPE_HAS(super_block, s_root) && \
	 TYPE_HAS(super_block, s_fs_info) && TYPE_HAS(proc_fs_info, pid_ns) &&                \
	 TYPE_HAS(pid_namespace, level) && TYPE_HAS(task_struct, group_leader) &&             \
	 TYPE_HAS(file, f_path) && TYPE_HAS(fs_struct, pwd) && TYPE_HAS(fs_struct, root))

/* The bytes of a short name, as its first word has them. */
#define NAME4(a, b, c, d) ((__u64)(a) | (b) << 8 | (c) << 16 | (__u64)(d) << 24)

/* Whether a link of proc(5) is the one to the directory of the process that follows it. */
static __always_inline bool is_link_to_self(struct dentry *link, __u64 name)
{
	return MAGIC_IS_KNOWN && name == NAME4('s', 'e', 'l', 'f') &&
	       READ(link, d_sb, s_magic) == PROC_SUPER_MAGIC &&
	       READ(link, d_parent) == READ(link, d_sb, s_root);
}

/* The id of the task's process in the pid namespace of this proc(5); 0 if it has none there. */
static __always_inline __u32 number_in(struct super_block *proc, struct task_struct *task)
{
	struct proc_fs_info *info = (struct proc_fs_info *)READ(proc, s_fs_info);
	struct pid *pid = READ(task, group_leader, thread_pid);
	__u32 level = READ(info, pid_ns, level);
	int number = 0;

	if (level > READ(pid, level))
		return 0;
	bpf_core_read(&number, sizeof(number), &upid_at(pid, level)->nr);
	return number;
}

/* The descriptor whose number a name of up to 7 digits is; -1 if it is something else. */
static __always_inline __s32 descriptor_named(__u64 name)
{
	__s32 number = 0;
	__u32 i;

#pragma unroll
	for (i = 0; i < 7; i++) {
		__u32 digit = (__u8)(name >> 8 * i) - '0';

		if (!(__u8)(name >> 8 * i))
			break;
		if (digit > 9)
			return -1;
		number = 10 * number + digit;
	}
	return i && !(name >> 56) ? number : -1;
}

/*
 * What a link in the task's own directory of proc(5) leads to: fd/N, cwd or root, whose name is the
 * word `name`. 0: it is another link, or other tasks may have changed what it leads to.
 */
static __always_inline const struct path *magic_path(struct task_struct *task, struct dentry *link,
						     __u64 name)
{
	struct fs_struct *fs = READ(task, fs);
	struct file *file;
	__s32 fd;

	if (!MAGIC_IS_KNOWN || READ(link, d_sb, s_magic) != PROC_SUPER_MAGIC ||
	    !has_own_files(task) || task_of_pid(pid_of_proc(READ(link, d_inode))) != task)
		return 0;
	if (name == NAME4('c', 'w', 'd', 0))
		return &fs->pwd;
	if (name == NAME4('r', 'o', 'o', 't'))
		return &fs->root;
	/* In that directory only descriptors have numbers that are links. */
	fd = descriptor_named(name);
	file = fd < 0 ? 0 : file_of(task, fd);
	return file ? &file->f_path : 0;
}

#endif /* TARSIER_MAGIC_H */
