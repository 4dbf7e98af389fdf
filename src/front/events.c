/* SPDX-License-Identifier: Apache-2.0 */

/* What happened, for those who watch: the last FRONT_EVENTS are kept. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "front/doc.h"
#include "front/exec.h"
#include "front/front.h"

#define MAX_LABELS ((size_t)32 << 10)

struct kept {
	struct event e;
	char *text; /* all its strings */
};

struct ring {
	size_t next;
	struct kept v[FRONT_EVENTS];
};

struct watch {
	struct watch *next;
	struct manager *m;
	uid_t uid;
	event_fn *fn;
	void *arg;
	size_t at;      /* the next one for it, while it is behind */
	bool is_behind; /* it said no: what comes waits in the ring */
	bool is_dead;
	struct task task;
};

/* One allocation for all strings of an event. */
static int keep(struct kept *k, const struct event *e)
{
	const char *from[] = { e->type, e->action, e->id, e->attributes };
	const char **to[] = { &k->e.type, &k->e.action, &k->e.id,
			      &k->e.attributes };
	size_t len = 0;
	char *p;

	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		len += strlen(from[i] ? from[i] : "") + 1;
	p = malloc(len);
	if (!p)
		return -ENOMEM;
	free(k->text);
	k->text = p;
	k->e = *e;
	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		size_t n = strlen(from[i] ? from[i] : "") + 1;

		memcpy(p, from[i] ? from[i] : "", n);
		*to[i] = p;
		p += n;
	}
	return 0;
}

static bool may_see(const struct watch *w, const struct event *e)
{
	return !w->is_dead && (w->uid == 0 || w->uid == e->owner);
}

void events_tell(struct manager *m, const struct event *e)
{
	struct event now = *e;
	bool is_kept;

	if (!now.time_ns)
		now.time_ns = day_ns();
	if (!m->ring)
		m->ring = calloc(1, sizeof(*m->ring));
	is_kept = m->ring &&
		  keep(&m->ring->v[m->ring->next % FRONT_EVENTS], &now) == 0;
	if (is_kept)
		m->ring->next++;
	for (struct watch *w = m->watches; w; w = w->next) {
		if (w->is_behind || !may_see(w, &now) || w->fn(w->arg, &now))
			continue;
		/* What was not kept is lost to it, and to who comes later. */
		w->is_behind = m->ring != NULL;
		w->at = m->ring ? m->ring->next - is_kept : 0;
	}
}

int events_resume(struct watch *w)
{
	const struct ring *ring = w->m->ring;

	while (w->is_behind && w->at < ring->next) {
		if (ring->next - w->at > FRONT_EVENTS)
			return -ENOENT;
		if (may_see(w, &ring->v[w->at % FRONT_EVENTS].e) &&
		    !w->fn(w->arg, &ring->v[w->at % FRONT_EVENTS].e))
			return 0;
		w->at++;
	}
	w->is_behind = false;
	return 1;
}

struct watch *events_watch(struct manager *m, const struct peer *peer,
			   int64_t since_ns, event_fn *fn, void *arg)
{
	struct watch *w = calloc(1, sizeof(*w));
	size_t n = m->ring ? m->ring->next : 0;
	size_t i = n > FRONT_EVENTS ? n - FRONT_EVENTS : 0;

	if (!w)
		return NULL;
	w->m = m;
	w->uid = peer->uid;
	w->fn = fn;
	w->arg = arg;
	while (i < n &&
	       (!since_ns || m->ring->v[i % FRONT_EVENTS].e.time_ns < since_ns))
		i++;
	w->at = i;
	w->is_behind = i < n;
	(void)events_resume(w);
	w->next = m->watches;
	m->watches = w;
	return w;
}

static void watch_free(struct task *t)
{
	struct watch *w = task_of(t, struct watch, task);
	struct watch **p = &w->m->watches;

	while (*p && *p != w)
		p = &(*p)->next;
	if (*p)
		*p = w->next;
	free(w);
}

void events_unwatch(struct watch *w)
{
	if (!w || w->is_dead)
		return;
	w->is_dead = true; /* maybe we are in its callback */
	soon(w->m, &w->task, watch_free);
}

/*
 * One label more. A thousand events are kept, and none may be as large as a
 * request: what is above MAX_LABELS of a box is left out, label by label.
 */
static void put_label(json_t *o, const char *name, size_t len,
		      const char *value, size_t *room)
{
	_cleanup_free_ char *key = strndup(name, len);
	size_t size = len + strlen(value);

	if (!key || size > *room)
		return;
	*room -= size;
	(void)json_object_set_new(o, key, doc_string(value));
}

/* Of K=V; those that begin with `but` are left out. */
static void put_label_list(json_t *o, json_t *list, const char *but,
			   size_t *room)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
	{
		const char *text = json_string_value(v);
		const char *eq = text ? strchr(text, '=') : NULL;

		if (eq && (!but || strncmp(text, but, strlen(but)) != 0))
			put_label(o, text, (size_t)(eq - text), eq + 1, room);
	}
}

/* Most have no labels: then they need not be read for each event. */
static json_t *read_if(const char *text, const char *part)
{
	return text && strstr(text, part) ? json_loads(text, 0, NULL) : NULL;
}

