/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Hooks on the functions that look up System V objects: they note the owners of those used. */
#include "base.h"
#include "hook_forms.h"
#include "ipc.h"

#define EPERM 1
AT_ENTRY(ipcperms, )
{
	struct object_note *note = note_of(OBJECTS_IPC);

	if (note)
		note_ipc(note, argument(ctx, 1, probed));
	return 0;
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
	__u64 object = result(ctx, 6, probed);
	struct ipc64_perm *wanted;

	if (!note)
		return 0;
	/* If it refuses a change of the object, it does not return it. */
	if (object == (__u64)-EPERM)
		object = probed ? object_with_id(note->kept[3], note->kept[0] >> 32)
				: object_with_id(hooked(ctx, 1), hooked(ctx, 2));
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
