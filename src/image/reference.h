/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names of images, as Docker reads them:
 *
 *	[HOST[:PORT]/]PATH[:TAG][@sha256:DIGITS]
 *
 * A name without a host is at docker.io, one of a single part there below
 * library/, and without tag and digest the tag is `latest`. Two names mean the
 * same image exactly if their normalised forms are the same bytes.
 */

#include "image/image.h"

struct image_ref {
	char name[256]; /* with its host */
	char tag[129];  /* empty only where there is a digest */
	char digest[IMAGE_DIGEST];
};

/* 0, or -IMAGE_BAD_NAME with what is wrong. */
int image_ref_parse(const char *text, struct image_ref *ret, struct err *err);

#define IMAGE_REF_MAX (256 + 129)

/* "name:tag"; without a tag, "name". */
void image_ref_format(const struct image_ref *ref, char ret[IMAGE_REF_MAX]);

/* Whether one of "name:tag" has its name, whatever the tag. */
bool image_ref_names(const struct image_ref *ref, const struct strv *names);

/* Where the part begins that people write. */
const char *image_ref_short(const char *name);
