// SPDX-License-Identifier: Apache-2.0
/*
 * A server of keys and values, and a client with four connections over the loopback interface: nine
 * requests in ten get a value, one sets it. Both run on one processor, so that the scheduler's
 * choice of a processor does not matter.
 *
 * keyvalue REQUESTS
 *	Prints "keyvalue REQUESTS ELAPSED_NS CPU_NS", separated by tabs; the processor time is
 *	that of both processes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 4
#define KEYS 1024
#define VALUE_BYTES 64
#define LINE_BYTES 128

struct entry {
	char key[16], value[VALUE_BYTES];
};

static struct entry entries[KEYS];

static void expect(int is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "keyvalue: %s: %s\n", what, errno ? strerror(errno) : "not as expected");
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* The entry of a key, which is made if it is not there. */
static struct entry *entry_of(const char *key)
{
	unsigned hash = 5381;

	for (const char *c = key; *c; c++)
		hash = hash * 33 + *c;
	for (unsigned i = hash;; i++) {
		struct entry *entry = &entries[i % KEYS];

		if (!entry->key[0])
			strcpy(entry->key, key);
		if (!strcmp(entry->key, key))
			return entry;
	}
}

/* Answers a request of one line. */
static void answer(int client, const char *line)
{
	char key[16], value[VALUE_BYTES] = "", said[LINE_BYTES];
	int words = sscanf(line, "%*s %15s %63s", key, value), n;

	expect(words >= 1, "a request");
	if (line[0] == 'S')
		strcpy(entry_of(key)->value, value);
	n = snprintf(said, sizeof(said), "%s\n", entry_of(key)->value);
	expect(write(client, said, n) == n, "an answer");
}

static void serve(int listener)
{
	struct epoll_event events[CONNECTIONS];
	int epoll = epoll_create1(0), open = CONNECTIONS;
	char line[LINE_BYTES];

	for (int i = 0; i < CONNECTIONS; i++) {
		int client = accept(listener, NULL, NULL);
		struct epoll_event wanted = { .events = EPOLLIN, .data.fd = client };

		expect(client >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, client, &wanted), "accept");
	}
	while (open) {
		int ready = epoll_wait(epoll, events, CONNECTIONS, -1);

		for (int i = 0; i < ready; i++) {
			ssize_t n = read(events[i].data.fd, line, sizeof(line) - 1);

			expect(n >= 0, "a request");
			line[n] = 0;
			if (n)
				answer(events[i].data.fd, line);
			else
				open -= !close(events[i].data.fd);
		}
	}
}

/* Asks on all connections, then reads all answers. */
static void ask(const int *connections, long first)
{
	char line[LINE_BYTES];

	for (int i = 0; i < CONNECTIONS; i++) {
		long number = first + i, key = number * 7919 % (KEYS / 2);
		int n = snprintf(line, sizeof(line),
				 number % 10 ? "GET key%ld\n" : "SET key%ld value%ld\n", key,
				 number);

		expect(write(connections[i], line, n) == n, "asking");
	}
	for (int i = 0; i < CONNECTIONS; i++)
		expect(read(connections[i], line, sizeof(line)) > 0, "an answer");
}

static uint64_t processor_ns(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ULL +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ULL;
}

static void use_one_processor(void)
{
	cpu_set_t allowed, one;
	int cpu = 0;

	expect(!sched_getaffinity(0, sizeof(allowed), &allowed), "sched_getaffinity");
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	expect(!sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), connections[CONNECTIONS], status;
	long requests = argc == 2 ? atol(argv[1]) : 0;
	socklen_t size = sizeof(address);
	uint64_t start;
	pid_t server;

	if (requests < 1) {
		fprintf(stderr, "usage: keyvalue REQUESTS\n");
		return 2;
	}
	use_one_processor();
	expect(listener >= 0 && !bind(listener, (struct sockaddr *)&address, size) &&
		       !getsockname(listener, (struct sockaddr *)&address, &size) &&
		       !listen(listener, CONNECTIONS),
	       "a socket");
	server = fork();
	if (server == 0) {
		serve(listener);
		return 0;
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		connections[i] = socket(AF_INET, SOCK_STREAM, 0);
		expect(!connect(connections[i], (struct sockaddr *)&address, size), "connect");
	}
	start = now_ns();
	for (long done = 0; done < requests; done += CONNECTIONS)
		ask(connections, done);
	start = now_ns() - start;
	for (int i = 0; i < CONNECTIONS; i++)
		close(connections[i]);
	expect(waitpid(server, &status, 0) == server && !status, "the server");
	printf("keyvalue\t%ld\t%lu\t%lu\n", requests, start,
	       processor_ns(RUSAGE_SELF) + processor_ns(RUSAGE_CHILDREN));
	return 0;
}
