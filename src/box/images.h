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
/* A group, by number or name. */
int box_image_group(const struct box_image *image, const char *name,
		    uint32_t *ret, struct err *err);
/*
 * The groups that the image's /etc/group has this user in, at most `max`; none
 * for one that names its group, as Docker does it. Their number.
 */
size_t box_image_groups(const struct box_image *image, const char *text,
			uint32_t *ret, size_t max);

/* Whether it has something of that name along `path`; links are not followed.
 */
bool box_image_has(const struct box_image *image, const char *path,
		   const char *program);

/*
 * Where a path leads in the image, its links followed, none of them out of it.
 * With `may_miss` the end of it need not be there. 0 or -errno.
 */
struct image_real {
	char path[4096]; /* without links */
	uint32_t mode;   /* as of stat(2); 0: it is missing */
};
int box_image_real(const struct box_image *image, const char *path,
		   bool may_miss, struct image_real *ret);

/* A regular file for reading; no link is followed. */
int box_image_open(const struct box_image *image, const char *path);

/*
 * All names in a directory, of all layers; one may come twice, or be a name
 * that a higher layer has removed.
 */
int box_image_list(const struct box_image *image, const char *path,
		   struct strv *ret);

/*
 * A regular file of the image as text, at most `size` - 1 bytes; no link is
 * followed. Its length, or -errno.
 */
long box_image_read(const struct box_image *image, const char *path, char *buf,
		    size_t size);
