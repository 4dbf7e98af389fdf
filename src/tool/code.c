/* SPDX-License-Identifier: Apache-2.0 */

/*
 * run_python, run_shell, run_code.
 *
 * run_shell takes a command line, and no shell sees it: it goes through the
 * policy's classifier as `cordon run --command` does, and what was understood
 * is executed program by program.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/visible.h"
#include "box/spec.h"
#include "tool/box.h"

struct code_row {
	const char *name;
	const char *description;
	const char *schema;
	struct box_kind kind;
};

static const char *text_of(const json_t *args, const char *name)
{
	return json_string_value(json_object_get(args, name));
}

static int add_code(struct cordon_spec *s, const char *language,
		    const json_t *code, const char *filename, struct err *err)
{
	struct cordon_error e = { 0 };

	if (cordon_spec_code(s, language, json_string_value(code),
			     json_string_length(code), filename, &e) < 0)
		return err_set(err, e.code, "%s", e.text);
	return 0;
}

static int fill_python(struct box_tool *b, const json_t *args,
		       struct cordon_spec *s, struct err *err)
{
	(void)b;
	return add_code(s, "python", json_object_get(args, "code"), NULL, err);
}

static int fill_shell(struct box_tool *b, const json_t *args,
		      struct cordon_spec *s, struct err *err)
{
	(void)b;
	return spec_set(s, "command", text_of(args, "command"), err);
}

static const char *language_of(const json_t *block)
{
	const char *language = text_of(block, "language");

	return language && *language ? language : "python";
}

/* One block, or several that run one after the other. */
static int fill_code(struct box_tool *b, const json_t *args,
		     struct cordon_spec *s, struct err *err)
{
	const json_t *blocks = json_object_get(args, "blocks");
	int r = 0;

	(void)b;
	if (!blocks)
		return add_code(s, language_of(args),
				json_object_get(args, "code"),
				text_of(args, "filename"), err);
	for (size_t i = 0; r == 0 && i < json_array_size(blocks); i++) {
		const json_t *one = json_array_get(blocks, i);

		r = add_code(s, language_of(one), json_object_get(one, "code"),
			     text_of(one, "filename"), err);
	}
	return r;
}

/* what a person reads: the code itself, not its escapes */

static char *show_python(struct box_tool *b, const json_t *args)
{
	(void)b;
	return strdup(text_of(args, "code"));
}

static char *show_shell(struct box_tool *b, const json_t *args)
{
	(void)b;
	return strdup(text_of(args, "command"));
}

static char *show_code(struct box_tool *b, const json_t *args)
{
	const json_t *blocks = json_object_get(args, "blocks");
	struct buf out;

	(void)b;
	if (!blocks)
		return strdup(text_of(args, "code"));
	buf_init(&out, 64U << 20);
	for (size_t i = 0; i < json_array_size(blocks); i++)
		(void)buf_printf(&out, "%s%s", i ? "\n" : "",
				 text_of(json_array_get(blocks, i), "code"));
	return buf_take(&out);
}

/* Where a block ends and in what it is written is part of what is asked. */
static int name_block(const json_t *one, struct strv *ret)
{
	const char *file = text_of(one, "filename");
	struct buf b;
	int r;

	buf_init(&b, 1 << 20);
	(void)buf_printf(&b, "code in %s, %zu bytes%s%s", language_of(one),
			 json_string_length(json_object_get(one, "code")),
			 file ? ", file " : "", file ? file : "");
	r = b.error ? b.error : strv_add(ret, b.data);
	buf_done(&b);
	return r;
}

static int name_blocks(struct box_tool *b, const json_t *args, struct strv *ret)
{
	const json_t *blocks = json_object_get(args, "blocks");
	int r = 0;

	(void)b;
	if (!blocks)
		return name_block(args, ret);
	for (size_t i = 0; r == 0 && i < json_array_size(blocks); i++)
		r = name_block(json_array_get(blocks, i), ret);
	return r;
}

/* the code, by its hash */

static json_t *block_of(const char *language, const json_t *code,
			const char *filename)
{
	char sum[65];

	visible_sha256(json_string_value(code), json_string_length(code), sum);
	return json_pack("{s:s, s:I, s:s, s:s*}", "language", language, "bytes",
			 (json_int_t)json_string_length(code), "sha256", sum,
			 "filename", filename);
}

