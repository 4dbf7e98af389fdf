/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What filters find in any text: in order, within it, whole characters. The
 * first byte chooses an expression.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/regex.h"
#include "fuzz.h"
#include "runtime/filter-find.h"

static const char *const patterns[] = { "(?i)internal only", "a|a.*b",
					"(\\w+\\s?)+x", "[^a-z]{3,9}\\b" };

static void check(const struct finds *f, const char *text, size_t len)
{
	size_t at = 0;

	for (size_t i = 0; i < f->n; at = f->v[i++].to) {
		MUST(f->v[i].from >= at && f->v[i].from < f->v[i].to);
		MUST(f->v[i].to <= len && f->v[i].kinds != 0);
		MUST(!utf8_check(text, len) ||
		     (utf8_check(text, f->v[i].from) &&
		      utf8_check(text, f->v[i].to)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct find_want w = { (1U << FIND_KINDS) - 1, NULL };
	struct err err = { 0 };
	struct finds f = { 0 };
	char *text;

	if (size == 0)
		return 0;
	/* A copy that ends where it ends, so that a step too far is seen. */
	text = malloc(size);
	MUST(text != NULL);
	memcpy(text, data + 1, size - 1);
	MUST(regex_new(patterns[data[0] % 4], &w.regex, &err) == 0);
	if (find_all(&w, text, size - 1, &f) == 0)
		check(&f, text, size - 1);
	finds_done(&f);
	regex_free(w.regex);
	free(text);
	return 0;
}
