/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Hooks on the functions that look up System V objects: they note the owners of those used. */
#include "base.h"
#include "hook_forms.h"
#include "idr.h"

#define EPERM 1
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

AT_ENTRY(ipcperms, )
{
	struct object_note *note = note_of(OBJECTS_IPC);

	if (note)
		note_ipc(note, argument(ctx, 1, probed));
	return 0;
}

/*
 * The object with this id. Needed if ipcctl_obtain_check() refuses a change of
 * the object and thus does not return it. Its callers hold the lock that keeps
 * the object. The low bits of an id are an index in a tree; the others tell
 * objects apart that had the same index.
 */
static __always_inline __u64 refused_object(__u64 ids_at, __u32 id)
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

SEC("kprobe.multi") int probe_on_ipcctl_obtain_check(void *ctx)
{
	struct object_note *note = note_of(OBJECTS_IPC);

	if (!note)
		return 0;
	note->kept[0] = (__u32)probe_argument(ctx, 3) | probe_argument(ctx, 2) << 32;
	note->kept[1] = probe_argument(ctx, 4);
	note->kept[2] = probe_argument(ctx, 5);
	note->kept[3] = probe_argument(ctx, 1);
	return 0;
}

/* IPC_SET, IPC_RMID and the like. With IPC_SET, the requested permissions are noted too. */
AT_END(ipcctl_obtain_check, )
{
	struct object_note *note = note_of(OBJECTS_IPC);
	__u64 object = result(ctx, probed);
	struct ipc64_perm *wanted;

	if (!note)
		return 0;
	if (object == (__u64)-EPERM)
		object = probed ? refused_object(note->kept[3], note->kept[0] >> 32)
				: refused_object(hooked(ctx, 1), hooked(ctx, 2));
	if (!object || IS_ERR(object))
		return 0;
	note_ipc(note, object);
	if ((__s32)(probed ? note->kept[0] : hooked(ctx, 3)) != 1 /* IPC_SET */)
		return 0;
	wanted = (struct ipc64_perm *)(probed ? note->kept[1] : hooked(ctx, 4));
	if (!HAS(wanted, uid) || !HAS(wanted, gid) || !HAS(wanted, mode))
		return 0;
	note->ipc_set.qbytes = (__u32)(probed ? note->kept[2] : hooked(ctx, 5));
	note->ipc_set.uid = READ(wanted, uid);
	note->ipc_set.gid = READ(wanted, gid);
	note->ipc_set.mode = READ(wanted, mode);
	note->has_ipc_set = 1;
	return 0;
}
