/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what two logs have of the same calls. */
#include "hunt.h"

#define IDENTITY_BYTES 160

/* A call as a log has it: process, number and registers, and the number of the rule that selected it. */
struct selected {
	char identity[IDENTITY_BYTES];
	int rule;
};

struct list {
	struct selected *calls;
	size_t count, size;
};

static struct selected *add(struct list *list)
{
	if (list->count == list->size) {
		list->size = list->size ? 2 * list->size : 1024;
		list->calls = realloc(list->calls, list->size * sizeof(*list->calls));
		if (!list->calls)
			die("no memory");
	}
	return &list->calls[list->count++];
}

static int compare(const void *one, const void *other)
{
	return strcmp(((const struct selected *)one)->identity,
		      ((const struct selected *)other)->identity);
}

/* Losses that a log tells. */
static long losses(const char *line)
{
	const char *lost = strstr(line, " op=events-lost-in-all ") ? strstr(line, " lost=") : NULL;

	return lost ? atol(lost + 6) : 0;
}

/* Adds an event of a rule: `PID NR A0 A1 A2 A3`, or `PID operation CODE`. */
static void add_event(struct list *list, const char *line)
{
	const char *syscall = strstr(line, " syscall="), *operation = strstr(line, " uring_op=");
	const char *pid = strstr(line, " pid="), *key = strstr(line, " key=\"rule-");
	const char *args = strstr(line, " a0=");
	struct selected call = { 0 };
	unsigned long a[4];

	/* Where the kernel has no event of an operation, its names are in that of the call that submitted it. */
	if (!pid || !key || strstr(line, " syscall=426 "))
		return;
	call.rule = atoi(key + strlen(" key=\"rule-"));
	if (operation)
		snprintf(call.identity, sizeof(call.identity), "%ld operation %ld ", atol(pid + 5),
			 atol(operation + strlen(" uring_op=")));
	else if (syscall && args &&
		 sscanf(args, " a0=%lx a1=%lx a2=%lx a3=%lx", a, a + 1, a + 2, a + 3) == 4)
		snprintf(call.identity, sizeof(call.identity), "%ld %ld %lx %lx %lx %lx ",
			 atol(pid + 5), atol(syscall + strlen(" syscall=")), a[0], a[1], a[2],
			 a[3]);
	else
		return;
	*add(list) = call;
}

/* An operation has an event for each attempt in the kernel's log: one is left. */
static void drop_attempts(struct list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct selected *call = &list->calls[i];

		if (kept && strstr(call->identity, " operation ") &&
		    !compare(call, &list->calls[kept - 1]))
			continue;
		list->calls[kept++] = *call;
	}
	list->count = kept;
}

/* Calls that rules selected in a RAW log, sorted; returns the losses. */
static long read_log(const char *path, struct list *list)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t size = 0;
	long lost = 0;

	if (!file)
		die("%s: %s", path, strerror(errno));
	while (getline(&line, &size, file) > 0) {
		if (!strncmp(line, "type=DAEMON_ERR ", 16))
			lost += losses(line);
		/* Records that the kernel makes without a rule have no key, and come with the call. */
		if (!strncmp(line, "type=SYSCALL ", 13) || !strncmp(line, "type=URINGOP ", 13))
			add_event(list, line);
	}
	fclose(file);
	qsort(list->calls, list->count, sizeof(*list->calls), compare);
	drop_attempts(list);
	return lost;
}

/* What the call was, as the scene printed it, and the rule that selected it in the kernel. */
static void print_miss(const char *calls, const struct selected *call, const char *rule)
{
	FILE *file = fopen(calls, "r");
	char *line = NULL;
	size_t size = 0, length = strlen(call->identity);
	bool is_found = false;

	while (file && !is_found && getline(&line, &size, file) > 0)
		is_found = !strncmp(line, call->identity, length);
	printf("MISS %s%s     by %s", call->identity,
	       is_found ? line + length : "(not of a scene)\n", rule);
	if (file)
		fclose(file);
	free(line);
}

#define RULES_MAX 64
static char *rules[RULES_MAX];

static void read_rules(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t size = 0;
	int count = 0;

	if (!file)
		die("%s: %s", path, strerror(errno));
	while (count < RULES_MAX && getline(&rules[count], &size, file) > 0) {
		count++;
		size = 0;
	}
	fclose(file);
}

static const char *rule_of(const struct selected *call)
{
	return call->rule < RULES_MAX && rules[call->rule] ? rules[call->rule] : "no rule\n";
}

/* Compares two sorted lists; what the first alone has is missed. */
static size_t print_misses(const struct list *kernel, const struct list *ours, const char *calls,
			   size_t *extra)
{
	size_t misses = 0, i = 0, j = 0;

	while (i < kernel->count || j < ours->count) {
		int order = i == kernel->count ? 1
			    : j == ours->count ? -1
					       : compare(&kernel->calls[i], &ours->calls[j]);

		if (order < 0) {
			misses++;
			print_miss(calls, &kernel->calls[i], rule_of(&kernel->calls[i]));
		}
		*extra += order > 0;
		i += order <= 0;
		j += order >= 0;
	}
	return misses;
}

int judge(const char *work)
{
	struct list kernel = { 0 }, ours = { 0 };
	char path[PATH_BYTES];
	size_t misses, extra = 0;
	long lost;

#define IN_WORK(name) (snprintf(path, sizeof(path), "%s/" name, work), path)
	read_rules(IN_WORK("rules"));
	read_log(IN_WORK("kernel"), &kernel);
	lost = read_log(IN_WORK("log"), &ours);
	misses = print_misses(&kernel, &ours, IN_WORK("calls"), &extra);
	printf("seed %llu: %zu calls in the kernel's log, %zu here, %zu missed, %ld lost, %zu more\n",
	       (unsigned long long)plan.seed, kernel.count, ours.count, misses, lost, extra);
	return misses && (long)misses > lost;
}
