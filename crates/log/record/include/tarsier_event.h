/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The only definition of the wire layout between Tarsier's BPF programs and its
 * user space. Rust uses bindings that are generated from this file.
 *
 * A ring holds frames. Every frame starts with struct tarsier_frame and is
 * `size` bytes long, a multiple of 8. An EVENT frame is a struct tarsier_event
 * followed by parts. A CHUNK frame carries a slice of the arguments of an
 * execve, and comes before the EVENT frame with the same `id` in the same ring.
 * A RESULT frame carries the result of an earlier EVENT. A CGROUP frame tells what
 * became of a cgroup, a PROCESS frame what became of a process. All integers are
 * in the byte order of the host.
 */
#ifndef TARSIER_EVENT_H
#define TARSIER_EVENT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define TARSIER_WIRE_VERSION 3

#define TARSIER_COMM_LEN 16
#define TARSIER_TTY_LEN 32
#define TARSIER_NO_RULE 0xffffffffU
/* The longest text of a part: PATH_MAX, which is also the limit of getname(). */
#define TARSIER_PATH_MAX 4096
/* The most bytes of a chunk. */
#define TARSIER_CHUNK_MAX 16384
/* The most bytes of arguments of an event. execve allows 6 MiB: bprm_stack_limits(), fs/exec.c. */
#define TARSIER_ARGUMENTS_MAX (8 << 20)
/* The most supplementary groups that gid= and egid= check: NGROUPS_MAX. */
#define TARSIER_GROUPS_MAX 65536
/* The most bytes of the command line in PROCTITLE: MAX_PROCTITLE_AUDIT_LEN. */
#define TARSIER_PROCTITLE_MAX 128
/* The most bytes of a structure that is copied as it is. */
#define TARSIER_MEMORY_MAX 64
/* The number of values in a TIME part. */
#define TARSIER_TIME_VALUES 14
/* The most events that wait for their results at the same time. */
#define TARSIER_PENDING_MAX 65536
/* Largest EVENT frame, apart from the end of a part that begins before this. */
#define TARSIER_EVENT_MAX 65536
/* Every frame is smaller than this: the smallest ring. */
#define TARSIER_RING_MIN (128 << 10)

enum tarsier_frame_kind {
	TARSIER_FRAME_EVENT = 1,
	TARSIER_FRAME_CHUNK = 2,
	TARSIER_FRAME_RESULT = 3,
	TARSIER_FRAME_CGROUP = 4,
	/* A canary call was seen (struct tarsier_frame alone): the id is its second argument. */
	TARSIER_FRAME_CANARY = 5,
	TARSIER_FRAME_PROCESS = 6,
};

/* tarsier_event.flags */
enum tarsier_event_flags {
	/* The call does not return (exit, exit_group): no success= and exit=. */
	TARSIER_NO_RETURN = 1 << 0,
	/* The call came through a 32-bit entry point. */
	TARSIER_COMPAT = 1 << 1,
	/* Some rules can only be decided by the names of the event: see PART_CANDIDATES. */
	TARSIER_UNDECIDED = 1 << 2,
	/* Something did not fit and is missing or was cut: a part, or arguments. */
	TARSIER_TRUNCATED = 1 << 3,
	/* An io_uring operation (nr is the opcode), not a system call. */
	TARSIER_URING = 1 << 4,
	/* The arguments were read at the entry of the call (execve clears them). */
	TARSIER_ENTRY_ARGS = 1 << 5,
	/* The result comes in a RESULT frame with the same id. */
	TARSIER_PENDING = 1 << 6,
	/* With PENDING: no RESULT frame may be sent if the operation succeeds. */
	TARSIER_SILENT = 1 << 7,
};

struct tarsier_frame {
	__u32 size; /* of the whole frame, in bytes; a multiple of 8 */
	__u16 kind; /* enum tarsier_frame_kind */
	__u16 version; /* TARSIER_WIRE_VERSION */
	__u64 id; /* of the event; unique while this set of programs is loaded */
	__u64 time_ns; /* when the hook ran, CLOCK_MONOTONIC */
};

/* Identity of a file-system object, as audit prints it. */
struct tarsier_inode {
	__u64 ino;
	__u32 dev; /* kernel encoding: major << 20 | minor */
	__u32 rdev; /* in the same encoding */
	__u32 mode;
	__u32 uid; /* ids as the initial user namespace sees them */
	__u32 gid;
	/* 0: no such object was found; otherwise VALID, and the number of its SELinux label << 1 (0: not
	 * known) */
	__u32 valid;
};

