/* SPDX-License-Identifier: Apache-2.0 */
#include "image/config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/util.h"
#include "image/digest.h"
#include "image/doc.h"

#define HISTORY_MAX 1024
#define LAYERS_MAX  128 /* as many as Docker stacks; overlayfs takes 500 */

const char *image_architecture(void)
{
#if defined(__x86_64__)
	return "amd64";
#elif defined(__aarch64__)
	return "arm64";
#elif defined(__riscv) && __riscv_xlen == 64
	return "riscv64";
#elif defined(__powerpc64__)
	return "ppc64le";
#elif defined(__s390x__)
	return "s390x";
#else
#error "name this architecture as images do"
#endif
}

int64_t image_time_parse(const char *text)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	time_t t = end ? timegm(&tm) : 0;

	return t > 0 ? (int64_t)t : 0;
}

static void history_done(struct image_history *h)
{
	free(h->created);
	free(h->created_by);
	free(h->author);
	free(h->comment);
}

void image_config_done(struct image_config *c)
{
	strv_done(&c->env);
	strv_done(&c->cmd);
	strv_done(&c->entrypoint);
	strv_done(&c->exposed_ports);
	strv_done(&c->volumes);
	strv_done(&c->labels);
	strv_done(&c->diff_ids);
	free(c->working_dir);
	free(c->user);
	free(c->stop_signal);
	free(c->created);
	free(c->author);
	free(c->architecture);
	free(c->variant);
	free(c->os);
	for (size_t i = 0; i < c->n_history; i++)
		history_done(&c->history[i]);
	free(c->history);
	memset(c, 0, sizeof(*c));
}

/* One without a name or a value sets nothing. */
static int read_env(json_t *config, struct strv *ret, struct err *err)
{
	struct strv all = { 0 };
	int r = image_doc_texts(config, "Env", &all, err);

	for (size_t i = 0; r == 0 && i < all.n; i++) {
		const char *is = strchr(all.v[i], '=');

		if (is && is > all.v[i] && strv_add(ret, all.v[i]) < 0)
			r = err_set(err, ENOMEM, "out of memory");
	}
	strv_done(&all);
	return r;
}

