/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/filter-policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/regex.h"
#include "base/util.h"
#include "base/visible.h"
#include "ledger/ledger.h"
#include "policy/policy.h"
#include "runtime/filter-walk.h"

#define REASON sizeof(((struct filter_verdict *)0)->reason)

struct rule {
	const struct policy_filter *is;
	unsigned int on;
	struct find_want want;
	enum rule_action action;
};

struct screen {
	unsigned int refs;
	struct screen_options o;
	struct rule *rules;
	size_t n;
};

struct screen_part {
	struct filter filter;
	struct screen *screen;
};

/* --- from the policy --- */

static const struct {
	const char *name;
	unsigned int bit;
} roles[] = {
	{ "user", ROLE_USER },
	{ "assistant", ROLE_ASSISTANT },
	{ "tool", ROLE_TOOL },
	{ "system", ROLE_SYSTEM },
};

static const char *const actions[] = {
	[RULE_STRIP] = "strip",
	[RULE_MASK] = "mask",
	[RULE_REJECT] = "reject",
};

static int rule_roles(struct rule *r, struct err *err)
{
	for (size_t i = 0; i < r->is->on.n; i++) {
		size_t k = 0;

		while (k < ARRAY_SIZE(roles) &&
		       strcmp(roles[k].name, r->is->on.v[i]) != 0)
			k++;
		if (k == ARRAY_SIZE(roles))
			return err_set(err, EINVAL, "there is no role '%s'",
				       r->is->on.v[i]);
		r->on |= roles[k].bit;
	}
	return 0;
}

static int rule_wants(struct rule *r, struct err *err)
{
	if (r->is->regex) {
		r->want.kinds = 1U << FIND_REGEX;
		return regex_new(r->is->regex, &r->want.regex, err);
	}
	for (size_t i = 0; i < r->is->match.n; i++) {
		enum find_kind k = find_parse(r->is->match.v[i]);

		if (k == FIND_KINDS || k == FIND_REGEX)
			return err_set(err, EINVAL, "'%s' is nothing to find",
				       r->is->match.v[i]);
		r->want.kinds |= 1U << k;
	}
	return 0;
}

static int rule_init(struct rule *r, const struct policy_filter *f,
		     struct err *err)
{
	size_t k = 0;

	r->is = f;
	while (k < ARRAY_SIZE(actions) && strcmp(actions[k], f->action) != 0)
		k++;
	if (k == ARRAY_SIZE(actions))
		return err_set(err, EINVAL, "'%s' is nothing to do", f->action);
	r->action = (enum rule_action)k;
	if (rule_roles(r, err) < 0 || rule_wants(r, err) < 0)
		return err_wrap(err, "%s:%u",
				f->at.file ? f->at.file : "policy", f->at.line);
	return 0;
}

int screen_new(const struct screen_options *o, struct screen **ret,
	       struct err *err)
{
	size_t n = o->policy ? o->policy->n_filters : 0;
	struct screen *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->refs = 1;
	s->o = *o;
	s->rules = calloc(n + 1, sizeof(*s->rules));
	if (!s->rules) {
		screen_unref(s);
		return err_set(err, ENOMEM, "out of memory");
	}
	for (; s->n < n; s->n++) {
		int code = rule_init(&s->rules[s->n], &o->policy->filters[s->n],
				     err);

		if (code < 0) {
			s->n++;
			screen_unref(s);
			return code;
		}
	}
	*ret = s;
	return 0;
}

struct screen *screen_ref(struct screen *s)
{
	s->refs++;
	return s;
}

void screen_unref(struct screen *s)
{
	if (!s || --s->refs > 0)
		return;
	for (size_t i = 0; i < s->n; i++)
		regex_free(s->rules[i].want.regex);
	free(s->rules);
	free(s);
}

/* --- what is told --- */

/* "2 secrets, 1 host_paths" */
static void say_found(const struct sweep *w, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (int k = 0; k < FIND_KINDS && n < size; k++)
		if (w->counts[k])
			n += (size_t)snprintf(
				ret + n, size - n, "%s%llu %s", n ? ", " : "",
				(unsigned long long)w->counts[k],
				k == FIND_REGEX ? "expressions"
						: find_name((enum find_kind)k));
}

