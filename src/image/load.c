/* SPDX-License-Identifier: Apache-2.0 */

/* Images from archives and layouts, and from a root file system. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "image/config.h"
#include "image/digest.h"
#include "image/doc.h"
#include "image/manifest.h"
#include "image/reference.h"
#include "image/source.h"
#include "image/store.h"
#include "image/tree.h"
#include "image/unpack.h"

#define NESTED_MAX 4 /* an index in an index */

struct load {
	struct image_session ses;
	struct image_source src;
	const struct image_take *take;
	struct image_plans plans;
	struct image_list have; /* in the store */
};

void image_limits_default(struct image_limits *limits)
{
	*limits = (struct image_limits){
		.archive = (uint64_t)16 << 30,
		.size = (uint64_t)16 << 30,
		.file = (uint64_t)8 << 30,
		.files = 1000000,
		.ratio = 200,
	};
}

/* What a manifest in the source says, as one more plan. */
static int plan_manifest(struct load *l, const struct image_desc *d,
			 const char *name, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	struct image_plan *plan;
	char path[IMAGE_BLOB_PATH];
	size_t len = 0;

	image_blob_path(d->digest, path);
	if (image_source_doc(&l->src, path, &text, &len, err) < 0)
		return -err->code;
	plan = image_plans_add(&l->plans);
	if (!plan || (*name && strv_add(&plan->names, name) < 0))
		return err_set(err, ENOMEM, "out of memory");
	(void)strcpy(plan->manifest, d->digest);
	return image_plan_parse(text, len, plan, err);
}

/* An index that another one names: one image for this machine. */
static int plan_nested(struct load *l, const struct image_desc *d,
		       const char *name, struct err *err)
{
	char digest[IMAGE_DIGEST];

	(void)strcpy(digest, d->digest);
	for (int depth = 0; depth < NESTED_MAX; depth++) {
		struct image_descs inner = { 0 };
		_cleanup_free_ char *text = NULL;
		char path[IMAGE_BLOB_PATH];
		enum image_desc_kind kind = IMAGE_DESC_OTHER;
		size_t len = 0;
		int r;

		image_blob_path(digest, path);
		r = image_source_doc(&l->src, path, &text, &len, err);
		if (r == 0)
			r = image_descs_parse(text, len, &inner, err);
		if (r == 0)
			r = image_descs_choose(&inner, true, err);
		if (r == 0) {
			kind = inner.v[0].kind;
			(void)strcpy(digest, inner.v[0].digest);
		}
		if (r == 0 && kind == IMAGE_DESC_MANIFEST)
			r = plan_manifest(l, &inner.v[0], name, err);
		image_descs_done(&inner);
		if (r < 0 || kind == IMAGE_DESC_MANIFEST)
			return r;
	}
	return err_set(err, IMAGE_REFUSED,
		       "its indexes are nested more than %d deep", NESTED_MAX);
}

static int plan_layout(struct load *l, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	struct image_descs top = { 0 };
	size_t len = 0;
	int r = image_source_doc(&l->src, "index.json", &text, &len, err);

	if (r == 0)
		r = image_descs_parse(text, len, &top, err);
	if (r == 0)
		r = image_descs_choose(&top, false, err);
	for (size_t i = 0; i < top.n && r == 0; i++)
		r = top.v[i].kind == IMAGE_DESC_INDEX
			    ? plan_nested(l, &top.v[i], top.v[i].name, err)
			    : plan_manifest(l, &top.v[i], top.v[i].name, err);
	image_descs_done(&top);
	return r;
}

/*
 * Archives of newer docker save have both documents and mean the same by them;
 * the older one has whole names.
 */
static int make_plans(struct load *l, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	if (image_source_file(&l->src, "manifest.json", err)) {
		if (image_source_doc(&l->src, "manifest.json", &text, &len,
				     err) < 0)
			return -err->code;
		return image_plans_parse_docker(text, len, &l->plans, err);
	}
	if (err->code)
		return -err->code;
	if (image_source_file(&l->src, "index.json", err))
		return plan_layout(l, err);
	if (err->code)
		return -err->code;
	return err_set(
		err, IMAGE_CORRUPT,
		"it has neither manifest.json nor index.json: no archive "
		"of images; for a root file system use 'cordon image "
		"import'");
}

struct layer_progress {
	const struct image_progress *progress;
	const char *diff_id;
	uint64_t total;
};

