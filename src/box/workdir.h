/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The working directory of a box whose root is this machine's. It is made
 * where it is missing: in the root as a directory of it (WIRE_PLACE), in a
 * place in memory (the workspace too) as one of the box's user's. In what is
 * read-only and in a volume nothing is made; that it is missing there is found
 * before there is a box.
 */

#include "base/err.h"
#include "box/pack.h"
#include "box/spec.h"

/* -EINVAL with a line, if it is missing and cannot be made. */
int workdir_check(const struct cordon_spec *s, struct err *err);

/* Of an image it may be: init looks what is there. */
bool workdir_is_in_root(const struct cordon_spec *s);

/* Records of the work, for a place in memory. */
void workdir_pack_work(struct pack *p, const struct cordon_spec *s);
