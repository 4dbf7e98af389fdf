/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From what the caller said to what the keeper and init are told.
 *
 * Everything that can be wrong is found here, before anything is created on
 * the machine. A refusal that is a result rather than an error (a language
 * that is not there, a file name that leaves the workspace) sets `refused`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strv.h"
#include "box/spec.h"

enum refusal {
	REFUSED_NOT,
	REFUSED_DENIED,    /* cause denied */
	REFUSED_NOT_FOUND, /* cause not_found */
	REFUSED_INVALID,   /* cause invalid */
};

/* A file that was put into the workspace, to know later what changed. */
struct placed {
	char *path; /* below /workspace */
	int64_t mtime_ns;
	uint64_t size;
};

struct prepared {
	int box; /* the two blobs, sealed */
	int work;
	enum refusal refused;
	int exit_code;                     /* of a refusal, 0: the usual one */
	char *code_files[SPEC_MAX_BLOCKS]; /* in the box */
	struct placed *placed;
	size_t n_placed;
	struct strv warnings;
};

/* 0 or -errno; on a refusal *err holds its text. */
int prepare(const struct cordon_spec *s, struct prepared *ret, struct err *err);
/* The same for a half of it: the box alone, or another program for one. */
int prepare_box(const struct cordon_spec *s, struct prepared *ret,
		struct err *err);
int prepare_work(const struct cordon_spec *s, struct prepared *ret,
		 struct err *err);
void prepared_done(struct prepared *p);

/* Where code goes: the workspace, unless that is mounted read-only. */
const char *prepare_code_dir(const struct cordon_spec *s);

/* The environment as the program will see it. */
int prepare_env(const struct cordon_spec *s, struct strv *ret);
