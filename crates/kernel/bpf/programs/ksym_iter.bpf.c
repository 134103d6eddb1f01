// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Lists symbols of the kernel, as /proc/kallsyms does, but only those that may be
 * of interest: the kernel formats each line that it lists.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Types of this program's own, for members that only it reads. */
struct kallsym_iter___tarsier {
	unsigned long value;
	char type;
	char name[8];
	char module_name[8];
	int show_value;
} __attribute__((preserve_access_index));

struct bpf_iter__ksym___tarsier {
	struct bpf_iter_meta *meta;
	struct kallsym_iter___tarsier *ksym;
};

/* Whether the name may begin as one in symbol_names.rs of crates/kernel/capture does. */
static __always_inline bool may_matter(const struct kallsym_iter___tarsier *symbol)
{
	char first = symbol->name[0], second = symbol->name[1];
	char third = symbol->name[2], fourth = symbol->name[3];

	if (first == 'i')
		return second == 'o' && third == '_';
	if (first == 'r')
		return second == 'e' && third == 'a' && fourth == 'd';
	if (first == 's')
		return second == 'e' && (third == 'l' || third == 'c');
	if (first != '_' || second != '_')
		return false;
	return (third == 'x' && fourth == '6') || (third == 'i' && fourth == 'a') ||
	       (third == 'a' && fourth == 'r') || (third == 'd' && fourth == 'o');
}

SEC("iter/ksym")
int symbols(struct bpf_iter__ksym___tarsier *ctx)
{
	struct kallsym_iter___tarsier *symbol = ctx->ksym;
	__u64 address;

	if (!symbol || symbol->module_name[0] || !may_matter(symbol))
		return 0;
	address = symbol->show_value ? symbol->value : 0;
	BPF_SEQ_PRINTF(ctx->meta->seq, "%016llx %c %s\n", address, symbol->type, symbol->name);
	return 0;
}
