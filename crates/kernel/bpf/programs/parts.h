/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The parts of an event that only some calls have: paths, objects, details of an execve. */
#ifndef TARSIER_PARTS_H
#define TARSIER_PARTS_H

#include "address_parts.h"
#include "base.h"
#include "emit.h"
#include "idr.h"
#include "inner_paths.h"
#include "match.h"
#include "objects.h"
#include "pids.h"
#include "steps.h"

/* Adds path argument `i`, and the directory that it is relative to. */
static __always_inline void part_path(struct work *w, struct task_struct *task, __u32 i)
{
	__u8 arg = w->spec.path[i], dir = w->spec.dir[i];
	__u32 at;
	char first;

	w->find.path_len[i & 1] = 0;
	if (arg >= 6)
		return;
	at = w->len;
	first = part_user_string(w, TARSIER_PART_PATH, i, w->args[arg]);
	take_path(w, i, at);
	if (first != '/' && dir < 6 && (__s32)w->args[dir] != AT_FDCWD)
		part_file(w, task, w->args[dir], i, TARSIER_PART_DIR);
}

static __always_inline void part_cwd(struct work *w, struct task_struct *task)
{
	struct fs_struct *fs = LOAD(0, untrusted(task), fs);
	struct tarsier_inode inode = {};
	struct vfsmount *mnt;
	struct mount *here;

	if (!HAS(task, fs) || !fs)
		return;
	if (HAS(fs, pwd)) {
		walk_cwd(w);
		if (HAS(fs, pwd.dentry, d_inode)) {
			known_inode_facts(&inode, fs->pwd.dentry->d_inode);
			/* Read again: a function of its own takes no pointer of a known type. */
			if (control.label_places)
				inode.valid |=
					(__u32)object_label((__u64)READ(fs, pwd.dentry, d_inode))
					<< 1;
		}
		part_bytes(w, TARSIER_PART_CWD_INODE, &inode, sizeof(inode));
	}
	if (!HAS(fs, root) || !PATHS_ARE_KNOWN)
		return;
	mnt = OF(fs_struct, fs, root.mnt);
	here = real_mount(mnt);
	/* A mount on the root of its parent hides that; one elsewhere is that of a chroot. */
	if (fs->root.dentry != fs->root.mnt->mnt_root ||
	    OF(mount, here, mnt_mountpoint) != OF(mount, here, mnt_parent, mnt.mnt_root)) {
		fs = BPF_CORE_READ(task, fs);
		walk_path(w, TARSIER_PART_ROOT, (__u64)&fs->root, 0, false);
	}
}

/* The task with the pid `number` in the pid namespace of `task`; NULL if there is none. */
static __always_inline struct task_struct *task_called(struct task_struct *task, __s32 number)
{
	struct pid_namespace *ns = 0;
	struct pid *pid;
	__u32 level;
	int nr = 0;

	if (!PIDS_ARE_KNOWN || number <= 0)
		return 0;
	pid = READ(task, thread_pid);
	level = READ(pid, level);
	bpf_core_read(&ns, sizeof(ns), &upid_at(pid, level)->ns);
	if (!ns)
		return 0;
	pid = (struct pid *)idr_entry(&ns->idr, number);
	if (!pid)
		return 0;
	/* The tree may have changed while it was read. */
	bpf_core_read(&nr, sizeof(nr), &upid_at(pid, level)->nr);
	return nr == number ? task_of_pid(pid) : 0;
}

#define PID_FS_MAGIC 0x50494446 /* Linux 6.9 and later */
#define ANON_INODE_FS_MAGIC 0x09041934
#define PIDFD_SELF_THREAD (-10000)
#define PIDFD_SELF_THREAD_GROUP (-20000)

/* Whether the name of an anonymous inode's file is that of pidfds. */
static __always_inline bool is_anonymous_pidfd(struct file *file)
{
	char name[8] = {};

	bpf_probe_read_kernel_str(name, sizeof(name), READ(file, f_path.dentry, d_name.name));
	return *(__u64 *)name == *(__u64 *)"[pidfd]";
}

