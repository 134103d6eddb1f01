/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Finds the class of a new cgroup from that of its parent and its own name, by the rules of
 * crates/core/identity, with which tests compare it. Where these rules need more than is done here
 * (names of machines with escapes), and where others than root may have chosen a name that decides,
 * the cgroup gets no class.
 */
#ifndef TARSIER_CGROUP_CLASS_H
#define TARSIER_CGROUP_CLASS_H

#include "steps.h"
#include "workloads.h"

/* The names that rules ask about, with their numbers. The daemon writes them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WORKLOAD_NAMES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct workload_name);
	__type(value, __u32);
} workload_names SEC(".maps");

#define ID_LEN 64

/* The name of a cgroup that is being classified. */
struct naming {
	struct workload_name *key; /* has the name as its text */
	const char *name; /* in the kernel, without the mark that systemd may put before it */
	__u64 len;
	__u32 is_allowed; /* all of it is allowed in the name of a unit */
	__u32 has_escape;
	__u32 is_hex; /* of the text that hex_step() looks at */
	__u32 is_delegated; /* others than root may have chosen it, or one above it */
	__u8 id[ID_LEN];
};

/* VALID_CHARS of systemd's src/basic/unit-name.c, and `@`. */
STEP(name_step, struct naming *n, n->len)
{
	__u32 c = (__u8)n->key->name[i & (NAME_MAX_LEN - 1)];

	if (c == '\\')
		n->has_escape = 1;
	else if (!(c - 'a' < 26 || c - '@' < 27 || c - '0' < 11 || c - '-' < 2 || c == '_'))
		n->is_allowed = 0;
	return 0;
}

STEP(hex_step, struct naming *n, ID_LEN)
{
	__u32 c = n->id[i & (ID_LEN - 1)];

	if (!(c - '0' < 10 || (c | 32) - 'a' < 6))
		n->is_hex = 0;
	return !n->is_hex;
}

/* Whether `len` bytes of the kernel's, at most 16, are those of `text`. */
static __always_inline bool is_text(const char *at, const char *text, __u32 len)
{
	__u64 found[2] = {}, wanted[2] = {};

	__builtin_memcpy(wanted, text, len);
	return !bpf_probe_read_kernel(found, len, at) && found[0] == wanted[0] &&
	       found[1] == wanted[1];
}

#define IS_TEXT(at, text) is_text((at), (text), sizeof(text) - 1)
#define STARTS(n, text) ((n)->len >= sizeof(text) - 1 && IS_TEXT((n)->name, text))
#define ENDS(n, text) \
	((n)->len >= sizeof(text) - 1 && IS_TEXT((n)->name + (n)->len - (sizeof(text) - 1), text))
#define IS(n, text) ((n)->len == sizeof(text) - 1 && IS_TEXT((n)->name, text))

static __always_inline bool is_id(struct naming *n, const char *at)
{
	n->is_hex = !bpf_probe_read_kernel(n->id, ID_LEN, at);
	REPEAT(hex_step, n);
	return n->is_hex;
}

/* The number of the key's text; `otherwise` if no rule names it. */
static __always_inline __u32 number_of(struct naming *n, __u32 kind, __u32 otherwise)
{
	__u32 *number;

	n->key->kind = kind;
	number = bpf_map_lookup_elem(&workload_names, n->key);
	return number ? *number : otherwise;
}

/* The number of the container with this id. */
static __always_inline __u32 container_named(struct naming *n, const char *at, __u64 len)
{
	__builtin_memset(n->key->name, 0, sizeof(n->key->name));
	asm volatile("%[len] &= %[mask]" : [len] "+r"(len) : [mask] "i"(NAME_MAX_LEN - 1));
	if (bpf_probe_read_kernel(n->key->name, len, at))
		return WORKLOAD_SOME_CONTAINER;
	return number_of(n, WORKLOAD_CONTAINER, WORKLOAD_SOME_CONTAINER);
}

/* Whether the first `len` bytes of the name are those of a container's monitor. */
static __always_inline bool is_monitor(struct naming *n, __u64 len)
{
	char before = '-';

	if (len < 6 || !IS_TEXT(n->name + len - 6, "conmon"))
		return false;
	if (len > 6)
		bpf_probe_read_kernel(&before, 1, n->name + len - 7);
	return before == '-' || before == ':';
}

