/* SPDX-License-Identifier: Apache-2.0 */
/* path= and -w on DIR/NAME/file, by names and descriptors that do not look like it. */
#include "evade.h"
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>

static void prepare_file(void)
{
	write_file("file", "text", 0600);
}

static void prepare_below(void)
{
	make_dir("dir");
	make_dir("dir/sub");
	write_file("dir/file", "text", 0600);
}

/* A selected open for writing, which must succeed. */
static void open_selected(int dirfd, const char *path)
{
	long fd;

	select_calls();
	fd = syscall(SYS_openat, dirfd, path, O_WRONLY);
	unselect_calls();
	if (fd < 0)
		fail("openat %.200s: %s", path, strerror(errno));
	close(fd);
	made(1);
}

static void open_many(const char *path, int count)
{
	for (int i = 0; i < count; i++)
		open_selected(AT_FDCWD, path);
}

static void path_in_place(int count)
{
	open_many("file", count);
}

static void path_descriptor(int count)
{
	int fd = open("dir", O_RDONLY);

	expect("chdir", chdir("/"), 0);
	for (int i = 0; i < count; i++)
		open_selected(fd, "file");
}

static void path_directory_path_descriptor(int count)
{
	int fd = open("dir/sub", O_PATH);

	for (int i = 0; i < count; i++)
		open_selected(fd, "../file");
}

/* Two calls: one gets a descriptor of the path alone, the other opens the file by it. */
static void path_proc_descriptor(int count)
{
	for (int i = 0; i < count; i++) {
		char path[32];
		long fd;

		select_calls();
		fd = syscall(SYS_openat, AT_FDCWD, "file", O_PATH);
		unselect_calls();
		made(1);
		snprintf(path, sizeof(path), "/proc/self/fd/%ld", fd);
		open_selected(AT_FDCWD, path);
		close(fd);
	}
}

static void path_fchdir(int count)
{
	int fd = open("dir/sub", O_RDONLY);

	expect("chdir", chdir("/"), 0);
	expect("fchdir", fchdir(fd), 0);
	open_many("../file", count);
}

static void path_dots(int count)
{
	open_many("dir/../dir/sub/.././/.//file", count);
}

static void path_long(int count)
{
	char path[PATH_MAX] = "dir/sub/../";
	size_t length = strlen(path);

	while (length + 12 < sizeof(path))
		length += sprintf(path + length, "%s", length % 2 ? "sub/../" : ".//////");
	strcpy(path + length, "file");
	open_many(path, count);
}

static void path_hard_link(int count)
{
	make_dir("elsewhere");
	expect("link", link("file", "elsewhere/other"), 0);
	open_many("elsewhere/other", count);
}

static void path_symlink(int count)
{
	make_dir("elsewhere");
	expect("symlink", symlink("../file", "elsewhere/one"), 0);
	expect("symlink", symlink("one", "elsewhere/two"), 0);
	open_many("elsewhere/two", count);
}

static void path_directory_symlink(int count)
{
	expect("symlink", symlink("dir/sub", "elsewhere"), 0);
	open_many("elsewhere/../file", count);
}

static void path_proc_cwd(int count)
{
	open_many("/proc/self/cwd/file", count);
}

static void path_proc_root(int count)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/self/root%s/file", home);
	open_many(path, count);
}

static void path_bind_file(int count)
{
	write_file("other", "", 0600);
	mount_or_skip("file", "other", NULL, MS_BIND, NULL);
	open_many("other", count);
	umount2("other", MNT_DETACH);
}

static void path_bind_directory(int count)
{
	make_dir("other");
	mount_or_skip("dir", "other", NULL, MS_BIND, NULL);
	open_many("other/file", count);
	umount2("other", MNT_DETACH);
}

static void open_in_namespace(void *unused)
{
	(void)unused;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		skip("no user namespaces: %s", strerror(errno));
	mount_or_skip("dir", "other", NULL, MS_BIND, NULL);
	expect("chroot", chroot("other"), 0);
	expect("chdir", chdir("/"), 0);
	/* The group is not mapped here, so that the thread cannot leave it. */
	if (syscall(SYS_openat, AT_FDCWD, "/file", O_RDONLY) < 0)
		fail("openat: %s", strerror(errno));
}

static void selected_in_namespace(void *unused)
{
	select_calls();
	open_in_namespace(unused);
}

static void path_namespace(int count)
{
	make_dir("other");
	for (int i = 0; i < count; i++) {
		in_child(selected_in_namespace, NULL);
		made(1);
	}
}

static void open_in_chroot(void *unused)
{
	(void)unused;
	expect("chroot", chroot("dir"), 0);
	expect("chdir", chdir("/"), 0);
	open_selected(AT_FDCWD, "/file");
}

