/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Records the objects that a call really touches, by hooks on kernel functions
 * that act on objects (object hooks). They write parts into a note of the task;
 * the hook at the end of the call copies them into the event.
 */
#ifndef TARSIER_OBJECTS_H
#define TARSIER_OBJECTS_H

#include "arch.h"
#include "base.h"
#include "gate.h"
#include "maps.h"
#include "number.h"
#include "rows.h"
#include "steps.h"
#include "walk.h"

#define PF_IO_WORKER 0x10
#define PF_KTHREAD 0x200000

/* Parts of a note begin below this; a power of two. */
#define NOTE_BYTES 4096
#define NOTE_MASK (NOTE_BYTES - 1)
/* A walked path may end behind that: there is room for an object and PATH_MAX bytes. */
#define NOTE_PATH_END 5632
/* Flags that have the same number everywhere, and that an open keeps as they are. */
#define OPEN_FLAGS_KEPT 010000003 /* O_ACCMODE, O_PATH: also in f_flags, and fixed there */
#define OPEN_FLAGS_COMPARED (OPEN_FLAGS_KEPT | 03300) /* O_CREAT, O_EXCL, O_TRUNC, O_APPEND */
/* A longer name is left out; the daemon then uses the name read from user space. */
#define NOTE_NAME_MAX 1024

/* Number of watched operations in progress. While it is 0, no operation is looked up. */
__s64 uring_under_way SEC(".bss.uring_under_way");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct object_calls);
} object_calls SEC(".maps");

/* The objects that a call in progress has touched so far. */
struct object_note {
	__u64 epoch; /* together with `place`, identifies the call */
	struct call_place place;
	__u64 cred; /* credentials of the call, to notice another one: a gate can hide its end */
	__u32 auid;
	__u32 is_passed; /* no rule can select the call, and the rest is not noted */
	/* Generation of the tables in which rules select a call of the task only if it reaches something with a mark; or 0. */
	__u64 needs_mark;
	__u64 operation; /* address of the request that the task carries out; 0: this is a call */
	__u32 class; /* family of the operation */
	__u32 open; /* the call has not ended */
	__u32 ready; /* the call has ended, and its parts can be used: see note_end() */
	__u64 seen; /* bit role * 2 + index: the object has been found */
	__u64 created; /* address of the entry that is being created */
	__u64 kept[4]; /* arguments that a probe at the end of a function needs */
	__u32 first_parent; /* index of the first parent that is found */
	__u32 names; /* number of names that the kernel has read for the call */
	__u32 parents; /* number of parents found */
	__u32 len; /* bytes of `parts` in use */
	__u32 count; /* number of parts */
	__u32 last; /* offset of the last object */
	__u32 cut; /* targets of a signal did not fit, which the daemon cannot look up */
	__u32 address_len; /* length of `address`, as copied by the kernel */
	__u8 address[128];
	__u32 has_open_flag;
	__u32 open_flag; /* flags of an open, as the kernel uses them */
	__u32 has_ipc, has_ipc_set;
	__u32 has_before, pad; /* one bit per path argument */
	struct tarsier_found before[2]; /* what they led to when the call began */
	struct tarsier_ipc ipc;
	struct tarsier_ipc_perm ipc_set;
	__u32 has_time;
	__u32 at_entry; /* made when the call began, before anything was looked up */
	__s64 time[TARSIER_TIME_VALUES];
	struct marks marks;
	__u8 parts[NOTE_PATH_END];
};

_Static_assert(NOTE_PATH_END >= NOTE_BYTES + NOTE_NAME_MAX + 256,
	       "an object behind the others fits");
/* The kernel allocates a note with a head of its own, from objects whose sizes are powers of two. */
_Static_assert(sizeof(struct object_note) <= 8192 - 256, "a note takes 8 KiB");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct object_note);
} object_notes SEC(".maps");

