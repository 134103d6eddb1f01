/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that another thread gives to another file while the call sleeps. A write to memory that is not there,
 * which userfaultfd holds up, keeps the lock of the file's inode, for which the call waits.
 */
#include "evade.h"
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGE 4096

static void prepare_files(void)
{
	make_dir("tree");
	write_file("tree/file", "text", 0600);
	expect("mkfifo", mkfifo("tree/fifo", 0600), 0);
	write_file("other", "text", 0600);
}

/* A page that is not there until somebody copies it; `fd` is told when it is missed. */
static char *missing_page(int *fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register region = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	region.range.start = (uintptr_t)page;
	region.range.len = PAGE;
	if (page == MAP_FAILED || *fd < 0 || ioctl(*fd, UFFDIO_API, &api) ||
	    ioctl(*fd, UFFDIO_REGISTER, &region))
		fail("userfaultfd: %s", strerror(errno));
	return page;
}

/* Once the pipe has a byte, the page is there. */
struct release {
	char *page;
	int fault, pipe;
};

static void put_page(void *argument)
{
	struct release *release = argument;
	struct uffdio_zeropage zero = { .range = { (uintptr_t)release->page, PAGE } };
	char byte;

	expect("read", read(release->pipe, &byte, 1), 1);
	if (ioctl(release->fault, UFFDIO_ZEROPAGE, &zero))
		fail("UFFDIO_ZEROPAGE: %s", strerror(errno));
}

/* Holds the lock of the file's inode until the pipe has a byte. */
static void hold_lock(void *pipe)
{
	struct release release = { .pipe = ((int *)pipe)[0] };
	struct thread thread;
	int file = open("tree/file", O_WRONLY);

	release.page = missing_page(&release.fault);
	thread_start(&thread, put_page, &release);
	expect("write", syscall(SYS_write, file, release.page, PAGE), PAGE);
	thread_join(&thread);
}

static int changed;

static void change_mode(void *unused)
{
	(void)unused;
	select_calls();
	expect("fchmod", syscall(SYS_fchmod, changed, 0640), 0);
}

/* In a process of its own, whose other thread may leave the table of descriptors, too. */
static void hand_over(void *leaves)
{
	int hold[2], other = open("other", O_RDONLY);
	struct thread thread;
	pid_t holder;

	expect("pipe", pipe(hold), 0);
	holder = start(hold_lock, hold);
	if (!await_blocked(holder, SYS_write))
		fail("write did not wait for its memory");
	changed = open("tree/file", O_RDONLY);
	thread_start(&thread, change_mode, NULL);
	if (!await_blocked(thread.id, SYS_fchmod))
		fail("fchmod did not wait for the inode");
	expect("dup2", dup2(other, changed), changed);
	/* A thread that has another table looks as if the first had one of its own. */
	if (leaves)
		expect("unshare", unshare(CLONE_FILES), 0);
	expect("write", write(hold[1], "", 1), 1);
	thread_join(&thread);
	await(holder);
}

static void descriptor_swapped(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(hand_over, NULL);
		made(1);
	}
}

static void descriptor_unshared(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(hand_over, "leaves");
		made(1);
	}
}

static char *name;
static int opened;

static void open_name(void *unused)
{
	(void)unused;
	select_calls();
	opened = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY);
}

/* The name is another one once the call sleeps, and the descriptor is another file's once it is there. */
static void open_swapped(int count)
{
	int other = open("other", O_RDONLY), swapped = 0;

	for (int i = 0; i < count; i++) {
		struct thread thread;
		int next = dup(other), fd;

		/* The number that the call will take, which is taken, but cannot be replaced, while it sleeps. */
		close(next);
		name = strcpy(malloc(PATH_MAX), "tree/fifo");
		thread_start(&thread, open_name, NULL);
		if (!await_blocked(thread.id, SYS_openat))
			fail("openat did not wait for the other end");
		strcpy(name, "other");
		fd = open("tree/fifo", O_WRONLY | O_NONBLOCK);
		while (dup2(other, next) < 0 && errno == EBUSY)
			;
		thread_join(&thread);
		/* await_blocked() may have had that number when the call took one. */
		swapped += opened == next;
		if (opened < 0)
			fail("openat: %s", strerror(errno));
		close(opened);
		close(next);
		close(fd);
		made(1);
	}
	if (swapped < count / 2)
		fail("%d of %d descriptors were swapped", swapped, count);
}

const struct technique handed_techniques[] = {
	{ "fchmod-descriptor-swapped", descriptor_swapped, 5, prepare_files },
	{ "fchmod-descriptor-unshared", descriptor_unshared, 5, prepare_files },
	{ "openat-descriptor-swapped", open_swapped, 50, prepare_files },
	{ 0 },
};
