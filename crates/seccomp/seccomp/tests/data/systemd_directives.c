/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints systemd-directives.hex: the filters that systemd's own functions make for single
 * directives. No filter is installed: seccomp_load() is ours here, and exports the program.
 *
 *     gcc -rdynamic -I INCLUDE systemd_directives.c -o d LIBSECCOMP.so.2 && ./d LIBSYSTEMD-SHARED.so
 *
 * The committed file is of systemd 252.38 and libseccomp 2.5.4 (Debian 12) on x86-64.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <seccomp.h>

static void *library;

int seccomp_load(const scmp_filter_ctx context)
{
	unsigned char insn[8];
	FILE *file = tmpfile();

	if (!file || seccomp_export_bpf(context, fileno(file)))
		abort();
	rewind(file);
	puts("filter");
	while (fread(insn, 1, 8, file) == 8) {
		for (int i = 0; i < 8; i++)
			printf("%02x", insn[i]);
		puts("");
	}
	fclose(file);
	return 0;
}

static void *function(const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return symbol;
}

/* A Set of systemd's, of numbers. */
static void *set_of(const int *values)
{
	void *(*new)(const void *) = function("_set_new");
	int (*put)(void *, const void *) = function("set_put");
	void *set = new (NULL);

	for (; *values; values++)
		put(set, (void *)(long)*values);
	return set;
}

static void plain(const char *directive, const char *name)
{
	int (*apply)(void) = function(name);

	printf("unit %s\n", directive);
	apply();
}

static void families(const char *directive, const int *values, bool allow)
{
	int (*apply)(void *, bool) = function("seccomp_restrict_address_families");

	printf("unit %s\n", directive);
	apply(set_of(values), allow);
}

int main(int argc, char **argv)
{
	int (*number)(unsigned long);
	int (*realtime)(int);
	int (*archs)(void *);

	library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!library) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "give libsystemd-shared");
		return 1;
	}
	plain("MemoryDenyWriteExecute=yes", "seccomp_memory_deny_write_execute");
	plain("RestrictSUIDSGID=yes", "seccomp_restrict_suid_sgid");
	plain("ProtectKernelTunables=yes", "seccomp_protect_sysctl");
	plain("ProtectKernelLogs=yes", "seccomp_protect_syslog");
	plain("ProtectHostname=yes", "seccomp_protect_hostname");
	number = function("seccomp_lock_personality");
	puts("unit LockPersonality=yes");
	number(0);
	number = function("seccomp_restrict_namespaces");
	puts("unit RestrictNamespaces=yes");
	number(0);
	puts("unit RestrictNamespaces=cgroup ipc mnt pid uts time");
	number((0x7e020000 | 0x80) & ~(0x10000000 | 0x40000000));
	realtime = function("seccomp_restrict_realtime_full");
	puts("unit RestrictRealtime=yes");
	realtime(1);
	families("RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6", (int[]){ 1, 2, 10, 0 }, true);
	families("RestrictAddressFamilies=none", (int[]){ 0 }, true);
	families("RestrictAddressFamilies=~AF_PACKET AF_NETLINK", (int[]){ 17, 16, 0 }, false);
	archs = function("seccomp_restrict_archs");
	puts("unit SystemCallArchitectures=native");
	archs(set_of((int[]){ 0 }));
	return 0;
}
