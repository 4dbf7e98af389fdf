/* SPDX-License-Identifier: Apache-2.0 */
#include "client/want.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/util.h"
#include "box/spec.h"

/* The daemon takes 4 MiB; a longer one it refuses itself, with a reason. */
#define MAX_WANT ((size_t)256 << 20)

static const char *asked_for(const struct cordon_spec *s, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < s->asked.n; i += 2)
		if (strcmp(s->asked.v[i], name) == 0)
			value = s->asked.v[i + 1];
	return value;
}

bool want_is_on(const struct cordon_spec *s, const char *name)
{
	const char *v = asked_for(s, name);

	return v && strcasecmp(v, "false") != 0 && strcmp(v, "0") != 0 &&
	       strcasecmp(v, "no") != 0;
}

static bool is_in(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

/* How often it was asked for, and whether this is the first time. */
static size_t count(const struct cordon_spec *s, size_t at, bool *ret_first)
{
	size_t n = 0;

	*ret_first = true;
	for (size_t i = 0; i < s->asked.n; i += 2) {
		if (strcmp(s->asked.v[i], s->asked.v[at]) != 0)
			continue;
		if (i < at)
			*ret_first = false;
		n++;
	}
	return n;
}

static void put_values(struct json *j, const struct cordon_spec *s,
		       const char *name, size_t n)
{
	if (n > 1)
		json_open(j, name, '[');
	for (size_t i = 0; i < s->asked.n; i += 2)
		if (strcmp(s->asked.v[i], name) == 0)
			json_str(j, n > 1 ? NULL : name, s->asked.v[i + 1]);
	if (n > 1)
		json_close(j, ']');
}

/* Each setting with its values in their order, without those in `less`. */
static void put_settings(struct json *j, const struct cordon_spec *s,
			 const char *const *less)
{
	bool is_first;

	json_open(j, "settings", '{');
	for (size_t i = 0; i < s->asked.n; i += 2) {
		size_t n = count(s, i, &is_first);

		if (is_first && !is_in(less, s->asked.v[i]))
			put_values(j, s, s->asked.v[i], n);
	}
	/* A list that says all there is, and says nothing. */
	for (size_t i = 0; i < s->asked_lists.n; i++) {
		if (asked_for(s, s->asked_lists.v[i]))
			continue;
		json_open(j, s->asked_lists.v[i], '[');
		json_close(j, ']');
	}
	json_close(j, '}');
}

static int check_text(const char *text, size_t len, const char *what,
		      struct err *err)
{
	if (utf8_check(text, len) && !memchr(text, 0, len))
		return 0;
	return err_set(err, EINVAL,
		       "%s is no UTF-8: a daemon cannot be told that", what);
}

static int check_words(const struct strv *v, const char *what, struct err *err)
{
	for (size_t i = 0; i < v->n; i++)
		if (check_text(v->v[i], strlen(v->v[i]), what, err) < 0)
			return -err->code;
	return 0;
}

static int check(const struct cordon_spec *s, struct err *err)
{
	if (check_words(&s->asked, "a setting", err) < 0 ||
	    check_words(&s->command, "the command", err) < 0)
		return -err->code;
	for (size_t i = 0; i < s->n_blocks; i++)
		if (check_text(s->blocks[i].code, s->blocks[i].len, "the code",
			       err) < 0)
			return -err->code;
	for (size_t i = 0; i < s->n_blocks; i++)
		if (s->blocks[i].args.n)
			return err_set(err, EOPNOTSUPP,
				       "the daemon takes arguments for all "
				       "blocks ('arg'), not for one");
	if (s->n_copies)
		return err_set(err, EOPNOTSUPP,
			       "copy-out: the daemon writes no files for you; "
			       "get them from a box that stays");
	return 0;
}

static void put_words(struct json *j, const char *name, const struct strv *v)
{
	json_open(j, name, '[');
	for (size_t i = 0; i < v->n; i++)
		json_str(j, NULL, v->v[i]);
	json_close(j, ']');
}

static void put_program(struct json *j, const struct cordon_spec *s)
{
	if (s->command.n)
		put_words(j, "command", &s->command);
	if (!s->n_blocks)
		return;
	json_open(j, "code", '[');
	for (size_t i = 0; i < s->n_blocks; i++) {
		const struct spec_block *b = &s->blocks[i];

		json_open(j, NULL, '{');
		json_str(j, "language", b->lang_name);
		json_bytes(j, "code", b->code, b->len);
		if (b->filename)
			json_str(j, "filename", b->filename);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* What a program in a box may have of its own. */
static int put_own(struct json *j, const struct cordon_spec *s, struct err *err)
{
	static const char *const own[] = { "env",     "workdir", "user",
					   "timeout", "tty",     "interactive",
					   NULL };
	static const char *const plain[] = { "workdir", "user", "timeout" };

	for (size_t i = 0; i < s->asked.n; i += 2)
		if (!is_in(own, s->asked.v[i]))
			return err_set(err, EINVAL,
				       "%s is a setting of the box, not of a "
				       "program in it",
				       s->asked.v[i]);
	if (s->asked_lists.n)
		return err_set(err, EINVAL,
			       "%s is a setting of the box, not of a program "
			       "in it",
			       s->asked_lists.v[0]);
	if (s->env.n)
		put_words(j, "env", &s->env);
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		const char *v = asked_for(s, plain[i]);

		if (v)
			json_str(j, plain[i], v);
	}
	return 0;
}

static int finish(struct buf *b, struct err *err)
{
	if (b->error == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	return b->error ? err_set(err, E2BIG, "the request is too long") : 0;
}

int want_box(struct buf *b, const struct cordon_spec *s, bool starts,
	     struct err *err)
{
	static const char *const members[] = { "name", "tty", "interactive",
					       "remove", NULL };
	const char *name = asked_for(s, "name");
	struct json j = { .out = b };

	buf_init(b, MAX_WANT);
	if (check(s, err) < 0)
		return -err->code;
	if (s->n_blocks || s->has_input)
		return err_set(err, EINVAL,
			       "a box that stays takes a command; code and "
			       "standard input are for what is run in it");
	json_open(&j, NULL, '{');
	if (name)
		json_str(&j, "name", name);
	put_settings(&j, s, members);
	put_program(&j, s);
	json_bool(&j, "tty", s->tty);
	json_bool(&j, "stdin", s->interactive);
	json_bool(&j, "auto_remove", want_is_on(s, "remove"));
	json_bool(&j, "start", starts);
	json_close(&j, '}');
	return finish(b, err);
}

int want_exec(struct buf *b, const struct cordon_spec *s, bool is_detached,
	      struct err *err)
{
	struct json j = { .out = b };

	buf_init(b, MAX_WANT);
	if (check(s, err) < 0)
		return -err->code;
	if (is_detached && (s->has_input || s->interactive || s->tty))
		return err_set(err, EINVAL,
			       "nobody is there for the input or the terminal "
			       "of a program that is detached");
	json_open(&j, NULL, '{');
	put_program(&j, s);
	if (put_own(&j, s, err) < 0)
		return -err->code;
	json_bool(&j, "tty", s->tty);
	json_bool(&j, "stdin", s->interactive || s->has_input);
	json_bool(&j, "detach", is_detached);
	json_close(&j, '}');
	return finish(b, err);
}

int want_run(struct buf *b, const struct cordon_spec *s, const char *box,
	     const char *id, struct err *err)
{
	static const char *const none[] = { "remove", NULL };
	struct json j = { .out = b };

	buf_init(b, MAX_WANT);
	if (check(s, err) < 0)
		return -err->code;
	if (s->tty || s->interactive)
		return err_set(err, EOPNOTSUPP,
			       "a run in the daemon has no terminal and no "
			       "open input; make a box, and start it there");
	json_open(&j, NULL, '{');
	json_str(&j, "id", id);
	json_bool(&j, "events", true);
	put_program(&j, s);
	if (s->has_input)
		json_base64(&j, "stdin_b64", s->input, s->input_len);
	if (!box) {
		put_settings(&j, s, none);
	} else {
		json_str(&j, "box", box);
		if (put_own(&j, s, err) < 0)
			return -err->code;
	}
	json_close(&j, '}');
	return finish(b, err);
}
