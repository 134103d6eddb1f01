/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Gates: one cheap question per call whose answer "no" means that no rule can
 * select it, asked before anything else is done for the call. plan::Gate.
 */
#ifndef TARSIER_GATE_H
#define TARSIER_GATE_H

#define EINTR 4
#define ERESTARTSYS 512
#define ENOIOCTLCMD 515
#define ERESTART_RESTARTBLOCK 516

/* The result as audit compares and prints it: audit_return_fixup(). */
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

/* The low word of an argument; the 32-bit entry has its own registers. */
static __always_inline __u32 gate_argument(__u32 fact, const struct pt_regs *regs)
{
	__u64 args[6];

	call_args(args, regs, entered_compat(bpf_get_current_task_btf()));
	if (fact == FACT_A0)
		return args[0];
	if (fact == FACT_A1)
		return args[1];
	if (fact == FACT_A2)
		return args[2];
	return args[3];
}

/* The fact that a gate asks about, the most usual first. */
static __always_inline __u32 gate_value(__u32 fact, const struct pt_regs *regs, __s64 ret)
{
	if (fact == FACT_AUID)
		return bpf_get_current_task_btf()->loginuid.val;
	if (fact == FACT_UID)
		return bpf_get_current_task_btf()->cred->uid.val;
	if (fact == FACT_EXIT)
		return audit_result(ret);
	if (fact == FACT_SUCCESS)
		return success_of(ret);
	if (fact == FACT_EUID)
		return bpf_get_current_task_btf()->cred->euid.val;
	if (fact == FACT_SUID)
		return bpf_get_current_task_btf()->cred->suid.val;
	if (fact == FACT_FSUID)
		return bpf_get_current_task_btf()->cred->fsuid.val;
	return gate_argument(fact, regs);
}

static __always_inline bool gate_admits(const struct gate *gate, const struct pt_regs *regs,
					__s64 ret)
{
	__u32 fact = gate->fact, value;

	if (fact == GATE_OPEN)
		return true;
	value = gate_value(fact, regs, ret) & gate->mask;
	return value - gate->range[0].first <= gate->range[0].span ||
	       value - gate->range[1].first <= gate->range[1].span;
}

#endif /* TARSIER_GATE_H */
