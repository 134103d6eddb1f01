/* SPDX-License-Identifier: Apache-2.0 */
/* io_uring: operations that do what a call does that a rule names. */
#include "evade.h"
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ENTRIES 64

/* enum io_uring_socket_op; headers of distributions may lack it. */
#define COMMAND_GETSOCKOPT 2
#define COMMAND_SETSOCKOPT 3

static struct ring {
	int fd;
	unsigned flags;
	unsigned *sq_tail, *sq_mask, *sq_array, *sq_flags;
	unsigned *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	unsigned waiting;
} ring;

static void ring_open(unsigned flags)
{
	struct io_uring_params params = { .flags = flags, .sq_thread_idle = 1000 };
	void *rings;

	ring.fd = syscall(SYS_io_uring_setup, ENTRIES, &params);
	if (ring.fd < 0)
		skip("io_uring_setup: %s", strerror(errno));
	rings = mmap(
		NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe) + 4096,
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
	ring.sqes =
		mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
	if (rings == MAP_FAILED || ring.sqes == MAP_FAILED)
		fail("mmap of a ring: %s", strerror(errno));
	ring.flags = flags;
	ring.sq_tail = rings + params.sq_off.tail;
	ring.sq_mask = rings + params.sq_off.ring_mask;
	ring.sq_flags = rings + params.sq_off.flags;
	ring.sq_array = rings + params.sq_off.array;
	ring.cq_head = rings + params.cq_off.head;
	ring.cq_tail = rings + params.cq_off.tail;
	ring.cq_mask = rings + params.cq_off.ring_mask;
	ring.cqes = rings + params.cq_off.cqes;
}

/* The next entry; submit() hands it over. */
static struct io_uring_sqe *entry(int op, int fd, const void *address)
{
	unsigned tail = *ring.sq_tail + ring.waiting++, index = tail & *ring.sq_mask;
	struct io_uring_sqe *sqe = &ring.sqes[index];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op;
	sqe->fd = fd;
	sqe->addr = (uintptr_t)address;
	ring.sq_array[index] = index;
	return sqe;
}

/* Submits what is waiting, and waits for so many results. */
static void submit(unsigned results)
{
	unsigned flags = results ? IORING_ENTER_GETEVENTS : 0, waiting = ring.waiting;
	long done;

	ring.waiting = 0;
	__atomic_store_n(ring.sq_tail, *ring.sq_tail + waiting, __ATOMIC_RELEASE);
	if (ring.flags & IORING_SETUP_SQPOLL) {
		if (__atomic_load_n(ring.sq_flags, __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
			flags |= IORING_ENTER_SQ_WAKEUP;
		waiting = 0;
	}
	do
		done = syscall(SYS_io_uring_enter, ring.fd, waiting, results, flags, NULL, 0);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		fail("io_uring_enter: %s", strerror(errno));
}

/* Takes a result, which must not be an error. Where the kernel lacks the operation, the technique is skipped. */
static int take(const char *what)
{
	unsigned head = *ring.cq_head;
	int result;

	while (head == __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE))
		sched_yield();
	result = ring.cqes[head & *ring.cq_mask].res;
	__atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
	if (result == -EINVAL || result == -EOPNOTSUPP)
		skip("the kernel has no operation %s", what);
	if (result < 0)
		fail("%s: %s", what, strerror(-result));
	return result;
}

static void openat_entry(const char *path, unsigned flags)
{
	struct io_uring_sqe *sqe = entry(IORING_OP_OPENAT, AT_FDCWD, path);

	sqe->open_flags = O_WRONLY;
	sqe->flags = flags;
}

static void open_files(int count, unsigned setup, unsigned flags)
{
	select_calls();
	ring_open(setup);
	for (int i = 0; i < count; i++) {
		openat_entry("tree/file", flags);
		submit(1);
		close(take("openat"));
		made(1);
	}
}

static void prepare_tree(void)
{
	make_dir("tree");
	write_file("tree/file", "text", 0600);
}

static void ring_openat(int count)
{
	open_files(count, 0, 0);
}

static void ring_worker(int count)
{
	open_files(count, 0, IOSQE_ASYNC);
}

static void ring_sqpoll(int count)
{
	open_files(count, IORING_SETUP_SQPOLL, 0);
}

/* The file gets a slot of the ring instead of a descriptor. */
static void ring_slot(int count)
{
	int none[4] = { -1, -1, -1, -1 };

	ring_open(0);
	if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, none, 4))
		fail("IORING_REGISTER_FILES: %s", strerror(errno));
	select_calls();
	for (int i = 0; i < count; i++) {
		openat_entry("tree/file", 0);
		ring.sqes[(*ring.sq_tail + ring.waiting - 1) & *ring.sq_mask].file_index =
			1 + i % 4;
		submit(1);
		take("openat with a slot");
		made(1);
	}
}