static int read_labels(json_t *config, struct strv *ret, struct err *err)
{
	json_t *map = image_doc_get(config, "Labels", JSON_OBJECT, err);
	const char *key;
	json_t *value;

	json_object_foreach(map, key, value)
	{
		struct buf b;
		int r;

		if (!json_is_string(value) || !*key || strchr(key, '='))
			return err_set(err, IMAGE_CORRUPT,
				       "a label that is not a name and a "
				       "string");
		buf_init(&b, 2 * IMAGE_DOC_MAX);
		buf_puts(&b, key);
		buf_puts(&b, "=");
		buf_puts(&b, json_string_value(value));
		r = b.error ? b.error : strv_add(ret, b.data);
		buf_done(&b);
		if (r < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	return err->code ? -err->code : 0;
}

static int read_history(json_t *top, struct image_config *ret, struct err *err)
{
	json_t *list = image_doc_get(top, "history", JSON_ARRAY, err);
	size_t n = json_array_size(list);

	if (n > HISTORY_MAX)
		return err_set(err, IMAGE_TOO_LARGE,
			       "a history of more than %d steps", HISTORY_MAX);
	ret->history = calloc(n + 1, sizeof(*ret->history));
	if (!ret->history)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < n && !err->code; i++) {
		json_t *at = json_array_get(list, i);
		struct image_history *h = &ret->history[ret->n_history++];

		h->created = image_doc_text(at, "created", err);
		h->created_by = image_doc_text(at, "created_by", err);
		h->author = image_doc_text(at, "author", err);
		h->comment = image_doc_text(at, "comment", err);
		h->is_empty = json_is_true(json_object_get(at, "empty_layer"));
	}
	return err->code ? -err->code : 0;
}

static int read_layers(json_t *top, struct strv *ret, struct err *err)
{
	json_t *root = image_doc_get(top, "rootfs", JSON_OBJECT, err);

	if (!err->code && !root)
		return err_set(err, IMAGE_CORRUPT, "'rootfs' is missing");
	if (image_doc_texts(root, "diff_ids", ret, err) < 0)
		return -err->code;
	if (ret->n > LAYERS_MAX)
		return err_set(err, IMAGE_TOO_LARGE, "more than %d layers",
			       LAYERS_MAX);
	for (size_t i = 0; i < ret->n; i++)
		if (!image_digest_check(ret->v[i]))
			return err_set(err, IMAGE_CORRUPT,
				       "'diff_ids' has what is not a SHA-256 "
				       "digest");
	return 0;
}

static int read_config(json_t *top, struct image_config *c, struct err *err)
{
	json_t *config = image_doc_get(top, "config", JSON_OBJECT, err);
	json_t *none = config ? NULL : json_object();

	c->created = image_doc_text(top, "created", err);
	c->author = image_doc_text(top, "author", err);
	c->architecture = image_doc_text(top, "architecture", err);
	c->variant = image_doc_text(top, "variant", err);
	c->os = image_doc_text(top, "os", err);
	config = config ? config : none;
	c->working_dir = image_doc_text(config, "WorkingDir", err);
	c->user = image_doc_text(config, "User", err);
	c->stop_signal = image_doc_text(config, "StopSignal", err);
	if (!err->code)
		read_env(config, &c->env, err);
	image_doc_texts(config, "Cmd", &c->cmd, err);
	image_doc_texts(config, "Entrypoint", &c->entrypoint, err);
	image_doc_names(config, "ExposedPorts", &c->exposed_ports, err);
	image_doc_names(config, "Volumes", &c->volumes, err);
	if (!err->code)
		read_labels(config, &c->labels, err);
	json_decref(none);
	if (!err->code)
		read_history(top, c, err);
	if (!err->code)
		read_layers(top, &c->diff_ids, err);
	return err->code ? -err->code : 0;
}

int image_config_parse(const char *text, size_t len, struct image_config *ret,
		       struct err *err)
{
	struct err own = { 0 };
	json_t *top = NULL;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = image_doc_parse(text, len, &top, &own);
	if (r == 0) {
		r = read_config(top, ret, &own);
		json_decref(top);
	}
	if (r == 0 && strcmp(ret->os, "linux") != 0)
		r = err_set(&own, IMAGE_REFUSED,
			    "the image is for '%.16s', not for linux", ret->os);
	if (r < 0) {
		image_config_done(ret);
		err_wrap(&own, "the image's configuration");
		if (err)
			*err = own;
	}
	return r;
}

static void put_texts(struct json *j, const char *name, const struct strv *v)
{
	if (v->n == 0)
		return;
	json_open(j, name, '[');
	for (size_t i = 0; i < v->n; i++)
		json_str(j, NULL, v->v[i]);
	json_close(j, ']');
}

static void put_names(struct json *j, const char *name, const struct strv *v)
{
	if (v->n == 0)
		return;
	json_open(j, name, '{');
	for (size_t i = 0; i < v->n; i++) {
		json_open(j, v->v[i], '{');
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void put_text(struct json *j, const char *name, const char *text)
{
	if (text && *text)
		json_str(j, name, text);
}

static void put_labels(struct json *j, const struct strv *v)
{
	if (v->n == 0)
		return;
	json_open(j, "Labels", '{');
	for (size_t i = 0; i < v->n; i++) {
		char *is = strchr(v->v[i], '=');

		*is = '\0';
		json_str(j, v->v[i], is + 1);
		*is = '=';
	}
	json_close(j, '}');
}

static void put_history(struct json *j, const struct image_config *c)
{
	json_open(j, "history", '[');
	for (size_t i = 0; i < c->n_history; i++) {
		const struct image_history *h = &c->history[i];

		json_open(j, NULL, '{');
		put_text(j, "created", h->created);
		put_text(j, "created_by", h->created_by);
		put_text(j, "author", h->author);
		put_text(j, "comment", h->comment);
		if (h->is_empty)
			json_bool(j, "empty_layer", true);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void image_config_format(const struct image_config *c, struct buf *out)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	put_text(&j, "created", c->created);
	put_text(&j, "author", c->author);
	json_str(&j, "architecture", c->architecture);
	put_text(&j, "variant", c->variant);
	json_str(&j, "os", c->os);
	json_open(&j, "config", '{');
	put_text(&j, "User", c->user);
	put_names(&j, "ExposedPorts", &c->exposed_ports);
	put_texts(&j, "Env", &c->env);
	put_texts(&j, "Entrypoint", &c->entrypoint);
	put_texts(&j, "Cmd", &c->cmd);
	put_names(&j, "Volumes", &c->volumes);
	put_text(&j, "WorkingDir", c->working_dir);
	put_labels(&j, &c->labels);
	put_text(&j, "StopSignal", c->stop_signal);
	json_close(&j, '}');
	json_open(&j, "rootfs", '{');
	json_str(&j, "type", "layers");
	put_texts(&j, "diff_ids", &c->diff_ids);
	json_close(&j, '}');
	put_history(&j, c);
	json_close(&j, '}');
}
