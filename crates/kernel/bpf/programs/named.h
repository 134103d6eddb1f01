/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The marks at what the names of a call have led to, found when the call is over (find.h), where no hook
 * has seen what it reached. They prove no rule, since what a name leads to may have changed; but a call
 * whose names lead to nothing with a mark is one that the daemon would drop by the same look-up.
 */
#ifndef TARSIER_NAMED_H
#define TARSIER_NAMED_H

#include "base.h"
#include "call.h"
#include "find.h"
#include "gate.h"
#include "marks.h"

/* Puts the text of path argument `i` in place, as it is now; false if it is empty, cut or not readable. */
static __always_inline bool take_user_text(struct find_walk *walk, __u32 i)
{
	struct work *w = walk->w;
	__u8 arg = w->spec.path[i & 1];
	long n;

	if (arg >= 6)
		return false;
	n = bpf_probe_read_user_str(find_text(&w->find, FIND_START), TARSIER_PATH_MAX + 1,
				    (void *)w->args[arg]);
	if (n <= 1 || n > TARSIER_PATH_MAX)
		return false;
	find_text_ends(walk, n - 1);
	return true;
}

/* The struct vfsmount of a mount, as mark_path() takes it. */
static __always_inline __u64 vfsmount_of(__u64 mount_at)
{
	return TYPE_HAS(mount, mnt) ? mount_at + bpf_core_field_offset(struct mount, mnt) : 0;
}

/*
 * Whether a name that find_text_of() has left in w->find may have a mark: an entry that the call has
 * removed, or renamed.
 */
static __always_inline bool may_name_mark(struct work *w)
{
	struct mark_walk walk = { .m = &w->marks, .table = this_table() };
	struct find *f = &w->find;
	__u64 len = f->len;

	if (!walk.table)
		return true;
	if (len < SHORT_NAME_MAX && !may_be_name(&walk, f->name[0], len))
		return false;
	return mark_row(walk.table, TABLE_MARKS, text_mark(&w->marks, f->name, len));
}

/* Adds the marks at what path argument `i` led to; false if that is not known, or has one. */
__noinline int mark_named(struct work *w, __u32 i)
{
	struct find_walk walk = { .w = w };
	bool is_removed, is_renamed, is_entry;
	struct find *f;

	if (!NAMES_ARE_KNOWN || !w)
		return 0;
	i &= 1;
	f = &w->find;
	is_removed = !i && w->spec.flags & SPEC_REMOVES;
	is_renamed = !i && w->spec.kind == KIND_RENAME;
	is_entry = w->spec.flags & (i ? SPEC_ENTRY_SECOND : SPEC_ENTRY_FIRST);
	if (!take_user_text(&walk, i))
		return 0;
	find_text_of(w, i, is_removed, false);
	/* A rename may have moved the link that led to its other name. */
	if (w->spec.kind == KIND_RENAME && f->is_turned)
		return 0;
	if (f->found.known & TARSIER_FOUND_TARGET)
		mark_path(&w->marks, f->dentry, vfsmount_of(f->mnt), is_entry ? MARK_CHANGED : 0);
	else if (is_entry && f->found.known & TARSIER_FOUND_ENTRY)
		mark_path(&w->marks, f->child, vfsmount_of(f->child_mnt), MARK_CHANGED);
	else if ((is_removed || is_renamed) && f->dir)
		mark_path(&w->marks, f->dir, vfsmount_of(f->dir_mnt), MARK_ABOVE | MARK_CHANGED);
	else
		return 0;
	/* Flags may have kept the call from following it. */
	if (f->link)
		mark_path(&w->marks, f->link, vfsmount_of(f->link_mnt), MARK_CHANGED);
	if (is_removed || is_renamed)
		return w->marks.known && !may_name_mark(w);
	return w->marks.known;
}

/* Finds the marks of the names of a call that has succeeded. */
static __always_inline void find_marks_of_names(struct work *w)
{
	struct marks *m = &w->marks;

	m->known = 0;
	m->objects = 0;
	if (!(w->spec.flags & SPEC_TEXT_FIRST) && !mark_named(w, 0))
		m->known = 0;
	else if (w->spec.path[1] < 6 && !mark_named(w, 1))
		m->known = 0;
}

/*
 * Whether no rule selects a call that has succeeded, since rules need a mark of it: of every call with
 * this spec, or of those of the task. Not for what begins or ends programs.
 */
__noinline int is_unmarked(struct table *table, struct work *w, __u32 spec)
{
	struct marks *m;

	if (!table || !w || w->noted)
		return false;
	if (!(spec & TABLE_SPEC_ONLY_MARKED) &&
	    id_admitted((const __u32 *)row_at(table, spec + 1),
			(const __u32 *)row_at(table, spec + 2), bpf_get_current_task_btf()))
		return false;
	m = &w->marks;
	switch (w->spec.kind) {
	case KIND_PLAIN:
	case KIND_RENAME:
		if (w->spec.path[0] < 6 && w->spec.fd >= 6) {
			find_marks_of_names(w);
			break;
		}
		/* fall through */
	case KIND_OPEN:
		find_marks(w);
		break;
	default:
		return false;
	}
	return m->known && !m->count && m->generation == row_at(table, 0)->a;
}

#endif /* TARSIER_NAMED_H */
