/* SPDX-License-Identifier: Apache-2.0 */
/* The tree, and names for what is in it. */
#include "hunt.h"
#include <sys/mount.h>
#include <sys/sendfile.h>

struct entry {
	/* `/`: directory, `f`: file, `h`: hard link, `s`: symbolic link, `x`: program, `m`: mount of a new tmpfs,
	 * `b`: bind mount, made once.
	 */
	char kind;
	const char *name;
	const char *target;
	/* Owned by SOME_UID. */
	bool is_owned;
};

static const struct entry entries[] = {
	{ '/', "w" },
	{ 'f', "w/f0" },
	{ 'f', "w/f1", NULL, true },
	{ '/', "w/sub" },
	{ 'f', "w/sub/f0" },
	{ 'f', "w/sub/f1", NULL, true },
	{ '/', "w/sub/deep" },
	{ 'f', "w/sub/deep/f0" },
	{ 'x', "w/prog" },
	{ '/', "w/mnt" },
	{ 'm', "w/mnt/f0", "w/mnt" },
	{ 'f', "w/mnt/f0" },
	{ '/', "o", NULL, true },
	{ 'f', "o/f0" },
	{ 'f', "o/f1", NULL, true },
	{ '/', "o/sub" },
	{ 'f', "o/sub/f0" },
	{ 'x', "o/prog" },
	{ 'h', "o/h0", "w/f0" },
	{ 'h', "o/h1", "w/sub/f0" },
	{ 'h', "o/hprog", "w/prog" },
	{ 'h', "w/sub/in", "o/f1" },
	{ 's', "o/s0", "../w/f0" },
	{ 's', "o/s1", "s0" },
	{ 's', "o/s2", "../w/sub/f1" },
	{ 's', "o/sout", "f0" },
	{ 's', "o/d0", "../w/sub" },
	{ 's', "o/d1", "d0" },
	{ 's', "o/dw", "../w" },
	{ 's', "w/out", "../o" },
	{ 's', "w/sub/up", ".." },
	{ 's', "o/fds", "/proc/self/fd" },
	{ 's', "o/cwd", "/proc/self/cwd" },
	{ 's', "o/swap", "f0" },
	{ 's', "o/swapdir", "sub" },
	{ '/', "o/b0" },
	{ 'f', "o/b1" },
	{ '/', "o/b2" },
	{ 0 },
};

/* Mounts that are there when the rules are loaded. */
static const struct entry binds[] = {
	{ 'b', "o/b0", "w/sub" },
	{ 'b', "o/b1", "w/f1" },
	{ 'b', "o/b2", "w/mnt" },
	{ 0 },
};

static bool is_there(const char *name)
{
	struct stat found;

	return lstat(name, &found) == 0;
}

