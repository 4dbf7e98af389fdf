/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/num.h"
#include "base/util.h"
#include "box/spec-load.h"
#include "ledger/read.h"
#include "policy/values.h"

#define MAX_WORDS 4096
#define MAX_WORD  (128U << 10) /* MAX_ARG_STRLEN of the kernel */
#define MAX_CODE  (8U << 20)

static int bad(struct err *err, const char *what)
{
	return err_set(err, EINVAL, "the request: %s", what);
}

static int from_library(struct err *err, const struct cordon_error *why)
{
	return err_set(err, why->code ? why->code : EINVAL, "%s", why->text);
}

/* A string without a NUL byte, as one; the caller releases. */
static int text_of(const struct value *v, size_t max, struct buf *ret)
{
	buf_init(ret, max);
	if (value_type(v) != '"' || value_text(v, ret) < 0 ||
	    buf_add(ret, "", 1) < 0 || strlen(ret->data) + 1 != ret->len)
		return -EINVAL;
	return 0;
}

/* ---- members ---- */

static int take_settings(struct request *r, const struct value *v,
			 struct err *err)
{
	struct cordon_error why = { 0 };

	if (cordon_spec_set_json(r->spec, v->p, v->len, &why) < 0)
		return from_library(err, &why);
	return 0;
}

static int take_words(struct request *r, const struct value *v,
		      struct strv *words, struct err *err)
{
	struct cordon_error why = { 0 };
	struct value none;
	struct value item;

	for (struct walk w = walk_start(v); walk_next(&w, &none, &item);) {
		struct buf text;
		int e = text_of(&item, MAX_WORD, &text);
		bool is_long = text.error == -E2BIG;

		if (e == 0 && words->n < MAX_WORDS)
			e = strv_add(words, text.data);
		else
			e = -EINVAL;
		buf_done(&text);
		if (is_long)
			return bad(err, "an argument of the command is longer "
					"than 131071 bytes, the kernel's "
					"limit");
		if (e < 0 && words->n == MAX_WORDS)
			return bad(err, "the command has more than 4096 "
					"words");
		if (e < 0)
			return bad(err, "command is a list of words");
	}
	if (words->n == 0)
		return 0;
	if (cordon_spec_command(r->spec, (const char *const *)words->v, &why) <
	    0)
		return from_library(err, &why);
	return 0;
}

static int take_command(struct request *r, const struct value *v,
			struct err *err)
{
	struct strv words = { 0 };
	int e;

	if (value_type(v) != '[')
		return bad(err, "command is a list of words");
	e = take_words(r, v, &words, err);
	strv_done(&words);
	return e;
}

static int add_code(struct request *r, const struct value *lang,
		    const struct value *code, const struct value *name,
		    struct err *err)
{
	static const char form[] = "code is a list of {language, code, "
				   "filename}";
	struct cordon_error why = { 0 };
	struct buf texts[3];
	int e;

	e = text_of(lang, 64, &texts[0]);
	if (text_of(code, MAX_CODE, &texts[1]) < 0)
		e = -EINVAL;
	if (name->len == 0)
		buf_init(&texts[2], 1);
	else if (text_of(name, 4096, &texts[2]) < 0)
		e = -EINVAL;
	if (e < 0)
		(void)bad(err, form);
	else if (cordon_spec_code(r->spec, texts[0].data, texts[1].data,
				  texts[1].len - 1, texts[2].data, &why) < 0)
		(void)from_library(err, &why);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		buf_done(&texts[i]);
	return -err->code;
}

struct block {
	struct value lang, code, name;
};

static int take_block(const struct value *v, struct block *ret, struct err *err)
{
	struct value key;
	struct value any;

	memset(ret, 0, sizeof(*ret));
	if (value_type(v) != '{')
		return bad(err, "a block of code is an object");
	for (struct walk w = walk_start(v); walk_next(&w, &key, &any);) {
		struct value *to = value_is(&key, "language")   ? &ret->lang
				   : value_is(&key, "code")     ? &ret->code
				   : value_is(&key, "filename") ? &ret->name
								: NULL;

		if (!to || to->len > 0)
			return bad(err, "a block of code has language, code, "
					"filename");
		if (value_type(&any) != 'n')
			*to = any;
	}
	return 0;
}

