/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Finds what the names of a call lead to, in the kernel's cache of names, without its locks: when a
 * call has just used a name, its entries are there. What is not found is left to the daemon, which
 * looks it up later. Callers run under RCU, which keeps entries, inodes and mounts.
 */
#ifndef TARSIER_FIND_H
#define TARSIER_FIND_H

#include "base.h"
#include "cached_names.h"
#include "emit.h"
#include "files.h"
#include "magic.h"
#include "marks.h"
#include "match.h"
#include "objects.h"
#include "steps.h"
#include "walk.h"

/* The most names, mounts, and symbolic links that are looked at for a path. */
#define FIND_STEPS_MAX 256
#define FIND_MOUNTS_MAX 256
#define FIND_LINKS_MAX 8
/* The most mounts on top of each other. */
#define FIND_LAYERS_MAX 4

#define S_IFLNK 0120000

/* The flag of an entry on which something is mounted, in some mount namespace. */
static __always_inline __u32 mounted_flag(void)
{
	if (bpf_core_enum_value_exists(enum dentry_flags, DCACHE_MOUNTED))
		return bpf_core_enum_value(enum dentry_flags, DCACHE_MOUNTED);
	return 1 << 16; /* older kernels have a macro */
}

/*
 * Adds what is known of an entry. As the other global functions here: the verifier goes through each
 * once, and not again for each step of the loops that call it.
 */
__noinline int find_know(struct work *w, __u32 what, __u64 dentry)
{
	struct dentry *of = (struct dentry *)dentry;
	struct tarsier_found *found;
	struct inode *inode;

	if (!NAMES_ARE_KNOWN || !w)
		return 0;
	found = &w->find.found;
	found->known |= what;
	if (!w->find.is_told)
		return 0;
	inode = READ(of, d_inode);
	inode_facts(what == TARSIER_FOUND_PARENT   ? &found->parent
		    : what == TARSIER_FOUND_ENTRY  ? &found->entry
		    : what == TARSIER_FOUND_TARGET ? &found->target
						   : &found->covered,
		    inode);
	return 0;
}

/* The next mount on an entry of the mount: ends the loop if it is on the entry that was found. */
STEP(find_mount_step, struct find_walk *walk, FIND_MOUNTS_MAX)
{
	struct find *f = &walk->w->find;
	__u64 node = f->next;
	struct mount *mnt;

	if (!node || node == f->end)
		return 1;
	mnt = (void *)node - bpf_core_field_offset(struct mount, mnt_child);
	f->next = (__u64)OF(mount, mnt, mnt_child.next);
	if ((__u64)OF(mount, mnt, mnt_mountpoint) != f->child)
		return 0;
	f->mounted = (__u64)mnt;
	return 1;
}

/* Goes from the entry that was found to what is mounted on it; false if that could not be found out. */
__noinline int find_mounted(struct work *w)
{
	struct find_walk walk = { .w = w };
	struct find *f;
	struct dentry *child;
	struct mount *mnt;
	__u32 i;

	if (!NAMES_ARE_KNOWN || !w)
		return 0;
	f = &w->find;

	f->below = f->child;
	/* Unrolled, as below: Linux 6.1 refuses a loop that begins right after a call. */
#pragma unroll
	for (i = 0; i < FIND_LAYERS_MAX; i++) {
		child = (struct dentry *)f->child;
		if (!(OF(dentry, child, d_flags) & mounted_flag()))
			return true;

		mnt = (struct mount *)f->child_mnt;
		f->next = (__u64)OF(mount, mnt, mnt_mounts.next);
		f->end = f->child_mnt + bpf_core_field_offset(struct mount, mnt_mounts);
		f->mounted = 0;
		REPEAT(find_mount_step, &walk);

		if (!f->mounted)
			return f->next == f->end;

		f->child_mnt = f->mounted;
		f->below = f->child;
		mnt = (struct mount *)f->mounted;
		f->child = (__u64)OF(mount, mnt, mnt.mnt_root);
	}
	return false;
}

