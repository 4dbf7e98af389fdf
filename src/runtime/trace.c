/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "runtime/ident.h"

struct tracer {
	struct tracer_options o;
	struct uuid_pool ids;
	int fd; /* of tracer_to_file() */
};

struct span {
	struct tracer *tracer;
	enum span_kind kind;
	bool is_sampled, has_parent;
	struct uuid trace;
	uint64_t id, parent;
	int64_t began, wall; /* us */
	json_t *attributes;
	char name[160];
	char traceparent[TRACEPARENT];
};

/* OTLP's numbers: 1 internal, 2 server, 3 client, 4 producer. */
static const struct {
	const char *name;
	const char *operation; /* gen_ai.operation.name */
	int otlp;
} kinds[] = {
	[SPAN_SEND] = { "send", NULL, 3 },
	[SPAN_PUBLISH] = { "publish", NULL, 4 },
	[SPAN_PROCESS] = { "process", NULL, 2 },
	[SPAN_AGENT] = { "invoke_agent", "invoke_agent", 1 },
	[SPAN_CHAT] = { "chat", "chat", 3 },
	[SPAN_TOOL] = { "execute_tool", "execute_tool", 1 },
	[SPAN_CODE] = { "execute_code", "execute_code", 1 },
	[SPAN_APPROVAL] = { "approval", NULL, 1 },
};
_Static_assert(ARRAY_SIZE(kinds) == SPAN_KINDS, "a kind has no name");

int tracer_new(const struct tracer_options *o, struct tracer **ret,
	       struct err *err)
{
	struct tracer *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(err, ENOMEM, "out of memory");
	t->o = *o;
	t->fd = NO_FD;
	*ret = t;
	return 0;
}

/* A trace that cannot be written is lost, not an error of who is traced. */
static void write_line(const struct tracer *t, const json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;

	if (text) {
		text[len] = '\n'; /* in the place of its NUL */
		(void)io_write_all(t->fd, text, len + 1);
	}
	free(text);
}

int tracer_to_file(const struct tracer_options *o, const char *path,
		   struct tracer **ret, struct err *err)
{
	_cleanup_fd_ int fd = open(path,
				   O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
				   0600);
	struct tracer *t = NULL;

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", path);
	if (tracer_new(o, &t, err) < 0 || !t)
		return -ENOMEM;
	t->fd = take_fd(&fd);
	*ret = t;
	return 0;
}

void tracer_free(struct tracer *t)
{
	if (!t)
		return;
	fd_close(&t->fd);
	free(t);
}

bool tracer_has_contents(const struct tracer *t)
{
	return t && t->o.has_contents;
}

/* --- where it belongs --- */

static bool read_hex(const char *p, size_t n, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";

	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		const char *at = p[i] ? strchr(digits, p[i]) : NULL;

		if (!at)
			return false;
		*ret = *ret << 4 | (uint64_t)(at - digits);
	}
	return true;
}

struct context {
	struct uuid trace;
	uint64_t span, flags;
};

static bool parse(const char *text, struct context *ret)
{
	return text && strlen(text) == 55 && memcmp(text, "00-", 3) == 0 &&
	       text[35] == '-' && text[52] == '-' &&
	       read_hex(text + 3, 16, &ret->trace.high) &&
	       read_hex(text + 19, 16, &ret->trace.low) &&
	       read_hex(text + 36, 16, &ret->span) &&
	       read_hex(text + 53, 2, &ret->flags) &&
	       !uuid_is_none(ret->trace) && ret->span != 0;
}

bool traceparent_check(const char *text)
{
	struct context c;

	return parse(text, &c);
}

static uint64_t not_zero(struct tracer *t)
{
	uint64_t id = 0;

	while (id == 0)
		id = uuid_make(&t->ids).low;
	return id;
}

static bool is_chosen(struct tracer *t)
{
	double share = t->o.sample > 0 ? t->o.sample : 1;

	return (double)(not_zero(t) >> 11) < share * (double)(1ULL << 53);
}

