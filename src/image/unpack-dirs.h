/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What unpack.c works on, and the directories of it. */

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "image/entry.h"
#include "image/stream.h"
#include "image/unpack.h"

struct late_dir {
	char *path;
	size_t order;
	mode_t mode;
	bool has_time;
	struct timespec time;
};

struct unpack {
	struct image_stream stream;
	int root;
	const struct image_limits *limits;
	const struct image_progress *progress;
	struct image_unpacked *sum;
	struct image_entry at;
	struct image_entry target; /* of a hard link */
	char parent[4096];
	int parent_fd;
	struct late_dir *late;
	size_t n_late;
	size_t room_late;
};

/* One file more; -IMAGE_TOO_LARGE. */
int unpack_count(struct unpack *u, struct err *err);
/* "what 'path'", of the entry at hand. */
int unpack_failed(struct unpack *u, int code, const char *what,
		  struct err *err);

/* The directory that the path is in, made if it is missing. Kept by `u`. */
int unpack_open_parent(struct unpack *u, const char *path, size_t base,
		       struct err *err);
void unpack_forget_parent(struct unpack *u);
/*
 * A directory `name`: 1 it was made, 0 it was there. -ENOTDIR if something else
 * is there, but for a mark, which the directory takes over: what is below it
 * stays hidden.
 */
int unpack_make_dir(int parent, const char *name);
int unpack_set_opaque(int parent, const char *name);

/* The mode and time that a directory gets at the end. */
int unpack_keep_late(struct unpack *u, const char *path, size_t len,
		     const struct late_dir *from, struct err *err);
int unpack_finish_dirs(struct unpack *u, struct err *err);