static __always_inline __u32 object_class(struct object_calls *calls, __u32 nr, __u32 compat)
{
	__u64 at = (compat & 1) * TABLE_CALLS + nr;

	if (nr >= TABLE_CALLS)
		return OBJECTS_NONE;
	/* One bounded number, for the reasons given at frame_at(). */
	asm volatile("%[at] &= %[mask]" : [at] "+r"(at) : [mask] "i"(2 * TABLE_CALLS - 1));
	return ((__u8 *)calls->class)[at];
}

static __always_inline struct object_calls *these_object_calls(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&object_calls, &zero);
}

static __always_inline void note_clear(struct object_note *note)
{
	note->operation = 0;
	note->ready = 0;
	note->is_passed = 0;
	note->seen = 0;
	note->created = 0;
	note->kept[0] = 0;
	note->first_parent = 0;
	note->names = 0;
	note->parents = 0;
	note->len = 0;
	note->count = 0;
	note->cut = 0;
	note->address_len = 0;
	note->has_open_flag = 0;
	note->has_ipc = 0;
	note->has_ipc_set = 0;
	note->has_time = 0;
	note->at_entry = 0;
	note->has_before = 0;
	note->marks.known = 0;
	note->marks.objects = 0;
}

/* The note of the io_uring operation that the task carries out, if it is of this family. */
static __always_inline struct object_note *note_of_operation(struct task_struct *task, __u32 class)
{
	struct object_note *note;
	struct call_place place;

	if (!uring_under_way)
		return 0;
	note = bpf_task_storage_get(&object_notes, task, 0, 0);
	if (!note || !note->operation || note->class != class)
		return 0;
	/* If the end of the operation was missed, the task is in another call by now. */
	place = call_place((struct pt_regs *)bpf_task_pt_regs(task));
	return same_place(&note->place, &place) ? note : 0;
}

/*
 * Begins the note of a call whose place and epoch are in it. A global function, which the verifier goes
 * through once.
 */
__noinline int note_begin(struct object_note *note, __u32 nr, __u32 compat)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct table *table = this_table();
	struct table_call *call;
	__u32 spec;

	if (!note)
		return 0;

	note->cred = (__u64)OF(task_struct, task, real_cred);
	note->auid = task->loginuid.val;
	note->open = 1;
	note->needs_mark = 0;
	note_clear(note);

	if (!table || nr >= TABLE_CALLS)
		return 0;
	call = (struct table_call *)row_at(table, TABLE_INDEX + (compat & 1) * TABLE_CALLS + nr);
	spec = call->spec;
	if (call->pages && !id_admitted((const __u32 *)row_at(table, spec + 1),
					(const __u32 *)row_at(table, spec + 2), task))
		note->needs_mark = row_at(table, 0)->a;
	return 0;
}

/* The note of the current call or operation, if it is watched and of family `class` or `other`. */
static __always_inline struct object_note *note_of_either(__u32 class, __u32 other)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct object_calls *calls = these_object_calls();
	struct call_place place;
	struct object_note *note;
	struct pt_regs *regs;
	__u32 nr, found, compat;
	__u64 cred;

	note = note_of_operation(task, class);
	if (note)
		return note;
	if (!calls || LOAD(PF_KTHREAD, task, flags) & (PF_KTHREAD | PF_IO_WORKER))
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	compat = entered_compat(task);
	nr = table_number(call_number(regs));
	found = object_class(calls, nr, compat);
	if (found != class && found != other)
		return 0;

	if (is_daemon(task))
		return 0;

	note = bpf_task_storage_get(&object_notes, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!note)
		return 0;

	place = call_place(regs);
	cred = (__u64)OF(task_struct, task, real_cred);
	/* A note that is still open may be of an earlier call whose end was missed. */
	if (!note->open || note->epoch != calls->epoch || !same_place(&note->place, &place) ||
	    note->cred != cred || note->auid != task->loginuid.val) {
		note->epoch = calls->epoch;
		note->place = place;
		note_begin(note, nr, compat);
	}
	return note;
}