static bool is_same(const char *one, const char *other)
{
	struct stat a, b;

	return lstat(one, &a) == 0 && lstat(other, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

static bool has_text(const char *link, const char *target)
{
	char text[PATH_BYTES] = "";

	return readlink(link, text, sizeof(text) - 1) > 0 && !strcmp(text, target);
}

static bool has_kind(const struct entry *entry)
{
	struct stat found;

	if (lstat(entry->name, &found))
		return false;
	switch (entry->kind) {
	case '/':
		return S_ISDIR(found.st_mode);
	case 'h':
		return is_same(entry->name, entry->target);
	case 's':
		return S_ISLNK(found.st_mode) && has_text(entry->name, entry->target);
	case 'm':
		return true;
	default:
		return S_ISREG(found.st_mode);
	}
}

static void remove_all(const char *name)
{
	char command[PATH_BYTES * 2];

	if (unlink(name) == 0 || errno == ENOENT)
		return;
	snprintf(command, sizeof(command), "rm -rf '%s'", name);
	if (system(command))
		die("removing %s", name);
}

static void copy_program(const char *path)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	while (sendfile(to, from, NULL, 1 << 24) > 0)
		;
	close(from);
	close(to);
}

static void make_entry(const struct entry *entry)
{
	int fd, failed = 0;

	if (is_there(entry->name))
		remove_all(entry->name);
	switch (entry->kind) {
	case '/':
		failed = mkdir(entry->name, 0755);
		break;
	case 'f':
		fd = open(entry->name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		failed = fd < 0 || close(fd);
		break;
	case 'h':
		failed = link(entry->target, entry->name);
		break;
	case 's':
		failed = symlink(entry->target, entry->name);
		break;
	case 'm':
		failed = mount("hunt", entry->target, "tmpfs", 0, NULL);
		break;
	case 'x':
		copy_program(entry->name);
	}
	if (failed)
		die("making %s: %s", entry->name, strerror(errno));
	if (entry->is_owned && lchown(entry->name, SOME_UID, SOME_UID))
		die("chown %s: %s", entry->name, strerror(errno));
}

void repair_tree(void)
{
	for (const struct entry *entry = entries; entry->kind; entry++)
		if (!has_kind(entry))
			make_entry(entry);
}

void make_tree(void)
{
	repair_tree();
	if (!chance(50))
		return;
	for (const struct entry *bind = binds; bind->kind; bind++)
		if (mount(bind->target, bind->name, NULL, MS_BIND, NULL))
			die("mount at %s: %s", bind->name, strerror(errno));
}

const char *rule_file(void)
{
	static const char *const names[] = { "w/f0", "w/f1",	  "w/sub/f0", "w/sub/f1",
					     "o/h0", "w/sub/new", "w/mnt/f0", "w/sub/deep/f0" };

	return ONE_OF(names);
}

const char *rule_directory(void)
{
	static const char *const names[] = { "w", "w/sub", "w/sub/deep", "w/mnt", "o/sub", "w" };

	return ONE_OF(names);
}

const char *rule_program(void)
{
	static const char *const names[] = { "w/prog", "o/prog", "o/hprog" };

	return ONE_OF(names);
}

/* Names that calls may take away, and make anew, without end. */
static const char *const passing[] = {
	"w/new",    "w/sub/new",    "w/sub/deep/new", "o/new",	      "o/sub/new",    "w/mnt/new",
	"o/d0/new", "o/d1/new",	    "o/dw/new",	      "o/dw/sub/new", "o/b0/new",     "o/b2/new",
	"w/newdir", "w/sub/newdir", "o/newdir",	      "w/out/new",    "w/sub/up/new",
};

static const char *const lasting[] = {
	"w/f0",	      "w/f1",	  "w/sub/f0",	  "w/sub/f1",	 "w/sub/deep/f0",
	"o/f0",	      "o/f1",	  "o/h0",	  "o/h1",	 "o/s0",
	"o/s1",	      "o/s2",	  "o/sout",	  "o/swap",	 "o/sub/f0",
	"o/d0/f0",    "o/d1/f1",  "o/d0/deep/f0", "o/dw/f0",	 "o/dw/sub/f0",
	"w/out/f0",   "w/out/h0", "w/out/s0",	  "w/sub/up/f0", "o/swapdir/f0",
	"w/mnt/f0",   "o/b0/f0",  "o/b1",	  "o/b2/f0",	 "w/sub/in",
	"w",	      "w/sub",	  "w/sub/deep",	  "o",		 "o/d0",
	"o/cwd/w/f0", "w/none",	  "w/none/f0",	  "o/b0",	 "o/b2",
	"w/prog",     "o/hprog",
};

/* `name` from the directory `from`, both relative to DIR. */
static void relative(char *path, const char *from, const char *name)
{
	size_t length = strlen(from);

	if (length && !strncmp(name, from, length) && name[length] == '/') {
		strcpy(path, name + length + 1);
		return;
	}
	*path = 0;
	if (length)
		strcat(path, "../");
	for (; *from; from++)
		if (*from == '/')
			strcat(path, "../");
	strcat(path, name);
}

/* Writes the same name in another way. */
static void decorate(char *path)
{
	static const char *const fronts[] = { "./", ".//", "././" };
	static const char *const ends[] = { "/", "/.", "//" };
	char text[PATH_BYTES], *slash = strrchr(path, '/');

	if (path[0] != '/' && chance(10)) {
		snprintf(text, sizeof(text), "%s%.480s", ONE_OF(fronts), path);
		strcpy(path, text);
	}
	if (slash && slash > path && chance(10)) {
		slash = strrchr(path, '/');
		snprintf(text, sizeof(text), "%.*s/.%.200s", (int)(slash - path), path, slash);
		strcpy(path, text);
	}
	if (chance(4))
		strcat(path, ONE_OF(ends));
}

/* By a descriptor of the pool, in one of the ways that there are. */
static void by_descriptor(char *path, const char *name)
{
	static const char *const ways[] = { "/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/",
					    "o/fds/" };
	const char *way = ONE_OF(ways);
	unsigned which = below(POOL);
	char rest[PATH_BYTES] = "";

	if (which < POOL_DIRECTORIES) {
		relative(rest + 1, pool_names[which], name);
		rest[0] = '/';
	}
	if (way[0] != '/') {
		relative(path, place.cwd, way);
		way = "";
	} else {
		*path = 0;
	}
	sprintf(path + strlen(path), "%s%d%s", way, pool[which], rest);
}

void draw_path(char *path, const char *from, bool is_destroyed)
{
	bool is_passing = is_destroyed && (!plan.is_moving || chance(60));
	const char *name = is_passing || chance(15) ? ONE_OF(passing) : ONE_OF(lasting);

	/* Directories of rules stay: the kernel deletes rules whose directory goes. */
	while (is_destroyed && !is_passing &&
	       (!strchr(name, '/') || !strcmp(name, "w/sub") || !strncmp(name, "o/b", 3)))
		name = ONE_OF(lasting);
	if (chance(20) && place.prefix)
		snprintf(path, PATH_BYTES, "%s/%s", place.prefix, name);
	else if (chance(5) && place.prefix)
		snprintf(path, PATH_BYTES, "/proc/self/root%s/%s", place.prefix, name);
	else if (chance(8) && !is_destroyed)
		by_descriptor(path, name);
	else if (chance(5)) {
		strcpy(path, "/proc/self/cwd/");
		relative(path + strlen(path), place.cwd, name);
	} else
		relative(path, from ? from : place.cwd, name);
	decorate(path);
}
