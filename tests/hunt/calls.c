/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls. Each is printed with the registers by which it is known in a log. */
#include "hunt.h"
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/*
 * Arguments of a call, a letter each: `d` descriptor of a directory for the next path, `p` path, `P` path of an object
 * that the call takes away, `o` flags of open, `m` mode, `M` mode with a type, `f` descriptor of a file, `u` user or
 * group, `l` length, `x` name of an attribute, `z` length of its value, `0` zero, `a` flags of *at calls, `r` flags of
 * renameat2, `L` flags of linkat, `R` flags of unlinkat, `t` times, `s` text of a link, `h` struct open_how and `H` its
 * size, `S` socket and `A` its address, `N` length of the address.
 */
struct form {
	long nr;
	const char *name;
	const char *arguments;
};

static const struct form forms[] = {
	{ SYS_open, "open", "pom" },
	{ SYS_open, "open", "pom" },
	{ SYS_creat, "creat", "pm" },
	{ SYS_openat, "openat", "dpom" },
	{ SYS_openat, "openat", "dpom" },
	{ SYS_openat2, "openat2", "dphH" },
	{ SYS_unlink, "unlink", "P" },
	{ SYS_unlinkat, "unlinkat", "dPR" },
	{ SYS_rmdir, "rmdir", "P" },
	{ SYS_rename, "rename", "PP" },
	{ SYS_renameat, "renameat", "dPdP" },
	{ SYS_renameat2, "renameat2", "dPdPr" },
	{ SYS_link, "link", "pP" },
	{ SYS_linkat, "linkat", "dpdPL" },
	{ SYS_symlink, "symlink", "sP" },
	{ SYS_symlinkat, "symlinkat", "sdP" },
	{ SYS_mkdir, "mkdir", "Pm" },
	{ SYS_mkdirat, "mkdirat", "dPm" },
	{ SYS_mknod, "mknod", "PM0" },
	{ SYS_mknodat, "mknodat", "dPM0" },
	{ SYS_chmod, "chmod", "pm" },
	{ SYS_fchmod, "fchmod", "fm" },
	{ SYS_fchmodat, "fchmodat", "dpm" },
	{ SYS_chown, "chown", "puu" },
	{ SYS_lchown, "lchown", "puu" },
	{ SYS_fchown, "fchown", "fuu" },
	{ SYS_fchownat, "fchownat", "dpuua" },
	{ SYS_truncate, "truncate", "pl" },
	{ SYS_ftruncate, "ftruncate", "fl" },
	{ SYS_setxattr, "setxattr", "pxxz0" },
	{ SYS_lsetxattr, "lsetxattr", "pxxz0" },
	{ SYS_fsetxattr, "fsetxattr", "fxxz0" },
	{ SYS_removexattr, "removexattr", "px" },
	{ SYS_utimensat, "utimensat", "dpta" },
	{ SYS_bind, "bind", "SAN" },
	{ SYS_connect, "connect", "SAN" },
	{ SYS_execve, "execve", "p" },
	{ SYS_execveat, "execveat", "dp" },
};

struct call {
	const struct form *form;
	long args[6];
	unsigned count;
	/* What the next path is relative to; NULL: the working directory. */
	const char *from;
	int socket;
	char text[4 * PATH_BYTES];
};

/* Memory of its own for each argument, so that its address tells calls apart. */
static void *keep(const void *data, size_t size)
{
	void *copy = malloc(size);

	return memcpy(copy, data, size);
}

static long draw_open_flags(void)
{
	static const long flags[] = {
		O_RDONLY,
		O_RDONLY,
		O_WRONLY,
		O_RDWR,
		O_WRONLY | O_TRUNC,
		O_WRONLY | O_CREAT,
		O_RDWR | O_CREAT | O_EXCL,
		O_PATH,
		O_PATH | O_NOFOLLOW,
		O_RDONLY | O_NOFOLLOW,
		O_DIRECTORY,
		O_TMPFILE | O_RDWR,
		O_RDONLY | O_CREAT,
		O_RDWR | O_APPEND,
	};

	return ONE_OF(flags) | O_NONBLOCK | O_CLOEXEC;
}

static long draw_directory(struct call *call)
{
	unsigned which = below(POOL_DIRECTORIES);

	call->from = NULL;
	if (chance(50))
		return AT_FDCWD;
	call->from = pool_names[which];
	return pool[which];
}

static long draw_flags(char kind)
{
	static const long link_flags[] = { 0, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH };
	static const long rename_flags[] = { 0, RENAME_NOREPLACE, RENAME_EXCHANGE };

	if (kind == 'L')
		return ONE_OF(link_flags);
	if (kind == 'r')
		return ONE_OF(rename_flags);
	if (kind == 'R')
		return chance(30) ? AT_REMOVEDIR : 0;
	return chance(30) ? AT_SYMLINK_NOFOLLOW : 0;
}

