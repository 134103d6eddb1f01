/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Looks up ids in the kernel's IDR trees, without taking its lock. */
#ifndef TARSIER_IDR_H
#define TARSIER_IDR_H

#include "read.h"

/* Levels of the tree, with 64 slots each: ids below 2^24. */
#define IDR_LEVELS 4
#define IDR_PLACES 64
/* The low bits of an entry that points to a node of the tree: xa_is_internal(). */
#define IDR_NODE_MASK 3
#define IDR_NODE 2

/*
 * The address that the kernel stores under `number`; 0 if there is none, or if
 * the layout of the kernel's trees is not known. The caller runs under RCU, which
 * keeps nodes and most objects that they point to. It has to check whether the
 * object found still has this number, since numbers are reused.
 */
static __always_inline __u64 idr_entry(const struct idr *idr, __u32 number)
{
	struct xa_node *node = 0;
	__u64 entry;
	__u32 above, place;

	if (!HAS(idr, idr_rt.xa_head) || !HAS(node, shift) || !HAS(node, slots) ||
	    bpf_core_field_size(node->slots) != IDR_PLACES * sizeof(entry))
		return 0;
	entry = (__u64)READ(idr, idr_rt.xa_head);
	/* In a tree without nodes, the head is the entry of number 0. */
	if ((entry & IDR_NODE_MASK) != IDR_NODE)
		return number ? 0 : entry;
	above = number;
	for (int level = 0; level < IDR_LEVELS && (entry & IDR_NODE_MASK) == IDR_NODE; level++) {
		node = (struct xa_node *)(entry - IDR_NODE);
		place = above >> (READ(node, shift) & 31);
		if (place >= IDR_PLACES)
			return 0;
		above = number & ((1U << (READ(node, shift) & 31)) - 1);
		if (bpf_probe_read_kernel(&entry, sizeof(entry),
					  (void *)((__u64)&node->slots + place * sizeof(entry))))
			return 0;
	}
	return entry;
}

#endif /* TARSIER_IDR_H */
