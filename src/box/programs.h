/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A list of programs, and everything in the root that they need to start:
 * their loader, their libraries, and those of what they load later where that
 * is known (python's modules). Under a list of commands nothing else can be
 * executed in the box, or mapped as code.
 */

#include "base/err.h"
#include "base/strv.h"

struct box_image;

struct programs {
	const struct box_image *image; /* NULL: in this machine's /usr */
	struct strv files;   /* programs and loaders, by their real paths */
	struct strv code;    /* libraries, and directories of modules */
	struct strv links;   /* host: names in the box ... */
	struct strv targets; /* ... and what they lead to */
	struct strv known;   /* names of libraries that were looked for */
	size_t looked;       /* so many of `code` were asked what they need */
};

/*
 * Finds them along `path`, on this machine or in an image, which must live as
 * long. A name that is not there is left out; a script is an error, because
 * its interpreter would not be there.
 */
int programs_find(const struct strv *names, const char *path,
		  const struct box_image *image, struct programs *ret,
		  struct err *err);
void programs_done(struct programs *p);
