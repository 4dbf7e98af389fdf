/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A post: a message on its way, with all that is said on the envelope
 * (section 2.1 of the specification). Counted by reference; nothing of it
 * changes once it was given to a bus. In one process the message, the cancel
 * token and the path are passed on as they are; post_json() and post_load()
 * are for everything else.
 */

#include "runtime/ident.h"
#include "runtime/runtime.h"

enum post_kind {
	POST_REQUEST,
	POST_RESPONSE,
	POST_EVENT,
	POST_ERROR,
	POST_CANCEL,
	POST_KINDS
};

/* The chain of actors that wait for each other, the last one first. */
struct hop {
	unsigned int refs, depth;
	struct hop *up;
	char id[];
};
enum { HOPS_MAX = 256 };

struct post {
	unsigned int refs;
	enum post_kind kind;
	unsigned int attempt;
	enum overflow overflow;
	struct uuid id, reply_to;
	struct message *message;       /* NULL: nothing said */
	struct fault why;              /* of an error or a cancel */
	const char *from, *to, *topic; /* in `text`, or NULL */
	int64_t deadline;              /* monotonic, 0: none */
	struct hop *path;
	/*
	 * In process only: the token of this very message, and the one the
	 * user gave, which what its handlers publish inherits.
	 */
	struct cancel *cancel, *scope;
	json_t *headers;         /* NULL: none */
	const char *traceparent; /* in `text`, or NULL */
	char text[];
};

struct address {
	const char *from, *to, *topic, *traceparent; /* NULL: none */
};
enum { TRACEPARENT_MAX = 55 };

/* Copies the address. NULL when memory is short. */
struct post *post_new(enum post_kind kind, const struct address *a);
struct post *post_ref(struct post *p);
void post_unref(struct post *p);
const char *post_kind_name(enum post_kind kind);

struct hop *hop_new(struct hop *up, const char *id);
struct hop *hop_ref(struct hop *h);
void hop_unref(struct hop *h);
/* How often `id` is in the path. */
unsigned int hop_count(const struct hop *h, const char *id);

/*
 * The envelope; `to` replaces the post's own, NULL: does not. One without an
 * id gets it here.
 */
json_t *post_json(struct post *p, struct uuid_pool *ids, const char *to);
int post_load(const json_t *envelope, struct post **ret, struct err *err);
