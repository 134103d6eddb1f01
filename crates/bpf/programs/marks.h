/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Marks: finds the paths of rules at the objects that a call has reached, and at
 * the directories above them. Layout in tables.h, meaning in crates/plan/src/marks.rs.
 */
#ifndef TARSIER_MARKS_H
#define TARSIER_MARKS_H

#include "base.h"
#include "files.h"
#include "maps.h"
#include "objects.h"
#include "rows.h"
#include "walk.h"

#define MARK_FACTOR 0x9E3779B97F4A7C15ULL
/* A hash is made of pieces of so many bytes, of which zeros fill the last. */
#define PIECE_BYTES sizeof(((struct marks *)0)->piece)
/* The most pieces of a name: NAME_MAX of linux/limits.h. */
#define PIECES_MAX 8

/* How a mark was found. */
#define MARK_ABOVE 1 /* at a directory above the object */
#define MARK_PARENT 2 /* at the directory of a file that the call may have created */

/* A member of the structure at an address, by plain loads where the verifier allows them. */
#define OF(type, at, ...)                                                              \
	({                                                                             \
		void *address = (void *)(at);                                          \
                                                                                       \
		bpf_ksym_exists(bpf_rdonly_cast)                                       \
			? LOAD(0,                                                      \
			       (struct type *)bpf_rdonly_cast(                         \
				       address, bpf_core_type_id_kernel(struct type)), \
			       __VA_ARGS__)                                            \
			: READ((struct type *)address, __VA_ARGS__);                   \
	})

/* A pointer as a number, which global functions accept. The verifier forgets its type in memory. */
static __always_inline __u64 address_in(__u64 *memory, const void *pointer)
{
	*(volatile __u64 *)memory = (__u64)pointer;
	return *(volatile __u64 *)memory;
}

static __always_inline __u64 mark_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * MARK_FACTOR;
	return hash ^ hash >> 29;
}

/* The bytes of a word that belong to a name with `left` bytes from there on. */
static __always_inline __u64 name_word(__u64 word, __u32 left)
{
	return left < 8 ? word & ((1ULL << (left * 8)) - 1) : word;
}

/* Hash of a name that the entry itself contains; 0 if it is elsewhere, or cannot be read so. */
static __always_inline __u64 short_name_mark(__u64 dentry_at, __u32 len)
{
	const struct dentry *dentry;
	const struct dentry___iname *older;
	const unsigned char *text;
	__u64 hash = mark_mix(1, len);
	__u32 i;

	if (!bpf_ksym_exists(bpf_rdonly_cast) || len >= SHORT_NAME_MAX)
		return 0;
	dentry = bpf_rdonly_cast((void *)dentry_at, bpf_core_type_id_kernel(struct dentry));
	older = (const struct dentry___iname *)dentry;
	if (HAS(dentry, d_shortname.string))
		text = dentry->d_shortname.string;
	else if (HAS(older, d_iname))
		text = older->d_iname;
	else
		return 0;
	if (dentry->d_name.name != text)
		return 0;
#pragma unroll
	for (i = 0; i < SHORT_NAME_MAX / 8; i++) {
		__u64 word = 0;

		if (8 * i < len)
			word = name_word(*(const __u64 *)(text + 8 * i), len - 8 * i);
		hash = mark_mix(hash, word);
	}
	return hash | 1;
}

/* Hash of the name of an entry. */
static __always_inline __u64 name_mark(struct marks *m, __u64 dentry_at)
{
	__u64 len = OF(dentry, dentry_at, d_name.len), left = len, i;
	__u64 hash = short_name_mark(dentry_at, len);
	const unsigned char *name;

	if (hash)
		return hash;
	name = OF(dentry, dentry_at, d_name.name);
	hash = mark_mix(1, len);
	for (i = 0; i < PIECES_MAX; i++) {
		__u64 bytes = left < PIECE_BYTES ? left : PIECE_BYTES;

		/* The mask is in assembly for the reasons given at frame_at(). */
		asm volatile("%[bytes] &= 63" : [bytes] "+r"(bytes));
		if (!bytes || bytes > PIECE_BYTES)
			break;
		__builtin_memset(m->piece, 0, sizeof(m->piece));
		bpf_probe_read_kernel(m->piece, bytes, name + i * PIECE_BYTES);
		hash = mark_mix(hash, m->piece[0]);
		hash = mark_mix(hash, m->piece[1]);
		hash = mark_mix(hash, m->piece[2]);
		hash = mark_mix(hash, m->piece[3]);
		left -= bytes;
	}
	return hash | 1;
}

