/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon policy schema: the grammar as a JSON schema (draft 2020-12), which
 * is api/policy.schema.json. Written from the very table that the reader
 * walks, so that no key can be in one and not in the other. And its keys, one
 * a line, from which the manual page is made.
 */

#include "desk/desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "desk/policy-cmd.h"
#include "policy/keys.h"

static void put_form(struct json *j, const struct grammar *g);

static void put(struct json *j, const char *name, const struct grammar *g,
		const char *help)
{
	json_open(j, name, '{');
	if (help)
		json_str(j, "description", help);
	if (g->other || g->shorthand) {
		json_open(j, "anyOf", '[');
		json_open(j, NULL, '{');
		put_form(j, g);
		json_close(j, '}');
		json_open(j, NULL, '{');
		if (g->other)
			put_form(j, g->other);
		else
			put_form(j, grammar_key(g, g->shorthand)->value);
		json_close(j, '}');
		json_close(j, ']');
	} else {
		put_form(j, g);
	}
	json_close(j, '}');
}

static void put_scalar(struct json *j, const struct grammar *g)
{
	if (g->is_bool) {
		json_str(j, "type", "boolean");
		return;
	}
	if (g->words &&
	    strspn(g->words[0], "0123456789") == strlen(g->words[0])) {
		json_int(j, "const", atoi(g->words[0]));
		return;
	}
	if (g->words) {
		json_open(j, "enum", '[');
		for (size_t i = 0; g->words[i]; i++)
			json_str(j, NULL, g->words[i]);
		json_close(j, ']');
		return;
	}
	json_open(j, "type", '[');
	json_str(j, NULL, "string");
	json_str(j, NULL, "number");
	json_str(j, NULL, "boolean");
	json_close(j, ']');
	if (g->regex)
		json_str(j, "pattern", g->regex);
	json_str(j, "$comment", g->takes);
}

static void put_map(struct json *j, const struct grammar *g)
{
	json_str(j, "type", "object");
	json_bool(j, "additionalProperties", false);
	json_open(j, "properties", '{');
	for (const struct grammar_key *k = g->keys; k->name; k++)
		put(j, k->name, k->value, k->help);
	json_close(j, '}');
	json_open(j, "required", '[');
	for (const struct grammar_key *k = g->keys; k->name; k++)
		if (k->is_required)
			json_str(j, NULL, k->name);
	json_close(j, ']');
	if (!g->one_of)
		return;
	json_open(j, "oneOf", '[');
	for (size_t i = 0; g->one_of[i]; i++) {
		json_open(j, NULL, '{');
		json_open(j, "required", '[');
		json_str(j, NULL, g->one_of[i]);
		json_close(j, ']');
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_form(struct json *j, const struct grammar *g)
{
	switch (g->kind) {
	case GRAMMAR_SCALAR:
		put_scalar(j, g);
		break;
	case GRAMMAR_MAP:
		put_map(j, g);
		break;
	case GRAMMAR_LIST:
		json_str(j, "type", "array");
		put(j, "items", g->item, NULL);
		if (g->is_filled)
			json_int(j, "minItems", 1);
		break;
	case GRAMMAR_DICT:
		json_str(j, "type", "object");
		put(j, "additionalProperties", g->item, NULL);
		break;
	}
}

/* What follows a character outside of quotes: a new line, or a space. */
static void put_break(struct buf *out, char c, char next, int depth)
{
	bool opens = c == '{' || c == '[';

	if ((opens && next != '}' && next != ']') || c == ',')
		(void)buf_printf(out, "\n%*s", 2 * depth, "");
	else if (c == ':')
		(void)buf_puts(out, " ");
}

/* Broken into lines, so that a change of one key is a change of one line. */
static int print(const struct buf *b)
{
	struct buf out;
	int depth = 0;
	bool quoted = false;
	int r;

	buf_init(&out, 4 << 20);
	for (size_t i = 0; i < b->len; i++) {
		char c = b->data[i];
		char last = i ? b->data[i - 1] : '\0';

		if (c == '"' && last != '\\')
			quoted = !quoted;
		if (!quoted && (c == '}' || c == ']')) {
			depth--;
			if (last != '{' && last != '[')
				(void)buf_printf(&out, "\n%*s", 2 * depth, "");
		}
		(void)buf_add(&out, &c, 1);
		if (quoted)
			continue;
		depth += c == '{' || c == '[';
		put_break(&out, c, b->data[i + 1], depth);
	}
	(void)buf_puts(&out, "\n");
	r = out.error;
	if (r == 0)
		r = io_write_all(1, out.data, out.len);
	buf_done(&out);
	return r < 0 ? EXIT_OURS : 0;
}

int policy_cmd_schema(void)
{
	struct buf out;
	struct json j = { .out = &out };
	int code = EXIT_OURS;

	buf_init(&out, 1 << 20);
	json_open(&j, NULL, '{');
	json_str(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_str(&j, "title", "Cordon policy (cordon.yaml)");
	put_form(&j, &grammar_policy);
	json_close(&j, '}');
	if (!out.error)
		code = print(&out);
	buf_done(&out);
	return code;
}

static void list_keys(const struct grammar *g, const char *path)
{
	char below[256];

	if (g->kind == GRAMMAR_LIST || g->kind == GRAMMAR_DICT) {
		(void)snprintf(below, sizeof(below), "%s%s", path,
			       g->kind == GRAMMAR_LIST ? "[]" : ".NAME");
		list_keys(g->item, below);
	}
	for (const struct grammar_key *k = g->keys; k && k->name; k++) {
		(void)snprintf(below, sizeof(below), "%s%s%s", path,
			       *path ? "." : "", k->name);
		printf("%s\t%s\t%s%s\n", below, k->value->takes,
		       k->help ? k->help : "", k->is_required ? " *" : "");
		list_keys(k->value, below);
	}
	if (g->other)
		list_keys(g->other, path);
}

int policy_cmd_keys(void)
{
	list_keys(&grammar_policy, "");
	return 0;
}
