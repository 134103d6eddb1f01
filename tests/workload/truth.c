/* SPDX-License-Identifier: Apache-2.0 */
/* The record of the calls made, kept in shared memory so that children can add to it. */
#include "workload.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define RECORDS_MAX 8192
#define ARENA_BYTES (64UL << 20)
#define NO_RETURN LONG_MIN

/* A text in the arena, at `offset`; there is none if `offset` is 0. */
struct text {
	uint32_t offset, len;
};

struct record {
	int pid, tid, ppid;
	const char *arch, *name, *exe;
	long nr, ret, args[4];
	uint32_t ids[IDS];
	char comm[16];
	int paths;
	struct text cwd, path[PATHS_MAX], saddr;
	/* Each argument ends with NUL; `len` is that of all, so that empty arguments count. */
	struct text argv;
};

struct truth {
	unsigned int records;
	unsigned long used;
	struct record record[RECORDS_MAX];
	char arena[ARENA_BYTES];
};

static struct truth *truth;
const char *self_exe, *true_exe;

void truth_init(void)
{
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (truth == MAP_FAILED) {
		perror("workload: mmap of the record");
		exit(1);
	}
	truth->used = 1;
}

/* Traps without a message: no system call that is not recorded may be made in the counted part. */
static void require(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static struct text keep(const void *data, size_t len)
{
	unsigned long at = __atomic_fetch_add(&truth->used, len, __ATOMIC_RELAXED);

	require(at + len <= ARENA_BYTES);
	memcpy(truth->arena + at, data, len);
	return (struct text){ at, len };
}

/* Joins `path` to `dir` and normalises the text; nothing of that name needs to exist. */
static size_t absolute(const char *dir, const char *path, char *out)
{
	char joined[2 * PATH_BYTES];
	size_t len = 0, n, dir_len = strlen(dir), path_len = strlen(path);
	const char *part, *next;

	require(dir_len + path_len + 2 <= sizeof(joined));
	if (path[0] == '/')
		dir_len = 0;
	memcpy(joined, dir, dir_len);
	joined[dir_len] = '/';
	memcpy(joined + dir_len + 1, path, path_len + 1);
	for (part = joined; *part; part = next) {
		for (next = part; *next && *next != '/'; next++)
			;
		n = next - part;
		if (*next)
			next++;
		if (n == 0 || (n == 1 && part[0] == '.'))
			continue;
		if (n == 2 && part[0] == '.' && part[1] == '.') {
			while (len > 0 && out[--len] != '/')
				;
			continue;
		}
		out[len++] = '/';
		memcpy(out + len, part, n);
		len += n;
	}
	if (len == 0)
		out[len++] = '/';
	out[len] = 0;
	return len;
}

void names(struct self *me, const char *dir, const char *path)
{
	require(me->pending < PATHS_MAX);
	absolute(dir ? dir : me->cwd, path, me->paths[me->pending++]);
}

struct record *begin(struct self *me, const char *arch, const char *name, const long *args, long nr)
{
	unsigned int seq = __atomic_fetch_add(&truth->records, 1, __ATOMIC_RELAXED);
	struct record *rec = &truth->record[seq];

	require(seq < RECORDS_MAX);
	*rec = (struct record){ .pid = me->pid, .tid = me->tid, .ppid = me->ppid };
	rec->arch = arch;
	rec->name = name;
	rec->nr = nr;
	rec->ret = NO_RETURN;
	memcpy(rec->args, args, sizeof(rec->args));
	rec->cwd = keep(me->cwd, strlen(me->cwd));
	for (int i = 0; i < me->pending; i++)
		rec->path[i] = keep(me->paths[i], strlen(me->paths[i]));
	rec->paths = me->pending;
	me->pending = 0;
	if (me->saddr)
		record_saddr(rec, me->saddr, me->saddr_len);
	me->saddr = NULL;
	memcpy(rec->ids, me->ids, sizeof(rec->ids));
	memcpy(rec->comm, me->comm, sizeof(rec->comm));
	rec->exe = me->exe;
	return rec;
}

void end(struct record *rec, struct self *me, long ret)
{
	rec->pid = me->pid;
	rec->tid = me->tid;
	rec->ret = ret;
	rec->exe = me->exe;
	rec->argv = (struct text){ 0 };
	memcpy(rec->ids, me->ids, sizeof(rec->ids));
	memcpy(rec->comm, me->comm, sizeof(rec->comm));
}

/* Called before an exec that should not return; end() undoes it if the exec fails. */
void record_exec(struct record *rec, struct self *me, const char *exe, const char *comm,
		 const char *const *argv)
{
	size_t len = 0;

	rec->ret = 0;
	rec->exe = exe;
	memset(rec->comm, 0, sizeof(rec->comm));
	if (comm)
		memcpy(rec->comm, comm, strnlen(comm, sizeof(rec->comm) - 1));
	rec->ids[SUID] = rec->ids[FSUID] = me->ids[EUID];
	rec->ids[SGID] = rec->ids[FSGID] = me->ids[EGID];
	for (int i = 0; argv[i]; i++)
		len += strlen(argv[i]) + 1;
	unsigned long at = __atomic_fetch_add(&truth->used, len, __ATOMIC_RELAXED);

	require(at + len <= ARENA_BYTES);
	rec->argv = (struct text){ at, len };
	for (int i = 0; argv[i]; i++) {
		size_t n = strlen(argv[i]) + 1;

		memcpy(truth->arena + at, argv[i], n);
		at += n;
	}
}

void record_saddr(struct record *rec, const void *addr, size_t len)
{
	rec->saddr = keep(addr, len);
}

/* Applies to `me` what a successful call changed about its thread. */
static void follow(struct self *me, long nr, long ret, const long *a)
{
	uint32_t *ids = me->ids;

	if (ret < 0)
		return;
		/* -1 leaves an id unchanged; the fs ids follow the effective ones. */
#define SET(id, value) (ids[id] = (uint32_t)(value) == UINT32_MAX ? ids[id] : (uint32_t)(value))
	switch (nr) {
	case SYS_setresuid:
		SET(UID, a[0]), SET(EUID, a[1]), SET(SUID, a[2]);
		ids[FSUID] = ids[EUID];
		break;
	case SYS_setresgid:
		SET(GID, a[0]), SET(EGID, a[1]), SET(SGID, a[2]);
		ids[FSGID] = ids[EGID];
		break;
	case SYS_setreuid:
		/* Setting the real id, or the effective one to another value, sets the saved id. */
		if ((uint32_t)a[0] != UINT32_MAX ||
		    ((uint32_t)a[1] != UINT32_MAX && (uint32_t)a[1] != ids[UID])) {
			SET(UID, a[0]), SET(EUID, a[1]);
			ids[SUID] = ids[EUID];
		} else {
			SET(EUID, a[1]);
		}
		ids[FSUID] = ids[EUID];
		break;
	case SYS_setregid:
		if ((uint32_t)a[0] != UINT32_MAX ||
		    ((uint32_t)a[1] != UINT32_MAX && (uint32_t)a[1] != ids[GID])) {
			SET(GID, a[0]), SET(EGID, a[1]);
			ids[SGID] = ids[EGID];
		} else {
			SET(EGID, a[1]);
		}
		ids[FSGID] = ids[EGID];
		break;
	case SYS_setuid:
		if (ids[EUID] == 0)
			ids[UID] = ids[SUID] = a[0];
		ids[EUID] = ids[FSUID] = a[0];
		break;
	case SYS_setfsuid:
		ids[FSUID] = a[0];
		break;
	case SYS_setfsgid:
		ids[FSGID] = a[0];
		break;
	}
#undef SET
}

long call(struct self *me, const char *name, long nr, long a0, long a1, long a2, long a3, long a4,
	  long a5)
{
	long args[6] = { a0, a1, a2, a3, a4, a5 };
	struct record *rec = begin(me, "b64", name, args, nr);
	long ret = raw(nr, a0, a1, a2, a3, a4, a5);

	/* In a new child, `rec` is the caller's line, which the caller completes. */
	if (ret == 0 && (nr == SYS_fork || nr == SYS_clone || nr == SYS_clone3))
		return 0;
	follow(me, nr, ret, args);
	end(rec, me, ret);
	return ret;
}

_Noreturn void call_exit(struct self *me, const char *name, long nr, long status)
{
	begin(me, "b64", name, (long[6]){ status }, nr);
	raw(nr, status, 0, 0, 0, 0, 0);
	__builtin_trap();
}

static void print_hex(const char *data, size_t len)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < len; i++) {
		putchar(digits[(unsigned char)data[i] >> 4]);
		putchar(digits[data[i] & 15]);
	}
}