/* The image's, then the request's: as {K: V}, or as a list of K=V. */
static void put_labels(json_t *o, const struct box *b)
{
	json_t *spec = read_if(b->spec, "\"image_labels\":[\"");
	json_t *settings = read_if(b->settings, "\"label");
	size_t room = MAX_LABELS;
	const char *name;
	json_t *v;

	json_object_foreach(json_object_get(settings, "labels"), name, v)
	{
		if (json_is_string(v))
			put_label(o, name, strlen(name), json_string_value(v),
				  &room);
	}
	put_label_list(o, json_object_get(settings, "label"), NULL, &room);
	json_decref(settings);
	if (spec) {
		json_t *all = json_object();

		/* An image has no settings of Cordon, so no such labels. */
		put_label_list(all, json_object_get(spec, "image_labels"),
			       "io.cordon.", &room);
		(void)json_object_update_missing(o, all);
		json_decref(all);
	}
	json_decref(spec);
}

static void tell_box(struct box *b, const char *type, const char *action,
		     const json_t *attributes)
{
	_cleanup_free_ char *text = doc_text(attributes);

	events_tell(b->m, &(struct event){ .type = type,
					   .action = action,
					   .id = b->id,
					   .owner = b->owner,
					   .attributes = text ? text : "{}" });
}

/* Takes `more`, what this event has of its own; NULL: nothing. */
static void tell_cordon(struct box *b, const char *action, const char *reason,
			json_t *more)
{
	json_t *o = json_pack("{s:s,s:o,s:o}", "name", b->name, "image",
			      doc_string(b->image ? b->image : "host"),
			      "reason", doc_string(reason));

	(void)json_object_update(o, more);
	tell_box(b, "cordon", action, o);
	json_decref(o);
	json_decref(more);
}

/* Of a box, and what happened to it in one line. */
void events_cordon(struct box *b, const char *action, const char *reason)
{
	tell_cordon(b, action, reason, NULL);
}

void events_denied(struct box *b, const struct exec *e, const char *reason)
{
	tell_cordon(b, "policy_deny", reason,
		    e ? json_pack("{s:s}", "execID", e->id) : NULL);
}

static void amount(const json_t *v, char *ret, size_t size)
{
	const char *text = json_string_value(v);

	if (text)
		(void)snprintf(ret, size, "%s", text);
	else
		(void)snprintf(ret, size, "%lld",
			       (long long)json_integer_value(v));
}

/* One for each number that is lower than what was asked for. */
void events_clamped(struct box *b)
{
	json_t *list = b->clamped ? json_loads(b->clamped, 0, NULL) : NULL;
	json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		const char *name = doc_str(row, "name");
		char asked[64];
		char given[64];
		char text[400];

		amount(json_object_get(row, "asked"), asked, sizeof(asked));
		amount(json_object_get(row, "given"), given, sizeof(given));
		(void)snprintf(text, sizeof(text), "%.200s %s lowered to %s",
			       name ? name : "?", asked, given);
		tell_cordon(b, "policy_clamp", text,
			    json_pack("{s:s,s:o,s:o}", "setting",
				      name ? name : "?", "asked",
				      doc_string(asked), "given",
				      doc_string(given)));
	}
	json_decref(list);
}

static void box_event(struct box *b, const char *action, json_t *more)
{
	json_t *o = json_object();

	put_labels(o, b);
	(void)json_object_set_new(o, "name", json_string(b->name));
	(void)json_object_set_new(o, "image",
				  doc_string(b->image ? b->image : "host"));
	(void)json_object_update(o, more);
	tell_box(b, "container", action, o);
	json_decref(o);
}

/* name, image and labels; then what this event has of its own. */
void events_box(struct box *b, const char *action, const char *name,
		const char *value)
{
	json_t *more = name ? json_pack("{s:o}", name, doc_string(value))
			    : NULL;

	box_event(b, action, more);
	json_decref(more);
}

/* Its end; and before that, that a deadline was the reason. */
void events_exec_end(struct exec *e)
{
	json_t *more = json_pack("{s:o,s:s}", "exitCode",
				 json_sprintf("%d", e->exit_code), "execID",
				 e->id);

	if (e->shim == SHIM_TIMEOUT && e->exit_code == 124)
		tell_cordon(e->box, "timeout",
			    "a program was ended at the deadline of 'timeout'",
			    json_pack("{s:s}", "execID", e->id));
	else if (e->cause && strcmp(e->cause, "timeout") == 0)
		tell_cordon(e->box, "timeout",
			    "a program was ended at its deadline",
			    json_pack("{s:s}", "execID", e->id));
	/* The box's memory: its main program may be the next. */
	if (e->outcome.oom_kills > 0)
		events_box(e->box, "oom", "execID", e->id);
	box_event(e->box, "exec_die", more);
	json_decref(more);
}

void events_free(struct manager *m)
{
	for (size_t i = 0; m->ring && i < FRONT_EVENTS; i++)
		free(m->ring->v[i].text);
	free(take_ptr(m->ring));
	while (m->watches) {
		struct watch *w = m->watches;

		m->watches = w->next;
		free(w);
	}
}
