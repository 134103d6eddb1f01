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

/* A condition on the object; nothing for one rule of ten. */
static void draw_object(char *text, size_t size)
{
	static const char *const types[] = { "file", "dir", "link", "socket" };
	struct stat found;

	*text = 0;
	switch (below(10)) {
	case 0:
	case 1:
	case 2:
		snprintf(text, size, " -F path=%s/%s", base, rule_file());
		break;
	case 3:
	case 4:
	case 5:
		snprintf(text, size, " -F dir=%s/%s", base, rule_directory());
		break;
	case 6:
		if (stat(rule_file(), &found) == 0)
			snprintf(text, size, " -F inode=%lu", found.st_ino);
		break;
	case 7:
		snprintf(text, size, " -F obj_uid=%d", SOME_UID);
		break;
	case 8:
		snprintf(text, size, " -F filetype=%s", ONE_OF(types));
	}
}

/*
 * The same rule for operations of io_uring, which the kernel audits by a list of its own. Conditions on what a
 * call reaches are not possible there.
 */
static void print_operations(bool is_never, unsigned number)
{
	printf("-a %s,io_uring -S openat,openat2,unlinkat,renameat,mkdirat,symlinkat,linkat -F gid=%d -k "
	       "rule-%u\n",
	       is_never ? "never" : "always", HUNT_GID, number);
}

void print_rules(void)
{
	static const char *const accesses[] = { "r", "w", "x", "a", "wa", "rwxa" };
	unsigned count = 2 + below(RULES_MAX - 1), number = 0;
	char object[PATH_BYTES];

	for (unsigned i = 0; i < count; i++) {
		bool is_never = chance(25) && i + 1 < count;

		printf("-a %s,exit -F arch=b64", is_never ? "never" : "always");
		if (chance(30) && !is_never)
			printf(" -F perm=%s", ONE_OF(accesses));
		else
			printf(" -S %s", draw_calls(is_never));
		draw_object(object, sizeof(object));
		fputs(object, stdout);
		if (chance(15))
			printf(" -F exe%s%s/%s", chance(50) ? "=" : "!=", base, rule_program());
		if (chance(10))
			printf(" -F success%s1", chance(50) ? "=" : "!=");
		printf(" -F gid=%d -k rule-%u\n", HUNT_GID, number++);
		if (plan.has_rings && !*object)
			print_operations(is_never, number++);
	}
}
