/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cordon-image, run for a request: what it prints is collected, and read as
 * JSON when it has ended.
 */

#include "face/docker/internal.h"

#define IMAGE_ARGS 32

struct image_job;
/* `doc` is what it printed, NULL where that was nothing or no JSON. */
typedef void image_job_fn(void *arg, json_t *doc, const struct err *err);

/* NULL with *err; args are copied. */
struct image_job *image_job_new(struct docker *d, const struct peer *peer,
				const char *const *args, bool has_input,
				image_job_fn *done, void *arg, struct err *err);
struct image_run *image_job_run(struct image_job *j);
/* To be told, with the callback's argument, when it takes input again. */
void image_job_on_ready(struct image_job *j, void (*ready)(void *arg));
/* Before its end: the callback does not come any more. */
void image_job_drop(struct image_job *j);

/* A request about images; filters and the other name are its own. */
struct image_ask {
	struct ask ask;
	struct image_query *query;
	struct image_job *job;
	json_t *filters;
	char *other; /* a second name */
	bool is_forced;
};
struct image_ask *image_ask_new(struct http_request *r, struct docker *d);

/* Its last words on standard error. */
const char *image_words(const struct err *err);
/* Its words on standard error, as an answer. `name`: as the client wrote it */
void image_fail(struct http_request *r, const struct err *err,
		const char *name);
void image_event(struct docker *d, const struct peer *peer, const char *action,
		 const char *id, const char *name);
