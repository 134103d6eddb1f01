/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs, files and cgroups that claim to be those of a `never` rule or of `!=`, so that their calls are left out:
 * by mounts in a namespace of their own, which anybody can make, or by names that look the same.
 */
#include "evade.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#define CALLS 4

static void new_mounts(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		skip("no user namespaces: %s", strerror(errno));
}

/* Runs `body` so many times in a child, which makes `calls` selected calls. */
static void in_children(int count, void (*body)(void *), void *argument, int calls)
{
	for (int i = 0; i < count; i++) {
		in_child(body, argument);
		made(calls);
	}
}

static void prepare_trusted(void)
{
	make_dir("trusted");
	copy_program("trusted/agent");
}

static void put_own_agent(const char *directory)
{
	char path[NAME_MAX * 2];

	make_dir(directory);
	snprintf(path, sizeof(path), "%s/agent", directory);
	copy_program(path);
}

static void run_over_file(void *unused)
{
	(void)unused;
	select_calls();
	new_mounts();
	mount_or_skip("own/agent", "trusted/agent", NULL, MS_BIND, NULL);
	execute("trusted/agent", CALLS);
}

static void claim_bind_file(int count)
{
	put_own_agent("own");
	in_children(count, run_over_file, NULL, CALLS);
}

static void run_over_directory(void *unused)
{
	(void)unused;
	select_calls();
	new_mounts();
	mount_or_skip("own", "trusted", NULL, MS_BIND, NULL);
	execute("trusted/agent", CALLS);
}

static void claim_bind_directory(int count)
{
	put_own_agent("own");
	in_children(count, run_over_directory, NULL, CALLS);
}

static void run_in_own_root(void *path)
{
	expect("chroot", chroot(path), 0);
	expect("chdir", chdir("/"), 0);
	select_calls();
	execute("trusted/agent", CALLS);
}

/* The program is at the rule's path below a root directory of its own. */
static void claim_chroot(int count)
{
	char path[PATH_MAX * 2] = "root", *end = path + strlen(path);

	make_dir(path);
	for (const char *name = home; *name; name++) {
		if (*name == '/' && name > home)
			make_dir(path);
		*end++ = *name;
		*end = 0;
	}
	make_dir(path);
	strcpy(end, "/trusted");
	put_own_agent(path);
	*end = 0;
	in_children(count, run_in_own_root, path, CALLS);
}

/* The ancestor is at the path of the rule, and starts another program, which makes the calls. */
static void start_from_claimed(void *unused)
{
	char *argv[] = { "trusted/agent", "start", "own/child", "4", NULL }, *envp[] = { NULL };

	(void)unused;
	select_calls();
	new_mounts();
	mount_or_skip("own/agent", "trusted/agent", NULL, MS_BIND, NULL);
	execve(argv[0], argv, envp);
	fail("execve: %s", strerror(errno));
}

static void claim_ancestor(int count)
{
	put_own_agent("own");
	copy_program("own/child");
	in_children(count, start_from_claimed, NULL, CALLS);
}

/*
 * A name of a directory with the hash of another name. The hash of a name of at most 31 bytes takes four words in
 * turn, and each step of it can be undone: with any first three words, one last word leads to the wanted hash.
 */
#define FACTOR 0x9E3779B97F4A7C15ULL
#define WORDS 4
#define COLLIDING_BYTES (8 * WORDS - 1)

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * FACTOR;
	return hash ^ hash >> 29;
}

/* Undoes mix(), but for the last exclusive or with the word. */
static uint64_t unmix(uint64_t hash)
{
	uint64_t inverse = FACTOR;

	hash ^= hash >> 29 ^ hash >> 58;
	for (int i = 0; i < 5; i++)
		inverse *= 2 - FACTOR * inverse;
	return hash * inverse;
}

static uint64_t hash_of(const char *name, int words)
{
	char bytes[8 * WORDS] = { 0 };
	uint64_t word, hash = mix(1, strlen(name));

	memcpy(bytes, name, strlen(name));
	for (int i = 0; i < words; i++) {
		memcpy(&word, bytes + 8 * i, sizeof(word));
		hash = mix(hash, word);
	}
	return hash;
}

