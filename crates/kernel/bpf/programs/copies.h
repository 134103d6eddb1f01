/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Programs on tracepoints, for kernels that preempt them there. */
#ifndef TARSIER_COPIES_H
#define TARSIER_COPIES_H

#include "base.h"

extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

/*
 * A program on a tracepoint, and copies of it for kernels that preempt programs
 * there. A copy turns preemption off, but can still be preempted before it does
 * so and when it turns preemption on again. Meanwhile the kernel does not run it
 * for other tasks on the CPU; the next copy runs for them. The copies ignore what
 * another one has already handled. The daemon attaches either the program or its
 * copies.
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