static void ring_openat2(int count)
{
	struct open_how how = { .flags = O_WRONLY };

	ring_open(0);
	select_calls();
	for (int i = 0; i < count; i++) {
		struct io_uring_sqe *sqe = entry(IORING_OP_OPENAT2, AT_FDCWD, "tree/file");

		sqe->len = sizeof(how);
		sqe->off = (uintptr_t)&how;
		submit(1);
		close(take("openat2"));
		made(1);
	}
}

/* Another thread turns the flags of a waiting request, which the kernel has read by then. */
static void ring_openat2_flags(int count)
{
	struct open_how how;

	ring_open(0);
	select_calls();
	for (int i = 0; i < count; i++) {
		struct io_uring_sqe *sqe = entry(IORING_OP_OPENAT2, AT_FDCWD, "tree/file");

		how = (struct open_how){ .flags = O_WRONLY };
		sqe->len = sizeof(how);
		sqe->off = (uintptr_t)&how;
		sqe->flags = IOSQE_ASYNC;
		submit(0);
		how.flags = O_RDONLY;
		submit(1);
		close(take("openat2"));
		made(1);
	}
}

static void unlinkat_entry(const char *path, unsigned flags)
{
	entry(IORING_OP_UNLINKAT, AT_FDCWD, path)->flags = flags;
}

static void unlink_files(int count, unsigned flags)
{
	ring_open(0);
	for (int i = 0; i < count; i++) {
		write_file("tree/new", "", 0600);
		select_calls();
		unlinkat_entry("tree/new", flags);
		submit(1);
		take("unlinkat");
		unselect_calls();
		made(1);
	}
}

static void ring_unlinkat(int count)
{
	unlink_files(count, 0);
}

static void ring_unlinkat_worker(int count)
{
	unlink_files(count, IOSQE_ASYNC);
}

static void ring_renameat(int count)
{
	ring_open(0);
	for (int i = 0; i < count; i++) {
		struct io_uring_sqe *sqe;

		write_file("tree/new", "", 0600);
		select_calls();
		sqe = entry(IORING_OP_RENAMEAT, AT_FDCWD, "tree/new");
		sqe->len = AT_FDCWD;
		sqe->addr2 = (uintptr_t) "moved";
		submit(1);
		take("renameat");
		unselect_calls();
		made(1);
	}
}

/* mkdirat, openat and unlinkat in one submission, each begun when the one before is done. */
static void ring_linked(int count)
{
	ring_open(0);
	select_calls();
	for (int i = 0; i < count; i++) {
		struct io_uring_sqe *sqe = entry(IORING_OP_MKDIRAT, AT_FDCWD, "tree/dir");

		sqe->len = 0755;
		sqe->flags = IOSQE_IO_LINK;
		sqe = entry(IORING_OP_OPENAT, AT_FDCWD, "tree/dir/file");
		sqe->open_flags = O_WRONLY | O_CREAT;
		sqe->len = 0600;
		sqe->flags = IOSQE_IO_LINK;
		unlinkat_entry("tree/dir/file", 0);
		submit(3);
		take("mkdirat");
		close(take("openat"));
		take("unlinkat");
		made(3);
		expect("rmdir", rmdir("tree/dir"), 0);
	}
}

/* linux/io_uring.h; headers of distributions may lack it. */
#define OPERATION_BIND 56

/* The rule is on the directory in which the socket is. */
static void ring_bind(int count)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "tree/socket" };

	ring_open(0);
	for (int i = 0; i < count; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		select_calls();
		entry(OPERATION_BIND, fd, &address)->off = sizeof(address);
		submit(1);
		take("bind");
		made(1);
		unselect_calls();
		close(fd);
		expect("unlink", unlink("tree/socket"), 0);
	}
}

static void ring_send(int count)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "tree/socket" };
	struct iovec text = { "x", 1 };
	struct msghdr message = { &address, sizeof(address), &text, 1 };
	int receiver = socket(AF_UNIX, SOCK_DGRAM, 0), fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	expect("bind", bind(receiver, (struct sockaddr *)&address, sizeof(address)), 0);
	ring_open(0);
	select_calls();
	for (int i = 0; i < count; i++) {
		entry(IORING_OP_SENDMSG, fd, &message)->len = 1;
		submit(1);
		take("sendmsg");
		made(1);
	}
}

static void ring_connect(int count)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	expect("bind", bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	expect("listen", listen(listener, 64), 0);
	ring_open(0);
	select_calls();
	for (int i = 0; i < count; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		entry(IORING_OP_CONNECT, fd, &address)->off = sizeof(address);
		submit(1);
		take("connect");
		close(fd);
		made(1);
	}
}

