/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Builds an event: its parts, and paths from directory entries. */
#ifndef TARSIER_WALK_H
#define TARSIER_WALK_H

#include "base.h"
#include "dcache.h"
#include "labels.h"
#include "maps.h"
#include "names.h"
#include "steps.h"

#define WALK_STEPS_MAX 4096
#define FRAME_MASK (TARSIER_EVENT_MAX - 1)
/* Space after the last offset at which something may still be written. */
#define FRAME_SLACK (TARSIER_PATH_MAX + 512)

/* Command lines that are kept, by the low bits of the task's number. */
#define TITLES 16

/* The command line of a task that an event was about lately, as of the task's first event. */
struct title {
	__u64 start_time_ns;
	__u32 tid; /* 0: none */
	__u32 len;
	__u64 words[TARSIER_PROCTITLE_MAX / 8];
};

/* How far the arguments of an execve have been sent: see arguments.h. */
struct sending {
	__u64 at; /* address of the next bytes */
	__u64 start;
	__u64 end;
	__u64 sent_bytes; /* in the ring */
	__u64 sent_max; /* the most that may be, if the reader is not waited for */
	__u64 mark; /* the reader is waited for if more bytes would be unread */
	__u64 wait_ns; /* time that may still be waited */
	__u64 read; /* bytes of arguments in chunks */
	__u64 seq; /* of the next chunk */
};

/* The evaluation of a list of rules; here, because the stack is too small. */
struct lookup {
	__u64 mask;
	__u64 any;
	__u64 worth; /* one bit for each page that can have a match */
	__u64 sure; /* rules of the page that marks decide */
	__u64 proven; /* rules with a mark that the kernel's audit would find, too */
	__u64 unsure; /* rules whose workload is not known */
	__u32 entries_row;
	__u32 entries;
	__u32 value;
	__u32 first; /* row of the lookups of this page */
	__u32 pages;
	__u32 list;
	__u32 page; /* row of the page that decided, or 0 */
	__u32 bit; /* position of the deciding rule in that page */
	__u32 labels; /* a rule that gives labels selects the call, or may do so */
	__u32 npages;
};

/* Where the text of a path begins in the room for it; the texts of links are put in front of the rest. */
#define FIND_TEXT 8192
#define FIND_START 4096
#define FIND_LINK_MAX 255
#define FIND_NAME_WORDS 32

/* The search for what a name leads to: see find.h. Addresses are numbers. */
struct find {
	__u32 path_at[2]; /* of the path arguments in the frame */
	__u32 path_len[2]; /* 0: not known in full */
	__u32 name_at; /* of the path of a UNIX socket in the frame */
	__u32 name_len; /* 0: the call has none */
	__u32 is_noted; /* hooks on functions have seen what the call reached */
	__u32 is_doubted; /* the call has created the file that it opened, or shares its descriptors */
	__u32 at; /* of the rest of the text */
	__u32 len; /* of the name */
	__u32 entries; /* how many more may be looked at */
	__u32 links; /* symbolic links that have been followed */
	__u32 is_past; /* the last name of the argument has been found */
	__u32 is_gone; /* there is no entry with the last name */
	__u32 is_turned; /* a symbolic link or .. has been followed */
	__u32 is_entry; /* a symbolic link that is the last name is not followed */
	__u32 barred; /* the mode of a directory may not (1) or does not (2) let the task search it */
	__u32 powers; /* may_in() of directories, whatever their modes */
	__u32 fsuid;
	__u32 fsgid;
	__u32 has_groups; /* the task has more groups */
	__u32 hash; /* of the name, in the directory */
	__u32 is_told; /* objects are described in `found` */
	__u32 is_same; /* the name and that of an entry, so far */
	__u64 dentry; /* the directory that has been reached */
	__u64 mnt;
	__u64 dir; /* that of the last name of the argument; 0: it has not been reached, or has no name */
	__u64 dir_mnt;
	__u64 link; /* the last name of the argument, if it is a symbolic link that has been followed */
	__u64 link_mnt;
	__u64 root_dentry;
	__u64 root_mnt;
	__u64 child; /* the entry that has been found */
	__u64 child_mnt;
	__u64 below; /* what the last mount on it is on; without one, itself */
	__u64 next; /* of the list that is being read */
	__u64 end; /* of that list */
	__u64 mounted; /* the mount that has been found */
	struct tarsier_found found;
	__u64 name[FIND_NAME_WORDS]; /* filled with zeros */
	__u64 other[FIND_NAME_WORDS];
	__u8 text[FIND_TEXT + FIND_LINK_MAX + 1];
};