/* Length of the name before an id of a container in PREFIX-ID, PREFIX-ID.scope or PREFIX:ID; 0: none. */
static __always_inline __u64 prefix_of_id(struct naming *n)
{
	__u64 len = ENDS(n, ".scope") ? n->len - 6 : n->len;
	char separator = 0;

	if (len <= ID_LEN)
		return 0;
	len -= ID_LEN;
	bpf_probe_read_kernel(&separator, 1, n->name + len - 1);
	if ((separator != '-' && separator != ':') || is_monitor(n, len - 1) ||
	    !is_id(n, n->name + len))
		return 0;
	return len;
}

/* Finds the name of a machine in that of its cgroup. Returns where it begins; 0: it is no machine. */
static __always_inline __u64 machine_at(struct naming *n, __u64 *len)
{
	__u64 at = 0, end;

	if (n->len >= 14 && STARTS(n, "machine-") && ENDS(n, ".scope")) {
		at = 8;
		end = 6;
	} else if (n->len >= 23 && STARTS(n, "systemd-nspawn@") && ENDS(n, ".service")) {
		at = 15;
		end = 8;
	} else {
		return 0;
	}
	*len = n->len - at - end;
	if (!*len || (*len >= 5 && IS_TEXT(n->name + at, "qemu-")))
		return 0;
	return at;
}

/* The number of the container that the cgroup is of; 0: none. */
static __always_inline __u32 container_of_name(struct naming *n, __u32 parent, __u64 machine,
					       __u64 machine_len)
{
	__u64 at;

	if (n->len == ID_LEN && is_id(n, n->name))
		return container_named(n, n->name, ID_LEN);
	at = prefix_of_id(n);
	if (at)
		return container_named(n, n->name + at, ID_LEN);
	if (STARTS(n, "lxc.payload.")) {
		if (n->len > 12)
			return container_named(n, n->name + 12, n->len - 12);
	} else if ((parent & WORKLOAD_IS_LXC) && n->len) {
		return container_named(n, n->name, n->len);
	}
	return machine ? container_named(n, n->name + machine, machine_len) : 0;
}

/* Makes of `class`, which is that of the parent, the class of the cgroup. Returns whether it is known. */
static __always_inline bool descend(struct naming *n, struct workload *class)
{
	__u32 parent = class->flags, container;
	__u64 machine, machine_len = 0;

	class->flags &= WORKLOAD_IS_SETTLED;
	if (!class->flags) {
		if (n->is_delegated)
			return false;
		if (n->is_allowed && n->len > 6 && ENDS(n, ".slice")) {
			class->slice = number_of(n, WORKLOAD_SLICE, 0);
		} else {
			class->unit = number_of(n, WORKLOAD_UNIT, 0);
			class->flags = WORKLOAD_IS_SETTLED;
		}
	}
	machine = machine_at(n, &machine_len);
	if (machine && n->has_escape)
		return false;
	container = container_of_name(n, parent, machine, machine_len);
	if (container) {
		if (n->is_delegated || class->container)
			return false;
		class->container = container;
	} else if ((parent & WORKLOAD_IS_MACHINE) && !n->is_delegated && IS(n, "supervisor")) {
		class->container = 0;
	}
	if (IS(n, "lxc"))
		class->flags |= WORKLOAD_IS_LXC;
	if (machine)
		class->flags |= WORKLOAD_IS_MACHINE;
	if (n->is_delegated)
		class->flags |= WORKLOAD_IS_DELEGATED;
	return true;
}

/*
 * Gives a new cgroup its class, if that of its parent is known. `is_of_root`: only root may make
 * cgroups there. Uses the frame of `w`. Not a global function, since up to 6.1 a key cannot be in
 * the memory of a parameter.
 */
static __always_inline void classify(struct work *w, __u64 id, __u64 parent_id, const char *name,
				     bool is_of_root)
{
	struct workload *parent, class;
	struct naming n = {};
	long len;
	char mark;

	parent = bpf_map_lookup_elem(&workloads, &parent_id);
	if (!parent || parent->epoch != control.workload_epoch)
		return;
	class = *parent;
	n.key = (struct workload_name *)w->frame;
	n.name = name;
	n.is_delegated = !is_of_root || (class.flags & WORKLOAD_IS_DELEGATED);
	__builtin_memset(n.key, 0, sizeof(*n.key));
	n.key->epoch = class.epoch;
	if (!bpf_probe_read_kernel(&mark, 1, n.name) && mark == '_')
		n.name++;
	len = bpf_probe_read_kernel_str(n.key->name, sizeof(n.key->name), n.name);
	if (len < 1)
		return;
	n.len = len - 1;
	n.is_allowed = 1;
	REPEAT(name_step, &n);
	if (descend(&n, &class))
		bpf_map_update_elem(&workloads, &id, &class, BPF_ANY);
}

#endif /* TARSIER_CGROUP_CLASS_H */
