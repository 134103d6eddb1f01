/* SPDX-License-Identifier: Apache-2.0 */
/* execve: long argument lists, unusual callers, unusual files. */
#include "evade.h"
#include <elf.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The longest argument that the kernel takes has 32 pages, its NUL included. */
#define ARGUMENT_BYTES_MAX (32 * 4096)

struct arguments {
	size_t bytes;
	/* Length of each, with its NUL. */
	size_t each;
	rlim_t stack;
};

static void execute_arguments(void *argument)
{
	struct arguments *arguments = argument;
	size_t count = arguments->bytes / arguments->each;
	struct rlimit limit = { arguments->stack, arguments->stack };
	char **argv = calloc(count + 4, sizeof(*argv)), *envp[] = { NULL };
	char *text = malloc(arguments->each);

	if (!argv || !text)
		fail("memory");
	if (arguments->stack && setrlimit(RLIMIT_STACK, &limit))
		fail("setrlimit: %s", strerror(errno));
	memset(text, 'x', arguments->each);
	text[arguments->each - 1] = 0;
	argv[0] = "evade";
	argv[1] = "act";
	argv[2] = "0";
	for (size_t i = 0; i < count; i++)
		argv[3 + i] = text;
	select_calls();
	execve(program(), argv, envp);
	fail("execve with %zu arguments: %s", count, strerror(errno));
}

static void with_arguments(int count, struct arguments arguments)
{
	for (int i = 0; i < count; i++) {
		in_child(execute_arguments, &arguments);
		made(1);
	}
}

static void exec_5mb(int count)
{
	with_arguments(count, (struct arguments){ 5 << 20, ARGUMENT_BYTES_MAX, 64 << 20 });
}

/* A quarter of the default stack limit, 8 MiB, holds arguments and their pointers. */
static void exec_default_limit(int count)
{
	with_arguments(count, (struct arguments){ (2 << 20) - 16384, ARGUMENT_BYTES_MAX, 8 << 20 });
}

static void exec_many_arguments(int count)
{
	with_arguments(count, (struct arguments){ 300000, 3, 8 << 20 });
}

struct flipped {
	char *text;
	_Atomic bool is_done;
};

/* Shared with the child that executes: other memory does not survive fork(). */
static struct flipped *flipped;

static void flip_argument(void *unused)
{
	(void)unused;
	while (!flipped->is_done)
		memset(flipped->text, flipped->text[0] == 'x' ? 'y' : 'x', ARGUMENT_BYTES_MAX - 1);
}

static void execute_flipped(void *unused)
{
	char *argv[] = { "evade", "act", "0", flipped->text, flipped->text, NULL };
	char *envp[] = { NULL };

	(void)unused;
	select_calls();
	execve(program(), argv, envp);
	fail("execve: %s", strerror(errno));
}

static void exec_argument_flipped(int count)
{
	struct thread thread;

	flipped = mmap(NULL, sizeof(*flipped) + ARGUMENT_BYTES_MAX, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (flipped == MAP_FAILED)
		fail("memory");
	flipped->text = (char *)(flipped + 1);
	thread_start(&thread, flip_argument, NULL);
	for (int i = 0; i < count; i++) {
		in_child(execute_flipped, NULL);
		made(1);
	}
	flipped->is_done = true;
	thread_join(&thread);
}

static void exec_vfork(int count)
{
	char *argv[] = { "evade", "act", "0", NULL }, *envp[] = { NULL };
	const char *path = program();

	for (int i = 0; i < count; i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			syscall(SYS_setresgid, group, -1, -1);
			execve(path, argv, envp);
			_exit(3);
		}
		await(pid);
		made(1);
	}
}

static char clone_stack[64 << 10] __attribute__((aligned(16)));

static void exec_clone3(int count)
{
	char *argv[] = { "evade", "act", "0", NULL }, *envp[] = { NULL };
	const char *path = program();

	for (int i = 0; i < count; i++) {
		struct clone_args args = { .flags = CLONE_VM | CLONE_VFORK,
					   .exit_signal = SIGCHLD };
		/* As vfork(), on this stack: the parent waits until the child has executed. */
		long pid = raw(SYS_clone3, (long)&args, sizeof(args), 0);

		if (pid < 0)
			fail("clone3: %s", strerror(-pid));
		if (pid == 0) {
			syscall(SYS_setresgid, group, -1, -1);
			execve(path, argv, envp);
			_exit(3);
		}
		await(pid);
		made(1);
	}
}

static int execute_shared(void *path)
{
	char *argv[] = { "evade", "act", "0", NULL }, *envp[] = { NULL };

	syscall(SYS_setresgid, group, -1, -1);
	execve(path, argv, envp);
	return 3;
}

/* The parent changes the path, in memory that it shares, while the child executes it. */
static void exec_path_flipped(int count)
{
	char path[sizeof(top) + 8];

	for (int i = 0; i < count; i++) {
		int status;
		pid_t pid;

		strcpy(path, program());
		pid = clone(execute_shared, clone_stack + sizeof(clone_stack), CLONE_VM | SIGCHLD,
			    path);
		if (pid < 0)
			fail("clone: %s", strerror(errno));
		while (waitpid(pid, &status, WNOHANG) == 0)
			path[1] ^= 1;
		/* Whether it succeeds or not: it is a call. */
		made(1);
	}
}

static void execute_thread(void *unused)
{
	(void)unused;
	select_calls();
	execute(program(), 0);
}