/* Whether the word ends a name: seven bytes that may be there, then the zero. */
static bool ends_name(uint64_t word)
{
	const unsigned char *bytes = (void *)&word;

	for (int i = 0; i < 7; i++)
		if (bytes[i] <= ' ' || bytes[i] > '~' || bytes[i] == '/')
			return false;
	return bytes[7] == 0;
}

static void find_same_hash(const char *wanted, char *name)
{
	uint64_t target = unmix(hash_of(wanted, WORDS) | 1), last;

	for (uint64_t i = 0;; i++) {
		snprintf(name, COLLIDING_BYTES + 1, "looks-like-%013llu-------",
			 (unsigned long long)i);
		last = hash_of(name, WORDS - 1) ^ target;
		if (ends_name(last))
			break;
	}
	memcpy(name + COLLIDING_BYTES - 7, &last, 8);
}

static void execute_selected(void *path)
{
	select_calls();
	execute(path, CALLS);
}

static void claim_same_hash(int count)
{
	char name[COLLIDING_BYTES + 1], path[64];

	find_same_hash("trusted", name);
	if (strlen(name) != COLLIDING_BYTES ||
	    (hash_of(name, WORDS) | 1) != (hash_of("trusted", WORDS) | 1))
		fail("'%s' has another hash than 'trusted'", name);
	put_own_agent(name);
	snprintf(path, sizeof(path), "%s/agent", name);
	in_children(count, execute_selected, path, CALLS);
}

static void prepare_two(void)
{
	copy_program("agent");
	copy_program("other");
}

static void run_as_other(void *unused)
{
	(void)unused;
	select_calls();
	new_mounts();
	mount_or_skip("own/other", "other", NULL, MS_BIND, NULL);
	execute("other", CALLS);
}

/* Another name of one rule's program, at the path of the other rule's. */
static void claim_other_name(int count)
{
	make_dir("own");
	expect("link", link("agent", "own/other"), 0);
	in_children(count, run_as_other, NULL, CALLS);
}

/* The program that is both rules', by its two names: the first rule counts, whatever name it is run by. */
static void prepare_linked(void)
{
	copy_program("agent");
	expect("link", link("agent", "other"), 0);
}

static void claim_both_names(int count)
{
	in_children(count, execute_selected, "other", CALLS);
	in_children(count, execute_selected, "agent", CALLS);
}

static void prepare_noisy(void)
{
	make_dir("noisy");
	make_dir("noisy/sub");
	write_file("noisy/file", "text", 0600);
	make_dir("secret");
	write_file("secret/file", "text", 0600);
}

