/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exe=DIR/NAME/prog, reached in ways that do not look like it. Each run of the program is an execve and CALLS
 * getppid calls, all of which its rule selects.
 */
#include "evade.h"
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
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

/* Whether preparing could mount; otherwise the technique is not possible. */
static void need_mounted(const char *type)
{
	if (!exists("mnt/prog"))
		skip("no %s: %s", type,
		     exists("reason") ? "mkfs.btrfs is not installed"
				      : "the kernel does not mount it");
}

static void prepare_overlay(void)
{
	make_dir("lower");
	make_dir("upper");
	make_dir("work");
	make_dir("mnt");
	copy_program("lower/prog");
	mount_or_skip("evade", "mnt", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work");
}

static void exe_overlayfs(int count)
{
	need_mounted("overlayfs");
	for (int i = 0; i < count; i++)
		run_counted("mnt/prog");
}

/* Written to, the program gets another inode: that of the upper layer. */
static void exe_overlayfs_copied_up(int count)
{
	need_mounted("overlayfs");
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

/* Runs mkfs.btrfs; false where there is none. */
static bool make_btrfs(const char *image)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		dup2(null, 2);
		execlp("mkfs.btrfs", "mkfs.btrfs", image, NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return false;
	if (status)
		fail("mkfs.btrfs ended with wait status %#x", status);
	return true;
}

#define SUBVOL_CREATE _IOW(0x94, 14, char[4096])

/* A loop device that goes with its last user. */
static void attach(const char *image, char *device, size_t size)
{
	struct loop_config config = { .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
	int control = open("/dev/loop-control", O_RDWR), fd;
	int number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);

	if (number < 0)
		skip("no loop device: %s", strerror(errno));
	snprintf(device, size, "/dev/loop%d", number);
	config.fd = open(image, O_RDWR);
	fd = open(device, O_RDWR);
	if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config))
		fail("%s: %s", device, strerror(errno));
	/* The device stays open until it is mounted, at the end of this process. */
}

static void prepare_btrfs(void)
{
	char device[32], name[4096] = { 0 };
	int image = open("image", O_RDWR | O_CREAT, 0600), fd;

	/* The directories of rules must be there, even if nothing is mounted. */
	make_dir("mnt");
	make_dir("mnt/sub");
	if (image < 0 || ftruncate(image, 128 << 20))
		fail("an image: %s", strerror(errno));
	close(image);
	if (!make_btrfs("image")) {
		write_file("reason", "", 0600);
		skip("mkfs.btrfs is not installed");
	}
	attach("image", device, sizeof(device));
	mount_or_skip(device, "mnt", "btrfs", 0, NULL);
	/* struct btrfs_ioctl_vol_args: a descriptor, then the name. */
	strcpy(name + 8, "sub");
	fd = open("mnt", O_RDONLY);
	if (ioctl(fd, SUBVOL_CREATE, name))
		fail("a subvolume: %s", strerror(errno));
	copy_program("mnt/prog");
	copy_program("mnt/sub/prog");
}

static void exe_btrfs(int count)
{
	need_mounted("btrfs");
	for (int i = 0; i < count; i++)
		run_counted("mnt/prog");
}

static void exe_btrfs_subvolume(int count)
{
	need_mounted("btrfs");
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
