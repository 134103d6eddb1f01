/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that makes many different system calls and prints what it did.
 *
 *   workload [--mark GID] DIR               the calls of files.c and processes.c, inside DIR
 *   workload --count N [--threads T] [--child] [--mark GID] CALL
 *   workload --latency [--rounds R] [--calls N] [--file PATH]
 *   workload --rings …                      operations of io_uring: see rings.c
 *   workload --dead …                       a file system that does not answer: see dead.c
 *
 * Rules. Before its first counted call the program sets its real group to GID (default MARK_GID)
 * and nothing else; until it leaves the group again, every system call that it makes is in its
 * output. So these rules select the calls of the output and no others (-F exe leaves out the calls
 * of the programs that it executes):
 *
 *   -a always,exit -F arch=b64 -S execve,execveat -F gid=61234
 *   -a always,exit -F arch=b64 -S all -F gid=61234 -F exe=/path/of/workload
 *   (and the second one with arch=b32, for the calls whose arch column says b32)
 *
 * tests/workload/check compares the output with a log.
 *
 * A fork or clone is one line, that of the caller. Calls whose arch is `x32` must not be in any
 * log: the kernel does not audit the x32 entry.
 *
 * Output: a line that begins with `#` and has the names of the columns, then one line per call, in
 * the order in which the calls began. Columns are separated by tabs. Text is in hexadecimal; `-`
 * means that there is none, or that this program does not predict it.
 *
 *   seq   number of the line, from 0
 *   pid   process (thread group), tid thread, ppid parent process
 *   arch  b64, b32 or x32
 *   nr, name  of the system call in that architecture
 *   ret   what it returned, -errno for a failure; `-` for exit and exit_group
 *   a0-a3 argument registers, hexadecimal
 *   ids   uid,gid,euid,suid,fsuid,egid,sgid,fsgid when it returned
 *   comm, exe  when it returned
 *   cwd   the working directory in which it was made; with " (deleted)" after it, as the kernel
 *         prints it, if that directory is deleted when the call returns
 *   paths absolute, comma-separated: each path argument that could be read, in argument order,
 *         joined to its directory; `.`, `..` and doubled slashes are removed, links are not
 *         followed. The text of a symbolic link is not among them.
 *   argv  comma-separated, as the new program sees it; only if an exec succeeded
 *   saddr socket address, as passed to the kernel or as the kernel returned it
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#define MARK_GID 61234
#define PATH_BYTES 4096
#define PATHS_MAX 2

enum id {
	UID,
	GID,
	EUID,
	SUID,
	FSUID,
	EGID,
	SGID,
	FSGID,
	IDS
};

/* A thread that makes calls, with what the log has to record about it. */
struct self {
	int pid, tid, ppid;
	uint32_t ids[IDS];
	char comm[16];
	const char *exe;
	char cwd[PATH_BYTES + 64];
	/* Paths (`pending` of them) and socket address of the next call, which clears them. */
	int pending;
	char paths[PATHS_MAX][2 * PATH_BYTES];
	const void *saddr;
	size_t saddr_len;
};

/* truth.c */
extern const char *self_exe, *true_exe;

struct record *begin(struct self *me, const char *arch, const char *name, const long *args,
		     long nr);
void end(struct record *rec, struct self *me, long ret);
void record_exec(struct record *rec, struct self *me, const char *exe, const char *comm,
		 const char *const *argv);
void record_saddr(struct record *rec, const void *addr, size_t len);
long call(struct self *me, const char *name, long nr, long a0, long a1, long a2, long a3, long a4,
	  long a5);
_Noreturn void call_exit(struct self *me, const char *name, long nr, long status);
void names(struct self *me, const char *dir, const char *path);
void truth_init(void);
void truth_print(void);

static inline __attribute__((always_inline)) long raw(long nr, long a0, long a1, long a2, long a3,
						      long a4, long a5)
{
	register long r10 __asm__("r10") = a3;
	register long r8 __asm__("r8") = a4;
	register long r9 __asm__("r9") = a5;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a0), "S"(a1), "d"(a2), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* CALL(name, argument…): makes and records a system call; `me` is the calling thread. */
#define CALL(name, ...) CALL_(name, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_(name, a, b, c, d, e, f, ...)                                                 \
	call(me, #name, SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), \
	     (long)(f))

/* NAMES(path…): paths that the next CALL has as arguments, relative to the working directory. */
#define NAMES(path) names(me, NULL, path)
/* NAMES_AT(dir, path): the same, relative to `dir`, the absolute path behind a descriptor. */
#define NAMES_AT(dir, path) names(me, dir, path)

/* files.c, sockets.c, processes.c, compat.c: each leaves DIR and the descriptors as it found them. */
void files(struct self *me, const char *dir);
void sockets(struct self *me, const char *dir);
void processes(struct self *me, const char *dir);
void compat_calls(struct self *me, const char *dir);
bool compat_possible(void);

/* measure.c */
int count_main(int argc, char **argv);
int latency_main(int argc, char **argv);
int rings_main(int argc, char **argv);
int dead_main(int argc, char **argv);

#endif
