/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The object hooks. The calls that rules watch decide which of them are attached
 * (crates/core/abi/src/calls). If a kernel lacks a function, its hook is left
 * out, and the daemon looks up itself what the hook would have noted. A program
 * is named on_FUNCTION or after_FUNCTION. If the arguments of a function differ
 * between kernels, there is a program for each form, with the index of the
 * argument after `__at`; the types of the arguments tell which form a kernel has
 * (crates/kernel/capture/src/attach/vfs_hooks).
 */
#include "base.h"
#include "hook_forms.h"

#define IS_ERR(value) ((value) >= (__u64)-4095)

/* Hooks that note the names that the kernel has read (struct filename). */

#define NAMES_HOOK(function, one, two, first)                           \
	AT_ENTRY(function, )                                            \
	{                                                               \
		struct object_note *note = note_of(OBJECTS_ENTRIES);    \
                                                                        \
		if (!note)                                              \
			return 0;                                       \
		note->first_parent = first;                             \
		note->names = two ? 2 : 1;                              \
		note_name(note, 0, argument(ctx, one, probed));         \
		if (two)                                                \
			note_name(note, 1, argument(ctx, two, probed)); \
		return 0;                                               \
	}

NAMES_HOOK(do_unlinkat, 1, 0, 0)
NAMES_HOOK(do_rmdir, 1, 0, 0)
NAMES_HOOK(do_mkdirat, 1, 0, 0)
NAMES_HOOK(do_mknodat, 1, 0, 0)
NAMES_HOOK(do_renameat2, 1, 3, 0)
NAMES_HOOK(do_linkat, 1, 3, 1)
NAMES_HOOK(do_symlinkat, 0, 2, 1)

/* Linux 7.0 and later call these functions instead of the above. */
NAMES_HOOK(filename_unlinkat, 1, 0, 0)
NAMES_HOOK(filename_rmdir, 1, 0, 0)
NAMES_HOOK(filename_mkdirat, 1, 0, 0)
NAMES_HOOK(filename_mknodat, 1, 0, 0)
NAMES_HOOK(filename_renameat2, 1, 3, 0)
NAMES_HOOK(filename_linkat, 1, 3, 1)
NAMES_HOOK(filename_symlinkat, 0, 2, 1)

/* The directory was found; the last name is about to be looked up in it. */
AT_ENTRY(lookup_one_qstr_excl, )
{
	struct object_note *note = note_of(OBJECTS_ENTRIES);
	__u64 dir;
	__u32 index;

	if (!note)
		return 0;
	dir = argument(ctx, 1, probed);
	index = note->first_parent + note->parents;
	/* Lookups after those of all names of the call are made by a file system for itself. */
	if (index >= note->names)
		return 0;
	if (note_object(note, OBJECT(TARSIER_OBJECT_PARENT, index),
			ADDRESS(note, dentry, dir, d_inode), 0))
		note->parents++;
	return 0;
}

/* The marks of a call. What an operation of a ring has reached is not known when it is matched. */
static __always_inline void note_marks(struct object_note *note, __u64 dentry, __u64 mnt,
				       __u32 parent)
{
	if (!note->operation)
		mark_path(&note->marks, dentry, mnt, parent);
}

/* The marks of an entry that is changed in a directory, given by its struct path. */
static __always_inline void note_change(struct object_note *note, __u64 dir, __u64 dentry)
{
	note_marks(note, dentry, (__u64)READ((const struct path *)dir, mnt), MARK_CHANGED);
}

/* Notes the directory, with the mount through which it was reached, of an entry that is changed. */
static __always_inline void note_directory(struct object_note *note, __u32 index, __u64 dir)
{
	note_struct_path(note, OBJECT(TARSIER_OBJECT_PARENT_PATH, index), dir);
}

#define PARENT_HOOK(function)                                              \
	AT_ENTRY(function, )                                               \
	{                                                                  \
		struct object_note *note = note_of(OBJECTS_ENTRIES);       \
		__u64 dir = argument(ctx, 0, probed);                      \
                                                                           \
		if (!note)                                                 \
			return 0;                                          \
		note_change(note, dir, argument(ctx, 1, probed));          \
		if (!note_passes(note))                                    \
			note_directory(note, note->first_parent & 1, dir); \
		return 0;                                                  \
	}

