/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acts: makes the system calls that its command line names, and nothing it need not.
 *
 * usage: acts [NAME=]CALL [ARG…] [, [NAME=]CALL [ARG…]]…
 *
 * CALL is a system call by name, `nr NUMBER`, `i386 NUMBER` (the 32-bit entry of x86), or a word of
 * process.c. NAME keeps the result, as `@NAME` in later arguments. An ARG is
 *
 *   12 0x0c 014 -1      a number
 *   null bad            no address; an address that cannot be read
 *   @NAME               a result
 *   hex:414200          these bytes
 *   words:V:V:…         64-bit words, each an ARG itself (its own colons written as `+`)
 *   halves:V:V:…        32-bit words
 *   many:N              N letters
 *   deep:N:L            N times "/" and L letters
 *   in:PORT in6:PORT    loopback addresses; un:PATH and un:@NAME, addresses of AF_UNIX
 *   str:TEXT, TEXT      a string, ended by NUL
 *
 * child, child3 and thread carry out the calls up to the word `end`; they do not nest. The command
 * line itself stays as it is, for it is what PROCTITLE shows. Everything lies in zeroed memory below 4 GiB, so that both entries can be given it, and a
 * short structure is padded. One line per call on standard error tells what it returned.
 */
#ifndef ACTS_H
#define ACTS_H

#include <stdbool.h>
#include <stddef.h>

/* The words of the command line that are yet to be carried out. */
struct script {
	char **word;
	int left;
};

/* A call that this program knows by name, and is not one system call. */
struct builtin {
	const char *name;
	long (*run)(struct script *script, char **args, int count);
};

/* Ends the program with a message if the command line is wrong. */
_Noreturn void usage_error(const char *what, const char *word);
/* The value of an argument. */
long value_of(const char *text);
/* Keeps a result by the first `length` letters of a name. */
void keep_result(const char *name, size_t length, long result);
/* The number of a system call of this architecture, or -1. */
long call_number(const char *name);
/*
 * The same with arguments as x86-64 takes them, which are put in order for the call that this architecture has
 * instead: openat for open, and its flags.
 */
long named_call(const char *name, long args[6]);
/* Makes a process as fork(2) does; -1 and errno. */
long fork_call(void);
/* The builtin of that name, or NULL. */
const struct builtin *builtin_named(const char *name);
/* Carries out the calls up to the word `end` (which is taken) or the last. */
void run_calls(struct script *script);
/* Leaves out what run_calls would have carried out. */
void skip_calls(struct script *script);
/* A system call as the kernel answers it: an error is a negative number. */
long raw_call(long nr, const long args[6]);
long raw_call32(long nr, const long args[6]);

#endif