#define TARSIER_INODE_VALID 1

struct tarsier_event {
	struct tarsier_frame frame;
	__u64 generation; /* of the rule set that selected the event */
	__u32 rule; /* winning rule (position in the rule set), or TARSIER_NO_RULE */
	__u32 flags; /* enum tarsier_event_flags */
	__u32 cpu;
	__u32 parts; /* number of parts that follow */

	__u32 arch; /* AUDIT_ARCH_* */
	__s32 nr; /* system call number, as user space passed it */
	__s64 exit; /* result as the kernel returned it, ERESTART* included */
	__u64 args[6];

	__u64 start_time_ns; /* of the thread group leader, CLOCK_BOOTTIME */
	__u64 cgroup_id;
	__u32 pid; /* thread group id: what audit calls pid */
	__u32 tid;
	__u32 ppid; /* thread group id of the real parent */
	__u32 auid;
	__u32 ses;
	__u32 uid, gid, euid, suid, fsuid, egid, sgid, fsgid;
	__u32 personality;
	__u32 chunks; /* CHUNK frames that belong to this event */
	__u32 mnt_ns; /* inode number of the mount namespace */
	char comm[TARSIER_COMM_LEN];
	char tty[TARSIER_TTY_LEN]; /* empty: no terminal */
	struct tarsier_inode exe; /* valid = 0: no executable (kernel thread) */
};

/*
 * A part: header, then `len` bytes, then padding to a multiple of 8.
 *
 * Paths made of directory entries (EXE, CWD, DIR, FILE) are "walked": they
 * consist of the names from the entry up to the root, each ended by NUL, so
 * that /usr/bin is "bin\0usr\0". An empty walk is the root itself.
 */
struct tarsier_part {
	__u16 tag; /* enum tarsier_part_tag */
	__u8 index; /* of the path argument, 0 or 1; otherwise 0 */
	__u8 flags; /* enum tarsier_part_flags */
	__u32 len; /* of the data, in bytes */
};

