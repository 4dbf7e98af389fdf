/* SPDX-License-Identifier: Apache-2.0 */

/* A person is asked, where the policy says so. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/buf.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/util.h"
#include "box/approve.h"
#include "box/guard-parts.h"

static const char *const joiners[] = { "&&", "||", ";", "|" };

/* The programs as they will be executed, each list ended by NULL. */
static size_t list_programs(const struct cordon_spec *s,
			    struct approve_program *ret)
{
	if (s->command.n) {
		ret[0] = (struct approve_program){
			"", (const char *const *)s->command.v
		};
		return 1;
	}
	for (size_t i = 0; i < s->n_line; i++)
		ret[i] = (struct approve_program){
			i ? joiners[s->line[i].join] : "",
			(const char *const *)s->line[i].argv.v
		};
	return s->n_line;
}

/* All blocks one after the other, as they will be run. */
static int list_code(const struct cordon_spec *s, struct buf *text)
{
	for (size_t i = 0; i < s->n_blocks; i++)
		if ((i && buf_puts(text, "\n") < 0) ||
		    buf_add(text, s->blocks[i].code, s->blocks[i].len) < 0)
			return -ENOMEM;
	return 0;
}

static void who_is_asked(const struct policy *p, struct approve_request *req)
{
	bool any = !p || !p->ask.is_stated;

	req->may_terminal = any || policy_list_has(&p->ask, "terminal");
	req->may_store = any || policy_list_has(&p->ask, "store");
	req->expire_ms = p ? p->expire_us / 1000 : 0;
}

/*
 * Readable when a signal came that would end us and that the caller holds
 * back for itself; it is not taken from there. Others end us anyway.
 */
