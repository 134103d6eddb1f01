/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The socket address of a call: where it is, its family, and whether it is the path of a UNIX socket. */
#ifndef TARSIER_ADDRESSES_H
#define TARSIER_ADDRESSES_H

#include "arch.h"
#include "base.h"
#include "files.h"
#include "maps.h"
#include "objects.h"
#include "walk.h"

#define EBADF 9
#define AF_UNIX 1

/* Finds the address of a message in its struct msghdr. Returns its length. */
static __always_inline __u32 address_of_message(struct work *w, const void *message,
						const void **addr)
{
	if (w->arch) {
		__u32 msg[2] = {};

		bpf_probe_read_user(msg, sizeof(msg), message);
		*addr = (void *)(__u64)msg[0];
		return msg[1];
	} else {
		__u64 msg[2] = {};

		bpf_probe_read_user(msg, sizeof(msg), message);
		*addr = (void *)msg[0];
		return msg[1];
	}
}

/* The size of struct mmsghdr. */
#define MESSAGE_BYTES(compat) ((compat) ? 32 : 64)

/* How many messages of a sendmmsg(2) have been looked at: those sent, and one that was refused. */
static __always_inline __u32 messages_used(struct work *w)
{
	__u32 messages = w->args[2], sent = w->ret < 0 ? 0 : w->ret;

	return sent < messages ? sent + 1 : messages;
}

/* Numbers of socketcall(2): SYS_* of linux/net.h. */
#define SYS_BIND 2
#define SYS_CONNECT 3
#define SYS_ACCEPT 5
#define SYS_GETPEERNAME 7
#define SYS_SOCKETPAIR 8
#define SYS_SENDTO 11
#define SYS_RECVFROM 12
#define SYS_SENDMSG 16
#define SYS_RECVMSG 17
#define SYS_ACCEPT4 18
#define SYS_SENDMMSG 20

/*
 * Reads the arguments of a socketcall(2), as they are in memory when it is over, into the words of
 * w->find.other, two in each. No pointer to them is returned: Linux 6.1 would lose track of it.
 */
static __always_inline bool read_socketcall(struct work *w)
{
	return !bpf_probe_read_user(w->find.other, 6 * sizeof(__u32),
				    (void *)(__u64)(__u32)w->args[1]);
}

/* As sockaddr_place(), for a socketcall(2). */
static __always_inline __u32 socketcall_place(struct work *w, const void **addr)
{
	__u32 call = w->args[0], len;
	bool is_datagram = call == SYS_SENDTO || call == SYS_RECVFROM;
	bool fills = (call >= SYS_ACCEPT && call <= SYS_GETPEERNAME) || call == SYS_RECVFROM ||
		     call == SYS_RECVMSG || call == SYS_ACCEPT4;
	__u64 *args = w->find.other;

	if (!fills && call != SYS_BIND && call != SYS_CONNECT && call != SYS_SENDTO &&
	    call != SYS_SENDMSG && call != SYS_SENDMMSG)
		return 0;
	if (fills && w->ret < 0)
		return 0;
	if (!read_socketcall(w))
		return 0;
	if (call == SYS_SENDMSG || call == SYS_RECVMSG || call == SYS_SENDMMSG)
		return address_of_message(w, (void *)(args[0] >> 32), addr);
	*addr = (void *)(is_datagram ? args[2] & ~0U : args[0] >> 32);
	len = is_datagram ? args[2] >> 32 : args[1];
	if (fills && bpf_probe_read_user(&len, sizeof(len), (void *)(__u64)len))
		return 0;
	return len;
}

/*
 * Finds the socket address of the call, in user space or the kernel's copy of an operation's, for sockaddr_place(). A
 * function of its own, which the verifier goes through once.
 */
