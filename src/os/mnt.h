/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mounts as descriptors.
 *
 * A mount is made detached, given its attributes, and attached last; nothing
 * is ever mounted by a path that somebody else could change. Every function
 * returns a descriptor or 0, or -errno with *err filled in.
 */

#include <stdint.h>

#include "base/err.h"

#define MNT_SAFE (UAPI_MOUNT_ATTR_NOSUID | UAPI_MOUNT_ATTR_NODEV)

struct mnt_tmpfs {
	uint64_t size;   /* bytes */
	uint64_t inodes; /* at most this many files */
	unsigned int mode;
	unsigned int uid; /* owner of its root, in the caller's view */
	unsigned int gid;
	uint64_t attr; /* UAPI_MOUNT_ATTR_* */
};

/* A new tmpfs, detached. */
int mnt_tmpfs(const struct mnt_tmpfs *opt, struct err *err);

/* A new file system of `type` with `n` pairs of options (NULL: a flag),
 * detached. */
int mnt_new(const char *type, const char *const (*opt)[2], int n, uint64_t attr,
	    struct err *err);

/* A detached copy of the tree at `path` below `dirfd` ("" is dirfd itself). */
int mnt_clone(int dirfd, const char *path, struct err *err);

/* Adds attributes to a whole detached tree. */
int mnt_restrict(int mnt, uint64_t attr, struct err *err);

/* Attaches a detached tree on the place that `target` refers to. */
int mnt_attach(int mnt, int target, struct err *err);

/* As mnt_attach(), on `path` below `dirfd`; no link in it is followed. */
int mnt_attach_at(int mnt, int dirfd, const char *path, struct err *err);

/* Opens `path` below `root` for use as a place: O_PATH, stays in root. */
int mnt_open_in(int root, const char *path, struct err *err);