enum tarsier_part_tag {
	/* walked path of the executable */
	TARSIER_PART_EXE = 1,
	/* walked path of the current directory */
	TARSIER_PART_CWD = 2,
	/* path argument `index` as user space passed it, without NUL; in a PROCESS frame, the script that
	 * the process executes */
	TARSIER_PART_PATH = 3,
	/* struct tarsier_inode, then the walked path of the directory that path
	 * argument `index` is relative to, when that is not the cwd */
	TARSIER_PART_DIR = 4,
	/* struct tarsier_inode, then the walked path of the file that the call
	 * opened (index 0) or that a descriptor argument refers to (index 1) */
	TARSIER_PART_FILE = 5,
	/* bytes of a struct sockaddr, of the length that user space passed; index 1: that of a message of
	 * sendmmsg(2), one of several */
	TARSIER_PART_SOCKADDR = 6,
	/* start of the command line, at most TARSIER_PROCTITLE_MAX bytes */
	TARSIER_PART_PROCTITLE = 7,
	/* __u64 len, argc: bytes and number of the arguments of a successful execve,
	 * which are in CHUNK frames; argc 0: not known */
	TARSIER_PART_ARGUMENTS = 8,
	/* __s32 fd0, fd1 */
	TARSIER_PART_FD_PAIR = 9,
	/* struct tarsier_obj_pid */
	TARSIER_PART_OBJ_PID = 10,
	/* struct tarsier_caps: after a successful capset */
	TARSIER_PART_CAPSET = 11,
	/* struct tarsier_fcaps: capabilities before and after a successful execve;
	 * those of the file are left zero */
	TARSIER_PART_BPRM_FCAPS = 12,
	/* name of the module, without NUL */
	TARSIER_PART_MODULE = 13,
	/* struct open_how: flags, mode, resolve, each __u64, as user memory has it
	 * after the call; see PART_OPENED */
	TARSIER_PART_OPEN_HOW = 14,
	/* struct tarsier_candidates[] */
	TARSIER_PART_CANDIDATES = 15,
	/* struct tarsier_inode of the file that runs: the one named by execve or,
	 * for a script, its interpreter; then the name of that interpreter */
	TARSIER_PART_EXEC_FILE = 16,
	/* struct tarsier_inode of the current directory */
	TARSIER_PART_CWD_INODE = 17,
	/* walked path of the root directory, if it is not the root of the mount
	 * namespace */
	TARSIER_PART_ROOT = 18,
	/* __u32[6]: the arguments that a 32-bit socketcall points to; if it has
	 * fewer, the memory that follows them */
	TARSIER_PART_SOCKETCALL = 19,
	/* struct tarsier_object, then `name_len` bytes of name, then a walked
	 * path: an object that the call itself found, taken from kernel objects
	 * while it ran; `index` is that of the path argument it belongs to */
	TARSIER_PART_OBJECT = 20,
	/* struct tarsier_ipc: the System V object of the call */
	TARSIER_PART_IPC = 21,
	/* struct tarsier_ipc_perm: the permissions that IPC_SET requests */
	TARSIER_PART_IPC_SET_PERM = 22,
	/* a structure that an argument points to, at most TARSIER_MEMORY_MAX bytes */
	TARSIER_PART_MEMORY = 23,
	/* __s64[TARSIER_TIME_VALUES]: by how much the call moved the clock, in
	 * seconds and nanoseconds; then the old and new value of each parameter,
	 * in the order of enum audit_ntp_type */
	TARSIER_PART_TIME = 24,
	/* pairs of __u64: inode number and device of directories of a file system
	 * of which a mount shows only a part: the highest directory that is shown,
	 * and all directories above it. One part for each path of the call that
	 * leads through such a mount. CUT: there are more above them */
	TARSIER_PART_ABOVE = 25,
	/* __u32 flags, known: with OPEN_HOW, the flags that the kernel used, and
	 * those bits of them that are known; the others are 0 */
	TARSIER_PART_OPENED = 26,
	/* __u32: id of the BPF program that the call has loaded */
	TARSIER_PART_PROGRAM = 27,
	/* struct tarsier_found: what path argument `index` led to when the call was over */
	TARSIER_PART_FOUND = 28,
	/* struct tarsier_inode, then a walked path: a file that an execve has opened. The first one,
	 * and the interpreters of scripts, have the indexes from 0 on in this order; for others
	 * `index` is an enum tarsier_executed */
	TARSIER_PART_EXECUTED = 29,
	/* struct tarsier_alias, then a name: another entry of an object that an undecided call has reached;
	 * rules name that entry, but need not have its object yet */
	TARSIER_PART_ALIAS = 30,
	/* __u32: number of the SELinux label of the task, in the call */
	TARSIER_PART_SUBJECT = 31,
};

/* The index of an EXECUTED part that is not a script. */
enum tarsier_executed {
	/* a file that the kernel has kept open for an interpreter of binfmt_misc */
	TARSIER_EXECUTED_KEPT = 64,
	/* what runs */
	TARSIER_EXECUTED_IMAGE = 65,
	/* the loader of what runs */
	TARSIER_EXECUTED_LOADER = 66,
};

enum tarsier_part_flags {
	/* user memory could not be read: the call failed with EFAULT, or the page
	 * was not present */
	TARSIER_PART_UNREADABLE = 1 << 0,
	/* the data was too long and was cut */
	TARSIER_PART_CUT = 1 << 1,
	/* the entry was unlinked: audit adds " (deleted)" */
	TARSIER_PART_DELETED = 1 << 2,
	/* the walk did not end at the root of the mount namespace */
	TARSIER_PART_UNREACHABLE = 1 << 3,
	/* the call created the file (FMODE_CREATED) */
	TARSIER_PART_CREATED = 1 << 4,
	/* FOUND: what the argument led to when the call began; the target is that of the descriptor of a
	 * call that has no path */
	TARSIER_PART_BEFORE = 1 << 5,
	/* FILE: found by a number that may stand for another file when the call uses it, or has ended:
	 * other tasks share the descriptors, or it is that of an io_uring operation */
	TARSIER_PART_UNSURE = 1 << 6,
	/* FILE that is UNSURE: it is held by more than this descriptor, so it was opened before */
	TARSIER_PART_HELD = 1 << 7,
	/* SOCKADDR: the kernel may have used another address, the path of a UNIX socket */
	TARSIER_PART_OTHER_USED = 1 << 7,
	/* EXECUTED: the call may have opened other files, too. ALIAS: rules may name other entries of the
	 * object, too; the part may be without a name */
	TARSIER_PART_MORE = 1 << 6,
};

