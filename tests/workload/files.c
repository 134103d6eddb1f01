/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on files and directories, by absolute and relative paths and through descriptors. */
#include "workload.h"
#include <linux/openat2.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#define BAD_ADDRESS 8L
#define NOBODY 65534

/* The directory behind the descriptor of calls; never the working directory at the same time. */
static char sub[PATH_BYTES];
static char long_name[300], deep_path[PATH_BYTES], deep_file[PATH_BYTES + 8];

static void join(char *out, const char *dir, const char *name)
{
	size_t len = strlen(dir);

	memcpy(out, dir, len);
	out[len] = '/';
	memcpy(out + len + 1, name, strlen(name) + 1);
}

/* chdir to an absolute path that has no link in it. */
static void enter(struct self *me, const char *path)
{
	NAMES(path);
	if (CALL(chdir, path) == 0)
		memcpy(me->cwd, path, strlen(path) + 1);
}

static void open_family(struct self *me, const char *dir, int dirfd)
{
	struct open_how how = { .flags = O_RDONLY };
	char path[PATH_BYTES];
	long fd;

	join(path, dir, "new");
	NAMES(path);
	fd = CALL(open, path, O_CREAT | O_EXCL | O_RDWR, 0640);
	CALL(close, fd);
	NAMES(path);
	CALL(open, path, O_CREAT | O_EXCL | O_RDWR, 0640);
	NAMES("new");
	CALL(close, CALL(open, "new", O_CREAT | O_RDWR, 0600));
	NAMES("./new");
	CALL(close, CALL(openat, AT_FDCWD, "./new", O_WRONLY | O_TRUNC));
	NAMES_AT(sub, "../sub/../new");
	CALL(close, CALL(openat, dirfd, "../sub/../new", O_RDONLY));
	NAMES("made");
	CALL(close, CALL(creat, "made", 0644));
	NAMES_AT(sub, "how");
	how.flags = O_CREAT | O_WRONLY;
	how.mode = 0604;
	CALL(close, CALL(openat2, dirfd, "how", &how, sizeof(how)));
	how = (struct open_how){ .flags = O_RDONLY, .resolve = RESOLVE_BENEATH };
	NAMES_AT(sub, "../outside");
	CALL(openat2, dirfd, "../outside", &how, sizeof(how));
	NAMES("new");
	CALL(close, CALL(open, "new", O_PATH));
	NAMES(dir);
	CALL(close, CALL(open, dir, O_TMPFILE | O_RDWR, 0600));
	NAMES("sub");
	CALL(close, CALL(open, "sub", O_RDONLY | O_DIRECTORY));
}

static void open_failures(struct self *me, int dirfd)
{
	static char too_long[PATH_BYTES + 64];
	char name[257];

	NAMES("missing");
	CALL(open, "missing", O_RDONLY);
	NAMES_AT(sub, "../missing/below");
	CALL(openat, dirfd, "../missing/below", O_RDWR);
	NAMES("sub");
	CALL(open, "sub", O_WRONLY);
	NAMES("new/below");
	CALL(openat, AT_FDCWD, "new/below", O_RDONLY);
	NAMES("new");
	CALL(open, "new", O_RDONLY | O_DIRECTORY);
	NAMES("loop");
	CALL(symlink, "loop", "loop");
	NAMES("loop");
	CALL(open, "loop", O_RDONLY);
	NAMES("loop");
	CALL(unlink, "loop");
	/* One byte longer than a name may be: read by the kernel, refused by the file system. */
	memset(name, 'n', 256);
	name[256] = 0;
	NAMES(name);
	CALL(open, name, O_RDONLY);
	/* One byte longer than a path may be: refused before any look-up. */
	memset(too_long, 'p', PATH_BYTES);
	CALL(open, too_long, O_RDONLY);
	CALL(open, BAD_ADDRESS, O_RDONLY);
	CALL(openat, AT_FDCWD, NULL, O_RDONLY);
	CALL(openat, 999, "new", O_RDONLY);
	NAMES("/dev/null/x");
	CALL(openat, 999, "/dev/null/x", O_RDONLY);
}

/* Calls that only root may make, made as another effective user; then root again. */
static void refused(struct self *me)
{
	NAMES("secret");
	CALL(close, CALL(open, "secret", O_CREAT | O_WRONLY, 0600));
	CALL(setresuid, -1, NOBODY, -1);
	NAMES("secret");
	CALL(open, "secret", O_RDONLY);
	NAMES("secret");
	CALL(chmod, "secret", 0666);
	NAMES("secret");
	CALL(unlink, "secret");
	NAMES("created");
	CALL(openat, AT_FDCWD, "created", O_CREAT | O_WRONLY, 0600);
	NAMES("made-by-nobody");
	CALL(mkdir, "made-by-nobody", 0700);
	NAMES("/");
	CALL(chroot, "/");
	CALL(setresuid, -1, 0, -1);
	NAMES("secret");
	CALL(unlink, "secret");
}

