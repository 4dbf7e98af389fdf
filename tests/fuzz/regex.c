/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any expression over any text: the two are divided by the first NUL. What
 * is accepted finds matches in order, within the text, and ends.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/regex.h"
#include "fuzz.h"

static void use(struct regex *r, const char *text, size_t len)
{
	size_t at = 0;
	size_t from;
	size_t to;

	while (at < len && regex_find(r, text, len, at, &from, &to) > 0) {
		MUST(from >= at && from < to && to <= len);
		at = to;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = memchr(data, '\0', size);
	struct regex *r = NULL;
	struct err err = { 0 };
	size_t rest;
	char *text;

	if (!nul)
		return 0;
	if (regex_new((const char *)data, &r, &err) < 0) {
		MUST(err.code > 0 && err.text[0] && !r);
		return 0;
	}
	rest = size - (size_t)(nul + 1 - data);
	/* A copy that ends where it ends, so that a step too far is seen. */
	text = malloc(rest + (rest == 0));
	MUST(text != NULL);
	memcpy(text, nul + 1, rest);
	use(r, text, rest);
	free(text);
	regex_free(r);
	return 0;
}
