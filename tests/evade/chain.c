/* SPDX-License-Identifier: Apache-2.0 */
/* execve that reaches the rule's file, DIR/NAME/file, as one of several: a script, an interpreter, a loader. */
#include "evade.h"
#include <elf.h>
#include <sys/mount.h>

/* An executable text that names an interpreter, with an argument that makes this program do nothing. */
static void write_script(const char *path, const char *interpreter, mode_t mode)
{
	char text[PATH_MAX + 16];

	snprintf(text, sizeof(text), "#!%s act\n", interpreter);
	write_file(path, text, mode);
}

/* A path in this technique's directory. */
static const char *in_home(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", home, name);
	return path;
}

static void run_many(const char *path, int count)
{
	for (int i = 0; i < count; i++) {
		run_program(path, 0);
		made(1);
	}
}

/* The file is a script between two others. */
static void prepare_middle(void)
{
	write_script("last", program(), 0755);
	write_script("file", in_home("last"), 0755);
	write_script("first", in_home("file"), 0755);
}

static void chain_middle(int count)
{
	run_many("./first", count);
}

static void prepare_script(void)
{
	write_script("file", program(), 0755);
}

static void execute_descriptor(void *fd)
{
	char *argv[] = { "evade", NULL }, *envp[] = { NULL };

	select_calls();
	syscall(SYS_execveat, (int)(intptr_t)fd, "", argv, envp, AT_EMPTY_PATH);
	fail("execveat: %s", strerror(errno));
}

static void chain_descriptor(int count)
{
	for (int i = 0; i < count; i++) {
		int fd = open("file", O_RDONLY);

		in_child(execute_descriptor, (void *)(intptr_t)fd);
		close(fd);
		made(1);
	}
}

static void chain_dev_fd(int count)
{
	need_dev_fd();
	for (int i = 0; i < count; i++) {
		int fd = open("file", O_RDONLY);
		char path[32];

		snprintf(path, sizeof(path), "/dev/fd/%d", fd);
		run_program(path, 0);
		close(fd);
		made(1);
	}
}

/* What leads to the script leads elsewhere as soon as the call is over. */
static void chain_link_swapped(int count)
{
	write_script("other", program(), 0755);
	for (int i = 0; i < count; i++) {
		expect("symlink", symlink("file", "link"), 0);
		expect("symlink", symlink("other", "new"), 0);
		run_program("./link", 0);
		expect("rename", rename("new", "link"), 0);
		made(1);
		unlink("link");
	}
}

static void chain_directory_swapped(int count)
{
	make_dir("other");
	write_script("other/script", program(), 0755);
	for (int i = 0; i < count; i++) {
		make_dir("dir");
		expect("link", link("file", "dir/script"), 0);
		run_program("dir/script", 0);
		expect("renameat2", syscall(SYS_renameat2, AT_FDCWD, "dir", AT_FDCWD, "other", 2),
		       0);
		made(1);
		expect("renameat2", syscall(SYS_renameat2, AT_FDCWD, "dir", AT_FDCWD, "other", 2),
		       0);
		unlink("dir/script");
	}
}

/* The kernel finds the file, and refuses to execute it. */
static void prepare_refused(void)
{
	write_script("file", program(), 0644);
	write_script("first", in_home("file"), 0755);
}

static void execute_refused(void *path)
{
	char *argv[] = { path, NULL }, *envp[] = { NULL };

	select_calls();
	expect("execve", execve(path, argv, envp), -1);
}

static void chain_refused(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(execute_refused, "./first");
		made(1);
	}
}

#define LOADER "/lib64/ld-linux-x86-64.so.2"

/* Makes `path` a program whose loader is `loader`, without changing its inode. */
static void write_image(const char *path, const char *loader)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	off_t end, at;
	int fd;

	copy_file("/bin/true", path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	end = lseek(fd, 0, SEEK_END);
	if (fd < 0 || pread(fd, &header, sizeof(header), 0) != sizeof(header))
		fail("reading %s: %s", path, strerror(errno));
	for (int i = 0; i < header.e_phnum; i++) {
		at = header.e_phoff + i * sizeof(segment);
		if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
			fail("reading %s: %s", path, strerror(errno));
		if (segment.p_type != PT_INTERP)
			continue;
		segment.p_offset = end;
		segment.p_filesz = strlen(loader) + 1;
		if (pwrite(fd, &segment, sizeof(segment), at) != sizeof(segment) ||
		    pwrite(fd, loader, segment.p_filesz, end) != (ssize_t)segment.p_filesz)
			fail("writing %s: %s", path, strerror(errno));
	}
	close(fd);
}

static void prepare_loader(void)
{
	copy_file(LOADER, "file");
}

static void chain_loader_removed(int count)
{
	for (int i = 0; i < count; i++) {
		write_image("image", in_home("file"));
		run_program("./image", 0);
		unlink("image");
		made(1);
	}
}

/* The program has had another loader before. */
static void chain_loader_rewritten(int count)
{
	write_image("image", LOADER);
	run_program("./image", 0);
	usleep(100000);
	write_image("image", in_home("file"));
	run_many("./image", count);
}

/* The kernel's handler of documents that begin so; only those of this technique do. */
#define FORMATS "/proc/sys/fs/binfmt_misc"
#define MAGIC "evade-document"

static void document(int count, const char *rule)
{
	int fd;

	if (mount("binfmt_misc", FORMATS, "binfmt_misc", 0, NULL) && errno != EBUSY)
		skip("no binfmt_misc: %s", strerror(errno));
	fd = open(FORMATS "/register", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, rule, strlen(rule)) < 0)
		skip("no binfmt_misc: %s", strerror(errno));
	close(fd);
	write_file("file", MAGIC, 0755);
	write_script("first", in_home("file"), 0755);
	for (int i = 0; i < count; i++) {
		run_program("./first", 0);
		made(1);
		run_program("./file", 0);
		made(1);
	}
	fd = open(FORMATS "/evade", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "-1", 2) != 2)
		fail("removing a format: %s", strerror(errno));
	close(fd);
	umount2(FORMATS, MNT_DETACH);
}

/* Its interpreter gets the name of the file; or, with flag O, a descriptor. */
static void chain_document(int count)
{
	char rule[PATH_MAX];

	snprintf(rule, sizeof(rule), ":evade:M::%s::/bin/true:", MAGIC);
	document(count, rule);
}

static void chain_document_kept(int count)
{
	char rule[PATH_MAX];

	snprintf(rule, sizeof(rule), ":evade:M::%s::/bin/true:O", MAGIC);
	document(count, rule);
}

static void prepare_document(void)
{
	write_file("file", MAGIC, 0755);
}

const struct technique chain_techniques[] = {
	{ "chain-middle", chain_middle, 5, prepare_middle },
	{ "chain-descriptor", chain_descriptor, 5, prepare_script },
	{ "chain-dev-fd", chain_dev_fd, 5, prepare_script },
	{ "chain-link-swapped", chain_link_swapped, 20, prepare_script },
	{ "chain-directory-swapped", chain_directory_swapped, 20, prepare_script },
	{ "chain-refused", chain_refused, 5, prepare_refused },
	{ "chain-loader-removed", chain_loader_removed, 5, prepare_loader },
	{ "chain-loader-rewritten", chain_loader_rewritten, 5, prepare_loader },
	{ "chain-document", chain_document, 5, prepare_document },
	{ "chain-document-kept", chain_document_kept, 5, prepare_document },
	{ 0 },
};