/* No completion is posted for a success. */
static void ring_silent(int count)
{
	ring_open(0);
	for (int i = 0; i < count; i++) {
		write_file("tree/new", "", 0600);
		select_calls();
		unlinkat_entry("tree/new", IOSQE_CQE_SKIP_SUCCESS);
		submit(0);
		unselect_calls();
		while (exists("tree/new"))
			sched_yield();
		made(1);
	}
}

/* The rights are those of a personality; the thread that submits is not in the group. */
static void ring_personality(int count)
{
	long personality;

	ring_open(0);
	select_calls();
	personality = syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_PERSONALITY, NULL, 0);
	unselect_calls();
	if (personality < 0)
		fail("IORING_REGISTER_PERSONALITY: %s", strerror(errno));
	for (int i = 0; i < count; i++) {
		openat_entry("tree/file", 0);
		ring.sqes[(*ring.sq_tail + ring.waiting - 1) & *ring.sq_mask].personality =
			personality;
		submit(1);
		close(take("openat"));
		made(1);
	}
}

static void submit_and_end(void *unused)
{
	(void)unused;
	select_calls();
	ring_open(0);
	for (int i = 0; i < 8; i++) {
		static char paths[8][16];

		snprintf(paths[i], sizeof(paths[i]), "tree/new%d", i);
		unlinkat_entry(paths[i], IOSQE_ASYNC);
	}
	submit(0);
}

/* The process ends while workers do its operations; some of them are cancelled. */
static void ring_left(int count)
{
	char path[16];

	for (int i = 0; i < count; i++) {
		for (int j = 0; j < 8; j++) {
			snprintf(path, sizeof(path), "tree/new%d", j);
			write_file(path, "", 0600);
		}
		in_child(submit_and_end, NULL);
		for (int j = 0; j < 8; j++) {
			snprintf(path, sizeof(path), "tree/new%d", j);
			if (!exists(path))
				made(1);
		}
	}
}

/* Results are posted only when this task fetches them. */
#define WHEN_FETCHED (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

/* Gives the link a new text at once. */
static void swap_link(const char *text)
{
	expect("symlink", symlink(text, "new-link"), 0);
	expect("rename", rename("new-link", "link"), 0);
}

static void prepare_link(void)
{
	prepare_tree();
	make_dir("other");
}

static void await_gone(const char *path)
{
	while (exists(path))
		sched_yield();
}

/* The operation is done, but its result is fetched when its name leads elsewhere. */
static void ring_link_swapped(int count)
{
	ring_open(WHEN_FETCHED);
	for (int i = 0; i < count; i++) {
		write_file("tree/new", "", 0600);
		swap_link("tree");
		select_calls();
		unlinkat_entry("link/new", 0);
		submit(0);
		unselect_calls();
		await_gone("tree/new");
		swap_link("other");
		submit(1);
		take("unlinkat");
		made(1);
	}
}

/* The name leads elsewhere when it is submitted, and when the result is fetched; not when it is used. */
static void ring_link_later(int count)
{
	char byte;
	int ends[2];

	expect("pipe", pipe(ends), 0);
	ring_open(WHEN_FETCHED);
	for (int i = 0; i < count; i++) {
		struct io_uring_sqe *sqe;

		write_file("tree/new", "", 0600);
		swap_link("other");
		select_calls();
		sqe = entry(IORING_OP_READ, ends[0], &byte);
		sqe->len = 1;
		sqe->off = -1;
		sqe->flags = IOSQE_IO_LINK | IOSQE_ASYNC;
		unlinkat_entry("link/new", 0);
		submit(0);
		unselect_calls();
		swap_link("tree");
		expect("write", write(ends[1], "x", 1), 1);
		/* The operation is begun when the task asks for results. */
		while (exists("tree/new"))
			syscall(SYS_io_uring_enter, ring.fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
		swap_link("other");
		submit(2);
		take("read");
		take("unlinkat");
		made(1);
	}
}

static void prepare_hard_link(void)
{
	prepare_tree();
	write_file("other", "text", 0600);
	expect("link", link("tree/file", "hard"), 0);
}

/* Of one submission, the last operation gives the first one's descriptor to another file. */
static void ring_batch(int count)
{
	struct open_how how = { .flags = O_WRONLY };
	int fd = dup(0);

	close(fd);
	ring_open(0);
	/* The ring has taken that one. */
	fd = dup(0);
	close(fd);
	select_calls();
	for (int i = 0; i < count; i++) {
		struct io_uring_sqe *sqe;

		openat_entry("hard", 0);
		entry(IORING_OP_CLOSE, fd, NULL);
		/* Not the call of the rule. */
		sqe = entry(IORING_OP_OPENAT2, AT_FDCWD, "other");
		sqe->len = sizeof(how);
		sqe->off = (uintptr_t)&how;
		submit(3);
		expect("descriptor", take("openat"), fd);
		take("close");
		expect("descriptor", take("openat2"), fd);
		close(fd);
		made(1);
	}
}

/* The result is the number of a slot, which as a descriptor stands for another file. */
static void ring_slot_hard(int count)
{
	int none[1] = { -1 };

	ring_open(0);
	if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, none, 1))
		fail("IORING_REGISTER_FILES: %s", strerror(errno));
	select_calls();
	for (int i = 0; i < count; i++) {
		openat_entry("hard", 0);
		ring.sqes[(*ring.sq_tail + ring.waiting - 1) & *ring.sq_mask].file_index = 1;
		submit(1);
		take("openat with a slot");
		made(1);
	}
}

