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

	if (!repo || ref_join(repo, ":", tag, name) < 0 ||
	    ref_normalise(name, ref) < 0 || *name == '-') {
		answer_fail(r, 400, "invalid reference format: %.200s",
			    repo ? repo : "");
	} else if (ref_is_host(http_param(r, 0)) || ref_is_host(name)) {
		answer_fail(r, 501,
			    "cordon: another name for the image 'host' is not "
			    "supported");
	} else {
		const char *args[4];

		x = image_ask_new(r, d);
		x->other = strdup(ref);
		memcpy(args, (const char *[]){ "tag", x->ask.name, name, NULL },
		       sizeof(args));
		x->job = image_job_new(d, http_peer(r), args, false, tagged, x,
				       &err);
		if (!x->job)
			image_fail(r, &err, x->ask.name);
	}
}

/* ---- remove ---- */

/* A container that uses an image. */
struct user {
	char id[65];
	bool is_running;
};

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

			char full[REF_MAX];

			json_array_append_new(out, json_pack("{s:O}",
							     kinds[k].name, v));
			/* By the whole name, as it was tagged. */
			if (k > 0 || ref_normalise(text, full) < 0)
				(void)snprintf(full, sizeof(full), "%s", text);
			image_event(x->ask.d, http_peer(x->ask.r),
				    kinds[k].action, full, full);
		}
	}
	return out;
}

static bool has_id(const char *id, const char *start)
{
	size_t len = strlen(start);

	return len >= 7 && (strncmp(id, start, len) == 0 ||
			    strncmp(id + 7, start, len) == 0);
}

/*
 * A container that was made from it; of several, one that runs, since that one
 * decides. `id` is of the image, or "".
 */
static bool is_used(struct docker *d, const struct peer *peer, const char *name,
		    const char *id, struct user *ret)
{
	struct box **boxes = NULL;
	size_t n = box_list(d->m, peer, &boxes);
	bool found = false;

	ret->is_running = false;
	for (size_t i = 0; i < n && !ret->is_running; i++) {
		struct box_view v;
		json_t *extra;
		json_t *spec;
		bool is_it;

		box_look(boxes[i], &v);
		extra = member_doc(v.extra);
		spec = member_doc(v.spec);
		is_it = ref_is_same(image_of(extra, spec), name) ||
			has_id(image_id_of(spec), name) ||
			has_id(image_id_of(spec), id);
		json_decref(extra);
		json_decref(spec);
		if (!is_it)
			continue;
		ret->is_running = v.state == BOX_RUNNING ||
				  v.state == BOX_PAUSED;
		if (!found || ret->is_running)
			(void)snprintf(ret->id, sizeof(ret->id), "%s", v.id);
		found = true;
	}
	free(boxes);
	return found;
}

static void fail_used(struct http_request *r, const char *name,
		      const struct user *u, bool force)
{
	answer_fail(r, 409,
		    "conflict: unable to remove repository reference "
		    "\"%.200s\" (%s) - container %.12s is using its "
		    "referenced image",
		    name,
		    u->is_running || force ? "cannot be forced" : "must force",
		    u->id);
}

static void removed(void *arg, json_t *doc, const struct err *err)
{
	struct image_ask *x = arg;
	struct user u;
	char id[24] = "";

	x->job = NULL;
	/* By another name than this one, or by its id. */
	if (err &&
	    sscanf(image_words(err), "image 'sha256:%12[0-9a-f]' is in use",
		   id) == 1 &&
	    is_used(x->ask.d, http_peer(x->ask.r), x->ask.name, id, &u))
		fail_used(x->ask.r, x->ask.name, &u, x->is_forced);
	else if (err)
		image_fail(x->ask.r, err, x->ask.name);
	else
		answer_json(x->ask.r, 200, removed_list(x, doc));
}

HANDLER(delete_image)
{
	struct docker *d = docker_of(ctx);
	const char *name = http_param(r, 0);
	bool force = query_bool(r, "force", false);
	struct err err = { 0 };
	struct image_ask *x;
	struct user u;

	if (ref_is_host(name)) {
		answer_fail(r, 403,
			    "cordon: the image 'host' is refused to be "
			    "removed: it is "
			    "this machine");
		return;
	}
	if (is_used(d, http_peer(r), name, "", &u) &&
	    (!force || u.is_running)) {
		fail_used(r, name, &u, force);
		return;
	}
	x = image_ask_new(r, d);
	x->is_forced = force;
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
	return !filter_is_true(value);
}

HANDLER(post_images_prune)
{
	struct docker *d = docker_of(ctx);
	json_t *f = need_filters(r, "dangling");
	struct err err = { 0 };
	struct image_ask *x;
	bool all;

	if (!f || !need_bools(r, f, "dangling"))
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
