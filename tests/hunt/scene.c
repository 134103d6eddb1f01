/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes: places from which calls are made. */
#include "hunt.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

#define CALLS 60
#define PAUSE_US 100
/* Seconds after which a scene hangs. */
#define LIMIT_S 300

struct place place;
int pool[POOL];
const char *const pool_names[POOL] = {
	"w", "w/sub", "o", "", "w/f0", "w/sub/f1", "o/f0", "o/h1",
};

static void open_pool(void)
{
	for (unsigned i = 0; i < POOL; i++) {
		bool is_directory = i < POOL_DIRECTORIES;
		const char *name = pool_names[i][0] ? pool_names[i] : ".";
		int flags = is_directory ? (chance(50) ? O_PATH : O_RDONLY) : O_RDWR;

		pool[i] = open(name, flags | O_CLOEXEC);
		if (pool[i] < 0)
			die("open %s: %s", name, strerror(errno));
	}
}

static void mount_something(void)
{
	static const char *const sources[] = { "w", "w/sub", "w/sub/deep", "w/mnt", "o", "o/sub" };
	static const char *const targets[] = { "o/b0", "o/b2", "w/sub/deep", "o/sub", "w/mnt" };
	static const char *const files[] = { "w/f0", "w/sub/f0", "o/f0", "o/f1" };

	if (chance(60))
		mount(ONE_OF(sources), ONE_OF(targets), NULL, MS_BIND | (chance(50) ? MS_REC : 0),
		      NULL);
	else
		mount(ONE_OF(files), chance(50) ? "o/b1" : ONE_OF(files), NULL, MS_BIND, NULL);
}

static void change_namespace(void)
{
	if (unshare(chance(50) ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER))
		return;
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	for (unsigned i = 1 + below(3); i > 0; i--)
		mount_something();
}

/* The names of the tree from another root directory: DIR, or one in it. */
static void change_root(void)
{
	if (chance(60)) {
		if (chroot(".") == 0)
			place.prefix = "";
	} else if (chroot("w") == 0) {
		place.prefix = NULL;
	}
}

static void change_directory(void)
{
	static const char *const names[] = { "", "", "w", "w/sub", "o", "w/sub/deep" };
	const char *name = ONE_OF(names);

	if (*name && chdir(name))
		return;
	place.cwd = name;
}

static _Atomic bool is_over;

static void swap(const char *link, const char *one, const char *other)
{
	char spare[PATH_BYTES], path[PATH_BYTES];

	if (!place.prefix)
		return;
	snprintf(spare, sizeof(spare), "%s/%s.spare", place.prefix, link);
	snprintf(path, sizeof(path), "%s/%s", place.prefix, link);
	unlink(spare);
	if (symlink(chance(50) ? one : other, spare) == 0)
		rename(spare, path);
}

/* Changes links, descriptors and the working directory while calls use them. */
static void *change(void *unused)
{
	while (!is_over) {
		/* The numbers are not those of the seed, which belong to the other thread. */
		switch (rand() % 3) {
		case 0:
			swap("o/swap", "f0", "../w/f0");
			break;
		case 1:
			swap("o/swapdir", "sub", "../w/sub");
			break;
		default:
			dup2(pool[POOL_DIRECTORIES + rand() % (POOL - POOL_DIRECTORIES)],
			     pool[POOL - 1]);
		}
		usleep(PAUSE_US);
	}
	return unused;
}

void run_scene(unsigned number)
{
	pthread_t thread;
	bool is_raced;

	alarm(LIMIT_S);
	place = (struct place){ .prefix = base, .cwd = "" };
	open_pool();
	/* This thread; the effective group stays, so that root keeps its rights. */
	if (setregid(HUNT_GID, -1))
		die("setregid: %s", strerror(errno));
	if (chance(50))
		change_namespace();
	if (chance(20))
		change_root();
	change_directory();
	is_raced = plan.is_racing && pthread_create(&thread, NULL, change, NULL) == 0;
	for (unsigned i = 0; i < CALLS; i++) {
		if (plan.has_rings && chance(15))
			make_operation();
		else
			make_call(0x40000 + number * CALLS + i);
	}
	is_over = true;
	if (is_raced)
		pthread_join(thread, NULL);
}
