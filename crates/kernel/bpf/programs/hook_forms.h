/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The two forms of hooks on kernel functions: programs in trampolines, and probes. */
#ifndef TARSIER_HOOK_FORMS_H
#define TARSIER_HOOK_FORMS_H

#include "arch.h"
#include "objects.h"

/*
 * A hook in two forms with the same body. on_F and after_F run in the trampoline
 * of the function, where they can be preempted; calls of the function by other
 * tasks are then missed. probe_on_F and probe_after_F are probes, which run with
 * preemption off and cost more; they are used if the kernel's preemption model
 * requires it. The end of a probed function has its result, but not its
 * arguments: probe_on_F saves those that the body needs.
 */
#define AT_ENTRY(function, suffix)                                                   \
	static __always_inline int entry_##function##suffix(void *ctx, bool probed); \
	SEC("fentry/" #function) int on_##function##suffix(void *ctx)                \
	{                                                                            \
		return entry_##function##suffix(ctx, false);                         \
	}                                                                            \
	SEC("kprobe.multi") int probe_on_##function##suffix(void *ctx)               \
	{                                                                            \
		return entry_##function##suffix(ctx, true);                          \
	}                                                                            \
	static __always_inline int entry_##function##suffix(void *ctx, bool probed)

#define AT_END(function, suffix)                                                   \
	static __always_inline int end_##function##suffix(void *ctx, bool probed); \
	SEC("fexit/" #function) int after_##function##suffix(void *ctx)            \
	{                                                                          \
		return end_##function##suffix(ctx, false);                         \
	}                                                                          \
	SEC("kprobe.multi") int probe_after_##function##suffix(void *ctx)          \
	{                                                                          \
		return end_##function##suffix(ctx, true);                          \
	}                                                                          \
	static __always_inline int end_##function##suffix(void *ctx, bool probed)

/* A probe at the entry that only saves arguments for the end of the function. */
#define KEEPS(function, class, first, second, third)           \
	SEC("kprobe.multi") int probe_on_##function(void *ctx) \
	{                                                      \
		struct object_note *note = class;              \
                                                               \
		if (!note)                                     \
			return 0;                              \
		note->kept[0] = probe_argument(ctx, first);    \
		note->kept[1] = probe_argument(ctx, second);   \
		note->kept[2] = probe_argument(ctx, third);    \
		return 0;                                      \
	}

static __always_inline __u64 argument(void *ctx, __u32 i, bool probed)
{
	return probed ? probe_argument(ctx, i) : hooked(ctx, i);
}

/* The result of a function that has as many arguments where the kernel lacks the helper. */
static __always_inline __u64 result(void *ctx, __u32 arguments, bool probed)
{
	__u64 value = 0;

	if (probed)
		return probe_result(ctx);
	if (!HAS_HELPER(get_func_ret))
		return context_word(ctx, arguments);
	bpf_get_func_ret(ctx, &value);
	return value;
}

#endif /* TARSIER_HOOK_FORMS_H */
