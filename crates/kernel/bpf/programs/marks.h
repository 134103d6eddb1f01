/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Marks: finds the paths of rules at the objects that a call has reached, and at
 * the directories above them. Layout in tables.h, meaning in crates/core/plan/src/marks.rs.
 */
#ifndef TARSIER_MARKS_H
#define TARSIER_MARKS_H

#include "aliases.h"
#include "base.h"
#include "chain.h"
#include "files.h"
#include "maps.h"
#include "objects.h"
#include "rows.h"
#include "steps.h"
#include "walk.h"

/* The filter's keys need no secret: what passes the filter is hashed with one. */
#define MARK_FACTOR 0x9E3779B97F4A7C15ULL

/* How a mark was found. */
#define MARK_ABOVE 1 /* at a directory above the object */
#define MARK_PARENT 2 /* at the directory of a file that the call may have created */
#define MARK_CHANGED 4 /* at the directory of an entry that the call makes, removes or moves */

/* Begins the hash of a path. */
#define PATH_MARK 3

/*
 * One step of a hash. Callers choose names and, on file systems of their own, inode numbers. Without
 * the two factors they can find neither another name with the same hash, nor two words whose changes
 * cancel each other: that takes the high half of a product with the second factor.
 */
static __always_inline __u64 mark_mix(const struct marks *m, __u64 hash, __u64 word)
{
	hash = (hash ^ word) * m->key[0];
	hash = (hash ^ hash >> 32) * m->key[1];
	return hash ^ hash >> 29;
}

/* Takes the factors of the hashes from the tables. */
static __always_inline void take_mark_key(struct table *table, struct marks *m)
{
	m->key[0] = row_at(table, TABLE_MARK_KEY)->a;
	m->key[1] = row_at(table, TABLE_MARK_KEY)->b;
}

/* Hash of a name that the entry itself contains; 0 if it is elsewhere, or cannot be read so. */
static __always_inline __u64 short_name_mark(const struct marks *m, __u64 dentry_at, __u32 len)
{
	const struct dentry *dentry;
	const unsigned char *text;
	__u64 hash = mark_mix(m, 1, len);
	__u32 i;

	if (!bpf_ksym_exists(bpf_rdonly_cast))
		return 0;
	dentry = bpf_rdonly_cast((void *)dentry_at, bpf_core_type_id_kernel(struct dentry));
	text = own_name(dentry, len);
	if (!text)
		return 0;
#pragma unroll
	for (i = 0; i < SHORT_NAME_MAX / 8; i++)
		hash = mark_mix(m, hash,
				name_word(*(const __u64 *)(text + 8 * i), (__s64)len - 8 * i));
	return hash | 1;
}

/* Hash of a name of `len` bytes in the kernel's memory. Without loops, which the verifier would follow step by step. */
static __always_inline __u64 text_mark(struct marks *m, const void *text, __u64 len)
{
	__u64 hash = mark_mix(m, 1, len), bytes = len;
	__u32 i;

	if (bytes >= NAME_MAX_LEN)
		bytes = NAME_MAX_LEN - 1;
	AT_MOST(bytes, NAME_MAX_LEN - 1);

	__builtin_memset(m->name, 0, sizeof(m->name));
	if (bytes)
		bpf_probe_read_kernel(m->name, bytes, text);

#pragma unroll
	for (i = 0; i < SHORT_NAME_MAX / 8; i++)
		hash = mark_mix(m, hash, m->name[i]);

	if (len < SHORT_NAME_MAX)
		return hash | 1;
#pragma unroll
	for (; i < NAME_MAX_LEN / 8; i++)
		hash = mark_mix(m, hash, m->name[i]);
	return hash | 1;
}

/* Hash of the name of an entry. */
static __always_inline __u64 name_mark(struct marks *m, __u64 dentry_at)
{
	__u64 len = OF(dentry, dentry_at, d_name.len);

	return short_name_mark(m, dentry_at, len)
		       ?: text_mark(m, OF(dentry, dentry_at, d_name.name), len);
}

/* Hash of an object; 0 if there is none. */
static __always_inline __u64 object_mark(const struct marks *m, __u64 inode_at)
{
	__u64 hash;

	if (!inode_at)
		return 0;
	hash = mark_mix(m, 2, OF(inode, inode_at, i_ino));
	return mark_mix(m, hash, OF(inode, inode_at, i_sb, s_dev)) | 1;
}

/* Hash of an entry of that name in the directory `parent_at`. */
static __always_inline __u64 entry_mark(const struct marks *m, __u64 name, __u64 parent_at)
{
	return mark_mix(m, name, object_mark(m, (__u64)OF(dentry, parent_at, d_inode))) | 1;
}