/* Hash of an object; 0 if there is none. */
static __always_inline __u64 object_mark(__u64 inode_at)
{
	if (!inode_at)
		return 0;
	return mark_mix(mark_mix(2, OF(inode, inode_at, i_ino)), OF(inode, inode_at, i_sb, s_dev)) |
	       1;
}

/* Hash of an entry of that name in the directory `parent_at`. */
static __always_inline __u64 entry_mark(__u64 name, __u64 parent_at)
{
	return mark_mix(name, object_mark((__u64)OF(dentry, parent_at, d_inode))) | 1;
}

/* Row of the mark with this hash among those of `head`; 0 if there is none. */
static __always_inline __u32 mark_row(struct table *table, __u32 head, __u64 hash)
{
	struct table_row *place = row_at(table, head);
	__u32 first = place->a, i;

	if (!first || !hash)
		return 0;
#pragma unroll
	for (i = 0; i < TABLE_MARK_PROBES; i++) {
		__u32 at = first + 2 * (((hash >> 32) + i) & place->b);
		__u64 here = row_at(table, at)->a;

		if (here == hash)
			return at;
		if (!here)
			return 0;
	}
	return 0;
}

static __always_inline void add_mark(struct marks *m, __u32 value, bool is_sure)
{
	__u64 at = m->count;

	/* With more than fit, not all are known. */
	if (at > MARKS_MAX)
		return;
	m->count++;
	if (at == MARKS_MAX)
		return;
	asm volatile("%[at] &= %[mask]" : [at] "+r"(at) : [mask] "i"(MARKS_MAX - 1));
	m->value[at] = value;
	if (is_sure)
		m->sure |= 1U << at;
}

/*
 * Adds the mark in a row. For the directory of a created file, the kernel may have a name of its own,
 * so that the mark also counts as one at an object, but proves nothing.
 */
static __always_inline void add_mark_of(struct table *table, struct marks *m, __u32 row,
					bool is_sure)
{
	__u32 value = row_at(table, row)->b << 1, how = m->how;

	add_mark(m, value | (how & MARK_ABOVE), is_sure);
	if (how & MARK_PARENT) {
		add_mark(m, value, false);
		m->objects = 2;
	}
}

/* Adds the marks of an entry and of its object. */
__noinline int mark_entry(struct table *table, struct marks *m, __u64 dentry_at)
{
	__u64 parent_at, name;
	__u32 row, by_entry;

	if (!table || !m)
		return 0;
	parent_at = (__u64)OF(dentry, dentry_at, d_parent);
	name = name_mark(m, dentry_at);
	row = mark_row(table, m->head, name);
	if (row) {
		by_entry = 0;
		if (parent_at != dentry_at)
			by_entry = mark_row(table, m->head, entry_mark(name, parent_at));
		add_mark_of(table, m, by_entry ? by_entry : row, by_entry != 0);
	}
	row = mark_row(table, m->head, object_mark((__u64)OF(dentry, dentry_at, d_inode)));
	if (row) {
		/* An object proves its path whatever its name, as in the kernel. */
		add_mark_of(table, m, row, row_at(table, row + 1)->a != 0);
	}
	return 0;
}

struct mark_walk {
	struct table *table;
	struct marks *m;
};

static long mark_walk_step(__u32 i, struct mark_walk *walk)
{
	struct marks *m = walk->m;
	__u64 dentry_at = m->dentry_at, up_at, parent_at;

	mark_entry(walk->table, m, dentry_at);
	parent_at = address_in(&m->address, OF(dentry, dentry_at, d_parent));
	if (m->mnt_at && dentry_at == (__u64)OF(mount, m->mnt_at, mnt.mnt_root)) {
		if (parent_at != dentry_at && !m->shown_at)
			m->shown_at = parent_at;
		up_at = address_in(&m->address, OF(mount, m->mnt_at, mnt_parent));
		if (up_at == m->mnt_at) {
			m->is_done = 1;
			return 1;
		}
		m->dentry_at = (__u64)OF(mount, m->mnt_at, mnt_mountpoint);
		m->mnt_at = up_at;
		return 0;
	}
	if (parent_at == dentry_at) {
		m->is_done = !m->mnt_at;
		return 1;
	}
	m->dentry_at = parent_at;
	m->how = MARK_ABOVE | m->creates;
	m->creates = 0;
	return 0;
}

