/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Names of directory entries. */
#ifndef TARSIER_NAMES_H
#define TARSIER_NAMES_H

#include "base.h"

#define NAME_MAX_LEN 256

/* The most bytes of a name, its NUL included, that every kernel stores in the entry itself. */
#define SHORT_NAME_MAX 32

/*
 * The name of an entry, `len` bytes long, if it is short and stored in the entry itself.
 * The verifier has to know the type of the entry.
 */
static __always_inline const unsigned char *own_name(const struct dentry *dentry, __u32 len)
{
	const struct dentry___iname *older = (const struct dentry___iname *)dentry;
	const unsigned char *text;

	if (HAS(dentry, d_shortname.string))
		text = dentry->d_shortname.string;
	else if (HAS(older, d_iname))
		text = older->d_iname;
	else
		return 0;
	return dentry->d_name.name == text && len < SHORT_NAME_MAX ? text : 0;
}

/* The bytes of a word that belong to a name with `left` bytes from there on, which may be negative. */
static __always_inline __u64 name_word(__u64 word, __s64 left)
{
	__u64 some = ((1ULL << (left * 8 & 63)) - 1) & ~(left >> 63), all = (7 - left) >> 63;

	return word & (some | all);
}

/* Counts the changes of an entry's name; odd while it changes. */
static __always_inline __u32 name_changes(const struct dentry *dentry)
{
	asm volatile("" : : : "memory");
	return LOAD(0, dentry, d_seq.seqcount.sequence);
}

/*
 * Copies the name of an entry by words, without a helper call, to where SHORT_NAME_MAX bytes have
 * room. The verifier has to know the type of the entry, and the name has to be stored in the entry
 * itself. Returns the number of bytes with the NUL, or 0, also if the name has changed meanwhile:
 * parts of two names could look like a path.
 */
static __always_inline __u64 short_name(__u8 *to, const struct dentry *dentry)
{
	__u32 changes = name_changes(dentry);
	__u64 len = LOAD(SHORT_NAME_MAX, dentry, d_name.len);
	const unsigned char *text = own_name(dentry, len);

	if (!text)
		return 0;
	/* All words, without a branch, which the verifier would follow. */
	*(__u64 *)to = *(const __u64 *)text;
	*(__u64 *)(to + 8) = *(const __u64 *)(text + 8);
	*(__u64 *)(to + 16) = *(const __u64 *)(text + 16);
	*(__u64 *)(to + 24) = *(const __u64 *)(text + 24);
	if (changes & 1 || name_changes(dentry) != changes)
		return 0;
	/* The mask is in assembly for the reasons given at frame_at(). */
	asm volatile("%[len] &= %[mask]" : [len] "+r"(len) : [mask] "i"(SHORT_NAME_MAX - 1));
	/* Without the count of changes, a rename in progress could have removed the NUL. */
	to[len] = 0;
	return len + 1;
}

/* Copies the name of an entry to where NAME_MAX_LEN bytes have room. As bpf_probe_read_kernel_str(). */
static __always_inline long name_of(__u8 *to, const struct dentry *dentry)
{
	long n = 0;

	if (bpf_ksym_exists(bpf_rdonly_cast))
		n = short_name(to, bpf_rdonly_cast(dentry, bpf_core_type_id_kernel(struct dentry)));
	return n
		       ?: bpf_probe_read_kernel_str(to, NAME_MAX_LEN,
						    (void *)OF(dentry, dentry, d_name.name));
}

#endif /* TARSIER_NAMES_H */
