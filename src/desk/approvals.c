/* SPDX-License-Identifier: Apache-2.0 */

/* cordon approvals: its commands and their flags; ask is in ask.c. */

#include "desk/approvals.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/num.h"
#include "desk/asker.h"
#include "desk/desk.h"
#include "desk/pattern.h"

struct call {
	const char *id;
	bool all;
	bool full;
	bool json;
	bool has_scope;
	enum scope scope;
	const char *reason;
	json_t *pattern; /* NULL: none */
	int64_t expires; /* ms of the real clock; 0: not said */
};

enum {
	TAKES_ID = 1,
	TAKES_ALL = 2,
	TAKES_JSON = 4,
	TAKES_FULL = 8,
	TAKES_REASON = 16,
	TAKES_SCOPE = 32,
	TAKES_RULE = 64,
};

static int do_list(struct store *s, const struct call *c)
{
	return approvals_list(s, c->all, c->json);
}

static int do_show(struct store *s, const struct call *c)
{
	return approvals_show(s, c->id, c->full, c->json);
}

/* Only on the terminal, if the policy says so. */
static int check_place(struct store *s, const char *id, struct err *err)
{
	struct entry e = { 0 };
	struct request req = { 0 };
	int r = store_get(s, id, &e, err);

	if (r == 0)
		r = approvals_request(&e, &req, err);
	entry_done(&e);
	if (r < 0)
		return r;
	if (!req.may_store)
		r = err_set(err, EPERM,
			    "the policy has request '%s' answered on the "
			    "asker's own terminal only",
			    id);
	request_done(&req);
	return r;
}

/* Who came first, or that it is too late. */
static int too_late(const struct entry *e, int r)
{
	const char *reason = e->reason ? e->reason : "";

	if (r == -ETIME || e->state == ENTRY_EXPIRED)
		say("request '%s' has expired; it counts as denied", e->id);
	else
		say("request '%s' was already %s by %s%s%s", e->id,
		    entry_state_name(e->state), e->by ? e->by : "",
		    *reason ? ": " : "", reason);
	return EXIT_DENIED;
}

/* What came of it, for people; the exit status. */
static int tell(int r, const struct entry *now, const char *done,
		const struct err *err)
{
	if (r == 0) {
		printf("%s %s\n", now->id, done);
		return 0;
	}
	if (r == -EALREADY || r == -ETIME)
		return too_late(now, r);
	say("%s", err->text);
	return EXIT_OURS;
}

static int answer(struct store *s, const struct call *c, bool allow)
{
	const struct answer_rule with = { .pattern = c->pattern,
					  .expires = c->expires };
	char by[160];
	char done[64];
	struct store_answer a = { .is_allowed = allow,
				  .scope = c->scope,
				  .reason = c->reason,
				  .by = by };
	struct entry now = { 0 };
	struct err err = { 0 };
	char id[STORE_ID + 1];
	int r = store_find(s, c->id, id, &err);

	answerer(by, sizeof(by));
	if (r == 0)
		r = check_place(s, id, &err);
	if (r == 0)
		r = approvals_answer(s, id, &a,
				     c->pattern || c->expires ? &with : NULL,
				     &now, &err);
	(void)snprintf(done, sizeof(done), "%s%s%s",
		       allow ? "allowed" : "denied",
		       allow || c->scope != SCOPE_ONCE ? ", " : "",
		       allow || c->scope != SCOPE_ONCE ? scope_name(c->scope)
						       : "");
	r = tell(r, &now, done, &err);
	entry_done(&now);
	return r;
}

static int do_approve(struct store *s, const struct call *c)
{
	return answer(s, c, true);
}

static int do_deny(struct store *s, const struct call *c)
{
	return answer(s, c, false);
}

/* For who asked, or whoever ends what it was asked for. */
static int do_withdraw(struct store *s, const struct call *c)
{
	struct entry now = { 0 };
	struct err err = { 0 };
	char id[STORE_ID + 1];
	char by[160];
	int r = store_find(s, c->id, id, &err);

	answerer(by, sizeof(by));
	if (r == 0)
		r = approvals_withdraw(s, id,
				       c->reason ? c->reason : "withdrawn", by,
				       &now, &err);
	r = tell(r, &now, "withdrawn", &err);
	entry_done(&now);
	return r;
}

static int do_rules_list(struct store *s, const struct call *c)
{
	return approvals_rules_list(s, c->json);
}

static const struct rule *find_id(const struct rules *rules, const char *id)
{
	for (size_t i = 0; i < rules->n; i++)
		if (strcmp(rules->v[i].id, id) == 0)
			return &rules->v[i];
	return NULL;
}

