/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is in an archive: the three documents that say it. Pure: bytes in,
 * structures out.
 *
 *	manifest.json		docker save: all images of the archive
 *	index.json, or a blob	OCI: what manifests there are, for which
 *machines a blob			OCI: one image's configuration and
 *layers
 *
 * Files are named by their path in the archive; those of OCI are
 * blobs/sha256/DIGITS, and whoever opens such a file checks it.
 */

#include "image/image.h"

/* One image, as files of the archive. */
struct image_plan {
	char *config;
	struct strv layers; /* lowest first */
	struct strv names;  /* as they are written there */
	char manifest[IMAGE_DIGEST];
};

struct image_plans {
	struct image_plan *v;
	size_t n;
};

enum image_desc_kind {
	IMAGE_DESC_OTHER,
	IMAGE_DESC_INDEX,
	IMAGE_DESC_MANIFEST
};

struct image_desc {
	enum image_desc_kind kind;
	char digest[IMAGE_DIGEST];
	char os[16];
	char architecture[32];
	char *name; /* empty if it has none */
};

struct image_descs {
	struct image_desc *v;
	size_t n;
};

/* The images of docker save's manifest.json are added to *ret. */
int image_plans_parse_docker(const char *text, size_t len,
			     struct image_plans *ret, struct err *err);
void image_plans_done(struct image_plans *plans);

/* An empty plan at the end of the list, NULL without memory. */
struct image_plan *image_plans_add(struct image_plans *plans);

int image_descs_parse(const char *text, size_t len, struct image_descs *ret,
		      struct err *err);
void image_descs_done(struct image_descs *descs);

/*
 * Leaves those that are for this machine, with `one` only the first. If there
 * is a single one, it is taken for whatever machine it is.
 */
int image_descs_choose(struct image_descs *descs, bool one, struct err *err);

/* Sets config and layers. */
int image_plan_parse(const char *text, size_t len, struct image_plan *ret,
		     struct err *err);

/* "blobs/sha256/DIGITS" */
#define IMAGE_BLOB_PATH 80
void image_blob_path(const char *digest, char ret[IMAGE_BLOB_PATH]);
