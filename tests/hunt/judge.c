/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what two logs have of the same calls. */
#include "hunt.h"

#define IDENTITY_BYTES 160

struct list {
	char (*calls)[IDENTITY_BYTES];
	size_t count, size;
};

static void add(struct list *list, const char *identity)
{
	if (list->count == list->size) {
		list->size = list->size ? 2 * list->size : 1024;
		list->calls = realloc(list->calls, list->size * IDENTITY_BYTES);
		if (!list->calls)
			die("no memory");
	}
	snprintf(list->calls[list->count++], IDENTITY_BYTES, "%s", identity);
}

static int compare(const void *one, const void *other)
{
	return strcmp(one, other);
}

/* Losses that a log tells. */
static long losses(const char *line)
{
	const char *lost = strstr(line, " op=events-lost-in-all ") ? strstr(line, " lost=") : NULL;

	return lost ? atol(lost + 6) : 0;
}

/* Calls that rules selected in a RAW log, sorted; returns the losses. */
static long read_log(const char *path, struct list *list)
{
	FILE *file = fopen(path, "r");
	char *line = NULL, identity[IDENTITY_BYTES];
	size_t size = 0;
	long lost = 0;

	if (!file)
		die("%s: %s", path, strerror(errno));
	while (getline(&line, &size, file) > 0) {
		const char *syscall = strstr(line, " syscall="), *args = strstr(line, " a0=");
		const char *pid = strstr(line, " pid=");
		unsigned long a[4];

		if (!strncmp(line, "type=DAEMON_ERR ", 16))
			lost += losses(line);
		/* Records that the kernel makes without a rule have no key, and come with the call. */
		if (strncmp(line, "type=SYSCALL ", 13) || !strstr(line, " key=\"rule-") || !syscall || !args || !pid ||
		    sscanf(args, " a0=%lx a1=%lx a2=%lx a3=%lx", a, a + 1, a + 2, a + 3) != 4)
			continue;
		snprintf(identity, sizeof(identity), "%ld %ld %lx %lx %lx %lx ", atol(pid + 5),
			 atol(syscall + 9), a[0], a[1], a[2], a[3]);
		add(list, identity);
	}
	fclose(file);
	qsort(list->calls, list->count, IDENTITY_BYTES, compare);
	return lost;
}

/* What the call was, as the scene printed it. */
static void print_call(const char *path, const char *identity)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t size = 0, length = strlen(identity);
	bool is_found = false;

	while (file && !is_found && getline(&line, &size, file) > 0)
		is_found = !strncmp(line, identity, length);
	printf("MISS %s%s", identity, is_found ? line + length : "(not of a scene)\n");
	if (file)
		fclose(file);
	free(line);
}

int judge(const char *kernel_log, const char *log, const char *calls)
{
	struct list kernel = { 0 }, ours = { 0 };
	size_t misses = 0, extra = 0, i = 0, j = 0;
	long lost;

	read_log(kernel_log, &kernel);
	lost = read_log(log, &ours);
	while (i < kernel.count || j < ours.count) {
		int order = i == kernel.count  ? 1
			    : j == ours.count ? -1
					      : strcmp(kernel.calls[i], ours.calls[j]);

		if (order < 0) {
			misses++;
			print_call(calls, kernel.calls[i]);
		} else if (order > 0) {
			extra++;
		}
		i += order <= 0;
		j += order >= 0;
	}
	printf("seed %llu: %zu calls in the kernel's log, %zu here, %zu missed, %ld lost, %zu more\n",
	       (unsigned long long)plan.seed, kernel.count, ours.count, misses, lost, extra);
	if (!kernel.count)
		printf("the kernel's log has no call\n");
	return !kernel.count || (misses && (long)misses > lost);
}