/* That it is taken back is on the ledger before it is. */
static int take_back(struct store *s, const char *id, enum scope scope,
		     struct err *err)
{
	bool is_session = scope == SCOPE_SESSION;
	struct rules rules = { 0 };
	const struct rule *rule;
	char by[160];
	int r = is_session ? grants_load(s, NULL, &rules, err)
			   : rules_load(&s->state, &rules, err);

	if (r < 0)
		return r;
	rule = find_id(&rules, id);
	answerer(by, sizeof(by));
	r = rule ? approvals_record_revoked(rule, scope_name(scope), by, err)
		 : err_set(err, ENOENT, "there is no rule '%.64s'", id);
	if (r == 0)
		r = is_session ? grant_remove(s, id, err)
			       : rules_remove(&s->state, id, err);
	if (r == 0)
		r = uses_remove(s, id, err);
	rules_done(&rules);
	return r;
}

/* An id is of one kind: a request that was answered for a session or always. */
static int do_rules_remove(struct store *s, const struct call *c)
{
	struct err err = { 0 };
	int r = take_back(s, c->id, SCOPE_SESSION, &err);

	if (r == -ENOENT)
		r = take_back(s, c->id, SCOPE_ALWAYS, &err);
	if (r == 0) {
		printf("%s removed\n", c->id);
		return 0;
	}
	say("%s", err.text);
	return r == -ENOENT ? EXIT_DENIED : EXIT_OURS;
}

#define RULE                                                                   \
	"[--equals PATH=JSON] [--glob PATH=GLOB] [--any PATH] [--expires "     \
	"TIME]"

static const struct command {
	const char *group;
	const char *name;
	const char *usage;
	unsigned int takes;
	int (*run)(struct store *s, const struct call *c);
	const char *about;
} commands[] = {
	{ NULL, "list", "[--all] [--json]", TAKES_ALL | TAKES_JSON, do_list,
	  "what waits; --all: also what was answered" },
	{ NULL, "show", "ID [--full] [--json]",
	  TAKES_ID | TAKES_FULL | TAKES_JSON, do_show,
	  "one request, with everything that is known about it" },
	{ NULL, "approve",
	  "ID [--scope once|session|always] [--reason TEXT] " RULE,
	  TAKES_ID | TAKES_SCOPE | TAKES_REASON | TAKES_RULE, do_approve,
	  "say yes" },
	{ NULL, "deny",
	  "ID [--scope once|session|always] [--reason TEXT] " RULE,
	  TAKES_ID | TAKES_SCOPE | TAKES_REASON | TAKES_RULE, do_deny,
	  "say no" },
	{ NULL, "withdraw", "ID [--reason TEXT]", TAKES_ID | TAKES_REASON,
	  do_withdraw, "nobody wants an answer any more" },
	{ "rules", "list", "[--json]", TAKES_JSON, do_rules_list,
	  "the answers that still hold" },
	{ "rules", "remove", "ID", TAKES_ID, do_rules_remove,
	  "take such an answer back" },
};

void approvals_words(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("approvals\t%s%s%s\t%s\t%s\n",
		       commands[i].group ? commands[i].group : "",
		       commands[i].group ? " " : "", commands[i].name,
		       commands[i].usage, commands[i].about);
}

static int usage(void)
{
	printf("usage: cordon approvals COMMAND ...\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %s%s%s %s\n      %s\n",
		       commands[i].group ? "rules" : "",
		       commands[i].group ? " " : "", commands[i].name,
		       commands[i].usage, commands[i].about);
	printf("\ncordon-approvals(1) says more.\n");
	return 0;
}

/* "--name VALUE" or "--name=VALUE"; moves on past the value. */
static bool takes_value(const char *name, char ***at, const char **ret)
{
	size_t len = strlen(name);
	const char *arg = **at;

	if (strncmp(arg, name, len) != 0 || (arg[len] && arg[len] != '='))
		return false;
	if (arg[len] == '=') {
		*ret = arg + len + 1;
	} else {
		*ret = (*at)[1];
		if (*ret)
			(*at)++;
	}
	return true;
}

/* "2h" from now, or a time such as 2026-12-24T18:00:00Z. */
static int read_expires(const char *value, int64_t *ret, struct err *err)
{
	uint64_t us;

	if (value && rule_time_parse(value, ret) == 0)
		return 0;
	if (!value || num_parse_duration(value, &us) < 0 || us < 1000000)
		return err_set(err, EINVAL,
			       "--expires takes a time such as 2h, or "
			       "2026-12-24T18:00:00Z");
	*ret = store_now() + (int64_t)(us / 1000);
	return 0;
}

