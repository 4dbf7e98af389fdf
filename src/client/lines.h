/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The events of a run (POST /v1/run with `events`): a line of JSON each,
 * output and at last the result.
 */

#include <stdbool.h>
#include <stddef.h>

#include <cordon/cordon.h>

#include "base/buf.h"

struct lines {
	struct buf line;
	bool has_started;
	struct cordon_result *result; /* NULL until it has come */
};

void lines_init(struct lines *l);
void lines_done(struct lines *l);

/* Calls put() for output; 0, its error, or -errno. Nothing follows a result. */
int lines_take(struct lines *l, const char *data, size_t len,
	       int (*put)(void *arg, int stream, const char *data, size_t len),
	       void *arg);
