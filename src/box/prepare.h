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
	uint64_t at; /* its content, in the blob of the work */
};

struct prepared {
	int box; /* the two blobs, sealed */
	int work;
	enum refusal refused;
	int exit_code;                     /* of a refusal, 0: the usual one */
	size_t block;                      /* that was refused; 0: none was */
	char *code_files[SPEC_MAX_BLOCKS]; /* in the box */
	struct placed *placed;             /* in the order of their paths */
	size_t n_placed;
	struct strv warnings;
};

/* Only whether it could be: nothing is made. As prepare(). */
int prepare_check(const struct cordon_spec *s, struct prepared *ret,
		  struct err *err);

/* The sizes of the places that every box has, in bytes; 0: it has not. */
uint64_t prepare_scratch(const struct cordon_spec *s, const char *target);

/* 0 or -errno; on a refusal *err holds its text. */
int prepare(const struct cordon_spec *s, struct prepared *ret, struct err *err);
/* The same for a half of it: the box alone, or another program for one. */
int prepare_box(const struct cordon_spec *s, struct prepared *ret,
		struct err *err);
int prepare_work(const struct cordon_spec *s, struct prepared *ret,
		 struct err *err);
void prepared_done(struct prepared *p);

/*
 * Whether the first program is in the root, as far as that can be known
 * without a box; 0, or -errno with `ret->refused`. A run finds it by itself.
 */
int prepare_find(const struct cordon_spec *s, struct prepared *ret,
		 struct err *err);

/* Where code goes: the workspace, unless that is mounted read-only. */
const char *prepare_code_dir(const struct cordon_spec *s);

/* The environment as the program will see it. */
int prepare_env(const struct cordon_spec *s, struct strv *ret);