static int take_code(struct request *r, const struct value *v, struct err *err)
{
	struct value none;
	struct value item;
	struct block b;

	if (value_type(v) != '[')
		return bad(err, "code is a list");
	for (struct walk w = walk_start(v); walk_next(&w, &none, &item);)
		if (take_block(&item, &b, err) < 0 ||
		    add_code(r, &b.lang, &b.code, &b.name, err) < 0)
			return -err->code;
	return 0;
}

/* "open", or "SIZE SHA256" of all of it: which, the guard tells a person. */
static int take_stdin(struct request *r, const struct value *v, struct err *err)
{
	struct buf text;
	int e = text_of(v, sizeof(r->spec->input_sum), &text);
	size_t n = e == 0 ? strspn(text.data, "0123456789") : 0;

	if (e == 0 && strcmp(text.data, "open") != 0 &&
	    (n == 0 || n > 20 || text.data[n] != ' ' ||
	     strlen(text.data + n) != 65 ||
	     strspn(text.data + n + 1, "0123456789abcdef") != 64))
		e = -EINVAL;
	if (e == 0)
		(void)strcpy(r->spec->input_sum, text.data);
	buf_done(&text);
	return e < 0 ? bad(err, "stdin is 'open', or a size and a sha256") : 0;
}

/* Words of ours: letters, digits and dashes. */
static int take_word(const struct value *v, char *ret, size_t size)
{
	struct buf text;
	int e = text_of(v, size, &text);

	if (e == 0 && (text.len < 2 ||
		       strspn(text.data, "abcdefghijklmnopqrstuvwxyz0123456789"
					 "-") != text.len - 1))
		e = -EINVAL;
	if (e == 0)
		memcpy(ret, text.data, text.len);
	buf_done(&text);
	return e;
}

static int take_run(struct request *r, const struct value *v, struct err *err)
{
	if (take_word(v, r->run, sizeof(r->run)) < 0 || strlen(r->run) != 32 ||
	    strspn(r->run, "0123456789abcdef") != 32)
		return bad(err, "run has 32 hexadecimal digits");
	return 0;
}

static int take_box(struct request *r, const struct value *v, struct err *err)
{
	return take_word(v, r->box, sizeof(r->box)) < 0
		       ? bad(err, "box is an id")
		       : 0;
}

static int take_face(struct request *r, const struct value *v, struct err *err)
{
	return take_word(v, r->face, sizeof(r->face)) < 0
		       ? bad(err, "face is a name")
		       : 0;
}

static int take_bool(const struct value *v, bool *ret, struct err *err)
{
	char type = value_type(v);

	if (type != 't' && type != 'f')
		return bad(err, "clamp, exec, box_only and as_user are true "
				"or false");
	*ret = type == 't';
	return 0;
}

static int take_clamp(struct request *r, const struct value *v, struct err *err)
{
	return take_bool(v, &r->clamp, err);
}

static int take_programs(struct request *r, const struct value *v,
			 struct err *err)
{
	struct value none;
	struct value item;

	if (value_type(v) != '[')
		return bad(err, "programs is a list of names");
	for (struct walk w = walk_start(v); walk_next(&w, &none, &item);) {
		struct buf text;
		int e = text_of(&item, 4096, &text);

		if (e == 0 && r->programs.n < MAX_WORDS)
			e = strv_add(&r->programs, text.data);
		else
			e = -EINVAL;
		buf_done(&text);
		if (e < 0)
			return bad(err, "programs is a list of names");
	}
	r->has_programs = true;
	return 0;
}

/* One of ours, such as egress-table.c makes: it is worth nothing elsewhere. */
static bool is_placeholder(const char *text)
{
	static const char start[] = "cordon_secret_";
	const char *eq = strchr(text, '=');
	char name[256];

	if (!eq || (size_t)(eq - text) >= sizeof(name))
		return false;
	memcpy(name, text, (size_t)(eq - text));
	name[eq - text] = '\0';
	return value_is_env_name(name) &&
	       strncmp(eq + 1, start, strlen(start)) == 0 &&
	       strlen(eq + 1) == strlen(start) + 32 &&
	       strspn(eq + 1 + strlen(start), "0123456789abcdef") == 32;
}