static __always_inline struct object_note *note_of(__u32 class)
{
	return note_of_either(class, class);
}

/*
 * Whether no rule can select the call: it needs a mark, and what it has reached has none. No more is
 * noted then.
 */
static __always_inline bool note_passes(struct object_note *note)
{
	note->is_passed = note->needs_mark && note->marks.known && !note->marks.count &&
			  note->marks.generation == note->needs_mark;
	return note->is_passed;
}

/* As note_of(), once the marks are known: NULL also if no rule can select the call. */
static __always_inline struct object_note *note_of_marked(__u32 class)
{
	struct object_note *note = note_of(class);

	return note && !note->is_passed ? note : 0;
}

/* Whether object hooks may have seen the call. */
static __always_inline bool has_objects(__u32 nr, __u32 compat)
{
	struct object_calls *calls = these_object_calls();

	return calls && object_class(calls, nr, compat) != OBJECTS_NONE;
}

/* What note_end() returns if the note is of this call; the others: nothing in it has a mark, and rules need one. */
#define NOTE_IS_READY 1
#define NOTE_IS_UNMARKED 2
#define NOTE_NEEDS_MARK 3

/*
 * Called at the end of a watched call with has_objects(). `generation`: of the tables in force.
 * Not inline, to save stack; unused in tests of matching.
 */
static __noinline __attribute__((unused)) __u32 note_end(struct task_struct *task,
							 struct pt_regs *regs, __u64 generation)
{
	struct object_calls *calls = these_object_calls();
	struct object_note *note;
	struct call_place place;

	if (!calls)
		return 0;
	note = bpf_task_storage_get(&object_notes, task, 0, 0);
	if (!note)
		return 0;
	place = call_place(regs);
	note->ready = note->open && note->epoch == calls->epoch && same_place(&note->place, &place);
	note->open = 0;

	if (note->ready && note->marks.known && !note->marks.count &&
	    note->marks.generation == generation)
		note->ready = note->needs_mark == generation ? NOTE_NEEDS_MARK : NOTE_IS_UNMARKED;
	else if (note->is_passed)
		/* The rules have changed meanwhile, and not everything was noted. */
		note->ready = 0;

	/* From memory: the verifier would go through the rest of the call once for each result. */
	return *(volatile __u32 *)&note->ready;
}

/* The note of the call that has just ended; NULL if no object hook saw it. */
static __always_inline struct object_note *note_at_end(struct task_struct *task, __u32 nr)
{
	struct object_note *note = bpf_task_storage_get(&object_notes, task, 0, 0);

	return note && note->ready && note->place.nr == nr ? note : 0;
}

/* OF() a pointer, as a number. */
#define ADDRESS(note, ...) address_in(&(note)->marks.address, OF(__VA_ARGS__))

static __always_inline void *note_at(struct object_note *note, __u64 off)
{
	asm volatile("%[off] &= %[mask]" : [off] "+r"(off) : [mask] "i"(NOTE_MASK));
	return note->parts + off;
}

/* How an object is recorded: its role, the index of its argument, flags of the part. */
#define OBJECT(role, index) ((role) | (__u32)(index) << 8)
#define OBJECT_FLAGS(flags) ((__u32)(flags) << 16)
/* Flag: an entry is passed instead of its name. */
#define OBJECT_ENTRY (1U << 24)

static __always_inline bool note_has(struct object_note *note, __u32 what)
{
	return note->seen & (1ULL << (((what & 31) * 2 + (what >> 8 & 1)) & 63));
}

/*
 * Adds an object, unless it was added before: stacked file systems call the same
 * functions again for the layers below. Addresses are passed as numbers, 0 for
 * none. Returns 1 if the object was added.
 */
