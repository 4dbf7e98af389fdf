/* SPDX-License-Identifier: Apache-2.0 */

/* GET /events */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "face/docker/internal.h"
#include "face/docker/routes.h"

#define WAITING_MAX ((size_t)1 << 20) /* of one event */

struct events {
	struct ask ask;
	struct watch *watch;
	uv_timer_t *timer;
	json_t *filters;
	struct buf waiting; /* what the client has not read yet */
	size_t at;
	int64_t until_ns;
	bool is_over; /* that moment has come */
};

static void timer_closed(uv_handle_t *h)
{
	free(h);
}

static void events_gone(struct ask *a)
{
	struct events *e = (struct events *)a;

	if (e->watch)
		events_unwatch(e->watch);
	if (e->timer)
		uv_close((uv_handle_t *)e->timer, timer_closed);
	json_decref(e->filters);
	buf_done(&e->waiting);
}

/* ---- which ---- */

struct subject {
	const struct event *e;
	json_t *attributes;
};

static bool fits_type(const char *value, void *arg)
{
	return strcmp(((struct subject *)arg)->e->type, value) == 0;
}

/* "exec_create" is also "exec_create: ls -l" */
static bool fits_action(const char *value, void *arg)
{
	const char *action = ((struct subject *)arg)->e->action;
	size_t len = strlen(value);

	return strncmp(action, value, len) == 0 &&
	       (!action[len] || action[len] == ':');
}

static bool fits_container(const char *value, void *arg)
{
	struct subject *s = arg;

	value += *value == '/';
	return strcmp(s->e->type, "container") == 0 && *value &&
	       (strncmp(s->e->id, value, strlen(value)) == 0 ||
		strcmp(member_str(s->attributes, "name"), value) == 0);
}

static bool fits_image(const char *value, void *arg)
{
	struct subject *s = arg;
	const char *image = strcmp(s->e->type, "image") == 0
				    ? s->e->id
				    : member_str(s->attributes, "image");

	return ref_is_same(image, value) ||
	       ref_is_same(member_str(s->attributes, "name"), value);
}

static bool fits_scope(const char *value, void *arg)
{
	(void)arg;
	return strcmp(value, "local") == 0;
}

/* Of networks, volumes, plugins and the daemon there are no events. */
static bool fits_never(const char *value, void *arg)
{
	(void)value;
	(void)arg;
	return false;
}

static bool fits(const struct events *x, const struct event *e,
		 json_t *attributes)
{
	static const char *const none[] = { "daemon", "network", "plugin",
					    "volume" };
	struct subject s = { e, attributes };

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (!filters_any(x->filters, none[i], fits_never, NULL))
			return false;

	return filters_any(x->filters, "type", fits_type, &s) &&
	       filters_any(x->filters, "event", fits_action, &s) &&
	       filters_any(x->filters, "container", fits_container, &s) &&
	       filters_any(x->filters, "image", fits_image, &s) &&
	       filters_any(x->filters, "scope", fits_scope, NULL) &&
	       filters_labels(x->filters, attributes);
}

/* ---- how ---- */

static json_t *event_doc(const struct event *e, json_t *attributes)
{
	json_t *doc = json_pack("{s:s,s:o,s:{s:o,s:O},s:s,s:I,s:I}", "Type",
				e->type, "Action", doc_string(e->action),
				"Actor", "ID", doc_string(e->id), "Attributes",
				attributes, "scope", "local", "time",
				(json_int_t)(e->time_ns / 1000000000),
				"timeNano", (json_int_t)e->time_ns);

	if (doc && strcmp(e->type, "container") == 0) {
		json_object_set_new(doc, "status", doc_string(e->action));
		json_object_set_new(doc, "id", json_string(e->id));
		json_object_set_new(doc, "from",
				    json_string(
					    member_str(attributes, "image")));
	}
	return doc;
}

/* Whether nothing waits for the client any more. */
static bool push(struct events *x)
{
	x->at += http_write(x->ask.r, x->waiting.data + x->at,
			    x->waiting.len - x->at);
	if (x->at < x->waiting.len)
		return false;
	buf_done(&x->waiting);
	buf_init(&x->waiting, WAITING_MAX);
	x->at = 0;
	return true;
}

/*
 * One object at a time: while a part of one waits, the next stays with the
 * manager, so that the reader sets the pace and gets whole objects only.
 */
static bool on_event(void *arg, const struct event *e)
{
	struct events *x = arg;
	json_t *attributes;
	json_t *doc = NULL;
	char *text = NULL;

	if (x->waiting.len > x->at)
		return false;
	attributes = member_doc(e->attributes);
	if ((!x->until_ns || e->time_ns <= x->until_ns) &&
	    fits(x, e, attributes))
		doc = event_doc(e, attributes);
	if (doc)
		text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	json_decref(attributes);
	if (!text)
		return true;
	(void)buf_puts(&x->waiting, text);
	(void)buf_puts(&x->waiting, "\r\n");
	free(text);
	(void)push(x);
	return true;
}

/* What waits, then what the manager has; the end comes after both. */
static void go_on(struct events *x)
{
	int r;

	if (x->waiting.len > x->at && !push(x))
		return;
	r = x->watch ? events_resume(x->watch) : 1;
	if (r < 0)
		http_cut(x->ask.r); /* not all of it, and that is seen */
	else if (r > 0 && x->is_over && x->waiting.len == x->at)
		http_end(x->ask.r);
}

static void on_ready(void *data)
{
	go_on(data);
}

static void on_until(uv_timer_t *t)
{
	struct events *x = t->data;

	x->is_over = true;
	go_on(x);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void arm(struct events *x)
{
	int64_t ms = (x->until_ns - now_ns()) / 1000000;

	x->timer = calloc(1, sizeof(*x->timer));
	if (!x->timer || uv_timer_init(x->ask.d->loop, x->timer) < 0)
		abort();
	x->timer->data = x;
	/* What is known from before comes first. */
	uv_timer_start(x->timer, on_until, (uint64_t)MAX(ms, 20), 0);
}

HANDLER(get_events)
{
	static const char known[] =
		"type event container image label scope daemon network volume "
		"plugin";
	struct docker *d = docker_of(ctx);
	const char *since = http_query(r, "since");
	const char *until = http_query(r, "until");
	json_t *f = need_filters(r, known);
	int64_t since_ns = now_ns();
	int64_t until_ns = 0;
	struct events *x;

	if (!f)
		return;
	if ((since && *since && time_parse(since, &since_ns) < 0) ||
	    (until && *until && time_parse(until, &until_ns) < 0)) {
		answer_fail(r, 400, "since and until are seconds since 1970");
		json_decref(f);
		return;
	}
	x = ask_new(r, d, sizeof(*x), events_gone);
	x->filters = f;
	x->until_ns = until_ns;
	buf_init(&x->waiting, WAITING_MAX);
	http_on_ready(r, on_ready);
	http_begin(r, 200, JSON_TYPE, false);
	if (until_ns)
		arm(x);
	x->watch = events_watch(d->m, http_peer(r), since_ns, on_event, x);
}
