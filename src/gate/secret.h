/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Secrets that a box never has. It has placeholders; on the way to the host of
 * a rule the value takes the placeholder's place, in the header, query or body
 * field that the rule names. Anywhere else a placeholder is refused.
 *
 * Values are copied only into buffers that are wiped, and never into an error,
 * an event or an answer.
 */

#include "gate/http.h"

/* No table has a longer one. Values that no header can have are refused. */
#define SECRET_MAX      GATE_MAX_SECRET
#define PLACEHOLDER_MAX 256
/* A body with a declared field is kept up to this size. */
#define SECRET_BODY_MAX (1U << 20)

/* Why a head is refused: the variable's name, and where it stood. */
struct secret_fault {
	enum gate_reason reason; /* GATE_OK: nothing is wrong */
	const char *name;        /* of the variable; may be NULL */
	const char *where;
};

/*
 * Looks for placeholders in a head that are not for it (`applies` as in
 * struct http_verdict), or not for that place, and for values that cannot be
 * sent.
 */
void secret_check_head(const struct gate_table *t, const bool *applies,
		       const struct http_head *h, struct secret_fault *ret);

/* Write with values put in; true: there was one. */
bool secret_put_target(const struct gate_table *t, const bool *applies,
		       const struct http_head *h, struct buf *out);
bool secret_put_value(const struct gate_table *t, const bool *applies,
		      const struct http_field *f, struct buf *out);

/*
 * Headers that a rule writes itself (it has a format for one that it names),
 * where the request has none of that name; true: there was one.
 */
bool secret_put_missing(const struct gate_table *t, const bool *applies,
			const struct http_head *h, struct buf *out);

/*
 * The same for `Basic` with a placeholder inside, as git sends it; false: it is
 * something else, and nothing was written.
 */
bool secret_put_basic(const struct gate_table *t, const bool *applies,
		      const struct http_field *f, struct buf *out);
/* As a query has it, a form, and a string of JSON. */
void secret_put_coded(struct buf *out, const char *value);
void secret_put_form(struct buf *out, const char *value);
void secret_put_json(struct buf *out, const char *value);

/* It can stand in a header; no other is ever sent. */
bool secret_is_sendable(const char *value);
/* Whether this body has a declared field, so that it must be kept whole. */
bool secret_wants_body(const struct gate_table *t, const bool *applies,
		       const struct http_head *h);
/* The same, but it is compressed: no field of it can be found. */
bool secret_hides_body(const struct gate_table *t, const bool *applies,
		       const struct http_head *h);
/* secret-body.c: the body with values put in. 0 or -errno. */
int secret_put_body(const struct gate_table *t, const bool *applies,
		    bool is_json, const char *data, size_t len,
		    struct buf *out);
/* application/json, text/json, application/x+json */
bool secret_is_json(const struct http_slice *type);
bool secret_is_form(const struct http_slice *type);

/* Bytes of a body on their way, for placeholders of others. */
struct secret_watch {
	char tail[PLACEHOLDER_MAX];
	size_t n;
};

/* The rule whose placeholder came, -1: none. */
int secret_watch_take(struct secret_watch *w, const struct gate_table *t,
		      const bool *applies, const char *data, size_t len);

/*
 * secret-mask.c: values that upstream sends back are covered with asterisks,
 * so that lengths stay.
 */
#define MASKS_MAX (8 * GATE_MAX_RULES) /* seven forms, and of Basic two */
/* A shorter value would cover what is none. */
#define MASK_MIN GATE_MIN_COVERED
#define MASK_MAX (3 * SECRET_MAX)

struct secret_mask {
	char *value; /* our copy */
	size_t len;
};

struct secret_masks {
	unsigned int n, cap;
	struct secret_mask *v;
	char *held; /* as it came; it could be the beginning of a value */
	size_t n_held;
	size_t n_over; /* of those, what is covered in any case */
};

/*
 * The values of the rules in `sent` (http_sent()), in each form that the gate
 * writes, and what this head makes of them. No other value may be looked for:
 * what is held back, or covered, tells who sends the bytes that they are a
 * value, or the beginning of one. -ENOMEM; -E2BIG: too many.
 */
int secret_masks_init(struct secret_masks *m, const struct gate_table *t,
		      const bool *sent, const struct http_head *h);
void secret_masks_done(struct secret_masks *m);
/* Covers in place, in bytes that are whole; nothing may be held back then. */
void secret_masks_cover(struct secret_masks *m, char *data, size_t len);

typedef void masked_fn(void *arg, const char *data, size_t len);

/*
 * The same for a stream. The end of what was given may be held back until more
 * comes, or until secret_masks_flush().
 */
void secret_masks_feed(struct secret_masks *m, const char *data, size_t len,
		       masked_fn *fn, void *arg);
void secret_masks_flush(struct secret_masks *m, masked_fn *fn, void *arg);
