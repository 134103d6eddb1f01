/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Takes names from the text of a path, and finds the entry with a name in a directory, in the kernel's
 * cache: by the kernel's table (dcache.h), or else in the list of the directory.
 */
#ifndef TARSIER_CACHED_NAMES_H
#define TARSIER_CACHED_NAMES_H

#include "base.h"
#include "dcache.h"
#include "maps.h"
#include "names.h"
#include "steps.h"
#include "walk.h"

/* The most entries of directories that are looked at for a path, and of a chain of the table. */
#define FIND_ENTRIES_MAX 4096
#define FIND_CHAIN_MAX 256

/* Whether the kernel has all members that are needed. */
#define NAMES_ARE_KNOWN                                                                            \
	(PATHS_ARE_KNOWN && INODES_ARE_KNOWN && ENTRIES_ARE_LISTED && TYPE_HAS(dentry, d_flags) && \
	 TYPE_HAS(dentry, d_inode) && TYPE_HAS(dentry, d_name.len) &&                              \
	 TYPE_HAS(mount, mnt_mounts.next) && TYPE_HAS(mount, mnt_child.next) &&                    \
	 TYPE_HAS(fs_struct, root) && TYPE_HAS(fs_struct, pwd))

/* A place in the text, for the reasons that frame_at() has. */
static __always_inline __u8 *find_text(struct find *f, __u64 off)
{
	asm volatile("%[off] &= %[mask]" : [off] "+r"(off) : [mask] "i"(FIND_TEXT - 1));
	return f->text + off;
}

/* The high bit of each byte that is 0; above the lowest of them there may be others. */
static __always_inline __u64 zero_bytes(__u64 word)
{
	return (word - 0x0101010101010101ULL) & ~word & 0x8080808080808080ULL;
}

struct find_walk {
	struct work *w;
	struct name_hash hash;
};

/* The next word of the text: true if the name ends in it; what is behind the end is cut off. */
static __always_inline bool find_word(__u32 i, struct find_walk *walk)
{
	struct find *f = &walk->w->find;
	__u64 word, end, below;

	word = *(__u64 *)find_text(f, f->at + 8 * i);
	end = zero_bytes(word) | zero_bytes(word ^ 0x2f2f2f2f2f2f2f2fULL);
	if (!end) {
		f->name[i] = word;
		name_hash_add(&walk->hash, word);
		return false;
	}
	/* All bytes below the lowest one that ends the name; then their number. */
	below = ((end & -end) >> 7) - 1;
	word &= below;
	f->name[i] = word;
	f->len = 8 * i + (((below & 0x0101010101010101ULL) * 0x0101010101010101ULL) >> 56);
	f->hash = name_hash_end(&walk->hash, word);
	return true;
}

STEP(find_word_step, struct find_walk *walk, FIND_NAME_WORDS - 1)
{
	return find_word((i + 1) & (FIND_NAME_WORDS - 1), walk);
}

/* Takes the next name of the text, which ends with '/' or NUL; false if it is too long to be one. */
__noinline int take_name(struct work *w)
{
	struct find_walk walk = { .w = w };
	struct find *f;

	if (!w)
		return 0;
	f = &w->find;
	f->len = ~0U;
	name_hash_begin(&walk.hash, f->dentry);
	/* Most names are short. */
	if (!find_word(0, &walk))
		REPEAT(find_word_step, &walk);
	f->at += f->len;
	return f->len != ~0U;
}

/* Compares the next word of two long names: ends the loop if it is another one. */
STEP(find_compare_step, struct find_walk *walk, walk->w->find.len / 8 + 1)
{
	struct find *f = &walk->w->find;

	i &= FIND_NAME_WORDS - 1;
	f->is_same = f->name[i] == f->other[i];
	return !f->is_same;
}

