/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Images: each route is one call of cordon-image, whose standard output is the
 * answer. A short one is gathered and sent with a status; an archive is passed
 * on as it comes.
 */

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "face/own/internal.h"

#define MAX_SHORT ((size_t)16 << 20)

#define STATUS_NO IMAGE_STATUS(1)

struct imaging {
	struct http_request *r;
	struct image_run *run;
	struct buf out;
	const char *type; /* NULL: 204 */
	bool is_archive, is_begun;
};

static size_t on_out(void *arg, int stream, const char *data, size_t len)
{
	struct imaging *i = arg;

	(void)stream;
	if (!i->is_archive) {
		(void)buf_add(&i->out, data, len);
		return len;
	}
	if (!i->is_begun)
		http_begin(i->r, 200, OWN_TAR, false);
	i->is_begun = true;
	return http_write(i->r, data, len);
}

static void on_out_end(void *arg)
{
	(void)arg; /* `done` follows */
}

static void out_ready(void *data)
{
	struct imaging *i = data;

	if (i->run)
		image_run_ready(i->run);
}

static void fail(struct imaging *i, const struct err *err)
{
	static const char ours[] = "cordon: ";
	struct err e = { .code = err->code };
	const char *text = err->text;

	if (strncmp(text, ours, sizeof(ours) - 1) == 0)
		text += sizeof(ours) - 1;
	(void)err_set(&e, err->code, "%s", text);
	/* Not found, ambiguous, or in use; the text says which. */
	if (e.code == STATUS_NO && strstr(e.text, "belongs to another user"))
		e.code = MGR_DENIED;
	else if (e.code == STATUS_NO)
		e.code = strstr(e.text, "in use") || strstr(e.text, "using")
				 ? MGR_IS_RUNNING
				 : MGR_NO_IMAGE;
	else if (e.code > IMAGE_STATUS(0))
		e.code = MGR_INVALID;
	own_error(i->r, &e);
}

static void on_done(void *arg, const struct err *err)
{
	struct imaging *i = arg;

	i->run = NULL;
	if (i->is_begun && err)
		http_cut(i->r); /* so that nobody takes it for a whole one */
	else if (i->is_begun)
		http_end(i->r);
	else if (err)
		fail(i, err);
	else if (i->type && !i->out.error)
		http_answer(i->r, 200, i->type, i->out.data ? i->out.data : "",
			    i->out.len);
	else if (i->out.error)
		own_fail(i->r, 500, "the answer is too large");
	else
		http_answer(i->r, 204, NULL, NULL, 0);
}

static size_t on_piece(void *data, const char *bytes, size_t len)
{
	struct imaging *i = data;

	if (!i->run)
		return len;
	if (bytes)
		return image_run_add(i->run, bytes, len);
	image_run_end_input(i->run);
	return 0;
}

static void on_room(void *arg)
{
	http_body_ready(((struct imaging *)arg)->r);
}

static void gone(void *data)
{
	struct imaging *i = data;

	if (i->run)
		image_run_drop(i->run);
	buf_done(&i->out);
	free(i);
}

enum { HAS_INPUT = 1, IS_ARCHIVE = 2, IS_SILENT = 4 };

static void run(struct http_request *r, struct manager *m,
		const char *const *args, int flags)
{
	struct imaging *i = calloc(1, sizeof(*i));
	struct sink sink = { .write = on_out, .end = on_out_end, .arg = i };
	struct err err = { 0 };

	if (!i) {
		own_fail(r, 500, "out of memory");
		return;
	}
	i->r = r;
	i->type = flags & IS_SILENT ? NULL : OWN_JSON;
	i->is_archive = flags & IS_ARCHIVE;
	buf_init(&i->out, MAX_SHORT);
	http_set_data(r, i, gone);
	http_on_ready(r, out_ready);
	i->run = image_run(m, http_peer(r), args, flags & HAS_INPUT, &sink,
			   on_done, i, &err);
	if (!i->run) {
		own_error(r, &err);
		return;
	}
	if (flags & HAS_INPUT) {
		image_run_on_ready(i->run, on_room);
		http_on_body(r, on_piece);
	}
}

/* A name that looks like a flag is none. */
static const char *name_of(struct http_request *r)
{
	const char *name = http_param(r, 0);

	if (*name && *name != '-')
		return name;
	own_fail(r, 400, "that is no name of an image");
	return NULL;
}

OWN_HANDLER(own_images)
{
	run(r, ctx, (const char *const[]){ "ls", "--json", NULL }, 0);
}

OWN_HANDLER(own_image_inspect)
{
	const char *name = name_of(r);

	if (name)
		run(r, ctx, (const char *const[]){ "inspect", name, NULL }, 0);
}

OWN_HANDLER(own_image_remove)
{
	const char *name = name_of(r);
	bool force = own_flag(r, "force", false);

	if (name)
		run(r, ctx,
		    (const char *const[]){ "rm", "--json",
					   force ? "--force" : name,
					   force ? name : NULL, NULL },
		    0);
}

OWN_HANDLER(own_image_prune)
{
	bool all = own_flag(r, "all", false);

	run(r, ctx,
	    (const char *const[]){ "prune", "--json", all ? "--all" : NULL,
				   NULL },
	    0);
}

OWN_HANDLER(own_image_load)
{
	run(r, ctx, (const char *const[]){ "load", "--json", NULL }, HAS_INPUT);
}

OWN_HANDLER(own_image_import)
{
	const char *name = http_query(r, "name");

	if (name && *name == '-') {
		own_fail(r, 400, "that is no name of an image");
		return;
	}
	run(r, ctx,
	    (const char *const[]){ "import", "--json", "-", name, NULL },
	    HAS_INPUT);
}

OWN_HANDLER(own_image_save)
{
	const char *name = name_of(r);

	if (name)
		run(r, ctx, (const char *const[]){ "save", name, NULL },
		    IS_ARCHIVE);
}

OWN_HANDLER(own_image_tag)
{
	const char *name = name_of(r);
	const char *to = http_query(r, "name");

	if (!name)
		return;
	if (!to || !*to || *to == '-') {
		own_fail(r, 400, "'name' is missing");
		return;
	}
	run(r, ctx, (const char *const[]){ "tag", name, to, NULL }, IS_SILENT);
}
