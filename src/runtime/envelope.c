/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Envelopes: a post as JSON and back, without loss.
 *
 *	{"v":1,"id":"...","kind":"request","type":"acme.Order",
 *	 "content_type":"application/json","from":"writer/s1",
 *	 "to":"checker/s1","topic":"default/s1","reply_to":"...",
 *	 "deadline":"2026-01-02T03:04:05.000Z","path":["team/1","writer/s1"],
 *	 "attempt":1,"traceparent":"00-...","headers":{},"data":{}}
 *
 * What there is not is left out. An error's data is the fault, its type
 * "cordon.Error"; so is that of a cancel. The deadline is on the clock of the
 * day here and on the monotonic one in memory; it may be off by what the day
 * was set in between.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/util.h"
#include "runtime/post.h"

static const char *const kinds[POST_KINDS] = {
	[POST_REQUEST] = "request", [POST_RESPONSE] = "response",
	[POST_EVENT] = "event",     [POST_ERROR] = "error",
	[POST_CANCEL] = "cancel",
};

static const char *const overflows[] = {
	[OVERFLOW_WAIT] = "wait",
	[OVERFLOW_FAIL] = "fail",
	[OVERFLOW_DROP_OLDEST] = "drop_oldest",
};

static const char overflow_header[] = "cordon-overflow";

const char *post_kind_name(enum post_kind kind)
{
	return kinds[kind];
}

static int index_of(const char *name, const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		if (name && strcmp(names[i], name) == 0)
			return i;
	return -1;
}

/* --- the deadline --- */

