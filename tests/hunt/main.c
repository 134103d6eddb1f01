/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   hunt prepare SEED DIR                mounts a tmpfs at DIR, with the tree
 *   hunt rules SEED DIR                  prints the rules
 *   hunt make SEED DIR SCENES            makes the calls, and prints each
 *   hunt judge SEED WORK                 compares the logs WORK/kernel of the kernel's audit and WORK/log of an
 *                                        engine; WORK/rules and WORK/calls are what the others have printed
 *   hunt clean SEED DIR                  unmounts DIR
 */
#include "hunt.h"
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/wait.h>

char base[PATH_BYTES / 2];
struct plan plan;

static uint64_t state;

void seed_with(uint64_t seed, uint64_t stream)
{
	state = (seed + 1) * 0x9E3779B97F4A7C15ULL ^ (stream + 1) * 0xBF58476D1CE4E5B9ULL;
	for (int i = 0; i < 8; i++)
		below(2);
}

unsigned below(unsigned count)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545F4914F6CDD1DULL >> 32) % count;
}

bool chance(unsigned percent)
{
	return below(100) < percent;
}

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("hunt: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	exit(2);
}

static void enter(void)
{
	if (chdir(base))
		die("chdir %s: %s", base, strerror(errno));
}

static int prepare(void)
{
	if ((mkdir(base, 0755) && errno != EEXIST) || mount("hunt", base, "tmpfs", 0, "mode=0755"))
		die("a tmpfs at %s: %s", base, strerror(errno));
	mount(NULL, base, NULL, MS_PRIVATE, NULL);
	enter();
	make_tree();
	return 0;
}

static int make(unsigned scenes)
{
	enter();
	for (unsigned number = 0; number < scenes; number++) {
		pid_t pid;
		int status;

		repair_tree();
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			seed_with(plan.seed, 2 + number);
			run_scene(number);
			exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			die("scene %u: wait status %#x", number, status);
	}
	return 0;
}

static int clean(void)
{
	while (umount2(base, MNT_DETACH) == 0)
		;
	rmdir(base);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc > 2 && !strcmp(what, "act"))
		return act(argv + 2);
	if (argc > 2)
		plan.seed = strtoull(argv[2], NULL, 0);
	seed_with(plan.seed, 0);
	plan.is_moving = chance(30);
	plan.is_racing = chance(30);
	plan.has_rings = chance(40);
	if (argc > 3)
		snprintf(base, sizeof(base), "%s", argv[3]);
	if (argc == 4 && !strcmp(what, "prepare"))
		return prepare();
	if (argc == 4 && !strcmp(what, "rules")) {
		enter();
		seed_with(plan.seed, 1);
		print_rules();
		return 0;
	}
	if (argc == 5 && !strcmp(what, "make"))
		return make(atoi(argv[4]));
	if (argc == 4 && !strcmp(what, "judge"))
		return judge(argv[3]);
	if (argc == 4 && !strcmp(what, "clean"))
		return clean();
	fprintf(stderr, "usage: hunt prepare|rules|clean SEED DIR | make SEED DIR SCENES | "
			"judge SEED WORK\n");
	return 2;
}
