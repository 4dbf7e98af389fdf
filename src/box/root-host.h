/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The root `host`: this machine's /usr, read-only, with just enough around it
 * for programs to start. Everything else is Cordon's own.
 */

#include "base/err.h"
#include "box/pack.h"
#include "box/programs.h"
#include "box/spec.h"

#define ROOT_PATH                                                              \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:"        \
	"/usr/local/go/bin:/opt/cordon/bin"

/*
 * Mounts, then (after pack_records_begin) the files. With `only` nothing else
 * of /usr is executable, and its directories of programs hold just those.
 */
void root_host_mounts(struct pack *p, struct wire_box *box,
		      const struct cordon_spec *s, const struct programs *only);
void root_host_files(struct pack *p, const struct cordon_spec *s,
		     const struct programs *only);

/* Whether the root has a program of that name along ROOT_PATH. */
int root_host_has(const char *program);
