/* SPDX-License-Identifier: Apache-2.0 */

/* In a few words what a record is about. */

#include <string.h>

#include "base/util.h"
#include "desk/index.h"

static void put(struct buf *out, const struct value *record, const char *name,
		const char *before)
{
	struct value v;

	if (!value_get(record, name, &v) || value_type(&v) == '{')
		return;
	buf_puts(out, out->len ? before : "");
	(void)value_text(&v, out);
}

/* The items of a list, with spaces between. */
static void put_list(struct buf *out, const struct value *list)
{
	struct value name;
	struct value item;
	bool is_first = true;

	for (struct walk w = walk_start(list); walk_next(&w, &name, &item);) {
		if (out->len > 300)
			return;
		if (!is_first)
			buf_puts(out, " ");
		is_first = false;
		if (value_type(&item) == '"')
			(void)value_text(&item, out);
	}
}

static void run_start(struct buf *out, const struct value *record)
{
	struct value v;
	struct value name;
	struct value block;

	if (value_get(record, "argv", &v))
		put_list(out, &v);
	if (!value_get(record, "code", &v))
		return;
	for (struct walk w = walk_start(&v); walk_next(&w, &name, &block);) {
		put(out, &block, "lang", ", ");
		buf_puts(out, " code,");
		put(out, &block, "size", " ");
		buf_puts(out, " bytes");
	}
}

static void run_end(struct buf *out, const struct value *record)
{
	struct value usage;

	put(out, record, "cause", " ");
	put(out, record, "exit_code", " ");
	if (value_get(record, "usage", &usage)) {
		put(out, &usage, "wall_ms", ", ");
		buf_puts(out, " ms");
	}
	put(out, record, "message", ": ");
}

static void command(struct buf *out, const struct value *record)
{
	struct value v;
	struct value name;
	struct value program;
	struct value argv;

	if (!value_get(record, "programs", &v))
		return;
	for (struct walk w = walk_start(&v); walk_next(&w, &name, &program);) {
		if (out->len)
			buf_puts(out, " ");
		put(out, &program, "join", " ");
		if (value_get(&program, "argv", &argv)) {
			buf_puts(out, out->len ? " " : "");
			put_list(out, &argv);
		} else {
			put_list(out, &program);
		}
	}
}

static void connection(struct buf *out, const struct value *record)
{
	struct value v;

	put(out, record, "method", " ");
	put(out, record, "host", " ");
	/* A name that was refused is of no port. */
	if (value_get(record, "port", &v) && value_int(&v, 0) > 0)
		put(out, record, "port", ":");
	put(out, record, "path", "");
	put(out, record, "reason", ": ");
}

static void plain(struct buf *out, const struct value *record)
{
	static const char *const names[] = { "what",  "subject",  "path",
					     "tool",  "provider", "model",
					     "scope", "by",       "status",
					     "file",  "reason" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		put(out, record, names[i], " ");
}

static void seal(struct buf *out, const struct value *record)
{
	buf_puts(out, "records ");
	put(out, record, "from", "");
	put(out, record, "to", " to ");
	put(out, record, "epoch", ", epoch ");
}

void record_summary(const struct value *record, const char *kind,
		    struct buf *out)
{
	static const struct {
		const char *kind;
		void (*put)(struct buf *out, const struct value *record);
	} table[] = {
		{ "run.start", run_start }, { "run.end", run_end },
		{ "command", command },     { "connection", connection },
		{ "seal", seal },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(kind, table[i].kind) == 0) {
			table[i].put(out, record);
			return;
		}
	plain(out, record);
}
