/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Gates: one cheap test per call, made before anything else is done for it. If
 * the test fails, no rule can select the call. See plan::Gate.
 */
#ifndef TARSIER_GATE_H
#define TARSIER_GATE_H

#include "arch.h"
#include "base.h"
#include "tables.h"

#define EINTR 4
#define ERESTARTSYS 512
#define ENOIOCTLCMD 515
#define ERESTART_RESTARTBLOCK 516

/* The result in the form that audit compares and prints: audit_return_fixup(). */
static __always_inline __s64 audit_result(__s64 ret)
{
	if (ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK && ret != -ENOIOCTLCMD)
		return -EINTR;
	return ret;
}

/* AUDITSC_SUCCESS, AUDITSC_FAILURE. */
static __always_inline __u32 success_of(__u64 ret)
{
	return ret >= (__u64)-4095 ? 2 : 1;
}

/* The current task: `known`, if the caller has it already, which saves a helper call. */
static __always_inline struct task_struct *this_task(struct task_struct *known)
{
	return known ? known : bpf_get_current_task_btf();
}

/*
 * One of the ids of the task. The pointer to the credentials is loaded in one place only: for each
 * load of a pointer, the verifier of newer kernels goes through all types of the kernel, several
 * times.
 */
static __always_inline __u32 gate_id(__u32 fact, struct task_struct *task)
{
	const struct cred *cred = task->cred;

	asm volatile("" : "+r"(cred));
	if (fact == FACT_UID)
		return cred->uid.val;
	/* The most usual id, apart: the compiler would merge all four loads. */
	asm volatile("" : "+r"(cred));
	if (fact == FACT_EUID)
		return cred->euid.val;
	if (fact == FACT_SUID)
		return cred->suid.val;
	return cred->fsuid.val;
}

/*
 * The value of the fact that a gate tests, the most usual facts first. For an
 * argument, it is the low word; only gates on arguments have a range of results,
 * and for one of these it is a value that is admitted. `task` is the current task,
 * or NULL.
 */
static __always_inline __u32 gate_value(const __u32 *first, const __u32 *second,
					struct task_struct *task, const struct pt_regs *regs,
					__s64 ret)
{
	__u32 fact = first[0];

	if (fact == FACT_AUID)
		return this_task(task)->loginuid.val;
	if (fact >= FACT_UID && fact <= FACT_FSUID)
		return gate_id(fact, this_task(task));
	if (fact == FACT_EXIT)
		return audit_result(ret);
	if (fact == FACT_SUCCESS)
		return success_of(ret);
	if ((__u32)ret - second[2] <= second[3])
		return first[2];
	return call_arg(regs, entered_compat(this_task(task)), fact - FACT_A0);
}

/*
 * Tests a gate in two halves, as the tables contain it: fact, mask and the first
 * range, then the second range and that of results. A copy would take more stack
 * than 6.1 allows.
 */
static __always_inline bool halves_admit(const __u32 *first, const __u32 *second,
					 struct task_struct *task, const struct pt_regs *regs,
					 __s64 ret)
{
	__u32 fact = first[0], value;

	if (fact == GATE_OPEN)
		return true;
	value = gate_value(first, second, task, regs, ret) & first[1];
	return value - first[2] <= first[3] || value - second[0] <= second[1];
}

/* As halves_admit(), for a gate on an id of the task. */
static __always_inline bool id_admitted(const __u32 *first, const __u32 *second,
					struct task_struct *task)
{
	__u32 fact = first[0], value;

	if (fact == GATE_OPEN)
		return true;
	value = fact == FACT_AUID ? task->loginuid.val : gate_id(fact, task);
	value &= first[1];
	return value - first[2] <= first[3] || value - second[0] <= second[1];
}

/* Tests a gate that is not on an id: programs for those gates are below. Others are admitted. */
static __always_inline bool gate_admits(const struct gate *gate, const struct pt_regs *regs,
					__s64 ret)
{
	__u32 fact = gate->fact;

	if (fact >= FACT_UID && fact <= FACT_FSUID)
		return true;
	return halves_admit(&gate->fact, &gate->range[1].first, 0, regs, ret);
}

/*
 * Whether a gate with any mask and two ranges, or one without a mask and one range, admits a value. The
 * span of the first range is read before the rest: that of an open gate is all values, and a gate that is
 * being set gets it last.
 */
static __always_inline bool admits(const struct gate *gate, __u32 value, bool is_wide)
{
	__u32 span = gate->range[0].span;

	asm volatile("" : "+r"(span) : : "memory");
	if (is_wide)
		value &= gate->mask;
	if (value - gate->range[0].first <= span)
		return true;
	return is_wide && value - gate->range[1].first <= gate->range[1].span;
}

/* The value of a fact that has programs of its own; `fact` is constant. */
static __always_inline __u32 own_value(__u32 fact, __s64 ret)
{
	struct task_struct *task;

	if (fact == FACT_EXIT)
		return audit_result(ret);
	if (fact == FACT_SUCCESS)
		return success_of(ret);
	task = bpf_get_current_task_btf();
	if (fact == FACT_AUID)
		return task->loginuid.val;
	if (fact == FACT_UID)
		return task->cred->uid.val;
	if (fact == FACT_EUID)
		return task->cred->euid.val;
	if (fact == FACT_SUID)
		return task->cred->suid.val;
	return task->cred->fsuid.val;
}

#endif /* TARSIER_GATE_H */
