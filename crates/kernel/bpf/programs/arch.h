/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Differences between architectures: registers, and how a call was entered. */
#ifndef TARSIER_ARCH_H
#define TARSIER_ARCH_H

#include "base.h"

/* Tells a call in progress apart from other calls of the same task. */
struct call_place {
	__u64 nr, pc, sp;
	__u64 args[4];
};

static __always_inline bool same_place(const struct call_place *one, const struct call_place *other)
{
	return one->nr == other->nr && one->pc == other->pc && one->sp == other->sp &&
	       one->args[0] == other->args[0] && one->args[1] == other->args[1] &&
	       one->args[2] == other->args[2] && one->args[3] == other->args[3];
}

/*
 * The number at the end of a call that has replaced all registers: restore_sigcontext() of x86,
 * forget_syscall() of arm64.
 */
#define NO_CALL (~0U)

#if defined(__TARGET_ARCH_x86)
#define TS_COMPAT 2
#define NR_RT_SIGRETURN 15
#define NR_COMPAT_SIGRETURN 119
#define NR_COMPAT_RT_SIGRETURN 173
#define NR_EXECVE 59
#define NR_EXECVEAT 322
#define NR_COMPAT_EXECVE 11
#define NR_COMPAT_EXECVEAT 358

/*
 * The number of the call as the kernel takes it: the low half of the register
 * (entry_SYSCALL_64, arch/x86/entry/entry_64.S).
 */
static __always_inline __u32 call_number(const struct pt_regs *regs)
{
	return regs->orig_ax;
}

/* In the number of a call of x32 (arch/x86/include/uapi/asm/unistd.h). */
#define X32_BIT 0x40000000

static __always_inline bool entered_compat(const struct task_struct *task)
{
	return task->thread_info.status & TS_COMPAT;
}

static __always_inline __u32 arch_audit(__u32 compat)
{
	return compat ? 0x40000003 : 0xc000003e;
}

static __always_inline void call_args(__u64 *args, const struct pt_regs *regs, bool compat)
{
	if (compat) {
		args[0] = regs->bx;
		args[1] = regs->cx;
		args[2] = regs->dx;
		args[3] = regs->si;
		args[4] = regs->di;
		args[5] = regs->bp;
	} else {
		args[0] = regs->di;
		args[1] = regs->si;
		args[2] = regs->dx;
		args[3] = regs->r10;
		args[4] = regs->r8;
		args[5] = regs->r9;
	}
}

/* One of the first four arguments; an array of all six would take stack. */
static __always_inline __u64 call_arg(const struct pt_regs *regs, bool compat, __u32 i)
{
	if (i == 0)
		return compat ? regs->bx : regs->di;
	if (i == 1)
		return compat ? regs->cx : regs->si;
	if (i == 2)
		return regs->dx;
	return compat ? regs->si : regs->r10;
}

static __always_inline struct call_place call_place(const struct pt_regs *regs)
{
	struct call_place place = {
		.nr = call_number(regs),
		.pc = regs->ip,
		.sp = regs->sp,
		.args = { regs->di, regs->si, regs->dx, regs->r10 },
	};

	return place;
}

/* Where the task goes on, or a new program begins. */
static __always_inline __u64 program_counter(const struct pt_regs *regs)
{
	return regs->ip;
}

/* Argument of a probed function; below, its result, in a probe at its end. */
static __always_inline __u64 probe_argument(const struct pt_regs *regs, __u32 i)
{
	switch (i) {
	case 0:
		return regs->di;
	case 1:
		return regs->si;
	case 2:
		return regs->dx;
	case 3:
		return regs->cx;
	case 4:
		return regs->r8;
	default:
		return regs->r9;
	}
}

static __always_inline __u64 probe_result(const struct pt_regs *regs)
{
	return regs->ax;
}

/* The result that the call has left for its caller. */
static __always_inline long call_value(const struct pt_regs *regs)
{
	return regs->ax;
}

/* The return value of a call's function as audit uses it. */
static __always_inline long call_result(long result, __u32 compat)
{
	return result;
}
#elif defined(__TARGET_ARCH_arm64)
#define TIF_32BIT_MASK (1UL << 22)
#define NR_RT_SIGRETURN 139
#define NR_COMPAT_SIGRETURN 119
#define NR_COMPAT_RT_SIGRETURN 173
#define NR_EXECVE 221
#define NR_EXECVEAT 281
#define NR_COMPAT_EXECVE 11
#define NR_COMPAT_EXECVEAT 387

static __always_inline __u32 call_number(const struct pt_regs *regs)
{
	return regs->syscallno;
}

/* No number is one of x32 here. */
#define X32_BIT 0

static __always_inline bool entered_compat(const struct task_struct *task)
{
	return task->thread_info.flags & TIF_32BIT_MASK;
}

static __always_inline __u32 arch_audit(__u32 compat)
{
	return compat ? 0x40000028 : 0xc00000b7;
}

static __always_inline void call_args(__u64 *args, const struct pt_regs *regs, bool compat)
{
	args[0] = regs->orig_x0;
	args[1] = regs->regs[1];
	args[2] = regs->regs[2];
	args[3] = regs->regs[3];
	args[4] = regs->regs[4];
	args[5] = regs->regs[5];
}

/* One of the first four arguments; an array of all six would take stack. */
static __always_inline __u64 call_arg(const struct pt_regs *regs, bool compat, __u32 i)
{
	if (i == 0)
		return regs->orig_x0;
	if (i == 1)
		return regs->regs[1];
	if (i == 2)
		return regs->regs[2];
	return regs->regs[3];
}

static __always_inline struct call_place call_place(const struct pt_regs *regs)
{
	struct call_place place = {
		.nr = call_number(regs),
		.pc = regs->pc,
		.sp = regs->sp,
		.args = { regs->orig_x0, regs->regs[1], regs->regs[2], regs->regs[3] },
	};

	return place;
}

static __always_inline __u64 program_counter(const struct pt_regs *regs)
{
	return regs->pc;
}

/* Argument of a probed function; below, its result, in a probe at its end. */
static __always_inline __u64 probe_argument(const struct user_pt_regs *regs, __u32 i)
{
	return regs->regs[i];
}

static __always_inline __u64 probe_result(const struct user_pt_regs *regs)
{
	return regs->regs[0];
}

/* The result that the call has left for its caller. */
static __always_inline long call_value(const struct pt_regs *regs)
{
	return regs->regs[0];
}

/* The return value of a call's function as audit uses it: 32 bits for 32-bit programs. */
static __always_inline long call_result(long result, __u32 compat)
{
	return compat ? (__s32)result : result;
}
#endif

/* Whether a call executes a program. */
static __always_inline bool is_exec_number(__u32 nr, bool compat)
{
	if (compat)
		return nr == NR_COMPAT_EXECVE || nr == NR_COMPAT_EXECVEAT;
	return nr == NR_EXECVE || nr == NR_EXECVEAT;
}

#endif /* TARSIER_ARCH_H */
