/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/request.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/util.h"
#include "desk/doc.h"
#include "base/visible.h"

static const char *const kinds[] = { "command", "code", "tool", "connection",
				     "mount" };
static_assert(ARRAY_SIZE(kinds) == REQUEST_KINDS, "a name for each kind");

const char *request_kind_name(enum request_kind kind)
{
	return kinds[kind];
}

/* reading */

static int read_version(struct fy_node *node, void *to, struct err *err)
{
	uint64_t version = 0;

	(void)to;
	if (doc_uint(node, 1, &version, err) < 0 || version != 1)
		return err_set(err, EINVAL, "only 1 is known");
	return 0;
}

static int read_kind(struct fy_node *node, void *to, struct err *err)
{
	struct request *r = to;
	_cleanup_free_ char *name = NULL;

	if (doc_string(node, &name, err) < 0)
		return -err->code;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(name, kinds[i]) == 0) {
			r->kind = (enum request_kind)i;
			return 0;
		}
	return err_set(err, EINVAL, "not a kind of request");
}

static int read_join(struct fy_node *node, void *to, struct err *err)
{
	static const char *const joins[] = { "", "|", "&&", "||", ";" };
	struct request_program *p = to;

	if (doc_string(node, &p->join, err) < 0)
		return -err->code;
	for (size_t i = 0; i < ARRAY_SIZE(joins); i++)
		if (strcmp(p->join, joins[i]) == 0)
			return 0;
	return err_set(err, EINVAL, "not a joiner");
}

