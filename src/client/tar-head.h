/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The headers of a tar archive, written: ustar, with a pax header before it
 * for what does not fit (POSIX.1-2001).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TAR_BLOCK    512
#define TAR_MAX_HEAD 65536

typedef int tar_put_fn(void *arg, const void *data, size_t len,
		       struct err *err);

struct tar_entry {
	const char *name;
	const char *link; /* NULL: none */
	char type;
	unsigned int mode;
	uint64_t size;
	int64_t mtime;
	uint64_t uid, gid;
};

struct tar_out {
	tar_put_fn *put;
	void *arg;
	struct err *err;
};

int tar_put_entry(const struct tar_out *o, const struct tar_entry *e);
/* What fills the last block of an entry of `size` bytes. */
int tar_put_padding(const struct tar_out *o, uint64_t size);
int tar_put_end(const struct tar_out *o);
