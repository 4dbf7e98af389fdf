/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An answer of HTTP/1.1, taken apart as its bytes come: pure, so that it can
 * be fuzzed, and read with or without waiting.
 *
 *	struct answer a;
 *
 *	answer_init(&a);
 *	while (len > 0 && !answer_has_ended(&a)) {
 *		n = answer_take(&a, data, len, &piece, &piece_len, &err);
 *		...
 *	}
 *
 * What the daemon answers is foreign to who asks: lines, the number of headers
 * and every count have a ceiling, and what is not understood is an error.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define ANSWER_MAX_LINE    8192
#define ANSWER_MAX_HEADERS 256

enum answer_at {
	ANSWER_STATUS,
	ANSWER_HEADER,
	/* From here on the head is complete. */
	ANSWER_BODY,    /* up to the end of the connection */
	ANSWER_COUNTED, /* `left` bytes */
	ANSWER_CHUNK_SIZE,
	ANSWER_CHUNK,
	ANSWER_CHUNK_END,
	ANSWER_TRAILER,
	ANSWER_ENDED,
};

struct answer {
	enum answer_at at;
	int status;
	bool is_chunked, has_length;
	bool is_raw;   /* Content-Type says so; frames otherwise */
	uint64_t left; /* of the body, or of the chunk */
	char exec[65]; /* Cordon-Exec */
	unsigned int headers;
	char line[ANSWER_MAX_LINE];
	size_t len; /* of the line */
};

void answer_init(struct answer *a);

/*
 * Takes some bytes, at least one of them unless it has ended, and says how
 * many. Where they were a part of the body, it is at *ret_piece, else *ret_len
 * is 0. It stops behind the head. -EPROTO: this is no answer.
 */
ssize_t answer_take(struct answer *a, const char *data, size_t len,
		    const char **ret_piece, size_t *ret_len, struct err *err);

/* The connection has ended; -ECONNRESET if more had to come. */
int answer_close(struct answer *a, struct err *err);

static inline bool answer_has_head(const struct answer *a)
{
	return a->at > ANSWER_HEADER;
}

static inline bool answer_has_ended(const struct answer *a)
{
	return a->at == ANSWER_ENDED;
}