__noinline int note_object(struct object_note *note, __u32 what, __u64 inode_at, __u64 name_at)
{
	struct tarsier_object *object;
	struct tarsier_part *part;
	__u32 off, len = 0;
	void *name;
	long n;

	if (!note)
		return 0;

	off = note->len;
	if (note_has(note, what))
		return 0;
	note->seen |= 1ULL << (((what & 31) * 2 + (what >> 8 & 1)) & 63);

	/* The daemon looks up what is left out. */
	if (off > NOTE_BYTES - 256)
		return 0;

	part = note_at(note, off);
	object = (struct tarsier_object *)(part + 1);
	part->tag = TARSIER_PART_OBJECT;
	part->index = what >> 8 & 1;
	part->flags = what >> 16;
	inode_facts(&object->inode, (const struct inode *)inode_at);
	object->role = what & 31;

	if (name_at) {
		name = note_at(note, off + sizeof(*part) + sizeof(*object));
		n = what & OBJECT_ENTRY
			    ? name_of(name, (const struct dentry *)name_at)
			    : bpf_probe_read_kernel_str(name, NOTE_NAME_MAX, (void *)name_at);
		if (n <= 0)
			part->flags |= TARSIER_PART_UNREADABLE;
		else if (n >= NOTE_NAME_MAX)
			part->flags |= TARSIER_PART_CUT;
		else
			len = n - 1;
	}

	object->name_len = len;
	part->len = sizeof(*object) + len;
	note->last = off;
	note->len = off + sizeof(*part) + ((sizeof(*object) + len + 7) & ~7U);
	note->count++;
	return 1;
}

struct note_walk {
	struct object_note *note;
	struct dentry *dentry;
	struct mount *mnt;
	struct dentry *root_dentry;
	struct mount *root_mnt;
	__u32 off;
	__u32 flags;
	struct dentry *shown; /* as in struct walk */
	__u32 crossed;
};

/* Where a name of a walked path goes, which is the one thing that may lie behind NOTE_BYTES. */
static __always_inline void *note_path_at(struct object_note *note, __u64 off)
{
	asm volatile("if %[off] <= %[last] goto +1\n\t%[off] = 0"
		     : [off] "+r"(off)
		     : [last] "i"(NOTE_PATH_END - NAME_MAX_LEN));
	return note->parts + off;
}

