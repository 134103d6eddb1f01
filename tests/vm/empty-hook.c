/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command while BPF programs that do nothing are attached to kernel functions or tracepoints.
 * Measures what the kernel's entry to and exit from a program cost: the least that any program costs.
 *
 * usage: empty-hook fentry|fexit FUNCTION… -- COMMAND…
 *        empty-hook tp_btf TRACEPOINT… -- COMMAND…
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	exit(1);
}

/* The kernel's type information (BTF). */
static char *read_types(void)
{
	size_t size = 0, room = 64 << 20;
	char *types = malloc(room);
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY);
	ssize_t n;

	if (fd < 0 || !types)
		fail("empty-hook: /sys/kernel/btf/vmlinux");
	while ((n = read(fd, types + size, room - size)) > 0)
		size += n;
	close(fd);
	return types;
}

/* Number of bytes that follow a type's header. */
static size_t rest_of(const struct btf_type *type)
{
	size_t count = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return 12;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case 19: /* BTF_KIND_ENUM64, since Linux 6.0 */
		return 12 * count;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return 8 * count;
	default:
		return 0;
	}
}

/* BTF id of a type of this kind; 0 if the kernel has none of that name. */
static __u32 id_of(const char *types, int kind, const char *name)
{
	const struct btf_header *header = (const struct btf_header *)types;
	const char *at = types + header->hdr_len + header->type_off, *end = at + header->type_len;
	const char *strings = types + header->hdr_len + header->str_off;
	__u32 id;

	for (id = 1; at < end; id++) {
		const struct btf_type *type = (const struct btf_type *)at;

		if (BTF_INFO_KIND(type->info) == kind &&
		    strcmp(strings + type->name_off, name) == 0)
			return id;
		at += sizeof(*type) + rest_of(type);
	}
	return 0;
}

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* Attaches `return 0` to a function or tracepoint; the link lives as long as this process. */
static void hook(__u32 id, enum bpf_attach_type where)
{
	struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K }, /* r0 = 0 */
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;
	int program;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_TRACING;
	attr.expected_attach_type = where;
	attr.attach_btf_id = id;
	attr.insns = (unsigned long)code;
	attr.insn_cnt = sizeof(code) / sizeof(code[0]);
	attr.license = (unsigned long)"GPL";
	program = bpf(BPF_PROG_LOAD, &attr);
	if (program < 0)
		fail("empty-hook: loading");
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = program;
	attr.link_create.attach_type = where;
	if (bpf(BPF_LINK_CREATE, &attr) < 0)
		fail("empty-hook: attaching");
}

int main(int argc, char **argv)
{
	enum bpf_attach_type where;
	char *types, name[128];
	int i, status, kind;
	const char *prefix;
	pid_t child;

	if (argc < 5)
		return 2;
	where = strcmp(argv[1], "fexit") == 0	 ? BPF_TRACE_FEXIT
		: strcmp(argv[1], "tp_btf") == 0 ? BPF_TRACE_RAW_TP
						 : BPF_TRACE_FENTRY;
	/* The arguments of a tracepoint are those of a type. */
	kind = where == BPF_TRACE_RAW_TP ? BTF_KIND_TYPEDEF : BTF_KIND_FUNC;
	prefix = where == BPF_TRACE_RAW_TP ? "btf_trace_" : "";
	types = read_types();
	for (i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
		__u32 id;

		snprintf(name, sizeof(name), "%s%s", prefix, argv[i]);
		id = id_of(types, kind, name);
		if (!id) {
			fprintf(stderr, "empty-hook: the kernel has no %s\n", name);
			return 1;
		}
		hook(id, where);
	}
	free(types);
	child = fork();
	if (child < 0)
		fail("empty-hook: fork");
	if (child == 0) {
		execvp(argv[i + 1], argv + i + 1);
		fail(argv[i + 1]);
	}
	if (waitpid(child, &status, 0) < 0)
		fail("empty-hook: waiting");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
