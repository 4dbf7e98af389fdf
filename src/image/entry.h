/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The name of an entry in a layer, and what it means. Pure.
 *
 * A name is cut into its parts; empty ones and "." go, so a leading "/" does
 * too. ".." is refused, wherever it stands: there is no need for it, and what
 * it means depends on links. The last part may begin with ".wh.": then it is
 * not a file but says that one of the layers below is removed (the OCI image
 * specification, layer.md). aufs kept books below ".wh..wh."; those are left
 * out.
 */

#include "image/image.h"

enum image_entry_kind {
	IMAGE_ENTRY_ROOT,   /* the root itself */
	IMAGE_ENTRY_FILE,   /* whatever is at `path` */
	IMAGE_ENTRY_GONE,   /* `path` of the layers below is removed */
	IMAGE_ENTRY_OPAQUE, /* all of the directory `path` there is */
	IMAGE_ENTRY_NONE,   /* left out */
};

/* Deeper trees cannot be removed with an ordinary number of descriptors. */
#define IMAGE_ENTRY_DEPTH 200

struct image_entry {
	enum image_entry_kind kind;
	char path[4096]; /* relative, without a slash at either end */
	size_t base;     /* where its last part begins */
};

/* 0, or -IMAGE_REFUSED with the reason. */
int image_entry_parse(const char *name, struct image_entry *ret,
		      struct err *err);
