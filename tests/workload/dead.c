/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE file system that answers some processes and leaves all others waiting for ever, and calls
 * on it.
 *
 *   workload --dead serve DIR GID    mounts itself at DIR for all users and answers requests of
 *                                    group GID only; prints a line when it is mounted. It has a
 *                                    file, DIR/script, of which the kernel caches nothing.
 *   workload --dead call DIR GID N   as group GID, changes the mode of DIR/script N times and
 *                                    executes it after every tenth; prints how often it did both
 *
 * The protocol is that of linux/fuse.h.
 */
#include "workload.h"

#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SCRIPT = 2, /* number of its inode */
	REQUEST_MAX = 1 << 20
};
static const char script[] = "#!/bin/true\n";
static int device;
static mode_t script_mode = 0755;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void reply(const struct fuse_in_header *in, int error, const void *data, size_t size)
{
	char out[sizeof(struct fuse_out_header) + 4096];
	struct fuse_out_header head = {
		.len = sizeof(head) + size,
		.error = error,
		.unique = in->unique,
	};

	memcpy(out, &head, sizeof(head));
	if (size)
		memcpy(out + sizeof(head), data, size);
	/* ENOENT: the request was interrupted meanwhile. */
	if (write(device, out, head.len) < 0 && errno != ENOENT)
		die("write to /dev/fuse");
}

static struct fuse_attr attr_of(unsigned long long node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = 4096 };

	attr.mode = node == SCRIPT ? S_IFREG | script_mode : S_IFDIR | 0755;
	attr.size = node == SCRIPT ? sizeof(script) - 1 : 0;
	return attr;
}

static void answer(const struct fuse_in_header *in, const char *body)
{
	const struct fuse_setattr_in *set = (const void *)body;
	const struct fuse_read_in *read_in = (const void *)body;
	struct fuse_entry_out entry = { .nodeid = SCRIPT, .attr = attr_of(SCRIPT) };
	struct fuse_open_out opened = { .open_flags = FOPEN_DIRECT_IO };
	struct fuse_statfs_out statfs_out = { .st = { .bsize = 4096, .namelen = 255 } };
	struct fuse_attr_out attributes;

	switch (in->opcode) {
	case FUSE_LOOKUP:
		if (strcmp(body, "script"))
			return reply(in, -ENOENT, NULL, 0);
		/* Valid for no time: the next look-up asks again. */
		return reply(in, 0, &entry, sizeof(entry));
	case FUSE_SETATTR:
		if (set->valid & FATTR_MODE)
			script_mode = set->mode & 07777;
		/* fall through */
	case FUSE_GETATTR:
		attributes = (struct fuse_attr_out){ .attr = attr_of(in->nodeid) };
		return reply(in, 0, &attributes, sizeof(attributes));
	case FUSE_OPEN:
		return reply(in, 0, &opened, sizeof(opened));
	case FUSE_READ:
		if (read_in->offset >= sizeof(script) - 1)
			return reply(in, 0, NULL, 0);
		return reply(in, 0, script + read_in->offset, sizeof(script) - 1 - read_in->offset);
	case FUSE_RELEASE:
		return reply(in, 0, NULL, 0);
	case FUSE_STATFS:
		return reply(in, 0, &statfs_out, sizeof(statfs_out));
	default:
		return reply(in, -ENOSYS, NULL, 0);
	}
}

static void serve(const char *dir, gid_t gid)
{
	static char request[REQUEST_MAX + 1];
	char options[128];

	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		die("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 device);
	if (mount("dead", dir, "fuse.dead", 0, options))
		die("mount");
	puts("mounted");
	fflush(stdout);
	for (;;) {
		const struct fuse_in_header *in = (const void *)request;
		const char *body = request + sizeof(*in);
		ssize_t len = read(device, request, REQUEST_MAX);

		if (len < 0 && errno == ENODEV)
			return; /* unmounted */
		if (len < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (len < (ssize_t)sizeof(*in))
			die("read from /dev/fuse");
		request[len] = 0;
		if (in->opcode == FUSE_INIT) {
			struct fuse_init_out init = {
				.major = FUSE_KERNEL_VERSION,
				.minor = FUSE_KERNEL_MINOR_VERSION,
				.max_write = 4096,
				/* Who waits in a directory keeps nobody out of it. */
				.flags = FUSE_PARALLEL_DIROPS,
			};

			reply(in, 0, &init, sizeof(init));
		} else if (in->opcode == FUSE_RELEASE || in->gid == gid) {
			if (in->opcode != FUSE_FORGET && in->opcode != FUSE_BATCH_FORGET &&
			    in->opcode != FUSE_INTERRUPT)
				answer(in, body);
		}
	}
}

static void execute(const char *path)
{
	char *arguments[] = { (char *)path, NULL }, *environment[] = { NULL };
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork");
	if (!child) {
		execve(path, arguments, environment);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child || status)
		die("the script");
}

static void make_calls(const char *path, gid_t gid, int rounds)
{
	int executed = 0;

	if (setgid(gid))
		die("setgid");
	for (int i = 0; i < rounds; i++) {
		if (chmod(path, i & 1 ? 0755 : 0711))
			die("chmod");
		if (i % 10)
			continue;
		execute(path);
		executed++;
	}
	printf("%d %d\n", rounds, executed);
}

int dead_main(int argc, char **argv)
{
	char path[PATH_BYTES];

	if (argc < 5)
		return 2;
	snprintf(path, sizeof(path), "%s/script", argv[3]);
	if (!strcmp(argv[2], "serve"))
		serve(argv[3], atoi(argv[4]));
	else if (!strcmp(argv[2], "call") && argc > 5)
		make_calls(path, atoi(argv[4]), atoi(argv[5]));
	else
		return 2;
	return 0;
}
