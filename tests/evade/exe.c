/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exe=DIR/NAME/prog, reached in ways that do not look like it. Each run of the program is an execve and CALLS
 * getppid calls, all of which its rule selects.
 */
#include "evade.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#define CALLS 4

static void run_counted(const char *path)
{
	run_program(path, CALLS);
	made(1 + CALLS);
}

static void prepare_program(void)
{
	copy_program("prog");
}

static void run_many(int count)
{
	for (int i = 0; i < count; i++)
		run_counted("prog");
}

/* The program is made, run at once, and removed. */
static void exe_made(int count)
{
	for (int i = 0; i < count; i++) {
		unlink("prog");
		copy_program("prog");
		run_counted("prog");
	}
}

static void exe_moved_over(int count)
{
	for (int i = 0; i < count; i++) {
		copy_program("other");
		expect("rename", rename("other", "prog"), 0);
		run_counted("prog");
	}
}

static void exe_moved_in(int count)
{
	make_dir("elsewhere");
	for (int i = 0; i < count; i++) {
		unlink("prog");
		copy_program("elsewhere/other");
		expect("rename", rename("elsewhere/other", "prog"), 0);
		run_counted("prog");
	}
}

static void exe_exchanged(int count)
{
	copy_program("other");
	for (int i = 0; i < count; i++) {
		expect("renameat2", renameat2(AT_FDCWD, "other", AT_FDCWD, "prog", RENAME_EXCHANGE),
		       0);
		run_counted("prog");
	}
}

static void exe_linked_in(int count)
{
	copy_program("other");
	for (int i = 0; i < count; i++) {
		unlink("prog");
		expect("link", link("other", "prog"), 0);
		run_counted("prog");
	}
}

static void prepare_below(void)
{
	make_dir("dir");
	copy_program("dir/prog");
}

/* The directory is moved away, and another takes its place. */
static void exe_directory_exchanged(int count)
{
	make_dir("other");
	copy_program("other/prog");
	for (int i = 0; i < count; i++) {
		expect("renameat2", renameat2(AT_FDCWD, "other", AT_FDCWD, "dir", RENAME_EXCHANGE),
		       0);
		run_counted("dir/prog");
	}
}

#define PACED_CALLS 10000
#define PAUSE_US "200"
/* Not a part of the second after which the daemon looks. */
#define CHANGE_EACH_US 700000

static void call_paced(void *unused)
{
	char number[16];
	char *argv[] = { "prog", "act", number, PAUSE_US, NULL }, *envp[] = { NULL };

	(void)unused;
	snprintf(number, sizeof(number), "%d", PACED_CALLS);
	select_calls();
	execve("prog", argv, envp);
	fail("execve: %s", strerror(errno));
}

/*
 * The program stays what it is, and makes calls for seconds. Meanwhile the program of an earlier rule comes and
 * goes, so that the daemon keeps making its rules anew.
 */
static void exe_beside_changes(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = start(call_paced, NULL);
		int status;

		for (int change = 0; waitpid(pid, &status, WNOHANG) == 0; change++) {
			if (change % 2)
				unlink("other");
			else
				copy_program("other");
			usleep(CHANGE_EACH_US);
		}
		expect("the program", status, 0);
		made(1 + PACED_CALLS);
	}
}

static void exe_hard_link(int count)
{
	expect("link", link("prog", "other"), 0);
	for (int i = 0; i < count; i++)
		run_counted("other");
}

static void exe_symlink(int count)
{
	expect("symlink", symlink("prog", "other"), 0);
	for (int i = 0; i < count; i++)
		run_counted("other");
}

static void exe_bind_mount(int count)
{
	write_file("other", "", 0755);
	mount_or_skip("prog", "other", NULL, MS_BIND, NULL);
	for (int i = 0; i < count; i++)
		run_counted("other");
	umount2("other", MNT_DETACH);
}

static void run_in_namespace(void *unused)
{
	(void)unused;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		skip("no user namespaces: %s", strerror(errno));
	mount_or_skip(".", "elsewhere", NULL, MS_BIND | MS_REC, NULL);
	execute("elsewhere/prog", CALLS);
}

static void selected_in_namespace(void *unused)
{
	select_calls();
	run_in_namespace(unused);
}

static void exe_namespace(int count)
{
	make_dir("elsewhere");
	for (int i = 0; i < count; i++) {
		in_child(selected_in_namespace, NULL);
		made(1 + CALLS);
	}
}

