/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Images: list, inspect, history. `host` is one of them: it has no layers and
 * no file, is always there, and cannot be removed.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "box/root-host.h"
#include "face/docker/image-run.h"
#include "face/docker/routes.h"

/* ---- the list ---- */

/* It is as old as what looks after it. */
static int64_t host_ns(struct docker *d)
{
	static const struct peer nobody = { .uid = 65534, .fd = NO_FD };
	struct manager_view v = { 0 };

	manager_look(d->m, &nobody, &v);
	return v.started_ns;
}

static json_t *host_row(struct docker *d)
{
	return json_pack("{s:s,s:s,s:[s],s:[],s:I,s:i,s:i,s:i,s:{}}", "Id",
			 host_id(), "ParentId", "", "RepoTags", "host:latest",
			 "RepoDigests", "Created",
			 (json_int_t)(host_ns(d) / 1000000000), "Size", 0,
			 "SharedSize", -1, "Containers", -1, "Labels");
}

/* "2026-01-02T03:04:05Z" as seconds; 0 unknown. */
static json_int_t seconds_of(const char *text)
{
	struct tm tm = { 0 };

	return strptime(text, "%Y-%m-%dT%H:%M:%S", &tm)
		       ? (json_int_t)timegm(&tm)
		       : 0;
}

static json_t *digests_of(json_t *names, const char *manifest)
{
	json_t *list = json_array();
	json_t *v;
	size_t i;

	json_array_foreach(names, i, v)
	{
		const char *name = json_string_value(v);
		const char *colon = name ? strrchr(name, ':') : NULL;
		char text[REF_MAX + 80];

		if (!colon || !*manifest)
			continue;
		(void)snprintf(text, sizeof(text), "%.*s@%s",
			       (int)(colon - name), name, manifest);
		json_array_append_new(list, json_string(text));
	}
	return list;
}

static json_t *row_of(json_t *image)
{
	json_t *names = json_object_get(image, "names");
	json_t *labels = json_object_get(image, "labels");
	json_int_t created = seconds_of(member_str(image, "created"));

	if (created == 0)
		created = seconds_of(member_str(image, "loaded"));
	return json_pack("{s:s,s:s,s:O,s:o,s:I,s:I,s:i,s:i,s:o,s:O?}", "Id",
			 member_str(image, "id"), "ParentId", "", "RepoTags",
			 names, "RepoDigests",
			 digests_of(names, member_str(image, "manifest")),
			 "Created", created, "Size",
			 json_integer_value(json_object_get(image, "size")),
			 "SharedSize", -1, "Containers", -1, "Labels",
			 json_is_object(labels) ? json_incref(labels)
						: json_object(),
			 LAYER_SIZES, json_object_get(image, "layer_sizes"));
}

struct image_query {
	struct docker *d;
	struct image_job *job;
	images_fn *done;
	void *arg;
};

static void listed(void *arg, json_t *doc, const struct err *err)
{
	struct image_query *q = arg;
	json_t *out = json_array();
	json_t *v;
	size_t i;

	json_array_foreach(doc, i, v)
	{
		json_t *row = row_of(v);

		if (row)
			json_array_append_new(out, row);
	}
	json_array_append_new(out, host_row(q->d));
	q->done(q->arg, out, err);
	json_decref(out);
	free(q);
}

struct image_query *images_list(struct docker *d, const struct peer *peer,
				images_fn *done, void *arg, struct err *err)
{
	static const char *const args[] = { "ls", "--json", NULL };
	struct image_query *q = calloc(1, sizeof(*q));

	if (!q)
		abort();
	q->d = d;
	q->done = done;
	q->arg = arg;
	q->job = image_job_new(d, peer, args, false, listed, q, err);
	if (!q->job) {
		free(q);
		return NULL;
	}
	return q;
}

void image_query_drop(struct image_query *q)
{
	image_job_drop(q->job);
	free(q);
}

/* "python", "python:3*", "*:latest" */
static bool glob_fits(const char *p, const char *t)
{
	const char *star = NULL;
	const char *back = NULL;

	while (*t) {
		if (*p == '*') {
			star = p++;
			back = t;
		} else if (*p == *t || *p == '?') {
			p++;
			t++;
		} else if (star) {
			p = star + 1;
			t = ++back;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return !*p;
}

static bool fits_reference(const char *value, void *arg)
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(arg, "RepoTags"), i, v)
	{
		const char *tag = json_string_value(v);
		char name[REF_MAX];
		char *colon;

		(void)snprintf(name, sizeof(name), "%s", tag ? tag : "");
		if (ref_is_same(value, name) || glob_fits(value, name))
			return true;
		colon = strrchr(name, ':');
		if (colon)
			*colon = '\0';
		if (glob_fits(value, name))
			return true;
	}
	return false;
}

static bool fits_dangling(const char *value, void *arg)
{
	bool is_dangling = json_array_size(json_object_get(arg, "RepoTags")) ==
			   0;

	return is_dangling == filter_is_true(value);
}

/* When the image of `before` or `since` was made; -1 there is no such. */
static json_int_t made(json_t *list, const json_t *f, const char *name)
{
	const char *text = json_string_value(
		json_array_get(json_object_get(f, name), 0));
	json_t *row;
	size_t i;

	if (!text)
		return 0;
	json_array_foreach(list, i, row)
	{
		const char *id = member_str(row, "Id");
		size_t len = strlen(text);

		if (fits_reference(text, row) ||
		    (len > 0 && (strncmp(id, text, len) == 0 ||
				 strncmp(id + 7, text, len) == 0)))
			return json_integer_value(
				json_object_get(row, "Created"));
	}
	return -1;
}