/* Begins to look for marks. Returns the tables, or NULL if these have none. */
static __always_inline struct table *marks_begin(struct marks *m)
{
	struct table *table = this_table();

	m->known = 0;
	m->count = 0;
	m->sure = 0;
	m->objects = 1;
	if (!table || !row_at(table, TABLE_MARKS)->a)
		return 0;
	m->generation = row_at(table, 0)->a;
	m->head = TABLE_MARKS;
	return table;
}

/*
 * Finds the marks of a file that was opened or that a descriptor stands for, and
 * those above it. `creates`: the call may have created the file.
 */
__noinline int mark_file(struct marks *m, __u64 file_at, __u32 creates)
{
	struct mark_walk walk = { .m = m };
	__u64 mnt_at;

	if (!m)
		return 0;
	walk.table = marks_begin(m);
	if (!walk.table || !PATHS_ARE_KNOWN || !INODES_ARE_KNOWN)
		return 0;
	m->dentry_at = (__u64)OF(file, file_at, f_path.dentry);
	mnt_at = address_in(&m->address, OF(file, file_at, f_path.mnt));
	m->mnt_at = (__u64)real_mount((struct vfsmount *)mnt_at);
	if (!m->dentry_at || !mnt_at)
		return 0;
	m->how = 0;
	m->creates = creates ? MARK_PARENT : 0;
	m->shown_at = 0;
	m->is_done = 0;
	bpf_loop(WALK_STEPS_MAX, mark_walk_step, &walk, 0);
	if (m->is_done && m->shown_at) {
		m->is_done = 0;
		m->mnt_at = 0;
		m->dentry_at = m->shown_at;
		bpf_loop(WALK_STEPS_MAX, mark_walk_step, &walk, 0);
	}
	m->known = m->is_done && m->count <= MARKS_MAX;
	return 0;
}

#define O_CREAT 0100

/* Whether a call that opens a file may create it. */
static __always_inline bool may_create(struct work *w)
{
	__u8 flags = w->spec.open_flags;

	return flags >= 6 || w->args[flags] & O_CREAT;
}

/* Finds the marks at everything that the call has reached; FACT_MARKS is absent if not all is known. */
__noinline int find_marks(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct object_note *note;
	struct table_spec *spec;
	struct file *file = 0;
	struct marks *m;
	bool is_open;

	if (!w)
		return 0;
	spec = &w->spec;
	m = &w->marks;
	m->known = 0;
	note = w->noted ? note_at_end(task, w->given_nr) : 0;
	if (note) {
		struct table *table = this_table();

		if (table && note->marks.known && note->marks.generation == row_at(table, 0)->a)
			*m = note->marks;
	} else if (!w->is_operation && has_own_files(task)) {
		is_open = spec->kind == KIND_OPEN;
		if (is_open && w->ret >= 0)
			file = file_of(task, w->ret);
		else if (!is_open && spec->fd < 6 && spec->path[0] >= 6)
			file = file_of(task, w->args[spec->fd]);
		if (file)
			mark_file(m, (__u64)file, is_open && may_create(w));
	}
	if (!m->known)
		w->absent |= 1U << FACT_MARKS;
	return 0;
}

/* Finds the number of the task's executable in the tables; 0 if no rule names it. */
__noinline int executable_number(struct work *w)
{
	struct task_struct *task = untrusted(bpf_get_current_task_btf());
	struct table *table = this_table();
	struct marks *m;
	struct file *exe;

	if (!w || !table || !PATHS_ARE_KNOWN || !INODES_ARE_KNOWN ||
	    !HAS(task, mm, exe_file, f_path))
		return 0;
	m = &w->executable;
	exe = LOAD(0, task, mm, exe_file);
	if (!exe)
		return 0;
	m->head = TABLE_EXECUTABLES;
	m->how = 0;
	m->count = 0;
	m->value[0] = 0;
	m->value[1] = 0;
	mark_entry(table, m, address_in(&m->address, exe->f_path.dentry));
	/* Its entry counts before its file, which may have been another rule's. */
	return (m->value[0] ? m->value[0] : m->value[1]) >> 1;
}

#endif /* TARSIER_MARKS_H */
