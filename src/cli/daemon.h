/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The client of the daemon's own socket (api/openapi.yaml): HTTP/1.1, one
 * request a connection, blocking.
 *
 *	struct daemon d;
 *
 *	if (daemon_ask(&d, "GET", path, NULL, 0, &err) == 0)
 *		daemon_body(&d, &text, &err);
 *	daemon_done(&d);
 *
 * An answer of 400 and above is an error: its text is the daemon's, its code
 * one of enum daemon_error.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "ledger/read.h"

enum daemon_error {
	DAEMON_ABSENT = 2000, /* nobody listens there */
	DAEMON_BROKEN,        /* what came is no answer */
	DAEMON_DENIED,
	DAEMON_NOT_FOUND,
	DAEMON_NO_FILE,
	DAEMON_NO_PROGRAM,
	DAEMON_NOT_EXECUTABLE,
	DAEMON_OTHER,
};

enum {
	DAEMON_UPGRADE = 1 << 0,
	DAEMON_SENDS = 1 << 1, /* a body follows, by daemon_send() */
};

struct daemon {
	int fd;
	int status;
	bool is_chunked, is_raw; /* frames otherwise */
	bool has_length, has_ended;
	uint64_t left; /* of the body, or of the chunk */
	char exec[65]; /* Cordon-Exec */
	char in[65536];
	size_t at, len;
};

/* Where it listens: CORDON_SOCKET, else in the runtime directory. */
int daemon_path(char *ret, size_t size, struct err *err);

/* `body` is JSON or NULL. 0 when the head of a good answer is there. */
int daemon_ask(struct daemon *d, const char *method, const char *path,
	       const char *body, int flags, struct err *err);
/* A body piece by piece; then daemon_sent() reads the answer's head. */
int daemon_send(struct daemon *d, const void *data, size_t len,
		struct err *err);
int daemon_sent(struct daemon *d, struct err *err);
/* Decoded bytes of the answer; 0 at its end, -errno if it was cut off. */
ssize_t daemon_read(struct daemon *d, void *data, size_t size, struct err *err);
/* All of it; the caller's also after an error. */
int daemon_body(struct daemon *d, struct buf *ret, struct err *err);
void daemon_done(struct daemon *d);

/* Ask, read all, done. `ret` may be NULL. */
int daemon_call(const char *method, const char *path, const char *body,
		struct buf *ret, struct err *err);

/* A path with parts put in, percent-encoded: "/v1/boxes/%s/stop?signal=%s" */
int daemon_format(char *ret, size_t size, struct err *err, const char *fmt,
		  ...);

/* Text of a member, "" if there is none; at most size - 1 bytes. */
const char *member_text(const struct value *v, const char *name, char *ret,
			size_t size);
int64_t member_int(const struct value *v, const char *name, int64_t other);