static int watch_signals(void)
{
	static const int ends[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
	sigset_t blocked;
	sigset_t set;
	bool any = false;

	(void)sigemptyset(&set);
	if (pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0)
		return NO_FD;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (sigismember(&blocked, ends[i]) == 1) {
			(void)sigaddset(&set, ends[i]);
			any = true;
		}
	return any ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : NO_FD;
}

/* Where each block ends and in what it is written is part of what is asked. */
static void name_blocks(const struct cordon_spec *s, struct buf *out)
{
	for (size_t i = 0; s->n_blocks > 1 && i < s->n_blocks; i++)
		buf_printf(out, "%s%s (%zu bytes)", i ? ", " : "",
			   s->blocks[i].lang_name, s->blocks[i].len);
	if (s->n_blocks == 1)
		buf_puts(out, s->blocks[0].lang_name);
}

static int add_change(struct strv *to, const char *what, const char *text)
{
	struct buf b;
	int r;

	buf_init(&b, 256 << 10);
	buf_puts(&b, what);
	buf_puts(&b, " ");
	buf_puts(&b, text);
	r = b.error ? b.error : strv_add(to, b.data);
	buf_done(&b);
	return r;
}

static int add_sum(struct strv *to, const char *what, const void *data,
		   size_t len)
{
	unsigned char sum[SHA256_SIZE];
	char text[32 + 2 * SHA256_SIZE];
	struct sha256 h;
	int n;

	sha256_init(&h);
	sha256_add(&h, data, len);
	sha256_end(&h, sum);
	n = snprintf(text, sizeof(text), "%zu ", len);
	hex_format(sum, sizeof(sum), text + n);
	return add_change(to, what, text);
}

/* The same program does something else with another input. */
static int add_input(struct strv *to, const struct cordon_spec *s)
{
	if (s->input_sum[0])
		return add_change(to, "stdin", s->input_sum);
	if (s->has_input)
		return add_sum(to, "stdin", s->input, s->input_len);
	return s->interactive || s->tty ? add_change(to, "stdin", "open") : 0;
}

static int add_block_input(struct strv *to, const struct spec_block *b,
			   size_t number)
{
	char what[32];

	if (!b->input)
		return 0;
	(void)snprintf(what, sizeof(what), "stdin %zu", number);
	return add_sum(to, what, b->input, b->input_len);
}

/*
 * Besides the words and the code, and what the asker knows: by which name one
 * block finds another, what they are called with, and what they read.
 */
static int list_changes(const struct cordon_spec *s, const char *const *given,
			struct strv *ret)
{
	char what[32];
	int r = 0;

	for (; r == 0 && given && *given; given++)
		r = strv_add(ret, *given);
	for (size_t i = 0; r == 0 && i < s->n_blocks; i++) {
		(void)snprintf(what, sizeof(what), "file %zu", i + 1);
		if (s->blocks[i].filename)
			r = add_change(ret, what, s->blocks[i].filename);
		(void)snprintf(what, sizeof(what), "argument %zu", i + 1);
		for (size_t k = 0; r == 0 && k < s->blocks[i].args.n; k++)
			r = add_change(ret, what, s->blocks[i].args.v[k]);
		if (r == 0)
			r = add_block_input(ret, &s->blocks[i], i + 1);
	}
	for (size_t i = 0; r == 0 && s->n_blocks && i < s->args.n; i++)
		r = add_change(ret, "argument", s->args.v[i]);
	return r < 0 ? r : add_input(ret, s);
}

/* What is not shown is not said yes to. */
static int too_many(struct guard *g, size_t n, struct err *err)
{
	char text[600];

	(void)snprintf(text, sizeof(text),
		       "a person must be asked (%.200s), and %zu variables, "
		       "volumes, files and arguments are too many to be shown "
		       "to one; at most %d are",
		       g->verdict.why, n, APPROVE_CHANGES);
	return guard_denied(g, err, text);
}

/* A daemon's way is its own, else here and now. */
static int put_question(const struct guard_asker *by,
			const struct approve_request *req,
			struct approve_answer *ret, struct err *err)
{
	return by ? by->how(by->arg, req, ret, err)
		  : approve_ask(req, ret, err);
}

static bool hides_commands(const struct policy *p)
{
	return p && p->keep_text.is_stated &&
	       !policy_list_has(&p->keep_text, "commands");
}

static int ask_person(struct guard *g, const struct guard_asker *by,
		      const struct buf *code, const char *language,
		      const struct strv *changes, struct err *err)
{
	_cleanup_fd_ int signals = by ? NO_FD : watch_signals();
	const struct cordon_spec *s = g->spec;
	struct approve_program programs[SPEC_MAX_LINE];
	struct approve_request req = {
		.kind = s->n_blocks ? "code" : "command",
		.programs = programs,
		.n_programs = list_programs(s, programs),
		.language = language,
		.text = s->n_blocks ? code->data : NULL,
		.text_len = s->n_blocks ? code->len : 0,
		.why = g->verdict.why,
		.rule = g->rule ? g->rule->name : "approvals",
		.file = g->rule && g->rule->file ? g->rule->file
			: g->policy ? g->policy->flat.sources[0].name
				    : NULL,
		.line = g->rule ? g->rule->line : 0,
		.cancel = signals,
		.changes = (const char *const *)changes->v,
		.hide_text = hides_commands(g->policy),
		.run = by ? by->run : NULL,
		.box = by ? by->box : NULL,
		.face = by ? by->face : NULL,
	};
	struct approve_answer *answer = &g->answer;
	char text[600];
	int r;

	who_is_asked(g->policy, &req);
	r = put_question(by, &req, answer, err);
	g->was_asked = r == 0;
	if (by && r == -EAGAIN)
		return r;
	if (by && r == -ETIME) {
		g->refused = REFUSED_DENIED;
		return r;
	}
	if (!g->was_asked) {
		(void)snprintf(text, sizeof(text),
			       "a person must be asked (%.200s), and that "
			       "failed: %.200s",
			       g->verdict.why, err->text);
		return guard_denied(g, err, text);
	}
	if (!answer->is_allowed) {
		(void)snprintf(text, sizeof(text),
			       "a person was asked (%.200s), and the answer is "
			       "no: %.250s",
			       g->verdict.why, answer->reason);
		return guard_denied(g, err, text);
	}
	return 0;
}

static int ask(struct guard *g, const struct guard_asker *by, struct err *err)
{
	struct strv changes = { 0 };
	struct buf language;
	struct buf code;
	int r;

	if (g->verdict.decision != DECISION_ASK)
		return 0;
	buf_init(&code, 64 << 20);
	buf_init(&language, 64 << 10);
	name_blocks(g->spec, &language);
	if (list_code(g->spec, &code) < 0 || language.error ||
	    list_changes(g->spec, by ? by->changes : NULL, &changes) < 0)
		r = guard_no_memory(err);
	else if (changes.n > APPROVE_CHANGES)
		r = too_many(g, changes.n, err);
	else
		r = ask_person(g, by, &code, language.data, &changes, err);
	strv_done(&changes);
	buf_done(&language);
	buf_done(&code);
	return r;
}

int guard_ask(struct guard *g, struct err *err)
{
	return ask(g, g->given->asker, err);
}

int guard_ask_by(struct guard *g, const struct guard_asker *a, struct err *err)
{
	return ask(g, a, err);
}
