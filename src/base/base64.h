/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reading base64; base/json.h writes it. */

#include <stddef.h>

#include "base/buf.h"

/* Adds what it stands for; padding may be missing. -EINVAL: it is none. */
int base64_add(struct buf *out, const char *text, size_t len);
