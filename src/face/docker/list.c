/* SPDX-License-Identifier: Apache-2.0 */

/* GET /containers/json */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "face/docker/internal.h"
#include "face/docker/routes.h"

static int64_t now_s(void)
{
	return (int64_t)time(NULL);
}

static void status_text(const struct box_view *v, char *ret, size_t size)
{
	char age[64];

	switch (v->state) {
	case BOX_RUNNING:
	case BOX_PAUSED:
		human_duration(now_s() - v->started_ns / 1000000000, age,
			       sizeof(age));
		(void)snprintf(ret, size, "Up %s%s", age,
			       v->state == BOX_PAUSED ? " (Paused)" : "");
		break;
	case BOX_EXITED:
		human_duration(now_s() - v->finished_ns / 1000000000, age,
			       sizeof(age));
		(void)snprintf(ret, size, "Exited (%d) %s ago", v->exit_code,
			       age);
		break;
	case BOX_CREATED:
		(void)snprintf(ret, size, "Created");
		break;
	default:
		(void)snprintf(ret, size, "Dead");
	}
}

/* The command as one line, as Docker shows it. */
static char *command_text(json_t *extra, json_t *spec)
{
	json_t *path;
	json_t *args;
	json_t *v;
	size_t i;
	struct buf out;

	path_and_args(extra, spec, &path, &args);
	buf_init(&out, 1 << 16);
	buf_puts(&out, json_string_value(path));
	json_array_foreach(args, i, v)
	{
		const char *text = json_string_value(v);

		text = text ? text : "";
		if (!*text || strpbrk(text, " \t\n'\""))
			(void)buf_printf(&out, " '%s'", text);
		else
			(void)buf_printf(&out, " %s", text);
	}
	json_decref(path);
	json_decref(args);
	return buf_take(&out);
}

json_t *list_row(struct box *b, bool with_size)
{
	struct box_view v;
	char status[96];
	char name[300];
	json_t *extra;
	json_t *spec;
	json_t *row;
	char *command;
	const char *mode;

	box_look(b, &v);
	extra = member_doc(v.extra);
	spec = member_doc(v.spec);
	command = command_text(extra, spec);
	status_text(&v, status, sizeof(status));
	(void)snprintf(name, sizeof(name), "/%s", v.name);
	mode = member_str(json_object_get(extra, "HostConfig"), "NetworkMode");
	row = json_pack(
		"{s:s,s:[s],s:s,s:s,s:s,s:I,s:[],s:O,s:s,s:s,s:{s:s},s:{s:o},"
		"s:o}",
		"Id", v.id, "Names", name, "Image", image_of(extra, spec),
		"ImageID", image_id_of(spec), "Command", command ? command : "",
		"Created", (json_int_t)(v.created_ns / 1000000000), "Ports",
		"Labels", labels_of(extra, spec), "State", state_name(v.state),
		"Status", status, "HostConfig", "NetworkMode",
		*mode ? mode : "default", "NetworkSettings", "Networks",
		networks_of(extra), "Mounts", mounts_of(spec));
	/* What it wrote is not measured: no SizeRw rather than a wrong one. */
	if (row && with_size)
		json_object_set_new(row, "SizeRootFs", json_integer(0));
	free(command);
	json_decref(extra);
	json_decref(spec);
	return row;
}

/* ---- sizes ---- */

struct sized {
	struct ask ask;
	struct image_query *query;
	json_t *doc;
};

static void sized_gone(struct ask *a)
{
	struct sized *s = (struct sized *)a;

	if (s->query)
		image_query_drop(s->query);
	json_decref(s->doc);
}

/* What is in a row as ImageID is Image in a container's own document. */
static void put_size(json_t *row, json_t *images)
{
	const char *id = member_str(row, "ImageID");
	json_t *image;
	size_t i;

	if (!*id)
		id = member_str(row, "Image");
	json_array_foreach(images, i,
			   image) if (strcmp(member_str(image, "Id"), id) == 0)
		json_object_set(row, "SizeRootFs",
				json_object_get(image, "Size"));
}

