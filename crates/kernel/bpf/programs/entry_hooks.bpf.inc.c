/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Hooks on the entries of calls whose end no longer shows what their records are about, for the engine
 * that does not hook functions. They are attached while rules watch such a call.
 */
#include "base.h"
#include "call.h"
#include "find.h"
#include "ipc.h"
#include "objects.h"

#define IPC_SET 1
#define IPC_INFO 3
#define IPC_64 0x100
/* The last commands of semctl(2) and shmctl(2) that are about one object, given by its id. */
#define SEM_LAST 17 /* SETALL */
#define MSG_LAST 3
#define SHM_LAST 12 /* SHM_UNLOCK */
/* Offset of msg_qbytes in struct msqid64_ds of 64-bit calls. */
#define QBYTES_AT 88

/* The object that the call is about, by its id: that of the first argument. */
static __always_inline void note_ipc_of_call(struct object_note *note, struct task_struct *task,
					     struct pt_regs *regs, __u32 class)
{
	struct ipc_namespace *ns = READ(task, nsproxy, ipc_ns);
	__u64 ids = (__u64)&ns->ids;
	__u32 kind = class - OBJECTS_IPC_SEMAPHORES;

	if (!HAS(ns, ids) || !ns || kind > 2)
		return;
	note->at_entry = 1;
	ids += kind * bpf_core_type_size(struct ipc_ids);
	ids = object_with_id(ids, call_arg(regs, 0, 0));
	if (ids)
		note_ipc(note, ids);
}

/* The permissions that IPC_SET requests, from user memory. */
static __always_inline void note_ipc_wanted(struct object_note *note, struct pt_regs *regs,
					    __u32 class)
{
	bool is_semaphore = class == OBJECTS_IPC_SEMAPHORES;
	__u64 from = call_arg(regs, 0, is_semaphore ? 3 : 2);
	struct ipc64_perm *wanted = (struct ipc64_perm *)from;
	__u64 qbytes = 0;

	if (!HAS(wanted, uid) || !HAS(wanted, gid) || !HAS(wanted, mode))
		return;
	if (class == OBJECTS_IPC_MESSAGES &&
	    bpf_probe_read_user(&qbytes, sizeof(qbytes), (void *)(from + QBYTES_AT)))
		return;
	if (bpf_core_read_user(&note->ipc_set.uid, sizeof(__u32), &wanted->uid) ||
	    bpf_core_read_user(&note->ipc_set.gid, sizeof(__u32), &wanted->gid) ||
	    bpf_core_read_user(&note->ipc_set.mode, sizeof(__u16), &wanted->mode))
		return;
	note->ipc_set.qbytes = qbytes;
	note->has_ipc_set = 1;
}

/* Whether a call of these that controls objects names one by its id; others than IPC_INFO do. */
static __always_inline bool names_object(__u32 class, __u32 command)
{
	__u32 last = class == OBJECTS_IPC_SEMAPHORES ? SEM_LAST
		     : class == OBJECTS_IPC_MESSAGES ? MSG_LAST
						     : SHM_LAST;

	return command != IPC_INFO && command <= last;
}

/* Notes what the path arguments, or else the descriptor, of the call lead to. */
static __noinline int note_before(struct object_note *note, __u32 nr, __u32 compat)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct call call = {};
	struct work *w;
	struct file *file;
	__u32 i, arg;

	if (!NAMES_ARE_KNOWN || !note || !find_call(&call, compat & 1, nr))
		return 0;
	w = work_take();
	/* Without one, the event says less. */
	if (!w)
		return 0;
	find_spec(&call, w);
	call_args(w->args, regs, compat & 1);
	for (i = 0; i < 2; i++) {
		arg = w->spec.path[i];
		if (arg >= 6 ||
		    bpf_probe_read_user_str(find_text(&w->find, FIND_START), FIND_TEXT - FIND_START,
					    (void *)w->args[arg]) < 1)
			continue;
		find_text_of(w, i, false, true);
		note->before[i] = w->find.found;
		note->has_before |= 1 << i;
	}
	if (w->spec.path[0] >= 6 && w->spec.fd < 6) {
		file = file_of(task, w->args[w->spec.fd]);
		note->before[0].known = file ? TARSIER_FOUND_TARGET : 0;
		inode_facts(&note->before[0].target, READ(file, f_inode));
		note->has_before = 1;
	}
	work_leave(w);
	return 0;
}

static __always_inline int call_begins(struct task_struct *task, struct pt_regs *regs)
{
	__u32 nr = table_number(call_number(regs)), command, class, compat;
	struct object_calls *calls = these_object_calls();
	struct object_note *note;
	bool controls;

	if (!watched(nr) || !calls)
		return 0;
	compat = entered_compat(task);
	class = object_class(calls, nr, compat);
	controls = class & OBJECTS_CONTROL;
	if (!class)
		return 0;
	note = note_of(class);
	if (!note)
		return 0;
	note->at_entry = 1;
	if (class == OBJECTS_BEFORE)
		return note_before(note, nr, compat);
	class &= ~OBJECTS_CONTROL;
	if (class == OBJECTS_DIRECTORY) {
		note_cwd(note);
		return 0;
	}
	command = call_arg(regs, 0, class == OBJECTS_IPC_SEMAPHORES ? 2 : 1) & ~IPC_64;
	if (controls && !names_object(class, command))
		return 0;
	note_ipc_of_call(note, task, regs, class);
	if (controls && command == IPC_SET && note->has_ipc)
		note_ipc_wanted(note, regs, class);
	return 0;
}

SEC("tp_btf/sys_enter")
int sys_enter(__u64 *ctx)
{
	return call_begins(bpf_get_current_task_btf(), (struct pt_regs *)ctx[0]);
}

/* The entry of one call. */
SEC("tracepoint")
int call_entry(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return call_begins(task, (struct pt_regs *)bpf_task_pt_regs(task));
}