static int read_line_of(struct fy_node *node, struct strv *to, struct err *err)
{
	_cleanup_free_ char *text = NULL;

	if (doc_string(node, &text, err) < 0)
		return -err->code;
	if (strv_add(to, text) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int read_word(struct fy_node *node, void *to, struct err *err)
{
	return read_line_of(node, to, err);
}

static int read_argv(struct fy_node *node, void *to, struct err *err)
{
	struct request_program *p = to;

	return doc_list(node, REQUEST_WORDS, read_word, &p->argv, err);
}

static int read_program(struct fy_node *node, void *to, struct err *err)
{
	static const struct doc_key keys[] = {
		{ "join", true, read_join },
		{ "argv", true, read_argv },
	};
	struct request *r = to;
	struct request_program *all = realloc(r->programs,
					      (r->n_programs + 1) *
						      sizeof(*r->programs));
	struct request_program *p;

	if (!all)
		return err_set(err, ENOMEM, "out of memory");
	r->programs = all;
	p = &all[r->n_programs++];
	*p = (struct request_program){ 0 };
	if (doc_mapping(node, keys, ARRAY_SIZE(keys), p, err) < 0)
		return -err->code;
	if (p->argv.n == 0)
		return err_set(err, EINVAL, "a program has no name");
	if ((r->n_programs == 1) != (*p->join == '\0'))
		return err_set(err, EINVAL,
			       "a joiner stands before each "
			       "program but the first");
	return 0;
}

static int read_programs(struct fy_node *node, void *to, struct err *err)
{
	return doc_list(node, REQUEST_PROGRAMS, read_program, to, err);
}

static int read_text(struct fy_node *node, void *to, struct err *err)
{
	struct request *r = to;

	if (doc_bytes(node, &r->text, &r->text_len, err) < 0)
		return -err->code;
	if (r->text_len > REQUEST_TEXT)
		return err_set(err, E2BIG, "more than %u bytes", REQUEST_TEXT);
	return 0;
}

static int read_bytes(struct fy_node *node, void *to, struct err *err)
{
	return doc_uint(node, INT64_MAX, &((struct request *)to)->text_bytes,
			err);
}

static int read_sha256(struct fy_node *node, void *to, struct err *err)
{
	return doc_sha256(node, &((struct request *)to)->sha256, err);
}

#define READ_STRING(field)                                                     \
	static int read_##field(struct fy_node *node, void *to,                \
				struct err *err)                               \
	{                                                                      \
		return doc_string(node, &((struct request *)to)->field, err);  \
	}
READ_STRING(language)
READ_STRING(target)
READ_STRING(agent)
READ_STRING(session)
READ_STRING(why)
READ_STRING(rule)
READ_STRING(file)
READ_STRING(run)
READ_STRING(box)
READ_STRING(face)
READ_STRING(team)
READ_STRING(class)

static int read_arguments(struct fy_node *node, void *to, struct err *err)
{
	struct request *r = to;

	if (doc_string(node, &r->arguments, err) < 0)
		return -err->code;
	if (strlen(r->arguments) > REQUEST_ARGUMENTS)
		return err_set(err, E2BIG, "more than %u bytes",
			       REQUEST_ARGUMENTS);
	return 0;
}

static int read_context(struct fy_node *node, void *to, struct err *err)
{
	return doc_sha256(node, &((struct request *)to)->context, err);
}

static int read_digest(struct fy_node *node, void *to, struct err *err)
{
	return doc_sha256(node, &((struct request *)to)->digest, err);
}

static int read_code(struct fy_node *node, void *to, struct err *err)
{
	return doc_list(node, 64, read_word, &((struct request *)to)->code,
			err);
}

static int read_told(struct fy_node *node, void *to, struct err *err)
{
	return doc_uint(node, 64, &((struct request *)to)->n_told, err);
}

static int read_hide(struct fy_node *node, void *to, struct err *err)
{
	return doc_uint(node, 1, &((struct request *)to)->hide_text, err);
}

static int read_cut(struct fy_node *node, void *to, struct err *err)
{
	return doc_uint(node, 1, &((struct request *)to)->is_cut, err);
}

static int read_peer(struct fy_node *node, void *to, struct err *err)
{
	struct request *r = to;

	r->has_peer = true;
	return doc_uint(node, UINT32_MAX - 1, &r->peer, err);
}

static int read_line(struct fy_node *node, void *to, struct err *err)
{
	return doc_uint(node, 100000000, &((struct request *)to)->line, err);
}

static int read_changes(struct fy_node *node, void *to, struct err *err)
{
	return doc_list(node, 64, read_word, &((struct request *)to)->changes,
			err);
}

static int read_expire(struct fy_node *node, void *to, struct err *err)
{
	struct request *r = to;

	return doc_uint(node, 30ULL * 86400000, &r->expire_ms, err);
}

static int read_asked(struct fy_node *node, void *to, struct err *err)
{
	struct request *r = to;
	_cleanup_free_ char *name = NULL;

	if (doc_string(node, &name, err) < 0)
		return -err->code;
	if (strcmp(name, "terminal") == 0)
		r->may_terminal = true;
	else if (strcmp(name, "store") == 0)
		r->may_store = true;
	else
		return err_set(err, EINVAL,
			       "only terminal and store are known");
	return 0;
}

static int read_ask(struct fy_node *node, void *to, struct err *err)
{
	return doc_list(node, 2, read_asked, to, err);
}

static int check_text(const struct request *r, struct err *err)
{
	char sum[65];

	if (!r->text)
		return r->sha256 || r->text_bytes
			       ? err_set(err, EINVAL, "'text' is missing")
			       : 0;
	if (!r->sha256)
		return err_set(err, EINVAL, "'sha256' is missing");
	if (r->text_len > r->text_bytes)
		return err_set(err, EINVAL, "more text than 'bytes'");
	visible_sha256(r->text, r->text_len, sum);
	if (r->text_len == r->text_bytes && strcmp(sum, r->sha256) != 0)
		return err_set(err, EINVAL, "'sha256' is not that of 'text'");
	return 0;
}

/* What each kind has, and has not. */
static int check(const struct request *r, struct err *err)
{
	static const struct {
		bool programs, language, text, target;
	} need[] = {
		[REQUEST_COMMAND] = { .programs = true },
		[REQUEST_CODE] = { .language = true, .text = true },
		[REQUEST_TOOL] = { .target = true },
		[REQUEST_CONNECTION] = { .target = true },
		[REQUEST_MOUNT] = { .target = true },
	};
	bool of_tool = r->arguments || r->code.n || r->class || r->n_told;
	bool extra = (r->programs && r->kind > REQUEST_CODE) ||
		     (of_tool && r->kind != REQUEST_TOOL) ||
		     (r->language && r->kind != REQUEST_CODE) ||
		     (r->text && r->kind != REQUEST_CODE &&
		      r->kind != REQUEST_TOOL) ||
		     (r->target && r->kind < REQUEST_TOOL);

	if ((need[r->kind].programs && r->n_programs == 0) ||
	    (need[r->kind].language && (!r->language || !*r->language)) ||
	    (need[r->kind].text && !r->text) ||
	    (need[r->kind].target && (!r->target || !*r->target)))
		return err_set(err, EINVAL,
			       "a request of kind %s says too "
			       "little of what would be done",
			       kinds[r->kind]);
	if (extra || (r->kind == REQUEST_CODE && r->n_programs > 1))
		return err_set(err, EINVAL,
			       "a request of kind %s has a key "
			       "of another kind",
			       kinds[r->kind]);
	if (r->n_told > r->changes.n)
		return err_set(err, EINVAL, "'told' is more than 'changes'");
	if (!*r->why || !*r->rule)
		return err_set(err, EINVAL,
			       "'why' and 'rule' must say "
			       "something");
	if (!r->may_terminal && !r->may_store)
		return err_set(err, EINVAL, "'ask' names nobody");
	if (r->expire_ms == 0)
		return err_set(err, EINVAL, "'expire_ms' is 0");
	return check_text(r, err);
}

int request_parse(const char *text, size_t len, struct request *ret,
		  struct err *err)
{
	static const struct doc_key keys[] = {
		{ "version", true, read_version },
		{ "kind", true, read_kind },
		{ "programs", false, read_programs },
		{ "language", false, read_language },
		{ "text", false, read_text },
		{ "bytes", false, read_bytes },
		{ "sha256", false, read_sha256 },
		{ "target", false, read_target },
		{ "agent", false, read_agent },
		{ "session", false, read_session },
		{ "why", true, read_why },
		{ "rule", true, read_rule },
		{ "file", false, read_file },
		{ "line", false, read_line },
		{ "changes", false, read_changes },
		{ "expire_ms", false, read_expire },
		{ "ask", true, read_ask },
		{ "hide_text", false, read_hide },
		{ "run", false, read_run },
		{ "box", false, read_box },
		{ "face", false, read_face },
		{ "arguments", false, read_arguments },
		{ "code", false, read_code },
		{ "class", false, read_class },
		{ "told", false, read_told },
		{ "team", false, read_team },
		{ "context", false, read_context },
		{ "digest", false, read_digest },
		{ "peer", false, read_peer },
		{ "cut", false, read_cut },
	};
	struct err ignored;
	struct doc d;
	int r;

	if (!err)
		err = &ignored;
	*ret = (struct request){ .expire_ms = REQUEST_EXPIRE };
	if (len > REQUEST_MAX)
		return err_set(err, E2BIG, "request: more than %u bytes",
			       REQUEST_MAX);
	if (doc_open(&d, text, len, err) < 0)
		return err_wrap(err, "request");
	r = doc_mapping(doc_root(&d), keys, ARRAY_SIZE(keys), ret, err);
	doc_close(&d);
	if (r == 0)
		r = check(ret, err);
	if (r < 0) {
		request_done(ret);
		return err_wrap(err, "request");
	}
	return 0;
}

void request_done(struct request *r)
{
	char *const owned[] = { r->language,  r->text,    r->sha256, r->target,
				r->agent,     r->session, r->why,    r->rule,
				r->file,      r->run,     r->box,    r->face,
				r->arguments, r->class,   r->team,   r->context,
				r->digest };

	for (size_t i = 0; i < r->n_programs; i++) {
		free(r->programs[i].join);
		strv_done(&r->programs[i].argv);
	}
	free(r->programs);
	for (size_t i = 0; i < ARRAY_SIZE(owned); i++)
		free(owned[i]);
	strv_done(&r->changes);
	strv_done(&r->code);
	*r = (struct request){ 0 };
}

/* cutting */

#define CUT_ITEMS 8
#define CUT_ITEM  64
#define CUT_TEXT  256

static void cut_text(char *text, size_t max)
{
	if (text && strlen(text) > max)
		text[max] = '\0';
}

static void cut_list(struct strv *list)
{
	while (list->n > CUT_ITEMS) {
		free(list->v[--list->n]);
		list->v[list->n] = NULL;
	}
	for (size_t i = 0; i < list->n; i++)
		cut_text(list->v[i], CUT_ITEM);
}

void request_cut(struct request *r)
{
	char *const texts[] = {
		r->language, r->target, r->agent, r->session,
		r->why,      r->rule,   r->file,  r->run,
		r->box,      r->face,   r->team,  r->arguments
	};

	for (; r->n_programs > CUT_ITEMS; r->n_programs--) {
		free(r->programs[r->n_programs - 1].join);
		strv_done(&r->programs[r->n_programs - 1].argv);
	}
	for (size_t i = 0; i < r->n_programs; i++)
		cut_list(&r->programs[i].argv);
	cut_list(&r->changes);
	cut_list(&r->code);
	r->n_told = MIN(r->n_told, r->changes.n);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		cut_text(texts[i], CUT_TEXT);
	if (r->text_len > CUT_TEXT) {
		r->text_len = CUT_TEXT;
		r->text[CUT_TEXT] = '\0';
	}
	r->is_cut = 1;
}

/* identity */

static void hash_number(struct sha256 *s, uint64_t n)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(n >> (8 * i));
	sha256_add(s, bytes, sizeof(bytes));
}

