/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The block structure of Markdown (CommonMark 0.30), as far as it is needed
 * to know what is a fenced code block and what only looks like one: block
 * quotes, list items, paragraphs with their lazy lines, indented code, HTML
 * blocks, headings and breaks. Inlines are not looked at.
 */

#include <stdbool.h>
#include <stddef.h>

struct fence {
	size_t begin, end; /* of its lines in the text */
	const char *info;  /* trimmed; not ended by NUL */
	size_t info_len;
	const char *code; /* lines ended by LF, without indentation */
	size_t code_len;
	bool is_closed; /* by a fence, not by the end of something */
};

/* Calls `each` for every fence, in order; -ENOMEM when memory is short. */
int markdown_fences(const char *text, size_t len,
		    void (*each)(void *arg, const struct fence *f), void *arg);

/*
 * markdown-html.c: which kind of HTML block begins with this line, 1 to 7 as
 * the specification counts them; 0: none. `s` is at its '<'.
 */
int html_begins(const char *s, size_t len, bool in_paragraph);
/* Whether the line ends a block of kind 1 to 5. */
bool html_ends(int kind, const char *s, size_t len);