static json_t *blocks_python(struct box_tool *b, const json_t *args)
{
	(void)b;
	return json_pack("[o]", block_of("python",
					 json_object_get(args, "code"), NULL));
}

static json_t *blocks_shell(struct box_tool *b, const json_t *args)
{
	(void)b;
	return json_pack("[o]",
			 block_of("command line",
				  json_object_get(args, "command"), NULL));
}

static json_t *blocks_code(struct box_tool *b, const json_t *args)
{
	const json_t *blocks = json_object_get(args, "blocks");
	json_t *ret = json_array();
	size_t n = blocks ? json_array_size(blocks) : 1;

	(void)b;
	for (size_t i = 0; ret && i < n; i++) {
		const json_t *one = blocks ? json_array_get(blocks, i) : args;

		if (json_array_append_new(ret,
					  block_of(language_of(one),
						   json_object_get(one, "code"),
						   text_of(one, "filename"))) <
		    0) {
			json_decref(ret);
			return NULL;
		}
	}
	return ret;
}

#define BLOCK                                                                  \
	"\"code\":{\"type\":\"string\",\"description\":\"the program\"},"      \
	"\"language\":{\"type\":\"string\",\"description\":\"such as python, " \
	"sh, bash, javascript; python if it is left out\"},"                   \
	"\"filename\":{\"type\":\"string\",\"description\":\"its file below "  \
	"/workspace; may be left out\"}"

static const struct code_row rows[] = {
	{ "run_python",
	  "Runs a Python program in a sandbox: no network, no files of the "
	  "host, a new empty /workspace each time. What it prints is the "
	  "result.",
	  "{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\","
	  "\"description\":\"the program\"}},\"required\":[\"code\"],"
	  "\"additionalProperties\":false}",
	  { .fill = fill_python,
	    .show = show_python,
	    .blocks = blocks_python,
	    .report = box_report } },
	{ "run_shell",
	  "Runs a command line in a sandbox, without a shell: plain words, "
	  "quotes and the joiners | && || ; are understood; variables, "
	  "substitutions and redirections are not. A policy says which "
	  "commands there are.",
	  "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":"
	  "\"string\",\"description\":\"the command line\"}},\"required\":["
	  "\"command\"],\"additionalProperties\":false}",
	  { .fill = fill_shell,
	    .show = show_shell,
	    .blocks = blocks_shell,
	    .report = box_report } },
	{ "run_code",
	  "Runs code in a sandbox: no network, no files of the host. Either "
	  "one program, or several blocks that run one after the other and "
	  "stop at the first that fails.",
	  "{\"type\":\"object\",\"properties\":{" BLOCK ",\"blocks\":{\"type\":"
	  "\"array\",\"minItems\":1,\"maxItems\":32,\"items\":{\"type\":"
	  "\"object\",\"properties\":{" BLOCK "},\"required\":[\"code\"]}}},"
	  "\"oneOf\":[{\"required\":[\"code\"]},{\"required\":[\"blocks\"]}],"
	  "\"additionalProperties\":false}",
	  { .fill = fill_code,
	    .show = show_code,
	    .changes = name_blocks,
	    .blocks = blocks_code,
	    .report = box_report } },
};

int tool_code(const struct tool_box *box, const char *name, struct tool **ret,
	      struct err *err)
{
	const struct code_row *row = NULL;
	struct box_tool *b;
	json_t *schema;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			row = &rows[i];
	if (!row)
		return err_set(err, ENOENT,
			       "'%.64s' is not run_python, run_shell or "
			       "run_code",
			       name);
	b = calloc(1, sizeof(*b));
	schema = json_loads(row->schema, 0, NULL);
	r = b && schema ? box_tool_init(b, box, &row->kind, row->name,
					row->description, schema, err)
			: err_set(err, ENOMEM, "out of memory");
	json_decref(schema);
	if (r < 0) {
		free(b);
		return r;
	}
	b->tool.kind = row->name;
	*ret = &b->tool;
	return 0;
}
