/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A list of programs, and everything on this machine that they need to start:
 * their loader, their libraries, and those of what they load later where that
 * is known (python's modules). Under a list of commands nothing else can be
 * executed in the box, or mapped as code.
 */

#include "base/err.h"
#include "base/strv.h"

struct programs {
	struct strv files;   /* programs and loaders, by their real paths */
	struct strv code;    /* libraries, and directories of modules */
	struct strv links;   /* names in the box ... */
	struct strv targets; /* ... and what they lead to */
	struct strv known;   /* names of libraries that were looked for */
};

/*
 * Finds them along `path`. A name that this machine does not have is left
 * out; a script is an error, because its interpreter would not be there.
 */
int programs_find(const struct strv *names, const char *path,
		  struct programs *ret, struct err *err);
void programs_done(struct programs *p);
