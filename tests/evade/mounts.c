/* SPDX-License-Identifier: Apache-2.0 */
/* File systems on which device and inode of a file are not what they seem. */
#include "evade.h"
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>

void mount_or_skip(const char *source, const char *target, const char *type, unsigned long flags,
		   const char *data)
{
	if (mount(source, target, type, flags, data) == 0)
		return;
	if (errno == ENODEV)
		skip("the kernel has no %s", type);
	fail("mount %s at %s: %s", type ? type : source, target, strerror(errno));
}

void need_mounted(const char *path, const char *type)
{
	if (!exists(path))
		skip("no %s: %s", type,
		     exists("reason") ? "mkfs.btrfs is not installed"
				      : "the kernel does not mount it");
}

void need_dev_fd(void)
{
	if (!exists("/dev/fd"))
		expect("symlink", symlink("/proc/self/fd", "/dev/fd"), 0);
}

void mount_overlay(const char *target)
{
	make_dir("lower");
	make_dir("upper");
	make_dir("work");
	make_dir(target);
	write_file("lower/file", "text", 0600);
	copy_program("lower/prog");
	mount_or_skip("evade", target, "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work");
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

void mount_btrfs(void)
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
}
