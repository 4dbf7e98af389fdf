/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tar archives, as `cordon cp` writes and reads them: ustar with pax headers
 * for what does not fit (POSIX.1-2001).
 *
 * tar_pack() writes what stands at a path: regular files, directories and
 * links, which it never follows. tar_unpack() takes a stream piece by piece,
 * and what comes is foreign: it may have been made by what runs in a box.
 *
 *	- Names are relative, without "..", and every part of them but the last
 *	  is opened below the target without following a link.
 *	- Regular files, directories and links are made; whatever stood there
 *	  is replaced, a directory never. Everything else is left out and told.
 *	- No owner, no set-id bits, no sticky bit.
 *	- At most TAR_MAX_ENTRIES, TAR_MAX_BYTES, and TAR_MAX_HEAD of a header.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/tar-head.h"

#define TAR_MAX_ENTRIES (1U << 20)
#define TAR_MAX_BYTES   ((uint64_t)64 << 30)
#define TAR_MAX_DEPTH   128

/*
 * `path` below `dirfd`, as `name` in the archive ("" for the contents of a
 * directory only), and the end of the archive.
 */
int tar_pack(int dirfd, const char *path, const char *name, tar_put_fn *put,
	     void *arg, struct err *err);

struct tar_reader {
	int dir; /* where it goes */
	/* The first part of each name is replaced by this, "": is left out. */
	const char *rename;
	/* Told of what is left out. */
	void (*skipped)(const char *name, const char *why);

	char block[TAR_BLOCK];
	size_t have;
	enum { TAR_AT_HEAD, TAR_AT_EXTRA, TAR_AT_DATA, TAR_AT_END } state;
	struct buf extra; /* a pax or GNU header that is being read */
	char extra_type;
	uint64_t left, pad;    /* of the entry's bytes */
	struct buf path, link; /* from such a header, for the next entry */
	bool has_size;
	uint64_t size;
	int fd; /* the file that is being written */
	uint64_t bytes;
	uint32_t entries;
	int zeros;
};

void tar_reader_init(struct tar_reader *t, int dir);
int tar_reader_take(struct tar_reader *t, const char *data, size_t len,
		    struct err *err);
/* -EPROTO if the archive is not complete. */
int tar_reader_end(struct tar_reader *t, struct err *err);
void tar_reader_done(struct tar_reader *t);