static void entries(struct self *me, int dirfd)
{
	NAMES("one");
	CALL(close, CALL(creat, "one", 0644));
	NAMES("two");
	CALL(close, CALL(creat, "two", 0644));
	NAMES("one");
	NAMES("hard");
	CALL(link, "one", "hard");
	NAMES_AT(sub, "../one");
	NAMES_AT(sub, "hard");
	CALL(linkat, dirfd, "../one", dirfd, "hard", 0);
	NAMES("missing");
	NAMES("hard2");
	CALL(link, "missing", "hard2");
	NAMES("soft");
	CALL(symlink, "one", "soft");
	NAMES_AT(sub, "soft");
	CALL(symlinkat, "../one", dirfd, "soft");
	NAMES("soft");
	CALL(symlink, "one", "soft");
	NAMES("one");
	NAMES("three");
	CALL(rename, "one", "three");
	NAMES_AT(sub, "../three");
	NAMES("sub/four");
	CALL(renameat, dirfd, "../three", AT_FDCWD, "sub/four");
	NAMES("two");
	NAMES("sub/four");
	CALL(renameat2, AT_FDCWD, "two", AT_FDCWD, "sub/four", 2 /* RENAME_EXCHANGE */);
	NAMES("two");
	NAMES("sub/four");
	CALL(renameat2, AT_FDCWD, "two", AT_FDCWD, "sub/four", 1 /* RENAME_NOREPLACE */);
	NAMES("two");
	NAMES("sub/four");
	CALL(rename, "two", "sub/four");
	NAMES("missing");
	NAMES("sub/five");
	CALL(rename, "missing", "sub/five");
	NAMES("made-dir");
	CALL(mkdir, "made-dir", 0750);
	NAMES_AT(sub, "../made-dir/inner");
	CALL(mkdirat, dirfd, "../made-dir/inner", 0700);
	NAMES("made-dir");
	CALL(mkdir, "made-dir", 0750);
	NAMES("fifo");
	CALL(mknod, "fifo", S_IFIFO | 0600, 0);
	NAMES_AT(sub, "file");
	CALL(mknodat, dirfd, "file", S_IFREG | 0600, 0);
	NAMES("made-dir");
	CALL(rmdir, "made-dir");
	NAMES_AT(sub, "../made-dir/inner");
	CALL(unlinkat, dirfd, "../made-dir/inner", AT_REMOVEDIR);
	NAMES("made-dir/");
	CALL(rmdir, "made-dir/");
	NAMES("made-dir");
	CALL(rmdir, "made-dir");
	NAMES("fifo");
	CALL(rmdir, "fifo");
	NAMES("sub");
	CALL(unlink, "sub");
	static const char *const left[] = { "../fifo", "../soft", "../hard", "hard",
					    "soft",    "four",	  "file",    "../missing" };
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		NAMES_AT(sub, left[i]);
		CALL(unlinkat, dirfd, left[i], 0);
	}
}

static void attributes(struct self *me, int dirfd)
{
	long fd;

	NAMES("attr");
	fd = CALL(open, "attr", O_CREAT | O_RDWR, 0644);
	NAMES("attr-link");
	CALL(symlink, "attr", "attr-link");
	NAMES("attr");
	CALL(chmod, "attr", 0600);
	CALL(fchmod, fd, 0640);
	NAMES_AT(sub, "../attr");
	CALL(fchmodat, dirfd, "../attr", 0644);
	NAMES("missing");
	CALL(chmod, "missing", 0644);
	CALL(fchmod, 999, 0640);
	NAMES("attr");
	CALL(chown, "attr", 1, 2);
	NAMES("attr-link");
	CALL(lchown, "attr-link", 3, -1);
	CALL(fchown, fd, 0, 0);
	NAMES_AT(sub, "../attr-link");
	CALL(fchownat, dirfd, "../attr-link", -1, 4, AT_SYMLINK_NOFOLLOW);
	CALL(fchownat, fd, "", 0, 0, AT_EMPTY_PATH);
	NAMES("attr");
	CALL(truncate, "attr", 100);
	NAMES("sub");
	CALL(truncate, "sub", 1);
	CALL(ftruncate, fd, 10);
	CALL(fallocate, fd, 0, 0, 4096);
	NAMES_AT(sub, "../attr");
	CALL(utimensat, dirfd, "../attr", NULL, 0);
	NAMES("attr");
	CALL(utime, "attr", NULL);
	NAMES("attr");
	CALL(utimes, "attr", NULL);
	NAMES("attr");
	CALL(futimesat, AT_FDCWD, "attr", NULL);
	char value[64];
	NAMES("attr");
	CALL(setxattr, "attr", "trusted.tarsier", "value", 5, 0);
	NAMES("attr-link");
	CALL(lsetxattr, "attr-link", "trusted.tarsier", "value", 5, XATTR_REPLACE);
	CALL(fsetxattr, fd, "trusted.other", "v", 1, XATTR_CREATE);
	NAMES("attr");
	CALL(getxattr, "attr", "trusted.tarsier", value, sizeof(value));
	NAMES("attr-link");
	CALL(lgetxattr, "attr-link", "trusted.none", value, sizeof(value));
	CALL(fgetxattr, fd, "trusted.other", value, sizeof(value));
	NAMES("attr");
	CALL(listxattr, "attr", value, sizeof(value));
	NAMES("attr-link");
	CALL(llistxattr, "attr-link", value, sizeof(value));
	CALL(flistxattr, fd, value, sizeof(value));
	NAMES("attr");
	CALL(removexattr, "attr", "trusted.tarsier");
	NAMES("attr-link");
	CALL(lremovexattr, "attr-link", "trusted.none");
	CALL(fremovexattr, fd, "trusted.other");
	CALL(close, fd);
	NAMES("attr-link");
	CALL(unlink, "attr-link");
	NAMES("attr");
	CALL(unlink, "attr");
}