/* level and optname, optlen and optval are where other operations have these members. */
static void socket_command(int count, unsigned command, const char *what)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), value = 1;

	ring_open(0);
	select_calls();
	for (int i = 0; i < count; i++) {
		struct io_uring_sqe *sqe = entry(IORING_OP_URING_CMD, fd, NULL);

		sqe->off = command;
		sqe->addr = (uint64_t)SO_PASSCRED << 32 | SOL_SOCKET;
		sqe->file_index = sizeof(value);
		sqe->addr3 = (uintptr_t)&value;
		submit(1);
		take(what);
		made(1);
	}
}

static void ring_setsockopt(int count)
{
	socket_command(count, COMMAND_SETSOCKOPT, "setsockopt");
}

static void ring_getsockopt(int count)
{
	socket_command(count, COMMAND_GETSOCKOPT, "getsockopt");
}

/* Nobody fetches the results while the rules are armed for as long as an event may wait. */
static void ring_withheld(int count)
{
	char path[32];

	ring_open(WHEN_FETCHED);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "tree/new%d", i);
		write_file(path, "", 0600);
		select_calls();
		unlinkat_entry(path, 0);
		submit(0);
		unselect_calls();
		await_gone(path);
		made(1);
	}
	sleep(2);
}

static void prepare_script(void)
{
	char text[sizeof(top) + 32];

	snprintf(text, sizeof(text), "#!%s act\n", program());
	write_file("file", text, 0755);
}

/* An execve cancels what a ring of the task is doing, for which the task does the work that it has put off. */
static void execute_with_ring(void *unused)
{
	int ends[2];

	(void)unused;
	expect("pipe", pipe(ends), 0);
	ring_open(0);
	entry(IORING_OP_POLL_ADD, ends[0], NULL)->poll32_events = POLLIN;
	submit(0);
	select_calls();
	execute("./file", 0);
}

static void ring_script(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(execute_with_ring, NULL);
		made(1);
	}
}

const struct technique ring_techniques[] = {
	{ "ring-openat", ring_openat, 5, prepare_tree },
	{ "ring-worker", ring_worker, 5, prepare_tree },
	{ "ring-sqpoll", ring_sqpoll, 5, prepare_tree },
	{ "ring-slot", ring_slot, 5, prepare_tree },
	{ "ring-slot-path", ring_slot, 5, prepare_tree },
	{ "ring-openat2", ring_openat2, 5, prepare_tree },
	{ "ring-openat2-flags", ring_openat2_flags, 5, prepare_tree },
	{ "ring-unlinkat", ring_unlinkat, 5, prepare_tree },
	{ "ring-unlinkat-worker", ring_unlinkat_worker, 5, prepare_tree },
	{ "ring-renameat", ring_renameat, 5, prepare_tree },
	{ "ring-linked", ring_linked, 5, prepare_tree },
	{ "ring-connect", ring_connect, 5 },
	{ "ring-connect-path", ring_connect, 5 },
	{ "ring-bind-dir", ring_bind, 5, prepare_tree },
	{ "ring-send-dir", ring_send, 5, prepare_tree },
	{ "ring-silent", ring_silent, 5, prepare_tree },
	{ "ring-personality", ring_personality, 5, prepare_tree },
	{ "ring-left", ring_left, 5, prepare_tree },
	{ "ring-withheld", ring_withheld, 5, prepare_tree },
	{ "ring-link-swapped", ring_link_swapped, 5, prepare_link },
	{ "ring-link-later", ring_link_later, 5, prepare_link },
	{ "ring-batch", ring_batch, 5, prepare_hard_link },
	{ "ring-slot-hard", ring_slot_hard, 5, prepare_hard_link },
	{ "ring-setsockopt", ring_setsockopt, 5 },
	{ "ring-getsockopt", ring_getsockopt, 5 },
	{ "ring-script", ring_script, 5, prepare_script },
	{ 0 },
};
