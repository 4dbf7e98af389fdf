/* SPDX-License-Identifier: Apache-2.0 */

/* Files of a box, as tar. */

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/util.h"
#include "face/own/internal.h"

static const char *path_of(struct http_request *r)
{
	const char *path = http_query(r, "path");

	if (path && *path)
		return path;
	own_fail(r, 400, "'path' is missing");
	return NULL;
}

static const char *kind_of(uint32_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "directory";
	return S_ISLNK(mode) ? "link" : "other";
}

static void on_stat(void *arg, const struct file_stat *st,
		    const struct err *err)
{
	struct act *a = arg;
	struct buf b;
	struct json j = { .out = &b };

	if (!act_ended(a, err))
		return;
	buf_init(&b, OWN_MAX);
	json_open(&j, NULL, '{');
	json_str(&j, "name", st->name);
	json_int(&j, "size", (int64_t)st->size);
	json_int(&j, "mode", st->st_mode & 07777);
	json_str(&j, "kind", kind_of(st->st_mode));
	json_int(&j, "mtime_ms", st->mtime_ns / 1000000);
	json_str(&j, "link", st->link ? st->link : "");
	json_close(&j, '}');
	own_send(a->r, 200, &b);
}

OWN_HANDLER(own_box_stat)
{
	struct box *b = own_box(r, ctx);
	const char *path = b ? path_of(r) : NULL;
	struct act *a = path ? act_new(r, ctx) : NULL;

	if (a)
		act_wait(a, files_stat(b, path, on_stat, a));
}

/* out */

struct reading {
	struct http_request *r;
	struct call *call;
	struct feed *feed;
	bool is_begun, is_blocked, has_ended;
};

static size_t on_tar(void *arg, int stream, const char *data, size_t len)
{
	struct reading *f = arg;
	size_t n = f->is_begun ? http_write(f->r, data, len) : 0;

	(void)stream;
	f->is_blocked = n < len;
	return n;
}

static void on_tar_end(void *arg)
{
	struct reading *f = arg;

	f->feed = NULL;
	f->has_ended = true;
	if (f->is_begun)
		http_end(f->r);
}

static void tar_ready(void *data)
{
	struct reading *f = data;

	if (f->feed && f->is_blocked) {
		f->is_blocked = false;
		feed_ready(f->feed);
	}
}

static void on_there(void *arg, const struct file_stat *st,
		     const struct err *err)
{
	struct reading *f = arg;

	(void)st;
	f->call = NULL;
	if (err) {
		own_error(f->r, err);
		return;
	}
	f->is_begun = true;
	http_begin(f->r, 200, OWN_TAR, false);
	if (f->has_ended)
		http_end(f->r);
	tar_ready(f);
}

static void reading_gone(void *data)
{
	struct reading *f = data;

	call_drop(f->call);
	if (f->feed)
		feed_drop(f->feed);
	free(f);
}

OWN_HANDLER(own_files_get)
{
	struct box *b = own_box(r, ctx);
	const char *path = b ? path_of(r) : NULL;
	struct sink sink = { .write = on_tar, .end = on_tar_end };
	struct reading *f = path ? calloc(1, sizeof(*f)) : NULL;

	if (!path)
		return;
	if (!f) {
		own_fail(r, 500, "out of memory");
		return;
	}
	f->r = r;
	sink.arg = f;
	http_set_data(r, f, reading_gone);
	http_on_ready(r, tar_ready);
	f->call = files_read(b, path, &sink, &f->feed, on_there, f);
	if (!f->call)
		own_fail(r, 500, "out of memory");
}

/* in */

struct writing {
	struct http_request *r;
	struct files_writer *w;
};

static size_t on_piece(void *data, const char *bytes, size_t len)
{
	struct writing *f = data;

	if (!f->w)
		return len;
	if (bytes)
		return files_writer_add(f->w, bytes, len);
	files_writer_end(f->w);
	return 0;
}

static void on_room(void *arg)
{
	http_body_ready(((struct writing *)arg)->r);
}

static void on_written(void *arg, const struct err *err)
{
	struct writing *f = arg;

	f->w = NULL;
	if (err)
		own_error(f->r, err);
	else
		http_answer(f->r, 204, NULL, NULL, 0);
}

static void writing_gone(void *data)
{
	struct writing *f = data;

	if (f->w)
		files_writer_drop(f->w);
	free(f);
}

OWN_HANDLER(own_files_put)
{
	struct box *b = own_box(r, ctx);
	const char *path = b ? path_of(r) : NULL;
	struct writing *f = path ? calloc(1, sizeof(*f)) : NULL;
	unsigned int flags = 0;
	struct err err = { 0 };

	if (!path)
		return;
	if (!f) {
		own_fail(r, 500, "out of memory");
		return;
	}
	f->r = r;
	http_set_data(r, f, writing_gone);
	if (own_flag(r, "no_overwrite", false))
		flags |= FILES_PUT_NO_OVERWRITE;
	if (own_flag(r, "owners", false))
		flags |= FILES_PUT_IDS;
	f->w = files_write(b, path, flags, on_written, f, &err);
	if (!f->w) {
		own_error(r, &err);
		return;
	}
	files_writer_on_ready(f->w, on_room);
	http_on_body(r, on_piece);
}

/* what differs */

static void on_changes(void *arg, const struct file_change *v, size_t n,
		       const struct err *err)
{
	static const char *const kinds[] = { "modified", "added", "deleted" };
	struct act *a = arg;
	struct buf b;
	struct json j = { .out = &b };

	if (!act_ended(a, err))
		return;
	buf_init(&b, OWN_MAX);
	json_open(&j, NULL, '{');
	json_open(&j, "changes", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(&j, NULL, '{');
		json_str(&j, "path", v[i].path);
		json_str(&j, "kind",
			 v[i].kind >= 0 && v[i].kind < 3 ? kinds[v[i].kind]
							 : NULL);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	own_send(a->r, 200, &b);
}

OWN_HANDLER(own_box_changes)
{
	struct box *b = own_box(r, ctx);
	struct act *a = b ? act_new(r, ctx) : NULL;

	if (a)
		act_wait(a, files_changes(b, on_changes, a));
}