/* With its length, so that no two lists of fields look alike. */
static void hash_text(struct sha256 *s, const char *text)
{
	hash_number(s, text ? strlen(text) + 1 : 0);
	if (text)
		sha256_add(s, text, strlen(text));
}

static void hash_list(struct sha256 *s, const struct strv *list)
{
	hash_number(s, list->n);
	for (size_t i = 0; i < list->n; i++)
		hash_text(s, list->v[i]);
}

void request_content(const struct request *r, char ret[65])
{
	unsigned char sum[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	hash_text(&s, "cordon approval 1");
	hash_text(&s, kinds[r->kind]);
	hash_number(&s, r->n_programs);
	for (size_t i = 0; i < r->n_programs; i++) {
		hash_text(&s, r->programs[i].join);
		hash_list(&s, &r->programs[i].argv);
	}
	hash_text(&s, r->language);
	hash_text(&s, r->sha256);
	hash_number(&s, r->text_bytes);
	hash_text(&s, r->target);
	hash_text(&s, r->agent);
	hash_list(&s, &r->changes);
	hash_text(&s, r->rule);
	hash_text(&s, r->file);
	if (r->has_peer) {
		hash_text(&s, "peer");
		hash_number(&s, r->peer);
	}
	sha256_end(&s, sum);
	hex_format(sum, sizeof(sum), ret);
}

void request_frame(const struct request *r, bool is_wide, char ret[65])
{
	unsigned char sum[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	hash_text(&s, is_wide ? "cordon call 1" : "cordon frame 1");
	hash_text(&s, kinds[r->kind]);
	hash_text(&s, r->target);
	hash_text(&s, r->agent);
	hash_number(&s, r->has_peer ? r->peer + 1 : 0);
	if (!is_wide) {
		hash_number(&s, r->changes.n - r->n_told);
		for (size_t i = r->n_told; i < r->changes.n; i++)
			hash_text(&s, r->changes.v[i]);
		hash_text(&s, r->rule);
		hash_text(&s, r->file);
		hash_number(&s, r->code.n > 0);
		hash_text(&s, r->class);
	}
	sha256_end(&s, sum);
	hex_format(sum, sizeof(sum), ret);
}

/* writing */

static void put(struct json *j, const char *name, const char *text)
{
	if (text)
		json_exact(j, name, text, strlen(text));
}

static void put_list(struct json *j, const char *name, const struct strv *list)
{
	json_open(j, name, '[');
	for (size_t i = 0; i < list->n; i++)
		put(j, NULL, list->v[i]);
	json_close(j, ']');
}

static void put_programs(struct json *j, const struct request *r)
{
	json_open(j, "programs", '[');
	for (size_t i = 0; i < r->n_programs; i++) {
		json_open(j, NULL, '{');
		put(j, "join", r->programs[i].join);
		put_list(j, "argv", &r->programs[i].argv);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void request_format(const struct request *r, struct buf *out)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_int(&j, "version", 1);
	if (r->is_cut)
		json_int(&j, "cut", 1);
	put(&j, "kind", kinds[r->kind]);
	if (r->n_programs > 0)
		put_programs(&j, r);
	put(&j, "language", r->language);
	if (r->text) {
		json_exact(&j, "text", r->text, r->text_len);
		json_int(&j, "bytes", (int64_t)r->text_bytes);
		put(&j, "sha256", r->sha256);
	}
	put(&j, "target", r->target);
	put(&j, "agent", r->agent);
	put(&j, "session", r->session);
	put(&j, "why", r->why);
	put(&j, "rule", r->rule);
	put(&j, "file", r->file);
	json_int(&j, "line", (int64_t)r->line);
	put_list(&j, "changes", &r->changes);
	json_int(&j, "expire_ms", (int64_t)r->expire_ms);
	json_open(&j, "ask", '[');
	if (r->may_terminal)
		json_str(&j, NULL, "terminal");
	if (r->may_store)
		json_str(&j, NULL, "store");
	json_close(&j, ']');
	if (r->hide_text)
		json_int(&j, "hide_text", 1);
	put(&j, "run", r->run);
	put(&j, "box", r->box);
	put(&j, "face", r->face);
	put(&j, "arguments", r->arguments);
	if (r->code.n > 0)
		put_list(&j, "code", &r->code);
	put(&j, "class", r->class);
	if (r->n_told)
		json_int(&j, "told", (int64_t)r->n_told);
	put(&j, "team", r->team);
	put(&j, "context", r->context);
	put(&j, "digest", r->digest);
	if (r->has_peer)
		json_int(&j, "peer", (int64_t)r->peer);
	json_close(&j, '}');
}
