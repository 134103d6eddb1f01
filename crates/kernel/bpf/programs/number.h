/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Under which number the tables have a call. */
#ifndef TARSIER_NUMBER_H
#define TARSIER_NUMBER_H

#include "arch.h"
#include "maps.h"
#include "tables.h"

/* Numbers from here on belong to x32 alone (arch/x86/entry/syscalls/syscall_64.tbl). */
#define X32_FIRST 512

/* The 64-bit calls that do the same as those numbers, in their order; abi has them too. */
static const __u16 x32_twins[] = {
	13,  15,  16,  19,  20,	 45,  46,  47,	59,  101, 127, 128, 129, 131, 222, 244, 246, 247,
	273, 274, 278, 279, 295, 296, 297, 299, 307, 310, 311, 54,  55,	 206, 209, 322, 327, 328,
};

/* The call that has left no number: the one that returns from a signal's handler. */
static __always_inline __u32 sigreturn_number(void)
{
	__u64 bits = control.watched[NR_COMPAT_RT_SIGRETURN / 64];

	if (!entered_compat(bpf_get_current_task_btf()))
		return NR_RT_SIGRETURN;
	return bits & 1ULL << NR_COMPAT_RT_SIGRETURN % 64 ? NR_COMPAT_RT_SIGRETURN
							  : NR_COMPAT_SIGRETURN;
}

/*
 * The number of the 64-bit call that does the same as this one of x32, or
 * TABLE_CALLS. Not inline, so that the verifier goes through it once.
 */
__noinline __u32 x32_twin(__u32 given)
{
	__u32 own = given & ~X32_BIT;

	if (given == NO_CALL)
		return sigreturn_number();
	if (!X32_BIT || own == given || !control.x32 || entered_compat(bpf_get_current_task_btf()))
		return TABLE_CALLS;
	if (own < X32_FIRST)
		return own;
	own -= X32_FIRST;
	return own < sizeof(x32_twins) / sizeof(x32_twins[0]) ? x32_twins[own] : TABLE_CALLS;
}

/* The number under which the tables have the current call, or one that they do not have. */
static __always_inline __u32 table_number(__u32 given)
{
	return given < TABLE_CALLS ? given : x32_twin(given);
}

#endif /* TARSIER_NUMBER_H */
