/* SPDX-License-Identifier: Apache-2.0 */

/* Requests for people; nothing of it steers a terminal. */

#include <string.h>

#include "base/util.h"
#include "base/visible.h"
#include "desk/request.h"

static void show_words(struct buf *out, const struct request_program *p,
		       size_t max)
{
	if (*p->join)
		buf_printf(out, "%s ", p->join);
	for (size_t i = 0; i < p->argv.n; i++) {
		if (i > 0)
			buf_puts(out, " ");
		visible_word(out, p->argv.v[i], max);
	}
}

void request_summary(const struct request *r, struct buf *out)
{
	if (r->kind == REQUEST_CODE) {
		visible_text(out, r->language, strlen(r->language), 32);
		buf_printf(out, " code, %llu bytes, sha256 %.12s",
			   (unsigned long long)r->text_bytes, r->sha256);
	} else if (r->kind != REQUEST_COMMAND) {
		buf_printf(out, "%s ", request_kind_name(r->kind));
		visible_text(out, r->target, strlen(r->target), 200);
	}
	for (size_t i = 0; i < r->n_programs; i++) {
		if (i > 0 || r->kind == REQUEST_CODE)
			buf_puts(out, i > 0 ? " " : ": ");
		show_words(out, &r->programs[i], VISIBLE_WORD);
	}
}

static void show_field(struct buf *out, const char *name, const char *text,
		       size_t max)
{
	if (!text || !*text)
		return;
	buf_printf(out, "%-10s ", name);
	visible_text(out, text, strlen(text), max);
	buf_puts(out, "\n");
}

/* A letter that only looks like another deserves a line of its own. */
static bool is_ascii(const struct request *r)
{
	for (size_t i = 0; i < r->n_programs; i++)
		for (size_t k = 0; k < r->programs[i].argv.n; k++)
			for (const char *c = r->programs[i].argv.v[k]; *c; c++)
				if ((unsigned char)*c > 0x7e)
					return false;
	for (const char *c = r->target ? r->target : ""; *c; c++)
		if ((unsigned char)*c > 0x7e)
			return false;
	return true;
}

static void show_text(const struct request *r, size_t max, struct buf *out)
{
	if (!r->text)
		return;
	buf_printf(out, "%-10s %llu bytes, sha256 %s\n",
		   r->kind == REQUEST_TOOL ? "arguments" : "text",
		   (unsigned long long)r->text_bytes, r->sha256);
	visible_lines(out, r->text, r->text_len, "  | ", max);
	if (r->text_len < r->text_bytes)
		buf_printf(out,
			   "  | ... (only the first %zu of %llu bytes were "
			   "%s)\n",
			   r->text_len, (unsigned long long)r->text_bytes,
			   r->is_cut ? "kept" : "sent");
}

/* What a tool's call is part of, and what an answer is bound to. */
static void show_tool(const struct request *r, struct buf *out)
{
	for (size_t i = 0; i < r->code.n; i++)
		show_field(out, i == 0 ? "code" : "", r->code.v[i], 1024);
	/* Where the text is not the arguments but the code in them. */
	if (r->code.n > 0)
		show_field(out, "arguments", r->arguments, 1024);
	show_field(out, "class", r->class, 64);
	show_field(out, "team", r->team, 256);
	if (r->kind == REQUEST_TOOL)
		show_field(out, "run", r->run, 256);
	show_field(out, "digest", r->digest, 64);
	show_field(out, "context", r->context, 64);
}

void request_show(const struct request *r, size_t max, struct buf *out)
{
	size_t word = MAX(max / 16, VISIBLE_WORD);

	buf_printf(out, "%-10s %s\n", "kind", request_kind_name(r->kind));
	if (r->is_cut)
		buf_printf(out,
			   "%-10s it ended, and of what was asked only the "
			   "beginnings are kept\n",
			   "note");
	show_field(out, "target", r->target, max);
	for (size_t i = 0; i < r->n_programs; i++) {
		buf_printf(out, "%-10s ", i == 0 ? "runs" : "");
		show_words(out, &r->programs[i], word);
		buf_puts(out, "\n");
	}
	show_field(out, "language", r->language, 4096);
	show_text(r, max, out);
	if (!is_ascii(r))
		buf_printf(out,
			   "%-10s it has characters outside ASCII, which "
			   "can look like others\n",
			   "note");
	for (size_t i = 0; i < r->changes.n; i++)
		show_field(out, i == 0 ? "changes" : "", r->changes.v[i], word);
	show_tool(r, out);
	show_field(out, "box", r->box, 64);
	show_field(out, "face", r->face, 64);
	show_field(out, "why", r->why, 1024);
	show_field(out, "rule", r->rule, 1024);
	if (r->file && *r->file) {
		buf_printf(out, "%-10s ", "at");
		visible_text(out, r->file, strlen(r->file), 1024);
		buf_printf(out, ":%llu\n", (unsigned long long)r->line);
	}
}
