/* SPDX-License-Identifier: Apache-2.0 */

/* cordon approvals rules list: what was answered and holds for more. */

#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "base/visible.h"
#include "desk/approvals.h"
#include "desk/desk.h"
#include "desk/pattern.h"

struct listing {
	struct buf out;
	struct json j;
	bool is_json;
	size_t n;
};

static void put(struct json *j, const char *name, const char *text)
{
	if (text)
		json_exact(j, name, text, strlen(text));
}

static void put_json(struct listing *l, const struct rule *r, const char *scope,
		     int64_t uses)
{
	struct json *j = &l->j;

	json_open(j, NULL, '{');
	put(j, "id", r->id);
	json_str(j, "scope", scope);
	json_str(j, "decision", rule_is_deny(r) ? "deny" : "allow");
	put(j, "user", r->user);
	put(j, "agent", r->agent);
	put(j, "content", r->content);
	put(j, "kind", r->kind);
	put(j, "what", r->what);
	put(j, "rule", r->rule);
	put(j, "by", r->by);
	put(j, "when", r->when);
	put(j, "expires", r->expires);
	json_bool(j, "is_over", rule_is_over(r, store_now()));
	json_int(j, "uses", uses);
	put(j, "reason", r->reason);
	if (r->arguments) {
		/* It was checked when it was read: a JSON list. */
		buf_puts(j->out, ",\"arguments\":");
		buf_puts(j->out, r->arguments);
	}
	json_close(j, '}');
}

static void cell(struct buf *out, const char *text, size_t width)
{
	size_t before = out->len;

	visible_text(out, text, strlen(text), width > 4 ? width - 1 : width);
	for (size_t n = out->len - before; n < width; n++)
		buf_puts(out, " ");
}

static void put_pattern(struct buf *out, const struct rule *r)
{
	json_t *pattern = r->arguments ? pattern_parse(r->arguments, NULL)
				       : NULL;

	if (!pattern)
		return;
	buf_puts(out, " where ");
	pattern_show(pattern, out);
	json_decref(pattern);
}

static void put_row(struct listing *l, const struct rule *r, const char *scope,
		    int64_t uses)
{
	struct buf *out = &l->out;
	char count[24];

	if (l->n++ == 0)
		buf_puts(out, "ID      SCOPE    SAYS   SINCE                 "
			      "EXPIRES               USES   BY               "
			      "WHAT\n");
	(void)snprintf(count, sizeof(count), "%lld", (long long)uses);
	cell(out, r->id, 8);
	cell(out, scope, 9);
	cell(out, rule_is_deny(r) ? "deny" : "allow", 7);
	cell(out, r->when, 22);
	cell(out,
	     !r->expires                    ? "-"
	     : rule_is_over(r, store_now()) ? "is over"
					    : r->expires,
	     22);
	cell(out, count, 7);
	visible_text(out, r->by, strlen(r->by), 64);
	buf_puts(out, "  ");
	if (r->agent && *r->agent) {
		visible_text(out, r->agent, strlen(r->agent), 64);
		buf_puts(out, ": ");
	}
	visible_text(out, r->what, strlen(r->what), 4096);
	put_pattern(out, r);
	if (*r->reason) {
		buf_puts(out, "  (");
		visible_text(out, r->reason, strlen(r->reason), STORE_REASON);
		buf_puts(out, ")");
	}
	buf_puts(out, "\n");
}

static int put_all(struct store *s, struct listing *l,
		   const struct rules *rules, const char *scope,
		   struct err *err)
{
	for (size_t i = 0; i < rules->n; i++) {
		int64_t uses = 0;
		int r = uses_get(s, rules->v[i].id, &uses, err);

		if (r < 0)
			return r;
		(l->is_json ? put_json : put_row)(l, &rules->v[i], scope, uses);
	}
	return 0;
}

static int load_and_put(struct store *s, struct listing *l, struct err *err)
{
	struct rules grants = { 0 };
	struct rules rules = { 0 };
	int r = grants_load(s, NULL, &grants, err);

	if (r == 0)
		r = rules_load(&s->state, &rules, err);
	if (r == 0)
		r = put_all(s, l, &grants, "session", err);
	if (r == 0)
		r = put_all(s, l, &rules, "always", err);
	rules_done(&grants);
	rules_done(&rules);
	return r;
}

int approvals_rules_list(struct store *s, bool json)
{
	struct listing l = { .is_json = json };
	struct err err = { 0 };
	int r;

	buf_init(&l.out, SHOW_MAX);
	l.j.out = &l.out;
	if (json)
		json_open(&l.j, NULL, '[');
	if (load_and_put(s, &l, &err) < 0) {
		buf_done(&l.out);
		say("%s; nothing is allowed by it", err.text);
		return EXIT_OURS;
	}
	if (json) {
		json_close(&l.j, ']');
		buf_puts(&l.out, "\n");
	} else if (l.n == 0) {
		buf_puts(&l.out, "no answer stands for later requests\n");
	}
	r = l.out.error ? l.out.error : io_write_all(1, l.out.data, l.out.len);
	buf_done(&l.out);
	return r < 0 ? EXIT_OURS : 0;
}
