/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/selector.h"

#include <stdbool.h>
#include <string.h>

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

/* How much of the text the name takes, 0 where it is not there. */
static size_t match(const char *text, const char *name)
{
	const char *p = text;

	for (; *name; name++) {
		if (*name == '_' && p[0] == '\\' && p[1] == '_')
			p += 2;
		else if (*p == *name || (*name == '_' && *p == ' '))
			p++;
		else
			return 0;
	}
	return is_word(*p) ? 0 : (size_t)(p - text);
}

static size_t longest(const char *text, const char *const *names, size_t n,
		      size_t *ret_which)
{
	size_t best = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = match(text, names[i]);

		if (len <= best)
			continue;
		best = len;
		*ret_which = i;
	}
	return best;
}

size_t selector_name_find(const char *text, const char *const *names, size_t n,
			  size_t *ret_at)
{
	const char *p = text;
	size_t found = 0;
	size_t first = n;
	size_t which = n;

	while (*p) {
		size_t len = p > text && is_word(p[-1])
				     ? 0
				     : longest(p, names, n, &which);

		if (len > 0 && which != first)
			found++;
		if (len > 0 && first == n)
			first = which;
		p += len > 0 ? len : 1;
	}
	*ret_at = first;
	return found;
}
