/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Facts of the current task and call that rules ask about. */
#ifndef TARSIER_FACTS_H
#define TARSIER_FACTS_H

#include "base.h"
#include "gate.h"
#include "match.h"

#define ON_DEMAND                                                                         \
	(1U << FACT_EXE | 1U << FACT_ACCESS | 1U << FACT_COMPARE | 1U << FACT_SADDR_FAM | \
	 1U << FACT_SOCKET_NAME | 1U << FACT_MARKS | WORKLOAD_FACTS | PAST_FACTS)

static __always_inline void task_facts(struct work *w, struct task_struct *task)
{
	const struct task_struct *from = untrusted(task);
	const struct cred *cred = from->cred;

	w->computed = ~(__u32)ON_DEMAND;
	w->absent = 0;
	set_fact(w, FACT_PID, task->tgid);
	set_fact(w, FACT_PPID, from->real_parent->tgid);
	set_fact(w, FACT_AUID, task->loginuid.val);
	set_fact(w, FACT_SES, task->sessionid);
	set_fact(w, FACT_PERS, task->personality);
	set_fact(w, FACT_UID, cred->uid.val);
	set_fact(w, FACT_EUID, cred->euid.val);
	set_fact(w, FACT_SUID, cred->suid.val);
	set_fact(w, FACT_FSUID, cred->fsuid.val);
	set_fact(w, FACT_GID, cred->gid.val);
	set_fact(w, FACT_EGID, cred->egid.val);
	set_fact(w, FACT_SGID, cred->sgid.val);
	set_fact(w, FACT_FSGID, cred->fsgid.val);
}

static __always_inline void call_facts(struct work *w, bool returned)
{
	set_fact(w, FACT_EXIT, audit_result(w->ret));
	set_fact(w, FACT_SUCCESS, success_of(w->ret));
	if (!returned)
		w->absent |= 1U << FACT_EXIT | 1U << FACT_SUCCESS;
	set_fact(w, FACT_A0, w->args[0]);
	set_fact(w, FACT_A1, w->args[1]);
	set_fact(w, FACT_A2, w->args[2]);
	set_fact(w, FACT_A3, w->args[3]);
}

#define CAPABILITIES_ARE_KNOWN                                               \
	(TYPE_HAS(cred, cap_inheritable) && TYPE_HAS(cred, cap_permitted) && \
	 TYPE_HAS(cred, cap_effective) && TYPE_HAS(cred, cap_ambient))

/* linux/capability.h */
#define CAP_DAC_OVERRIDE 1
#define CAP_DAC_READ_SEARCH 2

/* A set of capabilities: one 64-bit word since 6.3, two 32-bit words before. */
static __always_inline __u64 capabilities(const kernel_cap_t *set)
{
	__u64 value = 0;

	bpf_core_read(&value, sizeof(value), set);
	return value;
}

#endif /* TARSIER_FACTS_H */