STEP(note_walk_step, struct note_walk *walk, WALK_STEPS_MAX)
{
	struct dentry *dentry = walk->dentry, *parent;
	struct mount *here = walk->mnt;
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

	if (off > NOTE_PATH_END - NAME_MAX_LEN) {
		walk->flags |= TARSIER_PART_CUT;
		return 1;
	}

	parent = OF(dentry, dentry, d_parent);
	n = name_of(note_path_at(walk->note, off), dentry);
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

/* Any mount of the file system of an entry, for hooks that do not know the mount used. */
static __always_inline struct mount *some_mount(struct dentry *dentry)
{
	struct super_block___mounts *mounted;
	struct list_head *first;

	if (!bpf_core_field_exists(struct mount, mnt_instance)) {
		mounted = (void *)READ(dentry, d_sb);
		return bpf_core_field_exists(mounted->s_mounts) ? READ(mounted, s_mounts) : 0;
	}
	first = READ(dentry, d_sb, s_mounts.next);
	return first ? (void *)first - bpf_core_field_offset(struct mount, mnt_instance) : 0;
}

STEP(note_above_step, struct note_walk *walk, ABOVE_MAX)
{
	__u32 off = walk->off + i * 2 * sizeof(__u64);
	struct dentry *dentry = walk->dentry;

	if (off > NOTE_BYTES - 2 * sizeof(__u64))
		return 1;
	walk->crossed = i + 1;
	walk->dentry = READ(dentry, d_parent);
	return !write_directory(note_at(walk->note, off), dentry);
}

/* As part_above(), for a note. */
static __always_inline void note_above(struct object_note *note, struct note_walk *walk)
{
	struct tarsier_part *part;
	__u32 at = note->len;

	if (at > NOTE_BYTES - 256)
		return;

	part = note_at(note, at);
	part->tag = TARSIER_PART_ABOVE;
	part->index = 0;
	part->flags = 0;
	walk->off = at + sizeof(*part);
	walk->dentry = walk->shown;
	walk->crossed = 0;
	REPEAT(note_above_step, walk);
	part->len = walk->crossed * 2 * sizeof(__u64);
	note->len = walk->off + part->len;
	note->count++;
}

/* Appends the walked path of an entry to the object that was added last. */
__noinline int note_path(struct object_note *note, __u64 dentry_at, __u64 mnt_at)
{
	struct dentry *dentry = (struct dentry *)dentry_at;
	struct task_struct *task = bpf_get_current_task_btf();
	struct fs_struct *fs = OF(task_struct, task, fs);
	struct note_walk walk = {};
	struct tarsier_object *object;
	struct tarsier_part *part;
	struct vfsmount *root;
	__u32 len;

	if (!PATHS_ARE_KNOWN || !note || !dentry)
		return 0;

	walk.note = note;
	walk.dentry = dentry;
	walk.mnt = mnt_at ? real_mount((struct vfsmount *)mnt_at) : some_mount(dentry);
	if (!walk.mnt)
		return 0;

	if (fs) {
		walk.root_dentry = OF(fs_struct, fs, root.dentry);
		root = OF(fs_struct, fs, root.mnt);
		walk.root_mnt = real_mount(root);
	}

	part = note_at(note, note->last);
	len = part->len;
	walk.off = note->last + sizeof(*part) + len;

	if (IS_UNHASHED(dentry) && OF(dentry, dentry, d_parent) != dentry)
		walk.flags |= TARSIER_PART_DELETED;
	REPEAT(note_walk_step, &walk);

	part = note_at(note, note->last);
	len = walk.off - note->last - sizeof(*part);
	part->flags |= walk.flags;
	part->len = len;
	note->len = note->last + sizeof(*part) + ((len + 7) & ~7U);
	object = (struct tarsier_object *)(part + 1);

	if (walk.shown && object->role != TARSIER_OBJECT_CWD)
		note_above(note, &walk);
	return 0;
}

/* A word of a hook's context, which has the arguments of the function, and at its end the result. */
static __always_inline __u64 context_word(void *ctx, __u32 i)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (__u64 *)ctx + i);
	return value;
}

/* Argument of a hooked function, as a number, which helpers and global functions accept. */
static __always_inline __u64 hooked(void *ctx, __u32 i)
{
	__u64 value = 0;

	if (!HAS_HELPER(get_func_arg))
		return context_word(ctx, i);
	bpf_get_func_arg(ctx, i, &value);
	return value;
}

static __always_inline void note_name(struct object_note *note, __u32 index, __u64 filename)
{
	if (TYPE_HAS(filename, name))
		note_object(note, OBJECT(TARSIER_OBJECT_NAME, index), 0,
			    ADDRESS(note, filename, filename, name));
}

/* Adds an object and its path. */
static __always_inline void note_where(struct object_note *note, __u32 what, __u64 dentry,
				       __u64 mnt)
{
	if (note_object(note, what, ADDRESS(note, dentry, dentry, d_inode), 0))
		note_path(note, dentry, mnt);
}

static __always_inline void note_struct_path(struct object_note *note, __u32 what, __u64 path)
{
	note_where(note, what, (__u64)READ((const struct path *)path, dentry),
		   (__u64)READ((const struct path *)path, mnt));
}

/* Notes the current directory before the call changes it. */
static __always_inline void note_cwd(struct object_note *note)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fs_struct *fs = READ(task, fs);

	if (HAS(task, fs, pwd))
		note_struct_path(note, OBJECT(TARSIER_OBJECT_CWD, 0), (__u64)&fs->pwd);
}

static __always_inline void note_entry(struct object_note *note, __u32 what, __u64 dentry,
				       __u64 inode)
{
	note_object(note, what | OBJECT_ENTRY, inode, dentry);
}

#endif /* TARSIER_OBJECTS_H */
