/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A box's note: whatever is in the file, it is a box that can be used, or
 * none; and what was read is written and read again as the same.
 */

#include <stdlib.h>
#include <string.h>

#include "front/front.h"
#include "fuzz.h"

const unsigned int fuzz_doors = 1;
static unsigned int entered;

unsigned int fuzz_entered(void)
{
	return entered;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct manager m;
	struct box *b = note_parse(&m, (const char *)data, size);
	struct box *again;
	struct box_view v, w;
	char *text;

	entered = 0;
	if (!b)
		return 0;
	entered = 1;
	box_look(b, &v);
	MUST(strlen(v.id) == 64 && strlen(v.run) == 32);
	MUST(name_check(v.name));
	MUST(v.face && v.settings && v.spec && v.warnings && v.clamped);
	MUST(v.state <= BOX_EXITED && v.stop_signal > 0);
	text = note_dump(b);
	MUST(text);
	again = note_parse(&m, text, strlen(text));
	MUST(again);
	box_look(again, &w);
	MUST(strcmp(v.id, w.id) == 0 && strcmp(v.settings, w.settings) == 0);
	MUST(v.state == w.state && v.exit_code == w.exit_code);
	box_unref(again);
	free(text);
	box_unref(b);
	return 0;
}