/* `..`: goes to the directory above, but not above the root directory of the task. */
static __always_inline bool find_above(struct find_walk *walk)
{
	struct find *f = &walk->w->find;
	struct dentry *from;
	struct mount *mnt;
	__u32 i;

	f->is_turned = 1;
#pragma unroll
	for (i = 0; i < FIND_LAYERS_MAX; i++) {
		mnt = (struct mount *)f->mnt;
		if (f->dentry == f->root_dentry && f->mnt == f->root_mnt)
			return true;
		if (f->dentry != (__u64)READ(mnt, mnt.mnt_root))
			break;
		if ((__u64)READ(mnt, mnt_parent) == f->mnt)
			return true;
		f->dentry = (__u64)READ(mnt, mnt_mountpoint);
		f->mnt = (__u64)READ(mnt, mnt_parent);
	}

	if (i == FIND_LAYERS_MAX)
		return false;

	from = (struct dentry *)f->dentry;
	f->child = (__u64)READ(from, d_parent);
	f->child_mnt = f->mnt;
	if (!find_mounted(walk->w))
		return false;
	f->dentry = f->child;
	f->mnt = f->child_mnt;
	return true;
}

/* Puts the text of a symbolic link in front of the rest; false if the kernel does not keep it as a text. */
static __always_inline bool find_link(struct find *f)
{
	struct dentry *link = (struct dentry *)f->child;
	struct inode *inode = READ(link, d_inode);
	__u32 at = f->at;
	__u64 len;

	if (!HAS(inode, i_link) || !HAS(inode, i_size) || f->links >= FIND_LINKS_MAX)
		return false;

	f->links++;
	f->is_turned = 1;

	len = READ(inode, i_size);
	if (!len || len > FIND_LINK_MAX || len > at || !READ(inode, i_link))
		return false;

	at -= len;
	AT_MOST(len, FIND_LINK_MAX);
	if (bpf_probe_read_kernel(find_text(f, at), len, READ(inode, i_link)))
		return false;
	f->at = at;
	if (*find_text(f, at) == '/') {
		f->dentry = f->root_dentry;
		f->mnt = f->root_mnt;
	}
	return true;
}

/* Puts the directory of the task's process in proc(5) in front of the rest, which `self` means. */
static __always_inline bool find_self(struct find *f, struct task_struct *task)
{
	struct dentry *link = (struct dentry *)f->child;
	__u32 number = number_in(READ(link, d_sb), task);
	__u32 i;

	if (!number || f->at < 10)
		return false;
	/* The last digit first. */
	for (i = 0; i < 10 && number; i++) {
		f->at--;
		*find_text(f, f->at) = '0' + number % 10;
		number /= 10;
	}
	return true;
}

/* Follows a link of proc(5) that means the task itself; false if it is another one, or not its own. */
__noinline int find_magic(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct path *path;
	struct find *f;

	if (!MAGIC_IS_KNOWN || !w)
		return false;
	f = &w->find;
	if (f->links >= FIND_LINKS_MAX || f->len > 7)
		return false;

	f->links++;
	f->is_turned = 1;

	if (is_link_to_self((struct dentry *)f->child, f->name[0]))
		return find_self(f, task);
	path = magic_path(task, (struct dentry *)f->child, f->name[0]);
	if (!path)
		return false;
	f->dentry = (__u64)READ(path, dentry);
	f->mnt = (__u64)real_mount(READ(path, mnt));
	return true;
}

/* What a task may do in a directory: bits of a mode. */
#define MAY_SEARCH 1
#define MAY_CHANGE 3

/* Takes the capabilities and ids of the task by which it may search and change directories. */
static __always_inline void take_powers(struct find *f, struct task_struct *task)
{
	const struct cred *cred = untrusted(task)->cred;
	__u64 caps;

	f->powers = 0;
	f->fsuid = READ_OR(~0U, cred, fsuid.val);
	f->fsgid = READ_OR(~0U, cred, fsgid.val);
	f->has_groups = READ_OR(1, cred, group_info, ngroups) != 0;
	if (!CAPABILITIES_ARE_KNOWN || READ_OR(1, cred, user_ns, level))
		return;

	caps = capabilities(&cred->cap_effective);
	if (caps & 1ULL << CAP_DAC_OVERRIDE)
		f->powers = MAY_CHANGE;
	else if (caps & 1ULL << CAP_DAC_READ_SEARCH)
		f->powers = MAY_SEARCH;
}

