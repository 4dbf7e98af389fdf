/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to selector*.c. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct fault;
struct team;

/* selector-prompt.c: fills {roles}, {participants} and {history}. */
extern const char selector_default[];
char *selector_prompt(struct team *t, const char *prompt,
		      const json_t *candidates, const json_t *thread);

/*
 * selector-name.c: which of `names` a model's answer contains, as words: '_',
 * '\_' and a blank are the same, and where two names fit at one place the
 * longer one counts. ret_at: the one found first. Returns how many different
 * ones there are.
 */
size_t selector_name_find(const char *text, const char *const *names, size_t n,
			  size_t *ret_at);

/* selector-func.c */
/* Names of participants; NULL, with *why or not: nobody. */
json_t *selector_call(struct team *t, const char *function,
		      const json_t *thread, struct fault *why);
