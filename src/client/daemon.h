/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The client of the daemon's own socket (api/openapi.yaml): HTTP/1.1, one
 * request a connection. The command and the library use it.
 *
 *	struct daemon d = { 0 };
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
#include <sys/un.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/answer.h"
#include "ledger/read.h"

enum daemon_error {
	DAEMON_ABSENT = 2000, /* nobody listens there */
	DAEMON_BROKEN,        /* what came is no answer */
	DAEMON_AMBIGUOUS,
	DAEMON_BUSY,
	DAEMON_DENIED,
	DAEMON_INVALID,
	DAEMON_LOST,
	DAEMON_NAME_TAKEN,
	DAEMON_NOT_EXECUTABLE,
	DAEMON_NOT_FOUND,
	DAEMON_NO_FILE,
	DAEMON_NO_IMAGE,
	DAEMON_NO_PROGRAM,
	DAEMON_NO_SPACE,
	DAEMON_READ_ONLY,
	DAEMON_SETUP,
	DAEMON_TOO_LARGE,
	DAEMON_UNSUPPORTED,
	DAEMON_WRONG_STATE, /* it runs, it does not run, it is paused ... */
	DAEMON_OTHER,
};

enum {
	DAEMON_UPGRADE = 1 << 0,
	DAEMON_SENDS = 1 << 1, /* a body follows, by daemon_send() */
};

/*
 * A socket. At one that nobody named only root or this user is spoken to: in
 * /tmp anybody may have made it.
 */
struct daemon_place {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	bool is_named; /* by the caller, or by CORDON_SOCKET */
};

/* All zero is one for the usual socket. */
struct daemon {
	const struct daemon_place
		*place;      /* NULL: daemon_find(); the caller's */
	int64_t patience_ms; /* for each read and write; 0: no end */
	bool is_hasty;       /* daemon_read() gives -EAGAIN and does not wait */
	int fd;
	struct answer answer;
	const char *piece; /* of the body, in `in` */
	size_t piece_len;
	char in[65536];
	size_t at, len;
};

/* Where it listens: `named`, else CORDON_SOCKET, else the usual place. */
int daemon_find(const char *named, struct daemon_place *ret, struct err *err);

/* `body` is JSON or NULL. 0 when the head of a good answer is there. */
int daemon_ask(struct daemon *d, const char *method, const char *path,
	       const char *body, int flags, struct err *err);
/* A body piece by piece; then daemon_sent() reads the answer's head. */
int daemon_send(struct daemon *d, const void *data, size_t len,
		struct err *err);
int daemon_sent(struct daemon *d, struct err *err);
/* Decoded bytes of the answer; 0 at its end, -ECONNRESET if it was cut off. */
ssize_t daemon_read(struct daemon *d, void *data, size_t size, struct err *err);
/* All of it; the caller's also after an error. */
int daemon_body(struct daemon *d, struct buf *ret, struct err *err);
void daemon_done(struct daemon *d);

/* Ask, read all, done. `ret` may be NULL; it gets JSON, or, not from GET,
 * nothing. */
int daemon_call(const char *method, const char *path, const char *body,
		struct buf *ret, struct err *err);
/* The same at another socket, with patience; `place` NULL: the usual one. */
int daemon_call_at(const struct daemon_place *place, int64_t patience_ms,
		   const char *method, const char *path, const char *body,
		   struct buf *ret, struct err *err);

/* Whether something was read and is not given out yet. */
static inline bool daemon_has_more(const struct daemon *d)
{
	return d->piece_len > 0 || d->at < d->len;
}

/* The errno value that says the same as a code of ours; others as they are. */
int daemon_errno(int code);

/* A path with parts put in, percent-encoded: "/v1/boxes/%s/stop?signal=%s" */
int daemon_format(char *ret, size_t size, struct err *err, const char *fmt,
		  ...);

/* The list of that name in a document; what has none is no answer. */
int daemon_list(const struct buf *b, const char *name, struct value *ret,
		struct err *err);

/* Text of a member, "" if there is none; at most size - 1 bytes. */
const char *member_text(const struct value *v, const char *name, char *ret,
			size_t size);
int64_t member_int(const struct value *v, const char *name, int64_t other);
