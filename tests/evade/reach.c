/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dir=DIR/NAME/tree: objects far below it, deeper than what fits into an event, and in mounts below it that were
 * there when the rule was loaded, reached elsewhere.
 */
#include "evade.h"
#include <sched.h>
#include <sys/mount.h>

/* Names that make a path longer than three pages, and than any event. */
#define LONG_NAME_BYTES 250
#define LONG_LEVELS 120
/* More directories than programs of the kernel may look at. */
#define MANY_LEVELS 4200
/* Directories between the rule's and one that is mounted elsewhere. */
#define MOUNT_LEVELS 100

/* Returns a descriptor of the directory that is so many times in itself; makes it if it is not there. */
static int descend(const char *name, int levels)
{
	int fd = open("tree", O_PATH | O_DIRECTORY | O_CLOEXEC), next;

	for (int i = 0; i < levels; i++) {
		if (faccessat(fd, name, F_OK, 0) && mkdirat(fd, name, 0755))
			fail("mkdirat: %s", strerror(errno));
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	if (fd < 0)
		fail("the directory below: %s", strerror(errno));
	return fd;
}

static void put_file(int fd, const char *name)
{
	int file = openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (file < 0)
		fail("a file: %s", strerror(errno));
	close(file);
}

static long selected(long nr, long a, long b, long c, long d)
{
	long result;

	select_calls();
	result = syscall(nr, a, b, c, d);
	unselect_calls();
	made(1);
	return result;
}

#define NAME(text) ((long)(text))

/* Calls on entries of the directory `fd`, which may be AT_FDCWD. */
static void change_entries(int fd)
{
	put_file(fd, "file");
	expect("fchmodat", selected(SYS_fchmodat, fd, NAME("file"), 0640, 0), 0);
	expect("renameat", selected(SYS_renameat, fd, NAME("file"), fd, NAME("moved")), 0);
	expect("unlinkat", selected(SYS_unlinkat, fd, NAME("moved"), 0, 0), 0);
	expect("mkdirat", selected(SYS_mkdirat, fd, NAME("new"), 0755, 0), 0);
	expect("unlinkat", selected(SYS_unlinkat, fd, NAME("new"), AT_REMOVEDIR, 0), 0);
}

static void open_entry(int fd)
{
	long file;

	put_file(fd, "file");
	file = selected(SYS_openat, fd, NAME("file"), O_WRONLY, 0);
	expect("openat", file >= 0, true);
	close(file);
}

static void deep(const char *name, int levels, int count, bool by_descriptor)
{
	int fd = descend(name, levels);

	expect("fchdir", fchdir(by_descriptor ? open("/", O_PATH) : fd), 0);
	for (int i = 0; i < count; i++) {
		open_entry(by_descriptor ? fd : AT_FDCWD);
		change_entries(by_descriptor ? fd : AT_FDCWD);
	}
}

static const char *long_name(void)
{
	static char name[LONG_NAME_BYTES + 1];

	memset(name, 'n', LONG_NAME_BYTES);
	return name;
}

static void deep_names(int count)
{
	deep(long_name(), LONG_LEVELS, count, false);
}

static void deep_names_descriptor(int count)
{
	deep(long_name(), LONG_LEVELS, count, true);
}

/* The directories are made before the rules are armed: what is so deep is recorded under every rule on a path. */
static void make_long(void)
{
	make_dir("tree");
	close(descend(long_name(), LONG_LEVELS));
}

static void make_many(void)
{
	make_dir("tree");
	close(descend("d", MANY_LEVELS));
}

static void make_mounted(void)
{
	make_dir("tree");
	close(descend("d", MOUNT_LEVELS));
}

static void deep_levels(int count)
{
	deep("d", MANY_LEVELS, count, false);
}

static void deep_levels_descriptor(int count)
{
	deep("d", MANY_LEVELS, count, true);
}

/* Binds the directory of the descriptor at `else`, and makes the calls there. */
static void change_in_mount(int fd, int count)
{
	char path[32];

	make_dir("else");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	mount_or_skip(path, "else", NULL, MS_BIND, NULL);
	fd = open("else", O_PATH);
	expect("chdir", chdir("else"), 0);
	for (int i = 0; i < count; i++) {
		open_entry(AT_FDCWD);
		change_entries(AT_FDCWD);
		change_entries(fd);
	}
	expect("chdir", chdir(home), 0);
	umount2("else", MNT_DETACH);
}

static void deep_mount(int count)
{
	change_in_mount(descend("d", MOUNT_LEVELS), count);
}

static void prepare_mount_below(void)
{
	make_dir("tree");
	make_dir("tree/mnt");
	mount_or_skip("evade", "tree/mnt", "tmpfs", 0, NULL);
	make_dir("tree/mnt/sub");
}

static void mount_below(int count)
{
	change_in_mount(open("tree/mnt", O_PATH), count);
}

static void mount_below_sub(int count)
{
	change_in_mount(open("tree/mnt/sub", O_PATH), count);
}

/* In a namespace of its own, which anybody can make; the group is not mapped there. */
static void change_in_namespace(void *unused)
{
	(void)unused;
	select_calls();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		skip("no user namespaces: %s", strerror(errno));
	mount_or_skip("tree/mnt", "else", NULL, MS_BIND, NULL);
	expect("openat", syscall(SYS_openat, AT_FDCWD, "else/file", O_WRONLY) >= 0, true);
	expect("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "else/file", 0640), 0);
	expect("unlinkat", syscall(SYS_unlinkat, AT_FDCWD, "else/file", 0), 0);
}

static void mount_below_namespace(int count)
{
	make_dir("else");
	for (int i = 0; i < count; i++) {
		write_file("tree/mnt/file", "text", 0600);
		in_child(change_in_namespace, NULL);
		made(3);
	}
}

const struct technique reach_techniques[] = {
	{ "deep-names", deep_names, 3, make_long },
	{ "deep-names-descriptor", deep_names_descriptor, 3, make_long },
	{ "deep-levels", deep_levels, 3, make_many },
	{ "deep-levels-descriptor", deep_levels_descriptor, 3, make_many },
	{ "deep-mount", deep_mount, 3, make_mounted },
	{ "mount-below", mount_below, 3, prepare_mount_below },
	{ "mount-below-sub", mount_below_sub, 3, prepare_mount_below },
	{ "mount-below-namespace", mount_below_namespace, 3, prepare_mount_below },
	{ 0 },
};
