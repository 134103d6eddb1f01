/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* Values of the arguments on the command line. */
#include "acts.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>

#define ARENA_SIZE (4 << 20)
#define PADDING 512
#define RESULTS_MAX 32
#define UNREADABLE 8
/* Address and flag for mmap, for memory below 4 GiB. */
#ifdef MAP_32BIT
#define LOW_PLACE NULL
#define LOW_FLAG MAP_32BIT
#else
#define LOW_PLACE ((void *)0x20000000)
#define LOW_FLAG MAP_FIXED_NOREPLACE
#endif

static struct {
	char name[16];
	long value;
} results[RESULTS_MAX];
static int result_count;

/* Zeroed memory below 4 GiB, which is never freed. */
static char *memory(size_t size)
{
	static char *arena;
	static size_t used;
	char *place;

	if (!arena) {
		arena = mmap(LOW_PLACE, ARENA_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | LOW_FLAG, -1, 0);
		if (arena == MAP_FAILED)
			usage_error("no memory for", "arguments");
	}
	size = (size + PADDING + 15) & ~(size_t)15;
	if (size > ARENA_SIZE - used)
		usage_error("no memory left for", "arguments");
	place = arena + used;
	used += size;
	return place;
}

static char *bytes(const void *data, size_t size)
{
	return memcpy(memory(size), data, size);
}

void keep_result(const char *name, size_t length, long result)
{
	if (result_count == RESULTS_MAX)
		usage_error("too many results", name);
	snprintf(results[result_count].name, sizeof results[0].name, "%.*s", (int)length, name);
	results[result_count++].value = result;
}

static long kept_result(const char *name)
{
	for (int i = result_count - 1; i >= 0; i--) {
		if (strcmp(results[i].name, name) == 0)
			return results[i].value;
	}
	usage_error("no result of that name", name);
}

static long hex_bytes(const char *text)
{
	size_t size = strlen(text) / 2;
	char *data = memory(size);

	for (size_t i = 0; i < size; i++) {
		char digits[3] = { text[2 * i], text[2 * i + 1] };

		data[i] = (char)strtoul(digits, NULL, 16);
	}
	return (long)data;
}

/* An array of the values in `text`, which colons separate; each is `width` bytes wide. */
static long word_array(const char *text, size_t width)
{
	char *copy = bytes(text, strlen(text) + 1);
	char *array = memory(strlen(text) * width + width), *place = array, *save;

	for (char *word = strtok_r(copy, ":", &save); word; word = strtok_r(NULL, ":", &save)) {
		long value;

		for (char *c = word; *c; c++) {
			if (*c == '+')
				*c = ':';
		}
		value = value_of(word);
		memcpy(place, &value, width);
		place += width;
	}
	return (long)array;
}

/* The form deep:COUNT:LENGTH: a path of COUNT directories with names of LENGTH letters. */
static long deep_path(const char *text)
{
	char *rest;
	size_t count = strtoul(text, &rest, 0);
	size_t length = *rest ? strtoul(rest + 1, NULL, 0) : 1;
	char *path = memory(count * (length + 1) + 1), *place = path;

	for (size_t i = 0; i < count; i++) {
		*place++ = '/';
		memset(place, 'd', length);
		place += length;
	}
	return (long)path;
}

static long many_letters(const char *text)
{
	size_t count = strtoul(text, NULL, 0);

	return (long)memset(memory(count + 1), 'a', count);
}

static long inet_address(const char *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)atoi(port)),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };

	return (long)bytes(&address, sizeof address);
}

static long inet6_address(const char *port)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6,
					.sin6_port = htons((uint16_t)atoi(port)),
					.sin6_addr = IN6ADDR_LOOPBACK_INIT };

	return (long)bytes(&address, sizeof address);
}

static long unix_address(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (address.sun_path[0] == '@')
		address.sun_path[0] = '\0';
	return (long)bytes(&address, sizeof address);
}

static long words64(const char *text)
{
	return word_array(text, 8);
}

static long words32(const char *text)
{
	return word_array(text, 4);
}

static long plain_string(const char *text)
{
	return (long)bytes(text, strlen(text) + 1);
}

static const struct {
	const char *prefix;
	long (*make)(const char *rest);
} forms[] = {
	{ "@", kept_result },	  { "hex:", hex_bytes },     { "words:", words64 },
	{ "halves:", words32 },	  { "many:", many_letters }, { "deep:", deep_path },
	{ "in:", inet_address },  { "in6:", inet6_address }, { "un:", unix_address },
	{ "str:", plain_string },
};

long value_of(const char *text)
{
	char *end;
	long number = (long)strtoull(text, &end, 0);

	if (*text && !*end)
		return number;
	if (strcmp(text, "null") == 0)
		return 0;
	if (strcmp(text, "bad") == 0)
		return UNREADABLE;
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		size_t length = strlen(forms[i].prefix);

		if (strncmp(text, forms[i].prefix, length) == 0)
			return forms[i].make(text + length);
	}
	return plain_string(text);
}