static void tell_layer(void *arg, enum image_step step, const char *what,
		       uint64_t done, uint64_t total)
{
	const struct layer_progress *p = arg;

	(void)total;
	p->progress->tell(p->progress->arg, step, what ? what : p->diff_id,
			  done, p->total);
}

/* What the image may still take. */
static void left_over(const struct image_take *take, const struct image *m,
		      struct image_limits *ret)
{
	*ret = take->limits;
	for (size_t i = 0; i < m->n_layers; i++) {
		ret->size -= MIN(ret->size, m->layers[i].size);
		ret->files -= MIN(ret->files, m->layers[i].files);
	}
}

/*
 * Unpacks `file` of the session; the tree is ready to be moved to the store
 * under its digest. `want` may be NULL: then any.
 */
static int unpack(struct image_session *ses, const struct image_take *take,
		  const struct image_limits *limits,
		  const struct image_file *file, const char *want,
		  struct image_unpacked *ret, struct err *err)
{
	struct layer_progress layer = { &take->progress, want ? want : "",
					file->size };
	struct image_progress progress = { take->progress.tell ? tell_layer
							       : NULL,
					   &layer };
	struct image_ready ready = { .is_layer = true };
	_cleanup_fd_ int fd = image_tree_open(ses->dir, file->file, O_RDONLY);
	_cleanup_fd_ int dir = NO_FD;
	_cleanup_fd_ int fs = NO_FD;

	if (fd < 0)
		return err_errno(err, -fd, "open a layer");
	image_session_name(ses, ready.file);
	dir = image_tree_dir(ses->dir, ready.file, err);
	if (dir < 0)
		return -err->code;
	fs = image_tree_dir(dir, "fs", err);
	if (fs < 0)
		return -err->code;
	/* For an archive that does not say it. */
	if (fchmod(fs, 0755) < 0)
		return err_errno(err, errno, "set the mode of the root");
	if (image_unpack(fd, fs, limits, &progress, ret, err) < 0)
		return -err->code;
	if (want && strcmp(ret->diff_id, want) != 0)
		return err_set(err, IMAGE_CORRUPT,
			       "the layer has the digest '%s' and not '%s'",
			       ret->diff_id, want);
	(void)strcpy(ready.digest, ret->diff_id);
	ready.size = ret->size;
	ready.files = ret->files;
	return image_session_add(ses, &ready, err);
}

static int add_blob(struct image_session *ses, const struct image_file *f,
		    struct err *err)
{
	struct image_ready ready = { .size = f->size };

	if (image_session_find(ses, f->digest, false))
		return 0;
	(void)strcpy(ready.digest, f->digest);
	(void)strcpy(ready.file, f->file);
	return image_session_add(ses, &ready, err);
}

/* One layer more for the image, from the store or from the source. */
static int load_layer(struct load *l, const char *name, const char *diff_id,
		      struct image *m, struct err *err)
{
	const struct image_layer *have = image_list_layer(&l->have, diff_id);
	struct image_layer *layer = &m->layers[m->n_layers];
	const struct image_ready *ready;
	const struct image_file *f;
	struct image_limits limits;

	left_over(l->take, m, &limits);
	if (have) {
		*layer = *have;
		m->n_layers++;
		return 0;
	}
	f = image_source_file(&l->src, name, err);
	if (err->code)
		return -err->code;
	if (!f)
		return err_set(err, IMAGE_CORRUPT, "layer '%.100s' is missing",
			       name);
	ready = image_session_find(&l->ses, diff_id, true);
	if (!ready) {
		struct image_unpacked sum;

		if (unpack(&l->ses, l->take, &limits, f, diff_id, &sum, err) <
		    0)
			return err_wrap(err, "layer '%.19s'", diff_id);
		ready = image_session_find(&l->ses, diff_id, true);
	}
	(void)strcpy(layer->diff_id, diff_id);
	(void)strcpy(layer->blob, f->digest);
	layer->blob_size = f->size;
	layer->size = ready->size;
	layer->files = ready->files;
	m->n_layers++;
	return add_blob(&l->ses, f, err);
}

static int fill_names(struct load *l, const struct image_plan *plan,
		      struct image *m, struct err *err)
{
	char name[IMAGE_REF_MAX];
	const struct strv *from = &plan->names;
	char *given[] = { (char *)l->take->name, NULL };
	const struct strv one = { given, 1 };