/* Answers of may_in(). */
#define IT_MAY 0
#define IT_MAY_PERHAPS 1
#define IT_MAY_NOT 2

/*
 * Whether the mode of a directory lets the task do this: acl_permission_check(), fs/namei.c. Where the group and others
 * differ, and the task has several groups, it is not known.
 */
static __always_inline __u32 may_in(const struct find *f, const struct inode *dir, __u32 what)
{
	__u32 mode = READ(dir, i_mode);
	__u32 by_group = (mode >> 3 & what) == what, by_others = (mode & what) == what;

	if ((f->powers & what) == what)
		return IT_MAY;
	if (READ(dir, i_uid.val) == f->fsuid)
		by_group = by_others = (mode >> 6 & what) == what;
	else if (READ(dir, i_gid.val) == f->fsgid)
		by_others = by_group;
	else if (!f->has_groups)
		by_group = by_others;

	if (by_group != by_others)
		return IT_MAY_PERHAPS;
	return by_group ? IT_MAY : IT_MAY_NOT;
}

/* Notes whether the task may search the directory that has been reached. */
__noinline int find_search(struct work *w)
{
	struct dentry *dir;
	struct find *f;
	__u32 may;

	if (!NAMES_ARE_KNOWN || !w)
		return 0;
	f = &w->find;

	dir = (struct dentry *)f->dentry;
	may = may_in(f, READ(dir, d_inode), MAY_SEARCH);

	if (may == IT_MAY_NOT)
		f->found.known |= TARSIER_FOUND_BARRED;
	f->barred |= may;
	return 0;
}

/* Keeps the directory that has been reached, in which the last name of the argument is looked up. */
static __always_inline void find_reached_directory(struct find_walk *walk)
{
	struct find *f = &walk->w->find;
	struct dentry *dir = (struct dentry *)f->dentry;

	find_know(walk->w, TARSIER_FOUND_PARENT, f->dentry);
	f->found.known |= f->is_turned ? 0 : TARSIER_FOUND_DIRECT;
	f->found.known |= f->barred ? 0 : TARSIER_FOUND_SEARCHABLE;
	if (f->is_told && may_in(f, READ(dir, d_inode), MAY_CHANGE) == IT_MAY)
		f->found.known |= TARSIER_FOUND_WRITABLE;
	f->dir = f->dentry;
	f->dir_mnt = f->mnt;
}

/* The next name of the text, or the end of the text. */
STEP(find_step, struct find_walk *walk, FIND_STEPS_MAX)
{
	struct find *f = &walk->w->find;
	__u8 after = *find_text(f, f->at);
	struct dentry *child;
	bool is_last, is_link;

	if (after == '/') {
		f->at++;
		return 0;
	}
	if (!after) {
		find_know(walk->w, TARSIER_FOUND_TARGET, f->dentry);
		if (!f->is_past)
			find_know(walk->w, TARSIER_FOUND_ENTRY, f->dentry);
		return 1;
	}

	if (!take_name(walk->w))
		return 1;
	if (f->is_told)
		find_search(walk->w);

	if (f->len == 1 && f->name[0] == '.')
		return 0;
	if (f->len == 2 && f->name[0] == ('.' | '.' << 8))
		return !find_above(walk);

	after = *find_text(f, f->at);
	is_last = !f->is_past && (!after || (after == '/' && !*find_text(f, f->at + 1)));
	if (is_last) {
		find_reached_directory(walk);
		if (f->is_gone)
			return 1;
	}

	if (!find_entry(walk->w)) {
		if (is_last && f->next == f->end)
			f->found.known |= TARSIER_FOUND_NOT_CACHED;
		return 1;
	}

	f->child_mnt = f->mnt;
	child = (struct dentry *)f->child;
	if (!OF(dentry, child, d_inode)) {
		if (!f->is_past)
			f->found.known |= is_last ? TARSIER_FOUND_NO_ENTRY : TARSIER_FOUND_MISSING;
		return 1;
	}

	f->below = f->child;
	if (OF(dentry, child, d_flags) & mounted_flag() && !find_mounted(walk->w))
		return 1;
	if (is_last)
		find_know(walk->w, TARSIER_FOUND_COVERED, f->below);

	child = (struct dentry *)f->child;
	is_link = (OF(dentry, child, d_inode, i_mode) & S_IFMT) == S_IFLNK;
	/* A name before a '/' stands for what a link leads to. */
	if (is_last && !(is_link && after))
		find_know(walk->w, TARSIER_FOUND_ENTRY, f->child);
	f->is_past |= is_last;

	if (is_link && is_last && f->is_entry)
		return 1;
	if (is_link && is_last) {
		f->link = f->child;
		f->link_mnt = f->child_mnt;
	}
	if (is_link)
		return !find_link(f) && !find_magic(walk->w);

	f->dentry = f->child;
	f->mnt = f->child_mnt;
	f->at += after == '/';
	return 0;
}

