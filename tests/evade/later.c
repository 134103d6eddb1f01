/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path=DIR/NAME/tree/file, by names that cannot be followed later, or that lead elsewhere then: only the calling
 * process could follow them, or they lead over more than the kernel's programs look at and change right after.
 */
#include "evade.h"
#include <sys/mount.h>
#include <sys/wait.h>

#define FILE_PATH "tree/file"

static void prepare_file(void)
{
	make_dir("tree");
	write_file(FILE_PATH, "text", 0600);
	make_dir("away");
	write_file("away/file", "text", 0600);
}

static long selected(long nr, long a, long b, long c, long d)
{
	long result;

	select_calls();
	result = syscall(nr, a, b, c, d, 0);
	unselect_calls();
	made(1);
	return result;
}

#define NAME(text) ((long)(text))

/* Calls that return no descriptor of what they name. */
static void change(const char *path)
{
	expect("fchmodat", selected(SYS_fchmodat, AT_FDCWD, NAME(path), 0640, 0), 0);
	expect("fchownat", selected(SYS_fchownat, AT_FDCWD, NAME(path), 0, 0), 0);
	expect("truncate", selected(SYS_truncate, NAME(path), 2, 0, 0), 0);
	/* Not every file system has attributes: whether it succeeds does not matter. */
	selected(SYS_setxattr, NAME(path), NAME("trusted.evade"), NAME("text"), 4);
}

static int open_path(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		fail("open %s: %s", path, strerror(errno));
	return fd;
}

/* A descriptor of the file, which has the name only while this process has it. */
static void change_by_descriptor(const char *format, int count)
{
	char path[64];
	int fd = open_path(FILE_PATH);

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), format, fd);
		change(path);
	}
}

static void refused_dev_fd(int count)
{
	need_dev_fd();
	change_by_descriptor("/dev/fd/%d", count);
}

static void refused_link_to_descriptors(int count)
{
	expect("symlink", symlink("/proc/self/fd", "fds"), 0);
	change_by_descriptor("fds/%d", count);
}

static void refused_link_to_descriptor(int count)
{
	char text[64];

	snprintf(text, sizeof(text), "/proc/self/fd/%d", open_path(FILE_PATH));
	expect("symlink", symlink(text, "link"), 0);
	for (int i = 0; i < count; i++)
		change("link");
}

static void refused_link_to_cwd(int count)
{
	expect("symlink", symlink("/proc/self/cwd", "here"), 0);
	for (int i = 0; i < count; i++)
		change("here/" FILE_PATH);
}

static void refused_thread_self(int count)
{
	change_by_descriptor("/proc/thread-self/fd/%d", count);
}

static void refused_other_proc(int count)
{
	make_dir("proc");
	mount_or_skip("evade", "proc", "proc", 0, NULL);
	change_by_descriptor("proc/self/fd/%d", count);
	umount2("proc", MNT_DETACH);
}

/* The descriptor is another file's right after the call. */
static void refused_descriptor_later(int count)
{
	char path[64];
	int other = open_path("away/file");

	for (int i = 0; i < count; i++) {
		int fd = open_path(FILE_PATH);

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		select_calls();
		syscall(SYS_fchmodat, AT_FDCWD, path, 0640);
		syscall(SYS_dup2, other, fd);
		unselect_calls();
		made(1);
		close(fd);
	}
}

/* Makes a call by a name over the link `swapped`, which leads elsewhere right after. */
static void change_and_swap(const char *path, const char *swapped, const char *elsewhere)
{
	unlink("spare");
	expect("symlink", symlink(elsewhere, "spare"), 0);
	select_calls();
	expect("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, path, 0640), 0);
	syscall(SYS_rename, "spare", swapped);
	unselect_calls();
	made(1);
}

/* So many links, each to the one before, the first to the file; `name` is that of the last. */
static void make_links(int links, char *name, size_t size)
{
	char text[32] = FILE_PATH;

	for (int i = 0; i < links; i++) {
		snprintf(name, size, "link-%d", i);
		expect("symlink", symlink(text, name), 0);
		strcpy(text, name);
	}
}

static void swap_after_links(int links, int count)
{
	char name[32];

	make_links(links, name, sizeof(name));
	for (int i = 0; i < count; i++) {
		unlink("link-0");
		expect("symlink", symlink(FILE_PATH, "link-0"), 0);
		change_and_swap(name, "link-0", "away/file");
	}
}

static void links_few(int count)
{
	swap_after_links(5, count);
}

static void links_many(int count)
{
	swap_after_links(12, count);
}

#define LONG_TEXT_BYTES 700

static void links_long(int count)
{
	char text[LONG_TEXT_BYTES + sizeof(FILE_PATH)] = "";

	while (strlen(text) < LONG_TEXT_BYTES)
		strcat(text, "./");
	strcat(text, FILE_PATH);
	for (int i = 0; i < count; i++) {
		unlink("link");
		expect("symlink", symlink(text, "link"), 0);
		change_and_swap("link", "link", "away/file");
	}
}

/* Links in a directory of so many entries that are newer. */
#define NEWER_ENTRIES 2000

static void make_crowd(const char *text, int links)
{
	char name[32];

	make_dir("crowd");
	for (int i = 0; i < links; i++) {
		snprintf(name, sizeof(name), "crowd/link-%d", i);
		expect("symlink", symlink(text, name), 0);
	}
	for (int i = 0; i < NEWER_ENTRIES; i++) {
		snprintf(name, sizeof(name), "crowd/%d", i);
		write_file(name, "", 0600);
	}
}

static void links_crowded(int count)
{
	char name[32];

	make_crowd("../" FILE_PATH, count);
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "crowd/link-%d", i);
		change_and_swap(name, name, "../away/file");
	}
}