/* The role of an object in the call. */
enum tarsier_object_role {
	/* the path argument as the kernel read it; without an object */
	TARSIER_OBJECT_NAME = 1,
	/* directory that contains, or would contain, the last name of the argument */
	TARSIER_OBJECT_PARENT = 2,
	/* as PARENT, with the walked path of the directory */
	TARSIER_OBJECT_PARENT_PATH = 3,
	/* entry that is removed; the name is its last component */
	TARSIER_OBJECT_DELETE = 4,
	/* entry that is created; without inode if the call failed to create it */
	TARSIER_OBJECT_CREATE = 5,
	/* object that the argument leads to, with its walked path */
	TARSIER_OBJECT_TARGET = 6,
	/* the file that was opened; for an operation, with its walked path */
	TARSIER_OBJECT_OPENED = 7,
	/* current directory before the call changed it, with its walked path */
	TARSIER_OBJECT_CWD = 8,
	TARSIER_OBJECT_ROLES = 9,
};

struct tarsier_object {
	struct tarsier_inode inode;
	__u32 role; /* enum tarsier_object_role */
	__u32 name_len;
};

/* Bits of tarsier_found.known: facts that are known of a path argument. */
enum tarsier_found_what {
	/* the directory that contains, or would contain, the last name */
	TARSIER_FOUND_PARENT = 1 << 0,
	/* what the last name stands for, if symbolic links are not followed */
	TARSIER_FOUND_ENTRY = 1 << 1,
	/* the directory has no entry with the last name */
	TARSIER_FOUND_NO_ENTRY = 1 << 2,
	/* what the last name stands for, if they are followed */
	TARSIER_FOUND_TARGET = 1 << 3,
	/* what the last mount on the entry is on; the entry itself if there is none */
	TARSIER_FOUND_COVERED = 1 << 4,
	/* the kernel's cache has no entry with the last name; there may be one */
	TARSIER_FOUND_NOT_CACHED = 1 << 5,
	/* neither a symbolic link nor .. leads to the directory */
	TARSIER_FOUND_DIRECT = 1 << 6,
	/* ABOVE has all directories of the file system that are above what was found */
	TARSIER_FOUND_ABOVE = 1 << 7,
	/* a directory on the way there is missing */
	TARSIER_FOUND_MISSING = 1 << 8,
	/* the modes of all directories on the way let the task search them */
	TARSIER_FOUND_SEARCHABLE = 1 << 9,
	/* the mode of the parent lets the task change its entries */
	TARSIER_FOUND_WRITABLE = 1 << 10,
	/* the mode of a directory on the way does not let the task search it */
	TARSIER_FOUND_BARRED = 1 << 11,
};

/* An entry of an object, without its name. */
struct tarsier_alias {
	struct tarsier_inode object;
	struct tarsier_inode directory;
};

struct tarsier_found {
	__u32 known; /* enum tarsier_found_what */
	__u32 reserved;
	struct tarsier_inode parent, entry, target, covered;
};

struct tarsier_ipc {
	__u32 uid, gid;
	__u32 mode;
	__u32 reserved;
};

struct tarsier_ipc_perm {
	__u64 qbytes;
	__u32 uid, gid;
	__u32 mode;
	__u32 reserved;
};

struct tarsier_obj_pid {
	__u32 pid;
	__u32 auid;
	__u32 uid;
	__u32 ses;
	char comm[TARSIER_COMM_LEN];
};

struct tarsier_caps {
	__u32 pid; /* in tarsier_fcaps.old: the real user id before the execve */
	__u32 reserved;
	__u64 inheritable, permitted, effective, ambient;
};

struct tarsier_fcaps {
	__u64 file_permitted, file_inheritable;
	__u32 file_effective, file_version;
	struct tarsier_caps old, new;
	__u32 file_rootid, reserved;
};

/* The rules of one page of 64 that may still be the first match. */
struct tarsier_candidates {
	__u32 page; /* rules page * 64 … page * 64 + 63 of the candidate list */
	__u32 list; /* number of the candidate list in the tables */
	__u64 mask;
};

/*
 * CHUNK frame: frame.id is that of the event. The data of an event's chunks are its arguments, each
 * ended by NUL. Memory that could not be read is in no chunk.
 */
struct tarsier_chunk {
	struct tarsier_frame frame;
	__u64 at; /* place of the data in the arguments, in bytes */
	__u32 seq; /* 0, 1, 2, … */
	__u32 len; /* of the data that follows, in bytes */
};

