/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Included by every program: the kernel's types, libbpf's helpers, guarded reads. */
#ifndef TARSIER_BASE_H
#define TARSIER_BASE_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "read.h"
#include "../../../log/record/include/tarsier_event.h"

/*
 * For a function that a program contains once, however often it is called. The kernel inlines calls
 * of some helpers, such as look-ups in maps, and moves the rest of the program for each.
 */
#define ONCE __noinline __attribute__((unused))

/* A number that is at most `max`, in a way that the verifier sees. */
#define AT_MOST(number, max) asm volatile("%[n] &= %[m]" : [n] "+r"(number) : [m] "i"(max))

#endif /* TARSIER_BASE_H */
