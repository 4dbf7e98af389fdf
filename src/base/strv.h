/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A growing list of strings that it owns; ended by NULL. */

#include <stddef.h>

struct strv {
	char **v;
	size_t n;
};

/* Adds a copy; 0 or -ENOMEM, and then nothing was added. */
int strv_add(struct strv *s, const char *text);
void strv_done(struct strv *s);
