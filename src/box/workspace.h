/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The workspace: a directory of the host copied in, and after the run what
 * the box made there listed and copied out.
 *
 * Copying in reads the caller's own directory; links stay links, anything
 * that is neither file, directory nor link is left out with a warning.
 *
 * Copying out happens when no process of the box is left, from a descriptor
 * of its workspace; no link is followed, only regular files are taken, and
 * every count and size has a ceiling.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strv.h"
#include "box/pack.h"
#include "box/prepare.h"
#include "box/spec.h"

#define WORKSPACE_MAX_FILES  10000
#define WORKSPACE_MAX_DEPTH  64
#define WORKSPACE_MAX_LISTED 1000
#define COPY_OUT_MAX_FILE    (256ULL << 20)
#define COPY_OUT_MAX_TOTAL   (1ULL << 30)

int workspace_pack(struct pack *p, const struct cordon_spec *s,
		   struct prepared *ret, struct err *err);

struct listed {
	char *path;
	uint64_t size;
};

struct listing {
	struct listed *files;
	size_t n;
	bool is_cut;
};

/*
 * What is new or changed below `dir`, and copies what the spec asks for into
 * the directories `copies`, which were opened before the box lived.
 */
void workspace_collect(int dir, const struct cordon_spec *s, const int *copies,
		       const struct prepared *before, struct listing *ret,
		       struct strv *warnings);
void listing_done(struct listing *l);