/* The process that a descriptor stands for: a pidfd or, for pidfd_send_signal(2), /proc/PID. */
static __always_inline struct task_struct *task_of_fd(struct task_struct *task, __s32 fd)
{
	struct inode *inode;
	struct file *file;
	__u64 magic;

	if (fd == PIDFD_SELF_THREAD)
		return task;
	if (fd == PIDFD_SELF_THREAD_GROUP)
		return READ(task, group_leader);
	file = file_of(task, fd);
	if (!file || !TYPE_HAS(super_block, s_magic))
		return 0;
	inode = READ(file, f_inode);
	magic = READ(inode, i_sb, s_magic);
	if (magic == PID_FS_MAGIC)
		return task_of_pid(READ(inode, i_private));
	if (magic == ANON_INODE_FS_MAGIC && is_anonymous_pidfd(file))
		return task_of_pid(READ(file, private_data));
	if (magic == PROC_SUPER_MAGIC)
		return task_of_pid(pid_of_proc(inode));
	return 0;
}

#define EPERM 1
#define ESRCH 3
#define EFAULT 14
#define EINVAL 22

/*
 * Whether the kernel has found the target: check_kill_permission(), kernel/signal.c, tells audit of
 * it before it refuses. Where that is hooked, there is a note, unless another reason came first.
 */
static __always_inline bool found_target(struct work *w)
{
	if (w->ret == -ESRCH || w->ret == -EBADF || w->ret == -EINVAL)
		return false;
	return w->ret != -EPERM || !has_objects(w->nr, w->arch);
}

/* PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9 and later. */
static __always_inline bool is_to_group(struct work *w)
{
	return w->spec.flags & SPEC_TARGET_PIDFD && w->args[3] & 4;
}

/* Adds the target of a signal or ptrace, unless the process has already been reaped. */
static __always_inline void part_target(struct work *w)
{
	struct tarsier_obj_pid target = {};
	struct task_struct *task = bpf_get_current_task_btf();
	__s32 number = w->args[w->spec.target];

	if (!found_target(w) || is_to_group(w))
		return;
	task = w->spec.flags & SPEC_TARGET_PIDFD ? task_of_fd(task, number)
						 : task_called(task, number);
	if (!task)
		return;
	target.pid = READ(task, tgid);
	target.auid = READ(task, loginuid.val);
	target.ses = READ(task, sessionid);
	target.uid = READ(task, cred, uid.val);
	if (HAS(task, comm))
		bpf_probe_read_kernel(target.comm, sizeof(target.comm), task->comm);
	part_bytes(w, TARSIER_PART_OBJ_PID, &target, sizeof(target));
}

static __always_inline void part_capset(struct work *w, struct task_struct *task)
{
	const struct cred *cred = untrusted(task)->cred;
	struct tarsier_caps caps = { .pid = task->tgid };

	if (!CAPABILITIES_ARE_KNOWN)
		return;
	caps.inheritable = capabilities(&cred->cap_inheritable);
	caps.permitted = capabilities(&cred->cap_permitted);
	caps.effective = capabilities(&cred->cap_effective);
	caps.ambient = capabilities(&cred->cap_ambient);
	part_bytes(w, TARSIER_PART_CAPSET, &caps, sizeof(caps));
}

/* A block of a note, which is copied at once. */
struct note_block {
	__u64 word[8];
};

struct note_copy {
	struct work *w;
	struct object_note *note;
};

/* Copies a block of the parts. Plain loads and stores take half of what the helper takes. */
STEP(copy_step, struct note_copy *copy, sizeof(copy->note->parts) / sizeof(struct note_block))
{
	__u64 from = (__u64)i * sizeof(struct note_block);

	if (from >= copy->note->len || from > sizeof(copy->note->parts) - sizeof(struct note_block))
		return 1;
	*(struct note_block *)frame_at(copy->w, copy->w->len + from) =
		*(const struct note_block *)(copy->note->parts + from);
	return 0;
}

/* Adds the parts that object hooks have written; false if they do not fit. */
static __always_inline bool note_parts(struct work *w, struct object_note *note)
{
	struct note_copy copy = { .w = w, .note = note };
	__u64 len = note->len;

	if (w->len > TARSIER_EVENT_MAX - sizeof(note->parts) || len > sizeof(note->parts))
		return false;
	REPEAT(copy_step, &copy);
	w->len += len;
	w->parts += note->count;
	if (note->address_len)
		part_address(w, note);
	return true;
}