static void path_chroot(int count)
{
	for (int i = 0; i < count; i++)
		in_child(open_in_chroot, NULL);
}

/* Made anew by another name each time: the rule follows the name. */
static void path_moved_over(int count)
{
	for (int i = 0; i < count; i++) {
		write_file("other", "", 0600);
		expect("rename", rename("other", "file"), 0);
		open_selected(AT_FDCWD, "file");
	}
}

static void path_made(int count)
{
	for (int i = 0; i < count; i++) {
		long fd;

		if (i > 0)
			unlink("file");
		select_calls();
		fd = syscall(SYS_openat, AT_FDCWD, "file", O_WRONLY | O_CREAT | O_EXCL, 0600);
		unselect_calls();
		if (fd < 0)
			fail("openat: %s", strerror(errno));
		close(fd);
		made(1);
		open_selected(AT_FDCWD, "file");
	}
}

/* To a watch, link and unlink change the attributes of the file. */
static void watch_hard_link(int count)
{
	path_hard_link(count);
	made(1);
}

static void watch_made(int count)
{
	path_made(count);
	made(count - 1);
}

static void path_openat2(int count)
{
	struct open_how how = { .flags = O_WRONLY, .resolve = RESOLVE_IN_ROOT };
	int dir = open("dir", O_RDONLY);

	for (int i = 0; i < count; i++) {
		long fd;

		select_calls();
		fd = syscall(SYS_openat2, dir, "/sub/../../file", &how, sizeof(how));
		unselect_calls();
		if (fd < 0)
			fail("openat2: %s", strerror(errno));
		close(fd);
		made(1);
	}
}

static void path_handle(int count)
{
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} named = { .handle.handle_bytes = MAX_HANDLE_SZ };
	int mount_id, dir = open(".", O_RDONLY);

	if (name_to_handle_at(AT_FDCWD, "file", &named.handle, &mount_id, 0))
		fail("name_to_handle_at: %s", strerror(errno));
	for (int i = 0; i < count; i++) {
		int fd;

		select_calls();
		fd = open_by_handle_at(dir, &named.handle, O_WRONLY);
		unselect_calls();
		if (fd < 0)
			fail("open_by_handle_at: %s", strerror(errno));
		close(fd);
		made(1);
	}
}

