/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Images in and out: load, import, save; and pull, which this build does not
 * do and says so.
 */

#include <stdio.h>
#include <string.h>

#include "face/docker/image-run.h"
#include "face/docker/routes.h"

/* ---- in ---- */

struct move {
	struct ask ask;
	struct image_job *job; /* in */
	struct image_run *run; /* out */
	char *name_given;
	bool is_taken;  /* all of the body was given */
	bool has_ended; /* and it is known how it went */
	bool has_end;   /* out: no more bytes come */
	bool is_begun;
	bool is_import;
	json_t *doc;
	struct err err;
};

static void move_gone(struct ask *a)
{
	struct move *m = (struct move *)a;

	if (m->job)
		image_job_drop(m->job);
	if (m->run && !(m->has_ended && m->has_end))
		image_run_drop(m->run);
	json_decref(m->doc);
	free(m->name_given);
}

static void put_line(struct buf *out, json_t *doc)
{
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	if (text) {
		buf_puts(out, text);
		buf_puts(out, "\r\n");
	}
	free(text);
}

static void put_loaded(struct move *m, struct buf *out, json_t *image)
{
	const struct peer *peer = http_peer(m->ask.r);
	json_t *names = json_object_get(image, "names");
	const char *id = member_str(image, "id");
	const char *first = json_string_value(json_array_get(names, 0));
	char text[REF_MAX + 40];
	char full[REF_MAX];
	json_t *v;
	size_t i;

	/* As it is called from now on, whole; what has no name is its id. */
	if (!first || ref_normalise(first, full) < 0)
		(void)snprintf(full, sizeof(full), "%.80s", id);
	if (m->is_import) {
		put_line(out, json_pack("{s:s}", "status", id));
		image_event(m->ask.d, peer, "import", id, full);
		return;
	}
	json_array_foreach(names, i, v)
	{
		(void)snprintf(text, sizeof(text), "Loaded image: %.400s\n",
			       json_string_value(v));
		put_line(out, json_pack("{s:o}", "stream", doc_string(text)));
	}
	if (json_array_size(names) == 0) {
		(void)snprintf(text, sizeof(text), "Loaded image ID: %.80s\n",
			       id);
		put_line(out, json_pack("{s:o}", "stream", doc_string(text)));
	}
	image_event(m->ask.d, peer, "load", id, full);
}

/* Nothing was said before: an error can still be a status. */
static void in_answer(struct move *m)
{
	json_t *images = json_object_get(m->doc, "images");
	struct buf out;
	json_t *v;
	size_t i;

	if (m->err.code) {
		image_fail(m->ask.r, &m->err, "");
		return;
	}
	buf_init(&out, (size_t)1 << 20);
	json_array_foreach(images, i, v) put_loaded(m, &out, v);
	http_begin(m->ask.r, 200, JSON_TYPE, false);
	if (out.len > 0)
		(void)http_write(m->ask.r, out.data, out.len);
	buf_done(&out);
	http_end(m->ask.r);
}

static void in_done(void *arg, json_t *doc, const struct err *err)
{
	struct move *m = arg;

	m->job = NULL;
	m->has_ended = true;
	m->doc = json_incref(doc);
	if (err)
		m->err = *err;
	if (m->is_taken)
		in_answer(m);
	else
		http_body_ready(m->ask.r);
}

static size_t in_body(void *data, const char *bytes, size_t len)
{
	struct move *m = data;

	if (bytes && len > 0)
		return m->job ? image_run_add(image_job_run(m->job), bytes, len)
			      : len;
	if (m->is_taken)
		return 0;
	m->is_taken = true;
	if (m->has_ended)
		in_answer(m);
	else if (m->job)
		image_run_end_input(image_job_run(m->job));
	return 0;
}

static void in_ready(void *arg)
{
	struct move *m = arg;

	http_body_ready(m->ask.r);
}

static void take_in(struct move *m, const char *const *args)
{
	m->job = image_job_new(m->ask.d, http_peer(m->ask.r), args, true,
			       in_done, m, &m->err);
	if (!m->job)
		m->has_ended = true;
	else
		image_job_on_ready(m->job, in_ready);
	http_on_body(m->ask.r, in_body);
}

HANDLER(post_image_load)
{
	static const char *const args[] = { "load", "--json", NULL };
	struct move *m = ask_new(r, docker_of(ctx), sizeof(*m), move_gone);

	take_in(m, args);
}

/* ---- import and pull ---- */

static void import(struct http_request *r, struct docker *d)
{
	const char *repo = http_query(r, "repo");
	const char *tag = http_query(r, "tag");
	const char *message = http_query(r, "message");
	const char *platform = http_query(r, "platform");
	const char *args[IMAGE_ARGS + 8] = { "import", "--json" };
	char name[REF_MAX];
	char ref[REF_MAX];
	unsigned int at = 0;
	const char *change;
	struct move *m;
	size_t n = 2;

	if (platform && !platform_fits(platform)) {
		answer_fail(r, 400,
			    "cordon: platform %.60s: an image of another "
			    "platform than this machine's (linux/%s) is not "
			    "taken in",
			    platform, platform_here());
		return;
	}
	while ((change = http_query_next(r, "changes", &at)) != NULL) {
		if (n + 2 > IMAGE_ARGS) {
			answer_fail(r, 400, "changes: too many");
			return;
		}
		args[n++] = "--change";
		args[n++] = change;
	}
	if (message && *message) {
		args[n++] = "--message";
		args[n++] = message;
	}
	args[n++] = "-";
	if (repo && *repo) {
		if (ref_join(repo, ":", tag, name) < 0 ||
		    ref_normalise(name, ref) < 0 || ref_is_host(name)) {
			answer_fail(r, 400, "invalid reference format: %.200s",
				    repo);
			return;
		}
		args[n++] = name;
	}
	m = ask_new(r, d, sizeof(*m), move_gone);
	m->is_import = true;
	take_in(m, args);
}