static int take_placeholders(struct request *r, const struct value *v)
{
	struct value none;
	struct value item;

	if (value_type(v) != '[')
		return -EINVAL;
	for (struct walk w = walk_start(v); walk_next(&w, &none, &item);) {
		struct buf text;
		int e = text_of(&item, 512, &text);

		if (e == 0 && is_placeholder(text.data) && r->gate_env.n < 256)
			e = strv_add(&r->gate_env, text.data);
		else
			e = -EINVAL;
		buf_done(&text);
		if (e < 0)
			return e;
	}
	return 0;
}

static int take_gate(struct request *r, const struct value *v, struct err *err)
{
	static const char form[] = "gate has env, a list of placeholders, and "
				   "trust";
	struct value name;
	struct value item;

	if (value_type(v) != '{')
		return bad(err, form);
	for (struct walk w = walk_start(v); walk_next(&w, &name, &item);) {
		if (value_is(&name, "env") && r->gate_env.n == 0) {
			if (take_placeholders(r, &item) < 0)
				return bad(err, form);
		} else if (!value_is(&name, "trust") ||
			   take_bool(&item, &r->gate_trust, err) < 0) {
			return bad(err, form);
		}
	}
	r->has_gate = true;
	return 0;
}

/* BYTES RULE, of gates that the box had before. */
static int take_used(struct request *r, const struct value *v, struct err *err)
{
	static const char form[] = "used is a list of 'BYTES RULE'";
	struct value none;
	struct value item;

	if (value_type(v) != '[')
		return bad(err, form);
	for (struct walk w = walk_start(v); walk_next(&w, &none, &item);) {
		struct buf text;
		int e = text_of(&item, SPEC_USED_SIZE, &text);
		size_t n = e == 0 ? strspn(text.data, "0123456789") : 0;

		if (n == 0 || n > 20 || text.data[n] != ' ' ||
		    r->spec->gate_used.n == SPEC_USED_MAX ||
		    strv_add(&r->spec->gate_used, text.data) < 0)
			e = -EINVAL;
		buf_done(&text);
		if (e < 0)
			return bad(err, form);
	}
	return 0;
}

static int take_exec(struct request *r, const struct value *v, struct err *err)
{
	return take_bool(v, &r->exec, err);
}

static int take_box_only(struct request *r, const struct value *v,
			 struct err *err)
{
	return take_bool(v, &r->box_only, err);
}

static int take_as_user(struct request *r, const struct value *v,
			struct err *err)
{
	return take_bool(v, &r->as_user, err);
}

/* ---- sweep ---- */

static int take_seal(const struct value *v, char ret[65])
{
	return take_word(v, ret, 65) < 0 || strlen(ret) != 64 ? -EINVAL : 0;
}

static int take_source(const struct value *v, char **ret)
{
	struct buf text;
	int e = text_of(v, 4096, &text);

	if (e == 0 && text.data[0] != '/')
		e = -EINVAL;
	if (e == 0 && !(*ret = strdup(text.data)))
		e = -ENOMEM;
	buf_done(&text);
	return e;
}

/* As text: a number of JSON need not hold 64 bits. */
static int take_bits(const struct value *v, uint64_t *ret)
{
	struct buf text;
	int e = text_of(v, 32, &text);

	if (e == 0)
		e = num_parse(text.data, UINT64_MAX, ret);
	buf_done(&text);
	return e;
}

static int take_watch(struct request_watch *w, const struct value *v)
{
	static const char *const names[] = { "source",  "seal",  "dev",  "ino",
					     "missing", "since", "clock" };
	uint64_t *const bits[] = { &w->dev, &w->ino, &w->missing, &w->since,
				   &w->clock };
	unsigned int seen = 0;
	struct value name;
	struct value item;

	if (value_type(v) != '{')
		return -EINVAL;
	for (struct walk k = walk_start(v); walk_next(&k, &name, &item);) {
		size_t i = 0;
		int e;

		while (i < ARRAY_SIZE(names) && !value_is(&name, names[i]))
			i++;
		if (i == ARRAY_SIZE(names) || (seen & 1U << i))
			return -EINVAL;
		seen |= 1U << i;
		e = i == 0   ? take_source(&item, &w->source)
		    : i == 1 ? take_seal(&item, w->seal)
			     : take_bits(&item, bits[i - 2]);
		if (e < 0)
			return e;
	}
	return seen == (1U << ARRAY_SIZE(names)) - 1 ? 0 : -EINVAL;
}

