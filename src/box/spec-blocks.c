/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks of code as JSON, for a request that is all data:
 *
 *	[{"language": "python", "code": "...", "filename": "a.py",
 *	  "args": ["x"], "stdin": "..."}]
 *
 * A block without a "stdin" reads what all of them read, which mostly is
 * nothing.
 */

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "box/spec-load.h"
#include "box/spec.h"

#define MOST_ARGS 512

static int takes(struct err *err)
{
	return err_set(err, EINVAL,
		       "blocks takes [{\"language\": NAME, \"code\": TEXT, "
		       "\"filename\": NAME, \"args\": [TEXT], \"stdin\": "
		       "TEXT}]");
}

/* A text; `has_zero` says that it may have a byte 0 in it. */
static int text_of(const struct value *v, bool has_zero, struct buf *ret)
{
	buf_init(ret, SPEC_MAX_JSON + 1);
	if (value_type(v) != '"' || value_text(v, ret) < 0 ||
	    buf_add(ret, "", 1) < 0 ||
	    (!has_zero && strlen(ret->data) + 1 != ret->len))
		return -EINVAL;
	return 0;
}

static bool is_known(const struct value *block)
{
	static const char *const names[] = { "language", "code", "filename",
					     "args", "stdin" };
	struct value name;
	struct value v;

	for (struct walk w = walk_start(block); walk_next(&w, &name, &v);) {
		bool known = false;

		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			known |= value_is(&name, names[i]);
		if (!known)
			return false;
	}
	return true;
}

static int take_args(struct spec_block *b, const struct value *list,
		     struct err *err)
{
	struct value none;
	struct value item;

	if (value_type(list) != '[')
		return takes(err);
	for (struct walk w = walk_start(list); walk_next(&w, &none, &item);) {
		struct buf text;
		int r = text_of(&item, false, &text);

		if (r == 0 && b->args.n >= MOST_ARGS)
			r = -E2BIG;
		if (r == 0)
			r = strv_add(&b->args, text.data);
		buf_done(&text);
		if (r < 0)
			return takes(err);
	}
	return 0;
}

static int take_stdin(struct spec_block *b, const struct value *v,
		      struct err *err)
{
	struct buf text;

	if (text_of(v, true, &text) < 0) {
		buf_done(&text);
		return takes(err);
	}
	b->input_len = text.len - 1;
	b->input = buf_take(&text);
	return 0;
}

/* The texts of a block; the language and the code must be there. */
static int add_block(struct cordon_spec *s, const struct value *v,
		     struct err *err)
{
	struct cordon_error why = { 0 };
	struct value name;
	struct value code;
	struct value file;
	struct buf texts[3];
	bool has_file = value_get(v, "filename", &file) &&
			value_type(&file) != 'n';
	int r = -EINVAL;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		buf_init(&texts[i], 1);
	if (value_get(v, "language", &name) && value_get(v, "code", &code) &&
	    text_of(&name, false, &texts[0]) == 0 &&
	    text_of(&code, true, &texts[1]) == 0 &&
	    (!has_file || text_of(&file, false, &texts[2]) == 0))
		r = 0;
	if (r < 0)
		(void)takes(err);
	else if (cordon_spec_code(s, texts[0].data, texts[1].data,
				  texts[1].len - 1,
				  has_file ? texts[2].data : NULL, &why) < 0)
		r = err_set(err, why.code, "blocks: %s", why.text);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		buf_done(&texts[i]);
	return r;
}

int blocks_load(struct cordon_spec *s, const struct value *list,
		struct err *err)
{
	struct value none;
	struct value item;
	struct value part;
	size_t before = s->n_blocks;

	if (value_type(list) != '[')
		return takes(err);
	for (struct walk w = walk_start(list); walk_next(&w, &none, &item);) {
		if (value_type(&item) != '{' || !is_known(&item))
			return takes(err);
		if (add_block(s, &item, err) < 0)
			return -err->code;
		if (value_get(&item, "args", &part) &&
		    value_type(&part) != 'n' &&
		    take_args(&s->blocks[s->n_blocks - 1], &part, err) < 0)
			return -err->code;
		if (value_get(&item, "stdin", &part) &&
		    value_type(&part) != 'n' &&
		    take_stdin(&s->blocks[s->n_blocks - 1], &part, err) < 0)
			return -err->code;
	}
	if (s->n_blocks == before)
		return err_set(err, EINVAL, "blocks: there is none");
	return 0;
}
