/* SPDX-License-Identifier: Apache-2.0 */
/* See workload.h for what this program does and prints. */
#include "workload.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *resolved(const char *path)
{
	char *real = realpath(path, NULL);

	if (!real) {
		fprintf(stderr, "workload: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return real;
}

/* Reads what the output needs to know about this process, before the first counted call. */
static void learn(struct self *me)
{
	uid_t uid, euid, suid;
	gid_t gid, egid, sgid;

	getresuid(&uid, &euid, &suid);
	getresgid(&gid, &egid, &sgid);
	*me = (struct self){ .pid = getpid(), .tid = getpid(), .ppid = getppid(), .exe = self_exe };
	me->ids[UID] = uid;
	me->ids[EUID] = me->ids[FSUID] = euid;
	me->ids[SUID] = suid;
	me->ids[GID] = gid;
	me->ids[EGID] = me->ids[FSGID] = egid;
	me->ids[SGID] = sgid;
	prctl(PR_GET_NAME, me->comm);
	if (!getcwd(me->cwd, PATH_BYTES))
		me->cwd[0] = 0;
}

int main(int argc, char **argv)
{
	static struct self self;
	struct self *me = &self;
	long mark = MARK_GID, gid;
	const char *dir;
	bool compat;

	if (argc > 1 && !strcmp(argv[1], "--rings"))
		return rings_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "--dead"))
		return dead_main(argc, argv);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--count"))
			return count_main(argc, argv);
		if (!strcmp(argv[i], "--latency"))
			return latency_main(argc, argv);
	}
	if (argc == 4 && !strcmp(argv[1], "--mark")) {
		mark = atol(argv[2]);
		argc -= 2;
		argv += 2;
	}
	if (argc != 2 || mark <= 0) {
		fprintf(stderr,
			"usage: workload [--mark GID] DIR\n"
			"       workload --count N [--threads T] [--child] [--mark GID] CALL\n"
			"       workload --latency [--rounds R] [--calls N] [--file PATH]\n"
			"       workload --rings …, see rings.c\n");
		return 2;
	}
	if (geteuid() != 0) {
		fprintf(stderr, "workload: must be root, to take group %ld and act as others\n",
			mark);
		return 1;
	}
	dir = resolved(argv[1]);
	if (strlen(dir) > PATH_MAX / 2) {
		fprintf(stderr, "workload: %s: too long; the calls need room below it\n", dir);
		return 1;
	}
	self_exe = resolved("/proc/self/exe");
	true_exe = resolved("/bin/true");
	compat = compat_possible();
	truth_init();
	learn(me);
	gid = me->ids[GID];

	CALL(setresgid, mark, -1, -1);
	files(me, dir);
	sockets(me, dir);
	processes(me, dir);
	if (compat)
		compat_calls(me, dir);
	/* Not counted: when it returns, this process is no longer in the group. */
	raw(SYS_setresgid, gid, -1, -1, 0, 0, 0);

	truth_print();
	return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