static void place(struct span *s, const char *parent)
{
	struct context c = { 0 };

	s->has_parent = parse(parent, &c);
	if (s->has_parent) {
		s->trace = c.trace;
		s->parent = c.span;
		s->is_sampled = c.flags & 1;
	} else {
		s->trace = uuid_make(&s->tracer->ids);
		s->is_sampled = is_chosen(s->tracer);
	}
	s->id = not_zero(s->tracer);
	(void)snprintf(s->traceparent, sizeof(s->traceparent),
		       "00-%016llx%016llx-%016llx-%02x",
		       (unsigned long long)s->trace.high,
		       (unsigned long long)s->trace.low,
		       (unsigned long long)s->id, s->is_sampled ? 1U : 0U);
}

/* --- its life --- */

static int64_t wall_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct span *span_begin(struct tracer *t, enum span_kind k, const char *of,
			const char *parent)
{
	struct span *s;

	if (!t || (t->o.off & 1U << k))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->tracer = t;
	s->kind = k;
	s->began = clock_us();
	s->wall = wall_us();
	(void)snprintf(s->name, sizeof(s->name), "%s%s%.120s", kinds[k].name,
		       of ? " " : "", of ? of : "");
	place(s, parent);
	if (s->is_sampled)
		s->attributes = json_array();
	if (kinds[k].operation)
		span_text(s, "gen_ai.operation.name", kinds[k].operation);
	return s;
}

const char *span_parent(const struct span *s, const char *parent)
{
	return s ? s->traceparent : parent;
}

static void add(struct span *s, const char *name, json_t *value)
{
	(void)json_array_append_new(s->attributes,
				    json_pack("{s:s, s:o}", "key", name,
					      "value", value));
}

void span_text(struct span *s, const char *name, const char *value)
{
	if (s && s->attributes && value)
		add(s, name, json_pack("{s:s}", "stringValue", value));
}

/* OTLP's JSON has 64 bits as text. */
void span_int(struct span *s, const char *name, int64_t value)
{
	if (s && s->attributes)
		add(s, name,
		    json_pack("{s:o}", "intValue",
			      json_sprintf("%lld", (long long)value)));
}

void span_began(struct span *s, int64_t us_ago)
{
	if (!s || us_ago < 0)
		return;
	s->wall += clock_us() - us_ago - s->began;
	s->began = clock_us() - us_ago;
}

void span_drop(struct span *s)
{
	if (!s)
		return;
	json_decref(s->attributes);
	free(s);
}

/* --- as OTLP has it --- */

static json_t *id_json(uint64_t id)
{
	return json_sprintf("%016llx", (unsigned long long)id);
}

static json_t *time_json(int64_t us)
{
	return json_sprintf("%lld000", (long long)us);
}

static json_t *status_json(const struct fault *why)
{
	if (!why || why->code == FAULT_NONE)
		return json_object();
	return json_pack("{s:i, s:s*}", "code", 2, "message",
			 fault_name(why->code));
}

static json_t *span_json(struct span *s, const struct fault *why)
{
	return json_pack("{s:o, s:o, s:o*, s:s, s:i, s:o, s:o, s:O, s:o}",
			 "traceId",
			 json_sprintf("%016llx%016llx",
				      (unsigned long long)s->trace.high,
				      (unsigned long long)s->trace.low),
			 "spanId", id_json(s->id), "parentSpanId",
			 s->has_parent ? id_json(s->parent) : NULL, "name",
			 s->name, "kind", kinds[s->kind].otlp,
			 "startTimeUnixNano", time_json(s->wall),
			 "endTimeUnixNano",
			 time_json(s->wall + clock_us() - s->began),
			 "attributes", s->attributes, "status",
			 status_json(why));
}

static void tell(const struct tracer *t, const json_t *request)
{
	if (t->fd >= 0)
		write_line(t, request);
	if (t->o.export)
		t->o.export(t->o.arg, request);
}

void span_end(struct span *s, const struct fault *why)
{
	json_t *request;

	if (!s)
		return;
	if (why && why->code != FAULT_NONE)
		span_text(s, "error.type", fault_name(why->code));
	if (s->is_sampled && s->attributes) {
		request = json_pack(
			"{s:[{s:{s:[{s:s, s:{s:s}}]}, s:[{s:{s:s}, s:[o]}]}]}",
			"resourceSpans", "resource", "attributes", "key",
			"service.name", "value", "stringValue", "cordon",
			"scopeSpans", "scope", "name", "cordon", "spans",
			span_json(s, why));
		if (request)
			tell(s->tracer, request);
		json_decref(request);
	}
	span_drop(s);
}
