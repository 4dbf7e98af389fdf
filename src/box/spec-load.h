/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What other readers of JSON from outside share with the settings' one. */

#include <stddef.h>

/*
 * Takes white space outside of strings out, where it stands, for the reader of
 * ledger/read.h; the new length. What is not JSON stays so.
 */
size_t json_squeeze(char *text, size_t len);
