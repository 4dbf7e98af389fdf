/* SPDX-License-Identifier: Apache-2.0 */

/* Finding an image, and what is asked of one. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/util.h"
#include "image/config.h"
#include "image/digest.h"
#include "image/reference.h"
#include "image/store.h"
#include "image/tree.h"

/* `--image host` is this machine and no image. */
#define RESERVED "docker.io/library/host"
/* What stands before the digits of an id. */
#define ALGORITHM "docker.io/library/sha256"

int image_name_parse(const char *text, char *ret, size_t size, struct err *err)
{
	struct image_ref ref;

	if (image_ref_parse(text, &ref, err) < 0)
		return -err->code;
	if (*ref.digest)
		return err_set(err, IMAGE_BAD_NAME,
			       "'%.100s': a name to give has no digest", text);
	if (strcmp(ref.name, RESERVED) == 0)
		return err_set(err, IMAGE_REFUSED,
			       "'host' is the name of this machine's own root; "
			       "no image can have it");
	if (strcmp(ref.name, ALGORITHM) == 0)
		return err_set(err, IMAGE_REFUSED,
			       "'sha256:' is the beginning of every id; no "
			       "image can have it as its name");
	if (snprintf(ret, size, "%s:%s", ref.name, ref.tag) >= (int)size)
		return err_set(err, IMAGE_BAD_NAME, "'%.100s' is too long",
			       text);
	return 0;
}

int image_name_free(const struct image_list *list, const char *name,
		    struct err *err)
{
	const char *text = image_ref_short(name);
	size_t len = image_digest_digits(text);

	if (len < IMAGE_ID_SHORT || len > 64 || (text[len] && text[len] != ':'))
		return 0;
	for (size_t i = 0; i < list->n; i++)
		if (strncmp(image_digest_hex(list->v[i].id), text, len) == 0)
			return err_set(err, IMAGE_REFUSED,
				       "'%.*s' is the beginning of the id of "
				       "an image; no image can have it as its "
				       "name",
				       (int)len, text);
	return 0;
}

static int by_id(const struct image_list *list, const char *text,
		 const struct image **ret, struct err *err)
{
	const char *digits = image_digest_hex(text);
	size_t len = strlen(digits);

	*ret = NULL;
	if (len == 0 || len > 64 || image_digest_digits(digits) != len)
		return 0;
	for (size_t i = 0; i < list->n; i++) {
		const char *id = image_digest_hex(list->v[i].id);

		if (strncmp(id, digits, len) != 0)
			continue;
		if (*ret)
			return err_set(err, IMAGE_AMBIGUOUS,
				       "more than one image has an id that "
				       "begins with '%.64s'",
				       digits);
		*ret = &list->v[i];
	}
	return 0;
}

/* An image of that name, whatever its tag, with that digest. */
static bool has_digest(const struct image *m, const struct image_ref *ref)
{
	return (strcmp(m->id, ref->digest) == 0 ||
		strcmp(m->manifest, ref->digest) == 0) &&
	       image_ref_names(ref, &m->names);
}

static const struct image *by_ref(const struct image_list *list,
				  const struct image_ref *ref)
{
	char name[IMAGE_REF_MAX];

	image_ref_format(ref, name);
	for (size_t i = 0; i < list->n; i++)
		if (*ref->digest
			    ? has_digest(&list->v[i], ref)
			    : image_names_find(&list->v[i].names, name) >= 0)
			return &list->v[i];
	return NULL;
}

/* A name that is also the beginning of another image's id is neither. */
static int check_alone(const struct image_list *list, const char *text,
		       const struct image *named, struct err *err)
{
	const struct image *other = NULL;
	struct err several = { 0 };
	bool is_short = strlen(text) < IMAGE_ID_SHORT;

	if (is_short || (by_id(list, text, &other, &several) == 0 &&
			 (!other || other == named)))
		return 0;
	return err_set(err, IMAGE_AMBIGUOUS,
		       "more than one image is meant by '%.64s': it is a name, "
		       "and the beginning of an id; write '%.64s:latest' or "
		       "'sha256:%.64s'",
		       text, text, text);
}

