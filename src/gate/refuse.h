/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An answer of the gate's own: what was refused, by what, and what to do. */

#include "gate/http.h"

struct refusal {
	unsigned int status; /* 400, 403, 408, 413, 431, 502 */
	enum gate_reason reason;
	const struct gate_table *table;
	int rule; /* -1: none */
	const char *host;
	uint16_t port;
	struct http_slice method; /* empty: it was not understood */
	struct http_slice path;
	const char *detail; /* more than the reason says; may be NULL */
	bool is_bare;       /* to a HEAD: no body */
	bool is_last;       /* the connection ends with it */
};

/* Writes head and body; out->error if there is no room. */
void refuse_put(const struct refusal *r, struct buf *out);
