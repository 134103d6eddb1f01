/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random calls under random rules. What the kernel's own audit records of them, an engine has to record, too, or to
 * count as lost.
 *
 * Everything follows from a seed: the rules, and the calls of each scene. A scene is a process that looks at the tree
 * DIR from a place of its own: a root directory, a mount namespace, mounts, descriptors, and perhaps threads that
 * change what they can. Only its processes have the group of the rules.
 */
#ifndef HUNT_H
#define HUNT_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Group of all processes that make calls. */
#define HUNT_GID 61399
#define PATH_BYTES 512
/* User who owns some of the files. */
#define SOME_UID 1000

/* What a seed may do. */
struct plan {
	uint64_t seed;
	/* Objects of rules are removed, renamed and made anew. */
	bool is_moving;
	/* Threads change links and descriptors during calls. */
	bool is_racing;
	/* Some of the calls are operations of io_uring. */
	bool has_rings;
};

/* DIR, absolute. */
extern char base[PATH_BYTES / 2];
extern struct plan plan;

/* Numbers of the seed, xorshift64*. */
void seed_with(uint64_t seed, uint64_t stream);
unsigned below(unsigned count);
bool chance(unsigned percent);
#define ONE_OF(array) ((array)[below(sizeof(array) / sizeof((array)[0]))])

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* tree.c: the objects. Names are relative to DIR. */
void make_tree(void);
/* Puts back what a scene has changed. */
void repair_tree(void);
/* An object that a rule may name: a file, a directory, a program. */
const char *rule_file(void);
const char *rule_directory(void);
const char *rule_program(void);
/* A name for a call, with its text in `path` of PATH_BYTES; what the call does may take the object away. */
void draw_path(char *path, const char *from, bool is_destroyed);

/* scene.c: the place from which a scene looks. */
struct place {
	/* Prefix of names relative to DIR that makes them absolute; below another root, "" or NULL: not visible. */
	const char *prefix;
	/* Working directory, relative to DIR. */
	const char *cwd;
};
extern struct place place;
#define POOL 8
/* Descriptors: of directories first, with their names, then of files. */
#define POOL_DIRECTORIES 4
extern int pool[POOL];
extern const char *const pool_names[POOL];
void run_scene(unsigned number);

/* calls.c */
void make_call(unsigned serial);
/* ring.c */
void make_operation(void);
/* What the program of rules does when it is executed. */
int act(char **paths);

/* rules.c, judge.c */
void print_rules(void);
/* Status 1: calls are missed. `work` has the files rules, calls, kernel and log. */
int judge(const char *work);

#endif
