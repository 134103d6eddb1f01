/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* System V objects: finds them by id, and notes their owners. */
#ifndef TARSIER_IPC_H
#define TARSIER_IPC_H

#include "idr.h"
#include "objects.h"

/* The number of indices in a tree of objects, unless the kernel was booted with ipcmni_extend. */
#define IPC_PLACES (1 << 15)

static __always_inline void note_ipc(struct object_note *note, __u64 object)
{
	struct kern_ipc_perm *perm = (struct kern_ipc_perm *)object;

	if (!HAS(perm, uid.val) || !HAS(perm, gid.val) || !HAS(perm, mode))
		return;
	note->ipc.uid = READ(perm, uid.val);
	note->ipc.gid = READ(perm, gid.val);
	note->ipc.mode = READ(perm, mode);
	note->has_ipc = 1;
}

/*
 * The object with this id in a tree of objects; 0 if there is none. The low bits of an id are an index
 * in the tree; the others tell objects apart that had the same index. The caller holds the lock that
 * keeps the object, or runs under RCU, which keeps it too.
 */
static __always_inline __u64 object_with_id(__u64 ids_at, __u32 id)
{
	struct ipc_ids *ids = (struct ipc_ids *)ids_at;
	struct kern_ipc_perm *perm;
	__u64 entry;

	if (!HAS(ids, ipcs_idr) || !HAS(perm, id))
		return 0;
	entry = idr_entry(&ids->ipcs_idr, id & (IPC_PLACES - 1));
	perm = (struct kern_ipc_perm *)entry;
	return READ(perm, id) == (int)id ? entry : 0;
}

#endif /* TARSIER_IPC_H */