/* The image of this machine is as new as this machine. */
static void pull_host(struct http_request *r)
{
	static const char lines[] =
		"{\"status\":\"Pulling from library/host\",\"id\":\"latest\"}"
		"\r\n"
		"{\"status\":\"Status: Image is up to date for host:latest\"}"
		"\r\n";

	http_begin(r, 200, JSON_TYPE, false);
	(void)http_write(r, lines, sizeof(lines) - 1);
	http_end(r);
}

HANDLER(post_image_create)
{
	const char *from = http_query(r, "fromImage");
	const char *source = http_query(r, "fromSrc");
	const char *platform = http_query(r, "platform");
	const char *tag = http_query(r, "tag");
	char name[REF_MAX];

	if (source && strcmp(source, "-") == 0) {
		import(r, docker_of(ctx));
		return;
	}
	if (source && *source) {
		answer_fail(r, 501,
			    "cordon: importing from an address is not "
			    "supported; send "
			    "the archive itself");
		return;
	}
	if (!from || !*from) {
		answer_fail(r, 400, "fromImage or fromSrc is missing");
		return;
	}
	if (ref_join(from, tag && strchr(tag, ':') ? "@" : ":", tag, name) < 0)
		answer_fail(r, 400, "invalid reference format: %.200s", from);
	else if (ref_is_host(name) && platform && !platform_fits(platform))
		answer_fail(r, 404,
			    "image with reference %.200s was found but does "
			    "not match the specified platform: wanted %.60s, "
			    "actual: linux/%s",
			    name, platform, platform_here());
	else if (ref_is_host(name))
		pull_host(r);
	else
		answer_fail(
			r, 403,
			"cordon: pulling %.200s is refused: images.pull is not "
			"granted by the policy, and fetching is not in this "
			"build; load an archive instead: docker load -i FILE",
			name);
}

/* ---- out ---- */

static size_t out_bytes(void *arg, int stream, const char *data, size_t len)
{
	struct move *m = arg;

	(void)stream;
	if (!m->is_begun && !m->has_ended) {
		m->is_begun = true;
		http_begin(m->ask.r, 200, "application/x-tar", false);
	}
	return m->is_begun ? http_write(m->ask.r, data, len) : len;
}

static void out_maybe(struct move *m)
{
	if (!m->has_ended || !m->has_end)
		return;
	m->run = NULL;
	if (m->err.code && !m->is_begun)
		image_fail(m->ask.r, &m->err, m->name_given);
	else if (m->is_begun)
		http_end(m->ask.r);
	else
		answer_fail(m->ask.r, 500, "cordon: the archive is empty");
}

static void out_end_(void *arg)
{
	struct move *m = arg;

	m->has_end = true;
	out_maybe(m);
}

static void out_done_(void *arg, const struct err *err)
{
	struct move *m = arg;

	m->has_ended = true;
	if (err) {
		m->err = *err;
		m->has_end = true;
	}
	out_maybe(m);
}

static void out_ready(void *data)
{
	struct move *m = data;

	if (m->run)
		image_run_ready(m->run);
}

static void save(struct http_request *r, struct docker *d,
		 const char *const *args, const char *first)
{
	struct move *m = ask_new(r, d, sizeof(*m), move_gone);
	struct sink sink = { out_bytes, out_end_, m };

	m->name_given = strdup(first);
	http_on_ready(r, out_ready);
	m->run = image_run(d->m, http_peer(r), args, false, &sink, out_done_, m,
			   &m->err);
	if (!m->run)
		image_fail(r, &m->err, first);
}

static bool may_save(struct http_request *r, const char *name)
{
	char ref[REF_MAX];

	if (ref_is_host(name))
		answer_fail(r, 501,
			    "cordon: saving the image 'host' is not supported: "
			    "it is "
			    "this machine");
	else if (ref_normalise(name, ref) < 0)
		answer_fail(r, 404, "No such image: %.200s", name);
	else
		return true;
	return false;
}

HANDLER(get_image_save)
{
	const char *name = http_param(r, 0);
	const char *args[] = { "save", "--quiet", name, NULL };

	if (may_save(r, name))
		save(r, docker_of(ctx), args, name);
}

HANDLER(get_images_save)
{
	const char *args[IMAGE_ARGS + 2] = { "save", "--quiet" };
	unsigned int at = 0;
	const char *name;
	size_t n = 2;

	while ((name = http_query_next(r, "names", &at)) != NULL) {
		if (n > IMAGE_ARGS) {
			answer_fail(r, 400, "names: too many");
			return;
		}
		if (!may_save(r, name))
			return;
		args[n++] = name;
	}
	if (n == 2)
		answer_fail(r, 400, "names is missing");
	else
		save(r, docker_of(ctx), args, args[2]);
}
