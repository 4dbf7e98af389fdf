/* SPDX-License-Identifier: Apache-2.0 */
#include "agentcmd/console-text.h"

#include <string.h>

#include "base/util.h"
#include "base/visible.h"

#define LINE_MAX_SHOWN  16384
#define LINES_MAX_SHOWN ((size_t)256 << 10)

void paint(struct console *c, enum paint p)
{
	static const char *const codes[PAINTS] = {
		[PAINT_NONE] = "\033[0m",  [PAINT_HEAD] = "\033[1m",
		[PAINT_DIM] = "\033[2m",   [PAINT_CALL] = "\033[36m",
		[PAINT_GOOD] = "\033[32m", [PAINT_WARN] = "\033[33m",
		[PAINT_BAD] = "\033[31m",
	};

	if (c->is_colour)
		(void)buf_puts(&c->out, codes[p]);
}

void put_word(struct console *c, const char *text)
{
	visible_text(&c->out, text, strlen(text), LINE_MAX_SHOWN);
}

/* One line or a part of one; a tab is four blanks. */
static void put_part(struct console *c, const char *text, size_t len)
{
	while (len) {
		const char *tab = memchr(text, '\t', len);
		size_t n = tab ? (size_t)(tab - text) : len;

		visible_text(&c->out, text, n, LINE_MAX_SHOWN);
		if (tab)
			(void)buf_puts(&c->out, "    ");
		text += n + (tab != NULL);
		len -= n + (tab != NULL);
	}
}

void put_lines(struct console *c, const char *text, const char *gutter)
{
	size_t shown = 0;

	while (*text) {
		size_t len = strcspn(text, "\n");

		shown += len + 1;
		if (shown > LINES_MAX_SHOWN) {
			(void)buf_printf(&c->out, "%s[%zu more bytes]\n",
					 gutter, strlen(text));
			return;
		}
		(void)buf_puts(&c->out, gutter);
		/* A line may end as Windows has it. */
		put_part(c, text,
			 len && text[len - 1] == '\r' && text[len] == '\n'
				 ? len - 1
				 : len);
		(void)buf_puts(&c->out, "\n");
		text += len + (text[len] == '\n');
	}
}

void put_running(struct console *c, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		put_part(c, text, len);
		c->is_mid_line = len > 0 || c->is_mid_line;
		if (text[len] == '\n') {
			(void)buf_puts(&c->out, "\n");
			c->is_mid_line = false;
			len++;
		}
		text += len;
	}
}

/* What people read as text, not as a string of JSON. */
static bool is_long_text(const char *name, const json_t *v)
{
	return json_is_string(v) &&
	       (strcmp(name, "code") == 0 || strcmp(name, "command") == 0 ||
		strcmp(name, "content") == 0 ||
		strchr(json_string_value(v), '\n'));
}

static void put_argument(struct console *c, const char *name, const json_t *v)
{
	_cleanup_free_ char *text = NULL;

	(void)buf_puts(&c->out, "  ");
	put_word(c, name);
	if (is_long_text(name, v)) {
		(void)buf_puts(&c->out, ":\n");
		put_lines(c, json_string_value(v), "  | ");
		return;
	}
	text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
	(void)buf_puts(&c->out, ": ");
	put_word(c, text ? text : "?");
	(void)buf_puts(&c->out, "\n");
}

void put_arguments(struct console *c, const char *json)
{
	json_t *args = json_loads(json, 0, NULL);
	const char *name;
	json_t *v;

	if (!json_is_object(args)) {
		(void)buf_puts(&c->out, " ");
		put_word(c, json);
		(void)buf_puts(&c->out, "\n");
		json_decref(args);
		return;
	}
	(void)buf_puts(&c->out, "\n");
	json_object_foreach(args, name, v)
	{
		put_argument(c, name, v);
	}
	json_decref(args);
}