/* The most files that an execve opens and lets go of: five levels of interpreters. */
#define CHAIN_MAX 8

/* The files of an execve: see chain.h. All but `next` are addresses of a struct path, or 0. */
struct chain {
	__u64 next; /* the work of the task that is looked at */
	__u32 is_looked; /* find_chain() has been called */
	__u32 is_all; /* none is missing */
	__u64 count; /* of `path`; more than CHAIN_MAX: not all are there */
	__u64 path[CHAIN_MAX]; /* scripts, and all files if the call failed; the last one first */
	__u64 kept; /* the file that an interpreter of binfmt_misc gets as a descriptor */
	__u64 image; /* what runs */
	__u64 loader; /* where it begins: itself, if it has none */
};

/*
 * The work area for one call. A task takes one for the time of a hook. Each CPU
 * has several: a program on a kernel function may be preempted by one of another
 * task, which then finds the first area busy.
 */
struct work {
	__u32 busy;
	__u32 noted; /* object hooks have seen this call */
	__u32 is_operation; /* of io_uring, which has not reached anything yet */
	__u32 pad;
	__u64 fact[FACTS];
	__u32 absent; /* one bit per fact that this call does not have */
	__u32 computed; /* one bit per fact that is known, or has been computed on demand */
	__u32 len; /* bytes of `frame` in use */
	__u32 parts;
	__u32 walk_end; /* offset at which the path that is being walked is cut */
	__u64 id; /* of the event */
	__u64 cgroup_id; /* of the task, once the facts of its workload are computed */
	__u64 cgroup_epoch; /* of these facts; with the id, kept after the call */
	__u32 arch; /* TABLE_ARCHES index */
	__u32 nr; /* as the tables have it */
	__u32 given_nr; /* as the caller gave it */
	__s64 ret;
	__u64 args[6];
	union {
		struct table_spec spec;
		struct table_row spec_row; /* for copying spec */
	};
	__u64 own[4]; /* used by walk_own() */
	__u64 address; /* the call's socket address: see find_address() */
	__u64 address_len;
	__u64 copied_address; /* the kernel's copy of an operation's address, or 0 */
	__u64 copied_len;
	struct lookup lookup;
	struct marks marks;
	struct marks executable; /* at the task's executable */
	struct sending sending;
	struct find find;
	__u64 bprm_at; /* of an execve that has succeeded: its struct linux_binprm */
	struct chain chain;
	struct title titles[TITLES]; /* kept after the call */
	__u32 nundecided;
	__u32 rule;
	__u64 label_generation; /* of the tables, if lookup.labels is set */
	__u64 label_epoch;
	struct tarsier_candidates undecided[TABLE_UNDECIDED_MAX];
	__u8 frame[TARSIER_EVENT_MAX + FRAME_SLACK];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct work);
} works SEC(".maps");

/* Takes a free work area of this CPU, to be returned by work_leave(); NULL if all are busy. */
static __always_inline struct work *work_take(void)
{
	__u32 first = bpf_get_smp_processor_id() * WORKS_PER_CPU, i;

	for (i = 0; i < WORKS_PER_CPU; i++) {
		__u32 key = first + i;
		struct work *w = bpf_map_lookup_elem(&works, &key);

		if (w && !__sync_lock_test_and_set(&w->busy, 1)) {
			w->noted = 0;
			w->is_operation = 0;
			w->bprm_at = 0;
			w->chain.is_looked = 0;
			return w;
		}
	}
	return 0;
}

static __always_inline void work_leave(struct work *w)
{
	*(volatile __u32 *)&w->busy = 0;
}

static __always_inline struct tarsier_event *event_of(struct work *w)
{
	return (struct tarsier_event *)w->frame;
}

/*
 * A place in the frame. The mask is applied here and in assembly: the compiler
 * would drop a mask that it knows to change nothing, and kernels up to 6.1 forget
 * the bounds of values that were spilled to the stack.
 */
static __always_inline void *frame_at(struct work *w, __u64 off)
{
	asm volatile("%[off] &= %[mask]" : [off] "+r"(off) : [mask] "i"(FRAME_MASK));
	return w->frame + off;
}

/* Starts a part; NULL if the frame is full. */
static __always_inline struct tarsier_part *part_begin(struct work *w, __u16 tag, __u8 index)
{
	__u32 off = w->len;
	struct tarsier_part *part;

	if (off > TARSIER_EVENT_MAX - 64) {
		event_of(w)->flags |= TARSIER_TRUNCATED;
		return 0;
	}

	part = frame_at(w, off);
	part->tag = tag;
	part->index = index;
	part->flags = 0;
	part->len = 0;
	return part;
}

