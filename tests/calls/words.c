/* SPDX-License-Identifier: Apache-2.0 */
/* The words that stand for arguments. */
#define _GNU_SOURCE
#include "calls.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ARENA_BYTES 65536

static char *arena, *next;

void arena_make(void)
{
	arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (arena == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
}

static void *take(size_t len)
{
	void *memory = next;

	next += (len + 15) & ~15UL;
	return memory;
}

static long text(const char *from)
{
	return (long)strcpy(take(strlen(from) + 1), from);
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return address;
}

static long address(const char *path)
{
	struct sockaddr_un unix_address = address_of(path);
	struct sockaddr_in inet = { AF_INET, htons(1), { htonl(INADDR_LOOPBACK) }, { 0 } };

	if (!strcmp(path, "inet"))
		return (long)memcpy(take(sizeof(unix_address)), &inet, sizeof(inet));
	return (long)memcpy(take(sizeof(unix_address)), &unix_address, sizeof(unix_address));
}

/* Writes registers of a call's size; returns their address. */
static void *registers(const long *values, int count, bool is_32)
{
	char *memory = take(count * 8UL);

	for (int i = 0; i < count; i++) {
		uint32_t half = values[i];

		if (is_32)
			memcpy(memory + i * 4L, &half, 4);
		else
			memcpy(memory + i * 8L, &values[i], 8);
	}
	return memory;
}

/* One or two messages; a struct mmsghdr is a struct msghdr and a number. */
static long message(const char *path, int messages, bool is_32)
{
	long vector[2] = { text("x"), 1 }, all[16] = { 0 };
	int size = 8;

	for (int i = 0; i < messages; i++) {
		all[i * size] = address(i ? "tree/file" : path);
		all[i * size + 1] = sizeof(struct sockaddr_un);
		all[i * size + 2] = (long)registers(vector, 2, is_32);
		all[i * size + 3] = 1;
	}
	return (long)registers(all, 16, is_32);
}

static int open_socket(int domain, int type)
{
	return socket(domain, type, 0);
}

static long word_value(const char *word, bool is_32);

static long several(char *words, bool is_32)
{
	long values[6] = { 0 };
	int count = 0;
	char *one;

	while ((one = strsep(&words, ",")) && count < 6)
		values[count++] = word_value(one, is_32);
	return (long)registers(values, 6, is_32);
}

static long word_value(const char *word, bool is_32)
{
	char copy[256];
	long argv[2];

	snprintf(copy, sizeof(copy), "%s", word);
	if (*word == '=')
		return text(word + 1);
	if (*word == '@')
		return address(word + 1);
	if (!strncmp(word, "msg:", 4))
		return message(word + 4, 1, is_32);
	if (!strncmp(word, "mmsg:", 5))
		return message(word + 5, 2, is_32);
	if (!strncmp(word, "in:", 3))
		return several(copy + 3, is_32);
	if (!strcmp(word, "file"))
		return open("tree/file", O_RDWR);
	if (!strcmp(word, "dir"))
		return open("tree/dir", O_RDONLY);
	if (!strcmp(word, "tree"))
		return open("tree", O_RDONLY);
	if (!strcmp(word, "stream"))
		return open_socket(AF_UNIX, SOCK_STREAM);
	if (!strcmp(word, "datagram"))
		return open_socket(AF_UNIX, SOCK_DGRAM);
	if (!strcmp(word, "inet"))
		return open_socket(AF_INET, SOCK_DGRAM);
	if (!strcmp(word, "addr"))
		return sizeof(struct sockaddr_un);
	if (!strcmp(word, "buf"))
		return (long)memset(take(4096), 0, 4096);
	if (!strcmp(word, "ten"))
		return (long)registers(&(long){ 10 }, 1, true);
	argv[0] = 0;
	if (!strcmp(word, "argv")) {
		argv[0] = text("program");
		argv[1] = 0;
		return (long)registers(argv, 2, is_32);
	}
	return strtol(word, NULL, 0);
}

void words_to_args(const char *words, long *args, bool is_32)
{
	char line[512], *rest = line, *word;
	int i = 0;

	next = arena;
	memset(args, 0, 6 * sizeof(*args));
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(words, "\n#"), words);
	while ((word = strsep(&rest, " ")) && i < 6) {
		if (*word)
			args[i++] = word_value(word, is_32);
	}
}

static void bind_to(int type, const char *path)
{
	struct sockaddr_un address = address_of(path);
	int fd = open_socket(AF_UNIX, type);

	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)))
		perror(path);
	if (type == SOCK_STREAM)
		listen(fd, 4096);
}

void sockets_prepare(void)
{
	bind_to(SOCK_STREAM, "tree/stream");
	bind_to(SOCK_DGRAM, "tree/datagram");
}