/* Calls that return no descriptor of what they name. */
static void chmod_many(const char *path, int count)
{
	for (int i = 0; i < count; i++) {
		select_calls();
		expect("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, path, 0600), 0);
		unselect_calls();
		made(1);
	}
}

static void chmod_proc_descriptor(int count)
{
	int fd = open("file", O_PATH);
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	chmod_many(path, count);
}

static void chmod_hard_link(int count)
{
	make_dir("elsewhere");
	expect("link", link("file", "elsewhere/other"), 0);
	chmod_many("elsewhere/other", count);
}

static void chmod_bind_file(int count)
{
	write_file("other", "", 0600);
	mount_or_skip("file", "other", NULL, MS_BIND, NULL);
	chmod_many("other", count);
	umount2("other", MNT_DETACH);
}

/* The process ends, and its namespace with it, before the daemon can look. */
static void chmod_in_namespace(void *unused)
{
	(void)unused;
	select_calls();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		skip("no user namespaces: %s", strerror(errno));
	mount_or_skip("file", "other", NULL, MS_BIND, NULL);
	expect("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "other", 0600), 0);
}

static void chmod_namespace(int count)
{
	write_file("other", "", 0600);
	for (int i = 0; i < count; i++) {
		in_child(chmod_in_namespace, NULL);
		made(1);
	}
}

/* The file goes right after the call, and so does what its name leads to. */
static void chmod_removed(int count)
{
	for (int i = 0; i < count; i++) {
		write_file("file", "", 0600);
		chmod_many("file", 1);
		unlink("file");
	}
}

static void chmod_overlayfs(int count)
{
	need_mounted("mnt/file", "overlayfs");
	chmod_many("mnt/file", count);
}

static void prepare_overlay(void)
{
	mount_overlay("mnt");
}

/* The first open for writing copies the file to the upper layer, where it has another inode. */
static void path_overlayfs(int count)
{
	need_mounted("mnt/file", "overlayfs");
	open_many("mnt/file", count);
	expect("link", link("mnt/file", "mnt/other"), 0);
	open_many("mnt/other", count);
}

static void prepare_btrfs(void)
{
	mount_btrfs();
	write_file("mnt/sub/file", "text", 0600);
}

/* The file is opened by another of its names, so that device and inode have to be right. */
static void path_btrfs(int count)
{
	need_mounted("mnt/sub/file", "btrfs");
	expect("link", link("mnt/sub/file", "mnt/sub/other"), 0);
	open_many("mnt/sub/other", count);
}

static void chmod_btrfs(int count)
{
	need_mounted("mnt/sub/file", "btrfs");
	chmod_many("mnt/sub/file", count);
}

/* The file is made at the rule's path, and reached at once by another name, which the rules do not have. */
static void made_and_linked(void)
{
	unlink("other");
	unlink("file");
	write_file("file", "text", 0600);
	expect("link", link("file", "other"), 0);
}

static void path_made_linked(int count)
{
	for (int i = 0; i < count; i++) {
		made_and_linked();
		open_selected(AT_FDCWD, "other");
	}
}

static void chmod_made_linked(int count)
{
	for (int i = 0; i < count; i++) {
		made_and_linked();
		chmod_many("other", 1);
	}
}

/* Afterwards the file has neither name. */
static void chmod_made_unlinked(int count)
{
	for (int i = 0; i < count; i++) {
		made_and_linked();
		chmod_many("other", 1);
		unlink("file");
		unlink("other");
	}
}

/* A file that has its name last: the descriptor is older than that. */
static void path_linked_in(int count)
{
	for (int i = 0; i < count; i++) {
		int fd;

		unlink("file");
		write_file("other", "text", 0600);
		fd = open("other", O_WRONLY);
		expect("link", link("other", "file"), 0);
		select_calls();
		expect("fchmod", syscall(SYS_fchmod, fd, 0600), 0);
		unselect_calls();
		made(1);
		close(fd);
		unlink("other");
	}
}

/* A program of several threads, whose descriptors the programs do not trust. */
static void wait_always(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

static void path_made_linked_shared(int count)
{
	struct thread other;

	thread_start(&other, wait_always, NULL);
	path_made_linked(count);
}

const struct technique path_techniques[] = {
	{ "path-in-place", path_in_place, 5, prepare_file },
	{ "path-descriptor", path_descriptor, 5, prepare_below },
	{ "path-directory-path-descriptor", path_directory_path_descriptor, 5, prepare_below },
	{ "path-proc-descriptor", path_proc_descriptor, 5, prepare_file },
	{ "path-fchdir", path_fchdir, 5, prepare_below },
	{ "path-dots", path_dots, 5, prepare_below },
	{ "path-long", path_long, 5, prepare_below },
	{ "path-hard-link", path_hard_link, 5, prepare_file },
	{ "path-symlink", path_symlink, 5, prepare_file },
	{ "path-directory-symlink", path_directory_symlink, 5, prepare_below },
	{ "path-proc-cwd", path_proc_cwd, 5, prepare_file },
	{ "path-proc-root", path_proc_root, 5, prepare_file },
	{ "path-bind-file", path_bind_file, 5, prepare_file },
	{ "path-bind-directory", path_bind_directory, 5, prepare_below },
	{ "path-namespace", path_namespace, 5, prepare_below },
	{ "path-chroot", path_chroot, 5, prepare_below },
	{ "path-moved-over", path_moved_over, 5, prepare_file },
	{ "path-made", path_made, 5 },
	{ "path-openat2", path_openat2, 5, prepare_below },
	{ "path-handle", path_handle, 5, prepare_file },
	{ "path-overlayfs", path_overlayfs, 5, prepare_overlay },
	{ "path-btrfs-subvolume", path_btrfs, 5, prepare_btrfs },
	{ "watch-descriptor", path_descriptor, 5, prepare_below },
	{ "watch-hard-link", watch_hard_link, 5, prepare_file },
	{ "watch-made", watch_made, 5 },
	{ "chmod-proc-descriptor", chmod_proc_descriptor, 5, prepare_file },
	{ "chmod-hard-link", chmod_hard_link, 5, prepare_file },
	{ "chmod-bind-file", chmod_bind_file, 5, prepare_file },
	{ "chmod-namespace", chmod_namespace, 5, prepare_file },
	{ "chmod-removed", chmod_removed, 5 },
	{ "chmod-overlayfs", chmod_overlayfs, 5, prepare_overlay },
	{ "chmod-btrfs-subvolume", chmod_btrfs, 5, prepare_btrfs },
	{ "path-made-linked", path_made_linked, 5 },
	{ "path-made-linked-shared", path_made_linked_shared, 5 },
	{ "path-linked-in", path_linked_in, 5 },
	{ "chmod-made-linked", chmod_made_linked, 5 },
	{ "chmod-made-unlinked", chmod_made_unlinked, 5 },
	{ 0 },
};
