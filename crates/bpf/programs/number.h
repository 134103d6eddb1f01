/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Under which number the tables have a call. */
#ifndef TARSIER_NUMBER_H
#define TARSIER_NUMBER_H

#include "arch.h"
#include "maps.h"
#include "tables.h"

/* Numbers from here on belong to x32 alone (arch/x86/entry/syscalls/syscall_64.tbl). */
#define X32_FIRST 512

/* Of those, the 64-bit calls that do the same. */
static const __u16 x32_twins[] = {
	13,  15,  16,  19,  20,	 45,  46,  47,	59,  101, 127, 128, 129, 131, 222, 244, 246, 247,
	273, 274, 278, 279, 295, 296, 297, 299, 307, 310, 311, 54,  55,	 206, 209, 322, 327, 328,
};

/*
 * The number of a call in the tables, or TABLE_CALLS: that of the 64-bit call
 * where it is one of x32 and the kernel has those. `compat`: by the 32-bit entry.
 */
static __always_inline __u32 table_number(__u32 nr, __u32 compat)
{
	if (nr < TABLE_CALLS)
		return nr;
	if (!(nr & X32_BIT) || compat || !control.x32)
		return TABLE_CALLS;
	nr &= ~X32_BIT;
	if (nr < X32_FIRST)
		return nr;
	nr -= X32_FIRST;
	if (nr >= sizeof(x32_twins) / sizeof(x32_twins[0]))
		return TABLE_CALLS;
	nr = x32_twins[nr];
	/* The compiler knows what the table holds, and would leave out checks that the verifier asks for. */
	asm volatile("" : "+r"(nr));
	return nr;
}

#endif /* TARSIER_NUMBER_H */
