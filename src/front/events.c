/* SPDX-License-Identifier: Apache-2.0 */

/* What happened, for those who watch: the last FRONT_EVENTS are kept. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "front/doc.h"
#include "front/front.h"

#define MAX_LABELS 8192

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

	if (!now.time_ns)
		now.time_ns = day_ns();
	if (!m->ring)
		m->ring = calloc(1, sizeof(*m->ring));
	if (m->ring &&
	    keep(&m->ring->v[m->ring->next % FRONT_EVENTS], &now) == 0)
		m->ring->next++;
	for (struct watch *w = m->watches; w; w = w->next)
		if (may_see(w, &now))
			w->fn(w->arg, &now);
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
	for (; since_ns && i < n; i++) {
		const struct event *e = &m->ring->v[i % FRONT_EVENTS].e;

		if (e->time_ns >= since_ns && may_see(w, e))
			fn(arg, e);
	}
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

/* As {K: V}, or as a list of K=V. */
static void put_labels(json_t *o, const json_t *settings)
{
	const json_t *map = json_object_get(settings, "labels");
	const json_t *list = json_object_get(settings, "label");
	size_t i;
	json_t *v;

	if (json_is_object(map))
		(void)json_object_update(o, (json_t *)map);
	json_array_foreach((json_t *)list, i, v)
	{
		const char *text = json_string_value(v);
		const char *eq = text ? strchr(text, '=') : NULL;
		char name[256];

		if (!eq || (size_t)(eq - text) >= sizeof(name))
			continue;
		memcpy(name, text, (size_t)(eq - text));
		name[eq - text] = '\0';
		(void)json_object_set_new(o, name, json_string(eq + 1));
	}
}

/* Of a box, and what happened to it in one line. */
void events_cordon(struct box *b, const char *action, const char *reason)
{
	json_t *o = json_pack("{s:s,s:s}", "name", b->name, "reason", reason);
	_cleanup_free_ char *text = doc_text(o);

	events_tell(b->m, &(struct event){ .type = "cordon",
					   .action = action,
					   .id = b->id,
					   .owner = b->owner,
					   .attributes = text ? text : "{}" });
	json_decref(o);
}

/* name, image and labels; then what this event has of its own. */
void events_box(struct box *b, const char *action, const char *name,
		const char *value)
{
	json_t *o = json_object();
	json_t *settings = b->settings ? json_loads(b->settings, 0, NULL)
				       : NULL;
	_cleanup_free_ char *text = NULL;

	put_labels(o, settings);
	/* A thousand events are kept: none may be as large as a request. */
	if (json_dumpb(o, NULL, 0, JSON_COMPACT) > MAX_LABELS)
		(void)json_object_clear(o);
	(void)json_object_set_new(o, "name", json_string(b->name));
	(void)json_object_set_new(o, "image",
				  json_string(b->image ? b->image : "host"));
	if (name)
		(void)json_object_set_new(o, name, json_string(value));
	text = doc_text(o);
	events_tell(b->m, &(struct event){ .type = "container",
					   .action = action,
					   .id = b->id,
					   .owner = b->owner,
					   .attributes = text ? text : "{}" });
	json_decref(o);
	json_decref(settings);
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
