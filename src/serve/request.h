/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The document of ORDER_PREPARE, read strictly: what is not known, is there
 * twice or has another type makes the whole request invalid. No system call
 * but for memory, so that it can be fuzzed.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "box/spec.h"

#define REQUEST_MAX (16U << 20)

struct request {
	struct cordon_spec *spec;
	char run[33];
	char box[65];
	char face[17];
	bool clamp;
	bool exec;     /* another program for a box that is there */
	bool box_only; /* a box, and nothing that runs in it yet */
};

/* `text` is changed. In any case request_done() releases. */
int request_parse(char *text, size_t len, struct request *ret, struct err *err);
void request_done(struct request *r);
