/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Arguments and names of io_uring operations. They are read from the request that
 * the kernel has prepared: copies that no other thread can change.
 */
#ifndef TARSIER_URING_ARGS_H
#define TARSIER_URING_ARGS_H

#include "base.h"
#include "emit.h"

/* enum io_uring_op */
enum uring_op {
	OP_READV = 1,
	OP_WRITEV = 2,
	OP_READ_FIXED = 4,
	OP_WRITE_FIXED = 5,
	OP_SENDMSG = 9,
	OP_RECVMSG = 10,
	OP_ACCEPT = 13,
	OP_CONNECT = 16,
	OP_OPENAT = 18,
	OP_CLOSE = 19,
	OP_STATX = 21,
	OP_READ = 22,
	OP_WRITE = 23,
	OP_SEND = 26,
	OP_RECV = 27,
	OP_OPENAT2 = 28,
	OP_SPLICE = 30,
	OP_TEE = 33,
	OP_RENAMEAT = 35,
	OP_UNLINKAT = 36,
	OP_MKDIRAT = 37,
	OP_SYMLINKAT = 38,
	OP_LINKAT = 39,
	OP_SETXATTR = 42,
	OP_GETXATTR = 44,
	OP_SOCKET = 45,
	OP_URING_CMD = 46,
	OP_SEND_ZC = 47,
	OP_SENDMSG_ZC = 48,
	OP_URING_CMD128 = 64,
	/* Added to the number of a command on a socket: see abi::uring_opcode(). */
	OP_SOCKET_COMMAND = 128,
	OP_GETSOCKOPT = OP_SOCKET_COMMAND + 2,
	OP_SETSOCKOPT = OP_SOCKET_COMMAND + 3,
	OP_GETSOCKNAME = OP_SOCKET_COMMAND + 5,
};

/*
 * The number of the operation in the tables. Whether the file is a socket is not asked: its
 * descriptor may stand for another one when the command is carried out.
 */
static __always_inline __u32 uring_number(struct io_kiocb *req, __u32 op)
{
	struct io_uring_cmd *command = (struct io_uring_cmd *)req;
	__u32 number;

	if ((op != OP_URING_CMD && op != OP_URING_CMD128) || !HAS(command, cmd_op))
		return op;
	number = OP_SOCKET_COMMAND + READ(command, cmd_op);
	if (number == OP_GETSOCKOPT || number == OP_SETSOCKOPT || number == OP_GETSOCKNAME)
		return number;
	return op;
}

/* The names of an operation, as kernel copies, and the directories they are relative to. */
struct uring_names {
	struct filename *name[2];
	__s32 dir[2];
};

/* A descriptor; -1, which no file has, if the kernel lacks the member. */
#define READ_FD(src, ...) READ_OR(-1, src, __VA_ARGS__)

/* A name of an operation. The member has two forms, depending on the kernel. */
#define URING_NAME(type, req, member)                                         \
	({                                                                    \
		struct type *plain_ = (struct type *)(req);                   \
		struct type##___delayed *delayed_ = (void *)(req);            \
		struct filename *name_ = 0;                                   \
                                                                              \
		if (HAS(plain_, member))                                      \
			name_ = READ(plain_, member);                         \
		else                                                          \
			name_ = READ(delayed_, member.__incomplete_filename); \
		name_;                                                        \
	})

static __always_inline void uring_open_args(struct work *w, struct uring_names *names,
					    struct io_open *open)
{
	names->name[0] = URING_NAME(io_open, open, filename);
	names->dir[0] = READ_FD(open, dfd);
	w->args[0] = names->dir[0];
	w->args[2] = READ(open, how.flags);
	w->args[3] = READ(open, how.mode);
}

static __always_inline void uring_two_names(struct work *w, struct uring_names *names,
					    struct io_rename *rename)
{
	names->name[0] = URING_NAME(io_rename, rename, oldpath);
	names->name[1] = URING_NAME(io_rename, rename, newpath);
	names->dir[0] = READ_FD(rename, old_dfd);
	names->dir[1] = READ_FD(rename, new_dfd);
	w->args[2] = names->dir[1];
}

