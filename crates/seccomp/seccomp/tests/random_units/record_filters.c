/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into systemd by start: seccomp_load() writes the program to standard error, as lines of
 * hexadecimal digits after a line `filter`, and installs nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

int seccomp_export_bpf(void *context, int fd);

int seccomp_load(void *context)
{
	unsigned char insn[8];
	char line[2 * sizeof(insn) + 1];
	int fd = memfd_create("filter", MFD_CLOEXEC);
	int error = fd < 0 ? -errno : seccomp_export_bpf(context, fd);

	if (error)
		return error;
	dprintf(STDERR_FILENO, "filter\n");
	lseek(fd, 0, SEEK_SET);
	while (read(fd, insn, sizeof(insn)) == sizeof(insn)) {
		for (unsigned int i = 0; i < sizeof(insn); i++)
			snprintf(line + 2 * i, 3, "%02x", insn[i]);
		dprintf(STDERR_FILENO, "%s\n", line);
	}
	close(fd);
	return 0;
}

/* Since version 254, MemoryDenyWriteExecute= is a filter only where the kernel has no PR_SET_MDWE. */
int prctl(int option, ...)
{
	unsigned long rest[4];
	va_list list;

	va_start(list, option);
	for (unsigned int i = 0; i < 4; i++)
		rest[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_MDWE) {
		errno = EINVAL;
		return -1;
	}
	return syscall(SYS_prctl, option, rest[0], rest[1], rest[2], rest[3]);
}
