/* SPDX-License-Identifier: Apache-2.0 */
/* dir=DIR/NAME/tree: calls on what is below it, by names that are not. */
#include "evade.h"
#include <sched.h>
#include <sys/mount.h>

/* Bytes of each of the many names in a deep path, and how deep: more than 4,096 bytes in all. */
#define DEEP_NAME_BYTES 200
#define DEPTH 40

static void prepare_tree(void)
{
	make_dir("tree");
	make_dir("tree/sub");
	write_file("tree/file", "text", 0600);
	write_file("tree/sub/file", "text", 0600);
}

static void openat_selected(int dirfd, const char *path)
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

static void chmod_selected(const char *path)
{
	select_calls();
	expect("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, path, 0600), 0);
	unselect_calls();
	made(1);
}

static void truncate_selected(const char *path)
{
	select_calls();
	expect("truncate", syscall(SYS_truncate, path, 0), 0);
	unselect_calls();
	made(1);
}

static void unlinkat_selected(int dirfd, const char *path)
{
	select_calls();
	expect("unlinkat", syscall(SYS_unlinkat, dirfd, path, 0), 0);
	unselect_calls();
	made(1);
}

/* Three calls of a name each time: one returns a descriptor, two do not. */
static void touch(const char *path, int count)
{
	for (int i = 0; i < count; i++) {
		openat_selected(AT_FDCWD, path);
		chmod_selected(path);
		truncate_selected(path);
	}
}

static void dir_symlink(int count)
{
	expect("symlink", symlink("tree/sub/file", "link"), 0);
	touch("link", count);
}

/* The link itself, which is in the tree, and leads out of it. */
static void dir_link_itself(int count)
{
	write_file("outside", "text", 0600);
	expect("symlink", symlink("../outside", "tree/link"), 0);
	for (int i = 0; i < count; i++) {
		select_calls();
		expect("fchownat",
		       syscall(SYS_fchownat, AT_FDCWD, "tree/link", -1, -1, AT_SYMLINK_NOFOLLOW),
		       0);
		expect("lchown", syscall(SYS_lchown, "tree/link", -1, -1), 0);
		expect("utimensat",
		       syscall(SYS_utimensat, AT_FDCWD, "tree/link", NULL, AT_SYMLINK_NOFOLLOW), 0);
		unselect_calls();
		made(3);
	}
}

/*
 * An exchange whose second name goes through a link in the first: since then that link is another one, which leads
 * elsewhere.
 */
static void dir_exchanged_behind_link(int count)
{
	make_dir("away");
	make_dir("away/other");
	make_dir("away/victim");
	make_dir("tree/victim");
	expect("symlink", symlink("../../tree", "away/other/way"), 0);
	expect("symlink", symlink("..", "tree/victim/way"), 0);
	for (int i = 0; i < count; i++) {
		select_calls();
		expect("renameat2",
		       syscall(SYS_renameat2, AT_FDCWD, "away/other", AT_FDCWD,
			       "away/other/way/victim", RENAME_EXCHANGE),
		       0);
		unselect_calls();
		made(1);
		/* Back, by plain names. */
		expect("renameat2",
		       syscall(SYS_renameat2, AT_FDCWD, "away/other", AT_FDCWD, "tree/victim",
			       RENAME_EXCHANGE),
		       0);
	}
}

/* A link in a directory elsewhere, with a second link after it. */
static void dir_two_symlinks(int count)
{
	make_dir("elsewhere");
	expect("symlink", symlink("../tree/file", "elsewhere/one"), 0);
	expect("symlink", symlink("elsewhere/one", "two"), 0);
	touch("two", count);
}

static void dir_directory_symlink(int count)
{
	expect("symlink", symlink("tree/sub", "link"), 0);
	touch("link/file", count);
}

/* As text, link/../file is not below the tree. */
static void dir_dots_after_symlink(int count)
{
	expect("symlink", symlink("tree/sub", "link"), 0);
	touch("link/../file", count);
}

static void dir_fchdir(int count)
{
	int fd = open("tree/sub", O_RDONLY);

	expect("fchdir", fchdir(fd), 0);
	touch("../file", count);
}

static void dir_descriptor(int count)
{
	int fd = open("tree", O_PATH);

	expect("chdir", chdir("/"), 0);
	for (int i = 0; i < count; i++) {
		int made_fd = openat(fd, "new", O_WRONLY | O_CREAT, 0600);

		close(made_fd);
		unlinkat_selected(fd, "new");
	}
}

static void dir_proc_descriptor(int count)
{
	int fd = open("tree/file", O_PATH);
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	touch(path, count);
}

static void dir_bind_mount(int count)
{
	make_dir("other");
	mount_or_skip("tree", "other", NULL, MS_BIND, NULL);
	touch("other/file", count);
	umount2("other", MNT_DETACH);
}

static void unlink_in_bind_mount(int count)
{
	make_dir("other");
	mount_or_skip("tree", "other", NULL, MS_BIND, NULL);
	for (int i = 0; i < count; i++) {
		write_file("other/new", "", 0600);
		unlinkat_selected(AT_FDCWD, "other/new");
	}
	umount2("other", MNT_DETACH);
}

static void unlink_in_namespace(void *unused)
{
	(void)unused;
	write_file("tree/new", "", 0600);
	select_calls();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		skip("no user namespaces: %s", strerror(errno));
	mount_or_skip("tree", "other", NULL, MS_BIND, NULL);
	expect("unlinkat", syscall(SYS_unlinkat, AT_FDCWD, "other/new", 0), 0);
}

static void dir_namespace(int count)
{
	make_dir("other");
	for (int i = 0; i < count; i++) {
		in_child(unlink_in_namespace, NULL);
		made(1);
	}
}

static void unlink_in_chroot(void *unused)
{
	(void)unused;
	write_file("tree/new", "", 0600);
	expect("chroot", chroot("tree"), 0);
	expect("chdir", chdir("/"), 0);
	select_calls();
	expect("unlinkat", syscall(SYS_unlinkat, AT_FDCWD, "/new", 0), 0);
}

static void dir_chroot(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(unlink_in_chroot, NULL);
		made(1);
	}
}

