/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The settings `work_dir`, `bind_dir`, `allow_cwd`, `container_work_dir` and
 * `delete_files` of code executors: a directory of the host that is the
 * workspace itself. It is a volume in every respect (binds.h, the policy);
 * what is more is here.
 */

#include "base/err.h"
#include "base/strv.h"
#include "box/guard.h"
#include "box/prepare.h"
#include "box/spec.h"

/* Adds it to the volumes of the guard's spec; guard_make() makes it. */
int guard_add_work_dir(struct guard *g, struct err *err);

/*
 * With `delete_files`, when no process of the box is left: the files of the
 * blocks go. One that could not be removed is a warning that names it.
 */
void work_dir_clean(const struct cordon_spec *s, const struct prepared *p,
		    struct strv *warnings);