/* Ends a part whose data is `len` bytes long. */
static __always_inline void part_end(struct work *w, struct tarsier_part *part, __u32 len)
{
	part->len = len;
	w->len += sizeof(*part) + ((len + 7) & ~7U);
	w->parts++;
}

/* A pointer as a number, which global functions accept. The verifier forgets its type in memory. */
static __always_inline __u64 address_in(__u64 *memory, const void *pointer)
{
	*(volatile __u64 *)memory = (__u64)pointer;
	return *(volatile __u64 *)memory;
}

/* The bits of a mode that tell the kind of an object. */
#define S_IFMT 0170000

/* Whether the kernel has all members that are recorded of an inode; otherwise none are. */
#define INODES_ARE_KNOWN                                                                      \
	(TYPE_HAS(inode, i_ino) && TYPE_HAS(inode, i_sb, s_dev) && TYPE_HAS(inode, i_rdev) && \
	 TYPE_HAS(inode, i_mode) && TYPE_HAS(inode, i_uid.val) && TYPE_HAS(inode, i_gid.val))

/* Whether the kernel has all members needed to walk from an entry to the root, across mounts. */
#define PATHS_ARE_KNOWN                                                                           \
	(TYPE_HAS(dentry, d_parent) && TYPE_HAS(dentry, d_name.name) && TYPE_HAS(path, dentry) && \
	 TYPE_HAS(path, mnt) && TYPE_HAS(vfsmount, mnt_root) && TYPE_HAS(mount, mnt.mnt_root) &&  \
	 TYPE_HAS(mount, mnt_parent) && TYPE_HAS(mount, mnt_mountpoint))

static __always_inline void no_inode_facts(struct tarsier_inode *out)
{
	__builtin_memset(out, 0, sizeof(*out));
}

static __always_inline void inode_facts(struct tarsier_inode *out, const struct inode *inode)
{
	__u64 inode_at;

	if (!INODES_ARE_KNOWN || !inode) {
		no_inode_facts(out);
		return;
	}
	out->valid = TARSIER_INODE_VALID | (__u32)object_label(address_in(&inode_at, inode)) << 1;
	out->ino = OF(inode, inode, i_ino);
	out->dev = OF(inode, inode, i_sb, s_dev);
	out->rdev = OF(inode, inode, i_rdev);
	out->mode = OF(inode, inode, i_mode);
	out->uid = OF(inode, inode, i_uid.val);
	out->gid = OF(inode, inode, i_gid.val);
}

/* As inode_facts(), if the verifier knows the type: each load is then one instruction. */
static __always_inline void known_inode_facts(struct tarsier_inode *out, const struct inode *inode)
{
	if (!INODES_ARE_KNOWN) {
		no_inode_facts(out);
		return;
	}
	out->valid = inode != 0;
	out->ino = inode->i_ino;
	out->dev = inode->i_sb->s_dev;
	out->rdev = inode->i_rdev;
	out->mode = inode->i_mode;
	out->uid = inode->i_uid.val;
	out->gid = inode->i_gid.val;
}

/* A path gets a quarter of the room that is left, so that each part of an event has some. */
static __always_inline void walk_begin(struct work *w)
{
	w->walk_end = w->len + (TARSIER_EVENT_MAX - w->len) / 4;
}

/* Ends a walked path at offset `end`. */
static __always_inline void walk_finish(struct work *w, struct tarsier_part *part, __u32 end,
					__u32 flags)
{
	part->flags = flags;
	if (flags & TARSIER_PART_CUT)
		event_of(w)->flags |= TARSIER_TRUNCATED;
	part_end(w, part, end - w->len - sizeof(*part));
}

struct walk {
	struct work *w;
	struct dentry *dentry;
	struct mount *mnt;
	struct dentry *root_dentry;
	struct mount *root_mnt;
	__u32 off;
	__u32 flags;
	/* Root of the first mount that the walk left, if it shows a part of a file system. */
	struct dentry *shown;
	/* Whether a mount was left; in above_step(), the number of directories. */
	__u32 crossed;
};

/* `root`, the root of a mount, if it is not the root of its file system. */
static __always_inline struct dentry *shown_part(struct dentry *root)
{
	return OF(dentry, root, d_parent) != root ? root : 0;
}

