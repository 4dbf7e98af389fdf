/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The document of ORDER_PREPARE, read strictly: what is not known, is there
 * twice or has another type makes the whole request invalid. No system call
 * but for memory, so that it can be fuzzed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "box/spec.h"

#define REQUEST_MAX (16U << 20)

/* What the answer to an earlier request told of a volume (sweep.c). */
struct request_watch {
	char *source;
	uint64_t dev, ino, missing, since, clock;
	char seal[65];
};

struct request {
	struct cordon_spec *spec;
	char run[33];
	char box[65];
	char face[17];
	bool clamp;
	bool exec;            /* another program for a box that is there */
	bool box_only;        /* a box, and nothing that runs in it yet */
	bool as_user;         /* exec: settings name its user, not the box's */
	struct strv programs; /* only these are in the box ... */
	bool has_programs;    /* ... if so */
	struct strv gate_env; /* NAME=placeholder, of the box's secrets */
	bool has_gate, gate_trust; /* the box has a gate, and its authority */
	bool is_sweep;             /* no box: look after one that is dead */
	bool is_late; /* of an earlier daemon; said by the preparer */
	struct request_watch watches[SPEC_MAX_ITEMS];
	size_t n_watches;
};

/* `text` is changed. In any case request_done() releases. */
int request_parse(char *text, size_t len, struct request *ret, struct err *err);
void request_done(struct request *r);
