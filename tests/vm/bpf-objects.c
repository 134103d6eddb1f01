/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints how many BPF programs, maps and links the kernel holds, whoever created them.
 * `bpf-objects programs` prints each program's name and how many instructions the verifier processed.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Number of objects, counted by asking for the next id until there is none; -1 and errno on failure. */
static int count(enum bpf_cmd next_id)
{
	union bpf_attr attr;
	int found = 0;

	memset(&attr, 0, sizeof(attr));
	while (syscall(SYS_bpf, next_id, &attr, sizeof(attr)) == 0) {
		attr.start_id = attr.next_id;
		found++;
	}
	return errno == ENOENT ? found : -1;
}

static int list_programs(void)
{
	union bpf_attr attr;
	__u32 id = 0;

	for (;;) {
		struct bpf_prog_info info;
		int fd;

		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
		if (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attr, sizeof(attr)) != 0)
			return errno == ENOENT ? 0 : 1;
		id = attr.next_id;
		memset(&attr, 0, sizeof(attr));
		attr.prog_id = id;
		fd = syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &attr, sizeof(attr));
		if (fd < 0)
			continue;
		memset(&attr, 0, sizeof(attr));
		memset(&info, 0, sizeof(info));
		attr.info.bpf_fd = fd;
		attr.info.info_len = sizeof(info);
		attr.info.info = (unsigned long)&info;
		if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) == 0)
			printf("%s\t%u\n", info.name, info.verified_insns);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "programs") == 0)
		return list_programs();
	int programs = count(BPF_PROG_GET_NEXT_ID), maps = count(BPF_MAP_GET_NEXT_ID),
	    links = count(BPF_LINK_GET_NEXT_ID);

	if (programs < 0 || maps < 0 || links < 0) {
		perror("bpf-objects: the kernel does not count");
		return 1;
	}
	printf("programs %d maps %d links %d\n", programs, maps, links);
	return 0;
}