json_t *put_sizes(json_t *doc, json_t *images)
{
	json_t *row;
	size_t i;

	json_array_foreach(doc, i, row) put_size(row, images);
	if (json_is_object(doc))
		put_size(doc, images);
	return doc;
}

static void sized_have(void *arg, json_t *images, const struct err *err)
{
	struct sized *s = arg;

	(void)err;
	s->query = NULL;
	answer_json(s->ask.r, 200, json_incref(put_sizes(s->doc, images)));
}

void answer_sized(struct http_request *r, struct docker *d, json_t *doc)
{
	struct sized *s = ask_new(r, d, sizeof(*s), sized_gone);
	struct err err = { 0 };

	s->doc = doc;
	s->query = images_list(d, http_peer(r), sized_have, s, &err);
	if (!s->query)
		sized_have(s, NULL, &err);
}

/* ---- filters ---- */

struct sieve {
	struct box_view v;
	json_t *extra, *spec;
	json_t *images; /* as they are listed; NULL: not asked for */
};

static bool fits_id(const char *value, void *arg)
{
	struct sieve *s = arg;

	return strncmp(s->v.id, value, strlen(value)) == 0;
}

static bool fits_name(const char *value, void *arg)
{
	struct sieve *s = arg;
	char name[300];

	(void)snprintf(name, sizeof(name), "/%s", s->v.name);
	return pattern_found(value, name) || pattern_found(value, name + 1);
}

static bool fits_status(const char *value, void *arg)
{
	struct sieve *s = arg;

	return strcmp(state_name(s->v.state), value) == 0;
}

/* Whether one of the image's names is this one. */
static bool has_name(json_t *image, const char *name)
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(image, "RepoTags"), i, v)
	{
		if (ref_is_same(json_string_value(v), name))
			return true;
	}
	return false;
}

/* By the name it was made with, by its image's id, by any name of that. */
static bool fits_ancestor(const char *value, void *arg)
{
	struct sieve *s = arg;
	const char *id = image_id_of(s->spec);
	size_t len = strlen(value);
	json_t *image;
	size_t i;

	if (ref_is_same(image_of(s->extra, s->spec), value))
		return true;
	if (len > 0 &&
	    (strncmp(id, value, len) == 0 || strncmp(id + 7, value, len) == 0))
		return true;
	json_array_foreach(s->images, i, image)
	{
		if (strcmp(member_str(image, "Id"), id) == 0)
			return has_name(image, value);
	}
	return false;
}

static bool fits_exited(const char *value, void *arg)
{
	struct sieve *s = arg;
	uint64_t n;

	return s->v.state == BOX_EXITED && num_parse(value, 1000, &n) == 0 &&
	       (int)n == s->v.exit_code;
}

/* What is asked for, as far as the boxes themselves do not say it. */
struct which {
	const json_t *filters;
	json_t *images;
	bool all;
	int64_t before, since;
};

static bool fits(const struct which *w, struct box *b)
{
	const json_t *f = w->filters;
	struct sieve s = { .images = w->images };
	bool ok;

	box_look(b, &s.v);
	if (!w->all && s.v.state != BOX_RUNNING && s.v.state != BOX_PAUSED)
		return false;
	if ((w->before && s.v.created_ns >= w->before) ||
	    (w->since && s.v.created_ns <= w->since))
		return false;
	s.extra = member_doc(s.v.extra);
	s.spec = member_doc(s.v.spec);
	ok = filters_any(f, "id", fits_id, &s) &&
	     filters_any(f, "name", fits_name, &s) &&
	     filters_any(f, "status", fits_status, &s) &&
	     filters_any(f, "ancestor", fits_ancestor, &s) &&
	     filters_any(f, "exited", fits_exited, &s) &&
	     filters_labels(f, labels_of(s.extra, s.spec));
	json_decref(s.extra);
	json_decref(s.spec);
	return ok;
}

