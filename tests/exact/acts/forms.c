/* SPDX-License-Identifier: Apache-2.0 */
/* Converts calls of x86-64 for an architecture that has them only in forms with more arguments. */
#define _GNU_SOURCE
#include "acts.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_open
long named_call(const char *name, long args[6])
{
	(void)args;
	return call_number(name);
}
#else
/* O_DIRECTORY, O_NOFOLLOW and O_DIRECT, as x86-64 numbers them. */
#define X86_DIRECTORY 0x10000
#define X86_NOFOLLOW 0x20000
#define X86_DIRECT 0x4000

/*
 * The call that replaces one of x86-64, with one letter per argument. A digit is that argument of the
 * original; `o` and `p` are its arguments 1 and 2 as flags of open; other letters are constants.
 */
static const struct {
	const char *name;
	long nr;
	const char *args;
} forms[] = {
	{ "chmod", SYS_fchmodat, "d01" },	{ "chown", SYS_fchownat, "d012z" },
	{ "creat", SYS_openat, "d0c1" },	{ "futimesat", SYS_utimensat, "012z" },
	{ "lchown", SYS_fchownat, "d012n" },	{ "link", SYS_linkat, "d0d1z" },
	{ "mkdir", SYS_mkdirat, "d01" },	{ "mknod", SYS_mknodat, "d012" },
	{ "open", SYS_openat, "d0o2" },		{ "openat", SYS_openat, "01p3" },
	{ "pause", SYS_ppoll, "zzzzz" },	{ "pipe", SYS_pipe2, "0z" },
	{ "readlink", SYS_readlinkat, "d012" }, { "rename", SYS_renameat, "d0d1" },
	{ "rmdir", SYS_unlinkat, "d0r" },	{ "stat", SYS_newfstatat, "d01z" },
	{ "symlink", SYS_symlinkat, "0d1" },	{ "unlink", SYS_unlinkat, "d0z" },
	{ "utime", SYS_utimensat, "d01z" },	{ "utimes", SYS_utimensat, "d01z" },
};

static long open_flags(long x86)
{
	long flags = x86 & ~(long)(X86_DIRECTORY | X86_NOFOLLOW | X86_DIRECT);

	if (x86 & X86_DIRECTORY)
		flags |= O_DIRECTORY;
	if (x86 & X86_NOFOLLOW)
		flags |= O_NOFOLLOW;
	if (x86 & X86_DIRECT)
		flags |= O_DIRECT;
	return flags;
}

static long formed(char letter, const long args[6])
{
	switch (letter) {
	case 'c':
		return O_CREAT | O_WRONLY | O_TRUNC;
	case 'd':
		return AT_FDCWD;
	case 'n':
		return AT_SYMLINK_NOFOLLOW;
	case 'o':
		return open_flags(args[1]);
	case 'p':
		return open_flags(args[2]);
	case 'r':
		return AT_REMOVEDIR;
	case 'z':
		return 0;
	default:
		return args[letter - '0'];
	}
}

long named_call(const char *name, long args[6])
{
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		const char *letters = forms[i].args;
		long made[6] = { 0 };

		if (strcmp(forms[i].name, name) != 0)
			continue;
		for (size_t k = 0; letters[k]; k++)
			made[k] = formed(letters[k], args);
		memcpy(args, made, sizeof made);
		return forms[i].nr;
	}
	return call_number(name);
}
#endif

/* fork(2); clone(2) without flags on architectures that have no fork. */
long fork_call(void)
{
#ifdef SYS_fork
	return syscall(SYS_fork);
#else
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}