static void open_file(const char *path)
{
	expect("openat", syscall(SYS_openat, AT_FDCWD, path, O_RDONLY) >= 0, true);
	expect("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, path, 0600), 0);
}

static void open_below(void *unused)
{
	(void)unused;
	select_calls();
	new_mounts();
	mount_or_skip("secret", "noisy/sub", NULL, MS_BIND, NULL);
	open_file("noisy/sub/file");
}

static void claim_mount_below(int count)
{
	in_children(count, open_below, NULL, 2);
}

static void open_over(void *unused)
{
	(void)unused;
	select_calls();
	new_mounts();
	mount_or_skip("secret", "noisy", NULL, MS_BIND, NULL);
	open_file("noisy/file");
}

static void claim_mount_over(int count)
{
	in_children(count, open_over, NULL, 2);
}

static void open_over_file(void *unused)
{
	(void)unused;
	select_calls();
	new_mounts();
	mount_or_skip("secret/file", "noisy/file", NULL, MS_BIND, NULL);
	open_file("noisy/file");
}

static void claim_mount_over_file(int count)
{
	in_children(count, open_over_file, NULL, 2);
}

/* Another file has the name below a root directory of its own. */
static void open_in_own_root(void *unused)
{
	(void)unused;
	expect("chroot", chroot("root"), 0);
	expect("chdir", chdir("/"), 0);
	select_calls();
	open_file("/noisy/file");
}

static void claim_file_in_chroot(int count)
{
	make_dir("root");
	make_dir("root/noisy");
	write_file("root/noisy/file", "text", 0600);
	in_children(count, open_in_own_root, NULL, 2);
}

/* What the rule is about is left out, and nothing else. */
static void claim_nothing(int count)
{
	for (int i = 0; i < count; i++) {
		select_calls();
		syscall(SYS_openat, AT_FDCWD, "noisy/file", O_RDONLY);
		syscall(SYS_openat, AT_FDCWD, "secret/file", O_RDONLY);
		unselect_calls();
		made(1);
	}
}

#define CONTAINER_ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_ID "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void prepare_cgroups(void)
{
	make_dir("cgroup");
	mount_or_skip("evade", "cgroup", "cgroup2", 0, NULL);
}

static void call_in_container(void *procs)
{
	write_file(procs, "0", 0644);
	select_calls();
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
}

/* Makes calls in a cgroup that has the name of a container's, in a cgroup that belongs to this user. */
static void claim_in(const char *above, unsigned int owner, const char *id, int count)
{
	char path[NAME_MAX * 2], procs[NAME_MAX * 2 + 16];

	need_mounted("cgroup/cgroup.procs", "cgroup2");
	make_dir("cgroup/evade.slice");
	make_dir(above);
	expect("chown", chown(above, owner, -1), 0);
	snprintf(path, sizeof(path), "%s/docker-%s.scope", above, id);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	for (int i = 0; i < count; i++) {
		make_dir(path);
		in_children(1, call_in_container, procs, CALLS);
		expect("rmdir", rmdir(path), 0);
	}
	expect("rmdir", rmdir(above), 0);
	rmdir("cgroup/evade.slice");
}

/* A user's own cgroups, below that of his manager, may have the names that containers have. */
static void claim_container(int count)
{
	claim_in("cgroup/evade.slice/user@1234.service", 1234, CONTAINER_ID, count);
}

/* Root of a container may name what is in it as another container. */
static void claim_in_container(int count)
{
	claim_in("cgroup/evade.slice/docker-" CONTAINER_ID ".scope", 0, OTHER_ID, count);
}

const struct technique claim_techniques[] = {
	{ "never-exe-bind-file", claim_bind_file, 3, prepare_trusted },
	{ "never-exe-bind-directory", claim_bind_directory, 3, prepare_trusted },
	{ "never-exe-chroot", claim_chroot, 3, prepare_trusted },
	{ "never-exe-same-hash", claim_same_hash, 3, prepare_trusted },
	{ "exe-not-bind-file", claim_bind_file, 3, prepare_trusted },
	{ "exe-not-bind-directory", claim_bind_directory, 3, prepare_trusted },
	{ "exe-not-same-hash", claim_same_hash, 3, prepare_trusted },
	{ "ancestor-not-bind-file", claim_ancestor, 3, prepare_trusted },
	{ "never-ancestor-bind-file", claim_ancestor, 3, prepare_trusted },
	{ "exe-hard-link-bound", claim_other_name, 3, prepare_two },
	{ "exe-two-names", claim_both_names, 3, prepare_linked },
	{ "never-dir-mount-below", claim_mount_below, 3, prepare_noisy },
	{ "never-dir-mount-over", claim_mount_over, 3, prepare_noisy },
	{ "never-path-mount-over", claim_mount_over_file, 3, prepare_noisy },
	{ "never-path-chroot", claim_file_in_chroot, 3, prepare_noisy },
	{ "never-path-in-place", claim_nothing, 3, prepare_noisy },
	{ "never-container", claim_container, 3, prepare_cgroups },
	{ "container-none", claim_container, 3, prepare_cgroups },
	{ "container-inside", claim_in_container, 3, prepare_cgroups },
	{ 0 },
};
