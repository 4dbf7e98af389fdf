/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An archive with both tables of contents, as docker save writes it since
 * version 25: an OCI layout (oci-layout, index.json, blobs/) and manifest.json
 * that leads to the same blobs. Layers are written as they came, so their
 * digests, and the image's id, are the same at the other end.
 */

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/util.h"
#include "image/digest.h"
#include "image/doc.h"
#include "image/manifest.h"
#include "image/reference.h"
#include "image/store.h"

#define CONFIG_TYPE   "application/vnd.oci.image.config.v1+json"
#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define DOCKER_TYPE   "application/vnd.docker.distribution.manifest.v2+json"
#define LAYER_TYPE    "application/vnd.oci.image.layer.v1.tar"

/* One image and the one name it is saved under, empty if by its id. */
struct item {
	const struct image *image;
	char name[IMAGE_REF_MAX];
	char manifest[IMAGE_DIGEST];
	size_t manifest_size;
	const char *manifest_type;
};

struct save {
	struct image_store *store;
	struct archive *out;
	const struct image_progress *progress;
	struct image_list list;
	struct item *items;
	size_t n;
	struct strv written; /* digests */
	uint64_t done;
	uint64_t total;
};

static int write_failed(struct save *s, struct err *err)
{
	int code = archive_errno(s->out);

	return err_errno(err, code > 0 ? code : EIO, "write the archive");
}

static int put_header(struct save *s, const char *name, unsigned int type,
		      uint64_t size, struct err *err)
{
	struct archive_entry *e = archive_entry_new();
	int r;

	if (!e)
		return err_set(err, ENOMEM, "out of memory");
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, type);
	archive_entry_set_perm(e, type == AE_IFDIR ? 0755 : 0644);
	archive_entry_set_size(e, (la_int64_t)size);
	archive_entry_set_mtime(e, 0, 0);
	r = archive_write_header(s->out, e);
	archive_entry_free(e);
	return r == ARCHIVE_OK ? 0 : write_failed(s, err);
}

static int put_data(struct save *s, const void *data, size_t len,
		    struct err *err)
{
	if (archive_write_data(s->out, data, len) != (la_ssize_t)len)
		return write_failed(s, err);
	s->done += len;
	if (s->progress && s->progress->tell)
		s->progress->tell(s->progress->arg, IMAGE_WRITING, NULL,
				  s->done, s->total);
	return 0;
}

static int put_text(struct save *s, const char *name, const struct buf *text,
		    struct err *err)
{
	if (text->error)
		return err_errno(err, -text->error, "write '%s'", name);
	if (put_header(s, name, AE_IFREG, text->len, err) < 0)
		return -err->code;
	return put_data(s, text->data, text->len, err);
}

static bool is_written(struct save *s, const char *digest, struct err *err)
{
	if (image_names_find(&s->written, digest) >= 0)
		return true;
	if (strv_add(&s->written, digest) < 0)
		err_set(err, ENOMEM, "out of memory");
	return false;
}

/* A blob of the store, checked on its way. */
static int put_blob(struct save *s, const char *digest, struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;
	_cleanup_free_ char *buf = malloc(1 << 17);
	char path[IMAGE_BLOB_PATH];
	char have[IMAGE_DIGEST];
	struct sha256 hash;
	struct stat st;
	ssize_t n;

	if (!buf)
		return err_set(err, ENOMEM, "out of memory");
	if (is_written(s, digest, err) || err->code)
		return -err->code;
	fd = image_blob_open(s->store, digest, err);
	if (fd < 0)
		return -err->code;
	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "read '%s'", digest);
	image_blob_path(digest, path);
	if (put_header(s, path, AE_IFREG, (uint64_t)st.st_size, err) < 0)
		return -err->code;
	sha256_init(&hash);
	while ((n = read(fd, buf, 1 << 17)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "read '%s'", digest);
		sha256_add(&hash, buf, (size_t)n);
		if (put_data(s, buf, (size_t)n, err) < 0)
			return -err->code;
	}
	image_digest_end(&hash, have);
	if (strcmp(have, digest) != 0)
		return err_set(err, IMAGE_CORRUPT,
			       "'%s' in the store is not what it was", digest);
	return 0;
}

/* By its first bytes, since a name may lie. */
static int layer_type(struct save *s, const char *digest, const char **ret,
		      struct err *err)
{
	_cleanup_fd_ int fd = image_blob_open(s->store, digest, err);
	unsigned char head[6] = { 0 };

