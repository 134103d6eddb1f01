/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Programs on tracepoints where the kernel preempts them. */
#ifndef TARSIER_COPIES_H
#define TARSIER_COPIES_H

#include "base.h"

extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

/*
 * A program on a tracepoint, and copies of it for kernels that preempt programs
 * there. A copy turns preemption off, but may still be preempted before it does
 * so and when it turns it on again; while it is, and so is missed by other tasks
 * on the CPU, the next copy sees them. What one has dealt with the others leave
 * alone. The daemon attaches the program or its copies.
 */
#define COPY(section, program, number, run)               \
	SEC(section) int program##number(__u64 *ctx)      \
	{                                                 \
		if (bpf_ksym_exists(bpf_preempt_disable)) \
			bpf_preempt_disable();            \
		run;                                      \
		if (bpf_ksym_exists(bpf_preempt_enable))  \
			bpf_preempt_enable();             \
		return 0;                                 \
	}

#define COPIES(section, program, run)        \
	SEC(section) int program(__u64 *ctx) \
	{                                    \
		return run;                  \
	}                                    \
	COPY(section, program, _1, run)      \
	COPY(section, program, _2, run)      \
	COPY(section, program, _3, run)

#endif /* TARSIER_COPIES_H */
