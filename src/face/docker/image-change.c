/* SPDX-License-Identifier: Apache-2.0 */

/* Images: tag, remove, prune. */

#include <stdio.h>
#include <string.h>

#include "face/docker/image-run.h"
#include "face/docker/routes.h"

/* ---- tag ---- */

static void tagged(void *arg, json_t *doc, const struct err *err)
{
	struct image_ask *x = arg;

	(void)doc;
	x->job = NULL;
	if (err) {
		image_fail(x->ask.r, err, x->ask.name);
		return;
	}
	image_event(x->ask.d, http_peer(x->ask.r), "tag", x->ask.name,
		    x->other);
	answer_empty(x->ask.r, 201);
}

HANDLER(post_image_tag)
{
	struct docker *d = docker_of(ctx);
	const char *repo = http_query(r, "repo");
	const char *tag = http_query(r, "tag");
	struct err err = { 0 };
	char name[REF_MAX];
	char ref[REF_MAX];
	struct image_ask *x;

	(void)snprintf(name, sizeof(name), "%.300s%s%.128s", repo ? repo : "",
		       tag && *tag ? ":" : "", tag ? tag : "");
	if (!repo || ref_normalise(name, ref) < 0 || *name == '-') {
		answer_fail(r, 400, "invalid reference format: %.200s", name);
	} else if (ref_is_host(http_param(r, 0)) || ref_is_host(name)) {
		answer_fail(r, 501,
			    "cordon: another name for the image 'host' is not "
			    "supported");
	} else {
		const char *args[4];

		x = image_ask_new(r, d);
		x->other = strdup(name);
		memcpy(args, (const char *[]){ "tag", x->ask.name, name, NULL },
		       sizeof(args));
		x->job = image_job_new(d, http_peer(r), args, false, tagged, x,
				       &err);
		if (!x->job)
			image_fail(r, &err, x->ask.name);
	}
}

/* ---- remove ---- */

static json_t *removed_list(struct image_ask *x, json_t *doc)
{
	static const struct {
		const char *list, *name, *action;
	} kinds[] = { { "untagged", "Untagged", "untag" },
		      { "deleted", "Deleted", "delete" } };
	json_t *out = json_array();

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		json_t *v;
		size_t i;

		json_array_foreach(json_object_get(doc, kinds[k].list), i, v)
		{
			const char *text = json_string_value(v);

			json_array_append_new(out, json_pack("{s:O}",
							     kinds[k].name, v));
			image_event(x->ask.d, http_peer(x->ask.r),
				    kinds[k].action, text, text);
		}
	}
	return out;
}

static void removed(void *arg, json_t *doc, const struct err *err)
{
	struct image_ask *x = arg;

	x->job = NULL;
	if (err)
		image_fail(x->ask.r, err, x->ask.name);
	else
		answer_json(x->ask.r, 200, removed_list(x, doc));
}

/* A container that was made from it, running or not. */
static bool is_used(struct docker *d, const struct peer *peer, const char *name,
		    char ret[65], bool *ret_runs)
{
	struct box **boxes = NULL;
	size_t n = box_list(d->m, peer, &boxes);
	bool found = false;

	for (size_t i = 0; i < n && !found; i++) {
		struct box_view v;
		json_t *extra;
		json_t *spec;
		const char *id;

		box_look(boxes[i], &v);
		extra = member_doc(v.extra);
		spec = member_doc(v.spec);
		id = image_id_of(spec);
		found = ref_is_same(image_of(extra, spec), name) ||
			(strlen(name) >= 7 &&
			 (strncmp(id, name, strlen(name)) == 0 ||
			  strncmp(id + 7, name, strlen(name)) == 0));
		(void)snprintf(ret, 65, "%s", v.id);
		*ret_runs = v.state == BOX_RUNNING || v.state == BOX_PAUSED;
		json_decref(extra);
		json_decref(spec);
	}
	free(boxes);
	return found;
}

HANDLER(delete_image)
{
	struct docker *d = docker_of(ctx);
	const char *name = http_param(r, 0);
	bool force = query_bool(r, "force", false);
	struct err err = { 0 };
	struct image_ask *x;
	char user[65];
	bool is_running = false;

	if (ref_is_host(name)) {
		answer_fail(r, 403,
			    "cordon: the image 'host' is refused to be "
			    "removed: it is "
			    "this machine");
		return;
	}
	if (is_used(d, http_peer(r), name, user, &is_running) &&
	    (!force || is_running)) {
		answer_fail(
			r, 409,
			"conflict: unable to remove repository reference "
			"\"%.200s\""
			" (%s) - container %.12s is using its referenced image",
			name, is_running ? "cannot be forced" : "must force",
			user);
		return;
	}
	x = image_ask_new(r, d);
	x->job = image_job_new(d, http_peer(r),
			       force ? (const char *[]){ "rm", "--json",
							 "--force", x->ask.name,
							 NULL }
				     : (const char *[]){ "rm", "--json",
							 x->ask.name, NULL },
			       false, removed, x, &err);
	if (!x->job)
		image_fail(r, &err, name);
}

static void pruned(void *arg, json_t *doc, const struct err *err)
{
	struct image_ask *x = arg;

	x->job = NULL;
	if (err) {
		image_fail(x->ask.r, err, "");
		return;
	}
	answer_json(x->ask.r, 200,
		    json_pack("{s:o,s:I}", "ImagesDeleted",
			      removed_list(x, doc), "SpaceReclaimed",
			      json_integer_value(
				      json_object_get(doc, "freed"))));
}

static bool is_false(const char *value, void *arg)
{
	(void)arg;
	return !bool_parse(value);
}

HANDLER(post_images_prune)
{
	struct docker *d = docker_of(ctx);
	json_t *f = need_filters(r, "dangling");
	struct err err = { 0 };
	struct image_ask *x;
	bool all;

	if (!f)
		return;
	all = filters_has(f, "dangling") &&
	      filters_any(f, "dangling", is_false, NULL);
	json_decref(f);
	x = image_ask_new(r, d);
	x->job = image_job_new(d, http_peer(r),
			       all ? (const char *[]){ "prune", "--json",
						       "--all", NULL }
				   : (const char *[]){ "prune", "--json",
						       NULL },
			       false, pruned, x, &err);
	if (!x->job)
		image_fail(r, &err, "");
}