/* 1: it was one of the flags that make a rule. */
static int read_rule_flag(char ***at, struct call *c, struct err *err)
{
	static const char *const terms[] = { "--equals", "--glob", "--any" };
	const char *value = NULL;

	if (takes_value("--expires", at, &value))
		return read_expires(value, &c->expires, err) < 0 ? -err->code
								 : 1;
	for (size_t i = 0; i < ARRAY_SIZE(terms); i++) {
		if (!takes_value(terms[i], at, &value))
			continue;
		if (!c->pattern)
			c->pattern = json_array();
		if (!value || !c->pattern)
			return err_set(err, EINVAL, "%s takes a path",
				       terms[i]);
		if (json_array_size(c->pattern) == PATTERN_TERMS)
			return err_set(err, E2BIG, "a pattern has %d terms",
				       PATTERN_TERMS);
		return pattern_add(c->pattern, terms[i] + 2, value, err) < 0
			       ? -err->code
			       : 1;
	}
	return 0;
}

static int read_flag(unsigned int takes, char ***at, struct call *c,
		     struct err *err)
{
	static const struct {
		const char *name;
		unsigned int take;
		size_t where;
	} bools[] = {
		{ "--all", TAKES_ALL, offsetof(struct call, all) },
		{ "--json", TAKES_JSON, offsetof(struct call, json) },
		{ "--full", TAKES_FULL, offsetof(struct call, full) },
	};
	const char *value = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bools); i++)
		if ((takes & bools[i].take) &&
		    strcmp(**at, bools[i].name) == 0) {
			*(bool *)((char *)c + bools[i].where) = true;
			return 0;
		}
	if ((takes & TAKES_REASON) && takes_value("--reason", at, &value)) {
		c->reason = value;
		return value ? 0
			     : err_set(err, EINVAL, "--reason takes a text");
	}
	if ((takes & TAKES_SCOPE) && takes_value("--scope", at, &value))
		return value && scope_parse(value, &c->scope) == 0
			       ? 0
			       : err_set(err, EINVAL,
					 "--scope takes once, session or "
					 "always");
	if (takes & TAKES_RULE) {
		int r = read_rule_flag(at, c, err);

		if (r != 0)
			return r < 0 ? r : 0;
	}
	return err_set(err, EINVAL, "'%.64s' is not a flag of this command",
		       **at);
}

static int read_call(const struct command *cmd, char **args, struct call *c,
		     struct err *err)
{
	for (; *args; args++) {
		int r;

		if (**args != '-') {
			if (c->id || !(cmd->takes & TAKES_ID))
				return err_set(err, EINVAL,
					       "'%.64s' is one argument too "
					       "many",
					       *args);
			c->id = *args;
			continue;
		}
		r = read_flag(cmd->takes, &args, c, err);
		if (r < 0)
			return r;
	}
	if ((cmd->takes & TAKES_ID) && !c->id)
		return err_set(err, EINVAL, "an id is missing");
	return 0;
}

static int run(const struct command *cmd, char **args)
{
	struct call c = { .scope = SCOPE_ONCE };
	struct err err = { 0 };
	struct store s;
	int status;

	if (read_call(cmd, args, &c, &err) < 0) {
		say("%s; usage: cordon approvals %s%s%s %s", err.text,
		    cmd->group ? cmd->group : "", cmd->group ? " " : "",
		    cmd->name, cmd->usage);
		json_decref(c.pattern);
		return EXIT_OURS;
	}
	if (store_open(&s, &err) < 0) {
		say("%s", err.text);
		json_decref(c.pattern);
		return EXIT_OURS;
	}
	status = cmd->run(&s, &c);
	store_close(&s);
	json_decref(c.pattern);
	if (fflush(stdout) != 0)
		return EXIT_OURS;
	return status;
}

int cmd_approvals(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const char *group = NULL;
	char **args = argv + 2;

	(void)umask(077);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return usage();
	if (strcmp(name, "ask") == 0)
		return approvals_ask(argc - 1, argv + 1);
	if (strcmp(name, "rules") == 0) {
		group = name;
		name = argc > 2 ? argv[2] : "";
		args = argv + 3;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!group == !commands[i].group &&
		    strcmp(name, commands[i].name) == 0)
			return run(&commands[i], args);
	say("approvals takes list, show, approve, deny, withdraw or "
	    "rules list|remove");
	return EXIT_OURS;
}