/* Cuts off a '/' that is behind another at the end of the text; ends the loop if there is none. */
STEP(find_slash_step, struct find_walk *walk, FIND_TEXT)
{
	struct find *f = &walk->w->find;

	if (f->at <= FIND_START + 2 || *find_text(f, f->at - 1) != '/' ||
	    *find_text(f, f->at - 2) != '/')
		return 1;
	f->at--;
	*find_text(f, f->at) = 0;
	return 0;
}

/*
 * Ends the text, which is `len` bytes long, so that the last name is known from the byte behind the '/'
 * that follows it.
 */
static __always_inline void find_text_ends(struct find_walk *walk, __u64 len)
{
	struct find *f = &walk->w->find;

	*find_text(f, FIND_START + len) = 0;
	f->at = FIND_START + len;
	REPEAT(find_slash_step, walk);
}

/* Sets where the path argument `i` begins: the root directory, the current one, or that of a descriptor. */
static __always_inline bool find_begin(struct work *w, struct task_struct *task, __u32 i)
{
	__u8 dir = w->spec.dir[i];
	struct fs_struct *fs = OF(task_struct, task, fs);
	struct find *f = &w->find;
	struct file *file;

	f->root_dentry = (__u64)OF(fs_struct, fs, root.dentry);
	f->root_mnt = (__u64)real_mount(OF(fs_struct, fs, root.mnt));
	f->dentry = f->root_dentry;
	f->mnt = f->root_mnt;

	if (*find_text(f, FIND_START) == '/')
		return true;

	if (dir < 6 && (__s32)w->args[dir] != AT_FDCWD) {
		file = file_of(task, w->args[dir]);
		f->dentry = (__u64)READ(file, f_path.dentry);
		f->mnt = (__u64)real_mount(READ(file, f_path.mnt));
		return file;
	}

	f->dentry = (__u64)OF(fs_struct, fs, pwd.dentry);
	f->mnt = (__u64)real_mount(OF(fs_struct, fs, pwd.mnt));
	return true;
}

/*
 * Finds what path argument `i` leads to, whose text is in place, into w->find; if its entry is gone,
 * only the directory. `is_told`: w->find.found is to describe the objects, too.
 */
__noinline int find_text_of(struct work *w, __u32 i, __u32 is_gone, __u32 is_told)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct find_walk walk = { .w = w };
	struct find *f;

	if (!w)
		return 0;
	f = &w->find;

	f->found.known = 0;
	f->dir = 0;
	f->link = 0;

	if (!find_begin(w, task, i & 1))
		return 0;

	f->at = FIND_START;
	f->entries = FIND_ENTRIES_MAX;
	f->links = 0;
	f->is_past = 0;
	f->is_turned = 0;
	f->barred = 0;
	f->is_told = is_told;

	if (is_told)
		take_powers(f, task);
	f->is_gone = is_gone;
	f->is_entry = w->spec.flags & (i & 1 ? SPEC_ENTRY_SECOND : SPEC_ENTRY_FIRST);

	REPEAT(find_step, &walk);
	return 0;
}

#endif /* TARSIER_FIND_H */
