/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keys: a configuration only says where one is, {"env":"NAME"} or
 * {"file":"/path"}. It is read when it is needed and wiped after use.
 */

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define SECRET_MAX 4096

/* Whether it is such a reference; says what is wrong, not what is in it. */
int secret_check(const json_t *ref, struct err *err);
/* The key as a string without blanks around it. -ENOENT: it is not set. */
int secret_read(const json_t *ref, char ret[SECRET_MAX], struct err *err);
/* Each place where it stands in the text is overwritten. */
void secret_mask(char *text, const char *secret);
