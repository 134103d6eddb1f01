/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acts: makes the system calls that its command line names, and as few others as possible.
 *
 * usage: acts [NAME=]CALL [ARG…] [, [NAME=]CALL [ARG…]]…
 *
 * CALL is the name of a system call, `nr NUMBER`, `i386 NUMBER` (the 32-bit entry of x86), or a
 * builtin of process.c. With NAME=, later arguments can use the result as `@NAME`. An ARG is
 *
 *   12 0x0c 014 -1      a number
 *   null bad            a null pointer; an address that cannot be read
 *   @NAME               a result
 *   hex:414200          these bytes
 *   words:V:V:…         64-bit words, each an ARG itself (its own colons written as `+`)
 *   halves:V:V:…        32-bit words
 *   many:N              N letters
 *   deep:N:L            N times "/" and L letters
 *   in:PORT in6:PORT    loopback addresses; un:PATH and un:@NAME, addresses of AF_UNIX
 *   str:TEXT, TEXT      a string, ended by NUL
 *
 * child, child3 and thread run the calls up to the word `end`; they do not nest. The command line
 * itself is not changed, as PROCTITLE shows it. Arguments lie in zeroed memory below 4 GiB, so that
 * they can be passed to both entries and a short structure is padded. A line on standard error per
 * call says whether it succeeded, or its error.
 */
#ifndef ACTS_H
#define ACTS_H

#include <stdbool.h>
#include <stddef.h>

/* The words of the command line that are still to be run. */
struct script {
	char **word;
	int left;
};

/* A word that this program knows and that is more than one plain system call. */
struct builtin {
	const char *name;
	long (*run)(struct script *script, char **args, int count);
};

/* Ends the program with a message if the command line is wrong. */
_Noreturn void usage_error(const char *what, const char *word);
/* The value of an argument. */
long value_of(const char *text);
/* Keeps a result under the first `length` letters of a name. */
void keep_result(const char *name, size_t length, long result);
/* The number of a system call of this architecture, or -1. */
long call_number(const char *name);
/*
 * As call_number(), with arguments as x86-64 takes them. If this architecture has another call in its
 * place, as openat for open, returns that call's number and converts the arguments.
 */
long named_call(const char *name, long args[6]);
/* Makes a process as fork(2) does; -1 and errno on failure. */
long fork_call(void);
/* The builtin of that name, or NULL. */
const struct builtin *builtin_named(const char *name);
/* Runs the calls up to the word `end`, which it consumes, or up to the last. */
void run_calls(struct script *script);
/* Skips the calls that run_calls would run. */
void skip_calls(struct script *script);
/* Makes a system call; returns the kernel's result, in which an error is a negative number. */
long raw_call(long nr, const long args[6]);
long raw_call32(long nr, const long args[6]);

#endif
