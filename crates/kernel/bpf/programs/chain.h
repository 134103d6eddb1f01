/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The files that an execve has opened: the one that it names, the interpreters of scripts, the program
 * that runs, and its loader. The kernel has let go of each script by then, but releases it only when
 * the task returns to user mode: until then, its file is among the works of the task (exec_binprm(),
 * fs/exec.c; fput(), fs/file_table.c). The loader is what is mapped where the program begins
 * (load_elf_binary(), fs/binfmt_elf.c). No name is looked up again, so that it does not matter where
 * the names lead meanwhile.
 */
#ifndef TARSIER_CHAIN_H
#define TARSIER_CHAIN_H

#include "arch.h"
#include "base.h"
#include "files.h"
#include "steps.h"
#include "walk.h"

/* The most works of a task that are looked at: programs that close many descriptors on execve have many. */
#define CHAIN_WORKS_MAX 4096
/* __FMODE_EXEC of linux/fs.h, which no open of user space can request. */
#define OPENED_TO_EXECUTE 0x20

#define WORKS_ARE_KNOWN                                                                  \
	(TYPE_HAS(task_struct, task_works) && TYPE_HAS(callback_head, next) &&           \
	 (TYPE_HAS(file, f_task_work) || TYPE_HAS(file___rcuhead, f_rcuhead)) &&         \
	 TYPE_HAS(file, f_flags) && TYPE_HAS(file, f_inode) && TYPE_HAS(file, f_cred) && \
	 TYPE_HAS(file, f_path))
#define LOADERS_ARE_KNOWN \
	(TYPE_HAS(vm_area_struct, vm_file) && TYPE_HAS(file, f_mode) && TYPE_HAS(file, f_path))

#define FMODE_BACKING 0x2000000

#define ENOENT 2
#define E2BIG 7
#define ENOEXEC 8
#define ENOTDIR 20
#define ETXTBSY 26
#define ELOOP 40

struct chain_walk {
	struct work *w;
	/* What the files were opened with: not the program that ran before; 0 if that still runs. */
	const struct cred *cred;
};

/* Whether the path is that of the inode. */
static __always_inline bool leads_to(const struct path *path, struct inode *inode)
{
	return inode && READ(path, dentry, d_inode) == inode;
}

static __always_inline void chain_add(struct chain *c, const struct path *path)
{
	__u64 at = c->count;

	c->count = at + 1;
	if (at >= CHAIN_MAX)
		return;
	/* For the reasons that frame_at() has. */
	asm volatile("%[at] &= %[mask]" : [at] "+r"(at) : [mask] "i"(CHAIN_MAX - 1));
	c->path[at] = (__u64)path;
}

/*
 * The next work of the task, newest first. What is not a file, but another work, is not taken for
 * one: its path would have to lead to its inode.
 */
STEP(chain_step, struct chain_walk *walk, CHAIN_WORKS_MAX)
{
	struct chain *c = &walk->w->chain;
	struct callback_head *work = (void *)c->next;
	struct file *file;

	if (!work)
		return 1;
	if (TYPE_HAS(file, f_task_work))
		file = (void *)work - bpf_core_field_offset(struct file, f_task_work);
	else
		file = (void *)work - bpf_core_field_offset(struct file___rcuhead, f_rcuhead);
	c->next = (__u64)READ(work, next);
	if (READ(file, f_flags) & OPENED_TO_EXECUTE &&
	    leads_to(&file->f_path, READ(file, f_inode)) &&
	    (!walk->cred || READ(file, f_cred) == walk->cred))
		chain_add(c, &file->f_path);
	return 0;
}

/* The path of a mapped file as its user sees it; of a file of overlayfs, the layer's file is mapped. */
static __always_inline const struct path *mapped_path(struct file *file)
{
	struct backing_file *backing;

	if (!TYPE_HAS(file, f_path))
		return 0;
	if (!file || !(READ(file, f_mode) & FMODE_BACKING))
		return file ? &file->f_path : 0;
	if (TYPE_HAS(backing_file, user_path) && TYPE_HAS(backing_file, file)) {
		backing = (void *)file - bpf_core_field_offset(struct backing_file, file);
		return &backing->user_path;
	}
	return TYPE_HAS(backing_file___real, real_path) ? &file->f_path : 0;
}

static long chain_loader(struct task_struct *task, struct vm_area_struct *vma,
			 struct chain_walk *walk)
{
	walk->w->chain.loader = (__u64)mapped_path(READ(vma, vm_file));
	return 0;
}

/*
 * Whether a call that failed with this error, after it had opened files, has let go of all that it
 * has reached. With others it may have been refused a file, which the kernel's audit knows.
 */
static __always_inline bool opened_all(__s64 ret)
{
	return ret == -ENOEXEC || ret == -E2BIG || ret == -ETXTBSY || ret == -ENOENT ||
	       ret == -ENOTDIR || ret == -ELOOP;
}

/* Finds what runs and its loader; false if one of them is not known. */
static __always_inline bool find_image(struct work *w, struct linux_binprm *bprm)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct chain_walk walk = { .w = w };
	struct chain *c = &w->chain;
	struct file *image = READ(bprm, file), *kept = 0;
	__u64 begins = program_counter((struct pt_regs *)bpf_task_pt_regs(task));

	if (!LOADERS_ARE_KNOWN || !HAS(bprm, interp) || !HAS(bprm, filename) || !image)
		return false;
	c->image = (__u64)&image->f_path;
	/* Interpreters of binfmt_misc may get the file by a descriptor; without one, this is 0. */
	if (HAS(bprm, execfd))
		kept = file_of(task, READ(bprm, execfd));
	if (READ(kept, f_flags) & OPENED_TO_EXECUTE)
		c->kept = (__u64)&kept->f_path;
	if (!HAS_HELPER(find_vma))
		return false;
	return !bpf_find_vma(task, begins, chain_loader, &walk, 0) && c->loader;
}

/*
 * Finds the files of an execve into w->chain; if it has succeeded, w->bprm_at is its struct
 * linux_binprm. `is_all` says whether none is missing.
 */
__noinline int find_chain(struct work *w)
{
	struct chain_walk walk = { .w = w };
	struct linux_binprm *bprm;
	struct task_struct *task;
	struct chain *c;
	bool is_all;

	if (!PATHS_ARE_KNOWN || !INODES_ARE_KNOWN || !w || w->chain.is_looked)
		return 0;
	c = &w->chain;
	__builtin_memset(c, 0, sizeof(*c));
	c->is_looked = 1;
	bprm = (struct linux_binprm *)w->bprm_at;
	is_all = bprm ? find_image(w, bprm) : opened_all(w->ret);
	/* A script, or a file with an interpreter of binfmt_misc, has another name than what runs. */
	if (bprm && READ(bprm, interp) == READ(bprm, filename)) {
		c->is_all = is_all;
		return 0;
	}
	if (!WORKS_ARE_KNOWN)
		return 0;
	if (bprm)
		walk.cred = READ(bprm, file, f_cred);
	task = bpf_get_current_task_btf();
	c->next = (__u64)READ(task, task_works);
	REPEAT(chain_step, &walk);
	/* None is there if the task has had to do its works, for a ring that it had. */
	c->is_all = is_all && !c->next && c->count && c->count <= CHAIN_MAX;
	return 0;
}

#endif /* TARSIER_CHAIN_H */