/* What the sender is told; never what was found. */
static void say_why(const struct rule *r, const struct sweep *w, char *ret)
{
	char found[96];

	say_found(w, found, sizeof(found));
	if (r->is->reason)
		(void)snprintf(ret, REASON, "%.200s", r->is->reason);
	else
		(void)snprintf(ret, REASON,
			       r->action == RULE_REJECT
				       ? "the message holds %s, which the "
					 "policy refuses (%.100s:%u)"
				       : "%s taken out by the policy "
					 "(%.100s:%u)",
			       found, r->is->at.file ? r->is->at.file : "",
			       r->is->at.line);
}

/* --- on the ledger --- */

static json_t *content_json(const json_t *data)
{
	char *text = json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY);
	char hash[65];
	json_t *ret;

	if (!text)
		return NULL;
	visible_sha256(text, strlen(text), hash);
	ret = json_pack("{s:s, s:I}", "sha256", hash, "size",
			(json_int_t)strlen(text));
	free(text);
	return ret;
}

static json_t *found_json(const struct sweep *w)
{
	json_t *o = json_object();

	for (int k = 0; k < FIND_KINDS; k++)
		if (o && w->counts[k] &&
		    json_object_set_new(
			    o, find_name((enum find_kind)k),
			    json_integer((json_int_t)w->counts[k])) < 0) {
			json_decref(o);
			return NULL;
		}
	return o;
}

static json_t *policy_json(const struct policy *p)
{
	if (p->flat.n_sources == 0)
		return NULL;
	return json_pack("{s:s, s:s}", "file", p->flat.sources[0].name,
			 "sha256", p->flat.sources[0].sha256);
}

struct change {
	const struct screen_view *view;
	const struct rule *rule;
	const struct sweep *sweep;
	const json_t *before, *after; /* NULL: it was refused */
	const char *reason;
};

static json_t *record_json(const struct screen *s, const struct change *c)
{
	const struct policy_filter *f = c->rule->is;
	const char *run = s->o.run_of ? s->o.run_of(s->o.arg) : s->o.run;
	char rule[300];

	(void)snprintf(rule, sizeof(rule), "%.280s:%u",
		       f->at.file ? f->at.file : "", f->at.line);
	return json_pack(
		"{s:s*, s:s*, s:s*, s:s, s:s, s:s, s:o, s:s, s:s*, s:o*, s:o, "
		"s:o*}",
		"run", run, "agent", c->view->from, "to", c->view->to,
		"decision", c->after ? "allow" : "deny", "what",
		actions[c->rule->action], "subject",
		c->view->type ? c->view->type : "message", "found",
		found_json(c->sweep), "rule", rule, "reason", c->reason,
		"policy", policy_json(s->o.policy), "before",
		content_json(c->before), "after",
		c->after ? content_json(c->after) : NULL);
}

/*
 * Appended, not synced: a message that is lost with a crash was not sent, and
 * the next record of a run makes this one durable too.
 */
static int record(const struct screen *s, const struct change *c)
{
	struct err err = { 0 };
	json_t *members;
	char *text;
	int code;

	if (!s->o.ledger)
		return 0;
	members = record_json(s, c);
	text = members ? json_dumps(members, JSON_COMPACT) : NULL;
	json_decref(members);
	if (!text)
		return -ENOMEM;
	code = ledger_append(s->o.ledger, "message.filter", text, NULL, &err);
	free(text);
	return code;
}

/* --- one message --- */

static enum filter_act refuse(char *reason, int code)
{
	(void)snprintf(reason, REASON,
		       code == -E2BIG || code == -ELOOP
			       ? "it is too large or too deep for the filters "
				 "of the policy"
			       : "the filters of the policy failed: %s",
		       strerror(-code));
	return FILTER_REJECT;
}