static void dir_moved_out(int count)
{
	for (int i = 0; i < count; i++) {
		write_file("tree/new", "", 0600);
		select_calls();
		expect("renameat", syscall(SYS_renameat, AT_FDCWD, "tree/new", AT_FDCWD, "new"), 0);
		unselect_calls();
		made(1);
	}
}

static void dir_moved_in(int count)
{
	for (int i = 0; i < count; i++) {
		write_file("new", "", 0600);
		select_calls();
		expect("renameat", syscall(SYS_renameat, AT_FDCWD, "new", AT_FDCWD, "tree/new"), 0);
		unselect_calls();
		made(1);
	}
}

/* linkat(AT_EMPTY_PATH): the file is named by a descriptor alone. */
static void dir_linked_in(int count)
{
	write_file("file", "", 0600);
	for (int i = 0; i < count; i++) {
		int fd = open("file", O_RDONLY);

		select_calls();
		expect("linkat", linkat(fd, "", AT_FDCWD, "tree/new", AT_EMPTY_PATH), 0);
		unselect_calls();
		made(1);
		close(fd);
		unlink("tree/new");
	}
}

/* The tree itself is moved first: the rename is one call, what follows is by the new name. */
static void dir_moved(int count)
{
	select_calls();
	expect("renameat", syscall(SYS_renameat, AT_FDCWD, "tree", AT_FDCWD, "moved"), 0);
	unselect_calls();
	made(1);
	touch("moved/file", count);
}

/* The same, by a call that no rule selects. */
static void dir_moved_unseen(int count)
{
	expect("rename", rename("tree", "moved"), 0);
	touch("moved/file", count);
}