/* One step of a walk towards the root. Only valid if PATHS_ARE_KNOWN. */
STEP(walk_step, struct walk *walk, WALK_STEPS_MAX)
{
	struct dentry *dentry = walk->dentry, *parent;
	struct mount *here = walk->mnt;
	struct work *w = walk->w;
	__u32 off = walk->off;
	long n;

	if (dentry == walk->root_dentry && here == walk->root_mnt)
		return 1;

	if (dentry == OF(mount, here, mnt.mnt_root)) {
		struct mount *up = OF(mount, here, mnt_parent);

		if (up == here)
			return 1;
		if (!walk->crossed)
			walk->shown = shown_part(dentry);
		walk->crossed = 1;
		walk->dentry = OF(mount, here, mnt_mountpoint);
		walk->mnt = up;
		return 0;
	}

	if (off + NAME_MAX_LEN > w->walk_end) {
		walk->flags |= TARSIER_PART_CUT;
		return 1;
	}

	parent = OF(dentry, dentry, d_parent);
	n = name_of(frame_at(w, off), dentry);
	if (n < 0) {
		walk->flags |= TARSIER_PART_UNREADABLE;
		return 1;
	}
	walk->off = off + n;

	if (parent == dentry) {
		walk->flags |= TARSIER_PART_UNREACHABLE;
		return 1;
	}
	walk->dentry = parent;
	return 0;
}

static __always_inline struct mount *real_mount(struct vfsmount *mnt)
{
	return TYPE_HAS(mount, mnt) ? (void *)mnt - bpf_core_field_offset(struct mount, mnt) : 0;
}

/* The most directories above a mount that are recorded. */
#define ABOVE_MAX 64

static __always_inline bool write_directory(__u64 *to, struct dentry *dentry)
{
	to[0] = READ(dentry, d_inode, i_ino);
	to[1] = READ(dentry, d_sb, s_dev);
	return READ(dentry, d_parent) != dentry;
}

STEP(above_step, struct walk *walk, ABOVE_MAX)
{
	struct dentry *dentry = walk->dentry;

	walk->crossed = i + 1;
	walk->dentry = READ(dentry, d_parent);
	return !write_directory(frame_at(walk->w, walk->off + i * 2 * sizeof(__u64)), dentry);
}

/*
 * Adds the directories that contain what a mount shows: a rule on one of them applies too. Returns
 * whether all of them are there.
 */
static __always_inline bool part_above(struct work *w, struct walk *walk)
{
	struct tarsier_part *part;

	if (w->len > TARSIER_EVENT_MAX - 16 - ABOVE_MAX * 2 * sizeof(__u64))
		return false;
	part = part_begin(w, TARSIER_PART_ABOVE, 0);
	if (!part)
		return false;

	walk->off = w->len + sizeof(*part);
	walk->dentry = walk->shown;
	walk->crossed = 0;
	REPEAT(above_step, walk);

	part->flags = walk->crossed < ABOVE_MAX ? 0 : TARSIER_PART_CUT;
	part_end(w, part, (walk->crossed & (2 * ABOVE_MAX - 1)) * 2 * sizeof(__u64));
	return walk->crossed < ABOVE_MAX;
}

/*
 * Adds a walked path, as d_path() would print it for the current task. With
 * `prefix`, the inode comes first. `tag_index` is the tag of the part, its index
 * << 16 and its flags << 24. The addresses of path and inode are passed as
 * numbers, because global functions do not accept these pointers.
 */
__noinline int walk_path(struct work *w, __u32 tag_index, __u64 path_at, __u64 inode_at,
			 bool prefix)
{
	const struct path *path = (const struct path *)path_at;
	const struct inode *inode = (const struct inode *)inode_at;
	struct task_struct *task = bpf_get_current_task_btf();
	struct fs_struct *fs = READ(task, fs);
	struct walk walk = { .w = w };
	struct tarsier_part *part;
	struct vfsmount *mnt;
	struct dentry *dentry;
	__u32 start;

	if (!PATHS_ARE_KNOWN || !w)
		return 0;
	part = part_begin(w, tag_index & 0xffff, tag_index >> 16);
	if (!part)
		return 0;

	walk_begin(w);
	start = w->len + sizeof(*part);
	if (prefix) {
		inode_facts((struct tarsier_inode *)(part + 1), inode);
		start += sizeof(struct tarsier_inode);
	}

	walk.off = start;
	/* Not through a variable, to save stack: 384 bytes of it are left to the callers. */
	BPF_CORE_READ_INTO(&walk.dentry, path, dentry);
	dentry = walk.dentry;
	mnt = READ(path, mnt);
	walk.mnt = real_mount(mnt);

	if (fs && (tag_index & 0xffff) != TARSIER_PART_ROOT && HAS(fs, root.dentry)) {
		BPF_CORE_READ_INTO(&walk.root_dentry, fs, root.dentry);
		mnt = READ(fs, root.mnt);
		walk.root_mnt = real_mount(mnt);
	}

	if (dentry && IS_UNHASHED(dentry) && READ(dentry, d_parent) != dentry)
		walk.flags |= TARSIER_PART_DELETED;

	if (dentry && REPEAT(walk_step, &walk) >= WALK_STEPS_MAX)
		walk.flags |= TARSIER_PART_CUT;
	walk_finish(w, part, walk.off, walk.flags | tag_index >> 24);

	if ((tag_index & 0xffff) != TARSIER_PART_FILE &&
	    (tag_index & 0xffff) != TARSIER_PART_EXECUTED)
		return 0;

	if (walk.shown)
		part_above(w, &walk);
	/* In another mount namespace, the path does not tell below which directories the file is. */
	if (event_of(w)->flags & TARSIER_UNDECIDED && dentry) {
		walk.shown = dentry;
		part_above(w, &walk);
	}
	return 0;
}

