/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The parts with socket addresses. */
#ifndef TARSIER_ADDRESS_PARTS_H
#define TARSIER_ADDRESS_PARTS_H

#include "base.h"
#include "emit.h"
#include "match.h"
#include "objects.h"
#include "steps.h"

/* Ends a part with a socket address. A path in it is found as those of arguments are: see find.h. */
static __always_inline void address_end(struct work *w, struct tarsier_part *part, __u64 at,
					__u32 len)
{
	if (len > 2 && w->fact[FACT_SOCKET_NAME] == NAMES_SOCKET) {
		w->find.name_at = at + sizeof(*part) + 2;
		w->find.name_len = len - 2;
	}
	part_end(w, part, len);
}

static __always_inline void part_address(struct work *w, struct object_note *note)
{
	struct tarsier_part *part;
	__u32 at = w->len, len = note->address_len;

	part = part_begin(w, TARSIER_PART_SOCKADDR, 0);
	if (!part)
		return;
	if (len > sizeof(note->address))
		len = sizeof(note->address);
	if (bpf_probe_read_kernel(part + 1, len, note->address))
		len = 0;
	address_end(w, part, at, len);
}

/*
 * Adds the address that is in user memory, unless the kernel's copy is there. A function of its own,
 * which the verifier goes through once.
 */
__noinline int event_address(struct work *w)
{
	struct object_note *note;
	struct tarsier_part *part;
	const void *addr;
	bool may_be_other;
	__u32 at, len;

	if (!w)
		return 0;
	note = w->noted ? note_at_end(bpf_get_current_task_btf(), w->given_nr) : 0;
	if (note && note->address_len)
		return 0;
	at = w->len;
	/* The addresses of all messages are added later. */
	may_be_other =
		w->fact[FACT_SOCKET_NAME] == MAY_NAME_SOCKET && w->spec.kind != KIND_MESSAGES;
	len = sockaddr_place(w, &addr);
	if (!len && !may_be_other)
		return 0;
	part = part_begin(w, TARSIER_PART_SOCKADDR, 0);
	if (!part)
		return 0;
	if (len > 128)
		len = 128;
	if (!len || bpf_probe_read_user(part + 1, len, addr)) {
		part->flags |= TARSIER_PART_UNREADABLE;
		len = 0;
	}
	if (may_be_other)
		part->flags |= TARSIER_PART_OTHER_USED;
	address_end(w, part, at, len);
	return 0;
}

/* The most messages of a sendmmsg(2) whose addresses are added. */
#define MESSAGES_MAX 16

struct messages {
	struct work *w;
	__u32 used;
};

/* Adds the address of the next message, if that is the path of a UNIX socket. */
STEP(message_step, struct messages *messages, MESSAGES_MAX)
{
	struct work *w = messages->w;
	struct tarsier_part *part;
	const void *addr = 0;
	__u32 len;

	if (i >= messages->used)
		return 1;
	len = address_of_message(w, (void *)(w->args[1] + (__u64)i * MESSAGE_BYTES(w->arch)),
				 &addr);
	if (!addr || len <= 2)
		return 0;
	part = part_begin(w, TARSIER_PART_SOCKADDR, 1);
	if (!part)
		return 1;
	if (len > 128)
		len = 128;
	if (bpf_probe_read_user(part + 1, len, addr)) {
		part->flags |= TARSIER_PART_UNREADABLE;
		len = 0;
	}
	part_end(w, part, len);
	return 0;
}

/* Adds the addresses of the messages of a sendmmsg(2), or as many as fit. */
static __always_inline void part_messages(struct work *w)
{
	struct messages messages = { .w = w, .used = messages_used(w) };
	struct tarsier_part *part;

	if (w->fact[FACT_SOCKET_NAME] == NAMES_NO_SOCKET)
		return;
	REPEAT(message_step, &messages);
	if (messages.used <= MESSAGES_MAX)
		return;
	part = part_begin(w, TARSIER_PART_SOCKADDR, 1);
	if (!part)
		return;
	part->flags |= TARSIER_PART_CUT;
	part_end(w, part, 0);
}

#endif /* TARSIER_ADDRESS_PARTS_H */
