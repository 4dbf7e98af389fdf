/* SPDX-License-Identifier: Apache-2.0 */

/*
 * First bytes of a connection, a TLS hello or HTTP or neither: a name is a
 * plain one and stands in the bytes, and what a beginning says the whole says
 * too, so nobody gains by sending it in parts. The same for hellos.
 */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fuzz.h"
#include "gate/hellos.h"
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

/* The same bytes in both directions: pieces change nothing. */
static void check_hellos(const uint8_t *data, size_t size)
{
	enum hellos_state state[2];
	enum hellos_seen seen[2];

	for (int k = 0; k < 2; k++) {
		size_t step = k || size == 0 ? 1 : size;
		struct hellos h = { 0 };
		struct peek p;

		hellos_start(&h);
		for (size_t i = 0; i < size; i += step)
			hellos_up(&h, data + i, step);
		seen[k] = HELLOS_PASS;
		state[k] = h.state;
		for (size_t i = 0; i < size && seen[k] == HELLOS_PASS;
		     i += step)
			seen[k] = hellos_box(&h, data + i, step, &p);
		MUST(seen[k] == HELLOS_PASS || h.state == HELLOS_OVER);
		hellos_done(&h);
	}
	MUST(state[0] == state[1] && seen[0] == seen[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peek whole;
	struct peek part;
	enum peeked what = peek(data, size, &whole);
	size_t cut = size;

	check_name(&whole, data, size, what);
	check_hellos(data, size);
	MUST(what != PEEK_HTTP || whole.is_long || whole.name[0]);
	MUST(!whole.is_long || (what == PEEK_HTTP && size >= PEEK_MAX));
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
