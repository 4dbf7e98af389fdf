/* SPDX-License-Identifier: Apache-2.0 */
#include "image/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "image/config.h"
#include "image/digest.h"
#include "image/doc.h"

#define MANY 1024 /* images, descriptors, layers: more than anyone has */

void image_blob_path(const char *digest, char ret[IMAGE_BLOB_PATH])
{
	(void)snprintf(ret, IMAGE_BLOB_PATH, "blobs/sha256/%.64s",
		       image_digest_hex(digest));
}

static void plan_done(struct image_plan *p)
{
	free(p->config);
	strv_done(&p->layers);
	strv_done(&p->names);
	memset(p, 0, sizeof(*p));
}

void image_plans_done(struct image_plans *plans)
{
	for (size_t i = 0; i < plans->n; i++)
		plan_done(&plans->v[i]);
	free(plans->v);
	*plans = (struct image_plans){ 0 };
}

struct image_plan *image_plans_add(struct image_plans *plans)
{
	struct image_plan *v = reallocarray(plans->v, plans->n + 1, sizeof(*v));

	if (!v)
		return NULL;
	plans->v = v;
	memset(&v[plans->n], 0, sizeof(*v));
	return &v[plans->n++];
}

static int read_docker(json_t *one, struct image_plan *p, struct err *err)
{
	p->config = image_doc_text(one, "Config", err);
	image_doc_texts(one, "RepoTags", &p->names, err);
	image_doc_texts(one, "Layers", &p->layers, err);
	if (err->code)
		return -err->code;
	if (!*p->config || p->layers.n > MANY || p->names.n > MANY)
		return err_set(err, IMAGE_CORRUPT,
			       "an image without a configuration, or with more "
			       "than %d layers or names",
			       MANY);
	return 0;
}

int image_plans_parse_docker(const char *text, size_t len,
			     struct image_plans *ret, struct err *err)
{
	struct err own = { 0 };
	json_t *top = NULL;
	json_t *one;
	size_t i;

	if (image_doc_parse(text, len, &top, &own) == 0 &&
	    (!json_is_array(top) || json_array_size(top) == 0 ||
	     json_array_size(top) > MANY))
		err_set(&own, IMAGE_CORRUPT, "it is no list of images");
	json_array_foreach(top, i, one)
	{
		struct image_plan *p;

		if (own.code)
			break;
		p = image_plans_add(ret);
		if (!p)
			err_set(&own, ENOMEM, "out of memory");
		else
			read_docker(one, p, &own);
	}
	json_decref(top);
	if (!own.code)
		return 0;
	image_plans_done(ret);
	err_wrap(&own, "manifest.json");
	if (err)
		*err = own;
	return -own.code;
}

void image_descs_done(struct image_descs *descs)
{
	for (size_t i = 0; i < descs->n; i++)
		free(descs->v[i].name);
	free(descs->v);
	*descs = (struct image_descs){ 0 };
}

static enum image_desc_kind kind_of(const char *media_type)
{
	static const struct {
		const char *type;
		enum image_desc_kind kind;
	} table[] = {
		{ "application/vnd.oci.image.index.v1+json", IMAGE_DESC_INDEX },
		{ "application/vnd.docker.distribution.manifest.list.v2+json",
		  IMAGE_DESC_INDEX },
		{ "application/vnd.oci.image.manifest.v1+json",
		  IMAGE_DESC_MANIFEST },
		{ "application/vnd.docker.distribution.manifest.v2+json",
		  IMAGE_DESC_MANIFEST },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i].type, media_type) == 0)
			return table[i].kind;
	return IMAGE_DESC_OTHER;
}

static void copy_word(char *ret, size_t size, json_t *object, const char *name,
		      struct err *err)
{
	json_t *value = image_doc_get(object, name, JSON_STRING, err);

	(void)snprintf(ret, size, "%s", value ? json_string_value(value) : "");
}

/*
 * Docker writes the whole name in one annotation and the tag in the other;
 * others write either into the second. A tag alone is no name.
 */
static char *read_name(json_t *annotations, struct err *err)
{
	char *name = image_doc_text(annotations, "io.containerd.image.name",
				    err);

	if (!name || *name)
		return name;
	free(name);
	name = image_doc_text(annotations, "org.opencontainers.image.ref.name",
			      err);
	if (name && !strpbrk(name, ":/"))
		*name = '\0';
	return name;
}

static int read_desc(json_t *one, struct image_desc *d, struct err *err)
{
	json_t *none = json_object();
	json_t *platform = image_doc_get(one, "platform", JSON_OBJECT, err);
	json_t *notes = image_doc_get(one, "annotations", JSON_OBJECT, err);
	json_t *type = image_doc_get(one, "mediaType", JSON_STRING, err);

	d->kind = kind_of(type ? json_string_value(type) : "");
	notes = notes ? notes : none;
	platform = platform ? platform : none;
	copy_word(d->os, sizeof(d->os), platform, "os", err);
	copy_word(d->architecture, sizeof(d->architecture), platform,
		  "architecture", err);
	d->name = read_name(notes, err);
	/* An attestation about another manifest. */
	if (json_object_get(notes, "vnd.docker.reference.type") ||
	    strcmp(d->os, "unknown") == 0)
		d->kind = IMAGE_DESC_OTHER;
	image_doc_digest(one, "digest", d->digest, err);
	json_decref(none);
	if (!err->code && !*d->digest)
		return err_set(err, IMAGE_CORRUPT,
			       "a descriptor without a digest");
	return err->code ? -err->code : 0;
}