__noinline int find_address(struct work *w)
{
	const void *addr = 0;
	__u8 arg, len_arg;
	__u64 message;
	__u32 len = 0;

	if (!w)
		return 0;
	arg = w->spec.sockaddr;
	len_arg = w->spec.sockaddr_len;
	w->address = 0;
	w->address_len = 0;
	/* Without a socket the kernel does not look at the address. */
	if (w->ret == -EBADF)
		return 0;
	if (w->is_operation && w->copied_address) {
		w->address = w->copied_address;
		w->address_len = w->copied_len > 128 ? 128 : w->copied_len;
		return 0;
	}
	if (w->spec.kind == KIND_SOCKETCALL) {
		len = socketcall_place(w, &addr);
	} else if (arg >= 6 || ((w->spec.flags & SPEC_SOCKADDR_OUT) && w->ret < 0)) {
		return 0;
	} else if (w->spec.flags & SPEC_MSGHDR) {
		message = w->args[arg];
		/* The kernel records the address of the last one. */
		if (w->spec.kind == KIND_MESSAGES && messages_used(w))
			message += (messages_used(w) - 1) * MESSAGE_BYTES(w->arch);
		len = address_of_message(w, (void *)message, &addr);
	} else {
		addr = (void *)w->args[arg];
		if (len_arg < 6)
			len = w->args[len_arg];
		if ((w->spec.flags & SPEC_SOCKADDR_LEN_PTR) &&
		    (len_arg >= 6 ||
		     bpf_probe_read_user(&len, sizeof(len), (void *)w->args[len_arg])))
			len = 0;
	}
	if (!addr)
		return 0;
	w->address = (__u64)addr;
	w->address_len = len > 128 ? 128 : len;
	return 0;
}

/* Finds the socket address of the call, for read_address(). Returns its length, or 0. */
static __always_inline __u32 sockaddr_place(struct work *w, const void **addr)
{
	__u64 len;

	find_address(w);
	*addr = (const void *)w->address;
	len = w->address_len;
	return len > 128 ? 128 : len;
}

/* Reads from the address that sockaddr_place() has found. */
static __always_inline long read_address(struct work *w, void *to, __u32 len, const void *addr)
{
	if (w->is_operation && w->copied_address)
		return bpf_probe_read_kernel(to, len, addr);
	return bpf_probe_read_user(to, len, addr);
}

#define S_IFSOCK 0140000
#define AF_UNSPEC 0
#define AF_INET 2
#define AF_INET6 10
#define EFAULT 14
#define EINVAL 22
#define EAFNOSUPPORT 97