/*
 * Number of the row of the mark with this hash among those of `head`; 0 if there is none.
 * Where the first slot is of another mark, without branches, which the verifier would follow.
 */
static __always_inline __u32 mark_row(struct table *table, __u32 head, __u64 hash)
{
	struct table_row *place = row_at(table, head);
	__u32 first = place->a, last = place->b;
	__u64 at, differs, found = 0;
	__u32 i;

	if (!first || !hash)
		return 0;

	at = first + ((hash >> 32) & last);
	if (row_at(table, at)->a == hash)
		return at;
	if (!row_at(table, at)->a)
		return 0;

#pragma unroll
	for (i = 1; i < TABLE_MARK_PROBES; i++) {
		at = first + (((hash >> 32) + i) & last);
		differs = row_at(table, at)->a ^ hash;
		found |= at & (((differs | -differs) >> 63) - 1);
	}
	return found;
}

static __always_inline void add_mark(struct marks *m, __u32 value, bool is_sure, bool is_proven)
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
	if (is_proven)
		m->proven |= 1U << at;
}

/*
 * Adds the mark in a row. A directory in which the call may have created a file, or
 * has changed an entry, also counts as an object of its own.
 */
static __always_inline void add_mark_of(struct table *table, struct marks *m, __u32 row,
					bool is_sure, bool is_proven)
{
	__u32 value = (__u32)row_at(table, row)->b << 1, how = m->how;

	add_mark(m, value | (how & MARK_ABOVE), is_sure, is_proven);
	if (how & (MARK_PARENT | MARK_CHANGED))
		add_mark(m, value, is_sure && how & MARK_CHANGED, is_proven && how & MARK_CHANGED);
}

/* Adds the mark of another entry of an object, by its directory and name. */
__noinline int mark_alias(struct table *table, struct marks *m, __u64 dentry_at)
{
	__u64 name, parent_at;
	__u32 row;

	if (!table || !m)
		return 0;

	parent_at = (__u64)OF(dentry, dentry_at, d_parent);
	name = name_mark(m, dentry_at);
	if (parent_at == dentry_at || !mark_row(table, m->head, name))
		return 0;

	row = mark_row(table, m->head, entry_mark(m, name, parent_at));
	if (row) {
		add_mark_of(table, m, row, true, false);
		m->marked_at = dentry_at;
	}
	return 0;
}

/*
 * Adds the marks of an entry and of its object. For the kernel's audit only the object counts, and the
 * directories above it in its file system: what a mount is on does not. In the rules' own mount namespace
 * it counts for rules that record, which the daemon decides.
 */
__noinline int mark_entry(struct table *table, struct marks *m, __u64 dentry_at)
{
	__u64 parent_at, name;
	__u32 row, by_entry;
	__u64 proofs;

	if (!table || !m)
		return 0;

	parent_at = (__u64)OF(dentry, dentry_at, d_parent);
	name = name_mark(m, dentry_at);
	row = mark_row(table, m->head, name);
	if (row) {
		by_entry = 0;
		if (parent_at != dentry_at)
			by_entry = mark_row(table, m->head, entry_mark(m, name, parent_at));
		add_mark_of(table, m, by_entry ? by_entry : row, by_entry && !m->is_crossed, false);
	}

	row = mark_row(table, m->head, object_mark(m, (__u64)OF(dentry, dentry_at, d_inode)));
	/* An object proves its path whatever its name, as in the kernel. */
	if (row) {
		proofs = row_at(table, row)->b >> TABLE_MARK_PROOF_BIT;
		add_mark_of(table, m, row, proofs & 1 && !m->is_crossed,
			    proofs >> 1 && !m->is_crossed);
	}
	return 0;
}

struct mark_walk {
	struct table *table;
	struct marks *m;
};

/* Whether the filter has the bit of a name, or of an object. */
static __always_inline bool passes_filter(struct mark_walk *walk, __u64 word)
{
	__u64 key = word * MARK_FACTOR >> 32;
	__u64 word_nr = walk->m->filter_first + (key >> 6 & walk->m->filter_last);

	return word_at(walk->table, word_nr) >> (key & 63) & 1;
}

/* Whether a name may have a mark: by its length and its first bytes. */
static __always_inline bool may_be_name(struct mark_walk *walk, __u64 first, __u64 len)
{
	return passes_filter(walk, name_word(first, len) ^ len);
}

/* Whether the name of an entry may have a mark. */
static __always_inline bool may_be_named(struct mark_walk *walk, const struct dentry *dentry)
{
	__u64 len = LOAD(SHORT_NAME_MAX, dentry, d_name.len);
	const unsigned char *text = own_name(dentry, len);

	return !text || may_be_name(walk, *(const __u64 *)text, len);
}