static void print_text(char before, const char *data, size_t len)
{
	putchar(before);
	if (len)
		print_hex(data, len);
	else
		putchar('-');
}

static void print_argv(const struct record *rec)
{
	const char *at = truth->arena + rec->argv.offset, *stop = at + rec->argv.len;
	char before = '\t';

	if (!rec->argv.len)
		printf("\t-");
	for (; at < stop; at += strlen(at) + 1) {
		putchar(before);
		print_hex(at, strlen(at));
		before = ',';
	}
}

void truth_print(void)
{
	printf("#seq\tpid\ttid\tppid\tarch\tnr\tname\tret\ta0\ta1\ta2\ta3\tids\tcomm\texe\tcwd\tpaths"
	       "\targv\tsaddr\n");
	for (unsigned int seq = 0; seq < truth->records; seq++) {
		const struct record *rec = &truth->record[seq];

		printf("%u\t%d\t%d\t%d\t%s\t%ld\t%s\t", seq, rec->pid, rec->tid, rec->ppid,
		       rec->arch, rec->nr, rec->name);
		if (rec->ret == NO_RETURN)
			putchar('-');
		else
			printf("%ld", rec->ret);
		for (int i = 0; i < 4; i++)
			printf("\t%lx", rec->args[i]);
		for (int i = 0; i < IDS; i++)
			printf("%c%u", i ? ',' : '\t', rec->ids[i]);
		print_text('\t', rec->comm, strnlen(rec->comm, sizeof(rec->comm)));
		print_text('\t', rec->exe, strlen(rec->exe));
		print_text('\t', truth->arena + rec->cwd.offset, rec->cwd.len);
		if (!rec->paths)
			printf("\t-");
		for (int i = 0; i < rec->paths; i++)
			print_text(i ? ',' : '\t', truth->arena + rec->path[i].offset,
				   rec->path[i].len);
		print_argv(rec);
		print_text('\t', truth->arena + rec->saddr.offset, rec->saddr.len);
		putchar('\n');
	}
}
