/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Adds to an event what the names of its call led to. */
#ifndef TARSIER_FOUND_H
#define TARSIER_FOUND_H

#include "base.h"
#include "emit.h"
#include "files.h"
#include "find.h"
#include "marks.h"
#include "match.h"
#include "objects.h"
#include "walk.h"

static __always_inline void part_found(struct work *w, __u8 index, __u8 flags,
				       const struct tarsier_found *found)
{
	struct tarsier_part *part;

	if (!found->known || w->len > TARSIER_EVENT_MAX - 64 - sizeof(*found))
		return;
	part = part_begin(w, TARSIER_PART_FOUND, index);
	if (!part)
		return;
	part->flags = flags;
	__builtin_memcpy(part + 1, found, sizeof(*found));
	part_end(w, part, sizeof(*found));
}

/*
 * Adds the name of an object which the call has reached, perhaps by another one or through a mount, if
 * the tables have a mark for that name: the object may be too new for them.
 */
__noinline int part_alias(struct work *w, __u64 dentry_at)
{
	struct mark_walk walk = { .table = this_table() };
	struct tarsier_alias *alias;
	struct tarsier_part *part;
	struct dentry *marked, *dir;
	struct marks *m;
	long n;

	if (!NAMES_ARE_KNOWN || !w || !walk.table || !dentry_at)
		return 0;
	m = &w->marks;
	walk.m = m;
	mark_begin(walk.table, m);
	m->count = 0;
	m->are_all = 1;
	m->how = 0;
	m->dentry_at = dentry_at;
	mark_alias(walk.table, m, dentry_at);
	mark_aliases(&walk);
	marked = (struct dentry *)m->marked_at;
	if ((!marked && m->are_all) || w->len > TARSIER_EVENT_MAX - NAME_MAX_LEN - 128)
		return 0;
	part = part_begin(w, TARSIER_PART_ALIAS, 0);
	if (!part)
		return 0;
	if (!m->are_all || m->count > 1)
		part->flags |= TARSIER_PART_MORE;
	alias = (struct tarsier_alias *)(part + 1);
	inode_facts(&alias->object, (const struct inode *)m->inode_at);
	dir = READ(marked, d_parent);
	inode_facts(&alias->directory, READ(dir, d_inode));
	n = marked ? name_of(frame_at(w, w->len + sizeof(*part) + sizeof(*alias)), marked) : 0;
	part_end(w, part, sizeof(*alias) + (n > 0 ? (n - 1) & (NAME_MAX_LEN - 1) : 0));
	return 0;
}

/* Adds the other names of the files that the descriptors of the call stand for. */
__noinline int event_aliases(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file *file = 0;

	if (!w)
		return 0;
	if (w->spec.kind == KIND_OPEN && w->ret >= 0)
		file = file_of(task, w->ret);
	else if (w->spec.kind != KIND_OPEN && w->spec.fd < 6)
		file = file_of(task, w->args[w->spec.fd]);
	if (HAS(file, f_path.dentry) && file)
		part_alias(w, (__u64)READ(file, f_path.dentry));
	return 0;
}

/* Puts the text of path argument `i`, at w->find.path_at[i] of the frame, in place; false if there is none. */
static __always_inline bool find_take_text(struct work *w, __u32 i)
{
	struct find_walk walk = { .w = w };
	struct find *f = &w->find;
	__u64 len = f->path_len[i];

	if (!len || len >= FIND_TEXT - FIND_START)
		return false;
	AT_MOST(len, FIND_TEXT - FIND_START - 1);
	if (bpf_probe_read_kernel(find_text(f, FIND_START), len, frame_at(w, f->path_at[i])))
		return false;
	find_text_ends(&walk, len);
	return true;
}

/*
 * Adds the directories above what was found, if `reached` is known of it: where a mount shows a
 * directory that a rule names, the path does not tell.
 */
static __always_inline void find_directories(struct work *w, __u32 reached)
{
	struct find *f = &w->find;

	if (event_of(w)->flags & TARSIER_UNDECIDED && f->found.known & reached) {
		struct walk walk = { .w = w, .shown = (struct dentry *)f->dentry };

		if (part_above(w, &walk))
			f->found.known |= TARSIER_FOUND_ABOVE;
	}
}

/* Adds what path argument `i` leads to. */
__noinline int find_path(struct work *w, __u32 i)
{
	if (!w)
		return 0;
	i &= 1;
	if (!find_take_text(w, i))
		return 0;
	find_text_of(w, i, !i && w->spec.flags & SPEC_REMOVES && !w->ret, true);
	find_directories(w, TARSIER_FOUND_TARGET | TARSIER_FOUND_PARENT);
	part_found(w, i, 0, &w->find.found);
	if (event_of(w)->flags & TARSIER_UNDECIDED && w->find.found.known & TARSIER_FOUND_TARGET)
		part_alias(w, w->find.dentry);
	return 0;
}

/* Whether event_names() may have anything to add: the objects of opened files are known. */
static __always_inline bool has_names(struct work *w)
{
	if (takes_address(w) && w->find.name_len)
		return true;
	/* Hooks on functions note nothing of what a call that fails early would have reached. */
	if (w->find.is_noted && w->ret >= 0)
		return false;
	if (w->spec.path[0] >= 6)
		return (w->noted && w->spec.fd < 6) || w->find.path_len[0];
	return w->spec.kind != KIND_OPEN || w->ret < 0 || w->find.is_doubted;
}

/* Adds what the path arguments lead to, after event_objects(); first what they led to before the call. */
__noinline int event_names(struct work *w)
{
	struct object_note *note;
	__u32 i;

	if (!NAMES_ARE_KNOWN || !w)
		return 0;
	note = w->noted && w->ret >= 0 ? note_at_end(bpf_get_current_task_btf(), w->given_nr) : 0;
	for (i = 0; note && i < 2; i++) {
		if (note->has_before & 1 << i)
			part_found(w, i, TARSIER_PART_BEFORE, &note->before[i]);
	}
	if (takes_address(w) && w->find.name_len) {
		w->find.path_at[0] = w->find.name_at;
		w->find.path_len[0] = w->find.name_len;
	}
	if (!(w->spec.flags & SPEC_TEXT_FIRST))
		find_path(w, 0);
	find_path(w, 1);
	return 0;
}

#endif /* TARSIER_FOUND_H */