static int take_sweep(struct request *r, const struct value *v, struct err *err)
{
	static const char form[] = "sweep is a list of {source, dev, ino, "
				   "missing, since, clock, seal}";
	struct value none;
	struct value item;

	if (value_type(v) != '[')
		return bad(err, form);
	for (struct walk w = walk_start(v); walk_next(&w, &none, &item);) {
		if (r->n_watches == ARRAY_SIZE(r->watches))
			return bad(err, "sweep has too many items");
		/* Counted first: what it has is released in any case. */
		if (take_watch(&r->watches[r->n_watches++], &item) < 0)
			return bad(err, form);
	}
	r->is_sweep = true;
	return 0;
}

static const struct {
	const char *name;
	int (*take)(struct request *r, const struct value *v, struct err *err);
} members[] = {
	{ "settings", take_settings }, { "command", take_command },
	{ "code", take_code },         { "run", take_run },
	{ "box", take_box },           { "face", take_face },
	{ "clamp", take_clamp },       { "exec", take_exec },
	{ "box_only", take_box_only }, { "sweep", take_sweep },
	{ "as_user", take_as_user },   { "programs", take_programs },
	{ "stdin", take_stdin },       { "gate", take_gate },
	{ "used", take_used },
};

/* Of a box that is dead nothing is prepared. */
static bool is_plain_sweep(unsigned int seen)
{
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if ((seen & 1U << i) && members[i].take != take_sweep &&
		    members[i].take != take_run &&
		    members[i].take != take_box && members[i].take != take_face)
			return false;
	return true;
}

static int take(struct request *r, const struct value *object, struct err *err)
{
	unsigned int seen = 0;
	struct value name;
	struct value v;

	for (struct walk w = walk_start(object); walk_next(&w, &name, &v);) {
		size_t i = 0;

		while (i < ARRAY_SIZE(members) &&
		       !value_is(&name, members[i].name))
			i++;
		if (i == ARRAY_SIZE(members) || (seen & 1U << i))
			return bad(err, "a member is not known, or is there "
					"twice");
		seen |= 1U << i;
		if (members[i].take(r, &v, err) < 0)
			return -err->code;
	}
	if (!r->run[0] || !r->face[0])
		return bad(err, "run and face are missing");
	if (r->is_sweep && !is_plain_sweep(seen))
		return bad(err, "sweep goes with run, box and face alone");
	if (r->has_programs && !r->exec)
		return bad(err, "programs goes with exec");
	if (r->has_gate && !r->exec)
		return bad(err, "gate goes with exec");
	if (r->spec->gate_used.n > 0 && r->exec)
		return bad(err, "used and exec exclude each other");
	if (r->exec && r->box_only)
		return bad(err, "exec and box_only exclude each other");
	return 0;
}

int request_parse(char *text, size_t len, struct request *ret, struct err *err)
{
	struct value object = { text, 0 };

	memset(ret, 0, sizeof(*ret));
	ret->spec = cordon_spec_new();
	if (!ret->spec)
		return err_set(err, ENOMEM, "out of memory");
	ret->spec->is_served = true;
	ret->spec->no_files = true;
	if (len > REQUEST_MAX)
		return bad(err, "it is too long");
	object.len = json_squeeze(text, len);
	if (!utf8_check(text, object.len) || !value_check(text, object.len) ||
	    value_type(&object) != '{')
		return bad(err, "it is not a JSON object");
	if (take(ret, &object, err) < 0)
		return -err->code;
	ret->spec->is_empty = ret->box_only;
	ret->spec->as_user = ret->exec && ret->as_user;
	/* Docker's clients say so of one that the box may have. */
	ret->spec->may_unset_env = ret->exec &&
				   strcmp(ret->face, "docker") == 0;
	return 0;
}

void request_done(struct request *r)
{
	cordon_spec_free(r->spec);
	strv_done(&r->programs);
	strv_done(&r->gate_env);
	for (size_t i = 0; i < r->n_watches; i++)
		free(r->watches[i].source);
	memset(r, 0, sizeof(*r));
}