/*
 * Whether an entry or its object may have a mark: by the name and the inode. Most do not, and all
 * that mark_entry() does would be too much for each directory above a file.
 */
static __always_inline bool may_be_marked(struct mark_walk *walk, __u64 dentry_at)
{
	const struct dentry *dentry;

	if (!bpf_ksym_exists(bpf_rdonly_cast))
		return true;
	dentry = bpf_rdonly_cast((void *)dentry_at, bpf_core_type_id_kernel(struct dentry));
	return may_be_named(walk, dentry) || passes_filter(walk, LOAD(0, dentry, d_inode, i_ino));
}

/* The next entry of an object that has several: adds its mark, unless it is the one that was reached. */
STEP(mark_alias_step, struct mark_walk *walk, ALIASES_MAX)
{
	struct marks *m = walk->m;
	const struct dentry *dentry;
	__u64 dentry_at;

	if (!m->alias_at)
		return 1;
	dentry_at = next_alias(m);
	if (!dentry_at) {
		m->are_all = 0;
		return 1;
	}

	if (dentry_at == m->dentry_at || is_unhashed(dentry_at))
		return 0;
	if (bpf_ksym_exists(bpf_rdonly_cast)) {
		dentry = bpf_rdonly_cast((void *)dentry_at, bpf_core_type_id_kernel(struct dentry));
		if (!may_be_named(walk, dentry))
			return 0;
	}

	mark_alias(walk->table, m, dentry_at);
	return 0;
}

/* Adds the marks of the other entries of an object. */
static __always_inline void mark_aliases(struct mark_walk *walk)
{
	struct marks *m = walk->m;

	m->inode_at = (__u64)OF(dentry, m->dentry_at, d_inode);
	m->alias_at = first_of_several(m->inode_at);
	if (!m->alias_at)
		return;
	REPEAT(mark_alias_step, walk);
	if (m->alias_at)
		m->are_all = 0;
}

/* Goes on in a mount; 0: above the root of one. */
static __always_inline void mark_walk_in(struct marks *m, __u64 mnt_at)
{
	m->mnt_at = mnt_at;
	m->root_at = mnt_at ? address_in(&m->address, OF(mount, mnt_at, mnt.mnt_root)) : 0;
}

/* The walk has reached the top. Goes on above the root of a mount that shows a part of a file system. */
static __always_inline long mark_walk_end(struct marks *m)
{
	m->is_done = m->shown_at == 0;
	m->dentry_at = m->shown_at;
	m->shown_at = 0;
	mark_walk_in(m, 0);
	m->is_crossed = m->is_shown_elsewhere;
	return m->is_done;
}

STEP(mark_walk_step, struct mark_walk *walk, WALK_STEPS_MAX)
{
	struct marks *m = walk->m;
	__u64 dentry_at = m->dentry_at, up_at, parent_at;

	if (may_be_marked(walk, dentry_at))
		mark_entry(walk->table, m, dentry_at);

	parent_at = address_in(&m->address, OF(dentry, dentry_at, d_parent));
	if (dentry_at == m->root_at) {
		if (parent_at != dentry_at && !m->shown_at) {
			m->shown_at = parent_at;
			m->is_shown_elsewhere = m->is_crossed;
		}
		up_at = address_in(&m->address, OF(mount, m->mnt_at, mnt_parent));
		if (up_at == m->mnt_at)
			return mark_walk_end(m);
		m->dentry_at = (__u64)OF(mount, m->mnt_at, mnt_mountpoint);
		mark_walk_in(m, up_at);
		m->is_crossed = 1;
		return 0;
	}

	if (parent_at == dentry_at) {
		/* In a mount, its root comes first. */
		if (m->mnt_at)
			return 1;
		return mark_walk_end(m);
	}

	m->dentry_at = parent_at;
	m->how = MARK_ABOVE | m->parent;
	m->parent = 0;
	return 0;
}

/* Keeps what the search among the marks of path= and dir= needs. */
static __always_inline void mark_begin(struct table *table, struct marks *m)
{
	m->head = TABLE_MARKS;
	take_mark_key(table, m);
	m->filter_first = row_at(table, TABLE_MARK_FILTER)->a;
	m->filter_last = row_at(table, TABLE_MARK_FILTER)->b;
	m->marked_at = 0;
}

/*
 * Adds the marks of an entry that the call has reached, and of the directories above it. `mnt_at`: its
 * mount, a struct vfsmount. `parent`: how the directory that contains it counts, MARK_PARENT or
 * MARK_CHANGED; with MARK_ABOVE, the entry is that directory, and what was in it is gone. After the last
 * entry of the call, `known` says whether all its marks were found.
 */