/* The most steps of walk_own() before it leaves the rest to walk_step(). */
#define OWN_STEPS_MAX 5

/*
 * As walk_path(), for a path of the current task, `task`: its executable
 * (PART_EXE) or current directory (PART_CWD). Here the verifier knows the types,
 * so that each load, and each word of a short name, is one instruction, where
 * walk_path() calls a helper. This holds until the path leaves a mount.
 */
static __always_inline int walk_own(struct work *w, struct task_struct *task, __u32 tag)
{
	struct dentry *dentry, *parent, *root_dentry = LOAD(0, task, fs, root.dentry);
	struct vfsmount *mnt, *root_mnt = LOAD(0, task, fs, root.mnt);
	struct tarsier_part *part;
	struct walk walk = {};
	__u32 i, off;
	long n;

	part = part_begin(w, tag, 0);
	if (!part)
		return 0;
	if (!PATHS_ARE_KNOWN)
		return 0;

	if (tag == TARSIER_PART_EXE) {
		struct file *exe;

		if (!HAS(task, mm, exe_file, f_path))
			return 0;
		exe = task->mm->exe_file;
		dentry = exe->f_path.dentry;
		mnt = exe->f_path.mnt;
	} else {
		if (!HAS(task, fs, pwd))
			return 0;
		dentry = task->fs->pwd.dentry;
		mnt = task->fs->pwd.mnt;
	}

	walk_begin(w);
	off = w->len + sizeof(*part);
	if (dentry && HAS(dentry, d_hash.pprev) && !dentry->d_hash.pprev &&
	    dentry->d_parent != dentry)
		walk.flags |= TARSIER_PART_DELETED;

	for (i = 0; i < OWN_STEPS_MAX && dentry; i++) {
		if (dentry == root_dentry && mnt == root_mnt)
			goto out;
		if (dentry == mnt->mnt_root || off + NAME_MAX_LEN > w->walk_end)
			break;
		parent = dentry->d_parent;
		n = short_name(frame_at(w, off), dentry);
		if (!n)
			n = bpf_probe_read_kernel_str(frame_at(w, off), NAME_MAX_LEN,
						      dentry->d_name.name);
		if (n < 0 || parent == dentry)
			break;
		/* Through memory: the verifier, which would follow each length, forgets it. */
		*(volatile __u64 *)&w->own[0] = off + n;
		off = *(volatile __u64 *)&w->own[0];
		dentry = parent;
	}

	/* As numbers, because walk_step() needs pointers that the verifier does not know. */
	w->own[0] = (__u64)dentry;
	w->own[1] = (__u64)mnt;
	w->own[2] = (__u64)root_dentry;
	w->own[3] = (__u64)root_mnt;

	walk.w = w;
	walk.off = off;
	walk.dentry = (struct dentry *)w->own[0];
	walk.mnt = real_mount((struct vfsmount *)w->own[1]);
	walk.root_dentry = (struct dentry *)w->own[2];
	walk.root_mnt = real_mount((struct vfsmount *)w->own[3]);

	if (walk.dentry && REPEAT(walk_step, &walk) >= WALK_STEPS_MAX)
		walk.flags |= TARSIER_PART_CUT;
	off = walk.off;
out:
	walk_finish(w, part, off, walk.flags);
	return 0;
}

/* Adds the path of the current directory. */
__noinline int walk_cwd(struct work *w)
{
	if (!w)
		return 0;
	return walk_own(w, untrusted(bpf_get_current_task_btf()), TARSIER_PART_CWD);
}

#endif /* TARSIER_WALK_H */
