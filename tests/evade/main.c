/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Techniques of an attacker who knows how calls are recorded.
 *
 *   evade list                   prints the names of all techniques
 *   evade rules DIR <RULES       prints the rules with DIR and the group of each technique filled in
 *   evade prepare DIR            mounts a tmpfs at DIR, with what must be there before the rules are loaded
 *   evade make DIR NAME…|all     uses the techniques; prints `NAME made COUNT`, `NAME skipped REASON` or
 *                                `NAME failed REASON` for each; after COUNT come the calls' tags, if they have any
 *   evade count RULES LOG MADE   prints `NAME RECORDED LOST` for each key in RULES; MADE is what make printed
 *   evade clean DIR              unmounts all at and below DIR
 *   evade refuse32 COMMAND…      runs COMMAND under a seccomp filter that refuses 32-bit entry
 */
#include "evade.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Seconds that a technique may take, on an emulated processor. */
#define LIMIT_S 180
#define NAME_BYTES_MAX 64

static const struct technique *const tables[] = {
	number_techniques, exec_techniques,   chain_techniques, exe_techniques,	  path_techniques,
	tree_techniques,   memory_techniques, flip_techniques,	trace_techniques, ring_techniques,
	flood_techniques,  claim_techniques,  reach_techniques, later_techniques, handed_techniques,
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

/* What the process of a technique tells. */
static struct report {
	_Atomic long made;
	enum {
		RUNNING,
		DONE,
		SKIPPED,
		FAILED
	} state;
	char reason[256];
	bool tags[TAGS_MAX];
} * report;

char top[PATH_MAX / 4];
char home[PATH_MAX / 2];
gid_t group;

void made(long calls)
{
	report->made += calls;
}

long made_so_far(void)
{
	return report->made;
}

void made_tagged(unsigned tag)
{
	if (tag >= TAGS_MAX || report->tags[tag])
		fail("tag %u is used, or above %d", tag, TAGS_MAX);
	report->tags[tag] = true;
	report->made++;
}

static void end(int state, const char *format, va_list arguments)
{
	report->state = state;
	vsnprintf(report->reason, sizeof(report->reason), format, arguments);
}

void skip(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	end(SKIPPED, format, arguments);
	_exit(1);
}

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	end(FAILED, format, arguments);
	_exit(1);
}

/* The technique with this name, with its group; NULL if there is none. */
static const struct technique *find(const char *name, gid_t *gid)
{
	*gid = GID_FIRST;
	for (size_t i = 0; i < TABLES; i++)
		for (const struct technique *each = tables[i]; each->name; each++, ++*gid)
			if (!strcmp(each->name, name))
				return each;
	return NULL;
}

/* Goes to the directory of a technique. */
static void enter(const struct technique *technique)
{
	snprintf(home, sizeof(home), "%s/%s", top, technique->name);
	find(technique->name, &group);
	if (chdir(home))
		fail("chdir %s: %s (run `evade prepare` first)", home, strerror(errno));
}

/* Runs a step of a technique in a process group of its own, all of which is ended with it. */
static void run_apart(const struct technique *technique, bool is_preparation)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		alarm(LIMIT_S);
		enter(technique);
		if (!is_preparation)
			technique->run(technique->count);
		else if (technique->prepare)
			technique->prepare();
		report->state = DONE;
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("evade: fork");
		exit(1);
	}
	kill(-pid, SIGKILL);
	if (report->state != RUNNING)
		return;
	report->state = FAILED;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(report->reason, sizeof(report->reason), "not done after %d s", LIMIT_S);
	else
		snprintf(report->reason, sizeof(report->reason), "wait status %#x", status);
}

static bool make(const struct technique *technique)
{
	memset(report, 0, sizeof(*report));
	run_apart(technique, false);
	switch (report->state) {
	case DONE:
		printf("%s made %ld", technique->name, (long)report->made);
		for (unsigned tag = 0; tag < TAGS_MAX; tag++)
			if (report->tags[tag])
				printf(" %u", tag);
		putchar('\n');
		break;
	case SKIPPED:
		printf("%s skipped %s\n", technique->name, report->reason);
		break;
	default:
		printf("%s failed %s\n", technique->name, report->reason);
	}
	fflush(stdout);
	return report->state != FAILED;
}

static int make_main(char **names)
{
	bool is_right = true;
	gid_t gid;

	for (; *names; names++) {
		const struct technique *technique = find(*names, &gid);

		if (!strcmp(*names, "all")) {
			for (size_t i = 0; i < TABLES; i++)
				for (technique = tables[i]; technique->name; technique++)
					is_right &= make(technique);
		} else if (technique) {
			is_right &= make(technique);
		} else {
			fprintf(stderr, "evade: no technique '%s'; `evade list` names them\n",
				*names);
			return 2;
		}
	}
	return is_right ? 0 : 1;
}

