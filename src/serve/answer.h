/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The answer's document to ORDER_PREPARE (orders.h). */

#include "base/buf.h"
#include "base/err.h"
#include "box/guard.h"
#include "box/prepare.h"
#include "serve/network.h"
#include "serve/request.h"
#include "serve/sweep.h"

struct answer {
	const struct request *request;
	const struct guard *guard;
	const struct prepared *prepared;
	const struct strv *warnings; /* ours */
	const struct network *network;
	enum refusal refused;
	const struct err *why; /* of a refusal */
	int64_t peer;
	const unsigned char *key;    /* these two: sweep.h */
	const struct sweep_who *who; /* may be NULL */
};

/*
 * 0 or -errno; the caller releases the buffer. Three lines, each a document:
 * what the front looks at, the spec, and the record of the start. The last two
 * it hands on as they are.
 */
int answer_make(const struct answer *a, struct buf *out, struct err *err);

/* The same for a request to sweep: what was found. */
int answer_sweep(const struct strv *violations, struct buf *out,
		 struct err *err);