PARENT_HOOK(security_path_unlink)
PARENT_HOOK(security_path_rmdir)
PARENT_HOOK(security_path_mkdir)
PARENT_HOOK(security_path_mknod)
PARENT_HOOK(security_path_symlink)

AT_ENTRY(security_path_rename, )
{
	struct object_note *note = note_of(OBJECTS_ENTRIES);
	__u64 from, to;

	if (!note)
		return 0;
	from = argument(ctx, 0, probed);
	to = argument(ctx, 2, probed);
	note_change(note, from, argument(ctx, 1, probed));
	note_change(note, to, argument(ctx, 3, probed));
	if (note_passes(note))
		return 0;
	note_directory(note, 0, from);
	note_directory(note, 1, to);
	return 0;
}

/* Both ends of a hard link are on the same mount. */
AT_ENTRY(security_path_link, )
{
	struct object_note *note = note_of(OBJECTS_ENTRIES);
	__u64 dir, mnt, target;

	if (!note)
		return 0;
	target = argument(ctx, 0, probed);
	dir = argument(ctx, 1, probed);
	mnt = (__u64)READ((const struct path *)dir, mnt);
	note_change(note, dir, argument(ctx, 2, probed));
	note_marks(note, target, mnt, 0);
	if (note_passes(note))
		return 0;
	note_directory(note, 1, dir);
	note_where(note, OBJECT(TARSIER_OBJECT_TARGET, 0), target, mnt);
	return 0;
}

#define DELETE_HOOK(function)                                               \
	AT_ENTRY(function, )                                                \
	{                                                                   \
		struct object_note *note = note_of_marked(OBJECTS_ENTRIES); \
		__u64 entry;                                                \
                                                                            \
		if (!note)                                                  \
			return 0;                                           \
		entry = argument(ctx, 2, probed);                           \
		note_entry(note, OBJECT(TARSIER_OBJECT_DELETE, 0), entry,   \
			   ADDRESS(note, dentry, entry, d_inode));          \
		return 0;                                                   \
	}

DELETE_HOOK(vfs_unlink)
DELETE_HOOK(vfs_rmdir)

AT_ENTRY(vfs_rename, )
{
	struct object_note *note = note_of_marked(OBJECTS_ENTRIES);
	struct dentry *dentry;
	struct renamedata *rd;
	struct inode *inode;

	if (!note)
		return 0;
	rd = (struct renamedata *)argument(ctx, 0, probed);
	dentry = READ(rd, old_dentry);
	if (dentry)
		note_entry(note, OBJECT(TARSIER_OBJECT_DELETE, 0), (__u64)dentry,
			   (__u64)READ(dentry, d_inode));
	dentry = READ(rd, new_dentry);
	inode = READ(dentry, d_inode);
	if (inode)
		note_entry(note, OBJECT(TARSIER_OBJECT_DELETE, 1), (__u64)dentry, (__u64)inode);
	return 0;
}

AT_ENTRY(vfs_link, )
{
	struct object_note *note = note_of_marked(OBJECTS_ENTRIES);
	struct dentry *old;

	if (!note)
		return 0;
	old = (struct dentry *)argument(ctx, 0, probed);
	note_entry(note, OBJECT(TARSIER_OBJECT_CREATE, 1), argument(ctx, 3, probed),
		   (__u64)READ(old, d_inode));
	return 0;
}

/* A function creates an entry, which has its inode only when the function returns. */
static __always_inline int entry_begins(__u64 dentry)
{
	struct object_note *note = note_of_marked(OBJECTS_ENTRIES);

	if (note && !note->created)
		note->created = dentry;
	return 0;
}

static __always_inline void note_made(struct object_note *note, __u64 dentry)
{
	note_entry(note, OBJECT(TARSIER_OBJECT_CREATE, note->first_parent & 1), dentry,
		   ADDRESS(note, dentry, dentry, d_inode));
}

/* Stacked file systems also create entries in the layers below, which are ignored. */
#define CREATE_HOOKS(function, suffix, arg)                                 \
	AT_ENTRY(function, suffix)                                          \
	{                                                                   \
		return entry_begins(argument(ctx, arg, probed));            \
	}                                                                   \
	AT_END(function, suffix)                                            \
	{                                                                   \
		struct object_note *note = note_of_marked(OBJECTS_ENTRIES); \
                                                                            \
		if (note && (probed || hooked(ctx, arg) == note->created))  \
			note_made(note, note->created);                     \
		return 0;                                                   \
	}