static long draw_text(struct call *call, char kind)
{
	static const char *const names[] = { "trusted.hunt", "user.hunt" };
	char path[PATH_BYTES] = "";

	if (kind == 'x')
		return (long)ONE_OF(names);
	draw_path(path, call->from, kind == 'P');
	call->from = NULL;
	snprintf(call->text + strlen(call->text), PATH_BYTES, " %s", path);
	return (long)keep(path, strlen(path) + 1);
}

static long draw_structure(struct call *call, char kind)
{
	static const struct timespec times[2];
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct open_how how = { .flags = draw_open_flags() };
	static const uint64_t resolve[] = {
		0, 0, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_XDEV
	};
	char path[PATH_BYTES] = "";

	if (kind == 't')
		return (long)times;
	if (kind == 'h') {
		how.mode = how.flags & (O_CREAT | __O_TMPFILE) ? 0644 : 0;
		how.resolve = ONE_OF(resolve);
		return (long)keep(&how, sizeof(how));
	}
	draw_path(path, NULL, true);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.107s", path);
	snprintf(call->text + strlen(call->text), PATH_BYTES, " %s", path);
	return (long)keep(&address, sizeof(address));
}

static long draw_argument(struct call *call, char kind)
{
	static const long modes[] = { 0644, 0600, 0755, 0711 };
	static const long types[] = { S_IFREG | 0600, S_IFSOCK | 0600 };

	switch (kind) {
	case 'd':
		return draw_directory(call);
	case 'p':
	case 'P':
	case 's':
	case 'x':
		return draw_text(call, kind);
	case 'o':
		return draw_open_flags();
	case 'm':
		return ONE_OF(modes);
	case 'M':
		return ONE_OF(types);
	case 'f':
		return pool[POOL_DIRECTORIES + below(POOL - POOL_DIRECTORIES)];
	case 'u':
		return chance(50) ? SOME_UID : 0;
	case 'l':
		return below(64);
	case 'z':
		return 4;
	case 'a':
	case 'r':
	case 'L':
	case 'R':
		return draw_flags(kind);
	case 'h':
	case 't':
	case 'A':
		return draw_structure(call, kind);
	case 'H':
		return sizeof(struct open_how);
	case 'N':
		return sizeof(struct sockaddr_un);
	case 'S':
		call->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		return call->socket;
	default:
		return 0;
	}
}

static void print_call(const struct call *call, long result)
{
	const long *args = call->args;

	printf("%d %ld %lx %lx %lx %lx %s%s = %ld (in %s)\n", getpid(), call->form->nr, args[0],
	       args[1], args[2], args[3], call->form->name, call->text, result, place.cwd);
	fflush(stdout);
}

/* The program gets a name of its own choice to open and change. */
static void execute(struct call *call)
{
	char path[PATH_BYTES];
	char *argv[] = { "hunt", "act", path, NULL }, *envp[] = { NULL };
	unsigned at = call->form->nr == SYS_execveat ? 2 : 1;
	pid_t pid;

	draw_path(path, NULL, false);
	call->args[at] = (long)argv;
	call->args[at + 1] = (long)envp;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		print_call(call, 0);
		syscall(call->form->nr, call->args[0], call->args[1], call->args[2], call->args[3],
			0);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

static bool is_open(long nr)
{
	return nr == SYS_open || nr == SYS_openat || nr == SYS_openat2 || nr == SYS_creat;
}

void make_call(unsigned serial)
{
	struct call call = { .form = &ONE_OF(forms), .socket = -1 };
	const char *kinds = call.form->arguments;
	long result;

	for (call.count = 0; kinds[call.count]; call.count++)
		call.args[call.count] = draw_argument(&call, kinds[call.count]);
	/* A register that the call does not use tells it apart. */
	if (call.count < 4)
		call.args[3] = serial;
	if (call.form->nr == SYS_execve || call.form->nr == SYS_execveat) {
		execute(&call);
		return;
	}
	result = syscall(call.form->nr, call.args[0], call.args[1], call.args[2], call.args[3],
			 call.args[4], call.args[5]);
	print_call(&call, result < 0 ? -errno : result);
	if (is_open(call.form->nr) && result >= 0)
		close(result);
	if (call.socket >= 0)
		close(call.socket);
}

int act(char **paths)
{
	for (; *paths; paths++) {
		int fd = open(*paths, O_RDONLY | O_NONBLOCK);

		chmod(*paths, 0644);
		if (fd >= 0)
			close(fd);
	}
	return 0;
}
