/* SPDX-License-Identifier: Apache-2.0 */

/* index.json, and lists of images. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/util.h"
#include "image/digest.h"
#include "image/doc.h"
#include "image/reference.h"
#include "image/store.h"
#include "image/tree.h"

#define INDEX_MAX IMAGE_DOC_MAX

void image_done(struct image *image)
{
	strv_done(&image->names);
	strv_done(&image->owners);
	free(image->layers);
	memset(image, 0, sizeof(*image));
}

void image_free(struct image *image)
{
	if (image)
		image_done(image);
	free(image);
}

void image_list_done(struct image_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		image_done(&list->v[i]);
	free(list->v);
	*list = (struct image_list){ 0 };
}

uint64_t image_size(const struct image *image)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < image->n_layers; i++)
		sum += image->layers[i].size;
	return sum;
}

static int copy_image(struct image *to, const struct image *from,
		      struct err *err)
{
	*to = *from;
	to->names = (struct strv){ 0 };
	to->owners = (struct strv){ 0 };
	to->layers = calloc(from->n_layers + 1, sizeof(*to->layers));
	if (!to->layers)
		return err_set(err, ENOMEM, "out of memory");
	if (from->n_layers > 0)
		memcpy(to->layers, from->layers,
		       from->n_layers * sizeof(*to->layers));
	for (size_t i = 0; i < from->names.n; i++)
		if (strv_add(&to->names, from->names.v[i]) < 0) {
			image_done(to);
			return err_set(err, ENOMEM, "out of memory");
		}
	for (size_t i = 0; i < from->owners.n; i++)
		if (strv_add(&to->owners, from->owners.v[i]) < 0) {
			image_done(to);
			return err_set(err, ENOMEM, "out of memory");
		}
	return 0;
}

int image_list_add(struct image_list *list, const struct image *image,
		   struct err *err)
{
	struct image *v = reallocarray(list->v, list->n + 1, sizeof(*v));

	if (!v)
		return err_set(err, ENOMEM, "out of memory");
	list->v = v;
	if (copy_image(&v[list->n], image, err) < 0)
		return -err->code;
	list->n++;
	return 0;
}

const struct image_layer *image_list_layer(const struct image_list *list,
					   const char *diff_id)
{
	for (size_t i = 0; i < list->n; i++)
		for (size_t k = 0; k < list->v[i].n_layers; k++)
			if (strcmp(list->v[i].layers[k].diff_id, diff_id) == 0)
				return &list->v[i].layers[k];
	return NULL;
}

struct image *image_list_id(const struct image_list *list, const char *id)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].id, id) == 0)
			return &list->v[i];
	return NULL;
}

long image_names_find(const struct strv *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->v[i], name) == 0)
			return (long)i;
	return -1;
}

void image_names_remove(struct strv *names, size_t i)
{
	free(names->v[i]);
	memmove(&names->v[i], &names->v[i + 1],
		(names->n - i) * sizeof(*names->v));
	names->n--;
}

static uint64_t read_number(json_t *object, const char *name, struct err *err)
{
	json_t *value = image_doc_get(object, name, JSON_INTEGER, err);
	json_int_t n = json_integer_value(value);

	if (!err->code && (!value || n < 0))
		err_set(err, IMAGE_CORRUPT, "'%s' is missing or negative",
			name);
	return (uint64_t)n;
}

static int read_layer(json_t *one, struct image_layer *l, struct err *err)
{
	image_doc_digest(one, "diff_id", l->diff_id, err);
	image_doc_digest(one, "blob", l->blob, err);
	l->blob_size = read_number(one, "blob_size", err);
	l->size = read_number(one, "size", err);
	l->files = read_number(one, "files", err);
	if (!err->code && (!*l->diff_id || !*l->blob))
		err_set(err, IMAGE_CORRUPT, "a layer without digests");
	return err->code ? -err->code : 0;
}

static int read_word(json_t *object, const char *name, char *ret, size_t size,
		     struct err *err)
{
	json_t *value = image_doc_get(object, name, JSON_STRING, err);
	size_t len = value ? json_string_length(value) : 0;

	if (err->code)
		return -err->code;
	if (len >= size)
		return err_set(err, IMAGE_CORRUPT, "'%s' is too long", name);
	memcpy(ret, value ? json_string_value(value) : "", len + 1);
	return 0;
}

/* Of an older program there are none. */
static int read_owners(json_t *one, struct image *image, struct err *err)
{
	json_t *list = image_doc_get(one, "owners", JSON_ARRAY, err);
	size_t n = json_array_size(list);

	image->owner = -1;
	if (!err->code && image_doc_get(one, "owner", JSON_INTEGER, err))
		image->owner = (int64_t)read_number(one, "owner", err);
	if (!err->code && list && n != image->names.n)
		return err_set(err, IMAGE_CORRUPT,
			       "'owners' are not as many as 'names'");
	for (size_t i = 0; i < n && !err->code; i++) {
		json_t *v = json_array_get(list, i);
		json_int_t uid = json_integer_value(v);
		char text[24];

		if (!json_is_integer(v) || uid < 0 || uid > UINT32_MAX)
			return err_set(err, IMAGE_CORRUPT,
				       "'owners' has no number of a user");
		(void)snprintf(text, sizeof(text), "%lld", (long long)uid);
		if (strv_add(&image->owners, text) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	return err->code ? -err->code : 0;
}

static int read_image(json_t *one, struct image *image, struct err *err)
{
	json_t *layers = image_doc_get(one, "layers", JSON_ARRAY, err);
	size_t n = json_array_size(layers);

	image_doc_digest(one, "id", image->id, err);
	image_doc_digest(one, "manifest", image->manifest, err);
	image_doc_digest(one, "run", image->run, err);
	image_doc_texts(one, "names", &image->names, err);
	if (!err->code)
		(void)read_owners(one, image, err);
	image->created = (int64_t)read_number(one, "created", err);
	image->loaded = (int64_t)read_number(one, "loaded", err);
	read_word(one, "os", image->os, sizeof(image->os), err);
	read_word(one, "architecture", image->architecture,
		  sizeof(image->architecture), err);
	image->layers = calloc(n + 1, sizeof(*image->layers));
	if (!image->layers)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < n && !err->code; i++)
		read_layer(json_array_get(layers, i),
			   &image->layers[image->n_layers++], err);
	if (!err->code && (!*image->id || !*image->run))
		err_set(err, IMAGE_CORRUPT, "an image without an id");
	return err->code ? -err->code : 0;
}

int image_index_parse(const char *text, size_t len, struct image_list *ret,
		      struct err *err)
{
	json_t *top = NULL;
	json_t *list = NULL;
	size_t n;

	*ret = (struct image_list){ 0 };
	err->code = 0;
	if (image_doc_parse(text, len, &top, err) == 0) {
		list = image_doc_get(top, "images", JSON_ARRAY, err);
		if (!err->code && read_number(top, "version", err) != 1 &&
		    !err->code)
			err_set(err, IMAGE_CORRUPT,
				"it is of a version that this program does "
				"not know");
	}
	n = json_array_size(list);
	ret->v = calloc(n + 1, sizeof(*ret->v));
	if (!ret->v) {
		n = 0;
		err_set(err, ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < n && !err->code; i++)
		read_image(json_array_get(list, i), &ret->v[ret->n++], err);
	json_decref(top);
	if (!err->code)
		return 0;
	image_list_done(ret);
	return err_wrap(err, "the store's index.json");
}

static void put_layer(struct json *j, const struct image_layer *l)
{
	json_open(j, NULL, '{');
	json_str(j, "diff_id", l->diff_id);
	json_str(j, "blob", l->blob);
	json_int(j, "blob_size", (int64_t)l->blob_size);
	json_int(j, "size", (int64_t)l->size);
	json_int(j, "files", (int64_t)l->files);
	json_close(j, '}');
}

void image_index_format(const struct image_list *list, struct buf *out)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_int(&j, "version", 1);
	json_open(&j, "images", '[');
	for (size_t i = 0; i < list->n; i++) {
		const struct image *m = &list->v[i];

		json_open(&j, NULL, '{');
		json_str(&j, "id", m->id);
		json_str(&j, "run", m->run);
		if (*m->manifest)
			json_str(&j, "manifest", m->manifest);
		json_open(&j, "names", '[');
		for (size_t k = 0; k < m->names.n; k++)
			json_str(&j, NULL, m->names.v[k]);
		json_close(&j, ']');
		if (m->owners.n == m->names.n) {
			json_open(&j, "owners", '[');
			for (size_t k = 0; k < m->owners.n; k++)
				json_raw(&j, NULL, m->owners.v[k]);
			json_close(&j, ']');
		}
		if (m->owner >= 0)
			json_int(&j, "owner", m->owner);
		json_open(&j, "layers", '[');
		for (size_t k = 0; k < m->n_layers; k++)
			put_layer(&j, &m->layers[k]);
		json_close(&j, ']');
		json_int(&j, "created", m->created);
		json_int(&j, "loaded", m->loaded);
		json_str(&j, "os", m->os);
		json_str(&j, "architecture", m->architecture);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

int image_read_doc(int fd, char **ret, size_t *ret_len, struct err *err)
{
	struct stat st;
	_cleanup_free_ char *data = NULL;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "read a document");
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > IMAGE_DOC_MAX)
		return err_set(err, IMAGE_TOO_LARGE,
			       "a document of more than %zu bytes",
			       IMAGE_DOC_MAX);
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return err_set(err, ENOMEM, "out of memory");
	n = io_read_full(fd, data, (size_t)st.st_size);
	if (n < 0)
		return err_errno(err, (int)-n, "read a document");
	data[n] = '\0';
	*ret = take_ptr(data);
	*ret_len = (size_t)n;
	return 0;
}

int image_index_load(struct image_store *s, struct image_list *ret,
		     struct err *err)
{
	_cleanup_fd_ int fd = image_tree_open(s->dir, "index.json", O_RDONLY);
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	*ret = (struct image_list){ 0 };
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_errno(err, -fd, "open the store's index.json");
	if (image_read_doc(fd, &text, &len, err) < 0)
		return -err->code;
	if (image_index_parse(text, len, ret, err) < 0)
		return -err->code;
	for (size_t i = 0; i < ret->n; i++)
		if (image_owners_fill(&ret->v[i], s->owner, err) < 0) {
			image_list_done(ret);
			return -err->code;
		}
	return 0;
}

int image_index_store(struct image_store *s, const struct image_list *list,
		      struct err *err)
{
	_cleanup_fd_ int fd = openat(s->dir, "index.json.new",
				     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW |
					     O_CLOEXEC,
				     0600);
	struct buf out;
	int r;

	if (fd < 0)
		return err_errno(err, errno, "make the store's index.json.new");
	buf_init(&out, INDEX_MAX);
	image_index_format(list, &out);
	r = out.error;
	if (r == 0)
		r = io_write_all(fd, out.data, out.len);
	buf_done(&out);
	if (r == 0 &&
	    (fsync(fd) < 0 ||
	     renameat(s->dir, "index.json.new", s->dir, "index.json") < 0 ||
	     fsync(s->dir) < 0))
		r = -errno;
	return r < 0 ? err_errno(err, -r, "write the store's index.json") : 0;
}
