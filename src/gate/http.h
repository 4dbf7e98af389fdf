/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP/1.1 as the gate reads it: one way, or not at all. Whatever two programs
 * could read differently (RFC 9112 calls much of it obsolete, and proxies were
 * fooled with the rest) is refused. What was read is written anew, so upstream
 * never sees a byte of framing that a box made.
 *
 * Pure: slices point into the bytes that were given.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "gate/table.h"
#include "gate/wire.h"

#define HTTP_HEAD_MAX    65536
#define HTTP_FIELDS_MAX  128
#define HTTP_TRAILER_MAX 8192
/* Of one chunk of an answer; a request has none. */
#define HTTP_EXTENSION_MAX 4096
/* A path that rules have to judge. */
#define HTTP_PATH_MAX 8192

struct http_slice {
	const char *at;
	size_t len;
};

struct http_field {
	struct http_slice name;
	struct http_slice value; /* without the space around it */
};

enum http_framing {
	HTTP_NO_BODY,
	HTTP_LENGTH,
	HTTP_CHUNKED,
	HTTP_TO_END, /* answers only: until the connection ends */
};

struct http_head {
	size_t size; /* bytes of it, with the empty line */
	unsigned int minor;
	struct http_slice method;    /* requests */
	struct http_slice authority; /* of an absolute target; at NULL: none */
	bool is_https;               /* ... and its scheme */
	struct http_slice path;
	struct http_slice query; /* without the mark; at NULL: none */
	unsigned int status;     /* answers */
	struct http_slice phrase;
	enum http_framing framing;
	uint64_t length;
	bool has_length; /* said, even if no body follows (HEAD, 304) */
	bool is_close;   /* the last one of its connection */
	bool is_waiting; /* Expect: 100-continue */
	bool is_switch;  /* Connection has "upgrade" */
	bool is_socket;  /* Upgrade is "websocket" */
	bool is_upgrade; /* ... or another protocol, or more than one */
	size_t n_fields;
	struct http_field fields[HTTP_FIELDS_MAX];
	const char *wrong; /* after -EINVAL */
};

/*
 * Reads the head at the beginning of `data`. 1: it is there; 0: more bytes are
 * needed; -EINVAL: `wrong` says why; -E2BIG.
 */
int http_read_request(const char *data, size_t len, struct http_head *ret);
/* `is_bare`: the answer to a HEAD, which has no body. */
int http_read_answer(const char *data, size_t len, bool is_bare,
		     struct http_head *ret);

bool http_is(const struct http_slice *s, const char *text); /* any case */
/* The first field of this name, or NULL. */
const struct http_field *http_find(const struct http_head *h, const char *name);
/* It belongs to one connection, or to framing, which we write ourselves. */
bool http_is_ours(const struct http_slice *name);

/* http-target.c: fills path, query and authority. -EINVAL. */
int http_read_target(struct http_slice target, struct http_head *ret);
/* Whom it is for: GATE_OK, or why it is not for `host` and `port`. */
enum gate_reason http_check_host(const struct http_head *h, const char *host,
				 uint16_t port, bool is_tls);

/* http-body.c: bodies, piece by piece. */
struct http_body {
	enum http_framing framing;
	uint64_t left;
	unsigned int state;
	unsigned int digits;
	unsigned int n_line; /* bytes of this line: extension or trailer */
	bool is_answer;      /* extensions of chunks are passed over */
	bool has_extension;
	size_t n_trailer;
	bool is_done;
};

void http_body_init(struct http_body *b, const struct http_head *h);
/*
 * Takes bytes; *ret is the piece of the body in them, which may be empty.
 * How many were taken (less than `len`: call again unless it is done), or
 * -EINVAL.
 */
ssize_t http_body_take(struct http_body *b, const char *data, size_t len,
		       struct http_slice *ret);
/* Bytes that one written piece needs more than its own. */
#define HTTP_CHUNK_EXTRA 24
/* Writes a piece, and the end, as this framing has them. */
void http_body_put(struct buf *out, enum http_framing framing, const char *data,
		   size_t len);
void http_body_end(struct buf *out, enum http_framing framing);

/* http-path.c: "*" within a segment, "**" over segments, "?" one character. */
bool http_glob(const char *glob, const char *text, size_t len);
/*
 * Whether every way to read the path (percent-encoding undone or not, double
 * slashes merged or not) is one of the globs, and none climbs with "..".
 */
bool http_path_allowed(struct http_slice path, const struct gate_table *t,
		       const struct gate_vec *globs);

/* http-judge.c: the rules of a table about one request. */
struct http_verdict {
	enum gate_reason reason;
	int rule; /* that allowed it, or that was closest */
	bool applies[GATE_MAX_RULES];
};

/* Whom the requests of a connection are for. */
struct http_to {
	int own; /* the rule that let it in; others that ask do not count */
	const char *host;
	const uint8_t *address; /* dialled; it counts where `own` names such */
	uint16_t port;
};

/* What a rule's methods are compared with: WEBSOCKET for one of those. */
struct http_slice http_judged_method(const struct http_head *h);

void http_judge(const struct gate_table *t, const struct http_to *to,
		const struct http_head *h, struct http_verdict *ret);
/* Which rules are for this host at all, whatever is asked of it. */
void http_home(const struct gate_table *t, const struct http_to *to,
	       bool *ret_applies);
/*
 * Which rules may have a secret put into a request to this host, at any port
 * and path: those that its answers are searched for.
 */
void http_sent(const struct gate_table *t, const struct http_to *to,
	       bool *ret_sent);