static void images_have(void *arg, json_t *list, const struct err *err)
{
	struct image_ask *x = arg;
	json_t *out;
	json_t *row;
	json_int_t before;
	json_int_t since;
	size_t i;

	x->query = NULL;
	if (err) {
		image_fail(x->ask.r, err, "");
		return;
	}
	before = made(list, x->filters, "before");
	since = made(list, x->filters, "since");
	if (before < 0 || since < 0) {
		answer_fail(x->ask.r, 400,
			    "invalid filter '%s': there is no such image",
			    before < 0 ? "before" : "since");
		return;
	}
	out = json_array();
	json_array_foreach(list, i, row)
	{
		json_int_t t = json_integer_value(
			json_object_get(row, "Created"));

		if ((filters_has(x->filters, "before") && t >= before) ||
		    (filters_has(x->filters, "since") && t <= since))
			continue;
		if (filters_any(x->filters, "reference", fits_reference, row) &&
		    filters_any(x->filters, "dangling", fits_dangling, row) &&
		    filters_labels(x->filters, json_object_get(row, "Labels")))
			json_array_append(out, row);
		json_object_del(row, LAYER_SIZES);
	}
	answer_json(x->ask.r, 200, out);
}

HANDLER(get_images)
{
	struct docker *d = docker_of(ctx);
	json_t *f = need_filters(r, "reference dangling label before since");
	struct err err = { 0 };
	struct image_ask *x;

	if (!f || !need_bools(r, f, "dangling"))
		return;
	x = image_ask_new(r, d);
	x->filters = f;
	x->query = images_list(d, http_peer(r), images_have, x, &err);
	if (!x->query)
		image_fail(r, &err, "");
}

/* ---- one ---- */

static json_t *host_doc(struct docker *d)
{
	char when[40];

	time_format(host_ns(d), when);
	return json_pack(
		"{s:s,s:[s],s:[],s:s,s:s,s:s,s:s,s:s,s:i,s:{s:s},s:{s:[s],s:[s]"
		",s:n,s:s,s:s,s:n,s:{},s:n},s:{s:s,s:[]},s:[]}",
		"Id", host_id(), "RepoTags", "host:latest", "RepoDigests",
		"Parent", "", "Comment", "the programs of this machine",
		"Created", when, "Architecture", platform_here(), "Os", "linux",
		"Size", 0, "GraphDriver", "Name", "overlay2", "Config", "Env",
		"PATH=" ROOT_PATH, "Cmd", "/bin/sh", "Entrypoint", "WorkingDir",
		ROOT_WORKDIR, "User", "", "ExposedPorts", "Labels", "Volumes",
		"RootFS", "Type", "layers", "Layers", "History");
}

static void image_have(void *arg, json_t *doc, const struct err *err)
{
	struct image_ask *x = arg;
	json_t *image = json_array_get(doc, 0);

	x->job = NULL;
	/* No image of the store begins so. */
	if (err && err->code == IMAGE_STATUS(1) &&
	    ref_may_be_host(x->ask.name)) {
		answer_json(x->ask.r, 200, host_doc(x->ask.d));
		return;
	}
	if (err || !image) {
		struct err none = { .code = IMAGE_STATUS(1) };

		image_fail(x->ask.r, err ? err : &none, x->ask.name);
		return;
	}
	json_object_del(image, "History");
	json_object_set_new(image, "Parent", json_string(""));
	json_object_set_new(image, "GraphDriver",
			    json_pack("{s:s,s:n}", "Name", "overlay2", "Data"));
	answer_json(x->ask.r, 200, json_incref(image));
}

static void history_have(void *arg, json_t *doc, const struct err *err)
{
	struct image_ask *x = arg;
	json_t *image = json_array_get(doc, 0);
	json_t *list;
	json_t *out;

	x->job = NULL;
	if (err || !image) {
		struct err none = { .code = IMAGE_STATUS(1) };

		image_fail(x->ask.r, err ? err : &none, x->ask.name);
		return;
	}
	out = json_array();
	list = json_object_get(image, "History");
	/* The newest first. */
	for (size_t i = json_array_size(list); i-- > 0;) {
		json_t *h = json_array_get(list, i);
		bool is_top = json_array_size(out) == 0;

		json_array_append_new(
			out,
			json_pack(
				"{s:s,s:I,s:s,s:o,s:I,s:s}", "Id",
				is_top ? member_str(image, "Id") : "<missing>",
				"Created", seconds_of(member_str(h, "Created")),
				"CreatedBy", member_str(h, "CreatedBy"), "Tags",
				is_top ? json_incref(json_object_get(
						 image, "RepoTags"))
				       : json_pack("n"),
				"Size",
				json_integer_value(json_object_get(h, "Size")),
				"Comment", member_str(h, "Comment")));
	}
	answer_json(x->ask.r, 200, out);
}

static void inspect(struct http_request *r, struct docker *d,
		    image_job_fn *done)
{
	struct image_ask *x = image_ask_new(r, d);
	const char *args[] = { "inspect", "--json", x->ask.name, NULL };
	struct err err = { 0 };
	char ref[REF_MAX];

	if (ref_normalise(x->ask.name, ref) < 0) {
		answer_fail(r, 404, "No such image: %.300s", x->ask.name);
		return;
	}
	x->job = image_job_new(d, http_peer(r), args, false, done, x, &err);
	if (!x->job)
		image_fail(r, &err, x->ask.name);
}

HANDLER(get_image)
{
	if (ref_is_host(http_param(r, 0)))
		answer_json(r, 200, host_doc(docker_of(ctx)));
	else
		inspect(r, docker_of(ctx), image_have);
}

HANDLER(get_image_history)
{
	if (ref_is_host(http_param(r, 0)))
		answer_json(r, 200, json_array());
	else
		inspect(r, docker_of(ctx), history_have);
}