static void execute_not_leading(void *unused)
{
	struct thread thread;

	(void)unused;
	thread_start(&thread, execute_thread, NULL);
	thread_join(&thread);
}

static void exec_not_leader(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(execute_not_leading, NULL);
		made(1);
	}
}

static pthread_barrier_t both_ready;

static void execute_with_other(void *unused)
{
	pthread_barrier_wait(&both_ready);
	execute_thread(unused);
}

static void execute_twice(void *unused)
{
	struct thread threads[2];

	(void)unused;
	pthread_barrier_init(&both_ready, NULL, 2);
	for (int i = 0; i < 2; i++)
		thread_start(&threads[i], execute_with_other, NULL);
	for (int i = 0; i < 2; i++)
		thread_join(&threads[i]);
}

/* Two threads at the same time: one of them succeeds, which is what the rule selects. */
static void exec_two_threads(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(execute_twice, NULL);
		made(1);
	}
}

static void execute_descriptor(void *fd)
{
	char *argv[] = { "evade", "act", "0", NULL }, *envp[] = { NULL };

	select_calls();
	syscall(SYS_execveat, (int)(intptr_t)fd, "", argv, envp, AT_EMPTY_PATH);
	fail("execveat: %s", strerror(errno));
}

static void exec_memfd(int count)
{
	for (int i = 0; i < count; i++) {
		int fd = memfd_create("evade", 0);
		char path[32];

		if (fd < 0)
			fail("memfd_create: %s", strerror(errno));
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		copy_program(path);
		in_child(execute_descriptor, (void *)(intptr_t)fd);
		close(fd);
		made(1);
	}
}

static void exec_descriptor(int count)
{
	int fd = open(program(), O_PATH);

	for (int i = 0; i < count; i++) {
		in_child(execute_descriptor, (void *)(intptr_t)fd);
		made(1);
	}
}

static void write_script(const char *interpreter)
{
	char text[sizeof(home) + 16];

	snprintf(text, sizeof(text), "#!%s act\n", interpreter);
	write_file("script", text, 0755);
}

static void prepare_script(void)
{
	write_script(program());
}

/* The rule is about executing the script's file. */
static void exec_script(int count)
{
	for (int i = 0; i < count; i++) {
		run_program("./script", 0);
		made(1);
	}
}

#define LOADER "/lib64/ld-linux-x86-64.so.2"

static void prepare_loaded(void)
{
	copy_file("/bin/true", "prog");
}

static void execute_loader(void *unused)
{
	char *argv[] = { "ld.so", "./prog", NULL }, *envp[] = { NULL };

	(void)unused;
	select_calls();
	execve(LOADER, argv, envp);
	fail("execve " LOADER ": %s", strerror(errno));
}

/* The loader is what is executed; the program is a file that it opens. */
static void exec_loader(int count)
{
	for (int i = 0; i < count; i++) {
		in_child(execute_loader, NULL);
		made(1);
	}
}

static void execute_missing(void *path)
{
	char *argv[] = { path, NULL }, *envp[] = { NULL };

	select_calls();
	expect("execve", execve(path, argv, envp), -1);
}

static void exec_no_interpreter(int count)
{
	write_script("/nowhere/interpreter");
	for (int i = 0; i < count; i++) {
		in_child(execute_missing, "./script");
		made(1);
	}
}

/*
 * A file that the kernel finds out to be no program when the old image is gone already: the caller gets SIGSEGV
 * instead of an error.
 */
static void exec_broken(int count)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
	} file = {
		.header = { .e_ident = ELFMAG,
			    .e_type = ET_EXEC,
			    .e_machine = EM_X86_64,
			    .e_phoff = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1 },
		/* More bytes in the file than in memory. */
		.segment = { .p_type = PT_LOAD,
			     .p_flags = PF_R | PF_X,
			     .p_vaddr = 0x400000,
			     .p_filesz = 4096,
			     .p_memsz = 16 },
	};
	int fd = open("broken", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	if (fd < 0 || write(fd, &file, sizeof(file)) != sizeof(file))
		fail("writing a program: %s", strerror(errno));
	close(fd);
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	for (int i = 0; i < count; i++) {
		pid_t pid = start(execute_missing, "./broken");
		int status;

		if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
		    WTERMSIG(status) != SIGSEGV)
			fail("the broken program ended with wait status %#x", status);
		made(1);
	}
}

static void exec_refused(int count)
{
	write_file("data", "", 0600);
	for (int i = 0; i < count; i++) {
		in_child(execute_missing, "./data");
		made(1);
	}
}

const struct technique exec_techniques[] = {
	{ "exec-5mb", exec_5mb, 3 },
	{ "exec-default-limit", exec_default_limit, 3 },
	{ "exec-many-arguments", exec_many_arguments, 2 },
	{ "exec-argument-flipped", exec_argument_flipped, 10 },
	{ "exec-vfork", exec_vfork, 5 },
	{ "exec-clone3", exec_clone3, 5 },
	{ "exec-path-flipped", exec_path_flipped, 20 },
	{ "exec-not-leader", exec_not_leader, 5 },
	{ "exec-two-threads", exec_two_threads, 10 },
	{ "exec-memfd", exec_memfd, 3 },
	{ "exec-descriptor", exec_descriptor, 5 },
	{ "exec-script", exec_script, 5, prepare_script },
	{ "exec-loader", exec_loader, 5, prepare_loaded },
	{ "exec-no-interpreter", exec_no_interpreter, 5 },
	{ "exec-broken", exec_broken, 5 },
	{ "exec-refused", exec_refused, 5 },
	{ 0 },
};
