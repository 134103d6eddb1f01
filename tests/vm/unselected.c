/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls cost on names that rules watch, in nanoseconds; a guest can count instructions as such.
 *
 *   unselected cost DIR         prints a line for each act: its name and the least time of one of several rounds.
 *                               Acts that make something make it below DIR, which exists.
 *   unselected repeat N DIR ACT  performs one act N times.
 *   unselected programs         prints name, nanoseconds and runs of each BPF program, as kernel.bpf_stats_enabled counts them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 40

static char file[512], other[512], directory[512], deep[3][512];

static void fail(const char *what)
{
	fprintf(stderr, "unselected: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void must(int failed, const char *what)
{
	if (failed)
		fail(what);
}

/* Creates a file with some bytes, and makes and removes it as programs do that unpack or build. */
static void make_and_remove(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);

	must(fd < 0, path);
	must(write(fd, "0123456789abcdef", 16) != 16, "write");
	close(fd);
	must(chmod(path, 0644), "chmod");
	must(unlink(path), "unlink");
}

static void null_call(void)
{
	syscall(SYS_getppid);
}

static void open_close(void)
{
	int fd = open("/etc/passwd", O_RDONLY);

	must(fd < 0, "/etc/passwd");
	close(fd);
}

static void create_to_unlink(void)
{
	make_and_remove(file);
}

static void depth_2(void)
{
	make_and_remove(deep[0]);
}

static void depth_6(void)
{
	make_and_remove(deep[1]);
}

static void depth_12(void)
{
	make_and_remove(deep[2]);
}

static void create_and_rename(void)
{
	int fd = open(file, O_CREAT | O_WRONLY, 0600);

	must(fd < 0, file);
	close(fd);
	must(rename(file, other), "rename");
	must(unlink(other), "unlink");
}

static void make_directory(void)
{
	must(mkdir(directory, 0700), "mkdir");
	must(rmdir(directory), "rmdir");
}

static void look_at(void)
{
	struct stat found;

	must(stat("/etc/passwd", &found), "stat");
	must(access("/etc/passwd", R_OK), "access");
	if (!open("/none/such/file", O_RDONLY))
		fail("/none/such/file");
}

static const struct {
	const char *name;
	void (*act)(void);
} acts[] = {
	{ "null", null_call },
	{ "open-read", open_close },
	{ "create-unlink", create_to_unlink },
	{ "depth-2", depth_2 },
	{ "depth-6", depth_6 },
	{ "depth-12", depth_12 },
	{ "rename", create_and_rename },
	{ "mkdir", make_directory },
	{ "look", look_at },
};
#define ACTS (sizeof(acts) / sizeof(*acts))

/* Makes directories of 2, 6 and 12 levels below DIR. */
static void prepare(const char *top)
{
	static const int depths[] = { 2, 6, 12 };
	char path[400];
	int i, level;

	snprintf(file, sizeof(file), "%s/file", top);
	snprintf(other, sizeof(other), "%s/other", top);
	snprintf(directory, sizeof(directory), "%s/directory", top);
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s", top);
		for (level = 1; level < depths[i]; level++) {
			snprintf(path + strlen(path), sizeof(path) - strlen(path), "/level%d",
				 level);
			must(mkdir(path, 0700) && errno != EEXIST, path);
		}
		snprintf(deep[i], sizeof(deep[i]), "%s/file", path);
	}
}

static void print_costs(void)
{
	long long start, took, best;
	size_t i;
	int round;

	for (i = 0; i < ACTS; i++) {
		best = 1LL << 62;
		for (round = 0; round < ROUNDS; round++) {
			start = now_ns();
			acts[i].act();
			took = now_ns() - start;
			if (took < best)
				best = took;
		}
		printf("%s\t%lld\n", acts[i].name, best);
	}
}

static int repeat(long times, const char *name)
{
	size_t i;

	for (i = 0; i < ACTS; i++) {
		if (strcmp(acts[i].name, name))
			continue;
		while (times-- > 0)
			acts[i].act();
		return 0;
	}
	fprintf(stderr, "unselected: no act is called %s\n", name);
	return 2;
}

/* What the kernel has counted of one program; false if it is gone. */
static int print_program(__u32 id)
{
	struct bpf_prog_info info;
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_id = id;
	fd = syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &attr, sizeof(attr));
	if (fd < 0)
		return 0;
	memset(&attr, 0, sizeof(attr));
	memset(&info, 0, sizeof(info));
	attr.info.bpf_fd = fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (unsigned long)&info;
	must(syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)),
	     "BPF_OBJ_GET_INFO_BY_FD");
	close(fd);
	printf("%s\t%u\t%llu\t%llu\n", info.name, id, (unsigned long long)info.run_time_ns,
	       (unsigned long long)info.run_cnt);
	return 1;
}

static int print_programs(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	while (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attr, sizeof(attr)) == 0) {
		__u32 id = attr.next_id;

		print_program(id);
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
	}
	must(errno != ENOENT, "BPF_PROG_GET_NEXT_ID");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "cost")) {
		prepare(argv[2]);
		print_costs();
		return 0;
	}
	if (argc == 5 && !strcmp(argv[1], "repeat")) {
		prepare(argv[3]);
		return repeat(atol(argv[2]), argv[4]);
	}
	if (argc == 2 && !strcmp(argv[1], "programs"))
		return print_programs();
	fprintf(stderr, "usage: unselected cost DIR | repeat N DIR ACT | programs\n");
	return 2;
}
