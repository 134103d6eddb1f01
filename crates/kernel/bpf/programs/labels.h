/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * SELinux's labels, by number. Each module has room of its own behind the `security` pointers of
 * structures; where SELinux's numbers are in it, user space finds out (kernel/selinux of crate capture).
 */
#ifndef TARSIER_LABELS_H
#define TARSIER_LABELS_H

#include "base.h"
#include "maps.h"

/* Parts of control.label_places: offsets in bytes. */
#define SUBJECT_PLACE(places) ((places)&0xffff)
#define OBJECT_PLACE(places) ((places) >> 16)

/* The number behind a `security` pointer; 0 if there is none. */
static __always_inline __u32 label_in(const void *room, __u32 place)
{
	__u32 label = 0;

	if (room)
		bpf_probe_read_kernel(&label, sizeof(label), room + place);
	return label;
}

/*
 * The number of an object's label; 0 if labels are not read. A function of its own, which the verifier
 * goes through once.
 */
__noinline int object_label(__u64 inode_at)
{
	struct inode *inode = (struct inode *)inode_at;
	__u32 places = control.label_places;

	if (!places || !HAS(inode, i_security) || !inode)
		return 0;
	return label_in(READ(inode, i_security), OBJECT_PLACE(places));
}

#endif /* TARSIER_LABELS_H */
