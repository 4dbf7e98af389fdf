/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files of a box that stays, from a test: one request a call. */

#include "box/files.h"
#include "session.h"

/* What the box's memory is said to have room for. */
static uint64_t files_memory;

/* Sends a request; the socket over which its answer comes. */
static inline int files_ask(struct box_s *b, uint32_t op, const char *path,
			    uint32_t flags, uint64_t max)
{
	struct files_ask ask = { .op = op,
				 .flags = flags,
				 .path_len = (uint32_t)strlen(path),
				 .max = max,
				 .memory = files_memory };
	const struct timeval limit = { .tv_sec = 20 };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		_exit(1);
	(void)setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit,
			 sizeof(limit));
	CHECK_INT(session_files(b->s, pair[1]), 0);
	/* A request that is refused at once is closed by now. */
	(void)send(pair[0], &ask, sizeof(ask), MSG_NOSIGNAL);
	(void)send(pair[0], path, ask.path_len, MSG_NOSIGNAL);
	return pair[0];
}

/* The errno of the answer, or -1 where none comes. */
static inline int files_answer(int sock)
{
	struct files_answer a;

	if (io_read_full(sock, &a, sizeof(a)) != sizeof(a))
		return -1;
	return a.err.code;
}

struct got {
	struct files_entry e;
	char name[FILES_MAX_PATH + 1];
	char link[FILES_MAX_PATH + 1];
	char data[65536];
};

/* The next entry; false at the end or when it breaks off. */
static inline bool files_next(int sock, struct got *g)
{
	memset(g, 0, sizeof(*g));
	if (io_read_full(sock, &g->e, sizeof(g->e)) != sizeof(g->e)) {
		g->e.kind = 'X';
		return false;
	}
	(void)io_read_full(sock, g->name, g->e.name_len);
	(void)io_read_full(sock, g->link, g->e.link_len);
	for (uint64_t at = 0; g->e.kind == 'f' && at < g->e.size;) {
		size_t n = (size_t)MIN(g->e.size - at, sizeof(g->data) - 1);

		if (io_read_full(sock, g->data, n) != (ssize_t)n)
			return false;
		at += n;
	}
	return g->e.kind != 0;
}

/* Whose what is sent is said to be. */
static uint32_t files_uid = UINT32_MAX;

static inline void files_send(int sock, char kind, const char *name,
			      uint32_t mode, const char *data)
{
	struct files_entry e = { .kind = (uint8_t)kind,
				 .mode = mode,
				 .uid = files_uid,
				 .gid = files_uid,
				 .name_len = (uint32_t)strlen(name) };

	if (kind == 'l' || kind == 'h')
		e.link_len = (uint32_t)strlen(data);
	else
		e.size = strlen(data);
	(void)send(sock, &e, sizeof(e), MSG_NOSIGNAL);
	(void)send(sock, name, e.name_len, MSG_NOSIGNAL);
	(void)send(sock, data, strlen(data), MSG_NOSIGNAL);
}

static inline int files_end(int sock)
{
	const struct files_entry e = { 0 };
	int r;

	(void)send(sock, &e, sizeof(e), MSG_NOSIGNAL);
	r = files_answer(sock);
	(void)close(sock);
	return r;
}

/* One file, link or directory below `dir`; the errno of the answer. */
static inline int files_put_one(struct box_s *b, const char *dir, char kind,
				const char *name, uint32_t mode,
				const char *data)
{
	int sock = files_ask(b, FILES_WRITE, dir, 0, 0);

	files_send(sock, kind, name, mode, data);
	return files_end(sock);
}

/* The errno of a stat, and what it says. */
static inline int files_look(struct box_s *b, const char *path, struct got *g)
{
	int sock = files_ask(b, FILES_STAT, path, 0, 0);
	int r = files_answer(sock);

	memset(g, 0, sizeof(*g));
	if (r == 0) {
		(void)io_read_full(sock, &g->e, sizeof(g->e));
		(void)io_read_full(sock, g->link, g->e.link_len);
	}
	(void)close(sock);
	return r;
}