static int prepare_main(void)
{
	if ((mkdir(top, 0755) && errno != EEXIST) || mount("evade", top, "tmpfs", 0, "mode=0755") ||
	    chdir(top)) {
		fprintf(stderr, "evade: a tmpfs at %s: %s\n", top, strerror(errno));
		return 1;
	}
	/* Mounts that techniques make in this namespace shall not reach others. */
	mount(NULL, top, NULL, MS_PRIVATE, NULL);
	copy_program("evade");
	for (size_t i = 0; i < TABLES; i++)
		for (const struct technique *each = tables[i]; each->name; each++) {
			memset(report, 0, sizeof(*report));
			mkdir(each->name, 0755);
			run_apart(each, true);
			/* What is not possible here is told when the technique runs. */
			if (report->state == FAILED) {
				fprintf(stderr, "evade: preparing %s: %s\n", each->name,
					report->reason);
				return 1;
			}
		}
	return 0;
}

/* Unmounts the deepest mounts first: those that /proc/self/mounts names last. */
static int clean_main(void)
{
	char line[PATH_MAX * 2], last[PATH_MAX] = "", at[PATH_MAX];
	size_t length = strlen(top);

	do {
		FILE *mounts = fopen("/proc/self/mounts", "r");

		last[0] = 0;
		while (mounts && fgets(line, sizeof(line), mounts))
			if (sscanf(line, "%*s %4095s", at) == 1 && !strncmp(at, top, length) &&
			    (!at[length] || at[length] == '/'))
				strcpy(last, at);
		if (mounts)
			fclose(mounts);
		if (last[0] && umount2(last, MNT_DETACH)) {
			fprintf(stderr, "evade: unmounting %s: %s\n", last, strerror(errno));
			return 1;
		}
	} while (last[0]);
	rmdir(top);
	return 0;
}

/* Writes a rule with the place holders filled in. False if its key names no technique. */
static bool print_rule(char *line)
{
	char *key = strstr(line, " -k "), name[NAME_BYTES_MAX];
	gid_t gid;

	if (!key || sscanf(key + 4, "%63s", name) != 1 || !find(name, &gid))
		return false;
	while (*line) {
		if (!strncmp(line, "@DIR@", 5)) {
			printf("%s/%s", top, name);
			line += 5;
		} else if (!strncmp(line, "@GID@", 5)) {
			printf("%u", gid);
			line += 5;
		} else {
			putchar(*line++);
		}
	}
	return true;
}

static int rules_main(void)
{
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0)
		if (line[0] == '-' && !print_rule(line)) {
			fprintf(stderr, "evade: no technique has the key of: %s", line);
			return 1;
		}
	return 0;
}

static int list_main(void)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct technique *each = tables[i]; each->name; each++)
			printf("%s\n", each->name);
	return 0;
}

static int refuse32_main(char **command)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog fprog = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog)) {
		perror("evade: seccomp");
		return 1;
	}
	execvp(command[0], command);
	perror(command[0]);
	return 127;
}

/* What DIR/NAME/prog does: `act COUNT [PAUSE_US]`; `start PROGRAM COUNT` lets a child of its own act. */
static int act_main(int count, useconds_t pause_us)
{
	for (int i = 0; i < count; i++) {
		syscall(SYS_getppid);
		if (pause_us)
			usleep(pause_us);
	}
	return 0;
}

static int start_main(char **argv)
{
	char *act[] = { argv[2], "act", argv[3], NULL }, *envp[] = { NULL };
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execve(argv[2], act, envp);
		_exit(127);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc >= 3 && !strcmp(what, "act"))
		return act_main(atoi(argv[2]), argc >= 4 ? atoi(argv[3]) : 0);
	if (argc == 4 && !strcmp(what, "start"))
		return start_main(argv);
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (report == MAP_FAILED) {
		perror("evade: mmap");
		return 1;
	}
	if (argc >= 3)
		snprintf(top, sizeof(top), "%s", argv[2]);
	if (argc == 2 && !strcmp(what, "list"))
		return list_main();
	if (argc == 3 && !strcmp(what, "rules"))
		return rules_main();
	if (argc == 3 && !strcmp(what, "prepare"))
		return prepare_main();
	if (argc == 3 && !strcmp(what, "clean"))
		return clean_main();
	if (argc >= 4 && !strcmp(what, "make"))
		return make_main(argv + 3);
	if (argc == 5 && !strcmp(what, "count"))
		return count_main(argv[2], argv[3], argv[4]);
	if (argc >= 3 && !strcmp(what, "refuse32"))
		return refuse32_main(argv + 2);
	fprintf(stderr, "usage: evade list | rules DIR <RULES | prepare DIR | make DIR NAME…|all | "
			"count RULES LOG MADE | clean DIR | refuse32 COMMAND…\n");
	return 2;
}
