/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Matching: facts of the call against the tables, field by field. */
#ifndef TARSIER_MATCH_H
#define TARSIER_MATCH_H

enum verdict {
	VERDICT_DROP = 0,
	VERDICT_RECORD = 1,
	VERDICT_UNDECIDED = 2,
};

static __always_inline struct table_row *row_at(void *table, __u32 row)
{
	return bpf_map_lookup_elem(table, &row);
}

static __always_inline void set_fact(struct work *w, __u32 field, __u32 value)
{
	w->fact[field] = value;
}

/* AUDIT_COMPARE_*: a bit for every pair of the task's own ids that is equal. */
static __always_inline __u32 compare_ids(struct work *w)
{
	__u64 *f = w->fact, bits = 0;

/* Without branches, each of which the verifier would follow. */
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

static __always_inline __u32 exe_id(struct task_struct *task)
{
	struct inode *inode = BPF_CORE_READ(task, mm, exe_file, f_inode);
	struct object_key key = {};
	__u32 *id;

	if (!inode)
		return 0;
	key.ino = BPF_CORE_READ(inode, i_ino);
	key.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	id = bpf_map_lookup_elem(&objects, &key);
	return id ? *id : 0;
}

/* AUDIT_PERM_* that open flags ask for: ACC_MODE() of linux/fs.h. */
static __always_inline __u32 access_of(struct work *w)
{
	__u64 flags = 0;
	__u8 arg = w->spec.open_flags;

	if (w->spec.kind == KIND_SOCKETCALL)
		return w->args[0] == 2 ? 2 : 0; /* SYS_BIND writes */
	if (w->spec.how < 6)
		bpf_probe_read_user(&flags, sizeof(flags), (void *)w->args[w->spec.how]);
	else if (arg < 6)
		flags = w->args[arg];
	else
		return 0;
	switch (flags & 3) {
	case 0:
		return 4;
	case 1:
		return 2;
	default:
		return 6;
	}
}

/* Where user space put the socket address of the call; its length, or 0. */
static __always_inline __u32 sockaddr_place(struct work *w, const void **addr)
{
	__u8 arg = w->spec.sockaddr, len_arg = w->spec.sockaddr_len;
	__u32 len = 0;

	*addr = 0;
	if (arg >= 6)
		return 0;
	if ((w->spec.flags & SPEC_SOCKADDR_OUT) && w->ret < 0)
		return 0;
	if (w->spec.flags & SPEC_MSGHDR) {
		if (w->arch) {
			__u32 msg[2] = {};

			bpf_probe_read_user(msg, sizeof(msg), (void *)w->args[arg]);
			*addr = (void *)(__u64)msg[0];
			len = msg[1];
		} else {
			__u64 msg[2] = {};

			bpf_probe_read_user(msg, sizeof(msg), (void *)w->args[arg]);
			*addr = (void *)msg[0];
			len = msg[1];
		}
	} else {
		*addr = (void *)w->args[arg];
		if (len_arg < 6)
			len = w->args[len_arg];
		if ((w->spec.flags & SPEC_SOCKADDR_LEN_PTR) &&
		    (len_arg >= 6 ||
		     bpf_probe_read_user(&len, sizeof(len), (void *)w->args[len_arg])))
			len = 0;
	}
	if (!*addr)
		return 0;
	return len > 128 ? 128 : len;
}

/* The value of a field; facts that are dear are found when first asked for. */
static __always_inline bool fact_value(struct work *w, __u32 field, __u32 *value)
{
	if (field >= FACTS)
		return false;
	if (!(w->computed & (1U << field))) {
		w->computed |= 1U << field;
		if (field == FACT_EXE) {
			w->fact[FACT_EXE] = exe_id(bpf_get_current_task_btf());
		} else if (field == FACT_COMPARE) {
			w->fact[FACT_COMPARE] = compare_ids(w);
		} else if (field == FACT_ACCESS) {
			w->fact[FACT_ACCESS] = access_of(w);
		} else if (field == FACT_SADDR_FAM) {
			const void *addr;
			__u16 family = 0;

			if (sockaddr_place(w, &addr) < 2 ||
			    bpf_probe_read_user(&family, sizeof(family), addr))
				w->absent |= 1U << FACT_SADDR_FAM;
			w->fact[FACT_SADDR_FAM] = family;
		}
	}
	if (w->absent & (1U << field))
		return false;
	*value = w->fact[field];
	return true;
}

struct lookup {
	void *table;
	struct work *w;
	__u64 mask;
	__u64 never;
	__u64 stage2;
	__u32 first; /* row of the lookups of this page */
	__u32 entries_row;
	__u32 entries;
	__u32 value;
	__u64 any;
	__u32 call_pages;
	__u32 list;
	__u32 verdict;
};

/* Last entry that is not above the value; entries are ascending. */
static __always_inline struct table_row *search(void *table, __u32 first, __u32 n, __u64 value)
{
	struct table_row *row;
	__u32 base = 0, i;

#pragma unroll
	for (i = TABLE_SEARCH_STEPS; i > 0; i--) {
		__u32 probe = base + (1U << (i - 1));

		if (probe < n) {
			row = row_at(table, first + probe);
			if (row && row->a <= value)
				base = probe;
		}
	}
	return row_at(table, first + base);
}

static long bits_step(__u32 i, struct lookup *l)
{
	struct table_row *row = row_at(l->table, l->entries_row + i);
	__u32 operand, op;
	bool holds;

	if (!row)
		return 1;
	operand = row->a;
	op = row->a >> 32;
	if (op == BIT_ANY)
		holds = (l->value & operand) != 0;
	else if (op == BIT_ALL)
		holds = (l->value & operand) == operand;
	else
		holds = (l->value & operand) == 0;
	if (!holds)
		l->mask &= ~row->b;
	return 0;
}

static long group_step(__u32 i, struct lookup *l)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct group_info *groups = BPF_CORE_READ(task, cred, group_info);
	struct table_row *row;
	kgid_t gid;

	if (!groups || i >= (__u32)BPF_CORE_READ(groups, ngroups))
		return 1;
	if (bpf_core_read(&gid, sizeof(gid), &groups->gid[i]))
		return 1;
	row = search(l->table, l->entries_row, l->entries, gid.val);
	if (row && row->a == gid.val)
		l->any |= row->b;
	return 0;
}

