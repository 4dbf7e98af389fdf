/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A box's note: whatever is in the file, it is a box that can be used, or
 * none; and what was read is written and read again as the same. Else it may
 * be a line that says how one of its programs ended.
 */

#include <stdlib.h>
#include <string.h>

#include "front/doc.h"
#include "front/exec.h"
#include "fuzz.h"

const unsigned int fuzz_doors = 3;
static unsigned int entered;

unsigned int fuzz_entered(void)
{
	return entered;
}

static void try_line(const char *data, size_t size)
{
	static const struct box box = { .id = "b", .owner = 7 };
	struct err err = { 0 };
	json_t *o = doc_parse(data, size, &err);
	struct past *p = o ? past_parse(&box, o) : NULL;

	json_decref(o);
	if (!p)
		return;
	entered = 2;
	MUST(strlen(p->view.id) == 64 && strlen(p->view.run) == 32);
	MUST(p->view.user && p->view.is_started && !p->view.is_running);
	MUST(p->view.exit_code >= 0 && p->view.exit_code < 256);
	MUST(p->size >= sizeof(*p) && p->owner == 7);
	past_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct manager m;
	struct box *b = note_parse(&m, (const char *)data, size);
	struct box *again;
	struct box_view v, w;
	char *text;

	entered = 0;
	if (!b) {
		try_line((const char *)data, size);
		return 0;
	}
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
