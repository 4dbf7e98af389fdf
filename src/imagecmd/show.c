/* SPDX-License-Identifier: Apache-2.0 */

/* cordon image ls, inspect */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/json.h"
#include "imagecmd/imagecmd.h"
#include "image/doc.h"
#include "image/reference.h"

#define DOC_MAX ((size_t)64 << 20)

void format_size(uint64_t bytes, char *ret, size_t size)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double v = (double)bytes;
	size_t i = 0;

	for (; v >= 999.5 && i + 1 < ARRAY_SIZE(units); i++)
		v /= 1000;
	(void)snprintf(ret, size, "%.*f%s",
		       i == 0 || v >= 99.95 ? 0
		       : v >= 9.995         ? 1
					    : 2,
		       v, units[i]);
}

static void format_age(int64_t t, char *ret, size_t size)
{
	static const struct {
		int64_t seconds;
		const char *unit;
	} units[] = { { 31536000, "year" }, { 2592000, "month" },
		      { 604800, "week" },   { 86400, "day" },
		      { 3600, "hour" },     { 60, "minute" } };
	int64_t age = (int64_t)time(NULL) - t;

	if (t <= 0) {
		(void)snprintf(ret, size, "-");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		long n = (long)(age / units[i].seconds);

		if (n < (i < 4 ? 2 : 1))
			continue;
		(void)snprintf(ret, size, "%ld %s%s ago", n, units[i].unit,
			       n == 1 ? "" : "s");
		return;
	}
	(void)snprintf(ret, size, "just now");
}

/* The table, row by row; the first time only to measure. */
static void row(int *width, const char *const *cells, bool is_measured)
{
	for (int i = 0; i < 5; i++) {
		int len = (int)strlen(cells[i]);

		if (is_measured)
			width[i] = MAX(width[i], len);
		else if (i < 4)
			printf("%-*s   ", width[i], cells[i]);
		else
			printf("%*s\n", width[i], cells[i]);
	}
}

static void image_row(const struct image *m, const char *name, int *width,
		      bool is_measured)
{
	char copy[IMAGE_REF_MAX] = "<none>";
	char id[13];
	char age[40];
	char size[24];
	const char *tag = "<none>";

	if (name) {
		char *colon;

		(void)snprintf(copy, sizeof(copy), "%s", image_ref_short(name));
		colon = strrchr(copy, ':');
		if (colon) {
			*colon = '\0';
			tag = colon + 1;
		}
	}
	(void)snprintf(id, sizeof(id), "%.12s", m->id + 7);
	format_age(m->created, age, sizeof(age));
	format_size(image_size(m), size, sizeof(size));
	row(width, (const char *const[]){ copy, tag, id, age, size },
	    is_measured);
}

static void table(const struct image_list *list)
{
	static const char *const head[] = { "NAME", "TAG", "ID", "CREATED",
					    "SIZE" };
	int width[5] = { 0 };

	for (int pass = 0; pass < 2; pass++) {
		row(width, head, pass == 0);
		for (size_t i = 0; i < list->n; i++) {
			const struct image *m = &list->v[i];

			for (size_t k = 0; k < m->names.n; k++)
				image_row(m, m->names.v[k], width, pass == 0);
			if (m->names.n == 0)
				image_row(m, NULL, width, pass == 0);
		}
	}
}

