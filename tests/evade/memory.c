/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments in memory that another thread changes or takes away while the call sleeps. What the call waits for
 * is under control of the technique, so that nothing is left to chance: a FIFO without its other end, a lease
 * on a file, a socket whose queue is full.
 */
#include "evade.h"
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* The argument under attack. */
static char *page;

static void new_page(void)
{
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		fail("a page: %s", strerror(errno));
}

static void unmap_page(void)
{
	munmap(page, 4096);
}

static void protect_page(void)
{
	mprotect(page, 4096, PROT_NONE);
}

/* Puts a name beside the tree into the page. */
static void name_another(void)
{
	strcpy(page, "other");
}

static void no_cleanup(void)
{
}

static void drop_page(void)
{
	munmap(page, 4096);
}

static void prepare_tree(void)
{
	make_dir("tree");
	write_file("tree/file", "text", 0600);
	expect("mkfifo", mkfifo("tree/fifo", 0600), 0);
	write_file("other", "text", 0600);
}

static void truncate_page(void *unused)
{
	(void)unused;
	select_calls();
	expect("truncate", syscall(SYS_truncate, page, 0), 0);
}

/* truncate(2) waits until the lease of its file is given up. */
static void truncate_while(int count, void (*attack)(void), void (*cleanup)(void))
{
	signal(SIGIO, SIG_IGN);
	for (int i = 0; i < count; i++) {
		int fd = open("tree/file", O_RDONLY);
		struct thread thread;

		if (fcntl(fd, F_SETLEASE, F_RDLCK))
			fail("a lease: %s", strerror(errno));
		new_page();
		strcpy(page, "tree/file");
		thread_start(&thread, truncate_page, NULL);
		if (!await_blocked(thread.id, SYS_truncate))
			fail("truncate did not wait for the lease");
		attack();
		expect("fcntl", fcntl(fd, F_SETLEASE, F_UNLCK), 0);
		thread_join(&thread);
		cleanup();
		close(fd);
		made(1);
	}
}

static void truncate_unmapped(int count)
{
	truncate_while(count, unmap_page, no_cleanup);
}

static void truncate_protected(int count)
{
	truncate_while(count, protect_page, drop_page);
}

static void truncate_renamed(int count)
{
	truncate_while(count, name_another, drop_page);
}

static int opened;

static void openat_page(void *unused)
{
	(void)unused;
	select_calls();
	opened = syscall(SYS_openat, AT_FDCWD, page, O_RDONLY);
}

/* Opening a FIFO waits for its other end. */
static void openat_while(int count, void (*attack)(void), void (*cleanup)(void))
{
	for (int i = 0; i < count; i++) {
		struct thread thread;
		int fd;

		new_page();
		strcpy(page, "tree/fifo");
		thread_start(&thread, openat_page, NULL);
		if (!await_blocked(thread.id, SYS_openat))
			fail("openat did not wait for the other end");
		attack();
		fd = open("tree/fifo", O_WRONLY | O_NONBLOCK);
		thread_join(&thread);
		cleanup();
		if (opened < 0 || fd < 0)
			fail("opening a FIFO: %s", strerror(errno));
		close(opened);
		close(fd);
		made(1);
	}
}

static void openat_unmapped(int count)
{
	openat_while(count, unmap_page, no_cleanup);
}

static void openat_renamed(int count)
{
	openat_while(count, name_another, drop_page);
}

static void openat2_page(void *unused)
{
	(void)unused;
	select_calls();
	opened = syscall(SYS_openat2, AT_FDCWD, "tree/fifo", page, sizeof(struct open_how));
}

static void read_only(void)
{
	((struct open_how *)page)->flags = O_RDONLY;
}

/* An open for writing, which is what the rule selects. */
static void openat2_while(int count, void (*attack)(void), void (*cleanup)(void))
{
	for (int i = 0; i < count; i++) {
		struct thread thread;
		int fd;

		new_page();
		((struct open_how *)page)->flags = O_WRONLY;
		thread_start(&thread, openat2_page, NULL);
		if (!await_blocked(thread.id, SYS_openat2))
			fail("openat2 did not wait for the other end");
		attack();
		fd = open("tree/fifo", O_RDONLY | O_NONBLOCK);
		thread_join(&thread);
		cleanup();
		if (opened < 0 || fd < 0)
			fail("opening a FIFO: %s", strerror(errno));
		close(opened);
		close(fd);
		made(1);
	}
}

