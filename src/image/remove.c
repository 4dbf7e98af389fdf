/* SPDX-License-Identifier: Apache-2.0 */

/* Names given and taken, images removed. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/util.h"
#include "image/digest.h"
#include "image/reference.h"
#include "image/store.h"
#include "image/tree.h"

void image_removed_done(struct image_removed *removed)
{
	strv_done(&removed->untagged);
	strv_done(&removed->deleted);
}

/* Under the lock, with what is there: may change it. */
struct change {
	struct image_list list;
	const char *text;
	const char *name;
	bool is_forced;
	bool is_changed;
	struct image_removed *ret;
};

static int locked(struct image_session *ses,
		  int (*step)(struct image_session *ses, struct change *c,
			      struct err *err),
		  struct change *c, struct err *err)
{
	_cleanup_fd_ int lock = image_store_lock(ses->store, err);
	int r;

	if (lock < 0)
		return -err->code;
	r = image_index_load(ses->store, &c->list, err);
	if (r == 0)
		r = step(ses, c, err);
	if (r == 0 && c->is_changed)
		r = image_index_store(ses->store, &c->list, err);
	if (r == 0 && c->is_changed)
		r = image_store_sweep(ses, &c->list, err);
	image_list_done(&c->list);
	return r;
}

static int change(struct image_store *s,
		  int (*step)(struct image_session *ses, struct change *c,
			      struct err *err),
		  struct change *c, struct err *err)
{
	struct image_session ses;
	int r = image_session_begin(&ses, s, err);

	if (r < 0)
		return r;
	r = locked(&ses, step, c, err);
	image_session_end(&ses);
	return r;
}

/* Whether anybody holds it. */
static bool is_held(struct image_store *s, const struct image *m)
{
	_cleanup_fd_ int dir = image_tree_open(s->dir, "use",
					       O_RDONLY | O_DIRECTORY);
	_cleanup_fd_ int fd = NO_FD;

	if (dir < 0)
		return true;
	fd = image_tree_open(dir, image_digest_hex(m->id), O_RDONLY);
	if (fd == -ENOENT)
		return false;
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return true;
	return false;
}

/* How many bytes go with it. */
static uint64_t own_bytes(const struct image_list *list, const struct image *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->n_layers; i++) {
		bool shared = image_layer_is_repeated(m, i);

		for (size_t k = 0; k < list->n && !shared; k++) {
			const struct image_list one = { &list->v[k], 1 };

			shared = &list->v[k] != m &&
				 image_list_layer(&one, m->layers[i].diff_id);
		}
		if (!shared)
			sum += m->layers[i].size + m->layers[i].blob_size;
	}
	return sum;
}

static int drop(struct image_store *s, struct change *c, struct image *m,
		struct err *err)
{
	size_t at = (size_t)(m - c->list.v);

	if (is_held(s, m))
		return err_set(err, IMAGE_IN_USE, "image '%s' is in use",
			       m->id);
	if (strv_add(&c->ret->deleted, m->id) < 0)
		return err_set(err, ENOMEM, "out of memory");
	c->ret->freed += own_bytes(&c->list, m);
	image_done(m);
	memmove(m, m + 1, (c->list.n - at - 1) * sizeof(*m));
	c->list.n--;
	c->is_changed = true;
	return 0;
}

static int untag(struct change *c, struct image *m, size_t i, struct err *err)
{
	if (strv_add(&c->ret->untagged, m->names.v[i]) < 0)
		return err_set(err, ENOMEM, "out of memory");
	image_name_drop(m, i);
	c->is_changed = true;
	return 0;
}

/* Where the name stands if `text` is one; -1 if it is an id or a digest. */
static long which_name(const struct image *m, const char *text)
{
	struct image_ref ref;
	struct err bad = { 0 };
	char name[IMAGE_REF_MAX];

	if (image_ref_parse(text, &ref, &bad) < 0 || *ref.digest)
		return -1;
	image_ref_format(&ref, name);
	return image_names_find(&m->names, name);
}

static int step_remove(struct image_session *ses, struct change *c,
		       struct err *err)
{
	const struct image *found = NULL;
	struct image *m;
	long at;

	if (image_list_find(&c->list, c->text, &found, err) < 0)
		return -err->code;
	m = &c->list.v[found - c->list.v];
	at = which_name(m, c->text);
	if (at >= 0 ? image_name_check(ses->store, m, (size_t)at, err) < 0
		    : image_owner_check(ses->store, m, err) < 0)
		return -err->code;
	/* Who only gave it a name takes only that. */
	if (at >= 0 && (m->names.n > 1 || !image_may_drop(ses->store, m)))
		return untag(c, m, (size_t)at, err);
	if (at < 0 && m->names.n > 1 && !c->is_forced)
		return err_set(err, IMAGE_IN_USE,
			       "image '%.19s' has %zu names; remove them one "
			       "by one, or use --force",
			       m->id, m->names.n);
	/* The last name and the image go together or not at all. */
	if (is_held(ses->store, m))
		return err_set(err, IMAGE_IN_USE, "image '%.19s' is in use",
			       m->id);
	while (m->names.n > 0)
		if (untag(c, m, 0, err) < 0)
			return -err->code;
	return drop(ses->store, c, m, err);
}

int image_remove(struct image_store *s, const char *text, bool force,
		 struct image_removed *ret, struct err *err)
{
	struct change c = { .text = text, .is_forced = force, .ret = ret };

	*ret = (struct image_removed){ 0 };
	return change(s, step_remove, &c, err);
}

static int step_prune(struct image_session *ses, struct change *c,
		      struct err *err)
{
	for (size_t i = 0; i < c->list.n;) {
		struct image *m = &c->list.v[i];
		struct err unused = { 0 };

		if ((m->names.n > 0 && !c->is_forced) ||
		    image_owner_check(ses->store, m, &unused) < 0 ||
		    !image_may_drop(ses->store, m) || is_held(ses->store, m)) {
			i++;
			continue;
		}
		while (m->names.n > 0)
			if (untag(c, m, 0, err) < 0)
				return -err->code;
		if (drop(ses->store, c, m, err) < 0)
			return -err->code;
	}
	return 0;
}

int image_prune(struct image_store *s, bool all, struct image_removed *ret,
		struct err *err)
{
	struct change c = { .is_forced = all, .ret = ret };

	*ret = (struct image_removed){ 0 };
	return change(s, step_prune, &c, err);
}

static int step_tag(struct image_session *ses, struct change *c,
		    struct err *err)
{
	const struct image *found = NULL;
	struct image *m;

	if (image_list_find(&c->list, c->text, &found, err) < 0)
		return -err->code;
	m = &c->list.v[found - c->list.v];
	if (image_names_find(&m->names, c->name) >= 0)
		return 0;
	if (image_name_free(&c->list, c->name, err) < 0)
		return -err->code;
	for (size_t i = 0; i < c->list.n; i++) {
		long at = image_names_find(&c->list.v[i].names, c->name);

		if (at < 0)
			continue;
		if (image_name_check(ses->store, &c->list.v[i], (size_t)at,
				     err) < 0)
			return -err->code;
		image_name_drop(&c->list.v[i], (size_t)at);
	}
	if (image_name_add(ses->store, m, c->name, err) < 0)
		return -err->code;
	c->is_changed = true;
	return 0;
}

int image_tag(struct image_store *s, const char *text, const char *name,
	      struct err *err)
{
	char whole[IMAGE_REF_MAX];
	struct change c = { .text = text, .name = whole };

	if (image_name_parse(name, whole, sizeof(whole), err) < 0)
		return -err->code;
	return change(s, step_tag, &c, err);
}
