/* SPDX-License-Identifier: Apache-2.0 */
#include "client/result.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/util.h"
#include "client/daemon.h"

/* A stream of the document: at most what a document can have. */
#define MAX_STREAM ((size_t)256 << 20)

static struct cordon_result *result_new(void)
{
	struct cordon_result *r = calloc(1, sizeof(*r));

	if (r && (r->runs = calloc(1, sizeof(*r->runs)))) {
		r->n_runs = 1;
		return r;
	}
	free(r);
	return NULL;
}

/* Bytes that are no UTF-8 are there once more, as base64. */
static int read_stream(const struct value *doc, const char *name,
		       struct stream *ret)
{
	char other[24];
	struct value v;
	struct buf text, bytes;
	int r;

	buf_init(&text, MAX_STREAM);
	buf_init(&bytes, MAX_STREAM);
	(void)snprintf(other, sizeof(other), "%s_b64", name);
	if (value_get(doc, other, &v)) {
		r = value_type(&v) == '"' ? value_text(&v, &text) : -EINVAL;
		if (r == 0)
			r = base64_add(&bytes, text.data ? text.data : "",
				       text.len);
	} else {
		r = value_get(doc, name, &v) && value_type(&v) == '"'
			    ? value_text(&v, &bytes)
			    : -EINVAL;
	}
	buf_done(&text);
	if (r < 0 || buf_add(&bytes, "", 1) < 0) {
		buf_done(&bytes);
		return -EINVAL;
	}
	ret->len = bytes.len - 1;
	ret->data = buf_take(&bytes);
	(void)snprintf(other, sizeof(other), "%s_bytes", name);
	ret->total = (uint64_t)member_int(doc, other, (int64_t)ret->len);
	ret->missing = ret->total > ret->len ? ret->total - ret->len : 0;
	return 0;
}

static int read_verdict(const struct value *doc, struct verdict *ret)
{
	int64_t code = member_int(doc, "exit_code", -1);
	int64_t sig = member_int(doc, "signal", 0);
	char cause[24];

	ret->cause = cause_parse(
		member_text(doc, "cause", cause, sizeof(cause)));
	if (ret->cause == CAUSES || code < 0 || code > 255 || sig < 0 ||
	    sig > 64)
		return -EINVAL;
	ret->exit_code = (int)code;
	ret->signal = (int)sig;
	return 0;
}

static char *read_text(const struct value *doc, const char *name)
{
	char text[4096];

	(void)member_text(doc, name, text, sizeof(text));
	return *text ? strdup(text) : NULL;
}

struct cordon_result *result_read(const struct value *doc)
{
	struct cordon_result *r = result_new();
	struct run *run = r ? r->runs : NULL;

	if (!r)
		return NULL;
	r->document = malloc(doc->len + 2);
	if (!r->document || value_type(doc) != '{' ||
	    read_verdict(doc, &run->verdict) < 0 ||
	    read_stream(doc, "stdout", &run->out) < 0 ||
	    read_stream(doc, "stderr", &run->err) < 0) {
		cordon_result_free(r);
		return NULL;
	}
	/* As cordon_result_json() has it: with a newline. */
	memcpy(r->document, doc->p, doc->len);
	memcpy(r->document + doc->len, "\n", 2);
	(void)member_text(doc, "id", r->id, sizeof(r->id));
	r->message = read_text(doc, "message");
	r->cancel_reason = read_text(doc, "cancel_reason");
	return r;
}

struct cordon_result *result_make(enum cause cause, int exit_code,
				  const char *message, struct capture *out,
				  struct capture *err)
{
	struct cordon_result *r = cause == CAUSES ? NULL : result_new();
	struct verdict *v;

	if (!r)
		return NULL;
	v = &r->runs[0].verdict;
	v->cause = cause;
	v->exit_code = exit_code;
	if (cause == CAUSE_SIGNAL && exit_code > 128)
		v->signal = exit_code - 128;
	if (message && *message)
		r->message = strdup(message);
	stream_take(&r->runs[0].out, out);
	stream_take(&r->runs[0].err, err);
	return r;
}
