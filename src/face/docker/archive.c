/* SPDX-License-Identifier: Apache-2.0 */

/* Files in and out of a container, as tar. */

#include <stdio.h>
#include <string.h>

#include "face/docker/internal.h"
#include "face/docker/routes.h"

#define TAR_TYPE "application/x-tar"

struct archive {
	struct ask ask;
	char *path;
	/* out */
	struct feed *feed;
	bool is_begun, is_export;
	/* in */
	struct files_writer *writer;
	bool is_taken;    /* all of the body was given */
	bool has_ended;   /* the manager has said how it went */
	struct err ended; /* and so */
};

static void archive_gone(struct ask *a)
{
	struct archive *x = (struct archive *)a;

	if (x->feed)
		feed_drop(x->feed);
	/* Also after its end: then it is let go. */
	if (x->writer)
		files_writer_drop(x->writer);
	free(x->path);
}

static const char *need_path(struct http_request *r)
{
	const char *path = http_query(r, "path");

	if (!path || !*path) {
		answer_fail(r, 400, "bad parameter: path is missing");
		return NULL;
	}
	if (strlen(path) > 4000) {
		answer_fail(r, 400, "bad parameter: path is too long");
		return NULL;
	}
	return path;
}

/* Docker takes "a" as "/a". */
static struct archive *archive_new(struct http_request *r, struct docker *d,
				   const char *path)
{
	struct archive *x = ask_new(r, d, sizeof(*x), archive_gone);
	size_t len = strlen(path) + 2;

	x->path = malloc(len);
	if (!x->path)
		abort();
	/* None at all is the whole root, for an export. */
	(void)snprintf(x->path, len, "%s%s", *path == '/' || !*path ? "" : "/",
		       path);
	return x;
}

static void archive_fail(struct archive *x, const struct err *err)
{
	if (err->code == MGR_NO_FILE)
		answer_fail(
			x->ask.r, 404,
			"Could not find the file %.400s in container %.100s",
			x->path, x->ask.name);
	else
		answer_err(x->ask.r, err, x->ask.name);
}

static void add_stat(struct http_request *r, const struct file_stat *st)
{
	char when[40];
	struct buf out;
	json_t *name = json_string(st->name);
	json_t *link = json_string(st->link ? st->link : "");
	json_t *doc;
	char *text;

	time_format(st->mtime_ns, when);
	doc = json_pack("{s:o,s:I,s:I,s:s,s:o}", "name",
			name ? name : json_string("?"), "size",
			(json_int_t)st->size, "mode",
			(json_int_t)go_mode(st->st_mode), "mtime", when,
			"linkTarget", link ? link : json_string("?"));
	text = json_dumps(doc, JSON_COMPACT);
	buf_init(&out, 1 << 15);
	base64_encode(text ? text : "", text ? strlen(text) : 0, &out);
	if (out.data && !out.error)
		http_add_header(r, "X-Docker-Container-Path-Stat", out.data);
	buf_done(&out);
	free(text);
	json_decref(doc);
}

static void stat_done(void *arg, const struct file_stat *st,
		      const struct err *err)
{
	struct archive *x = arg;

	x->ask.call = NULL;
	if (err) {
		archive_fail(x, err);
		return;
	}
	add_stat(x->ask.r, st);
	answer_empty(x->ask.r, 200);
}

HANDLER(head_archive)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	const char *path = b ? need_path(r) : NULL;
	struct archive *x;

	if (!path)
		return;
	x = archive_new(r, d, path);
	x->ask.call = files_stat(b, x->path, stat_done, x);
}

/* ---- out ---- */

static size_t tar_write(void *arg, int stream, const char *data, size_t len)
{
	struct archive *x = arg;

	(void)stream;
	return x->is_begun ? http_write(x->ask.r, data, len) : 0;
}

static void tar_end(void *arg)
{
	struct archive *x = arg;

	x->feed = NULL;
	if (x->is_begun)
		http_end(x->ask.r);
}

static void tar_ready(void *data)
{
	struct archive *x = data;

	if (x->feed)
		feed_ready(x->feed);
}

static void tar_found(void *arg, const struct file_stat *st,
		      const struct err *err)
{
	struct archive *x = arg;

	x->ask.call = NULL;
	if (err) {
		x->feed = NULL;
		archive_fail(x, err);
		return;
	}
	if (!x->is_export)
		add_stat(x->ask.r, st);
	x->is_begun = true;
	http_on_ready(x->ask.r, tar_ready);
	http_begin(x->ask.r, 200,
		   x->is_export ? "application/octet-stream" : TAR_TYPE, false);
	if (x->feed)
		feed_ready(x->feed);
}

static void read_tar(struct http_request *r, struct docker *d, struct box *b,
		     const char *path, bool is_export)
{
	struct archive *x = archive_new(r, d, path);
	struct sink sink = { tar_write, tar_end, x };

	x->is_export = is_export;
	x->ask.call = files_read(b, x->path, &sink, &x->feed, tar_found, x);
}

HANDLER(get_archive)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	const char *path = b ? need_path(r) : NULL;

	if (path)
		read_tar(r, d, b, path, false);
}

HANDLER(get_export)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);

	if (b)
		read_tar(r, d, b, "", true);
}

/* ---- in ---- */

static void put_answer(struct archive *x)
{
	if (x->ended.code)
		archive_fail(x, &x->ended);
	else
		http_answer(x->ask.r, 200, NULL, NULL, 0);
}

/*
 * An answer while the client still sends would be lost with the connection:
 * the rest is read away first.
 */
static void put_done(void *arg, const struct err *err)
{
	struct archive *x = arg;

	x->has_ended = true;
	if (err)
		x->ended = *err;
	if (x->is_taken)
		put_answer(x);
	else
		http_body_ready(x->ask.r);
}

static size_t put_body(void *data, const char *bytes, size_t len)
{
	struct archive *x = data;

	if (bytes && len > 0)
		return x->has_ended ? len
				    : files_writer_add(x->writer, bytes, len);
	if (x->is_taken)
		return 0;
	x->is_taken = true;
	if (x->has_ended)
		put_answer(x);
	else
		files_writer_end(x->writer);
	return 0;
}

static void put_ready(void *arg)
{
	struct archive *x = arg;

	http_body_ready(x->ask.r);
}

HANDLER(put_archive)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	const char *path = b ? need_path(r) : NULL;
	struct err err = { 0 };
	unsigned int flags = 0;
	struct archive *x;

	if (!path)
		return;
	x = archive_new(r, d, path);
	if (query_bool(r, "noOverwriteDirNonDir", false))
		flags |= FILES_PUT_NO_OVERWRITE;
	/* Ids that the box does not have are its user's. */
	if (query_bool(r, "copyUIDGID", false))
		flags |= FILES_PUT_IDS;
	x->writer = files_write(b, x->path, flags, put_done, x, &err);
	if (!x->writer) {
		x->has_ended = true;
		x->ended = err;
	} else {
		files_writer_on_ready(x->writer, put_ready);
	}
	http_on_body(r, put_body);
}
