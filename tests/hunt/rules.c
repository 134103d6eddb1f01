/* SPDX-License-Identifier: Apache-2.0 */
/* Random rules over the tree. */
#include "hunt.h"

#define RULES_MAX 10

static const char *const calls[] = {
	"open,creat,openat,openat2",
	"unlink,unlinkat,rmdir,rename,renameat,renameat2",
	"link,linkat,symlink,symlinkat,mkdir,mkdirat,mknod,mknodat",
	"chmod,fchmod,fchmodat,chown,lchown,fchown,fchownat",
	"truncate,ftruncate,setxattr,lsetxattr,fsetxattr,removexattr,utimensat",
	"execve,execveat,bind,connect",
	"rmdir,mkdir,mkdirat,open,openat,fchmodat,setxattr,utimensat,bind",
	"open,creat,openat,openat2,unlink,unlinkat,rmdir,rename,renameat,renameat2,link,linkat,symlink,symlinkat,"
	"mkdir,mkdirat,mknod,mknodat,chmod,fchmod,fchmodat,chown,lchown,fchown,fchownat,truncate,ftruncate,setxattr,"
	"lsetxattr,fsetxattr,removexattr,utimensat,execve,execveat,bind,connect",
};

/*
 * A `never` rule on a path is not combined with calls that take its object away: the kernel has forgotten the object
 * by the end of the call, so that the rule does not match there.
 */
static const char *draw_calls(bool is_never)
{
	const char *drawn;

	do
		drawn = ONE_OF(calls);
	while (is_never && strstr(drawn, "rename"));
	return drawn;
}

static void print_object(void)
{
	static const char *const types[] = { "file", "dir", "link", "socket" };
	struct stat found;

	switch (below(10)) {
	case 0:
	case 1:
	case 2:
		printf(" -F path=%s/%s", base, rule_file());
		break;
	case 3:
	case 4:
	case 5:
		printf(" -F dir=%s/%s", base, rule_directory());
		break;
	case 6:
		if (stat(rule_file(), &found) == 0)
			printf(" -F inode=%lu", found.st_ino);
		break;
	case 7:
		printf(" -F obj_uid=%d", SOME_UID);
		break;
	case 8:
		printf(" -F filetype=%s", ONE_OF(types));
	}
}

void print_rules(void)
{
	static const char *const accesses[] = { "r", "w", "x", "a", "wa", "rwxa" };
	unsigned count = 2 + below(RULES_MAX - 1);

	for (unsigned i = 0; i < count; i++) {
		bool is_never = chance(25) && i + 1 < count;

		printf("-a %s,exit -F arch=b64", is_never ? "never" : "always");
		if (chance(30) && !is_never)
			printf(" -F perm=%s", ONE_OF(accesses));
		else
			printf(" -S %s", draw_calls(is_never));
		print_object();
		if (chance(15))
			printf(" -F exe%s%s/%s", chance(50) ? "=" : "!=", base, rule_program());
		if (chance(10))
			printf(" -F success%s1", chance(50) ? "=" : "!=");
		printf(" -F gid=%d -k rule-%u\n", HUNT_GID, i);
	}
}