static bool state_check(const char *value, void *arg)
{
	static const char known[] = " created running paused exited dead "
				    "restarting removing ";
	char word[40];

	(void)snprintf(word, sizeof(word), " %.30s ", value);
	*(const char **)arg = value;
	/* The walk goes on while this says no: so it stops at a bad one. */
	return !strstr(known, word);
}

/* When the container of `before` or `since` was made; -1 answered. */
static int64_t made(struct http_request *r, struct docker *d, const json_t *f,
		    const char *name)
{
	json_t *list = json_object_get(f, name);
	const char *text = json_string_value(json_array_get(list, 0));
	struct err err = { 0 };
	struct box_view v;
	struct box *b;

	if (!text)
		return 0;
	b = box_find(d->m, http_peer(r), text, &err);
	if (!b) {
		answer_err(r, &err, text);
		return -1;
	}
	box_look(b, &v);
	return v.created_ns;
}

static void answer_list(struct http_request *r, struct docker *d,
			const json_t *f, json_t *images, uint64_t limit)
{
	struct which w = { .filters = f, .images = images };
	bool with_size = query_bool(r, "size", false);
	struct box **boxes = NULL;
	json_t *out;
	size_t n;

	w.before = made(r, d, f, "before");
	w.since = w.before < 0 ? -1 : made(r, d, f, "since");
	if (w.before < 0 || w.since < 0)
		return;
	w.all = query_bool(r, "all", false) || limit > 0 ||
		filters_has(f, "status") || filters_has(f, "exited") ||
		w.before || w.since;
	out = json_array();
	n = box_list(d->m, http_peer(r), &boxes);
	for (size_t i = 0; i < n; i++) {
		if (limit > 0 && json_array_size(out) >= limit)
			break;
		if (fits(&w, boxes[i]))
			json_array_append_new(out,
					      list_row(boxes[i], with_size));
	}
	free(boxes);
	if (with_size && images)
		answer_json(r, 200, put_sizes(out, images));
	else if (with_size)
		answer_sized(r, d, out);
	else
		answer_json(r, 200, out);
}

/* `ancestor` is any name of an image: its names come first. */
struct listing {
	struct ask ask;
	struct image_query *query;
	json_t *filters;
	uint64_t limit;
};

static void listing_gone(struct ask *a)
{
	struct listing *l = (struct listing *)a;

	if (l->query)
		image_query_drop(l->query);
	json_decref(l->filters);
}

static void listing_have(void *arg, json_t *images, const struct err *err)
{
	struct listing *l = arg;
	json_t *none = json_array();

	/* Without the store, the names that the boxes know. */
	(void)err;
	l->query = NULL;
	answer_list(l->ask.r, l->ask.d, l->filters, images ? images : none,
		    l->limit);
	json_decref(none);
}

static void list_with_images(struct http_request *r, struct docker *d,
			     json_t *f, uint64_t limit)
{
	struct listing *l = ask_new(r, d, sizeof(*l), listing_gone);
	struct err err = { 0 };

	l->filters = json_incref(f);
	l->limit = limit;
	l->query = images_list(d, http_peer(r), listing_have, l, &err);
	if (!l->query)
		listing_have(l, NULL, &err);
}

HANDLER(get_containers)
{
	struct docker *d = docker_of(ctx);
	const char *text = http_query(r, "limit");
	const char *bad = NULL;
	uint64_t limit = 0;
	json_t *f;

	/* docker-py says -1 for "no limit". */
	if (text && *text && *text != '-' &&
	    num_parse(text, 1000000, &limit) < 0) {
		answer_fail(r, 400, "limit: '%.40s' is not a number", text);
		return;
	}
	f = need_filters(r,
			 "id name label status ancestor exited before since");
	if (!f || !need_numbers(r, f, "exited"))
		return;
	if (filters_has(f, "status") &&
	    filters_any(f, "status", state_check, &bad))
		answer_fail(r, 400, "invalid filter 'status=%.40s'", bad);
	else if (filters_has(f, "ancestor"))
		list_with_images(r, d, f, limit);
	else
		answer_list(r, d, f, NULL, limit);
	json_decref(f);
}
