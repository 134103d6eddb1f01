/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Matches the facts of a call against the tables, field by field. */
#ifndef TARSIER_MATCH_H
#define TARSIER_MATCH_H

#include "addresses.h"
#include "arch.h"
#include "base.h"
#include "executables.h"
#include "maps.h"
#include "marks.h"
#include "objects.h"
#include "process_class.h"
#include "rows.h"
#include "steps.h"
#include "walk.h"
#include "workloads.h"

static __always_inline void set_fact(struct work *w, __u32 field, __u32 value)
{
	w->fact[field] = value;
}

/* AUDIT_COMPARE_*: one bit for every pair of the task's own ids that are equal. */
static __always_inline __u32 compare_ids(struct work *w)
{
	__u64 *f = w->fact, bits = 0;

/* Without branches, because the verifier would follow each of them. */
#define EQUAL(bit, x, y) bits |= (((f[x] ^ f[y]) - 1) >> 63) << (bit)
	EQUAL(10, FACT_UID, FACT_AUID);
	EQUAL(11, FACT_UID, FACT_EUID);
	EQUAL(12, FACT_UID, FACT_FSUID);
	EQUAL(13, FACT_UID, FACT_SUID);
	EQUAL(14, FACT_AUID, FACT_FSUID);
	EQUAL(15, FACT_AUID, FACT_SUID);
	EQUAL(16, FACT_AUID, FACT_EUID);
	EQUAL(17, FACT_EUID, FACT_SUID);
	EQUAL(18, FACT_EUID, FACT_FSUID);
	EQUAL(19, FACT_SUID, FACT_FSUID);
	EQUAL(20, FACT_GID, FACT_EGID);
	EQUAL(21, FACT_GID, FACT_FSGID);
	EQUAL(22, FACT_GID, FACT_SGID);
	EQUAL(23, FACT_EGID, FACT_FSGID);
	EQUAL(24, FACT_EGID, FACT_SGID);
	EQUAL(25, FACT_SGID, FACT_FSGID);
#undef EQUAL
	return bits;
}

/* open(2) flags: the access that is asked for. */
#define O_ACCMODE 3
#define O_RDONLY 0
#define O_WRONLY 1

/* linux/audit.h */
#define AUDIT_PERM_WRITE 2
#define AUDIT_PERM_READ 4
#define ANY_ACCESS (AUDIT_PERM_READ | AUDIT_PERM_WRITE)

/* Flags that the kernel used, as in a PART_OPENED. */
struct open_used {
	__u32 flags;
	__u32 known; /* the bits of `flags` that are known */
};

/* The flags of an open whose struct open_how is in user memory. */
static __always_inline struct open_used flags_used(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct object_note *note = note_at_end(task, w->given_nr);
	struct open_used opened = {};
	struct file *file;

	if (note && note->has_open_flag) {
		opened.known = OPEN_FLAGS_COMPARED;
		opened.flags = note->open_flag & OPEN_FLAGS_COMPARED;
	} else if (w->ret >= 0 && !w->is_operation && has_own_files(task)) {
		file = file_of(task, w->ret);
		if (file && HAS(file, f_flags)) {
			opened.known = OPEN_FLAGS_KEPT;
			opened.flags = READ(file, f_flags) & OPEN_FLAGS_KEPT;
		}
	}
	return opened;
}

/*
 * AUDIT_PERM_* bits of the access that open flags request: ACC_MODE() of linux/fs.h. Another thread
 * may have changed a struct open_how since the kernel read it: where its flags are not known from
 * elsewhere, any access is possible.
 */
static __always_inline __u32 access_of(struct work *w)
{
	struct open_used opened;
	__u8 arg = w->spec.open_flags;
	__u64 flags;

	if (w->spec.kind == KIND_SOCKETCALL)
		return w->args[0] == SYS_BIND ? AUDIT_PERM_WRITE : 0;

	if (w->spec.how < 6) {
		opened = flags_used(w);
		if (!opened.known)
			return ANY_ACCESS;
		flags = opened.flags;
	} else if (arg < 6) {
		flags = w->args[arg];
	} else {
		return 0;
	}

	switch (flags & O_ACCMODE) {
	case O_RDONLY:
		return AUDIT_PERM_READ;
	case O_WRONLY:
		return AUDIT_PERM_WRITE;
	default:
		return ANY_ACCESS;
	}
}

