/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the guard (guard.h) know of one another. */

#include <sys/stat.h>

#include "box/guard.h"

/* guard.c: all of them -errno, with *err set; the last a text that lives on. */
int guard_no_memory(struct err *err);
int guard_denied(struct guard *g, struct err *err, const char *text);
char *guard_own(struct guard *g, const char *text);
/* What must not be changed in a writable directory is covered, or watched. */
int guard_protect_dir(struct guard *g, const struct spec_bind *b,
		      const char *given, struct err *err);

/* guard-sweep.c: the owner's rights to a directory, for as long as we look */
int guard_unlock_dir(int dir);
void guard_lock_dir(int dir, int mode);
/* Renames it to `stem` and a number that no box can have guessed. */
bool guard_rename_away(int dir, const char *name, const char *stem, char *away,
		       size_t size);

/* guard-links.c: before the box lives, and when it is dead */
void guard_links_begin(struct guard_watch *w);
void guard_links_sweep(int dir, const char *source, uint64_t since,
		       uint64_t clock, bool is_late, struct strv *ret);

/* guard-volumes.c: what of an image's root can be written */
int guard_add_volumes(struct guard *g, struct err *err);

/* guard-lower.c: what is above what a box has, besides the policy's numbers */
int guard_lower(struct guard *g, struct err *err);
/* What whoever starts us does not have, a box does not have either. */
int guard_lower_here(struct guard *g, struct err *err);

/* guard-add.c: the policy's volumes, places, variables and limits */
bool guard_has_target(const struct cordon_spec *s, const char *path);
int guard_add_bind(struct guard *g, const char *source, const char *target,
		   int mode, const struct stat *st, struct err *err);
int guard_add_place(struct guard *g, const char *target, uint64_t size,
		    bool is_volume, struct err *err);
int guard_add_mounts(struct guard *g, size_t *ret_first, struct err *err);
int guard_add_places(struct guard *g, struct err *err);
int guard_add_envs(struct guard *g, struct err *err);
void guard_tighten(struct guard *g);
/* What is not as it was asked for, and is told. */
int guard_add_notes(struct guard *g, struct err *err);

/*
 * What is to be run against the policy's `commands` (line.h): spec->line and
 * spec->programs are filled in, and a rule that asks makes the verdict ask.
 */
int guard_commands(struct guard *g, struct err *err);

/* guard-network.c: says whether a gate goes with the box */
int guard_network(struct guard *g, struct err *err);

/* Where the decision is `ask`, a person is asked; only a yes goes on. */
int guard_ask(struct guard *g, struct err *err);