static void links_crowded_directory(int count)
{
	char name[32], path[64];

	make_crowd("../tree", count);
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "crowd/link-%d", i);
		snprintf(path, sizeof(path), "%s/file", name);
		change_and_swap(path, name, "../away");
	}
}

/* The parent of a process, and whether it has this name. */
static pid_t parent_of(pid_t pid, const char *name, bool *is_named)
{
	char path[64], text[512], *end;
	int fd, parent;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return 0;
	text[length] = 0;
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
		return 0;
	*end = 0;
	*is_named = !strcmp(strchr(text, '(') + 1, name);
	return parent;
}

/* The daemon under which the techniques run; 0 if it is no ancestor. */
static pid_t daemon_above(void)
{
	bool is_daemon = false;
	pid_t pid = getppid(), parent;

	while (pid > 1) {
		parent = parent_of(pid, "tarsier", &is_daemon);
		if (is_daemon)
			return pid;
		pid = parent;
	}
	return 0;
}

/* Signals all children of the daemon; those of other users are out of reach. */
static void signal_children(pid_t daemon, int signal)
{
	char path[64], text[512], *at, *end;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", daemon, daemon);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (length < 0)
		fail("%s: %s", path, strerror(errno));
	close(fd);
	text[length] = 0;
	for (at = text; *at; at = end) {
		pid_t pid = strtol(at, &end, 10);

		if (end == at)
			break;
		kill(pid, signal);
		end += strspn(end, " ");
	}
}

#define NOBODY 65534

static void stop_helpers(void *daemon)
{
	expect("setresuid", setresuid(NOBODY, NOBODY, NOBODY), 0);
	for (;;)
		signal_children(*(pid_t *)daemon, SIGSTOP);
}

#define PAUSE_US 20000
/* Long enough for the daemon to have decided, if nothing but the signals delays it. */
#define DECISION_S 2

/* Somebody who has the user id of the daemon's helpers stops them, so that names cannot be looked up. */
static void helpers_stopped(int count)
{
	pid_t daemon = daemon_above(), stopper;
	char name[32];

	if (!daemon)
		skip("not under the daemon");
	stopper = start(stop_helpers, &daemon);
	usleep(PAUSE_US);
	make_links(11, name, sizeof(name));
	for (int i = 0; i < count; i++) {
		expect("fchmodat", selected(SYS_fchmodat, AT_FDCWD, NAME(name), 0640, 0), 0);
		usleep(PAUSE_US);
	}
	sleep(DECISION_S);
	kill(stopper, SIGKILL);
	waitpid(stopper, NULL, 0);
	signal_children(daemon, SIGCONT);
}

const struct technique later_techniques[] = {
	{ "refused-dev-fd", refused_dev_fd, 2, prepare_file },
	{ "refused-link-to-descriptors", refused_link_to_descriptors, 2, prepare_file },
	{ "refused-link-to-descriptor", refused_link_to_descriptor, 2, prepare_file },
	{ "refused-link-to-cwd", refused_link_to_cwd, 2, prepare_file },
	{ "refused-thread-self", refused_thread_self, 2, prepare_file },
	{ "refused-other-proc", refused_other_proc, 2, prepare_file },
	{ "refused-descriptor-later", refused_descriptor_later, 5, prepare_file },
	{ "links-few", links_few, 5, prepare_file },
	{ "links-many", links_many, 5, prepare_file },
	{ "links-long", links_long, 5, prepare_file },
	{ "links-crowded", links_crowded, 5, prepare_file },
	{ "links-crowded-directory", links_crowded_directory, 5, prepare_file },
	{ "helpers-stopped", helpers_stopped, 50, prepare_file },
	{ 0 },
};