	if (fd < 0)
		return -err->code;
	if (pread(fd, head, sizeof(head), 0) < 0)
		return err_errno(err, errno, "read '%s'", digest);
	if (memcmp(head, "\x1f\x8b", 2) == 0)
		*ret = LAYER_TYPE "+gzip";
	else if (memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0)
		*ret = LAYER_TYPE "+zstd";
	else if (memcmp(head,
			"\xfd"
			"7zXZ",
			5) == 0)
		*ret = LAYER_TYPE "+xz";
	else
		*ret = LAYER_TYPE;
	return 0;
}

static void put_desc(struct json *j, const char *name, const char *type,
		     const char *digest, uint64_t size)
{
	json_open(j, name, '{');
	json_str(j, "mediaType", type);
	json_str(j, "digest", digest);
	json_int(j, "size", (int64_t)size);
}

/* A manifest for an image that came without one. */
static int make_manifest(struct save *s, struct item *it, struct err *err)
{
	const struct image *m = it->image;
	_cleanup_free_ char *config = NULL;
	char path[IMAGE_BLOB_PATH];
	struct buf out;
	struct json j = { .out = &out };
	size_t len = 0;
	int r;

	if (image_config_text(s->store, m, &config, &len, err) < 0)
		return -err->code;
	buf_init(&out, (size_t)1 << 20);
	json_open(&j, NULL, '{');
	json_int(&j, "schemaVersion", 2);
	json_str(&j, "mediaType", MANIFEST_TYPE);
	put_desc(&j, "config", CONFIG_TYPE, m->id, len);
	json_close(&j, '}');
	json_open(&j, "layers", '[');
	for (size_t i = 0; i < m->n_layers && !err->code; i++) {
		const struct image_layer *l = &m->layers[i];
		const char *type = "";

		layer_type(s, l->blob, &type, err);
		put_desc(&j, NULL, type, l->blob, l->blob_size);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	r = err->code ? -err->code : out.error;
	if (r == 0) {
		image_digest_of(out.data, out.len, it->manifest);
		it->manifest_size = out.len;
		it->manifest_type = MANIFEST_TYPE;
		image_blob_path(it->manifest, path);
		if (!is_written(s, it->manifest, err) && !err->code)
			put_text(s, path, &out, err);
		r = err->code ? -err->code : 0;
	}
	buf_done(&out);
	return r;
}

static int put_manifest(struct save *s, struct item *it, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	json_t *top = NULL;
	json_t *type;

	if (!*it->image->manifest)
		return make_manifest(s, it, err);
	if (image_blob_read(s->store, it->image->manifest, &text, &len, err) <
		    0 ||
	    image_doc_parse(text, len, &top, err) < 0)
		return -err->code;
	type = json_object_get(top, "mediaType");
	it->manifest_type = type && strcmp(json_string_value(type) ?: "",
					   DOCKER_TYPE) == 0
				    ? DOCKER_TYPE
				    : MANIFEST_TYPE;
	json_decref(top);
	(void)strcpy(it->manifest, it->image->manifest);
	it->manifest_size = len;
	return put_blob(s, it->manifest, err);
}

static int put_image(struct save *s, struct item *it, struct err *err)
{
	if (!it->image)
		return err_set(err, IMAGE_NOT_FOUND, "there is no image");
	if (put_blob(s, it->image->id, err) < 0 || put_manifest(s, it, err) < 0)
		return -err->code;
	for (size_t i = 0; i < it->image->n_layers; i++)
		if (put_blob(s, it->image->layers[i].blob, err) < 0)
			return -err->code;
	return 0;
}

static void put_index(struct json *j, const struct item *it)
{
	put_desc(j, NULL, it->manifest_type, it->manifest, it->manifest_size);
	json_open(j, "platform", '{');
	json_str(j, "architecture", it->image->architecture);
	json_str(j, "os", it->image->os);
	json_close(j, '}');
	if (*it->name) {
		json_open(j, "annotations", '{');
		json_str(j, "io.containerd.image.name", it->name);
		json_str(j, "org.opencontainers.image.ref.name",
			 strrchr(it->name, ':') + 1);
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void put_blob_name(struct json *j, const char *name, const char *digest)
{
	char path[IMAGE_BLOB_PATH];

	image_blob_path(digest, path);
	json_str(j, name, path);
}

/* One entry for each image, with all its names. */
static void put_docker(struct json *j, const struct save *s, size_t at)
{
	const struct image *m = s->items[at].image;

	for (size_t i = 0; i < at; i++)
		if (s->items[i].image == m)
			return;
	json_open(j, NULL, '{');
	put_blob_name(j, "Config", m->id);
	json_open(j, "RepoTags", '[');
	for (size_t i = at; i < s->n; i++)
		if (s->items[i].image == m && *s->items[i].name)
			json_str(j, NULL, image_ref_short(s->items[i].name));
	json_close(j, ']');
	json_open(j, "Layers", '[');
	for (size_t i = 0; i < m->n_layers; i++)
		put_blob_name(j, NULL, m->layers[i].blob);
	json_close(j, ']');
	json_close(j, '}');
}

static int put_tables(struct save *s, struct err *err)
{
	struct buf out;
	struct json j = { .out = &out };
	int r;

	buf_init(&out, IMAGE_DOC_MAX);
	json_open(&j, NULL, '{');
	json_int(&j, "schemaVersion", 2);
	json_str(&j, "mediaType", "application/vnd.oci.image.index.v1+json");
	json_open(&j, "manifests", '[');
	for (size_t i = 0; i < s->n; i++)
		put_index(&j, &s->items[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	r = put_text(s, "index.json", &out, err);
	buf_done(&out);
	j.comma = false;
	json_open(&j, NULL, '[');
	for (size_t i = 0; i < s->n; i++)
		put_docker(&j, s, i);
	json_close(&j, ']');
	if (r == 0)
		r = put_text(s, "manifest.json", &out, err);
	buf_done(&out);
	if (r == 0) {
		buf_puts(&out, "{\"imageLayoutVersion\":\"1.0.0\"}");
		r = put_text(s, "oci-layout", &out, err);
	}
	buf_done(&out);
	return r;
}

/* Which images, and the size of what they consist of. */
static int choose(struct save *s, char *const *names, size_t n, struct err *err)
{
	if (image_index_load(s->store, &s->list, err) < 0)
		return -err->code;
	s->items = calloc(n + 1, sizeof(*s->items));
	if (!s->items)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		struct item *it = &s->items[i];
		struct image_ref ref;
		struct err bad = { 0 };

		if (image_list_find(&s->list, names[i], &it->image, err) < 0 ||
		    !it->image)
			return -err->code;
		if (image_ref_parse(names[i], &ref, &bad) == 0 && !*ref.digest)
			image_ref_format(&ref, it->name);
		/* What looks like a name and is not its name was an id. */
		if (image_names_find(&it->image->names, it->name) < 0)
			it->name[0] = '\0';
		for (size_t k = 0; k < it->image->n_layers; k++)
			s->total += it->image->layers[k].blob_size;
		s->n++;
	}
	return 0;
}

static int write_all(struct save *s, int fd, struct err *err)
{
	s->out = archive_write_new();
	if (!s->out || archive_write_set_format_pax_restricted(s->out) != 0 ||
	    archive_write_set_bytes_in_last_block(s->out, 1) != 0 ||
	    archive_write_open_fd(s->out, fd) != 0)
		return err_set(err, ENOMEM, "out of memory");
	if (put_header(s, "blobs/", AE_IFDIR, 0, err) < 0 ||
	    put_header(s, "blobs/sha256/", AE_IFDIR, 0, err) < 0)
		return -err->code;
	for (size_t i = 0; i < s->n; i++)
		if (put_image(s, &s->items[i], err) < 0)
			return -err->code;
	if (put_tables(s, err) < 0)
		return -err->code;
	return archive_write_close(s->out) == ARCHIVE_OK ? 0
							 : write_failed(s, err);
}

/* Nothing goes while it is read. */
static int hold_all(struct save *s, int *holds, struct err *err)
{
	for (size_t i = 0; i < s->n; i++) {
		holds[i] = image_hold(s->store, s->items[i].image, err);
		if (holds[i] < 0)
			return -err->code;
	}
	return 0;
}

int image_save(struct image_store *store, char *const *names, size_t n, int fd,
	       const struct image_progress *progress, struct err *err)
{
	struct save s = { .store = store, .progress = progress };
	int *holds = calloc(n + 1, sizeof(*holds));
	int r;

	if (!holds)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		holds[i] = NO_FD;
	r = choose(&s, names, n, err);
	if (r == 0)
		r = hold_all(&s, holds, err);
	if (r == 0)
		r = write_all(&s, fd, err);
	archive_write_free(s.out);
	for (size_t i = 0; i < n; i++)
		fd_close(&holds[i]);
	free(holds);
	free(s.items);
	strv_done(&s.written);
	image_list_done(&s.list);
	return r;
}
