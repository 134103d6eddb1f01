/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The kernel's table of directory entries, by directory and name: dentry_hashtable of fs/dcache.c. No
 * list of symbols has its address on every kernel, but the first entry of each chain points back to
 * its place in the table (dcache.rs of crates/kernel/capture). The hash of a name is that of
 * full_name_hash(), fs/namei.c, for 64 bits and CONFIG_DCACHE_WORD_ACCESS.
 */
#ifndef TARSIER_DCACHE_H
#define TARSIER_DCACHE_H

#include "base.h"

#define DCACHE_IS_KNOWN                                                     \
	(TYPE_HAS(dentry, d_hash.pprev) && TYPE_HAS(hlist_bl_node, next) && \
	 TYPE_HAS(dentry, d_flags) && TYPE_HAS(dentry, d_name.hash) && TYPE_HAS(dentry, d_parent))

/* Whether the entry has been removed from the table of names. */
#define IS_UNHASHED(entry) (HAS(entry, d_hash.pprev) && !OF(dentry, entry, d_hash.pprev))

/* The entries of a directory. Since 6.8 they are in a list of another kind. */
#define ENTRIES_ARE_LISTED \
	((TYPE_HAS(dentry, d_children.first) && TYPE_HAS(dentry, d_sib.next)) || ENTRIES_ARE_RINGS)
#define ENTRIES_ARE_RINGS \
	(TYPE_HAS(dentry___rings, d_subdirs.next) && TYPE_HAS(dentry___rings, d_child.next))

/* The list of the entries of a directory: its first node, its end, and the entry of a node. */
static __always_inline __u64 first_listed(__u64 dir_at)
{
	struct dentry___rings *of_rings = (void *)dir_at;
	struct dentry *dir = (void *)dir_at;

	return ENTRIES_ARE_RINGS ? (__u64)READ(of_rings, d_subdirs.next)
				 : (__u64)READ(dir, d_children.first);
}

static __always_inline __u64 end_listed(__u64 dir_at)
{
	return ENTRIES_ARE_RINGS ? dir_at + bpf_core_field_offset(struct dentry___rings, d_subdirs)
				 : 0;
}

static __always_inline struct dentry *entry_listed(__u64 node)
{
	return (void *)node - (ENTRIES_ARE_RINGS
				       ? bpf_core_field_offset(struct dentry___rings, d_child)
				       : bpf_core_field_offset(struct dentry, d_sib));
}

/* The flag of a directory whose file system has its own hash of names. */
static __always_inline __u32 own_hash_flag(void)
{
	if (bpf_core_enum_value_exists(enum dentry_flags, DCACHE_OP_HASH))
		return bpf_core_enum_value(enum dentry_flags, DCACHE_OP_HASH);
	return 1; /* older kernels have a macro */
}

/* The state of the hash of a name. */
struct name_hash {
	__u64 x;
	__u64 y;
};

static __always_inline void name_hash_begin(struct name_hash *hash, __u64 directory_at)
{
	hash->x = 0;
	hash->y = directory_at;
}

/* Adds eight bytes: HASH_MIX(). */
static __always_inline void name_hash_add(struct name_hash *hash, __u64 word)
{
	hash->x ^= word;
	hash->y ^= hash->x;
	hash->x = hash->x << 12 | hash->x >> 52;
	hash->x += hash->y;
	hash->y = hash->y << 45 | hash->y >> 19;
	hash->y *= 9;
}

/* Adds the last bytes, fewer than eight, which zeros follow, and returns the hash: fold_hash(). */
static __always_inline __u32 name_hash_end(struct name_hash *hash, __u64 last)
{
	const __u64 golden_ratio = 0x61C8864680B583EBULL;

	hash->y ^= (hash->x ^ last) * golden_ratio;
	hash->y *= golden_ratio;
	return hash->y >> 32;
}

#endif /* TARSIER_DCACHE_H */
