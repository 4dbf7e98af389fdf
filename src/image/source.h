/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files that an image comes in: those of an archive, or of a directory.
 *
 * An archive is read once from its beginning to its end, and may come through
 * a pipe, so all its files are laid down in the session's directory first,
 * under numbers; their names are only ever compared. A link in it (old
 * archives of docker save have some) is another name, worked out on paper.
 * Of a directory each file is copied when it is asked for, so that what was
 * hashed is what is used.
 */

#include "image/store.h"

struct image_file {
	char *name;
	char *target; /* another name, or NULL */
	char file[24];
	char digest[IMAGE_DIGEST];
	uint64_t size;
};

struct image_source {
	struct image_session *ses;
	const struct image_take *take;
	bool is_dir;
	struct image_file *files;
	size_t n;
	uint64_t bytes;
};

int image_source_open(struct image_source *src, struct image_session *ses,
		      const struct image_take *take, struct err *err);
void image_source_close(struct image_source *src);

/*
 * A file by its name; NULL and no error if there is none. One that is named by
 * its digest has it, or it is an error.
 */
const struct image_file *image_source_file(struct image_source *src,
					   const char *name, struct err *err);

/* The text of a small one; -IMAGE_CORRUPT if it is not there. */
int image_source_doc(struct image_source *src, const char *name, char **ret,
		     size_t *ret_len, struct err *err);

/* Lays a whole stream down, whatever it is: for an import. */
int image_source_stream(struct image_session *ses,
			const struct image_take *take, struct image_file *ret,
			struct err *err);