/* Adds everything that object hooks have noted to the event. */
static __always_inline void part_note(struct work *w, struct object_note *note)
{
	if (note->cut)
		event_of(w)->flags |= TARSIER_TRUNCATED;
	if (!note_parts(w, note)) {
		event_of(w)->flags |= TARSIER_TRUNCATED;
		return;
	}
	/* Other arguments were refused, before the object was looked up or after that. */
	if (note->at_entry && (w->ret == -EINVAL || w->ret == -EFAULT))
		return;
	if (note->has_ipc)
		part_bytes(w, TARSIER_PART_IPC, &note->ipc, sizeof(note->ipc));
	if (note->has_ipc_set)
		part_bytes(w, TARSIER_PART_IPC_SET_PERM, &note->ipc_set, sizeof(note->ipc_set));
	if (note->has_time)
		part_bytes(w, TARSIER_PART_TIME, note->time, sizeof(note->time));
}

/* Whether the call may have been given the path of a UNIX socket. */
static __always_inline bool names_socket(struct work *w)
{
	w->fact[FACT_SOCKET_NAME] = NAMES_NO_SOCKET;
	if (w->spec.sockaddr < 6 || w->spec.kind == KIND_SOCKETCALL)
		find_socket_name(w);
	return w->fact[FACT_SOCKET_NAME] != NAMES_NO_SOCKET;
}

static __always_inline void part_how(struct work *w)
{
	struct open_used opened = flags_used(w);

	part_user_bytes(w, TARSIER_PART_OPEN_HOW, (void *)w->args[w->spec.how], 24, 24);
	if (opened.known)
		part_bytes(w, TARSIER_PART_OPENED, &opened, sizeof(opened));
}

#define BPF_COMMAND_PROG_LOAD 5

/* Adds the id of the program that bpf(2) has loaded, if its descriptor still stands for it. */
static __always_inline void part_program(struct work *w)
{
	struct bpf_prog *prog;
	struct file *file;
	__u32 id;

	if (!TYPE_HAS(bpf_prog, aux, id) || !TYPE_HAS(bpf_prog_aux, prog) || w->ret < 0 ||
	    (__u32)w->args[0] != BPF_COMMAND_PROG_LOAD)
		return;
	file = file_of(bpf_get_current_task_btf(), w->ret);
	prog = file ? READ(file, private_data) : 0;
	if (!prog || READ(prog, aux, prog) != prog)
		return;
	id = READ(prog, aux, id);
	if (id)
		part_bytes(w, TARSIER_PART_PROGRAM, &id, sizeof(id));
}

/* Adds the name of the module that the call has loaded: module_loaded() has noted it. */
static __always_inline void part_loaded_module(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_note *note = bpf_task_storage_get(&task_notes, task, 0, 0);
	struct tarsier_part *part;
	long n;

	if (w->ret || !note || !note->module[0])
		return;
	part = part_begin(w, TARSIER_PART_MODULE, 0);
	if (!part)
		return;
	n = bpf_probe_read_kernel_str(part + 1, sizeof(note->module), note->module);
	part_end(w, part, n > 0 ? n - 1 : 0);
	note->module[0] = 0;
}

/* Whether event_memory() has anything to add. */
static __always_inline bool has_memory(struct work *w)
{
	return w->spec.memory < 6 || w->spec.how < 6 || w->spec.kind == KIND_SOCKETCALL ||
	       w->spec.kind == KIND_MESSAGES || w->spec.kind == KIND_BPF ||
	       w->spec.kind == KIND_MODULE || (w->spec.target < 6 && !w->noted);
}

/*
 * Adds memory that arguments point to, and the target process. Apart from event_objects(), because
 * that has no stack left for it.
 */
__noinline int event_memory(struct work *w)
{
	__u32 pair = 0;

	if (!w)
		return 0;
	if (w->spec.memory < 6 && w->args[w->spec.memory])
		part_user_bytes(w, TARSIER_PART_MEMORY, (void *)w->args[w->spec.memory],
				w->spec.memory_len, TARSIER_MEMORY_MAX);
	if (w->spec.how < 6)
		part_how(w);
	if (w->spec.kind == KIND_SOCKETCALL && w->args[0] == SYS_SOCKETPAIR && w->ret == 0 &&
	    !bpf_probe_read_user(&pair, sizeof(pair), (void *)((__u64)(__u32)w->args[1] + 12)))
		part_user_bytes(w, TARSIER_PART_FD_PAIR, (void *)(__u64)pair, 8, 8);
	/* If there is a note, it already has every target of the signal. */
	if (w->spec.target < 6 && !w->noted)
		part_target(w);
	if (w->spec.kind == KIND_BPF)
		part_program(w);
	if (w->spec.kind == KIND_MODULE)
		part_loaded_module(w);
	if (w->spec.kind == KIND_MESSAGES)
		part_messages(w);
	return 0;
}

