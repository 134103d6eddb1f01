/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of a call. The kernel dispatches 64-bit entries on the low 32 bits of rax, int 0x80 on eax; bit 30
 * of a 64-bit entry is x32.
 */
#include "evade.h"
#include <sys/mman.h>
#include <sys/wait.h>

#define BIT_32 (1ul << 32)
#define BITS_32_TO_63 (0xfffffffful << 32)
#define X32 0x40000000ul
/* Numbers of 32-bit calls, and of execve in the x32 table. */
#define I386_FORK 2
#define I386_EXECVE 11
#define I386_UNLINK 10
#define I386_GETPID 20
#define I386_MKDIR 39
#define I386_SOCKETCALL 102
#define X32_EXECVE 520

static long int80(unsigned long nr, long a, long b, long c)
{
	long result;

	asm volatile("int $0x80"
		     : "=a"(result)
		     : "a"(nr), "b"(a), "c"(b), "d"(c)
		     : "r8", "r9", "r10", "r11", "memory");
	return result;
}

static void try_int80(void *unused)
{
	(void)unused;
	/* Without 32-bit entry the instruction is a fault. */
	if (int80(I386_GETPID, 0, 0, 0) != getpid())
		_exit(2);
}

static void need_int80(void)
{
	int status;
	pid_t pid = start(try_int80, NULL);

	if (waitpid(pid, &status, 0) != pid || status)
		skip("no 32-bit entry here");
}

static void need_x32(void)
{
	if (raw(X32 | SYS_getpid, 0, 0, 0) != getpid())
		skip("the kernel has no x32");
}

/* Memory that 32-bit pointers reach. */
static char *low_page(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (page == MAP_FAILED)
		fail("memory below 4 GiB: %s", strerror(errno));
	return page;
}

/* Makes `count` mkdir calls of a directory that is there, with these bits in the number. */
static void mkdir_with(unsigned long bits, int count)
{
	select_calls();
	for (int i = 0; i < count; i++) {
		expect("mkdir", raw(bits | SYS_mkdir, (long)"/", 0755, 0), -EEXIST);
		made(1);
	}
}

static void high_bit_mkdir(int count)
{
	mkdir_with(BIT_32, count);
}

static void high_bits_mkdir(int count)
{
	mkdir_with(BITS_32_TO_63, count);
}

static void x32_mkdir(int count)
{
	need_x32();
	mkdir_with(X32, count);
}

/* x32 with high bits as well. */
static void x32_high_bits_mkdir(int count)
{
	need_x32();
	mkdir_with(BIT_32 | X32, count);
}

static void high_bits_openat(int count)
{
	select_calls();
	for (int i = 0; i < count; i++) {
		expect("openat", raw(BIT_32 | SYS_openat, AT_FDCWD, (long)"none", O_RDONLY),
		       -ENOENT);
		made(1);
	}
}

/* A rule on a directory needs what the call touched. */
static void high_bits_unlinkat(int count)
{
	for (int i = 0; i < count; i++) {
		write_file("file", "", 0600);
		select_calls();
		expect("unlinkat", raw(BIT_32 | SYS_unlinkat, AT_FDCWD, (long)"file", 0), 0);
		unselect_calls();
		made(1);
	}
}

static void execute_raw(void *nr)
{
	char *argv[] = { "evade", "act", "0", NULL }, *envp[] = { NULL };

	select_calls();
	fail("execve: %ld", raw((unsigned long)nr, (long)program(), (long)argv, (long)envp));
}

static void high_bits_execve(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(execute_raw, (void *)(BIT_32 | SYS_execve));
		made(1);
	}
}

static void exit_raw(void *unused)
{
	(void)unused;
	select_calls();
	raw(BIT_32 | SYS_exit_group, 0, 0, 0);
}

static void high_bits_exit_group(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(exit_raw, NULL);
		made(1);
	}
}

static void high_bits_fork(int count)
{
	for (int i = 0; i < count; i++) {
		long pid;

		select_calls();
		pid = raw(BIT_32 | SYS_fork, 0, 0, 0);
		if (pid == 0)
			_exit(0);
		unselect_calls();
		made(1);
		await(pid);
	}
}

static void int80_mkdir_with(unsigned long bits, int count)
{
	char *path = low_page();

	need_int80();
	strcpy(path, "/");
	select_calls();
	for (int i = 0; i < count; i++) {
		expect("mkdir", int80(bits | I386_MKDIR, (long)path, 0755, 0), -EEXIST);
		made(1);
	}
}