/* tarsier_result.flags */
enum tarsier_result_flags {
	/* More results of the same operation follow (multishot). */
	TARSIER_RESULT_MORE = 1 << 0,
	/* Success is assumed: operations of this kind post no completion when they
	 * succeed, and the request was reused without a failure having been seen. */
	TARSIER_RESULT_ASSUMED = 1 << 1,
	/* The operation is over, but its completion was not seen. */
	TARSIER_RESULT_UNKNOWN = 1 << 2,
};

/*
 * RESULT frame: the result of the PENDING event with the same id. It comes
 * later, perhaps in the ring of another CPU. The struct is followed by parts
 * that belong to the event.
 */
struct tarsier_result {
	struct tarsier_frame frame;
	__s64 exit;
	__u32 flags; /* enum tarsier_result_flags */
	__u32 parts; /* number of parts that follow */
};

/*
 * CGROUP frame: a cgroup of the cgroup2 hierarchy was made or removed. Its time is before that of
 * every event of a task in a cgroup that was made; tarsier_event.cgroup_id is read before the time
 * of the event. Ids are never used again. frame.id is 0. The struct is followed by `len` bytes of
 * the name, then padding to a multiple of 8.
 */
enum tarsier_cgroup_flags {
	TARSIER_CGROUP_REMOVED = 1, /* it was removed; otherwise it was made */
	/* nobody but root could write to the directory that it is in, and so choose its name */
	TARSIER_CGROUP_OF_ROOT = 2,
};

struct tarsier_cgroup {
	struct tarsier_frame frame;
	__u64 id;
	__u64 parent; /* id of the cgroup that it is in */
	__u32 cpu; /* at the same place as in tarsier_event */
	__u16 len; /* at most NAME_MAX */
	__u16 flags; /* enum tarsier_cgroup_flags */
};

/* tarsier_process.change */
enum tarsier_process_change {
	/* fork, vfork, clone or clone3 has made it */
	TARSIER_PROCESS_MADE = 1,
	/* it runs another program; with the parts EXE, EXEC_FILE and PROCTITLE and, if it is a script, PATH
	 * and, if that is relative, CWD */
	TARSIER_PROCESS_EXECUTED = 2,
	/* its last thread has begun to end; late events of other threads may follow */
	TARSIER_PROCESS_ENDED = 3,
	/* it is there: an answer to the daemon, in no ring; with the parts EXE and EXEC_FILE */
	TARSIER_PROCESS_FOUND = 4,
	/* as FOUND: it is a thread of the kernel */
	TARSIER_PROCESS_KERNEL = 5,
	/* as FOUND: the daemon comes from it. It may come twice, since the daemon's pid namespace shows
	 * it, or not */
	TARSIER_PROCESS_ABOVE = 6,
};

/*
 * PROCESS frame: the life of a process. Frames of a process are in order, and its MADE frame comes
 * before its first event. frame.id is 0. The struct is followed by parts. Parts are made by the same
 * functions as those of events, so that what they use has the same place as in tarsier_event.
 */
struct tarsier_process {
	struct tarsier_frame frame;
	__u64 start_time_ns; /* of the thread group leader, as in tarsier_event */
	__u32 pid;
	__u32 flags; /* enum tarsier_event_flags */
	__u32 cpu;
	__u32 parts; /* number of parts that follow */
	/* Changes with each execve; fork copies it. Of a new process it is that of its maker. */
	__u64 image;
	__u64 maker_start_ns; /* with MADE, of the process that made it; with FOUND, of its parent */
	__u32 maker; /* pid of that process */
	__u32 change; /* enum tarsier_process_change */
};

/* Why an event was lost: the index of the per-CPU counter. */
enum tarsier_loss {
	TARSIER_LOSS_RING_FULL = 0, /* the ring of this CPU was full */
	TARSIER_LOSS_TOO_BIG = 1, /* the frame was larger than the ring */
	TARSIER_LOSS_NO_MEMORY = 2, /* no memory to note an execve or an operation */
	TARSIER_LOSS_OVER_SHARE =
		3, /* the ring was filling up, and its uid had used up its share */
	TARSIER_LOSS_BUSY = 4, /* too many calls in progress on one CPU */
	TARSIER_LOSS_CAUSES = 5,
};

#endif /* TARSIER_EVENT_H */