static void openat2_flags(int count)
{
	openat2_while(count, read_only, drop_page);
}

static void openat2_unmapped(int count)
{
	openat2_while(count, unmap_page, no_cleanup);
}

static int client;

static void connect_page(void *unused)
{
	(void)unused;
	select_calls();
	expect("connect", syscall(SYS_connect, client, page, sizeof(struct sockaddr_un)), 0);
}

static void no_family(void)
{
	((struct sockaddr *)page)->sa_family = AF_INET6;
}

static int unix_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (fd < 0)
		fail("a socket: %s", strerror(errno));
	return fd;
}

/* connect(2) waits while the queue of the listener, of one connection, is full. */
static void connect_while(int count, void (*attack)(void), void (*cleanup)(void))
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };

	for (int i = 0; i < count; i++) {
		int listener = unix_socket(), first = unix_socket(), accepted;
		struct thread thread;

		unlink("socket");
		client = unix_socket();
		expect("bind", bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
		expect("listen", listen(listener, 0), 0);
		expect("connect", connect(first, (struct sockaddr *)&address, sizeof(address)), 0);
		new_page();
		memcpy(page, &address, sizeof(address));
		thread_start(&thread, connect_page, NULL);
		if (!await_blocked(thread.id, SYS_connect))
			fail("connect did not wait for room in the queue");
		attack();
		accepted = accept(listener, NULL, NULL);
		thread_join(&thread);
		cleanup();
		close(accepted);
		close(listener);
		close(first);
		close(client);
		made(1);
	}
}

static void connect_family(int count)
{
	connect_while(count, no_family, drop_page);
}

static void connect_unmapped(int count)
{
	connect_while(count, unmap_page, no_cleanup);
}

/* Longer than the second after which the daemon looks, and the time that it takes to make its rules anew. */
#define RENEWAL_S 4

/* The program of another rule appears or goes, so that the rules are made anew while the call sleeps. */
static void unmap_and_change_rules(void)
{
	unmap_page();
	if (unlink("prog"))
		copy_program("prog");
	sleep(RENEWAL_S);
}

static void connect_beside_changes(int count)
{
	connect_while(count, unmap_and_change_rules, no_cleanup);
}

static void open_and_wait(void *unused)
{
	(void)unused;
	select_calls();
	syscall(SYS_openat, AT_FDCWD, "tree/fifo", O_RDONLY);
}

/* Killed while the call sleeps: the attempt is a call that was made. */
static void killed_in_call(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = start(open_and_wait, NULL);

		if (!await_blocked(pid, SYS_openat))
			fail("openat did not wait for the other end");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		made(1);
	}
}

static void exit_while_thread_opens(void *unused)
{
	struct thread thread;

	(void)unused;
	thread_start(&thread, open_and_wait, NULL);
	if (!await_blocked(thread.id, SYS_openat))
		fail("openat did not wait for the other end");
	_exit(0);
}

static void exit_in_call(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(exit_while_thread_opens, NULL);
		made(1);
	}
}

static void exec_while_thread_opens(void *unused)
{
	struct thread thread;

	(void)unused;
	thread_start(&thread, open_and_wait, NULL);
	if (!await_blocked(thread.id, SYS_openat))
		fail("openat did not wait for the other end");
	execute(program(), 0);
}

static void exec_in_call(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(exec_while_thread_opens, NULL);
		made(1);
	}
}

const struct technique memory_techniques[] = {
	{ "truncate-unmapped", truncate_unmapped, 10, prepare_tree },
	{ "truncate-protected", truncate_protected, 10, prepare_tree },
	{ "truncate-renamed", truncate_renamed, 10, prepare_tree },
	{ "path-truncate-unmapped", truncate_unmapped, 10, prepare_tree },
	{ "openat-unmapped", openat_unmapped, 10, prepare_tree },
	{ "openat-renamed", openat_renamed, 10, prepare_tree },
	{ "openat2-flags", openat2_flags, 10, prepare_tree },
	{ "openat2-unmapped", openat2_unmapped, 10, prepare_tree },
	{ "connect-family", connect_family, 10 },
	{ "connect-unmapped", connect_unmapped, 10 },
	{ "connect-beside-changes", connect_beside_changes, 2 },
	{ "killed-in-call", killed_in_call, 3, prepare_tree },
	{ "exit-in-call", exit_in_call, 3, prepare_tree },
	{ "exec-in-call", exec_in_call, 3, prepare_tree },
	{ 0 },
};