static void looking(struct self *me, const char *dir, int dirfd)
{
	struct stat st;
	struct statx stx;
	struct statfs sfs;
	char buf[PATH_BYTES];

	NAMES("new");
	CALL(stat, "new", &st);
	NAMES("new");
	CALL(lstat, "new", &st);
	CALL(fstat, dirfd, &st);
	NAMES_AT(sub, "../new");
	CALL(newfstatat, dirfd, "../new", &st, 0);
	NAMES("missing");
	CALL(stat, "missing", &st);
	NAMES_AT(sub, ".");
	CALL(statx, dirfd, ".", 0, STATX_BASIC_STATS, &stx);
	NAMES("new");
	CALL(access, "new", R_OK);
	NAMES_AT(sub, "../new");
	CALL(faccessat, dirfd, "../new", W_OK);
	NAMES("missing");
	CALL(access, "missing", F_OK);
	NAMES("link");
	CALL(symlink, "new", "link");
	NAMES("link");
	CALL(readlink, "link", buf, sizeof(buf));
	NAMES_AT(sub, "../link");
	CALL(readlinkat, dirfd, "../link", buf, sizeof(buf));
	NAMES("new");
	CALL(readlink, "new", buf, sizeof(buf));
	NAMES("link");
	CALL(close, CALL(open, "link", O_RDONLY));
	NAMES("link");
	CALL(open, "link", O_RDONLY | O_NOFOLLOW);
	NAMES("link");
	CALL(unlink, "link");
	NAMES(dir);
	CALL(statfs, dir, &sfs);
	CALL(fstatfs, dirfd, &sfs);
	CALL(getdents64, dirfd, buf, sizeof(buf));
	CALL(getcwd, buf, sizeof(buf));
	CALL(getcwd, buf, 1);
}

static void contents(struct self *me)
{
	char buf[64] = "some text";
	struct iovec vec = { buf, 9 };
	long fd, copy;

	NAMES("text");
	fd = CALL(open, "text", O_CREAT | O_RDWR | O_APPEND, 0600);
	CALL(write, fd, buf, 9);
	CALL(writev, fd, &vec, 1);
	CALL(pwrite64, fd, buf, 4, 2);
	CALL(lseek, fd, 0, SEEK_SET);
	CALL(read, fd, buf, 4);
	CALL(readv, fd, &vec, 1);
	CALL(pread64, fd, buf, 8, 1);
	CALL(pread64, fd, BAD_ADDRESS, 8, 1);
	CALL(read, 999, buf, 1);
	CALL(fsync, fd);
	CALL(fdatasync, fd);
	CALL(fcntl, fd, F_GETFL);
	CALL(flock, fd, 2);
	CALL(ioctl, fd, 0x5401 /* TCGETS */, buf);
	copy = CALL(dup, fd);
	CALL(dup2, fd, copy);
	CALL(dup3, fd, copy, O_CLOEXEC);
	CALL(dup3, fd, fd, 0);
	CALL(close, copy);
	CALL(close, fd);
	CALL(close, fd);
	NAMES("text");
	CALL(unlink, "text");
}

