/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to make a call that rules select so that it might not be recorded.
 *
 * Each technique has a group of its own, by which its rules in `rules` select it. It runs in a process group
 * of its own, in the directory DIR/NAME, and counts the selected calls that it made. Only threads between
 * select_calls() and unselect_calls() are in the group, so that preparations are not selected.
 */
#ifndef EVADE_H
#define EVADE_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define GID_FIRST 61400

struct technique {
	const char *name;
	/* Makes `count` rounds; a round may be several calls. */
	void (*run)(int count);
	int count;
	/* What has to be there when the rules are loaded; may be NULL. */
	void (*prepare)(void);
};

/* The tables of techniques end with an entry without name. */
extern const struct technique number_techniques[];
extern const struct technique exec_techniques[];
extern const struct technique chain_techniques[];
extern const struct technique exe_techniques[];
extern const struct technique path_techniques[];
extern const struct technique tree_techniques[];
extern const struct technique memory_techniques[];
extern const struct technique flip_techniques[];
extern const struct technique trace_techniques[];
extern const struct technique ring_techniques[];
extern const struct technique flood_techniques[];
extern const struct technique claim_techniques[];
extern const struct technique reach_techniques[];
extern const struct technique later_techniques[];
extern const struct technique handed_techniques[];

/* DIR, DIR/NAME and group of the technique that runs. */
extern char top[PATH_MAX / 4];
extern char home[PATH_MAX / 2];
extern gid_t group;

/* Counts selected calls that were made. */
void made(long calls);
long made_so_far(void);
/*
 * Counts a call that carries a number of its own, for techniques that make similar calls which the rule does not
 * select: only events with the numbers of selected calls count. It is argument 0, or argument 1 of calls whose
 * argument 0 is a pointer.
 */
#define TAGS_MAX 16384
void made_tagged(unsigned tag);
/* The technique ends: it is not possible here, or something in it failed. */
_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The calling thread enters and leaves the technique's group. */
void select_calls(void);
void unselect_calls(void);

/* Fails unless the result of a call is what is expected. */
void expect(const char *what, long result, long wanted);
/* Runs `body` in a child, without waiting for it; the child ends with status 0 when it returns. */
pid_t start(void (*body)(void *), void *argument);
/* Waits for a child, which must end with status 0. */
void await(pid_t pid);
void in_child(void (*body)(void *), void *argument);
/* Runs `body` in a thread; thread_id() waits for its number. */
struct thread {
	pthread_t handle;
	void (*body)(void *);
	void *argument;
	_Atomic pid_t id;
};
void thread_start(struct thread *thread, void (*body)(void *), void *argument);
void thread_join(struct thread *thread);
/* Waits until the thread sleeps in the system call; false if it has ended. */
bool await_blocked(pid_t thread, long nr);

/* Files. Paths are relative to `home`, which is the working directory. */
void write_file(const char *path, const char *text, mode_t mode);
void make_dir(const char *path);
bool exists(const char *path);
/* Copies this program, so that `path act COUNT` makes calls. */
void copy_program(const char *path);
void copy_file(const char *source, const char *path);
/* The program DIR/evade, a copy of this one. */
const char *program(void);
/* Executes `path act COUNT`, which makes `count` getppid calls. In a child of its own with run_program(). */
_Noreturn void execute(const char *path, int count);
void run_program(const char *path, int count);
/* Mounts; skip() where the kernel does not have the file system. */
void mount_or_skip(const char *source, const char *target, const char *type, unsigned long flags,
		   const char *data);
/* An overlay with `file` and `prog` in its lower layer; btrfs at `mnt`, with the subvolume `mnt/sub`. */
void mount_overlay(const char *target);
void mount_btrfs(void);
/* Skips unless a step of preparation could mount the file system that has this file. */
void need_mounted(const char *path, const char *type);
/* Makes /dev/fd, a link to /proc/self/fd that guests may lack. */
void need_dev_fd(void);

/* A call with all bits of its number as given. Not a function, so that the child of CLONE_VM may use the stack. */
static inline __attribute__((always_inline)) long raw(unsigned long nr, long a, long b, long c)
{
	long result;

	asm volatile("syscall"
		     : "=a"(result)
		     : "a"(nr), "D"(a), "S"(b), "d"(c)
		     : "rcx", "r11", "memory");
	return result;
}

int count_main(const char *rules, const char *log, const char *made);

#endif