/* Family of the socket that a descriptor of the task stands for; 0 if it is not known. */
static __always_inline __u16 socket_family(struct task_struct *task, __u32 fd)
{
	struct file *file = file_of(task, fd);
	struct socket *socket;

	if (!file || (READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	socket = READ(file, private_data);
	return READ(socket, sk, __sk_common.skc_family);
}

/* The descriptor of the call's socket: its first argument. */
static __always_inline __u32 socket_descriptor(struct work *w)
{
	if (w->spec.kind != KIND_SOCKETCALL)
		return w->args[0];
	return read_socketcall(w) ? w->find.other[0] : ~0U;
}

/* Whether an address of that family may be used with a socket of family `own`. */
static __always_inline bool may_be_family(__u16 family, __u16 own)
{
	return family == own || family == AF_UNSPEC || (own == AF_INET6 && family == AF_INET);
}

/* Whether the call takes an address, and may have looked it up. */
static __always_inline bool takes_address(struct work *w)
{
	__u32 call = w->args[0];

	if (w->ret == -EBADF)
		return false;
	if (w->spec.kind == KIND_SOCKETCALL)
		return call == SYS_BIND || call == SYS_CONNECT || call == SYS_SENDTO ||
		       call == SYS_SENDMSG || call == SYS_SENDMMSG;
	return w->spec.sockaddr < 6 && !(w->spec.flags & SPEC_SOCKADDR_OUT);
}

/*
 * Whether the operation takes an address that is not known: it is not the kernel's copy that was found, and what is in
 * memory may be something else since the kernel has copied it.
 */
static __always_inline bool has_unknown_address(struct work *w)
{
	return w->is_operation && !w->copied_address && takes_address(w);
}

/*
 * Finds the family of the socket address. Without the kernel's copy, it is that in user memory,
 * unless the kernel cannot have taken that: another thread may have changed it since.
 */
__noinline int find_family(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct object_note *note;
	const void *addr;
	__u16 family = 0, own;
	bool is_read;

	if (!w)
		return 0;
	note = note_at_end(task, w->given_nr);
	if (note && note->address_len >= 2) {
		w->fact[FACT_SADDR_FAM] = *(__u16 *)note->address;
		return 0;
	}
	if (has_unknown_address(w) || sockaddr_place(w, &addr) < 2) {
		w->absent |= 1U << FACT_SADDR_FAM;
		return 0;
	}
	is_read = !read_address(w, &family, sizeof(family), addr);
	if (!w->is_operation && w->ret != -EFAULT && w->ret != -EINVAL && w->ret != -EAFNOSUPPORT) {
		own = socket_family(task, socket_descriptor(w));
		if (own && !(is_read && may_be_family(family, own))) {
			family = own;
			is_read = true;
		}
	}
	if (!is_read)
		w->absent |= 1U << FACT_SADDR_FAM;
	w->fact[FACT_SADDR_FAM] = family;
	return 0;
}

enum socket_name {
	NAMES_NO_SOCKET = 0,
	NAMES_SOCKET = 1,
	MAY_NAME_SOCKET = 2,
};

/* Whether an address begins as that of a UNIX socket with a path: not an abstract or empty one. */
static __always_inline bool is_socket_path(const __u8 *address, __u32 len)
{
	return len > 2 && *(const __u16 *)address == AF_UNIX && address[2];
}

/*
 * Finds out whether the call was given the path of a UNIX socket. Without the kernel's copy of the
 * address, memory tells. If that is something else now, the family of the socket does: another thread
 * may have changed the memory.
 */
__noinline int find_socket_name(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool is_read, has_several;
	struct object_note *note;
	const void *addr;
	__u8 head[4] = {};
	__u32 len;

	if (!w)
		return 0;
	w->fact[FACT_SOCKET_NAME] = NAMES_NO_SOCKET;
	if (!takes_address(w))
		return 0;
	has_several = w->spec.kind == KIND_MESSAGES ||
		      (w->spec.kind == KIND_SOCKETCALL && w->args[0] == SYS_SENDMMSG);
	note = note_at_end(task, w->given_nr);
	if (note && note->address_len >= 2 && !has_several) {
		w->fact[FACT_SOCKET_NAME] = is_socket_path(note->address, note->address_len);
		return 0;
	}
	len = sockaddr_place(w, &addr);
	is_read = len > 2 && !read_address(w, head, 3, addr);
	if (is_read && is_socket_path(head, len)) {
		w->fact[FACT_SOCKET_NAME] = has_several ? MAY_NAME_SOCKET : NAMES_SOCKET;
		return 0;
	}
	/*
	 * The descriptor of an operation may be an index, and what is in memory may not be what the kernel has copied. Only
	 * one that sends may have no address.
	 */
	if (w->is_operation) {
		if (!w->copied_address && (addr || w->spec.sockaddr == 1))
			w->fact[FACT_SOCKET_NAME] = MAY_NAME_SOCKET;
		return 0;
	}
	if ((is_read && *(__u16 *)head == AF_UNIX && !has_several) || (len <= 2 && !has_several))
		return 0;
	if (socket_family(task, socket_descriptor(w)) == AF_UNIX)
		w->fact[FACT_SOCKET_NAME] = MAY_NAME_SOCKET;
	return 0;
}

#endif /* TARSIER_ADDRESSES_H */
