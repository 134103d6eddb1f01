/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what a RAW log has of each key, and what it says was lost of each rule. */
#include "evade.h"

#define RULES_MAX 1024
#define KEY_BYTES_MAX 64

/* The key of each rule, in the order of the file: losses are told by place. */
static char keys[RULES_MAX][KEY_BYTES_MAX];
static long recorded[RULES_MAX], lost[RULES_MAX];
static int rules;

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

/* The first rule with the key of rule `at`. */
static int first_with_key(int at)
{
	for (int i = 0; i < at; i++)
		if (!strcmp(keys[i], keys[at]))
			return i;
	return at;
}

/* Adds an event to the count of its key. */
static void count_event(const char *line)
{
	const char *key = strstr(line, " key=\"");
	char name[KEY_BYTES_MAX];

	if (!key || sscanf(key + 6, "%63[^\"]", name) != 1)
		return;
	for (int i = 0; i < rules; i++)
		if (!strcmp(keys[i], name)) {
			recorded[i]++;
			return;
		}
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
			lost[first_with_key(place - 1)] += count;
		if (at[length] != ',')
			break;
	}
}

int count_main(const char *rules_path, const char *log_path)
{
	FILE *log = fopen(log_path, "r");
	char *line = NULL;
	size_t size = 0;

	read_rules(rules_path);
	if (!log) {
		perror(log_path);
		return 1;
	}
	while (getline(&line, &size, log) > 0) {
		if (!strncmp(line, "type=SYSCALL ", 13) || !strncmp(line, "type=URINGOP ", 13))
			count_event(line);
		else if (!strncmp(line, "type=DAEMON_ERR ", 16) &&
			 strstr(line, " op=events-lost-in-all "))
			count_losses(line);
	}
	for (int i = 0; i < rules; i++)
		if (first_with_key(i) == i)
			printf("%s %ld %ld\n", keys[i], recorded[i], lost[i]);
	return 0;
}
