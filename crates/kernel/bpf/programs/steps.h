/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Bounded repetition: by bpf_loop(), or over the elements of an array where the kernel lacks that. */
#ifndef TARSIER_STEPS_H
#define TARSIER_STEPS_H

#include "base.h"

/* The most steps of a loop. */
#define STEPS_MAX 8192

/* Has an element for each step, whose value nobody reads. One is enough for kernels with bpf_loop(). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STEPS_MAX);
	__type(key, __u32);
	__type(value, __u8);
} steps SEC(".maps");

/*
 * Defines a step: STEP(name, TYPE *of, count) { … } is called for i = 0, 1, … until it returns 1,
 * at most `count` times, which may depend on `of`. REPEAT(name, of) does these steps, and returns
 * how many there were; at least `count` if none has returned 1.
 *
 * Both helpers call the same function, with other arguments: bpf_loop() with i and `of`, the other
 * one with the map, a pointer to i, the value and `of`. The latter is moved by an instruction that
 * stays in its branch: where there is no such argument, the verifier refuses to look at it.
 */
#define STEP(name, of, count)                                                                 \
	static __always_inline __u64 name##_count(of)                                         \
	{                                                                                     \
		return (count);                                                               \
	}                                                                                     \
	static __always_inline long name##_body(__u32 i, of);                                 \
	static long name(__u64 first, void *second, void *value, void *fourth)                \
	{                                                                                     \
		void *at = second;                                                            \
		__u32 i = first;                                                              \
                                                                                              \
		if (!HAS_HELPER(loop)) {                                                      \
			asm volatile("%[at] = %[from]" : [at] "=r"(at) : [from] "r"(fourth)); \
			i = *(__u32 *)second;                                                 \
			if (i >= name##_count(at))                                            \
				return 1;                                                     \
		}                                                                             \
		return name##_body(i, at);                                                    \
	}                                                                                     \
	static __always_inline long name##_body(__u32 i, of)

#define REPEAT(name, of)                                              \
	(HAS_HELPER(loop) ? bpf_loop(name##_count(of), name, (of), 0) \
			  : bpf_for_each_map_elem(&steps, name, (of), 0))

#endif /* TARSIER_STEPS_H */