static void put_time(struct json *j, const char *name, int64_t t)
{
	char text[40];
	struct tm tm;
	time_t at = (time_t)t;

	if (t <= 0 || !gmtime_r(&at, &tm) ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		json_none(j, name);
	else
		json_str(j, name, text);
}

static void put_names(struct json *j, const struct strv *names)
{
	json_open(j, "names", '[');
	for (size_t i = 0; i < names->n; i++)
		json_str(j, NULL, image_ref_short(names->v[i]));
	json_close(j, ']');
}

static void put_labels(struct json *j, const char *name, const struct strv *v)
{
	json_open(j, name, '{');
	for (size_t i = 0; i < v->n; i++) {
		char *is = strchr(v->v[i], '=');

		*is = '\0';
		json_str(j, v->v[i], is + 1);
		*is = '=';
	}
	json_close(j, '}');
}

/* An image whose configuration cannot be read is listed all the same. */
static void put_own_labels(struct json *j, struct image_store *store,
			   const struct image *m)
{
	struct image_config config;
	struct err err = { 0 };

	if (image_config_load(store, m, &config, &err) < 0)
		return;
	put_labels(j, "labels", &config.labels);
	image_config_done(&config);
}

/* By which images share what: {DIFF_ID: BYTES}. */
static void put_layers(struct json *j, const struct image *m)
{
	json_open(j, "layer_sizes", '{');
	for (size_t i = 0; i < m->n_layers; i++)
		if (!image_layer_is_repeated(m, i))
			json_int(j, m->layers[i].diff_id,
				 (int64_t)m->layers[i].size);
	json_close(j, '}');
}

static void put_list(struct json *j, struct image_store *store,
		     const struct image_list *list)
{
	json_open(j, NULL, '[');
	for (size_t i = 0; i < list->n; i++) {
		const struct image *m = &list->v[i];

		json_open(j, NULL, '{');
		json_str(j, "id", m->id);
		put_names(j, &m->names);
		put_time(j, "created", m->created);
		put_time(j, "loaded", m->loaded);
		json_int(j, "size", (int64_t)image_size(m));
		json_int(j, "layers", (int64_t)m->n_layers);
		put_layers(j, m);
		json_str(j, "os", m->os);
		json_str(j, "architecture", m->architecture);
		json_str(j, "manifest", m->manifest);
		put_own_labels(j, store, m);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* Indented; nothing in it but ASCII, since the strings are others'. */
static int print_pretty(const struct buf *out, struct err *err)
{
	json_t *top;
	int r = -1;

	if (out->error)
		return err_errno(err, -out->error, "write the document");
	top = json_loadb(out->data, out->len, 0, NULL);
	if (top)
		r = json_dumpf(top, stdout, JSON_INDENT(4) | JSON_ENSURE_ASCII);
	json_decref(top);
	(void)putchar('\n');
	return r < 0 ? err_set(err, EIO, "write the document") : 0;
}

/* For scripts: each name, or each id. */
static void lines(const struct image_list *list, bool names)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct image *m = &list->v[i];

		for (size_t k = 0; names && k < m->names.n; k++)
			printf("%s\n", image_ref_short(m->names.v[k]));
		if (!names)
			printf("%s\n", m->id);
	}
}

int run_ls(struct call *c, struct err *err)
{
	struct image_list list = { 0 };
	struct buf out;
	struct json j = { .out = &out };
	int r;

	if (shut_in(c, NO_FD, err) < 0 ||
	    image_list_load(c->store, &list, err) < 0)
		return -err->code;
	buf_init(&out, DOC_MAX);
	if (c->json) {
		put_list(&j, c->store, &list);
		r = print_pretty(&out, err);
	} else {
		if (c->names || c->quiet)
			lines(&list, c->names);
		else
			table(&list);
		r = 0;
	}
	buf_done(&out);
	image_list_done(&list);
	return r;
}

static void put_texts(struct json *j, const char *name, const struct strv *v)
{
	if (v->n == 0) {
		json_none(j, name);
		return;
	}
	json_open(j, name, '[');
	for (size_t i = 0; i < v->n; i++)
		json_str(j, NULL, v->v[i]);
	json_close(j, ']');
}

static void put_keys(struct json *j, const char *name, const struct strv *v)
{
	if (v->n == 0) {
		json_none(j, name);
		return;
	}
	json_open(j, name, '{');
	for (size_t i = 0; i < v->n; i++) {
		json_open(j, v->v[i], '{');
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void put_config(struct json *j, const struct image_config *c)
{
	json_open(j, "Config", '{');
	json_str(j, "User", c->user);
	put_keys(j, "ExposedPorts", &c->exposed_ports);
	put_texts(j, "Env", &c->env);
	put_texts(j, "Entrypoint", &c->entrypoint);
	put_texts(j, "Cmd", &c->cmd);
	put_keys(j, "Volumes", &c->volumes);
	json_str(j, "WorkingDir", c->working_dir);
	put_labels(j, "Labels", &c->labels);
	json_str(j, "StopSignal", c->stop_signal);
	json_close(j, '}');
}

static void put_digests(struct json *j, const struct image *m)
{
	json_open(j, "RepoDigests", '[');
	for (size_t i = 0; i < m->names.n && *m->manifest; i++) {
		const char *name = image_ref_short(m->names.v[i]);
		char text[IMAGE_REF_MAX + IMAGE_DIGEST];

		(void)snprintf(text, sizeof(text), "%.*s@%s",
			       (int)(strrchr(name, ':') - name), name,
			       m->manifest);
		json_str(j, NULL, text);
	}
	json_close(j, ']');
}

/* The steps that made a layer are as many as there are layers. */
static void put_history(struct json *j, const struct image *m,
			const struct image_config *c)
{
	size_t layer = 0;

	json_open(j, "History", '[');
	for (size_t i = 0; i < c->n_history; i++) {
		const struct image_history *h = &c->history[i];
		bool has_layer = !h->is_empty && layer < m->n_layers;

		json_open(j, NULL, '{');
		json_str(j, "Created", h->created);
		json_str(j, "CreatedBy", h->created_by);
		json_str(j, "Comment", h->comment);
		json_bool(j, "EmptyLayer", h->is_empty);
		json_int(j, "Size",
			 has_layer ? (int64_t)m->layers[layer++].size : 0);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_image(struct json *j, const struct image *m,
		      const struct image_config *c)
{
	json_open(j, NULL, '{');
	json_str(j, "Id", m->id);
	json_open(j, "RepoTags", '[');
	for (size_t i = 0; i < m->names.n; i++)
		json_str(j, NULL, image_ref_short(m->names.v[i]));
	json_close(j, ']');
	put_digests(j, m);
	json_str(j, "Created", c->created);
	json_str(j, "Author", c->author);
	json_str(j, "Architecture", c->architecture);
	json_str(j, "Os", c->os);
	json_int(j, "Size", (int64_t)image_size(m));
	put_config(j, c);
	json_open(j, "RootFS", '{');
	json_str(j, "Type", "layers");
	put_texts(j, "Layers", &c->diff_ids);
	json_close(j, '}');
	put_history(j, m, c);
	json_close(j, '}');
}

static int inspect_one(struct call *c, const char *text, struct json *j,
		       struct err *err)
{
	struct image_config config;
	struct image *m = NULL;
	int r = image_find(c->store, text, &m, err);

	if (r < 0)
		return r;
	r = image_config_load(c->store, m, &config, err);
	if (r == 0) {
		put_image(j, m, &config);
		image_config_done(&config);
	}
	image_free(m);
	return r;
}

int run_inspect(struct call *c, struct err *err)
{
	struct buf out;
	struct json j = { .out = &out };
	int r = shut_in(c, NO_FD, err);

	buf_init(&out, DOC_MAX);
	json_open(&j, NULL, '[');
	for (size_t i = 0; i < c->n && r == 0; i++)
		r = inspect_one(c, c->operands[i], &j, err);
	json_close(&j, ']');
	if (r == 0)
		r = print_pretty(&out, err);
	buf_done(&out);
	return r;
}
