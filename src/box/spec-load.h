/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What other readers of JSON from outside share with the settings' one. */

#include <stddef.h>

#include "base/err.h"
#include "ledger/read.h"

#define SPEC_MAX_JSON (1U << 20)

struct cordon_spec;

/*
 * Takes white space outside of strings out, where it stands, for the reader of
 * ledger/read.h; the new length. What is not JSON stays so.
 */
size_t json_squeeze(char *text, size_t len);

/* spec-blocks.c: the member `blocks`, a list of blocks of code. */
int blocks_load(struct cordon_spec *s, const struct value *list,
		struct err *err);
