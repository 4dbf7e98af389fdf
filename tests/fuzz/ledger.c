/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a line of the ledger, as JSON and as text to redact: what is
 * taken for a record is one that the writer would write again, byte for byte
 * but for its time; what is taken for a value can be walked to its end;
 * a token behind it is redacted.
 */

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ledger/line.h"
#include "ledger/read.h"
#include "ledger/redact.h"

static void check_line(const char *text, size_t len)
{
	struct line_head head;
	struct line line;
	struct buf again;
	char kind[128];

	if (line_parse(text, len, &line) < 0)
		return;
	MUST(line.seq > 0);
	MUST(line.members >= text && line.members_len < len);
	MUST(line_time_us(line.time) >= -1);
	if (line.kind_len >= sizeof(kind))
		return;
	memcpy(kind, line.kind, line.kind_len);
	kind[line.kind_len] = '\0';
	head.seq = line.seq;
	head.kind = kind;
	memcpy(head.prev, line.prev, sizeof(head.prev));
	buf_init(&again, 2 * (size_t)LINE_MAX_SIZE);
	MUST(line_format(&again, &head, line.members, line.members_len) == 0);
	MUST(again.len == len + 1);
	MUST(memcmp(again.data, text, 80) == 0);
	buf_done(&again);
}

static void walk(const struct value *v, int depth)
{
	struct value name;
	struct value item;
	struct buf out;

	MUST(depth <= VALUE_DEPTH);
	for (struct walk w = walk_start(v); walk_next(&w, &name, &item);) {
		MUST(item.p >= v->p && item.p + item.len <= v->p + v->len);
		MUST(value_check(item.p, item.len));
		walk(&item, depth + 1);
	}
	buf_init(&out, 4 * v->len + 64);
	MUST(value_text(v, &out) == 0);
	buf_done(&out);
	(void)value_int(v, 0);
	(void)value_get(v, "a", &item);
}

static int count(const struct buf *b, const char *what)
{
	size_t len = strlen(what);
	int n = 0;

	for (size_t i = 0; i + len <= b->len; i++)
		n += memcmp(b->data + i, what, len) == 0;
	return n;
}

static void check_redaction(const char *text, size_t len)
{
	static const char secret[] = "ghp_0123456789abcdefghij0123456789";
	struct buf with;
	struct buf out;

	buf_init(&with, len + sizeof(secret) + 2);
	buf_init(&out, 16 * len + 4096);
	buf_add(&with, text, len);
	buf_puts(&with, " ");
	buf_puts(&with, secret);
	MUST(redact(&out, with.data, with.len) == 0);
	/* The text may hold it too, where it does not look like one. */
	MUST(count(&out, secret) < count(&with, secret));
	buf_done(&with);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Exactly this long, so that a byte too many is seen. */
	char *text = malloc(size ? size : 1);
	struct value v = { text, size };

	memcpy(text, data, size);
	check_line(text, size);
	if (value_check(text, size))
		walk(&v, 0);
	(void)value_get(&v, "run", &(struct value){ 0 });
	check_redaction(text, size);
	free(text);
	return 0;
}
