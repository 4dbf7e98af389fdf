/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is said to people about an end. */

#include "base/strv.h"
#include "box/result.h"
#include "box/spec.h"

/* After an EFBIG that is not the box's own. */
#define MESSAGE_FILE_SIZE                                                      \
	"; raise the file size limit (ulimit -f) of who starts Cordon"

/* Why it ended so, and what to do about it; NULL for a plain exit. */
char *message_of(const struct run *run, const struct cordon_spec *s,
		 const char *cancel_reason);

/* A warning for each stream of each block of which bytes are missing. */
void message_truncation(const struct cordon_result *r, struct strv *warnings);