/*
 * Computes an expensive fact when it is first needed. Like the other functions
 * here that are not static, it is a global function, which the verifier checks
 * once instead of once for every state of its callers.
 */
__noinline int find_ids_or_access(struct work *w, __u32 field)
{
	if (!w)
		return 0;
	if (field == FACT_COMPARE)
		w->fact[FACT_COMPARE] = compare_ids(w);
	else
		w->fact[FACT_ACCESS] = access_of(w);
	return 0;
}

/* Not in one global function, since the stack is too small for one call more. */
static __always_inline void find_fact(struct work *w, __u32 field)
{
	if (field == FACT_EXE)
		w->absent |= !executable_numbers(w) << FACT_EXE;
	else if (field == FACT_MARKS)
		find_marks(w);
	else if (field == FACT_SADDR_FAM)
		find_family(w);
	else if (field == FACT_SOCKET_NAME)
		find_socket_name(w);
	else
		find_ids_or_access(w, field);
}

/* For the steps of loops. */
struct lookup_in {
	struct table *table;
	struct work *w;
};

STEP(bits_step, struct lookup_in *in, in->w->lookup.entries)
{
	struct lookup *l = &in->w->lookup;
	struct table_row *row = row_at(in->table, l->entries_row + i);
	__u32 operand = row->a, op = row->a >> 32, common = l->value & operand;
	bool holds = op == BIT_ANY ? common != 0 : common == (op == BIT_ALL ? operand : 0);

	if (!holds)
		l->mask &= ~row->b;
	return 0;
}

#define GROUPS_ARE_KNOWN (TYPE_HAS(cred, group_info, ngroups) && TYPE_HAS(cred, group_info, gid))

STEP(group_step, struct lookup_in *in, TARSIER_GROUPS_MAX)
{
	struct lookup *l = &in->w->lookup;
	struct group_info *groups;
	struct table_row *row;
	kgid_t gid;

	if (!GROUPS_ARE_KNOWN)
		return 1;
	groups = untrusted(bpf_get_current_task_btf())->cred->group_info;
	if (i >= (__u32)groups->ngroups || bpf_core_read(&gid, sizeof(gid), &groups->gid[i]))
		return 1;
	row = row_of(in->table, l->entries_row, l->entries, gid.val);
	if (row->a == gid.val)
		l->any |= row->b;
	return 0;
}

static __always_inline bool has_groups(void)
{
	return GROUPS_ARE_KNOWN &&
	       untrusted(bpf_get_current_task_btf())->cred->group_info->ngroups > 0;
}

STEP(mark_step, struct lookup_in *in, MARKS_MAX)
{
	struct lookup *l = &in->w->lookup;
	struct marks *m = &in->w->marks;
	struct table_row *row;
	__u32 value;

	if (i >= m->count)
		return 1;

	value = m->value[i & (MARKS_MAX - 1)];
	row = row_of(in->table, l->entries_row, l->entries, value);
	if (row->a != value)
		return 0;

	l->any |= row->b;
	if (m->sure & (1U << (i & (MARKS_MAX - 1))))
		l->sure |= row->b;
	if (m->proven & (1U << (i & (MARKS_MAX - 1))))
		l->proven |= row->b;
	return 0;
}

static __always_inline bool has_several_bits(__u64 mask)
{
	return mask & (mask - 1);
}

/*
 * Applies a lookup of marks. The kernel looks at the objects of a call in order, which marks do not.
 * A `never` rule needs a mark that the kernel would find: anybody can mount something over a path.
 */