__noinline int mark_path(struct marks *m, __u64 dentry_at, __u64 mnt_at, __u32 parent)
{
	struct mark_walk walk = { .m = m, .table = this_table() };

	if (!m)
		return 0;

	m->known = 0;
	if (!walk.table || !row_at(walk.table, TABLE_MARKS)->a)
		return 0;
	if (!PATHS_ARE_KNOWN || !INODES_ARE_KNOWN || !dentry_at || !mnt_at)
		return 0;

	if (!m->objects) {
		m->generation = row_at(walk.table, 0)->a;
		m->count = 0;
		m->sure = 0;
		m->proven = 0;
		m->are_all = 1;
	}

	m->objects += parent ? 2 : 1;
	mark_begin(walk.table, m);
	m->dentry_at = dentry_at;
	mark_walk_in(m, (__u64)real_mount((struct vfsmount *)mnt_at));
	m->how = parent & MARK_ABOVE ? parent : 0;
	m->parent = parent & MARK_ABOVE ? 0 : parent;
	m->shown_at = 0;
	m->is_done = 0;
	m->is_crossed = 0;
	m->is_shown_elsewhere = 0;

	if (!(parent & MARK_ABOVE))
		mark_aliases(&walk);
	REPEAT(mark_walk_step, &walk);

	if (!m->is_done || m->count > MARKS_MAX || m->generation != row_at(walk.table, 0)->a)
		m->are_all = 0;
	m->known = m->are_all;
	return 0;
}

/* As mark_path(), for a file that was opened or that a descriptor stands for. */
static __always_inline void mark_file(struct marks *m, __u64 file_at, __u32 parent)
{
	__u64 dentry_at = address_in(&m->address, OF(file, file_at, f_path.dentry));
	__u64 mnt_at = address_in(&m->address, OF(file, file_at, f_path.mnt));

	mark_path(m, dentry_at, mnt_at, parent);
}

#define O_CREAT 0100

/* How the directory of an opened file counts. */
static __always_inline __u32 parent_of_open(__u64 flags)
{
	return flags & O_CREAT ? MARK_PARENT : 0;
}

/* Adds the marks of a path, unless its address is 0. */
static __always_inline void mark_struct_path(struct marks *m, __u64 path_at)
{
	const struct path *path = (const struct path *)path_at;

	if (path)
		mark_path(m, (__u64)READ(path, dentry), (__u64)READ(path, mnt), 0);
}

/* Finds the marks of the files of an execve. Unrolled: no frame of the stack is left for a loop. */
static __always_inline void mark_chain(struct work *w)
{
	struct chain *c = &w->chain;
	__u32 i;

	find_chain(w);
	if (!c->is_all)
		return;
#pragma unroll
	for (i = 0; i < CHAIN_MAX; i++)
		mark_struct_path(&w->marks, c->path[i]);
	mark_struct_path(&w->marks, c->kept);
	mark_struct_path(&w->marks, c->image);
	mark_struct_path(&w->marks, c->loader);
}

/* Finds the marks at everything that the call has reached; FACT_MARKS is absent if not all is known. */
__noinline int find_marks(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct table_spec *spec;
	struct object_note *note;
	struct file *file = 0;
	struct marks *m;
	__u64 flags;

	if (!w)
		return 0;
	spec = &w->spec;
	m = &w->marks;
	m->known = 0;
	m->objects = 0;

	note = w->noted ? note_at_end(task, w->given_nr) : 0;
	if (note) {
		struct table *table = this_table();

		if (table && note->marks.known && note->marks.generation == row_at(table, 0)->a)
			__builtin_memcpy(m, &note->marks, offsetof(struct marks, dentry_at));
		/* What the call did not make has a name, but no object. */
		if (w->ret < 0 && spec->path[0] < 6) {
			m->sure = 0;
			m->proven = 0;
		}
	} else if (spec->kind == KIND_EXEC) {
		mark_chain(w);
	} else if (!w->is_operation && has_own_files(task)) {
		if (spec->kind == KIND_OPEN && w->ret >= 0) {
			file = file_of(task, w->ret);
			flags = spec->open_flags < 6 ? w->args[spec->open_flags] : O_CREAT;
			if (file)
				mark_file(m, (__u64)file, parent_of_open(flags));
		} else if (spec->kind != KIND_OPEN && spec->fd < 6 && spec->path[0] >= 6) {
			file = file_of(task, w->args[spec->fd]);
			if (file)
				mark_file(m, (__u64)file, 0);
		}
	}

	if (!m->known)
		w->absent |= 1U << FACT_MARKS;
	return 0;
}

#endif /* TARSIER_MARKS_H */