static void run_in_chroot(void *unused)
{
	(void)unused;
	expect("chroot", chroot("."), 0);
	select_calls();
	execute("/prog", CALLS);
}

static void exe_chroot(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(run_in_chroot, NULL);
		made(1 + CALLS);
	}
}

static void run_descriptor(void *unused)
{
	char *argv[] = { "prog", "act", "4", NULL }, *envp[] = { NULL };
	int fd = open("prog", O_PATH);

	(void)unused;
	select_calls();
	syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
	fail("execveat: %s", strerror(errno));
}

static void exe_descriptor(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(run_descriptor, NULL);
		made(1 + CALLS);
	}
}

static void prepare_interpreter(void)
{
	char text[sizeof(home) + 32];

	copy_program("prog");
	snprintf(text, sizeof(text), "#!%s/prog act\n", home);
	write_file("script", text, 0755);
}

static void run_script(void *unused)
{
	char *argv[] = { "script", NULL }, *envp[] = { NULL };

	(void)unused;
	select_calls();
	execve("./script", argv, envp);
	fail("execve: %s", strerror(errno));
}

/* The interpreter gets `act ./script`, makes no call, and its execve is the program's. */
static void exe_interpreter(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(run_script, NULL);
		made(1);
	}
}

static void prepare_overlay(void)
{
	mount_overlay("mnt");
}

static void exe_overlayfs(int count)
{
	need_mounted("mnt/prog", "overlayfs");
	for (int i = 0; i < count; i++)
		run_counted("mnt/prog");
}

/* Written to, the program gets another inode: that of the upper layer. */
static void exe_overlayfs_copied_up(int count)
{
	need_mounted("mnt/prog", "overlayfs");
	for (int i = 0; i < count; i++) {
		expect("chmod", chmod("mnt/prog", i % 2 ? 0755 : 0711), 0);
		run_counted("mnt/prog");
	}
}

static void prepare_tmpfs(void)
{
	make_dir("mnt");
	mount_or_skip("evade", "mnt", "tmpfs", 0, NULL);
	copy_program("mnt/prog");
}

static void exe_tmpfs(int count)
{
	for (int i = 0; i < count; i++)
		run_counted("mnt/prog");
}

static void prepare_btrfs(void)
{
	mount_btrfs();
	copy_program("mnt/prog");
	copy_program("mnt/sub/prog");
}

static void exe_btrfs(int count)
{
	need_mounted("mnt/prog", "btrfs");
	for (int i = 0; i < count; i++)
		run_counted("mnt/prog");
}

static void exe_btrfs_subvolume(int count)
{
	need_mounted("mnt/prog", "btrfs");
	for (int i = 0; i < count; i++)
		run_counted("mnt/sub/prog");
}

const struct technique exe_techniques[] = {
	{ "exe-in-place", run_many, 3, prepare_program },
	{ "exe-made", exe_made, 3 },
	{ "exe-moved-over", exe_moved_over, 3, prepare_program },
	{ "exe-moved-in", exe_moved_in, 3 },
	{ "exe-exchanged", exe_exchanged, 4, prepare_program },
	{ "exe-linked-in", exe_linked_in, 3 },
	{ "exe-directory-exchanged", exe_directory_exchanged, 4, prepare_below },
	{ "exe-beside-changes", exe_beside_changes, 1, prepare_program },
	{ "exe-hard-link", exe_hard_link, 3, prepare_program },
	{ "exe-symlink", exe_symlink, 3, prepare_program },
	{ "exe-bind-mount", exe_bind_mount, 3, prepare_program },
	{ "exe-namespace", exe_namespace, 3, prepare_program },
	{ "exe-chroot", exe_chroot, 3, prepare_program },
	{ "exe-descriptor", exe_descriptor, 3, prepare_program },
	{ "exe-interpreter", exe_interpreter, 3, prepare_interpreter },
	{ "exe-overlayfs", exe_overlayfs, 3, prepare_overlay },
	{ "exe-overlayfs-copied-up", exe_overlayfs_copied_up, 3, prepare_overlay },
	{ "exe-tmpfs", exe_tmpfs, 3, prepare_tmpfs },
	{ "exe-btrfs", exe_btrfs, 3, prepare_btrfs },
	{ "exe-btrfs-subvolume", exe_btrfs_subvolume, 3, prepare_btrfs },
	{ 0 },
};