static void dir_mounted_later(int count)
{
	mount_or_skip("evade", "tree/sub", "tmpfs", 0, NULL);
	write_file("tree/sub/new", "", 0600);
	touch("tree/sub/new", count);
	umount2("tree/sub", MNT_DETACH);
}

static void dir_new_directory(int count)
{
	for (int i = 0; i < count; i++) {
		select_calls();
		expect("mkdirat", syscall(SYS_mkdirat, AT_FDCWD, "tree/new", 0755), 0);
		unselect_calls();
		made(1);
		write_file("tree/new/file", "", 0600);
		touch("tree/new/file", 1);
		unlink("tree/new/file");
		expect("rmdir", rmdir("tree/new"), 0);
	}
}

/* Longer than PATH_MAX: only reached step by step. */
static void dir_deep(int count)
{
	char name[DEEP_NAME_BYTES + 1];

	memset(name, 'd', DEEP_NAME_BYTES);
	name[DEEP_NAME_BYTES] = 0;
	expect("chdir", chdir("tree"), 0);
	for (int i = 0; i < DEPTH; i++) {
		make_dir(name);
		expect("chdir", chdir(name), 0);
	}
	write_file("file", "", 0600);
	touch("file", count);
	for (int i = 0; i < count; i++) {
		write_file("new", "", 0600);
		unlinkat_selected(AT_FDCWD, "new");
	}
}

/* The working directory is removed: names relative to it lead nowhere afterwards. */
static void dir_removed(int count)
{
	int out = open(".", O_PATH);

	for (int i = 0; i < count; i++) {
		make_dir("tree/new");
		write_file("tree/new/file", "", 0600);
		expect("chdir", chdir("tree/new"), 0);
		unlinkat_selected(AT_FDCWD, "file");
		expect("rmdir", rmdir("../new"), 0);
		expect("fchdir", fchdir(out), 0);
	}
}

static void prepare_overlay(void)
{
	mount_overlay("tree");
}

static void dir_overlayfs(int count)
{
	need_mounted("tree/file", "overlayfs");
	touch("tree/file", count);
}

const struct technique tree_techniques[] = {
	{ "dir-symlink", dir_symlink, 5, prepare_tree },
	{ "watch-symlink", dir_symlink, 5, prepare_tree },
	{ "dir-two-symlinks", dir_two_symlinks, 5, prepare_tree },
	{ "dir-link-itself", dir_link_itself, 5, prepare_tree },
	{ "dir-exchanged-behind-link", dir_exchanged_behind_link, 5, prepare_tree },
	{ "dir-directory-symlink", dir_directory_symlink, 5, prepare_tree },
	{ "dir-dots-after-symlink", dir_dots_after_symlink, 5, prepare_tree },
	{ "dir-fchdir", dir_fchdir, 5, prepare_tree },
	{ "dir-descriptor", dir_descriptor, 5, prepare_tree },
	{ "dir-proc-descriptor", dir_proc_descriptor, 5, prepare_tree },
	{ "dir-bind-mount", dir_bind_mount, 5, prepare_tree },
	{ "dir-bind-mount-unlink", unlink_in_bind_mount, 5, prepare_tree },
	{ "dir-namespace", dir_namespace, 5, prepare_tree },
	{ "dir-chroot", dir_chroot, 5, prepare_tree },
	{ "dir-moved-out", dir_moved_out, 5, prepare_tree },
	{ "dir-moved-in", dir_moved_in, 5, prepare_tree },
	{ "dir-linked-in", dir_linked_in, 5, prepare_tree },
	{ "dir-moved", dir_moved, 5, prepare_tree },
	{ "dir-moved-unseen", dir_moved_unseen, 5, prepare_tree },
	{ "dir-mounted-later", dir_mounted_later, 5, prepare_tree },
	{ "dir-new-directory", dir_new_directory, 5, prepare_tree },
	{ "dir-deep", dir_deep, 3, prepare_tree },
	{ "dir-removed", dir_removed, 5, prepare_tree },
	{ "dir-overlayfs", dir_overlayfs, 5, prepare_overlay },
	{ 0 },
};
