/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images of the store, as a box needs them: found, held, and what they say
 * about how they are run.
 *
 * The store is made by cordon-image (image/store.h says how it looks). Here it
 * is only read, without a library for JSON; configurations are held against
 * their digest, and whatever does not look as it should is an error.
 *
 *	struct box_image *image;
 *
 *	images_find("python:3", &image, &err);	-IMAGE_NOT_FOUND if there is
 *none
 *	... image->hold is open: the image stays
 *	box_image_free(image);
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strv.h"
#include "box/wire.h"
#include "image/reference.h"

struct box_image {
	char id[IMAGE_DIGEST];
	char manifest[IMAGE_DIGEST];
	char name[IMAGE_REF_MAX]; /* normalised, or the id if it has none */
	struct strv names;        /* all it has */
	struct strv layers;       /* digits, the lowest first, each once */
	struct strv env, cmd, entrypoint;
	struct strv volumes, ports, labels;
	char *workdir, *user, *stop_signal; /* never NULL */
	int hold;                       /* the image stays while it is open */
	int layer_fds[WIRE_MAX_LAYERS]; /* directories, as `layers` */
	size_t n_layer_fds;
};

/* Whether it can be one, whatever is there. */
int images_check_name(const char *text, struct err *err);

int images_find(const char *text, struct box_image **ret, struct err *err);
void box_image_free(struct box_image *image);

/*
 * For a process that will become another user, who cannot read the store:
 * starts a child that finds images for it from then on, with the rights that
 * this process has now. It ends when this process does. Returns its pid.
 */
int images_librarian(struct err *err);

/*
 * A user as images write it, UID, NAME, UID:GID and so on, looked up in the
 * image's own files. An empty one is root.
 */
int box_image_user(const struct box_image *image, const char *text,
		   uint32_t *ret_uid, uint32_t *ret_gid, struct err *err);

/* Whether it has something of that name along `path`; links are not followed.
 */
bool box_image_has(const struct box_image *image, const char *path,
		   const char *program);

/*
 * A regular file of the image as text, at most `size` - 1 bytes; no link is
 * followed. Its length, or -errno.
 */
long box_image_read(const struct box_image *image, const char *path, char *buf,
		    size_t size);
