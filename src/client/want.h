/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A spec as the daemon takes it: the settings as they were asked for, the
 * command or code, standard input (BoxWant, ExecWant and RunWant of
 * api/openapi.yaml). What has no meaning there is refused, and so is text that
 * JSON cannot carry as it is.
 */

#include <stdbool.h>

#include <cordon/cordon.h>

#include "base/buf.h"
#include "base/err.h"

/* A box to be made. `b` is the caller's in any case, also after an error. */
int want_box(struct buf *b, const struct cordon_spec *s, bool starts,
	     struct err *err);
/* A program whose streams are joined, or that is detached. */
int want_exec(struct buf *b, const struct cordon_spec *s, bool is_detached,
	      struct err *err);
/* A run with events; `box` NULL: in one of its own. */
int want_run(struct buf *b, const struct cordon_spec *s, const char *box,
	     const char *id, struct err *err);

/* Whether a setting was asked for, and is not "false". */
bool want_is_on(const struct cordon_spec *s, const char *name);
