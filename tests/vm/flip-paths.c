// Makes calls on a path that another thread keeps changing, and checks a log of them.
//
//   flip-paths run DIR ROUNDS FLIPS   one thread flips the path between two files while another calls
//                               open, chmod, rename and unlink on it, ROUNDS times each or more,
//                               until the path has changed FLIPS times; prints how often it did
//   flip-paths check LOG        checks that the object of every PATH record is the one that its
//                               name stands for; prints counts and fails if one is not
//
// DIR/a and everything in it belongs to group 1001, DIR/b to group 1002 (directories with the
// set-group-id bit), so that the group in a record tells in which of the two the object lies. Files
// that are moved to DIR/c keep their group; names there are not checked.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// DIR/X/NAME: the letters that change are at fixed offsets.
enum {
	ROOM = 256
};
static char path[ROOM];
static size_t letter, name;
static atomic_int stop, same_last;
static atomic_long flips;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

// "one" and "two" differ in every letter. A call may read a mixture of both while the path changes;
// every mixture exists as a file.
static const char *const names[] = { "one", "two", "twe", "tne", "tno", "ono", "owe", "owo" };

static void *flip(void *none)
{
	for (unsigned turn = 0; !stop; turn++) {
		path[letter] = turn & 1 ? 'b' : 'a';
		if (!same_last)
			memcpy(path + name, turn & 1 ? "two" : "one", 3);
		flips++;
		for (volatile unsigned wait = turn % 97; wait; wait--)
			;
	}
	return none;
}

static void fill(const char *dir)
{
	char file[ROOM];

	for (int d = 'a'; d <= 'b'; d++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			snprintf(file, sizeof(file), "%s/%c/%s", dir, d, names[i]);
			int fd = syscall(SYS_openat, AT_FDCWD, file, O_CREAT | O_RDONLY, 0600);

			if (fd < 0)
				die(file);
			close(fd);
		}
	}
}

static int run(const char *dir, long rounds, long flips_min)
{
	char file[ROOM], moved[ROOM];
	pthread_t thread;

	for (const char *d = "abc"; *d; d++) {
		snprintf(file, sizeof(file), "%s/%c", dir, *d);
		if (mkdir(file, 0700) || chown(file, 0, *d == 'c' ? 0 : 1001 + *d - 'a') ||
		    chmod(file, *d == 'c' ? 0700 : 02700))
			die(file);
	}
	letter = strlen(dir) + 1;
	name = letter + 2;
	snprintf(path, sizeof(path), "%s/a/one", dir);
	snprintf(moved, sizeof(moved), "%s/c/moved", dir);
	fill(dir);
	if (pthread_create(&thread, NULL, flip, NULL))
		die("pthread_create");
	for (long i = 0; i < rounds || flips < flips_min; i++) {
		same_last = i & 1;
		int fd = syscall(SYS_open, path, O_RDONLY);

		if (fd < 0)
			die("open");
		close(fd);
		if (syscall(SYS_chmod, path, 0600))
			die("chmod");
		if (syscall(SYS_rename, path, moved) || unlinkat(AT_FDCWD, moved, 0))
			die("rename");
		fill(dir);
		if (syscall(SYS_unlink, path))
			die("unlink");
		fill(dir);
	}
	stop = 1;
	pthread_join(thread, NULL);
	printf("the path changed %ld times\n", (long)flips);
	return 0;
}

// Value of a field of a record, or -1.
static long field(const char *line, const char *key, int base)
{
	const char *at = strstr(line, key);

	return at ? strtol(at + strlen(key), NULL, base) : -1;
}

static const char *const calls[] = { "open", "rename", "unlink", "chmod" };
static const long numbers[] = { 2, 82, 87, 90 };

static int check(const char *log)
{
	long judged[4][2] = {}, wrong[4] = {}, call = -1, bad = 0;
	char *line = NULL;
	size_t room = 0;
	FILE *file = fopen(log, "r");

	if (!file)
		die(log);
	while (getline(&line, &room, file) > 0) {
		long group = field(line, " ogid=", 10);
		char *at;

		if (strncmp(line, "type=SYSCALL", 12) == 0) {
			long nr = field(line, " syscall=", 10);

			call = -1;
			for (int i = 0; i < 4; i++)
				if (numbers[i] == nr)
					call = i;
		}
		if (strncmp(line, "type=PATH", 9) || call < 0)
			continue;
		at = strstr(line, "/flip/");
		if (!at || (at[6] != 'a' && at[6] != 'b')) {
			if (strstr(line, "name=\"/") && !(at && at[6] == 'c'))
				bad++;
			continue;
		}
		judged[call][at[6] - 'a']++;
		if (group != 1001 + at[6] - 'a') {
			if (wrong[call]++ < 3)
				printf("%s", line);
		}
	}
	for (int i = 0; i < 4; i++) {
		printf("%s: %ld names below a, %ld below b, %ld of the wrong object\n", calls[i],
		       judged[i][0], judged[i][1], wrong[i]);
		bad += wrong[i];
		if (!judged[i][0] || !judged[i][1]) {
			printf("%s: the path was never flipped\n", calls[i]);
			bad++;
		}
	}
	return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "run") == 0)
		return run(argv[2], atol(argv[3]), atol(argv[4]));
	if (argc == 3 && strcmp(argv[1], "check") == 0)
		return check(argv[2]);
	fprintf(stderr, "flip-paths: run DIR ROUNDS FLIPS | check LOG\n");
	return 2;
}