int image_list_find(const struct image_list *list, const char *text,
		    const struct image **ret, struct err *err)
{
	struct image_ref ref;
	struct err bad = { 0 };
	bool is_name;

	*ret = NULL;
	if (strncmp(text, "sha256:", 7) != 0) {
		is_name = image_ref_parse(text, &ref, &bad) == 0;
		if (is_name)
			*ret = by_ref(list, &ref);
		if (*ret && check_alone(list, text, *ret, err) < 0)
			return -err->code;
	} else {
		is_name = true;
	}
	if (!*ret && by_id(list, text, ret, err) < 0)
		return -err->code;
	if (*ret)
		return 0;
	if (!is_name && image_digest_digits(text) != strlen(text)) {
		*err = bad;
		return -err->code;
	}
	return err_set(err, IMAGE_NOT_FOUND,
		       "there is no image '%.200s'; 'cordon image ls' shows "
		       "what there is",
		       text);
}

int image_find(struct image_store *s, const char *text, struct image **ret,
	       struct err *err)
{
	struct image_list list = { 0 };
	struct image_list copy = { 0 };
	const struct image *found;
	int r = image_index_load(s, &list, err);

	if (r == 0)
		r = image_list_find(&list, text, &found, err);
	if (r == 0)
		r = image_list_add(&copy, found, err);
	image_list_done(&list);
	if (r == 0)
		*ret = copy.v;
	else
		image_list_done(&copy);
	return r;
}

static int newest_first(const void *a, const void *b)
{
	const struct image *x = a;
	const struct image *y = b;

	if (x->created != y->created)
		return x->created < y->created ? 1 : -1;
	return strcmp(x->id, y->id);
}

int image_list_load(struct image_store *s, struct image_list *ret,
		    struct err *err)
{
	int r = image_index_load(s, ret, err);

	if (r == 0 && ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), newest_first);
	return r;
}

int image_config_text(struct image_store *s, const struct image *image,
		      char **ret, size_t *ret_len, struct err *err)
{
	return image_blob_read(s, image->id, ret, ret_len, err);
}

int image_config_load(struct image_store *s, const struct image *image,
		      struct image_config *ret, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	memset(ret, 0, sizeof(*ret));
	if (image_config_text(s, image, &text, &len, err) < 0)
		return -err->code;
	return image_config_parse(text, len, ret, err);
}

bool image_layer_is_repeated(const struct image *image, size_t i)
{
	for (size_t k = i + 1; k < image->n_layers; k++)
		if (strcmp(image->layers[k].diff_id,
			   image->layers[i].diff_id) == 0)
			return true;
	return false;
}

static void layer_path(const struct image_layer *l, char *ret, size_t size)
{
	(void)snprintf(ret, size, "layers/sha256/%s/fs",
		       image_digest_hex(l->diff_id));
}

int image_layer_open(struct image_store *s, const struct image *image, size_t i,
		     struct err *err)
{
	char path[128];
	int fd;

	layer_path(&image->layers[i], path, sizeof(path));
	fd = image_tree_open(s->dir, path, O_PATH | O_DIRECTORY);
	if (fd == -ENOENT)
		return err_set(err, IMAGE_CORRUPT,
			       "the store has lost layer '%s'",
			       image->layers[i].diff_id);
	return fd < 0 ? err_errno(err, -fd, "open '%s'", path) : fd;
}

int image_layer_path(struct image_store *s, const struct image *image, size_t i,
		     char *ret, size_t size, struct err *err)
{
	char path[128];

	layer_path(&image->layers[i], path, sizeof(path));
	if (snprintf(ret, size, "%s/%s", s->path, path) >= (int)size)
		return err_set(err, ENAMETOOLONG,
			       "the path of a layer is too "
			       "long");
	return 0;
}

int image_hold(struct image_store *s, const struct image *image,
	       struct err *err)
{
	struct image *still = NULL;
	/* Whoever removes has it from the question until all is gone. */
	_cleanup_fd_ int lock = image_store_lock(s, err);
	_cleanup_fd_ int dir = NO_FD;
	_cleanup_fd_ int fd = NO_FD;

	if (lock < 0 || image_find(s, image->id, &still, err) < 0)
		return -err->code;
	image_free(still);
	dir = image_tree_open(s->dir, "use", O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		return err_errno(err, -dir, "open the store's 'use'");
	fd = openat(dir, image_digest_hex(image->id),
		    O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
		return err_errno(err, errno, "hold image '%s'", image->id);
	return take_fd(&fd);
}
