/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments that another thread changes all the time while calls use them. Which object a call reached is told by
 * what it did: only calls that reached the tree are selected, and counted. Each has a tag, so that an event of a call
 * that did not reach it is not taken for one that did.
 */
#include "evade.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#define INSIDE "tree/file"
#define OUTSIDE "away/file"
/* The part of the two names that differs has this type. */
typedef uint32_t name_part;
/* Rounds go on until so many calls reached the tree, at most this many times the number of rounds. */
#define MADE_MIN 20
#define ROUNDS_MORE 100

#define TAG_FIRST 100

static char *page;
/* A descriptor of the working directory. */
static int here;
static _Atomic bool is_done;
/* How often the argument was changed, and back. Volatile, not atomic, which would slow the attack. */
static volatile unsigned long flips;
static struct thread flipper;

static void flip_name(void *unused)
{
	volatile name_part *part = (volatile name_part *)page;
	name_part outside, inside;

	(void)unused;
	memcpy(&outside, OUTSIDE, sizeof(outside));
	memcpy(&inside, INSIDE, sizeof(inside));
	while (!is_done) {
		*part = outside;
		*part = inside;
		flips++;
	}
}

static void flip_protection(void *unused)
{
	(void)unused;
	while (!is_done) {
		mprotect(page, 4096, PROT_NONE);
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
		flips++;
	}
}

static void flip_family(void *unused)
{
	volatile sa_family_t *family = &((struct sockaddr *)page)->sa_family;

	(void)unused;
	while (!is_done) {
		*family = AF_INET;
		*family = AF_UNIX;
		flips++;
	}
}

static void flip_with(void (*body)(void *))
{
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		fail("a page: %s", strerror(errno));
	strcpy(page, INSIDE);
	is_done = false;
	thread_start(&flipper, body, NULL);
}

static void flip_ends(void)
{
	is_done = true;
	thread_join(&flipper);
}

static void prepare_trees(void)
{
	make_dir("tree");
	make_dir("away");
}

static void put_files(void)
{
	write_file(INSIDE, "", 0600);
	write_file(OUTSIDE, "", 0600);
}

/* The number of the round; for calls that name a directory, a descriptor of the working directory. */
static unsigned tag;

static void begin_round(unsigned number)
{
	tag = TAG_FIRST + number;
	if (dup2(here, tag) < 0)
		fail("descriptor %u: %s", tag, strerror(errno));
}

static long selected(long nr, long a, long b, long c, long d)
{
	long result;

	select_calls();
	result = syscall(nr, a, b, c, d, 0);
	unselect_calls();
	return result;
}

static void unlink_round(void)
{
	put_files();
	if (selected(SYS_unlinkat, tag, (long)page, 0, 0) == 0 && !exists(INSIDE))
		made_tagged(tag);
}

static void rename_round(void)
{
	put_files();
	if (selected(SYS_renameat, tag, (long)page, AT_FDCWD, (long)"moved") == 0 &&
	    !exists(INSIDE))
		made_tagged(tag);
}

static void rename_to_round(void)
{
	write_file("moved", "", 0600);
	unlink(INSIDE);
	if (selected(SYS_renameat, tag, (long)"moved", AT_FDCWD, (long)page) == 0 && exists(INSIDE))
		made_tagged(tag);
}

static void mkdir_round(void)
{
	rmdir(INSIDE);
	if (selected(SYS_mkdirat, tag, (long)page, 0755, 0) == 0 && exists(INSIDE))
		made_tagged(tag);
	rmdir(OUTSIDE);
}

static void create_round(void)
{
	long fd;

	unlink(INSIDE);
	unlink(OUTSIDE);
	fd = selected(SYS_openat, tag, (long)page, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd >= 0 && exists(INSIDE))
		made_tagged(tag);
	if (fd >= 0)
		close(fd);
}

