/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths below a directory that we hold: never out of it, never through a link,
 * never onto another file system (openat2(2), Linux 5.6).
 */

#include "image/image.h"

/* "" is the directory itself. A descriptor, or -errno (ELOOP: a link). */
int image_tree_open(int root, const char *path, int flags);

/* Removes `name` and all below it; also where modes forbid it to its owner. */
int image_tree_remove(int dir, const char *name);

/* Makes it if it is missing (0700) and opens it. */
int image_tree_dir(int dir, const char *name, struct err *err);