static int64_t day_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void format_time(int64_t mono, char *ret, size_t size)
{
	int64_t ms = (mono - clock_us() + day_us()) / 1000;
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	size_t n;

	(void)gmtime_r(&seconds, &tm);
	n = strftime(ret, size, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(ret + n, size - n, ".%03dZ", (int)(ms % 1000));
}

static bool parse_time(const char *text, int64_t *ret)
{
	struct tm tm = { 0 };
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t us = 0;

	if (rest && *rest == '.') {
		int64_t unit = 100000;

		for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
			us += (*rest - '0') * unit;
	}
	if (!rest || strcmp(rest, "Z") != 0)
		return false;
	us += (int64_t)timegm(&tm) * 1000000;
	*ret = MAX(us - day_us() + clock_us(), 1);
	return true;
}

/* --- to JSON --- */

static int set_text(json_t *o, const char *key, const char *text)
{
	return text && *text ? json_object_set_new(o, key, json_string(text))
			     : 0;
}

static int set_id(json_t *o, const char *key, struct uuid id)
{
	char text[UUID_TEXT];

	if (uuid_is_none(id))
		return 0;
	uuid_format(id, text);
	return set_text(o, key, text);
}

static int set_path(json_t *o, const struct hop *h)
{
	json_t *path;
	int r = 0;

	if (!h)
		return 0;
	path = json_array();
	for (; h; h = h->up)
		r |= json_array_insert_new(path, 0, json_string(h->id));
	return r | json_object_set_new(o, "path", path);
}

static int set_headers(json_t *o, const struct post *p)
{
	json_t *h = p->headers ? json_copy(p->headers) : json_object();
	int r = 0;

	if (p->overflow != OVERFLOW_WAIT)
		r = set_text(h, overflow_header, overflows[p->overflow]);
	return r | json_object_set_new(o, "headers", h);
}

static int set_data(json_t *o, const struct post *p)
{
	if (p->kind == POST_ERROR || p->kind == POST_CANCEL)
		return set_text(o, "type", "cordon.Error") |
		       json_object_set_new(o, "data", fault_json(&p->why));
	if (!p->message)
		return 0;
	return set_text(o, "type", p->message->type) |
	       json_object_set(o, "data", p->message->data);
}

json_t *post_json(struct post *p, struct uuid_pool *ids, const char *to)
{
	json_t *o = json_pack("{s:i, s:s, s:s, s:i}", "v", 1, "kind",
			      kinds[p->kind], "content_type",
			      "application/json", "attempt", (int)p->attempt);
	char when[48] = "";
	int r;

	if (uuid_is_none(p->id))
		p->id = uuid_make(ids);
	if (p->deadline)
		format_time(p->deadline, when, sizeof(when));
	r = set_id(o, "id", p->id) | set_id(o, "reply_to", p->reply_to) |
	    set_text(o, "from", p->from) | set_text(o, "to", to ? to : p->to) |
	    set_text(o, "topic", p->topic) | set_text(o, "deadline", when) |
	    set_text(o, "traceparent", p->traceparent) | set_path(o, p->path) |
	    set_headers(o, p) | set_data(o, p);
	if (r != 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* --- from JSON --- */

struct fields {
	int version, attempt;
	const char *kind, *id, *reply_to, *type, *content_type;
	const char *deadline;
	struct address address;
	json_t *path, *headers, *data;
};

static int unpack(const json_t *o, struct fields *f, struct err *err)
{
	json_error_t why;

	f->attempt = 1;
	f->content_type = "application/json";
	if (json_unpack_ex((json_t *)o, &why, 0,
			   "{s:i, s:s, s:s, s?i, s?s, s?s, s?s, s?s, s?s, s?s,"
			   " s?s, s?s, s?o, s?o, s?o}",
			   "v", &f->version, "kind", &f->kind, "id", &f->id,
			   "attempt", &f->attempt, "reply_to", &f->reply_to,
			   "type", &f->type, "content_type", &f->content_type,
			   "from", &f->address.from, "to", &f->address.to,
			   "topic", &f->address.topic, "deadline", &f->deadline,
			   "traceparent", &f->address.traceparent, "path",
			   &f->path, "headers", &f->headers, "data",
			   &f->data) < 0)
		return err_set(err, EINVAL, "not an envelope: %s", why.text);
	if (f->version != 1)
		return err_set(err, EINVAL, "envelope of version %d",
			       f->version);
	if (strcmp(f->content_type, "application/json") != 0)
		return err_set(err, EINVAL, "no such content type: '%s'",
			       f->content_type);
	return 0;
}

static int check_address(const struct address *a, struct err *err)
{
	if ((a->from && !actor_id_split(a->from)) ||
	    (a->to && !actor_id_split(a->to)) ||
	    (a->topic && !topic_split(a->topic)))
		return err_set(err, EINVAL, "an address is not valid");
	if (a->traceparent && strlen(a->traceparent) > TRACEPARENT_MAX)
		return err_set(err, EINVAL, "the traceparent is too long");
	return 0;
}

static int load_path(struct post *p, const json_t *path, struct err *err)
{
	const json_t *id;
	size_t i;

	if (path && (!json_is_array(path) || json_array_size(path) > HOPS_MAX))
		return err_set(err, EINVAL, "the path is not valid");
	json_array_foreach(path, i, id)
	{
		struct hop *h = NULL;

		if (json_is_string(id) && actor_id_split(json_string_value(id)))
			h = hop_new(p->path, json_string_value(id));
		if (!h)
			return err_set(err, EINVAL, "the path is not valid");
		hop_unref(p->path);
		p->path = h;
	}
	return 0;
}

static int load_headers(struct post *p, const json_t *headers, struct err *err)
{
	const json_t *overflow = json_object_get(headers, overflow_header);
	int i;

	if (headers && !json_is_object(headers))
		return err_set(err, EINVAL, "the headers are no object");
	if (overflow) {
		i = index_of(json_string_value(overflow), overflows,
			     ARRAY_SIZE(overflows));
		if (i < 0)
			return err_set(err, EINVAL, "no such overflow rule");
		p->overflow = (enum overflow)i;
	}
	if (json_object_size(headers) == 0)
		return 0;
	p->headers = json_copy((json_t *)headers);
	(void)json_object_del(p->headers, overflow_header);
	return p->headers ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int load_data(struct post *p, const struct fields *f, struct err *err)
{
	if (p->kind == POST_ERROR || p->kind == POST_CANCEL)
		return fault_load(&p->why, f->data, err);
	if (!f->type && p->kind == POST_RESPONSE)
		return 0;
	if (!f->type || !f->data)
		return err_set(err, EINVAL, "the envelope has no message");
	p->message = message_new(f->type, json_incref(f->data));
	return p->message ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int load_rest(struct post *p, const struct fields *f, struct err *err)
{
	int r;

	if (!uuid_parse(f->id, &p->id) ||
	    (f->reply_to && !uuid_parse(f->reply_to, &p->reply_to)))
		return err_set(err, EINVAL, "an id is no UUID");
	if (f->deadline && !parse_time(f->deadline, &p->deadline))
		return err_set(err, EINVAL, "the deadline is no time");
	if (f->attempt < 1)
		return err_set(err, EINVAL, "the attempt is no number");
	p->attempt = (unsigned int)f->attempt;
	r = load_path(p, f->path, err);
	if (r == 0)
		r = load_headers(p, f->headers, err);
	return r == 0 ? load_data(p, f, err) : r;
}

int post_load(const json_t *envelope, struct post **ret, struct err *err)
{
	struct fields f = { 0 };
	struct post *p;
	int kind;
	int r = unpack(envelope, &f, err);

	if (r == 0)
		r = check_address(&f.address, err);
	if (r < 0)
		return r;
	kind = index_of(f.kind, kinds, POST_KINDS);
	if (kind < 0)
		return err_set(err, EINVAL, "no such kind: '%s'", f.kind);
	p = post_new((enum post_kind)kind, &f.address);
	if (!p)
		return err_set(err, ENOMEM, "out of memory");
	r = load_rest(p, &f, err);
	if (r < 0)
		post_unref(p);
	else
		*ret = p;
	return r;
}