	if (from->n == 0 && l->take->name) {
		if (l->plans.n > 1)
			return err_set(err, IMAGE_BAD_NAME,
				       "there are %zu images in it; one name "
				       "is not enough",
				       l->plans.n);
		from = &one;
	}
	for (size_t i = 0; i < from->n; i++) {
		if (image_name_parse(from->v[i], name, sizeof(name), err) < 0)
			return -err->code;
		if (image_names_find(&m->names, name) < 0 &&
		    strv_add(&m->names, name) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

static void fill_facts(struct image *m, const struct image_config *c)
{
	m->created = image_time_parse(c->created);
	m->loaded = (int64_t)time(NULL);
	(void)snprintf(m->os, sizeof(m->os), "%s", c->os);
	(void)snprintf(m->architecture, sizeof(m->architecture), "%s",
		       c->architecture);
}

static int load_layers(struct load *l, const struct image_plan *plan,
		       const struct image_config *c, struct image *m,
		       struct err *err)
{
	if (c->diff_ids.n != plan->layers.n)
		return err_set(err, IMAGE_CORRUPT,
			       "the configuration has %zu layers, the manifest "
			       "%zu",
			       c->diff_ids.n, plan->layers.n);
	m->layers = calloc(plan->layers.n + 1, sizeof(*m->layers));
	if (!m->layers)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < plan->layers.n; i++)
		if (load_layer(l, plan->layers.v[i], c->diff_ids.v[i], m, err) <
		    0)
			return -err->code;
	return 0;
}

/* Keeps a document of the source in the store, and its digest. */
static int keep_doc(struct load *l, const char *name, char ret[IMAGE_DIGEST],
		    char **ret_text, size_t *ret_len, struct err *err)
{
	if (image_source_doc(&l->src, name, ret_text, ret_len, err) < 0)
		return -err->code;
	return image_session_put(&l->ses, *ret_text, *ret_len, ret, err);
}

static int put_run(struct image_session *ses, const struct image_config *c,
		   struct image *m, struct err *err)
{
	struct buf out;
	int r;

	buf_init(&out, 2 * IMAGE_DOC_MAX);
	image_config_format(c, &out);
	r = out.error ? err_errno(err, -out.error, "write the configuration")
		      : image_session_put(ses, out.data, out.len, m->run, err);
	buf_done(&out);
	return r;
}

static int load_image(struct load *l, const struct image_plan *plan,
		      struct image *m, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ char *manifest = NULL;
	struct image_config config;
	char path[IMAGE_BLOB_PATH];
	size_t len = 0;
	size_t manifest_len;
	int r;

	if (fill_names(l, plan, m, err) < 0 ||
	    keep_doc(l, plan->config, m->id, &text, &len, err) < 0)
		return -err->code;
	if (*plan->manifest) {
		image_blob_path(plan->manifest, path);
		if (keep_doc(l, path, m->manifest, &manifest, &manifest_len,
			     err) < 0)
			return -err->code;
	}
	r = image_config_parse(text, len, &config, err);
	if (r < 0)
		return r;
	fill_facts(m, &config);
	r = put_run(&l->ses, &config, m, err);
	if (r == 0)
		r = load_layers(l, plan, &config, m, err);
	image_config_done(&config);
	return r;
}

/* All of them, once; -EAGAIN if the store has changed meanwhile. */
static int load_all(struct load *l, struct image_list *ret, struct err *err)
{
	int r;

	image_list_done(&l->have);
	r = image_index_load(l->ses.store, &l->have, err);
	for (size_t i = 0; i < l->plans.n && r == 0; i++) {
		struct image m = { 0 };

		r = load_image(l, &l->plans.v[i], &m, err);
		if (r == 0)
			r = image_list_add(ret, &m, err);
		image_done(&m);
	}
	if (r == 0)
		r = image_session_commit(&l->ses, ret, err);
	return r;
}

static int commit_until_done(struct load *l, struct image_list *ret,
			     struct err *err)
{
	for (int i = 0;; i++) {
		int r = load_all(l, ret, err);

		if (r == 0)
			return 0;
		image_list_done(ret);
		if (r != -EAGAIN || i == 8)
			return r;
		*err = (struct err){ 0 };
	}
}

int image_load(struct image_store *s, const struct image_take *take,
	       struct image_list *ret, struct err *err)
{
	struct load l = { .take = take };
	int r = image_session_begin(&l.ses, s, err);

	*ret = (struct image_list){ 0 };
	if (r < 0)
		return r;
	r = image_source_open(&l.src, &l.ses, take, err);
	if (r == 0)
		r = make_plans(&l, err);
	if (r == 0)
		r = commit_until_done(&l, ret, err);
	image_plans_done(&l.plans);
	image_list_done(&l.have);
	image_source_close(&l.src);
	image_session_end(&l.ses);
	return r;
}

static char *now_text(void)
{
	char text[40];
	time_t now = time(NULL);
	struct tm tm;

	(void)gmtime_r(&now, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return strdup(text);
}

static int make_config(const struct image_take *take, const char *diff_id,
		       struct image_config *c, struct err *err)
{
	*c = (struct image_config){ .created = now_text(),
				    .os = strdup("linux"),
				    .architecture = strdup(
					    image_architecture()),
				    .history = calloc(1, sizeof(*c->history)) };
	if (!c->created || !c->os || !c->architecture || !c->history ||
	    strv_add(&c->diff_ids, diff_id) < 0)
		return err_set(err, ENOMEM, "out of memory");
	c->n_history = 1;
	c->history[0].created = strdup(c->created);
	c->history[0].comment = strdup(take->message ? take->message
						     : "Imported");
	if (!c->history[0].created || !c->history[0].comment)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < take->n_changes; i++)
		if (image_config_change(c, take->changes[i], err) < 0)
			return -err->code;
	return 0;
}

/* The configuration of an import, as the image's id. */
static int put_config(struct image_session *ses, const struct image_take *take,
		      struct image *m, struct err *err)
{
	struct image_config c;
	struct buf out;
	int r = make_config(take, m->layers[0].diff_id, &c, err);

	buf_init(&out, (size_t)1 << 20);
	if (r == 0) {
		image_config_format(&c, &out);
		r = out.error ? err_errno(err, -out.error,
					  "write the configuration")
			      : image_session_put(ses, out.data, out.len, m->id,
						  err);
	}
	(void)strcpy(m->run, m->id);
	if (r == 0)
		fill_facts(m, &c);
	buf_done(&out);
	image_config_done(&c);
	return r;
}

/* Bad changes are told before anything is read. */
static int check_import(const struct image_take *take, struct err *err)
{
	struct image_config c;
	char name[IMAGE_REF_MAX];
	int r = 0;

	if (take->name)
		r = image_name_parse(take->name, name, sizeof(name), err);
	if (r == 0) {
		r = make_config(take, "", &c, err);
		image_config_done(&c);
	}
	return r;
}

static int import(struct image_session *ses, const struct image_take *take,
		  struct image *m, struct err *err)
{
	struct image_layer *layer = m->layers;
	struct image_unpacked sum = { 0 };
	struct image_file file;
	char name[IMAGE_REF_MAX];

	if (take->name) {
		if (image_name_parse(take->name, name, sizeof(name), err) < 0)
			return -err->code;
		if (strv_add(&m->names, name) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	if (image_source_stream(ses, take, &file, err) < 0 ||
	    unpack(ses, take, &take->limits, &file, NULL, &sum, err) < 0 ||
	    add_blob(ses, &file, err) < 0)
		return -err->code;
	(void)strcpy(layer->diff_id, sum.diff_id);
	(void)strcpy(layer->blob, file.digest);
	layer->blob_size = file.size;
	layer->size = sum.size;
	layer->files = sum.files;
	m->n_layers = 1;
	return put_config(ses, take, m, err);
}

int image_import(struct image_store *s, const struct image_take *take,
		 struct image **ret, struct err *err)
{
	struct image_session ses;
	struct image_list one = { 0 };
	struct image *m = calloc(1, sizeof(*m));
	int r;

	if (m)
		m->layers = calloc(1, sizeof(*m->layers));
	if (!m || !m->layers) {
		image_free(m);
		return err_set(err, ENOMEM, "out of memory");
	}
	r = check_import(take, err);
	if (r == 0)
		r = image_session_begin(&ses, s, err);
	if (r == 0) {
		r = import(&ses, take, m, err);
		if (r == 0)
			r = image_list_add(&one, m, err);
		if (r == 0)
			r = image_session_commit(&ses, &one, err);
		image_list_done(&one);
		image_session_end(&ses);
	}
	if (r == 0)
		*ret = m;
	else
		image_free(m);
	return r;
}
