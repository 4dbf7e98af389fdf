/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Results from what the daemon says, which is foreign until it was read. */

#include <cordon/cordon.h>

#include "box/capture.h"
#include "box/result.h"
#include "ledger/read.h"

/* From a result document; NULL: it is none, or memory is short. */
struct cordon_result *result_read(const struct value *doc);

/*
 * From a cause, an exit code and streams that were kept here. `cause` CAUSES:
 * NULL. `message` may be NULL.
 */
struct cordon_result *result_make(enum cause cause, int exit_code,
				  const char *message, struct capture *out,
				  struct capture *err);
