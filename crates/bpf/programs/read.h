/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Reads of kernel structures that a kernel may lack members of. What the loader
 * cannot place it replaces by an instruction that the verifier refuses; here it
 * lies behind a question whose answer the verifier knows, so that it is never
 * looked at. Members that every event needs (Need::Essential,
 * crates/capture/src/gaps) are read without.
 */
#ifndef TARSIER_READ_H
#define TARSIER_READ_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>

#define ___has2(src, a) bpf_core_field_exists(((typeof(src))0)->a)
#define ___has3(src, a, b) (___has2(src, a) && ___has2((src)->a, b))
#define ___has4(src, a, b, c) (___has3(src, a, b) && ___has2((src)->a->b, c))
#define ___has5(src, a, b, c, d) (___has4(src, a, b, c) && ___has2((src)->a->b->c, d))

/* Whether the kernel has these members, each of what the one before points to. A constant. */
#define HAS(src, ...) ___apply(___has, ___narg(src, __VA_ARGS__))((src), __VA_ARGS__)

/* HAS() for a structure by its name, where no pointer to one is at hand. */
#define TYPE_HAS(type, ...) HAS((struct type *)0, __VA_ARGS__)

/* BPF_CORE_READ(), or `otherwise` where the kernel lacks a member. */
#define READ_OR(otherwise, src, ...) \
	(HAS(src, __VA_ARGS__) ? BPF_CORE_READ(src, __VA_ARGS__) : (otherwise))

/* The same, and 0 otherwise. */
#define READ(src, ...) READ_OR((___type((src), __VA_ARGS__))0, src, __VA_ARGS__)

/* By loads, where the verifier knows the type of `src`. */
#define LOAD(otherwise, src, ...) \
	(HAS(src, __VA_ARGS__) ? ___arrow((src), __VA_ARGS__) : (otherwise))

#endif /* TARSIER_READ_H */