/* Whether a short name in an entry is the one that is looked for, which has the same length. Most end, or differ, in the first word. */
static __always_inline bool is_short_name(const struct find *f, const unsigned char *text,
					  __u32 len)
{
	__u64 differs = name_word(*(const __u64 *)text ^ f->name[0], len);
	__u32 i;

	if (differs || len <= 8)
		return !differs;
#pragma unroll
	for (i = 1; i < SHORT_NAME_MAX / 8; i++)
		differs |=
			name_word(*(const __u64 *)(text + 8 * i) ^ f->name[i], (__s64)len - 8 * i);
	return !differs;
}

/* Whether an entry of the directory that has been reached has the name that is looked for. */
static __always_inline bool is_named(struct find_walk *walk, const struct dentry *entry)
{
	struct find *f = &walk->w->find;
	const unsigned char *text = 0;
	__u64 len = OF(dentry, entry, d_name.len);

	if (len != f->len || len >= sizeof(f->other) || IS_UNHASHED(entry) ||
	    (__u64)OF(dentry, entry, d_parent) != f->dentry)
		return false;
	if (bpf_ksym_exists(bpf_rdonly_cast))
		text = own_name(bpf_rdonly_cast(entry, bpf_core_type_id_kernel(struct dentry)),
				len);
	if (text)
		return is_short_name(f, text, len);
	AT_MOST(len, sizeof(f->other) - 1);
	f->other[len / 8] = 0;
	if (bpf_probe_read_kernel(f->other, len, OF(dentry, entry, d_name.name)))
		return false;
	REPEAT(find_compare_step, walk);
	return f->is_same;
}

/* The next entry of the chain: ends the loop if it is the one that is looked for. */
STEP(find_chain_step, struct find_walk *walk, FIND_CHAIN_MAX)
{
	struct find *f = &walk->w->find;
	struct dentry *entry;
	__u64 node = f->next;

	if (!node)
		return 1;
	f->next = (__u64)OF(hlist_bl_node, node, next);
	entry = (void *)node - bpf_core_field_offset(struct dentry, d_hash);
	if (OF(dentry, entry, d_name.hash) != f->hash || !is_named(walk, entry))
		return 0;
	f->child = (__u64)entry;
	return 1;
}

/* Finds the entry with that name in the directory by the kernel's table; false if it is not found so. */
static __always_inline bool find_hashed(struct find_walk *walk)
{
	struct find *f = &walk->w->find;
	__u64 chain;

	f->child = 0;
	if (!DCACHE_IS_KNOWN || !control.dcache_at ||
	    OF(dentry, f->dentry, d_flags) & own_hash_flag())
		return false;
	chain = control.dcache_at + 8 * ((__u64)f->hash >> (control.dcache_shift & 31));
	/* The lowest bit is a lock. */
	f->next = address_in(&f->next, OF(hlist_bl_node, chain, next)) & ~1ULL;
	REPEAT(find_chain_step, walk);
	return f->child;
}

/* The next entry of the directory: ends the loop if its name is the one that is looked for. */
STEP(find_entry_step, struct find_walk *walk, (2 * FIND_ENTRIES_MAX - 1) & walk->w->find.entries)
{
	struct find *f = &walk->w->find;
	struct dentry *entry;
	__u64 node = f->next;

	if (!node || node == f->end)
		return 1;
	f->next = (__u64)READ((struct hlist_node *)node, next);
	entry = entry_listed(node);
	if (!is_named(walk, entry))
		return 0;
	f->child = (__u64)entry;
	return 1;
}

/* Finds the entry with that name in the directory; false if it is not in the cache, or far behind. */
__noinline int find_entry(struct work *w)
{
	struct find_walk walk = { .w = w };
	struct find *f;
	long looked;

	if (!NAMES_ARE_KNOWN || !w)
		return 0;
	if (find_hashed(&walk))
		return true;
	f = &w->find;
	f->next = first_listed(f->dentry);
	f->end = end_listed(f->dentry);
	looked = REPEAT(find_entry_step, &walk);
	f->entries = looked > 0 && looked < f->entries ? f->entries - looked : 0;
	return f->child != 0;
}

#endif /* TARSIER_CACHED_NAMES_H */
