/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Finds which of the rules' executables a task runs. Marks are those of marks.h. */
#ifndef TARSIER_EXECUTABLES_H
#define TARSIER_EXECUTABLES_H

#include "base.h"
#include "marks.h"
#include "steps.h"

/*
 * One step of a walk to the root directory. Below it there may be others, over which it is mounted:
 * the one of those that is seen is the first that is reached, `shown_at`.
 */
STEP(path_step, struct mark_walk *walk, WALK_STEPS_MAX)
{
	struct marks *m = walk->m;
	__u64 dentry_at = m->dentry_at, up_at;

	if (dentry_at == (__u64)OF(mount, m->mnt_at, mnt.mnt_root)) {
		up_at = address_in(&m->address, OF(mount, m->mnt_at, mnt_parent));
		if (!m->shown_at)
			m->shown_at = dentry_at;
		if (up_at == m->mnt_at) {
			m->is_done = 1;
			return 1;
		}
		m->dentry_at = (__u64)OF(mount, m->mnt_at, mnt_mountpoint);
		m->mnt_at = up_at;
		return 0;
	}
	m->shown_at = 0;
	m->path = mark_mix(m, m->path, name_mark(m, dentry_at));
	up_at = address_in(&m->address, OF(dentry, dentry_at, d_parent));
	m->dentry_at = up_at;
	return up_at == dentry_at;
}

/* Stands for a number that could not be found out. */
#define NUMBER_UNKNOWN ~0U

/*
 * Finds the number of an executable by its path: for one with the name of a rule's, in a directory
 * that is not the one to which the rule's path led when the rules were loaded.
 */
static __always_inline __u32 number_by_path(struct table *table, struct marks *m, __u64 dentry_at,
					    __u64 mnt_at)
{
	struct mark_walk walk = { .m = m };
	__u32 row;

	m->dentry_at = dentry_at;
	m->mnt_at = (__u64)real_mount((struct vfsmount *)mnt_at);
	m->path = PATH_MARK;
	m->shown_at = 0;
	m->is_done = 0;
	REPEAT(path_step, &walk);
	if (!m->is_done)
		return NUMBER_UNKNOWN;
	row = mark_row(table, TABLE_EXECUTABLES, entry_mark(m, m->path, m->shown_at));
	return row ? row_at(table, row)->b : 0;
}

/*
 * The number of the rules' executable that has this name: that of its entry, or else of its path,
 * which leads there in this mount namespace. Anybody can mount a file over such a path, so it does
 * not prove which file it is.
 */
static __always_inline __u32 number_by_name(struct table *table, struct marks *m, __u64 dentry_at,
					    struct file *exe)
{
	__u64 parent_at = (__u64)OF(dentry, dentry_at, d_parent);
	__u64 name = name_mark(m, dentry_at);
	__u32 row;

	if (!mark_row(table, TABLE_EXECUTABLES, name))
		return 0;
	row = mark_row(table, TABLE_EXECUTABLES, entry_mark(m, name, parent_at));
	if (row)
		/* Of a file that has been replaced, only the name is left. */
		return IS_UNHASHED((struct dentry *)dentry_at) ? 0 : row_at(table, row)->b;
	return number_by_path(table, m, dentry_at,
			      address_in(&m->address, OF(file, (__u64)exe, f_path.mnt)));
}

/*
 * Finds the numbers of the task's executable in the tables: the low half by device and inode, the
 * high half by its name, and 0 where no rule names it. Where they differ, the executable may be
 * either, or none. Returns false if not all of this is known.
 */
__noinline int executable_numbers(struct work *w)
{
	struct task_struct *task = untrusted(bpf_get_current_task_btf());
	struct table *table = this_table();
	__u32 row, by_object, by_name;
	struct marks *m;
	struct file *exe;
	__u64 dentry_at;

	if (!w)
		return false;
	w->fact[FACT_EXE] = 0;
	if (!table || !PATHS_ARE_KNOWN || !INODES_ARE_KNOWN || !HAS(task, mm, exe_file, f_path))
		return false;
	exe = LOAD(0, task, mm, exe_file);
	/* A thread of the kernel has none. */
	if (!exe)
		return true;
	m = &w->executable;
	take_mark_key(table, m);
	dentry_at = address_in(&m->address, exe->f_path.dentry);
	row = mark_row(table, TABLE_EXECUTABLES,
		       object_mark(m, (__u64)OF(dentry, dentry_at, d_inode)));
	by_object = row ? row_at(table, row)->b : 0;
	by_name = number_by_name(table, m, dentry_at, exe);
	if (by_name == NUMBER_UNKNOWN)
		return false;
	w->fact[FACT_EXE] = by_object | (__u64)by_name << 32;
	return true;
}

#endif /* TARSIER_EXECUTABLES_H */
