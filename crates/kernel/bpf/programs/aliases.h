/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The other names of an object: an entry that a rule names may have been made a moment ago, so that
 * the tables do not have the object yet, and a call may reach that by another hard link. The kernel
 * keeps the entries of each inode that are in its cache in a list, and one that has just been made is.
 */
#ifndef TARSIER_ALIASES_H
#define TARSIER_ALIASES_H

#include "base.h"
#include "maps.h"
#include "walk.h"

/* The most names of an object that are looked at. */
#define ALIASES_MAX 256

#define ALIASES_ARE_KNOWN                                                 \
	(TYPE_HAS(inode, i_dentry.first) && TYPE_HAS(hlist_node, next) && \
	 (TYPE_HAS(dentry, d_u) || TYPE_HAS(dentry___alias, d_alias)) &&  \
	 TYPE_HAS(dentry, d_inode) && TYPE_HAS(dentry, d_parent))

/* Whether an entry has been removed. */
static __always_inline bool is_unhashed(__u64 dentry_at)
{
	const struct dentry *dentry = (const struct dentry *)dentry_at;

	return IS_UNHASHED(dentry);
}

/* The first entry of an object in its list, if there are several; otherwise 0. */
static __always_inline __u64 first_of_several(__u64 inode_at)
{
	__u64 first;

	if (!ALIASES_ARE_KNOWN || !inode_at)
		return 0;
	first = (__u64)OF(inode, inode_at, i_dentry.first);
	return first && READ((struct hlist_node *)first, next) ? first : 0;
}

/*
 * Goes to the next entry of the list; 0: not known, since the list has changed meanwhile. An entry
 * that is taken out of it has lost its inode before (dentry_unlink_inode(), fs/dcache.c).
 */
static __always_inline __u64 next_alias(struct marks *m)
{
	struct hlist_node *node = (struct hlist_node *)m->alias_at;
	__u64 dentry_at = m->alias_at;

	if (TYPE_HAS(dentry, d_u))
		dentry_at -= bpf_core_field_offset(struct dentry, d_u);
	else
		dentry_at -= bpf_core_field_offset(struct dentry___alias, d_alias);
	m->alias_at = (__u64)READ(node, next);
	asm volatile("" : : : "memory");
	return (__u64)OF(dentry, dentry_at, d_inode) == m->inode_at ? dentry_at : 0;
}

#endif /* TARSIER_ALIASES_H */