/* Whether event_objects() would have nothing to collect for the call. */
static __always_inline bool touches_nothing(struct work *w)
{
	struct table_spec *spec = &w->spec;

	/* spec_row.a covers the members from `path` to `fd_pair`. */
	return !w->noted && w->spec_row.a == ~0ULL && spec->how == 0xff && spec->module == 0xff &&
	       spec->kind == KIND_PLAIN;
}

/*
 * Adds the descriptors of a pipe(2) that could not write them to user memory: do_pipe2(), fs/pipe.c,
 * has taken the two lowest ones and then freed them. Another task must not have taken one since.
 */
static __always_inline void part_refused_pair(struct work *w, struct task_struct *task)
{
	__s32 pair[2];

	if (w->spec.fd_pair || !HAS(task, files, next_fd) || !has_own_files(task))
		return;
	pair[0] = next_free(task, READ(task, files, next_fd));
	pair[1] = pair[0] < 0 ? -1 : next_free(task, pair[0] + 1);
	if (pair[1] >= 0)
		part_bytes(w, TARSIER_PART_FD_PAIR, pair, sizeof(pair));
}

/* Adds what the call touched, as its spec says; the target of a signal is in event_memory(). */
__noinline int event_objects(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct object_note *note;
	bool is_named;

	if (!w)
		return 0;
	w->find.name_len = 0;
	is_named = names_socket(w);
	note = w->noted ? note_at_end(task, w->given_nr) : 0;
	w->find.is_noted = note && !note->at_entry;
	if (note)
		part_note(w, note);
	if (w->spec.path[0] < 6 || w->spec.path[1] < 6 || w->spec.fd < 6 ||
	    w->spec.kind == KIND_OPEN || is_named || has_object_path(w))
		part_cwd(w, task);
	w->find.is_doubted = 0;
	part_path(w, task, 0);
	part_path(w, task, 1);
	if (w->spec.kind == KIND_OPEN && w->ret >= 0)
		part_file(w, task, w->ret, 0, TARSIER_PART_FILE);
	if (w->spec.fd < 6)
		part_file(w, task, w->args[w->spec.fd], 1, TARSIER_PART_FILE);
	if (w->spec.sockaddr < 6 || w->spec.kind == KIND_SOCKETCALL)
		event_address(w);
	if (w->spec.fd_pair < 6 && w->ret == 0)
		part_user_bytes(w, TARSIER_PART_FD_PAIR, (void *)w->args[w->spec.fd_pair], 8, 8);
	if (w->spec.fd_pair < 6 && w->ret == -EFAULT)
		part_refused_pair(w, task);
	if (w->spec.module < 6)
		part_user_string(w, TARSIER_PART_MODULE, 0, w->args[w->spec.module]);
	if (w->spec.kind == KIND_CAPSET && w->ret == 0)
		part_capset(w, task);
	if (w->spec.kind == KIND_SOCKETCALL)
		part_user_bytes(w, TARSIER_PART_SOCKETCALL, (void *)(__u64)(__u32)w->args[1], 24,
				24);
	return 0;
}

__noinline int event_candidates(struct work *w)
{
	struct tarsier_part *part;
	__u32 n;

	if (!w)
		return 0;
	part = part_begin(w, TARSIER_PART_CANDIDATES, 0);
	if (!part)
		return 0;
	n = w->nundecided;
	if (n > TABLE_UNDECIDED_MAX)
		n = TABLE_UNDECIDED_MAX;
	n *= sizeof(struct tarsier_candidates);
	if (bpf_probe_read_kernel(part + 1, n, w->undecided))
		return 0;
	part_end(w, part, n);
	return 0;
}

