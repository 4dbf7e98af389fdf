/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers as people write them.
 *
 * Each returns 0 and the value, or -EINVAL (not such a number) or -ERANGE
 * (too large) and leaves *ret untouched. No sign, no spaces, no trailing
 * text; an empty string is not a number.
 */

#include <stdint.h>

/* Decimal, at most `max`. */
int num_parse(const char *text, uint64_t max, uint64_t *ret);

/* Bytes: a decimal with an optional k, m, g or t (1024) and then b. */
int num_parse_size(const char *text, uint64_t *ret);

/* Microseconds: "30s", "500ms", "2m", "1h"; without a unit, seconds. */
int num_parse_duration(const char *text, uint64_t *ret);

/*
 * A signal: its number, or its name with or without SIG, in any case; also
 * "RTMIN+3" and "RTMAX-1".
 */
int num_parse_signal(const char *text, int *ret);

/* Thousandths: "0.5" is 500. At most three decimals count. */
int num_parse_milli(const char *text, uint64_t *ret);
