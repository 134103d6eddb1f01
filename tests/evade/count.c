/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what a RAW log has of each key, and what it says was lost of each rule. Tags: see made_tagged(). */
#include "evade.h"

#define RULES_MAX 1024
#define KEY_BYTES_MAX 64

/* The key of each rule, in the order of the file: losses are told by place. */
static char keys[RULES_MAX][KEY_BYTES_MAX];
static long recorded[RULES_MAX], lost[RULES_MAX];
static int rules;
/* Tags of the calls that a technique made and that were not yet found; NULL if they have none. */
static bool *tags[RULES_MAX];

static void read_rules(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL, *key;
	size_t size = 0;

	if (!file) {
		perror(path);
		exit(1);
	}
	while (getline(&line, &size, file) > 0) {
		if (line[0] != '-')
			continue;
		key = strstr(line, " -k ");
		if (rules == RULES_MAX || !key || sscanf(key + 4, "%63s", keys[rules]) != 1) {
			fprintf(stderr, "evade: %s: a rule without key, or more than %d\n", path,
				RULES_MAX);
			exit(1);
		}
		rules++;
	}
	fclose(file);
}

/* The first rule with this key; -1 if there is none. */
static int rule_of(const char *key)
{
	for (int i = 0; i < rules; i++)
		if (!strcmp(keys[i], key))
			return i;
	return -1;
}

/* Reads `NAME made COUNT TAG…` of techniques that have tags. */
static void read_tags(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL, name[KEY_BYTES_MAX];
	size_t size = 0;

	if (!file) {
		perror(path);
		exit(1);
	}
	while (getline(&line, &size, file) > 0) {
		int length = 0, rule;
		char *at;

		if (sscanf(line, "%63s made %*d%n", name, &length) != 1 || line[length] != ' ')
			continue;
		rule = rule_of(name);
		if (rule < 0)
			continue;
		tags[rule] = calloc(TAGS_MAX, sizeof(bool));
		for (at = line + length; *at == ' ';) {
			unsigned long tag = strtoul(at + 1, &at, 10);

			if (tags[rule] && tag < TAGS_MAX)
				tags[rule][tag] = true;
		}
	}
	fclose(file);
}

/* Whether the event is one of the calls that are looked for; it is no longer looked for then. */
static bool is_wanted(bool *wanted, const char *line)
{
	const char *arguments = strstr(line, " a0=");
	unsigned long a0, a1;

	if (!arguments || sscanf(arguments, " a0=%lx a1=%lx", &a0, &a1) != 2)
		return false;
	if (a0 > UINT32_MAX)
		a0 = a1;
	if (a0 >= TAGS_MAX || !wanted[a0])
		return false;
	wanted[a0] = false;
	return true;
}

/* Adds an event to the count of its key. */
static void count_event(const char *line)
{
	const char *key = strstr(line, " key=\"");
	char name[KEY_BYTES_MAX];
	int rule;

	if (!key || sscanf(key + 6, "%63[^\"]", name) != 1)
		return;
	rule = rule_of(name);
	if (rule >= 0 && (!tags[rule] || is_wanted(tags[rule], line)))
		recorded[rule]++;
}

/* Adds up `rule=PLACE:COUNT,…`, where the first place is 1. */
static void count_losses(const char *line)
{
	const char *at = strstr(line, " rule=");
	int place, length;
	long count;

	for (at = at ? at + 6 : NULL; at && sscanf(at, "%d:%ld%n", &place, &count, &length) == 2;
	     at += length + 1) {
		if (place >= 1 && place <= rules)
			lost[rule_of(keys[place - 1])] += count;
		if (at[length] != ',')
			break;
	}
}

int count_main(const char *rules_path, const char *log_path, const char *made_path)
{
	FILE *log = fopen(log_path, "r");
	char *line = NULL;
	size_t size = 0;

	read_rules(rules_path);
	read_tags(made_path);
	if (!log) {
		perror(log_path);
		return 1;
	}
	while (getline(&line, &size, log) > 0) {
		/* The result of an operation that was recorded as pending is not another one. */
		if (strstr(line, " result_of="))
			continue;
		if (!strncmp(line, "type=SYSCALL ", 13) || !strncmp(line, "type=URINGOP ", 13))
			count_event(line);
		else if (!strncmp(line, "type=DAEMON_ERR ", 16) &&
			 strstr(line, " op=events-lost-in-all "))
			count_losses(line);
	}
	for (int i = 0; i < rules; i++)
		if (rule_of(keys[i]) == i)
			printf("%s %ld %ld\n", keys[i], recorded[i], lost[i]);
	return 0;
}