static long lookup_step(__u32 i, struct lookup *l)
{
	struct table_row *head = row_at(l->table, l->first + 2 * i);
	struct table_row *place = row_at(l->table, l->first + 2 * i + 1);
	struct table_row *found;
	__u32 field, kind;

	if (!head || !place)
		return 1;
	field = head->a;
	kind = head->a >> 32;
	l->entries_row = place->a;
	l->entries = place->a >> 32;
	if (!fact_value(l->w, field, &l->value)) {
		l->mask &= head->b;
		return l->mask == 0;
	}
	if (kind == LOOKUP_BITS) {
		bpf_loop(l->entries, bits_step, l, 0);
		return l->mask == 0;
	}
	found = search(l->table, l->entries_row, l->entries, l->value);
	if (!found)
		return 1;
	if (kind == LOOKUP_RANGES) {
		l->mask &= found->b;
	} else {
		l->any = found->a == l->value ? found->b : 0;
		bpf_loop(TARSIER_GROUPS_MAX, group_step, l, 0);
		l->mask &= kind == LOOKUP_ANY_OF ? (head->b | l->any) : ~l->any;
	}
	return l->mask == 0;
}

static __always_inline __u32 lowest_bit(__u64 mask)
{
	__u32 bit = 0;

	if (!(mask & 0xffffffff)) {
		bit += 32;
		mask >>= 32;
	}
	if (!(mask & 0xffff)) {
		bit += 16;
		mask >>= 16;
	}
	if (!(mask & 0xff)) {
		bit += 8;
		mask >>= 8;
	}
	if (!(mask & 0xf)) {
		bit += 4;
		mask >>= 4;
	}
	if (!(mask & 3)) {
		bit += 2;
		mask >>= 2;
	}
	return bit + !(mask & 1);
}

static long page_step(__u32 i, struct lookup *l)
{
	struct work *w = l->w;
	struct table_row *entry = row_at(l->table, l->call_pages + i);
	struct table_row *head, *more, *rule;
	__u32 page, bit, n;
	__u64 decided;

	if (!entry)
		return 1;
	page = entry->a;
	head = row_at(l->table, page);
	more = row_at(l->table, page + 1);
	if (!head || !more)
		return 1;
	l->mask = head->a;
	l->first = page + PAGE_LOOKUPS;
	/* Masked, because bpf_loop() looks at all 64 bits where it is inlined. */
	bpf_loop(more->b & 0xffff, lookup_step, l, 0);
	if (!l->mask)
		return 0;
	decided = l->mask & ~more->a;
	bit = decided ? lowest_bit(decided) : 64;
	if (bit == 64 || (l->mask & ((1ULL << bit) - 1))) {
		n = w->nundecided;
		if (n < TABLE_UNDECIDED_MAX) {
			w->undecided[n].page = i;
			w->undecided[n].list = l->list;
			/* what follows the first decided rule cannot win */
			w->undecided[n].mask = bit == 64 ? l->mask :
							   l->mask & ((2ULL << bit) - 1);
		}
		w->nundecided = n + 1;
		l->verdict = VERDICT_UNDECIDED;
		return bit != 64;
	}
	if (bit == 64)
		return 0;
	if (w->nundecided) {
		/* an earlier page left candidates: this rule is the last of them */
		n = w->nundecided;
		if (n < TABLE_UNDECIDED_MAX) {
			w->undecided[n].page = i;
			w->undecided[n].list = l->list;
			w->undecided[n].mask = 1ULL << bit;
		}
		w->nundecided = n + 1;
		return 1;
	}
	rule = row_at(l->table, (__u32)(more->b >> 32) + bit / 4);
	if (rule) {
		__u64 pair = bit & 2 ? rule->b : rule->a;

		w->rule = bit & 1 ? pair >> 32 : pair;
	}
	l->verdict = head->b & (1ULL << bit) ? VERDICT_DROP : VERDICT_RECORD;
	return 1;
}

/* First match of the call in `w` among its candidates. */
static __noinline int evaluate(void *table, struct work *w, __u32 pages, __u32 npages, __u32 list)
{
	struct lookup l = {
		.table = table,
		.w = w,
		.call_pages = pages,
		.list = list,
	};

	w->nundecided = 0;
	w->rule = TARSIER_NO_RULE;
	bpf_loop(npages, page_step, &l, 0);
	return l.verdict;
}

#endif /* TARSIER_MATCH_H */