/* Names that a log has to encode, or that a parser may read wrongly. */
static void odd_names(struct self *me, int dirfd)
{
	static const char *const odd[] = {
		"with space",
		"new\nline",
		"tab\there",
		"double\"quote",
		"single'quote",
		"back\\slash",
		"\x01\x1b[31m\x7f",
		"\xff\xfe\x80",
		"gr\xc3\xbc\xc3\x9f",
		" ",
		"key=value type=SYSCALL",
		"(null)",
		"trailing ",
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		NAMES(odd[i]);
		CALL(close, CALL(open, odd[i], O_CREAT | O_WRONLY, 0600));
		NAMES(odd[i]);
		CALL(unlink, odd[i]);
		NAMES_AT(sub, odd[i]);
		CALL(close, CALL(openat, dirfd, odd[i], O_CREAT | O_WRONLY, 0600));
		NAMES_AT(sub, odd[i]);
		CALL(unlinkat, dirfd, odd[i], 0);
	}
	memset(long_name, 'L', 255);
	NAMES(long_name);
	CALL(close, CALL(open, long_name, O_CREAT | O_WRONLY, 0600));
	NAMES(long_name);
	CALL(unlink, long_name);
}

/* A file whose absolute path has 4095 bytes, the most that a path may have, made step by step. */
static void deep_names(struct self *me, const char *dir)
{
	size_t part, len = strlen(dir);

	memcpy(deep_path, dir, len + 1);
	while (len < PATH_BYTES - 1 - 10) {
		/* Leaves space for "/" and a file name of at least one byte at the end. */
		part = PATH_BYTES - 1 - len - 4;
		if (part > 200)
			part = 200;
		deep_path[len] = '/';
		memset(deep_path + len + 1, 'd', part);
		len += part + 1;
		deep_path[len] = 0;
		NAMES(deep_path + len - part);
		CALL(mkdir, deep_path + len - part, 0700);
		NAMES(deep_path + len - part);
		if (CALL(chdir, deep_path + len - part) == 0)
			memcpy(me->cwd, deep_path, len + 1);
	}
	memcpy(deep_file, deep_path, len);
	deep_file[len] = '/';
	memset(deep_file + len + 1, 'f', PATH_BYTES - 1 - len - 1);
	deep_file[PATH_BYTES - 1] = 0;
	NAMES(deep_file);
	CALL(close, CALL(open, deep_file, O_CREAT | O_WRONLY, 0600));
	NAMES(deep_file);
	CALL(chmod, deep_file, 0644);
	NAMES(deep_file + len + 1);
	CALL(unlink, deep_file + len + 1);
	while (len > strlen(dir)) {
		for (part = 0; deep_path[len - part - 1] != '/'; part++)
			;
		len -= part + 1;
		NAMES("..");
		if (CALL(chdir, "..") == 0) {
			memcpy(me->cwd, deep_path, len);
			me->cwd[len] = 0;
		}
		NAMES(deep_path + len + 1);
		CALL(rmdir, deep_path + len + 1);
		deep_path[len] = 0;
	}
}

static void deleted_directory(struct self *me, const char *dir)
{
	static const char deleted[] = " (deleted)";
	char gone[PATH_BYTES], buf[PATH_BYTES];

	join(gone, dir, "gone");
	NAMES(gone);
	CALL(mkdir, gone, 0700);
	enter(me, gone);
	NAMES(gone);
	memcpy(me->cwd + strlen(gone), deleted, sizeof(deleted));
	CALL(rmdir, gone);
	CALL(getcwd, buf, sizeof(buf));
	NAMES("below");
	CALL(open, "below", O_RDONLY);
	NAMES("below");
	CALL(open, "below", O_CREAT | O_WRONLY, 0600);
	NAMES("below");
	CALL(mkdir, "below", 0700);
	enter(me, dir);
}

void files(struct self *me, const char *dir)
{
	long dirfd;

	enter(me, dir);
	join(sub, dir, "sub");
	NAMES("sub");
	CALL(mkdir, "sub", 0755);
	NAMES(sub);
	dirfd = CALL(open, sub, O_RDONLY | O_DIRECTORY);
	CALL(umask, 022);
	open_family(me, dir, dirfd);
	open_failures(me, dirfd);
	refused(me);
	entries(me, dirfd);
	attributes(me, dirfd);
	looking(me, dir, dirfd);
	contents(me);
	odd_names(me, dirfd);
	deep_names(me, dir);
	deleted_directory(me, dir);
	NAMES_AT(sub, "how");
	CALL(unlinkat, dirfd, "how", 0);
	CALL(fchdir, dirfd);
	memcpy(me->cwd, sub, strlen(sub) + 1);
	NAMES("../new");
	CALL(unlink, "../new");
	enter(me, dir);
	NAMES("made");
	CALL(unlink, "made");
	NAMES("sub");
	CALL(rmdir, "sub");
	CALL(close, dirfd);
}
