/* SPDX-License-Identifier: Apache-2.0 */

/* Posts and paths in memory; envelope.c writes them down. */

#include "runtime/post.h"

#include <stdlib.h>
#include <string.h>

static const char *place(char **at, const char *text, size_t size)
{
	char *here = *at;

	if (!text)
		return NULL;
	memcpy(here, text, size);
	*at += size;
	return here;
}

static size_t size_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

struct post *post_new(enum post_kind kind, const struct address *a)
{
	size_t from = size_of(a->from);
	size_t to = size_of(a->to);
	size_t topic = size_of(a->topic);
	size_t trace = size_of(a->traceparent);
	struct post *p = malloc(sizeof(*p) + from + to + topic + trace);
	char *at;

	if (!p)
		return NULL;
	*p = (struct post){ .refs = 1, .kind = kind, .attempt = 1 };
	at = p->text;
	p->from = place(&at, a->from, from);
	p->to = place(&at, a->to, to);
	p->topic = place(&at, a->topic, topic);
	p->traceparent = place(&at, a->traceparent, trace);
	return p;
}

struct post *post_ref(struct post *p)
{
	p->refs++;
	return p;
}

void post_unref(struct post *p)
{
	if (!p || --p->refs > 0)
		return;
	message_unref(p->message);
	if (p->why.code != FAULT_NONE)
		fault_done(&p->why);
	hop_unref(p->path);
	cancel_unref(p->cancel);
	cancel_unref(p->scope);
	json_decref(p->headers);
	free(p);
}

struct hop *hop_new(struct hop *up, const char *id)
{
	size_t size = strlen(id) + 1;
	struct hop *h = malloc(sizeof(*h) + size);

	if (!h)
		return NULL;
	*h = (struct hop){ .refs = 1,
			   .depth = up ? up->depth + 1 : 1,
			   .up = hop_ref(up) };
	memcpy(h->id, id, size);
	return h;
}

struct hop *hop_ref(struct hop *h)
{
	if (h)
		h->refs++;
	return h;
}

void hop_unref(struct hop *h)
{
	while (h && --h->refs == 0) {
		struct hop *up = h->up;

		free(h);
		h = up;
	}
}

unsigned int hop_count(const struct hop *h, const char *id)
{
	unsigned int n = 0;

	for (; h; h = h->up)
		n += strcmp(h->id, id) == 0;
	return n;
}
