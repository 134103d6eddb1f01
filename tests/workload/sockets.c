/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of three families, on the loopback interface only, and descriptors that come in pairs. */
#include "workload.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The next CALL passes this address. */
static void passes(struct self *me, const void *addr, size_t len)
{
	me->saddr = addr;
	me->saddr_len = len;
}

/* As CALL, for calls that return an address: their SOCKADDR record has what the kernel wrote. */
#define CALL_OUT(name, addr, len, ...) \
	call_out(me, #name, SYS_##name, (long[6]){ __VA_ARGS__ }, addr, len)

static long call_out(struct self *me, const char *name, long nr, const long *a, const void *addr,
		     const socklen_t *len)
{
	struct record *rec = begin(me, "b64", name, a, nr);
	long ret = raw(nr, a[0], a[1], a[2], a[3], a[4], a[5]);

	end(rec, me, ret);
	if (ret >= 0 && *len > 0)
		record_saddr(rec, addr, *len);
	return ret;
}

static void stream(struct self *me, int family, const void *addr, socklen_t addr_len)
{
	struct sockaddr_storage bound, peer;
	socklen_t len = sizeof(bound), peer_len = sizeof(peer);
	int one = 1;
	socklen_t one_len = sizeof(one);
	long listener = CALL(socket, family, SOCK_STREAM, 0), client, served;

	passes(me, addr, addr_len);
	if (CALL(bind, listener, addr, addr_len) < 0) {
		CALL(close, listener);
		return;
	}
	CALL_OUT(getsockname, &bound, &len, listener, (long)&bound, (long)&len);
	/* Refused: nobody listens yet. */
	client = CALL(socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	passes(me, &bound, len);
	CALL(connect, client, &bound, len);
	CALL(close, client);
	CALL(setsockopt, listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CALL(getsockopt, listener, SOL_SOCKET, SO_REUSEADDR, &one, &one_len);
	CALL(listen, listener, 4);
	client = CALL(socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	passes(me, &bound, len);
	CALL(connect, client, &bound, len);
	served = CALL_OUT(accept4, &peer, &peer_len, listener, (long)&peer, (long)&peer_len,
			  SOCK_CLOEXEC);
	peer_len = sizeof(peer);
	CALL_OUT(getpeername, &peer, &peer_len, client, (long)&peer, (long)&peer_len);
	CALL(sendto, client, "hello", 5, 0, NULL, 0);
	CALL(recvfrom, served, &peer, 5, 0, NULL, NULL);
	CALL(shutdown, client, SHUT_RDWR);
	CALL(close, served);
	CALL(close, client);
	CALL(close, listener);
}

static void datagram(struct self *me)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in from;
	socklen_t len = sizeof(addr), from_len = sizeof(from);
	char text[16] = "datagram";
	struct iovec vec = { text, 8 };
	struct msghdr msg = {
		.msg_name = &addr, .msg_namelen = sizeof(addr), .msg_iov = &vec, .msg_iovlen = 1
	};
	long fd = CALL(socket, AF_INET, SOCK_DGRAM, 0);

	passes(me, &addr, sizeof(addr));
	CALL(bind, fd, &addr, sizeof(addr));
	CALL_OUT(getsockname, &addr, &len, fd, (long)&addr, (long)&len);
	passes(me, &addr, sizeof(addr));
	CALL(sendto, fd, text, 8, 0, &addr, sizeof(addr));
	CALL_OUT(recvfrom, &from, &from_len, fd, (long)text, sizeof(text), 0, (long)&from,
		 (long)&from_len);
	passes(me, &addr, sizeof(addr));
	CALL(sendmsg, fd, &msg, 0);
	msg.msg_name = NULL;
	msg.msg_namelen = 0;
	CALL(recvmsg, fd, &msg, 0);
	CALL(recvfrom, fd, text, sizeof(text), MSG_DONTWAIT, NULL, NULL);
	CALL(close, fd);
}

static void local(struct self *me)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "sock" };
	struct sockaddr_un missing = { .sun_family = AF_UNIX, .sun_path = "no such sock" };
	static const struct {
		sa_family_t family;
		char name[12];
	} abstract = { AF_UNIX, "\0tarsier-abs" };
	long fd, client, served;
	int pair[2];

	fd = CALL(socket, AF_UNIX, SOCK_STREAM, 0);
	passes(me, &addr, sizeof(addr));
	CALL(bind, fd, &addr, sizeof(addr));
	CALL(listen, fd, 1);
	client = CALL(socket, AF_UNIX, SOCK_STREAM, 0);
	passes(me, &missing, sizeof(missing));
	CALL(connect, client, &missing, sizeof(missing));
	passes(me, &addr, sizeof(addr));
	CALL(connect, client, &addr, sizeof(addr));
	served = CALL(accept, fd, NULL, NULL);
	CALL(close, served);
	CALL(close, client);
	CALL(close, fd);
	NAMES("sock");
	CALL(unlink, "sock");
	fd = CALL(socket, AF_UNIX, SOCK_DGRAM, 0);
	passes(me, &abstract, sizeof(abstract));
	CALL(bind, fd, &abstract, sizeof(abstract));
	CALL(bind, fd, 8L, sizeof(abstract));
	CALL(close, fd);
	CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, pair);
	CALL(close, pair[0]);
	CALL(close, pair[1]);
	CALL(socketpair, AF_INET, SOCK_STREAM, 0, pair);
	CALL(socket, 9999, SOCK_STREAM, 0);
	CALL(bind, 999, &addr, sizeof(addr));
	CALL(pipe, pair);
	CALL(close, pair[0]);
	CALL(close, pair[1]);
	CALL(pipe2, pair, O_NONBLOCK | O_CLOEXEC);
	CALL(close, pair[0]);
	CALL(close, pair[1]);
	CALL(pipe2, pair, -1);
}

void sockets(struct self *me, const char *dir)
{
	struct sockaddr_in inet = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 inet6 = { .sin6_family = AF_INET6 };

	inet6.sin6_addr.s6_addr[15] = 1;
	NAMES(dir);
	if (CALL(chdir, dir) == 0)
		memcpy(me->cwd, dir, strlen(dir) + 1);
	stream(me, AF_INET, &inet, sizeof(inet));
	stream(me, AF_INET6, &inet6, sizeof(inet6));
	datagram(me);
	local(me);
}
