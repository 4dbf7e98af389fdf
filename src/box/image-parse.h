/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the image store has written (image/store.h), read without a library:
 * the index, an image's entry in it, its configuration. Pure.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "box/images.h"

/* What is looked for: a name with tag or digest, or the beginning of an id. */
struct image_wanted {
	struct image_ref ref;
	char name[IMAGE_REF_MAX];
	bool is_name;
	const char *digits; /* NULL: it cannot be an id */
};

int image_wanted_parse(const char *text, struct image_wanted *ret,
		       struct err *err);

/* The entry that is wanted, by `text`; the caller frees it. */
int image_entry_find(const char *index, size_t len, const char *text,
		     const struct image_wanted *w, char **ret, struct err *err);

/* Names, digests and layers; *run: the blob with the configuration. */
int image_entry_read(struct box_image *m, const char *entry,
		     const struct image_wanted *w, char run[IMAGE_DIGEST],
		     struct err *err);

/* The configuration, which was held against its digest. */
int image_run_read(struct box_image *m, const char *text, size_t len,
		   struct err *err);

/* The store has something that it would not write. */
int image_corrupt(struct err *err, const char *what);

/* The groups that have a member of this name; image-user.c. */
size_t image_groups_find(const char *file, const char *name, size_t len,
			 uint32_t *ret, size_t max);

/* A line of passwd or group by name or number; image-user.c. */
bool image_account_find(const char *file, bool is_passwd, const char *name,
			uint32_t *ret_id, uint32_t *ret_gid);