/* One rule; *data is replaced by what it makes of it. */
static enum filter_act apply_rule(struct screen *s, struct rule *r,
				  const struct screen_view *v, json_t **data,
				  char *reason)
{
	struct sweep w = { .want = r->want,
			   .on = r->on,
			   .action = r->action,
			   .people = s->o.people,
			   .is_ours = v->type &&
				      strncmp(v->type, "cordon.", 7) == 0 };
	struct change c = { v, r, &w, *data, NULL, reason };
	enum filter_act act = FILTER_REPLACE;
	json_t *now;
	int code = 0;

	if (r->want.regex)
		regex_renew(r->want.regex);
	now = sweep_json(&w, *data, v->roles);
	if (!now)
		return refuse(reason, w.error);
	if (!w.is_found && now == *data) {
		json_decref(now);
		return FILTER_PASS;
	}
	if (r->action == RULE_REJECT && w.is_found)
		act = FILTER_REJECT;
	if (w.is_found) {
		say_why(r, &w, reason);
		c.after = act == FILTER_REPLACE ? now : NULL;
		code = record(s, &c);
	}
	json_decref(*data);
	*data = now;
	return code < 0 ? refuse(reason, code) : act;
}

enum filter_act screen_apply(struct screen *s, const struct screen_view *v,
			     json_t *data, json_t **ret, char *reason)
{
	json_t *now = json_incref(data);
	enum filter_act act = FILTER_PASS;

	reason[0] = '\0';
	for (size_t i = 0; i < s->n && act != FILTER_REJECT; i++) {
		enum filter_act one;

		if (v->roles && !(v->roles & s->rules[i].on))
			continue;
		one = apply_rule(s, &s->rules[i], v, &now, reason);
		act = one == FILTER_PASS ? act : one;
	}
	if (act == FILTER_REPLACE)
		*ret = now;
	else
		json_decref(now);
	return act;
}

enum filter_act screen_text(struct screen *s, const struct screen_view *v,
			    const char *text, char **ret, char *reason)
{
	json_t *string = json_string(text);
	json_t *now = NULL;
	enum filter_act act;

	if (!string)
		return refuse(reason, -EILSEQ);
	act = screen_apply(s, v, string, &now, reason);
	json_decref(string);
	if (act != FILTER_REPLACE)
		return act;
	*ret = strdup(json_string_value(now));
	json_decref(now);
	return *ret ? act : refuse(reason, -ENOMEM);
}

/* --- as a filter of the runtime --- */

/* Whether pieces of an answer have to wait for the whole. */
static bool holds_chunks(const struct screen *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->rules[i].on & ROLE_ASSISTANT)
			return true;
	return false;
}

/* At the sender; what arrives in one process was sent in it. */
static enum filter_act judge(struct filter *f, const struct filter_view *v,
			     struct filter_verdict *ret)
{
	struct screen_part *p = (struct screen_part *)f;
	const struct screen_view view = { .from = v->from,
					  .to = v->to ? v->to : v->topic,
					  .type = v->message->type };
	json_t *data = NULL;
	enum filter_act act;

	if (v->hook == ON_DELIVER || !v->message->data)
		return FILTER_PASS;
	if (role_is_chunk(v->message->data) && holds_chunks(p->screen)) {
		(void)snprintf(ret->reason, REASON,
			       "a piece of an answer that is filtered whole");
		return FILTER_DROP;
	}
	act = screen_apply(p->screen, &view, v->message->data, &data,
			   ret->reason);
	if (act != FILTER_REPLACE)
		return act;
	ret->message = message_new(v->message->type, data);
	return ret->message ? act : refuse(ret->reason, -ENOMEM);
}

static void part_free(struct filter *f)
{
	struct screen_part *p = (struct screen_part *)f;

	screen_unref(p->screen);
	free(p);
}

struct filter *screen_filter(struct screen *s)
{
	struct screen_part *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->filter = (struct filter){ .name = "policy",
				     .judge = judge,
				     .free = part_free };
	p->screen = screen_ref(s);
	return &p->filter;
}
