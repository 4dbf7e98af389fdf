/* SPDX-License-Identifier: Apache-2.0 */

/*
 * First bytes of a connection, a TLS hello or HTTP or neither: a name is a
 * plain one and stands in the bytes, and what a beginning says the whole says
 * too, so nobody gains by sending it in parts.
 */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fuzz.h"
#include "gate/peek.h"
#include "gate/plain.h"

static int stands_in(const char *name, const uint8_t *data, size_t size)
{
	size_t n = strlen(name);

	for (size_t i = 0; i + n <= size; i++)
		if (strncasecmp((const char *)data + i, name, n) == 0)
			return 1;
	return 0;
}

/* A hello may be cut anywhere by its records, so the bytes need not be whole.
 */
static void check_name(const struct peek *p, const uint8_t *data, size_t size,
		       enum peeked what)
{
	char plain[GATE_HOST_MAX];

	if (!p->name[0])
		return;
	MUST(what == PEEK_TLS || what == PEEK_HTTP);
	MUST(plain_name(p->name, strlen(p->name), plain) == 0);
	MUST(strcmp(plain, p->name) == 0);
	if (what == PEEK_HTTP)
		MUST(stands_in(p->name, data, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peek whole;
	struct peek part;
	enum peeked what = peek(data, size, &whole);
	size_t cut = size;

	check_name(&whole, data, size, what);
	MUST(what != PEEK_HTTP || whole.name[0]);
	/* Half, a quarter ... and then the last few bytes. */
	for (int i = 0; i < 24 && cut > 0; i++) {
		enum peeked before;

		cut = i < 8 ? cut / 2 : size - (size_t)(i - 7) % (size + 1);
		before = peek(data, cut, &part);
		MUST(before == PEEK_MORE || before == what);
		MUST(before == PEEK_MORE || strcmp(part.name, whole.name) == 0);
		MUST(before != PEEK_MORE || !part.is_begun ||
		     what != PEEK_OTHER);
		if (i == 7)
			cut = size;
	}
	return 0;
}
