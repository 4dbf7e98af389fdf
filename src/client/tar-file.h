/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One regular file out of a tar archive, as its bytes come; they may have been
 * made by what runs in a box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/tar-head.h"

struct tar_file {
	struct buf data; /* with the ceiling that the caller gave */
	char block[TAR_BLOCK];
	size_t have;   /* of the block */
	uint64_t left; /* of the entry */
	uint64_t skip; /* padding, and headers that tell nothing here */
	bool is_in;    /* the file's bytes come */
	bool has_file; /* and have come */
};

void tar_file_init(struct tar_file *t, size_t max);
/* -E2BIG: too large; -EISDIR: no regular file; -EPROTO: no archive. */
int tar_file_take(struct tar_file *t, const char *data, size_t len,
		  struct err *err);
/* -EPROTO if it is not complete. */
int tar_file_end(struct tar_file *t, struct err *err);
void tar_file_done(struct tar_file *t);
