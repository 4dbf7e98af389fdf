/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checkpoints: a directory with one JSON document each,
 *
 *	{"type":"checkpoint","version":1,"id","run","parent","time","reason",
 *	 "about","state"}
 *
 * named RUN.ID.json, mode 0600. One is written whole: under another name
 * first, synced, renamed, and the directory synced. So what is there can be
 * read, whatever happened to the writer. `about` is the caller's (which
 * configuration this was), `state` what it loads.
 *
 * Ids are UUIDs of version 7: later ones are greater. Of one run at most
 * `keep` are kept, and CHECKPOINTS_MAX of all; the oldest go.
 */

#include <jansson.h>

#include "base/err.h"

#define CHECKPOINT_ID   37 /* with its NUL */
#define CHECKPOINTS_MAX 2000

struct checkpoints;

/* `dir` is made where it is missing (0700). keep 0: 20. */
int checkpoints_open(const char *dir, unsigned int keep,
		     struct checkpoints **ret, struct err *err);
void checkpoints_close(struct checkpoints *c);

struct checkpoint {
	const char *run;
	const char *parent; /* an id, or NULL */
	const char *reason;
	json_t *about; /* or NULL */
	json_t *state;
};
int checkpoints_write(struct checkpoints *c, const struct checkpoint *p,
		      char ret_id[CHECKPOINT_ID], struct err *err);
/*
 * The whole document, the caller's. `id` may be that of a run, for its last
 * one. -ENOENT: no such.
 */
int checkpoints_read(struct checkpoints *c, const char *id, json_t **ret,
		     struct err *err);
/* [{"id","run","parent","time","reason","about"}], the newest first. */
json_t *checkpoints_list(struct checkpoints *c, struct err *err);