CREATE_HOOKS(vfs_mknod, , 2)
CREATE_HOOKS(vfs_symlink, , 2)
CREATE_HOOKS(vfs_create, __at1, 1)
CREATE_HOOKS(vfs_create, __at2, 2)

AT_ENTRY(vfs_mkdir, )
{
	return entry_begins(argument(ctx, 2, probed));
}

/*
 * Since 6.15, vfs_mkdir() returns the entry that was created, which need not be
 * the one that was passed to it; if it fails, it has released the latter.
 */
AT_END(vfs_mkdir, )
{
	__u64 dentry = result(ctx, 4, probed);
	struct object_note *note = note_of_marked(OBJECTS_ENTRIES);

	if (!note || (!probed && hooked(ctx, 2) != note->created))
		return 0;
	if (!(dentry >> 32))
		note_made(note, note->created);
	else if (IS_ERR(dentry))
		note_entry(note, OBJECT(TARSIER_OBJECT_CREATE, 0), 0, 0);
	else
		note_made(note, dentry);
	return 0;
}

/* A message queue was created: notes its inode; the name is already known from the call. */
KEEPS(vfs_mkobj, note_of_marked(OBJECTS_ENTRIES), 0, 0, 0)
AT_END(vfs_mkobj, )
{
	struct object_note *note = note_of_marked(OBJECTS_ENTRIES);
	struct dentry *dentry;

	if (!note)
		return 0;
	dentry = (struct dentry *)(probed ? note->kept[0] : hooked(ctx, 0));
	note_entry(note, OBJECT(TARSIER_OBJECT_CREATE, 0), (__u64)dentry,
		   (__u64)READ(dentry, d_inode));
	return 0;
}

/*
 * An open has ended: notes its name, and the file if it succeeded. The path of the file is walked
 * only if a rule selects the call: see part_file() in event_objects(). The daemon uses that path if
 * it is still of the same file.
 */
static __always_inline void opened_file(struct object_note *note, __u64 pathname, __u64 file,
					__u32 open_flag)
{
	__u64 flags = 0, entry, parent;

	/* The end of an earlier call may not have been seen: its gate can ask for the result. */
	if (!note->operation)
		note_clear(note);
	if (TYPE_HAS(open_flags, open_flag) && !note->has_open_flag) {
		note->has_open_flag = 1;
		note->open_flag = open_flag;
	}
	if (file && !IS_ERR(file) && !note->operation) {
		mark_file(&note->marks, file, parent_of_open(open_flag));
		if (note_passes(note))
			return;
	}
	note_name(note, 0, pathname);
	if (!file || IS_ERR(file))
		return;
	if (OF(file, file, f_mode) & FMODE_CREATED)
		flags = OBJECT_FLAGS(TARSIER_PART_CREATED);
	entry = ADDRESS(note, file, file, f_path.dentry);
	if (open_flag & O_CREAT) {
		parent = ADDRESS(note, dentry, entry, d_parent);
		note_object(note, OBJECT(TARSIER_OBJECT_PARENT, 0),
			    ADDRESS(note, dentry, parent, d_inode), 0);
	}
	if (note_object(note, OBJECT(TARSIER_OBJECT_OPENED, 0) | flags,
			ADDRESS(note, file, file, f_inode), 0) &&
	    note->operation)
		note_path(note, entry, ADDRESS(note, file, file, f_path.mnt));
}

static __always_inline struct object_note *note_of_open(__u64 file, __u32 open_flag)
{
	bool opened = file && !IS_ERR(file);

	return note_of_either(OBJECTS_OPEN, opened && !(open_flag & O_ACCMODE)
						    ? OBJECTS_OPEN
						    : OBJECTS_OPEN_CHANGES);
}

/* Since 7.0, the function is also called for a name that could not be read; nothing is noted then. */
static __always_inline int open_ended(void *ctx)
{
	struct open_flags *how = (struct open_flags *)hooked(ctx, 2);
	__u32 open_flag = HAS(how, open_flag) ? OF(open_flags, how, open_flag) : O_ACCMODE;
	__u64 file = result(ctx, 3, false), pathname = hooked(ctx, 1);
	struct object_note *note;

	if (IS_ERR(pathname))
		return 0;
	note = note_of_open(file, open_flag);
	if (note)
		opened_file(note, pathname, file, open_flag);
	return 0;
}