static __always_inline void part_kernel_string(struct work *w, __u16 tag, const char *text)
{
	struct tarsier_part *part = part_begin(w, tag, 0);
	long n;

	if (!part)
		return;
	if (w->len > TARSIER_EVENT_MAX - TARSIER_PATH_MAX - 64) {
		event_of(w)->flags |= TARSIER_TRUNCATED;
		return;
	}
	n = bpf_probe_read_kernel_str(frame_at(w, w->len + sizeof(*part)), TARSIER_PATH_MAX, text);
	part_end(w, part, n > 0 ? n - 1 : 0);
}

/* Adds identity of the file that runs, and name of the interpreter: PART_EXEC_FILE. */
static __always_inline void part_exec_file(struct work *w, struct linux_binprm *bprm)
{
	struct tarsier_part *part = part_begin(w, TARSIER_PART_EXEC_FILE, 0);
	struct file *file = LOAD(0, bprm, file);
	__u32 len = sizeof(struct tarsier_inode);
	long n;

	if (!part)
		return;
	if (w->len > TARSIER_EVENT_MAX - TARSIER_PATH_MAX - 64) {
		event_of(w)->flags |= TARSIER_TRUNCATED;
		return;
	}
	inode_facts((struct tarsier_inode *)(part + 1), READ(file, f_inode));
	if (HAS(bprm, interp) && HAS(bprm, filename) && bprm->interp != bprm->filename) {
		n = bpf_probe_read_kernel_str(frame_at(w, w->len + sizeof(*part) + len),
					      TARSIER_PATH_MAX, bprm->interp);
		if (n > 0)
			len += n - 1;
	}
	part_end(w, part, len);
}

struct part_chain {
	struct work *w;
	__u32 flags;
};

static __always_inline void part_executed(struct work *w, __u64 path_at, __u32 index, __u32 flags)
{
	const struct path *path = (const struct path *)path_at;

	if (path)
		walk_path(w, TARSIER_PART_EXECUTED | index << 16 | flags << 24, path_at,
			  (__u64)READ(path, dentry, d_inode), true);
}

STEP(part_chain_step, struct part_chain *all, CHAIN_MAX)
{
	struct chain *c = &all->w->chain;
	__u64 at = c->count - 1 - i;

	if (i >= c->count || at >= CHAIN_MAX)
		return 1;
	asm volatile("%[at] &= %[mask]" : [at] "+r"(at) : [mask] "i"(CHAIN_MAX - 1));
	part_executed(all->w, c->path[at], i & 0xff, all->flags);
	return 0;
}

/* Adds the files of an execve. */
__noinline int event_chain(struct work *w)
{
	struct part_chain all = { .w = w };
	const struct path *image, *loader;
	struct chain *c;

	if (!w)
		return 0;
	find_chain(w);
	c = &w->chain;
	image = (const struct path *)c->image;
	loader = (const struct path *)c->loader;
	all.flags = c->is_all ? 0 : TARSIER_PART_MORE;
	if (c->count)
		REPEAT(part_chain_step, &all);
	part_executed(w, c->kept, TARSIER_EXECUTED_KEPT, all.flags);
	part_executed(w, c->image, TARSIER_EXECUTED_IMAGE, all.flags);
	if (READ(loader, dentry) != READ(image, dentry))
		part_executed(w, c->loader, TARSIER_EXECUTED_LOADER, all.flags);
	return 0;
}

/* Adds the capabilities before and after; the daemon decides whether to make a BPRM_FCAPS. */
static __always_inline void part_fcaps(struct work *w, struct task_struct *task,
				       struct task_note *note)
{
	const struct cred *cred = untrusted(task)->cred;
	struct tarsier_fcaps caps = {};

	if (!CAPABILITIES_ARE_KNOWN)
		return;
	caps.old.inheritable = note->old_caps[0];
	caps.old.permitted = note->old_caps[1];
	caps.old.effective = note->old_caps[2];
	caps.old.ambient = note->old_caps[3];
	caps.old.pid = note->old_uid; /* see struct tarsier_caps */
	caps.new.inheritable = capabilities(&cred->cap_inheritable);
	caps.new.permitted = capabilities(&cred->cap_permitted);
	caps.new.effective = capabilities(&cred->cap_effective);
	caps.new.ambient = capabilities(&cred->cap_ambient);
	part_bytes(w, TARSIER_PART_BPRM_FCAPS, &caps, sizeof(caps));
}

#endif /* TARSIER_PARTS_H */
