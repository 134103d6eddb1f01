/* SPDX-License-Identifier: Apache-2.0 */
/* Prints how many BPF programs, maps and links the kernel holds: all of them, whoever made them. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Counts by asking for the next id until there is none; -1 and errno if the kernel refuses. */
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

int main(void)
{
	int programs = count(BPF_PROG_GET_NEXT_ID), maps = count(BPF_MAP_GET_NEXT_ID),
	    links = count(BPF_LINK_GET_NEXT_ID);

	if (programs < 0 || maps < 0 || links < 0) {
		perror("bpf-objects: the kernel does not count");
		return 1;
	}
	printf("programs %d maps %d links %d\n", programs, maps, links);
	return 0;
}