static __always_inline void look_up_marks(struct lookup_in *in, __u64 in_order, __u64 decides)
{
	__u64 never = row_at(in->table, in->w->lookup.first - PAGE_LOOKUPS)->b, without;
	struct lookup *l = &in->w->lookup;
	struct marks *m = &in->w->marks;

	without = row_at(in->table, l->entries_row)->b;

	l->any = without;
	if (m->count)
		REPEAT(mark_step, in);

	l->mask &= l->any & (~never | without | l->proven);
	l->sure = (l->sure & ~never) | (l->proven & never);
	l->sure &= decides;
	if (m->objects > 1 && (has_several_bits(l->mask & in_order) || has_several_bits(l->worth)))
		l->sure &= ~in_order;
}

/*
 * Applies a lookup of the executable. Where it is not certain which one the task runs, a rule that
 * records needs one possible number that meets its condition; a `never` rule needs all of them to.
 */
static __always_inline void look_up_executable(struct lookup_in *in, __u64 absent)
{
	struct lookup *l = &in->w->lookup;
	__u64 never = row_at(in->table, l->first - PAGE_LOOKUPS)->b, any, all;
	__u32 other = in->w->fact[FACT_EXE] >> 32;

	if (in->w->absent & (1U << FACT_EXE)) {
		l->mask &= absent | ~never;
		return;
	}

	any = all = row_of(in->table, l->entries_row, l->entries, l->value)->b;
	if (other != l->value) {
		l->any = row_of(in->table, l->entries_row, l->entries, other)->b;
		any |= l->any;
		all &= l->any;
		l->any = row_of(in->table, l->entries_row, l->entries, 0)->b;
		any |= l->any;
		all &= l->any;
	}

	l->mask &= (any & ~never) | (all & never);
}

/* The count is masked, because an inlined bpf_loop() uses all 64 bits. */
STEP(lookup_step, struct lookup_in *in, row_at(in->table, in->w->lookup.first - 1)->b & 0xffff)
{
	struct lookup *l = &in->w->lookup;
	struct table_row *head = row_at(in->table, l->first + 2 * i);
	struct table_row *place = row_at(in->table, l->first + 2 * i + 1);
	__u32 field = head->a, kind = head->a >> 32;
	struct table_row *found;
	struct work *w = in->w;
	__u64 open;

	if (field >= FACTS)
		return 1;

	if (!(w->computed & (1U << field))) {
		w->computed |= 1U << field;
		if (WORKLOAD_FACTS & (1U << field))
			find_workload(w, in->table);
		else if (PAST_FACTS & (1U << field))
			find_past(w, in->table);
		else
			find_fact(w, field);
	}

	l->value = w->fact[field];
	l->entries_row = place->a;
	l->entries = place->a >> 32;

	if (field == FACT_EXE) {
		look_up_executable(in, head->b);
		return l->mask == 0;
	}

	if (w->absent & (1U << field)) {
		if (field == FACT_SADDR_FAM && has_unknown_address(w))
			l->mask &= head->b | ~row_at(in->table, l->first - PAGE_LOOKUPS)->b;
		else if ((WORKLOAD_FACTS | PAST_FACTS) & (1U << field))
			l->unsure |= ~head->b;
		else if (kind != LOOKUP_MARKS)
			l->mask &= head->b;
		return l->mask == 0;
	}

	if (kind == LOOKUP_BITS) {
		REPEAT(bits_step, in);
		return l->mask == 0;
	}
	if (kind == LOOKUP_MARKS) {
		look_up_marks(in, head->b, place->b);
		return l->mask == 0;
	}

	found = row_of(in->table, l->entries_row, l->entries, l->value);
	if (kind == LOOKUP_RANGES) {
		l->mask &= found->b;
	} else {
		l->any = found->a == l->value ? found->b : 0;
		open = l->mask & ~l->any;
		if (kind == LOOKUP_ANY_OF)
			open &= ~head->b;
		/* For some rules, the supplementary groups decide too. */
		if (open && has_groups())
			REPEAT(group_step, in);
		l->mask &= kind == LOOKUP_ANY_OF ? (head->b | l->any) : ~l->any;
	}
	return l->mask == 0;
}

