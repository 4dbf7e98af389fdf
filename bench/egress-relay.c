/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The least that can stand between a client and a server: bytes are spliced
 * from one socket to the other, nothing is looked at, nothing is judged.
 *
 *	egress-relay PORT TO_PORT
 *
 * Both on 127.0.0.1. One process for each connection. Ends when its standard
 * input does, and so do they.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIPE_SIZE (256 << 10)

struct way {
	int from, to;
	int pipe[2];
	size_t held;
	bool is_ended;
};

static int socket_at(struct sockaddr_in *a, const char *port)
{
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*a = (struct sockaddr_in){ .sin_family = AF_INET,
				   .sin_port = htons((uint16_t)atoi(port)),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void way_init(struct way *w, int from, int to)
{
	*w = (struct way){ .from = from, .to = to };
	if (pipe2(w->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		exit(1);
	(void)fcntl(w->pipe[1], F_SETPIPE_SZ, PIPE_SIZE);
	(void)fcntl(from, F_SETFL, O_NONBLOCK);
}

/* As far as it goes now; false: broken. */
static bool way_move(struct way *w)
{
	const unsigned int flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
	ssize_t n = 0;

	if (w->held == 0 && !w->is_ended) {
		n = splice(w->from, NULL, w->pipe[1], NULL, PIPE_SIZE, flags);
		if (n < 0)
			return errno == EAGAIN;
		w->held = (size_t)n;
		if (n == 0) {
			w->is_ended = true;
			(void)shutdown(w->to, SHUT_WR);
		}
	}
	if (w->held == 0)
		return true;
	n = splice(w->pipe[0], NULL, w->to, NULL, w->held, flags);
	if (n > 0)
		w->held -= (size_t)n;
	return n > 0 || errno == EAGAIN;
}

static short wants(const struct way *in, const struct way *out)
{
	return (short)((in->held == 0 && !in->is_ended ? POLLIN : 0) |
		       (out->held > 0 ? POLLOUT : 0));
}

static void relay(int client, int server)
{
	struct way up;
	struct way down;

	way_init(&up, client, server);
	way_init(&down, server, client);
	while (!up.is_ended || !down.is_ended || up.held || down.held) {
		struct pollfd p[2] = { { client, wants(&up, &down), 0 },
				       { server, wants(&down, &up), 0 } };

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		if (!way_move(&up) || !way_move(&down))
			return;
	}
}

static void serve(int client, const char *port)
{
	struct sockaddr_in to;
	int one = 1;
	int server = socket_at(&to, port);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(server, (struct sockaddr *)&to, sizeof(to)) == 0)
		relay(client, server);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at;
	int fd = argc == 3 ? socket_at(&at, argv[1]) : -1;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(fd, 128) < 0) {
		perror("egress-relay");
		return 2;
	}
	(void)signal(SIGCHLD, SIG_IGN);
	for (;;) {
		struct pollfd p[2] = { { fd, POLLIN, 0 }, { 0, POLLIN, 0 } };
		int client;

		(void)poll(p, 2, -1);
		if (p[1].revents)
			return 0;
		client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (client >= 0 && fork() == 0)
			serve(client, argv[2]);
		(void)close(client);
	}
}