static __always_inline void uring_net_args(struct work *w, struct io_kiocb *req, __u32 op)
{
	struct io_connect *connect = (struct io_connect *)req;
	struct io_sr_msg *message = (struct io_sr_msg *)req;
	struct io_socket *made = (struct io_socket *)req;
	struct io_uring_cmd *command = (struct io_uring_cmd *)req;
	const struct io_uring_sqe *sqe;

	switch (op) {
	case OP_GETSOCKOPT:
	case OP_SETSOCKOPT:
		if (!HAS(command, sqe))
			break;
		sqe = READ(command, sqe);
		w->args[1] = READ(sqe, level);
		w->args[2] = READ(sqe, optname);
		w->args[3] = READ(sqe, optval);
		break;
	case OP_CONNECT:
		w->args[1] = (__u64)READ(connect, addr);
		w->args[2] = READ(connect, addr_len);
		break;
	case OP_SENDMSG:
	case OP_SENDMSG_ZC:
	case OP_RECVMSG:
		w->args[1] = (__u64)READ(message, umsg);
		w->args[2] = READ(message, msg_flags);
		break;
	case OP_SEND:
	case OP_SEND_ZC:
		if (HAS(message, addr)) {
			w->args[4] = (__u64)READ(message, addr);
			w->args[5] = READ(message, addr_len);
		}
		/* fall through */
	case OP_RECV:
		w->args[1] = (__u64)READ(message, umsg);
		w->args[2] = READ(message, len);
		w->args[3] = READ(message, msg_flags);
		break;
	case OP_SOCKET:
		w->args[0] = READ(made, domain);
		w->args[1] = READ(made, type);
		w->args[2] = READ(made, protocol);
		break;
	}
}

static __always_inline void uring_file_args(struct work *w, struct uring_names *names,
					    struct io_kiocb *req, __u32 op)
{
	struct io_unlink *unlink = (struct io_unlink *)req;
	struct io_mkdir *mkdir = (struct io_mkdir *)req;
	struct io_xattr *xattr = (struct io_xattr *)req;
	struct io_rename *rename = (struct io_rename *)req;
	struct io_link *link = (struct io_link *)req;
	struct io_statx *statx = (struct io_statx *)req;

	switch (op) {
	case OP_UNLINKAT:
		names->name[0] = URING_NAME(io_unlink, unlink, filename);
		names->dir[0] = READ_FD(unlink, dfd);
		w->args[2] = READ(unlink, flags);
		break;
	case OP_MKDIRAT:
		names->name[0] = URING_NAME(io_mkdir, mkdir, filename);
		names->dir[0] = READ_FD(mkdir, dfd);
		w->args[2] = READ(mkdir, mode);
		break;
	case OP_RENAMEAT:
		uring_two_names(w, names, rename);
		w->args[4] = READ(rename, flags);
		break;
	case OP_LINKAT:
	case OP_SYMLINKAT:
		names->name[0] = URING_NAME(io_link, link, oldpath);
		names->name[1] = URING_NAME(io_link, link, newpath);
		names->dir[0] = READ_FD(link, old_dfd);
		names->dir[1] = READ_FD(link, new_dfd);
		w->args[op == OP_SYMLINKAT ? 1 : 2] = names->dir[1];
		if (op == OP_SYMLINKAT)
			names->dir[0] = AT_FDCWD;
		w->args[4] = READ(link, flags);
		break;
	case OP_SETXATTR:
	case OP_GETXATTR:
		names->name[0] = URING_NAME(io_xattr, xattr, filename);
		break;
	case OP_STATX:
		names->name[0] = URING_NAME(io_statx, statx, filename);
		names->dir[0] = READ_FD(statx, dfd);
		w->args[2] = READ(statx, flags);
		break;
	}
	w->args[0] = names->dir[0];
}

/* Reads the names, and the arguments in the order of the call that does the same. */
static __always_inline void uring_args(struct work *w, struct uring_names *names,
				       struct io_kiocb *req, __u32 op)
{
	struct io_close *close = (struct io_close *)req;
	struct io_splice *splice = (struct io_splice *)req;
	struct io_rw *rw = (struct io_rw *)req;

	names->name[0] = names->name[1] = 0;
	names->dir[0] = names->dir[1] = AT_FDCWD;
	__builtin_memset(w->args, 0, sizeof(w->args));
	w->args[0] = READ_FD(req, cqe.fd);
	switch (op) {
	case OP_OPENAT:
	case OP_OPENAT2:
		uring_open_args(w, names, (struct io_open *)req);
		return;
	case OP_CLOSE:
		w->args[0] = READ_FD(close, fd);
		return;
	case OP_READ:
	case OP_WRITE:
	case OP_READV:
	case OP_WRITEV:
	case OP_READ_FIXED:
	case OP_WRITE_FIXED:
		w->args[1] = READ(rw, addr);
		w->args[2] = READ(rw, len);
		w->args[3] = READ(rw, kiocb.ki_pos);
		return;
	case OP_SPLICE:
	case OP_TEE:
		w->args[2] = w->args[0];
		w->args[0] = READ_FD(splice, splice_fd_in);
		return;
	case OP_UNLINKAT:
	case OP_MKDIRAT:
	case OP_RENAMEAT:
	case OP_LINKAT:
	case OP_SYMLINKAT:
	case OP_SETXATTR:
	case OP_GETXATTR:
	case OP_STATX:
		uring_file_args(w, names, req, op);
		return;
	}
	uring_net_args(w, req, op);
}

#endif /* TARSIER_URING_ARGS_H */
