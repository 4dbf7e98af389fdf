/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Traces: what led to what, as spans within each other (W3C trace context,
 * OpenTelemetry's names).
 *
 *	span = span_begin(tracer, SPAN_CHAT, "gpt-4o", parent);
 *	span_int(span, "gen_ai.usage.input_tokens", 12);
 *	span_end(span, why);
 *
 * A span is a child of the one whose traceparent it is given, also over
 * processes; without one it begins a trace. It is told when it ends, as one
 * OTLP request in JSON, which a collector reads from a file line by line or by
 * HTTP as it is. What an agent or a tool said is in no span, unless
 * `has_contents`.
 *
 * NULL is a tracer that traces nothing and a span that is none: callers need
 * not ask.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/fault.h"

struct tracer;
struct span;

enum span_kind {
	SPAN_SEND,
	SPAN_PUBLISH,
	SPAN_PROCESS, /* "process TYPE" */
	SPAN_AGENT,   /* "invoke_agent NAME" */
	SPAN_CHAT,    /* "chat MODEL" */
	SPAN_TOOL,    /* "execute_tool NAME" */
	SPAN_CODE,    /* "execute_code" */
	SPAN_APPROVAL,
	SPAN_KINDS
};

/* "00-" 32 digits "-" 16 digits "-" 2 digits, and a NUL */
enum { TRACEPARENT = 56 };

struct tracer_options {
	/* One ended span; borrowed. */
	void (*export)(void *arg, const json_t *request);
	void *arg;
	double sample;    /* how many of the traces that begin here; 0 is all */
	unsigned int off; /* kinds that are not wanted, bits 1 << SPAN_... */
	bool has_contents;
};

int tracer_new(const struct tracer_options *o, struct tracer **ret,
	       struct err *err);
/* Also to a file, a line each; appended, mode 0600. */
int tracer_to_file(const struct tracer_options *o, const char *path,
		   struct tracer **ret, struct err *err);
/* No span of it may be open any more. */
void tracer_free(struct tracer *t);
bool tracer_has_contents(const struct tracer *t);

/*
 * `of` stands behind the kind's name; NULL: nothing does. `parent` may be
 * NULL; one that is not valid is as good as none.
 */
struct span *span_begin(struct tracer *t, enum span_kind k, const char *of,
			const char *parent);
/* To give to what it causes; `parent` where there is no span. */
const char *span_parent(const struct span *s, const char *parent);
void span_text(struct span *s, const char *name, const char *value);
void span_int(struct span *s, const char *name, int64_t value);
/* It began so long before now: for what is known only afterwards. */
void span_began(struct span *s, int64_t us_ago);
/* Tells it and frees it; `why` NULL: it went well. */
void span_end(struct span *s, const struct fault *why);
/* Frees it, untold. */
void span_drop(struct span *s);

/* Whether it is one of version 00 with ids that are not zero. */
bool traceparent_check(const char *text);
