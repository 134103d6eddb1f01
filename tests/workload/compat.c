/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by the 32-bit entry of an x86-64 kernel, if it has one. */
#include "workload.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static long int80(long nr, long a0, long a1, long a2, long a3)
{
	int ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(nr), "b"(a0), "c"(a1), "d"(a2), "S"(a3)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

static void no_entry(int signal)
{
	(void)signal;
	_exit(1);
}

/* Tried in a child, as the instruction faults on a kernel without the entry. */
bool compat_possible(void)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, no_entry);
		_exit(int80(20 /* getpid */, 0, 0, 0, 0) == getpid() ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static long call32(struct self *me, const char *name, long nr, long a0, long a1, long a2, long a3)
{
	long args[4] = { a0, a1, a2, a3 };
	struct record *rec = begin(me, "b32", name, args, nr);
	long ret = int80(nr, a0, a1, a2, a3);

	end(rec, me, ret);
	return ret;
}

void compat_calls(struct self *me, const char *dir)
{
	/* The entry takes 32-bit pointers. */
	char *low = (char *)CALL(mmap, NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long name = (long)low, other = (long)low + 64;

	(void)dir;
	memcpy(low, "a 32-bit file", 14);
	memcpy(low + 64, "moved", 6);
	NAMES(low);
	call32(me, "close", 6, call32(me, "open", 5, name, O_CREAT | O_WRONLY, 0600, 0), 0, 0, 0);
	NAMES(low);
	call32(me, "close", 6, call32(me, "openat", 295, 0xffffff9c, name, O_RDONLY, 0), 0, 0, 0);
	NAMES(low);
	call32(me, "chmod", 15, name, 0640, 0, 0);
	NAMES(low);
	NAMES("moved");
	call32(me, "rename", 38, name, other, 0, 0);
	NAMES(low);
	call32(me, "unlink", 10, name, 0, 0, 0);
	NAMES("moved");
	call32(me, "unlink", 10, other, 0, 0, 0);
	NAMES("moved");
	call32(me, "mkdir", 39, other, 0700, 0, 0);
	NAMES("moved");
	call32(me, "rmdir", 40, other, 0, 0, 0);
	call32(me, "getppid", 64, 0, 0, 0, 0);
	CALL(munmap, low, 4096);
}