/* Number of the lowest bit that is set; 64 if there is none. Without branches. */
static __always_inline __u32 lowest_bit(__u64 mask)
{
	__u64 below = (mask & -mask) - 1;

	below -= (below >> 1) & 0x5555555555555555ULL;
	below = (below & 0x3333333333333333ULL) + ((below >> 2) & 0x3333333333333333ULL);
	below = (below + (below >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (below * 0x0101010101010101ULL) >> 56;
}

static __always_inline void leave_undecided(struct lookup_in *in, __u32 page, __u64 mask)
{
	struct lookup *l = &in->w->lookup;
	struct work *w = in->w;
	__u32 n = w->nundecided;

	if (n < TABLE_UNDECIDED_MAX) {
		w->undecided[n].page = page;
		w->undecided[n].list = l->list;
		w->undecided[n].mask = mask;
	}
	w->nundecided = n + 1;
}

/* Sets l->mask to the rules of a page whose conditions the call meets. */
static __always_inline void look_up(struct lookup_in *in, __u32 page)
{
	struct lookup *l = &in->w->lookup;
	l->mask = row_at(in->table, page)->a;
	l->sure = 0;
	l->proven = 0;
	l->unsure = 0;
	l->first = page + PAGE_LOOKUPS;
	REPEAT(lookup_step, in);
}

/* Evaluates page `i` of the call; returns 1 if it decides. */
static __always_inline long look_at_page(__u32 i, struct lookup_in *in)
{
	struct lookup *l = &in->w->lookup;
	__u64 entry = row_at(in->table, l->pages + i)->a;
	__u32 page = entry, labels = entry >> 32;
	struct table_row *more = row_at(in->table, page + 1);
	__u64 first, decided;

	if (!(l->worth & (1ULL << (i & 63))))
		return 0;

	look_up(in, page);
	if (!l->mask)
		return 0;

	decided = l->mask & ~(more->a & ~l->sure) & ~l->unsure;
	first = decided & -decided;
	/* Rules after the first decided one cannot be the first match. */
	l->mask &= (first - 1) | first;

	if (labels && (l->mask & row_at(in->table, labels)->a)) {
		l->labels = 1;
		in->w->label_generation = row_at(in->table, 0)->a;
		in->w->label_epoch = row_at(in->table, 0)->b;
	}

	/* If candidates precede it, in this page or an earlier one, it is the last candidate. */
	if (l->mask != first || in->w->nundecided)
		leave_undecided(in, i, l->mask);
	else
		l->page = page;

	l->bit = lowest_bit(first);
	return first != 0;
}

STEP(next_page_step, struct lookup_in *in, in->w->lookup.npages - 1)
{
	return look_at_page(i + 1, in);
}

/* Finds the first match of the call in `w` among its candidates; returns an enum verdict. */
__noinline int evaluate(struct table *table, struct work *w, __u32 pages, __u32 npages, __u32 list)
{
	struct lookup_in in = { .table = table, .w = w };
	struct table_row *rules;
	struct lookup *l;
	__u32 summary;
	__u64 pair;

	if (!table || !w)
		return VERDICT_DROP;
	w->nundecided = 0;
	w->rule = TARSIER_NO_RULE;
	l = &w->lookup;
	l->pages = pages;
	l->list = list;
	l->page = 0;
	l->bit = 0;
	l->labels = 0;
	l->npages = npages;
	l->worth = npages < 64 ? (1ULL << (npages & 63)) - 1 : ~0ULL;

	summary = row_at(table, pages)->b;
	if (summary) {
		look_up(&in, summary);
		l->worth = l->mask;
		if (!l->worth)
			return VERDICT_DROP;
	}

	/* Most calls have one page, which needs no loop. */
	if (npages && !look_at_page(0, &in) && npages > 1)
		REPEAT(next_page_step, &in);

	if (w->nundecided)
		return VERDICT_UNDECIDED;
	if (!l->page)
		return VERDICT_DROP;

	rules = row_at(table, (__u32)(row_at(table, l->page + 1)->b >> 32) + l->bit / 4);
	pair = l->bit & 2 ? rules->b : rules->a;
	w->rule = l->bit & 1 ? pair >> 32 : pair;
	return row_at(table, l->page)->b & (1ULL << (l->bit & 63)) ? VERDICT_DROP : VERDICT_RECORD;
}

#endif /* TARSIER_MATCH_H */
