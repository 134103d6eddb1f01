/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Rows of the match tables, and the search among them. */
#ifndef TARSIER_ROWS_H
#define TARSIER_ROWS_H

#include "base.h"
#include "maps.h"

/* The tables in force. */
static ONCE struct table *this_table(void)
{
	__u32 zero = 0;
	void *map = bpf_map_lookup_elem(&tables, &zero);

	return map ? bpf_map_lookup_elem(map, &zero) : 0;
}

/* A row of the tables. The mask is applied in assembly for the reasons given at frame_at(). */
static __always_inline struct table_row *row_at(struct table *table, __u64 row)
{
	asm volatile("%[row] &= %[mask]" : [row] "+r"(row) : [mask] "i"(TABLE_ROWS - 1));
	return &table->row[row];
}

/* A word of the tables. */
static __always_inline __u64 word_at(struct table *table, __u64 word)
{
	asm volatile("%[word] &= %[mask]" : [word] "+r"(word) : [mask] "i"(2 * TABLE_ROWS - 1));
	return ((const __u64 *)table->row)[word];
}

/*
 * Row of the last of `n` ascending entries that is not above the 32-bit value.
 * Without branches on values that were read: the verifier tracks offsets exactly
 * and would follow both outcomes of every step.
 */
__noinline int search(struct table *table, __u32 first, __u32 n, __u32 value)
{
	__u64 base = 0, step, in, not_above, probe;
	__u32 i;

	if (!table)
		return 0;
#pragma unroll
	for (i = TABLE_SEARCH_STEPS; i > 0; i--) {
		step = 1U << (i - 1);
		if (step >= n)
			continue;
		probe = base + step;
		in = (probe - n) >> 63;
		not_above = ~(value - row_at(table, first + (probe & -in))->a) >> 63;
		base += step & -(in & not_above);
	}
	return first + base;
}

/* As search(), but without a call for up to three entries, which a single `=` makes. */
static __always_inline struct table_row *row_of(struct table *table, __u32 first, __u32 n,
						__u32 value)
{
	__u64 second, third;

	if (n > 3)
		return row_at(table, search(table, first, n, value));
	second = (~(value - row_at(table, first + 1)->a) & (1 - (__u64)n)) >> 63;
	third = (~(value - row_at(table, first + 2)->a) & (2 - (__u64)n)) >> 63;
	return row_at(table, first + second + third);
}

#endif /* TARSIER_ROWS_H */