static void chmod_round(void)
{
	struct stat found;

	put_files();
	if (selected(SYS_fchmodat, tag, (long)page, 0700, 0) == 0 && stat(INSIDE, &found) == 0 &&
	    (found.st_mode & 0777) == 0700)
		made_tagged(tag);
}

static void truncate_round(void)
{
	struct stat found;

	put_files();
	if (selected(SYS_truncate, (long)page, tag, 0, 0) == 0 && stat(INSIDE, &found) == 0 &&
	    found.st_size == tag)
		made_tagged(tag);
}

static void link_round(void)
{
	struct stat found;

	put_files();
	unlink("linked");
	if (selected(SYS_linkat, tag, (long)page, AT_FDCWD, (long)"linked") == 0 &&
	    stat(INSIDE, &found) == 0 && found.st_nlink == 2)
		made_tagged(tag);
}

/* Waits, for a second at most, until the other thread has gone on: it may have to share its processor. */
static void await_flip(void)
{
	unsigned long seen = flips;

	for (int i = 0; flips == seen && i < 10000; i++)
		usleep(100);
}

static void flip(int count, void (*flipping)(void *), void (*round)(void))
{
	here = open(".", O_PATH);
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ TAGS_MAX, TAGS_MAX }))
		fail("setrlimit: %s", strerror(errno));
	flip_with(flipping);
	for (int i = 0; i < count || (made_so_far() < MADE_MIN && i < ROUNDS_MORE * count); i++) {
		if (i >= count || i % 10 == 0)
			await_flip();
		begin_round(i);
		round();
		close(tag);
	}
	flip_ends();
}

static void unlinkat_flipped(int count)
{
	flip(count, flip_name, unlink_round);
}

static void renameat_flipped(int count)
{
	flip(count, flip_name, rename_round);
}

static void renameat_to_flipped(int count)
{
	flip(count, flip_name, rename_to_round);
}

static void mkdirat_flipped(int count)
{
	flip(count, flip_name, mkdir_round);
}

static void openat_flipped(int count)
{
	flip(count, flip_name, create_round);
}

static void fchmodat_flipped(int count)
{
	flip(count, flip_name, chmod_round);
}

static void truncate_flipped(int count)
{
	flip(count, flip_name, truncate_round);
}

static void link_flipped(int count)
{
	flip(count, flip_name, link_round);
}

static void unlinkat_protected(int count)
{
	flip(count, flip_protection, unlink_round);
}

static void renameat_protected(int count)
{
	flip(count, flip_protection, rename_round);
}

static void fchmodat_protected(int count)
{
	flip(count, flip_protection, chmod_round);
}

/* Only while the family is AF_UNIX does bind(2) of such a socket succeed. */
static void bind_family_flipped(int count)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };

	flip_with(flip_family);
	memcpy(page, &address, sizeof(address));
	for (int i = 0; i < count; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (i % 10 == 0)
			await_flip();
		unlink("socket");
		if (selected(SYS_bind, fd, (long)page, sizeof(address), 0) == 0)
			made(1);
		close(fd);
	}
	flip_ends();
}

const struct technique flip_techniques[] = {
	{ "unlinkat-flipped", unlinkat_flipped, 100, prepare_trees },
	{ "renameat-flipped", renameat_flipped, 100, prepare_trees },
	{ "renameat-to-flipped", renameat_to_flipped, 100, prepare_trees },
	{ "mkdirat-flipped", mkdirat_flipped, 100, prepare_trees },
	{ "openat-flipped", openat_flipped, 100, prepare_trees },
	{ "fchmodat-flipped", fchmodat_flipped, 100, prepare_trees },
	{ "truncate-flipped", truncate_flipped, 100, prepare_trees },
	{ "link-flipped", link_flipped, 100, prepare_trees },
	{ "unlinkat-protected", unlinkat_protected, 100, prepare_trees },
	{ "renameat-protected", renameat_protected, 100, prepare_trees },
	{ "fchmodat-protected", fchmodat_protected, 100, prepare_trees },
	{ "bind-family-flipped", bind_family_flipped, 100 },
	{ 0 },
};