/* The result is not known yet: at the end, note_of_open() decides whether the note is needed. */
static __always_inline int open_begins(void *ctx)
{
	struct object_note *note = note_of_either(OBJECTS_OPEN, OBJECTS_OPEN_CHANGES);
	struct open_flags *how = (struct open_flags *)probe_argument(ctx, 2);

	if (!note)
		return 0;
	note->kept[0] = probe_argument(ctx, 1);
	note->kept[1] = READ_OR(O_ACCMODE, how, open_flag);
	return 0;
}

static __always_inline int probed_open_ended(void *ctx)
{
	struct object_note *note = note_of_either(OBJECTS_OPEN, OBJECTS_OPEN_CHANGES);
	__u64 file = probe_result(ctx);

	if (!note || !note->kept[0] || IS_ERR(note->kept[0]))
		return 0;
	if (note_of_open(file, note->kept[1]))
		opened_file(note, note->kept[0], file, note->kept[1]);
	else
		note->open = 0;
	note->kept[0] = 0;
	return 0;
}

#define OPEN_HOOKS(function)                                      \
	SEC("fexit/" #function) int after_##function(void *ctx)   \
	{                                                         \
		return open_ended(ctx);                           \
	}                                                         \
	SEC("kprobe.multi") int probe_on_##function(void *ctx)    \
	{                                                         \
		return open_begins(ctx);                          \
	}                                                         \
	SEC("kprobe.multi") int probe_after_##function(void *ctx) \
	{                                                         \
		return probed_open_ended(ctx);                    \
	}

OPEN_HOOKS(do_filp_open)
/* Linux 7.0 and later call this function instead of do_filp_open(). */
OPEN_HOOKS(do_file_open)

/* Hooks of calls that act on the object a path leads to. */
#define TARGET_HOOK(function)                                                           \
	AT_ENTRY(function, )                                                            \
	{                                                                               \
		struct object_note *note = note_of(OBJECTS_LOOKUP);                     \
		__u64 path = argument(ctx, 0, probed);                                  \
                                                                                        \
		if (!note)                                                              \
			return 0;                                                       \
		note_marks(note, (__u64)READ((const struct path *)path, dentry),        \
			   (__u64)READ((const struct path *)path, mnt), 0);             \
		if (!note_passes(note))                                                 \
			note_struct_path(note, OBJECT(TARSIER_OBJECT_TARGET, 0), path); \
		return 0;                                                               \
	}

TARGET_HOOK(security_path_chmod)
TARGET_HOOK(security_path_chown)
TARGET_HOOK(vfs_truncate)
TARGET_HOOK(vfs_utimes)

AT_ENTRY(security_sb_mount, )
{
	struct object_note *note = note_of(OBJECTS_MOUNT);

	if (note)
		note_struct_path(note, OBJECT(TARSIER_OBJECT_TARGET, 0), argument(ctx, 1, probed));
	return 0;
}

/* As TARGET_HOOK, for functions without the mount: any mount of the file system will do. */
#define ENTRY_HOOK(function, arg)                                          \
	AT_ENTRY(function, )                                               \
	{                                                                  \
		struct object_note *note = note_of(OBJECTS_LOOKUP);        \
                                                                           \
		if (note)                                                  \
			note_where(note, OBJECT(TARSIER_OBJECT_TARGET, 0), \
				   argument(ctx, arg, probed), 0);         \
		return 0;                                                  \
	}

ENTRY_HOOK(security_inode_setxattr, 1)
ENTRY_HOOK(security_inode_removexattr, 1)
ENTRY_HOOK(security_inode_getxattr, 0)
ENTRY_HOOK(security_inode_listxattr, 0)
ENTRY_HOOK(security_inode_readlink, 0)
ENTRY_HOOK(security_inode_file_getattr, 0)
ENTRY_HOOK(security_inode_file_setattr, 0)

AT_ENTRY(security_sb_umount, )
{
	struct object_note *note = note_of(OBJECTS_MOUNT);
	struct vfsmount *mnt;

	if (!note)
		return 0;
	mnt = (struct vfsmount *)argument(ctx, 0, probed);
	note_where(note, OBJECT(TARSIER_OBJECT_TARGET, 0), (__u64)READ(mnt, mnt_root), (__u64)mnt);
	return 0;
}

AT_ENTRY(security_move_mount, )
{
	struct object_note *note = note_of(OBJECTS_MOUNT);

	if (!note)
		return 0;
	note_struct_path(note, OBJECT(TARSIER_OBJECT_TARGET, 0), argument(ctx, 0, probed));
	note_struct_path(note, OBJECT(TARSIER_OBJECT_TARGET, 1), argument(ctx, 1, probed));
	return 0;
}

#define DIRECTORY_HOOK(function)                                         \
	AT_ENTRY(function, )                                             \
	{                                                                \
		struct object_note *note = note_of(OBJECTS_DIRECTORY);   \
                                                                         \
		if (!note)                                               \
			return 0;                                        \
		note_cwd(note);                                          \
		note_struct_path(note, OBJECT(TARSIER_OBJECT_TARGET, 0), \
				 argument(ctx, 1, probed));              \
		return 0;                                                \
	}

DIRECTORY_HOOK(set_fs_pwd)
DIRECTORY_HOOK(set_fs_root)

AT_ENTRY(security_sb_pivotroot, )
{
	struct object_note *note = note_of(OBJECTS_DIRECTORY);

	if (!note)
		return 0;
	note_cwd(note);
	note_struct_path(note, OBJECT(TARSIER_OBJECT_TARGET, 0), argument(ctx, 1, probed));
	note_struct_path(note, OBJECT(TARSIER_OBJECT_TARGET, 1), argument(ctx, 0, probed));
	return 0;
}

static __always_inline void note_address(struct object_note *note, __u64 address, __u32 len)
{
	if (len > sizeof(note->address))
		len = sizeof(note->address);
	if (bpf_probe_read_kernel(note->address, len, (void *)address))
		len = 0;
	note->address_len = len;
}

/* A socket address that the kernel has copied from user space. */
KEEPS(move_addr_to_kernel, note_of(OBJECTS_ADDRESS), 2, 1, 0)
AT_END(move_addr_to_kernel, )
{
	struct object_note *note = note_of(OBJECTS_ADDRESS);

	if (!note || (__s32)result(ctx, 3, probed))
		return 0;
	if (probed)
		note_address(note, note->kept[0], note->kept[1]);
	else
		note_address(note, hooked(ctx, 2), hooked(ctx, 1));
	return 0;
}

/*
 * The address of an io_uring operation, which may have been copied at its submission: the functions have the socket, the
 * address and its length.
 */
#define ADDRESS_HOOK(function)                                                                  \
	AT_ENTRY(function, )                                                                    \
	{                                                                                       \
		struct object_note *note =                                                      \
			note_of_operation(bpf_get_current_task_btf(), OBJECTS_ADDRESS);         \
                                                                                                \
		if (note)                                                                       \
			note_address(note, argument(ctx, 1, probed), argument(ctx, 2, probed)); \
		return 0;                                                                       \
	}

ADDRESS_HOOK(security_socket_bind)
ADDRESS_HOOK(security_socket_connect)

/* A socket address that the kernel is about to copy to user space. */
AT_ENTRY(move_addr_to_user, )
{
	struct object_note *note = note_of(OBJECTS_ADDRESS);

	if (note)
		note_address(note, argument(ctx, 0, probed), argument(ctx, 1, probed));
	return 0;
}

/* A target of a signal; a call may have many. */
AT_ENTRY(audit_signal_info, )
{
	struct object_note *note = note_of(OBJECTS_SIGNAL);
	struct tarsier_obj_pid *target;
	struct task_struct *task;
	struct tarsier_part *part;

	if (!note)
		return 0;
	if (note->len > NOTE_BYTES - 256) {
		note->cut = 1;
		return 0;
	}
	task = (struct task_struct *)argument(ctx, 1, probed);
	part = note_at(note, note->len);
	target = (struct tarsier_obj_pid *)(part + 1);
	part->tag = TARSIER_PART_OBJ_PID;
	part->index = 0;
	part->flags = 0;
	part->len = sizeof(*target);
	target->pid = READ(task, tgid);
	target->auid = READ(task, loginuid.val);
	target->ses = READ(task, sessionid);
	target->uid = READ(task, cred, uid.val);
	if (HAS(task, comm))
		bpf_probe_read_kernel(target->comm, sizeof(target->comm), task->comm);
	else
		target->comm[0] = 0;
	note->len += sizeof(*part) + sizeof(*target);
	note->count++;
	return 0;
}
