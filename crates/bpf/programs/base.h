/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Included by every program: the kernel's types, libbpf's helpers, guarded reads. */
#ifndef TARSIER_BASE_H
#define TARSIER_BASE_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "read.h"
#include "../../event/include/tarsier_event.h"

#endif /* TARSIER_BASE_H */
