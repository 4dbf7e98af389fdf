/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A server of chat completions that does as a script says, in a child, on a
 * port of this machine. One reply for each request, in order; one connection
 * at a time. What it was asked, and when clients left, goes to a log that
 * server_log() gives back.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

enum {
	CUT = 1,     /* closes before the end of the body is told */
	RESET = 2,   /* resets the connection instead of any answer */
	HOLD = 4,    /* keeps it open until the client goes, and logs when */
	RAW = 8,     /* the body is all, with the head in it */
	SLOWLY = 16, /* byte by byte, with pauses */
	HALTS = 64,  /* and long ones: 200 ms for each 64 bytes */
	MUTE = 32,   /* closes without an answer */
};

struct reply {
	int status;
	const char *type; /* NULL: that of a stream */
	const char *body;
	const char *headers; /* each with its CRLF; NULL: none */
	unsigned int how;
	int delay_ms; /* before the answer */
};

struct server {
	pid_t pid;
	int port;
	struct served {
		unsigned int requests, connections;
		int64_t asked_at, left_at;
		char log[65536];
	} * seen; /* shared with the child */
	char url[64];
};

static inline void nap(int ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL);
}

static inline void note(struct served *seen, const char *text, size_t len)
{
	size_t have = strlen(seen->log);

	if (len > sizeof(seen->log) - 1 - have)
		len = sizeof(seen->log) - 1 - have;
	memcpy(seen->log + have, text, len);
}

/* A whole request; false: the client is gone. */
static inline bool take_request(int fd, struct served *seen)
{
	static char text[1 << 20];
	size_t len = 0;
	size_t want = sizeof(text) - 1;

	while (len < want) {
		ssize_t n = recv(fd, text + len, want - len, 0);
		char *end;
		char *length;

		if (n <= 0)
			return false;
		len += (size_t)n;
		text[len] = '\0';
		end = strstr(text, "\r\n\r\n");
		length = strcasestr(text, "content-length:");
		if (end && length)
			want = (size_t)(end + 4 - text) +
			       (size_t)strtol(length + 15, NULL, 10);
	}
	seen->asked_at = clock_us();
	seen->requests++;
	note(seen, text, len);
	note(seen, "\n--\n", 4);
	return true;
}

static inline void put_text(int fd, const char *text, unsigned int how)
{
	size_t len = strlen(text);

	for (size_t i = 0; (how & (SLOWLY | HALTS)) && i < len; i++) {
		if (send(fd, text + i, 1, MSG_NOSIGNAL) != 1)
			return;
		if (how & HALTS)
			nap(i % 64 == 0 ? 200 : 0);
		else if (i % 8 == 0)
			nap(1);
	}
	if (!(how & (SLOWLY | HALTS)))
		(void)io_send_all(fd, text, len);
}

static inline void answer(int fd, const struct reply *r)
{
	char head[1024];

	if (r->delay_ms)
		nap(r->delay_ms);
	if (r->how & RAW) {
		put_text(fd, r->body, r->how);
		return;
	}
	(void)snprintf(head, sizeof(head),
		       "HTTP/1.1 %d So\r\nContent-Type: %s\r\n%s"
		       "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
		       r->status, r->type ? r->type : "text/event-stream",
		       r->headers ? r->headers : "", strlen(r->body));
	/* A body of nothing has only the last chunk. */
	if (!*r->body)
		head[strlen(head) - 3] = '\0';
	put_text(fd, head, r->how);
	put_text(fd, r->body, r->how);
	if (!(r->how & (CUT | HOLD)))
		put_text(fd, *r->body ? "\r\n0\r\n\r\n" : "0\r\n\r\n", r->how);
}

/* Whether the connection goes on. */
static inline bool play(int fd, const struct reply *r, struct served *seen)
{
	struct linger at_once = { 1, 0 };
	char c;

	if (r->how & RESET)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once,
				 sizeof(at_once));
	if (!(r->how & (RESET | MUTE)))
		answer(fd, r);
	if (r->how & HOLD) {
		while (recv(fd, &c, 1, 0) > 0)
			;
		seen->left_at = clock_us();
		return false;
	}
	return !(r->how & (CUT | RESET | MUTE | RAW));
}

static inline void serve_all(int listener, const struct reply *r, size_t n,
			     struct served *seen)
{
	size_t i = 0;

	while (i < n) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			continue;
		seen->connections++;
		while (i < n && take_request(fd, seen))
			if (!play(fd, &r[i++], seen))
				break;
		/* The last one may still be read by the client. */
		if (i == n && !(r[n - 1].how & (CUT | RESET | MUTE)))
			(void)take_request(fd, seen);
		(void)close(fd);
	}
}

static inline int listen_here(int *ret_port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(fd, 4096) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		abort();
	*ret_port = ntohs(at.sin_port);
	return fd;
}

static inline struct server serve(const struct reply *r, size_t n)
{
	struct server s = { 0 };
	int fd = listen_here(&s.port);

	s.seen = mmap(NULL, sizeof(*s.seen), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s.seen == MAP_FAILED)
		abort();
	(void)snprintf(s.url, sizeof(s.url), "http://127.0.0.1:%d/v1", s.port);
	(void)fflush(NULL);
	s.pid = fork();
	if (s.pid == 0) {
		serve_all(fd, r, n, s.seen);
		_exit(0);
	}
	(void)close(fd);
	return s;
}

static inline void server_end(struct server *s)
{
	(void)kill(s->pid, SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	(void)munmap(s->seen, sizeof(*s->seen));
}
