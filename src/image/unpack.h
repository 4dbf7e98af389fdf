/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One layer, from its archive into an empty directory.
 *
 * The archive is hostile until its digest is known, and that is known at its
 * end. So: nothing is opened but below the directory and never through a link;
 * what exists is replaced and never written to; nothing gets an owner, an
 * attribute or a set-id bit from the archive; devices, pipes and sockets are
 * left out; what makes no sense ends the whole with -IMAGE_REFUSED.
 */

#include "image/image.h"

struct image_unpacked {
	char diff_id[IMAGE_DIGEST];
	uint64_t size;
	uint64_t files;
	uint64_t skipped; /* devices and the like */
};

/*
 * `limits` is for what is left of the image's. On failure the directory is in
 * any state, and the caller removes it.
 */
int image_unpack(int fd, int dir, const struct image_limits *limits,
		 const struct image_progress *progress,
		 struct image_unpacked *ret, struct err *err);
