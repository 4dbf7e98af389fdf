/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/filter-limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "policy/policy.h"
#include "runtime/filter-policy.h"

static void plain_free(struct filter *f)
{
	free(f);
}

static bool is_answer(const struct filter_view *v)
{
	return v->hook == ON_RESPONSE || v->hook == ON_DELIVER;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static size_t size_of(const struct filter_view *v)
{
	return v->message->data ? json_dumpb(v->message->data, NULL, 0,
					     JSON_COMPACT | JSON_ENCODE_ANY)
				: 0;
}

/* --- who to whom --- */

struct allow {
	struct filter filter;
	const struct allow_row *rows;
	size_t n;
};

static bool matches(const char *pattern, const char *name)
{
	size_t len;

	if (!pattern)
		return true;
	len = strlen(pattern);
	if (len > 0 && pattern[len - 1] == '*')
		return strncmp(pattern, or_empty(name), len - 1) == 0;
	return strcmp(pattern, or_empty(name)) == 0;
}

static enum filter_act judge_allow(struct filter *f,
				   const struct filter_view *v,
				   struct filter_verdict *ret)
{
	const struct allow *a = (struct allow *)f;
	const char *to = v->to ? v->to : v->topic;

	if (v->hook == ON_RESPONSE)
		return FILTER_PASS;
	for (size_t i = 0; i < a->n; i++)
		if (matches(a->rows[i].from, v->from) &&
		    matches(a->rows[i].to, to) &&
		    matches(a->rows[i].type, v->message->type))
			return FILTER_PASS;
	(void)snprintf(ret->reason, sizeof(ret->reason),
		       "no rule lets '%.60s' send '%.60s' to '%.60s'",
		       or_empty(v->from), v->message->type, or_empty(to));
	return FILTER_REJECT;
}

struct filter *filter_allow(const struct allow_row *rows, size_t n)
{
	struct allow *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->filter = (struct filter){ .name = "allow",
				     .judge = judge_allow,
				     .free = plain_free };
	a->rows = rows;
	a->n = n;
	return &a->filter;
}

/* --- how large, how much --- */

struct budget {
	struct filter filter;
	size_t max;
	uint64_t messages, bytes; /* that are left */
	bool counts_messages, counts_bytes;
};

static enum filter_act judge_size(struct filter *f, const struct filter_view *v,
				  struct filter_verdict *ret)
{
	const struct budget *b = (struct budget *)f;
	size_t size = size_of(v);

	if (size <= b->max)
		return FILTER_PASS;
	(void)snprintf(ret->reason, sizeof(ret->reason),
		       "the message has %zu bytes, at most %zu are allowed",
		       size, b->max);
	return FILTER_REJECT;
}

static enum filter_act judge_budget(struct filter *f,
				    const struct filter_view *v,
				    struct filter_verdict *ret)
{
	struct budget *b = (struct budget *)f;
	size_t size = b->counts_bytes ? size_of(v) : 0;

	if (is_answer(v))
		return FILTER_PASS;
	if ((b->counts_messages && b->messages == 0) || size > b->bytes) {
		(void)snprintf(ret->reason, sizeof(ret->reason),
			       "Budget exceeded: %s",
			       b->counts_messages && b->messages == 0
				       ? "messages"
				       : "bytes");
		return FILTER_REJECT;
	}
	b->messages -= b->counts_messages;
	b->bytes -= size;
	return FILTER_PASS;
}

static struct budget *budget_new(
	const char *name,
	enum filter_act (*judge)(struct filter *f, const struct filter_view *v,
				 struct filter_verdict *ret))
{
	struct budget *b = calloc(1, sizeof(*b));

	if (b)
		b->filter = (struct filter){ .name = name,
					     .judge = judge,
					     .free = plain_free };
	return b;
}

struct filter *filter_size(size_t max)
{
	struct budget *b = budget_new("size", judge_size);

	if (!b)
		return NULL;
	b->max = max;
	return &b->filter;
}

struct filter *filter_budget(uint64_t messages, uint64_t bytes)
{
	struct budget *b = budget_new("budget", judge_budget);

	if (!b)
		return NULL;
	b->messages = messages;
	b->bytes = bytes;
	b->counts_messages = messages > 0;
	b->counts_bytes = bytes > 0;
	return &b->filter;
}

/* --- how often --- */

struct sender {
	char *name; /* NULL: all others */
	double tokens;
	int64_t at;
};

struct rate {
	struct filter filter;
	struct rate_limit limit;
	struct sender *senders;
	size_t n;
};

static int64_t now(const struct rate *r)
{
	return r->limit.now ? r->limit.now() : clock_us();
}

/* One of the table, made when it is new; the last one where it is full. */
static struct sender *sender_of(struct rate *r, const char *name)
{
	struct sender *s;

	for (size_t i = 0; i < r->n; i++)
		if (r->senders[i].name && strcmp(r->senders[i].name, name) == 0)
			return &r->senders[i];
	s = &r->senders[MIN(r->n, RATE_SENDERS - 1)];
	if (r->n < RATE_SENDERS) {
		s->name = r->n < RATE_SENDERS - 1 ? strdup(name) : NULL;
		s->tokens = r->limit.burst;
		s->at = now(r);
		r->n++;
	}
	return s;
}

static enum filter_act judge_rate(struct filter *f, const struct filter_view *v,
				  struct filter_verdict *ret)
{
	struct rate *r = (struct rate *)f;
	struct sender *s;
	int64_t t;

	if (is_answer(v))
		return FILTER_PASS;
	s = sender_of(r, or_empty(v->from));
	t = now(r);
	s->tokens += (double)(t - s->at) / 1e6 * r->limit.per_second;
	s->tokens = MIN(s->tokens, r->limit.burst);
	s->at = t;
	if (s->tokens >= 1) {
		s->tokens -= 1;
		return FILTER_PASS;
	}
	(void)snprintf(ret->reason, sizeof(ret->reason),
		       "'%.80s' sends more than %g messages a second",
		       or_empty(v->from), r->limit.per_second);
	return FILTER_REJECT;
}

static void rate_free(struct filter *f)
{
	struct rate *r = (struct rate *)f;

	for (size_t i = 0; i < r->n; i++)
		free(r->senders[i].name);
	free(r->senders);
	free(r);
}

struct filter *filter_rate(const struct rate_limit *limit)
{
	struct rate *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->senders = calloc(RATE_SENDERS, sizeof(*r->senders));
	if (!r->senders) {
		free(r);
		return NULL;
	}
	r->limit = *limit;
	r->limit.burst = MAX(r->limit.burst, 1.0);
	r->filter = (struct filter){ .name = "rate",
				     .judge = judge_rate,
				     .free = rate_free };
	return &r->filter;
}

/* --- secrets, without a policy --- */

struct filter *filter_redact(void)
{
	static const char *const on[] = { "user", "assistant", "tool", "system",
					  NULL };
	static const char *const match[] = { "secrets", NULL };
	static const struct policy_filter rule = {
		.on = { .is_stated = true, .v = on, .n = 4 },
		.match = { .is_stated = true, .v = match, .n = 1 },
		.action = "mask",
	};
	static const struct policy policy = { .filters = &rule,
					      .n_filters = 1 };
	struct err err = { 0 };
	struct screen *s = NULL;
	struct filter *f;

	if (screen_new(&(struct screen_options){ .policy = &policy }, &s,
		       &err) < 0)
		return NULL;
	f = screen_filter(s);
	screen_unref(s);
	if (f)
		f->name = "redact";
	return f;
}
