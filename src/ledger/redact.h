/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Takes secrets out of text before it is recorded.
 *
 * By a table of shapes: tokens by their prefix, "password=..." and its
 * relatives, "Bearer ...", JSON web tokens, private keys in PEM, user and
 * password in an address, query strings. What was found becomes "[redacted]"
 * or, for a token with a known prefix, the prefix and "[redacted]", so that a
 * reader sees what kind it was. A secret without a shape is not found: this
 * is a net below the policy, not the policy.
 *
 * Pure; linear in the length of the text.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Adds the text without its secrets. */
int redact(struct buf *out, const char *text, size_t len);

/* The same for the value of a variable, by its name too (GITHUB_TOKEN). */
int redact_variable(struct buf *out, const char *name, size_t name_len,
		    const char *value, size_t len);

/*
 * Whether an argument says that the next one is a secret ("--password",
 * "aws_secret_access_key"; "-H" does not).
 */
bool redact_is_secret_flag(const char *arg);

/* The same for an argument, by the one before it too (NULL: none). */
int redact_argument(struct buf *out, const char *before, const char *text,
		    size_t len);
