/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Between a tar and a box's files (box/files.h). Both functions block, for a
 * thread of their own; they touch nothing but what they are given, and end when
 * either descriptor is shut. Memory is bounded, whatever comes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strv.h"

struct files_ask;

#define TAR_MAX_ENTRIES (4U << 20)

/* What the box's user could not read: how much, and the first name, visible. */
struct left_out {
	uint64_t n;
	char first[256];
};

/* The request is sent; its answer becomes a tar whose first name is `root`. */
int tar_from_box(int sock, int out, const char *root, struct left_out *ret,
		 struct err *err);

/* A tar (plain or gzip) from `in`, unpacked by the box as `ask` says. */
int tar_to_box(int sock, int in, const char *path, const struct files_ask *ask,
	       struct err *err);

/* Its op, and what else it has; the length of the path is filled in. */
int files_send_ask(int sock, const struct files_ask *ask, const char *path,
		   struct err *err);

/* What a box said is wrong, in our errors and in words fit to be shown. */
int files_map_error(const struct err *from, const char *path, struct err *err);

/* Pure: whether a name of an entry may be believed; "" is the path itself. */
bool files_name_check(const char *name, size_t len);

/* ---- whole answers, of FILES_STAT, FILES_PS and FILES_CHANGES ---- */

struct files_item {
	int kind;
	uint32_t mode;
	uint64_t size;
	int64_t mtime_ns;
	char *name, *link;
};
struct files_list {
	struct files_item *v;
	size_t n;
};
/* Pure but for memory; `is_stat`: one entry, and no end of a list. */
int files_parse(const void *data, size_t len, bool is_stat,
		struct files_list *ret, struct err *err);
void files_list_done(struct files_list *l);
