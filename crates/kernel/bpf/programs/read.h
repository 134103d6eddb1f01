/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Reads of structure members that some kernels lack. The loader replaces the
 * access to a missing member by an instruction that the verifier refuses. Here
 * that instruction is behind a condition that the verifier knows to be false, so
 * that it never sees it. Members that every event needs (Need::Essential in
 * crates/kernel/capture/src/gaps) are read without these macros.
 */
#ifndef TARSIER_READ_H
#define TARSIER_READ_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>

#define ___has2(src, a) bpf_core_field_exists(((typeof(src))0)->a)
#define ___has3(src, a, b) (___has2(src, a) && ___has2((src)->a, b))
#define ___has4(src, a, b, c) (___has3(src, a, b) && ___has2((src)->a->b, c))
#define ___has5(src, a, b, c, d) (___has4(src, a, b, c) && ___has2((src)->a->b->c, d))

/* Whether the kernel has a chain of members, each in the target of the previous one. A constant. */
#define HAS(src, ...) ___apply(___has, ___narg(src, __VA_ARGS__))((src), __VA_ARGS__)

/* HAS() for a structure given by its name instead of a pointer to it. */
#define TYPE_HAS(type, ...) HAS((struct type *)0, __VA_ARGS__)

/* BPF_CORE_READ(), or `otherwise` if the kernel lacks a member. */
#define READ_OR(otherwise, src, ...) \
	(HAS(src, __VA_ARGS__) ? BPF_CORE_READ(src, __VA_ARGS__) : (otherwise))

/* BPF_CORE_READ(), or 0 if the kernel lacks a member. */
#define READ(src, ...) READ_OR((___type((src), __VA_ARGS__))0, src, __VA_ARGS__)

/* As READ_OR(), but with plain loads, for a `src` whose type the verifier knows. */
#define LOAD(otherwise, src, ...) \
	(HAS(src, __VA_ARGS__) ? ___arrow((src), __VA_ARGS__) : (otherwise))

/* Whether the kernel has a helper that not all have. A constant. */
#define HAS_HELPER(name) bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_##name)

extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym __weak;

#ifdef TARSIER_WITHOUT_CASTS
/* For programs that are loaded with a part of the kernel's types, whose ids are not the kernel's. */
#define OF(type, at, ...)                                 \
	({                                                \
		struct type *from_ = (struct type *)(at); \
                                                          \
		READ(from_, __VA_ARGS__);                 \
	})
#else
/*
 * As READ(), for the structure at an address, with plain loads where the kernel has
 * bpf_rdonly_cast(). They read 0 if the address is not valid.
 */
#define OF(type, at, ...)                                                               \
	({                                                                              \
		void *address_ = (void *)(at);                                          \
                                                                                        \
		bpf_ksym_exists(bpf_rdonly_cast)                                        \
			? LOAD(0,                                                       \
			       (struct type *)bpf_rdonly_cast(                          \
				       address_, bpf_core_type_id_kernel(struct type)), \
			       __VA_ARGS__)                                             \
			: READ((struct type *)address_, __VA_ARGS__);                   \
	})
#endif

#endif /* TARSIER_READ_H */
