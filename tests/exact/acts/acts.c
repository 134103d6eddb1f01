/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "acts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGS_MAX 64

void usage_error(const char *what, const char *word)
{
	fprintf(stderr, "acts: %s: %s\n", what, word);
	_exit(2);
}

long raw_call(long nr, const long args[6])
{
	long result = syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]);

	return result == -1 ? -errno : result;
}

long raw_call32(long nr, const long args[6])
{
#ifdef __x86_64__
	int result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(nr), "b"(args[0]), "c"(args[1]), "d"(args[2]), "S"(args[3]),
			   "D"(args[4])
			 : "memory", "r8", "r9", "r10", "r11");
	return result;
#else
	(void)nr, (void)args;
	usage_error("no 32-bit entry", "i386");
#endif
}

/* Prints `ok` or the error, but not the result, which may differ from run to run. */
static void tell(const char *name, long result)
{
	if (result < 0 && result > -4096)
		dprintf(STDERR_FILENO, "%s: %s\n", name, strerrorname_np((int)-result));
	else
		dprintf(STDERR_FILENO, "%s: ok\n", name);
}

static long run_call(struct script *script, const char *name, char **args, int count)
{
	const struct builtin *builtin = builtin_named(name);
	bool is_32 = strcmp(name, "i386") == 0;
	bool is_number = is_32 || strcmp(name, "nr") == 0;
	long values[6] = { 0 };
	long nr;

	if (builtin)
		return builtin->run(script, args, count);
	if (is_number && count == 0)
		usage_error("a number is expected after", name);
	if (count - is_number > 6)
		usage_error("more than six arguments", name);
	for (int i = 0; i < count - is_number; i++)
		values[i] = value_of(args[i + is_number]);
	nr = is_number ? strtol(*args, NULL, 0) : named_call(name, values);
	if (nr < 0)
		usage_error("no such call", name);
	return is_32 ? raw_call32(nr, values) : raw_call(nr, values);
}

/* Takes the words of one call, those up to a comma; returns their number. */
static int take_call(struct script *script, char **words)
{
	int count = 0;

	while (script->left > 0 && strcmp(*script->word, ",") != 0) {
		if (count == ARGS_MAX)
			usage_error("too many words", *script->word);
		words[count++] = *script->word++;
		script->left--;
	}
	if (script->left > 0) {
		script->word++;
		script->left--;
	}
	return count;
}

void run_calls(struct script *script)
{
	while (script->left > 0) {
		char *words[ARGS_MAX];
		int count = take_call(script, words);
		const char *call = count ? words[0] : "";
		const char *equals = strchr(call, '=');
		long result;

		if (strcmp(call, "end") == 0)
			return;
		if (equals)
			call = equals + 1;
		result = run_call(script, call, words + 1, count - 1);
		tell(call, result);
		if (equals)
			keep_result(words[0], (size_t)(equals - words[0]), result);
	}
}

void skip_calls(struct script *script)
{
	char *words[ARGS_MAX];

	while (script->left > 0) {
		if (take_call(script, words) == 1 && strcmp(words[0], "end") == 0)
			return;
	}
}

int main(int argc, char **argv)
{
	struct script script = { argv + 1, argc - 1 };

	run_calls(&script);
	return 0;
}