int image_descs_parse(const char *text, size_t len, struct image_descs *ret,
		      struct err *err)
{
	struct err own = { 0 };
	json_t *top = NULL;
	json_t *list = NULL;
	size_t n;

	*ret = (struct image_descs){ 0 };
	if (image_doc_parse(text, len, &top, &own) == 0)
		list = image_doc_get(top, "manifests", JSON_ARRAY, &own);
	n = json_array_size(list);
	if (!own.code && n > MANY)
		err_set(&own, IMAGE_TOO_LARGE, "more than %d manifests", MANY);
	ret->v = calloc(n + 1, sizeof(*ret->v));
	if (!ret->v) {
		n = 0;
		err_set(&own, ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < n && !own.code; i++)
		read_desc(json_array_get(list, i), &ret->v[ret->n++], &own);
	json_decref(top);
	if (!own.code)
		return 0;
	image_descs_done(ret);
	err_wrap(&own, "the image index");
	if (err)
		*err = own;
	return -own.code;
}

static bool is_ours(const struct image_desc *d)
{
	if (d->kind == IMAGE_DESC_OTHER)
		return false;
	if (!*d->os && !*d->architecture)
		return true;
	return strcmp(d->os, "linux") == 0 &&
	       strcmp(d->architecture, image_architecture()) == 0;
}

int image_descs_choose(struct image_descs *descs, bool one, struct err *err)
{
	size_t usable = 0;
	size_t ours = 0;
	size_t n = 0;

	for (size_t i = 0; i < descs->n; i++) {
		usable += descs->v[i].kind != IMAGE_DESC_OTHER;
		ours += is_ours(&descs->v[i]);
	}
	for (size_t i = 0; i < descs->n; i++) {
		struct image_desc *d = &descs->v[i];
		bool take = is_ours(d) || (ours == 0 && usable == 1 &&
					   d->kind != IMAGE_DESC_OTHER);

		if (take && !(one && n > 0))
			descs->v[n++] = *d;
		else
			free(d->name);
	}
	descs->n = n;
	if (n == 0)
		return err_set(err, IMAGE_REFUSED,
			       "there is no image for linux/%s in it",
			       image_architecture());
	return 0;
}

static bool is_layer_type(const char *type)
{
	static const char *const types[] = {
		"application/vnd.oci.image.layer.v1.tar",
		"application/vnd.oci.image.layer.v1.tar+gzip",
		"application/vnd.oci.image.layer.v1.tar+zstd",
		"application/vnd.oci.image.layer.nondistributable.v1.tar",
		"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
		"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
		"application/vnd.docker.image.rootfs.diff.tar",
		"application/vnd.docker.image.rootfs.diff.tar.gzip",
		"application/vnd.docker.image.rootfs.diff.tar.zstd",
		"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(types[i], type) == 0)
			return true;
	return false;
}

static bool is_config_type(const char *type)
{
	return strcmp(type, "application/vnd.oci.image.config.v1+json") == 0 ||
	       strcmp(type, "application/vnd.docker.container.image.v1+json") ==
		       0;
}

/* The path of the blob that a descriptor means. */
static int read_blob(json_t *desc, bool (*is_type)(const char *type),
		     char ret[IMAGE_BLOB_PATH], struct err *err)
{
	json_t *type = image_doc_get(desc, "mediaType", JSON_STRING, err);
	char digest[IMAGE_DIGEST];

	if (image_doc_digest(desc, "digest", digest, err) < 0)
		return -err->code;
	if (!*digest || !type)
		return err_set(err, IMAGE_CORRUPT,
			       "a descriptor without digest or media type");
	if (!is_type(json_string_value(type)))
		return err_set(err, IMAGE_REFUSED,
			       "media type '%.80s' is no part of an image that "
			       "can run",
			       json_string_value(type));
	image_blob_path(digest, ret);
	return 0;
}

static int read_plan(json_t *top, struct image_plan *ret, struct err *err)
{
	json_t *config = image_doc_get(top, "config", JSON_OBJECT, err);
	json_t *layers = image_doc_get(top, "layers", JSON_ARRAY, err);
	char path[IMAGE_BLOB_PATH];
	json_t *layer;
	size_t i;

	if (err->code)
		return -err->code;
	if (!config)
		return err_set(err, IMAGE_CORRUPT, "'config' is missing");
	if (read_blob(config, is_config_type, path, err) < 0)
		return -err->code;
	ret->config = strdup(path);
	if (!ret->config)
		return err_set(err, ENOMEM, "out of memory");
	if (json_array_size(layers) > MANY)
		return err_set(err, IMAGE_TOO_LARGE, "more than %d layers",
			       MANY);
	json_array_foreach(layers, i, layer)
	{
		if (read_blob(layer, is_layer_type, path, err) < 0)
			return -err->code;
		if (strv_add(&ret->layers, path) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

int image_plan_parse(const char *text, size_t len, struct image_plan *ret,
		     struct err *err)
{
	struct err own = { 0 };
	json_t *top = NULL;

	if (image_doc_parse(text, len, &top, &own) == 0)
		read_plan(top, ret, &own);
	json_decref(top);
	if (!own.code)
		return 0;
	err_wrap(&own, "the manifest");
	if (err)
		*err = own;
	return -own.code;
}