static void int80_mkdir(int count)
{
	int80_mkdir_with(0, count);
}

static void int80_high_bits(int count)
{
	int80_mkdir_with(BITS_32_TO_63, count);
}

static void int80_unlink(int count)
{
	char *path = low_page();

	need_int80();
	strcpy(path, "file");
	for (int i = 0; i < count; i++) {
		write_file(path, "", 0600);
		select_calls();
		expect("unlink", int80(I386_UNLINK, (long)path, 0, 0), 0);
		unselect_calls();
		made(1);
	}
}

static void execute_int80(void *page)
{
	/* The path, then argument pointers of 32 bits. */
	uint32_t *argv = page + 2048;

	strcpy(page, program());
	strcpy(page + 1024, "act");
	strcpy(page + 1028, "0");
	argv[0] = (uint32_t)(uintptr_t)page;
	argv[1] = (uint32_t)(uintptr_t)(page + 1024);
	argv[2] = (uint32_t)(uintptr_t)(page + 1028);
	argv[3] = 0;
	select_calls();
	fail("execve: %ld", int80(I386_EXECVE, (long)page, (long)argv, (long)&argv[3]));
}

static void int80_execve(int count)
{
	char *page = low_page();

	need_int80();
	for (int i = 0; i < count; i++) {
		in_child(execute_int80, page);
		made(1);
	}
}

static void int80_fork(int count)
{
	need_int80();
	for (int i = 0; i < count; i++) {
		long pid;

		select_calls();
		pid = int80(I386_FORK, 0, 0, 0);
		if (pid == 0)
			_exit(0);
		unselect_calls();
		made(1);
		await(pid);
	}
}

/* The 32-bit way to connect(2): socketcall(SYS_CONNECT, [fd, address, length]). */
static void int80_socketcall(int count)
{
	uint32_t *words = (uint32_t *)low_page();
	char *address = (char *)(words + 8);

	need_int80();
	words[0] = (uint32_t)-1;
	words[1] = (uint32_t)(uintptr_t)address;
	words[2] = 16;
	select_calls();
	for (int i = 0; i < count; i++) {
		expect("connect", int80(I386_SOCKETCALL, 3, (long)words, 0), -EBADF);
		made(1);
	}
}

static void x32_execve(int count)
{
	need_x32();
	for (int i = 0; i < count; i++) {
		/* Its argument pointers have 32 bits. */
		char *page = low_page();
		uint32_t *argv = (uint32_t *)(page + 2048);
		pid_t pid;

		strcpy(page, program());
		strcpy(page + 1024, "act");
		argv[0] = argv[1] = (uint32_t)(uintptr_t)(page + 1024);
		argv[2] = 0;
		pid = fork();
		if (pid == 0) {
			select_calls();
			raw(X32 | X32_EXECVE, (long)page, (long)argv, (long)&argv[2]);
			_exit(3);
		}
		made(1);
		/* Two arguments are too few for the program: it ends with its usage. */
		if (waitpid(pid, &(int){ 0 }, 0) != pid)
			fail("waitpid: %s", strerror(errno));
	}
}

static void x32_unlinkat(int count)
{
	need_x32();
	for (int i = 0; i < count; i++) {
		write_file("file", "", 0600);
		select_calls();
		expect("unlinkat", raw(X32 | SYS_unlinkat, AT_FDCWD, (long)"file", 0), 0);
		unselect_calls();
		made(1);
	}
}

const struct technique number_techniques[] = {
	{ "high-bit-mkdir", high_bit_mkdir, 20 },
	{ "high-bits-mkdir", high_bits_mkdir, 20 },
	{ "high-bits-openat", high_bits_openat, 20 },
	{ "high-bits-unlinkat", high_bits_unlinkat, 20 },
	{ "high-bits-execve", high_bits_execve, 5 },
	{ "high-bits-exit-group", high_bits_exit_group, 5 },
	{ "high-bits-fork", high_bits_fork, 5 },
	{ "x32-mkdir", x32_mkdir, 20 },
	{ "x32-high-bits-mkdir", x32_high_bits_mkdir, 20 },
	{ "x32-execve", x32_execve, 5 },
	{ "x32-unlinkat", x32_unlinkat, 20 },
	{ "int80-mkdir", int80_mkdir, 20 },
	{ "int80-high-bits", int80_high_bits, 20 },
	{ "int80-unlink", int80_unlink, 20 },
	{ "int80-execve", int80_execve, 5 },
	{ "int80-fork", int80_fork, 5 },
	{ "int80-socketcall", int80_socketcall, 20 },
	{ 0 },
};
