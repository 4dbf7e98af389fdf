/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon policy explain: would this be allowed, by which rule, and why.
 * 0 allow, 1 deny, 3 ask, 125 a bad call.
 */

#include "desk/desk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/strv.h"
#include "desk/policy-cmd.h"
#include "policy/commands.h"
#include "policy/network.h"
#include "policy/values.h"

struct answer {
	enum decision decision;
	const char *what; /* "command", "connect" */
	const char *text;
	const char *file; /* of the rule, NULL: none */
	unsigned int line;
	const char *why;
	const struct shell_line *programs; /* understood; NULL: not */
	const struct strv *also;           /* other rules, a line each */
};

static int exit_of(enum decision d)
{
	switch (d) {
	case DECISION_ALLOW:
		return 0;
	case DECISION_ASK:
		return 3;
	case DECISION_DENY:
		break;
	}
	return 1;
}

static void put_programs(struct json *j, const struct shell_line *line)
{
	json_open(j, "programs", '[');
	for (size_t i = 0; i < line->n_commands; i++) {
		json_open(j, NULL, '[');
		for (size_t k = 0; k < line->commands[i].n; k++)
			json_str(j, NULL,
				 line->words[line->commands[i].first + k]);
		json_close(j, ']');
	}
	json_close(j, ']');
}

static void tell_json(const struct answer *a)
{
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, 4 << 20);
	json_open(&j, NULL, '{');
	json_str(&j, "decision", decision_name(a->decision));
	json_str(&j, a->what, a->text);
	if (a->file) {
		json_str(&j, "file", a->file);
		json_int(&j, "line", a->line);
	}
	json_str(&j, "why", a->why);
	if (a->programs)
		put_programs(&j, a->programs);
	if (a->also && a->also->n > 0) {
		json_open(&j, "also", '[');
		for (size_t i = 0; i < a->also->n; i++)
			json_str(&j, NULL, a->also->v[i]);
		json_close(&j, ']');
	}
	json_close(&j, '}');
	(void)buf_puts(&out, "\n");
	(void)io_write_all(1, out.data, out.len);
	buf_done(&out);
}

static int tell(const struct answer *a, bool as_json)
{
	if (as_json)
		tell_json(a);
	else if (a->file)
		printf("%s: %s (%s:%u)\n", decision_name(a->decision), a->why,
		       a->file, a->line);
	else
		printf("%s: %s\n", decision_name(a->decision), a->why);
	for (size_t i = 0; !as_json && a->also && i < a->also->n; i++)
		printf("also: %s\n", a->also->v[i]);
	return exit_of(a->decision);
}

static int explain_command(const struct policy *p, const char *text, size_t len,
			   bool as_json)
{
	static struct shell_line line;
	struct judgement j;
	struct answer a = { .what = "command", .text = text };

	if (!p->has_commands) {
		a.decision = policy_list_has(&p->always, "commands")
				     ? DECISION_ASK
				     : DECISION_ALLOW;
		a.why = a.decision == DECISION_ASK
				? "approvals.always has 'commands'"
				: "this policy has no 'commands': any program "
				  "may run, inside the box";
		a.file = p->always.at.file;
		a.line = p->always.at.line;
		return tell(&a, as_json);
	}
	commands_judge_text(&p->commands, text, len, &line, &j);
	a.decision = j.decision;
	a.why = j.why;
	if (j.rule) {
		a.file = j.rule->file;
		a.line = j.rule->line;
	}
	if (j.decision == DECISION_ALLOW &&
	    policy_list_has(&p->always, "commands")) {
		a.decision = DECISION_ASK;
		a.why = "approvals.always has 'commands'";
	}
	a.programs = j.decision == DECISION_DENY ? NULL : &line;
	return tell(&a, as_json);
}

static void add_words(struct buf *b, const char *name,
		      const struct policy_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		(void)buf_printf(b, "%s%s", i ? ", " : name, l->v[i]);
}

static bool is_read(const struct policy_host *h)
{
	return h->methods.n || h->paths.n || h->secret_env;
}

/* What the rule says of requests: each in a few words after the reason. */
static void add_terms(struct buf *b, const struct policy_host *h)
{
	add_words(b, "; methods ", &h->methods);
	add_words(b, "; paths ", &h->paths);
	if (h->secret_env)
		(void)buf_printf(b, "; secret %s in %s %s", h->secret_env,
				 h->secret_header  ? "header"
				 : h->secret_query ? "query"
						   : "body",
				 h->secret_header  ? h->secret_header
				 : h->secret_query ? h->secret_query
						   : h->secret_body);
}

/* And of the connection. */
static void add_quotas(struct buf *b, const struct policy_host *h)
{
	if (h->bytes)
		(void)buf_printf(b, "; at most %llu bytes",
				 (unsigned long long)h->bytes);
	if (h->connections)
		(void)buf_printf(b, "; at most %llu connections",
				 (unsigned long long)h->connections);
	if (h->rate)
		(void)buf_printf(b, "; at most %llu new ones a%s",
				 (unsigned long long)h->rate,
				 h->rate_seconds == 1    ? " second"
				 : h->rate_seconds == 60 ? " minute"
							 : "n hour");
}

/* Where `resolve` sends it. */
static void add_address(struct buf *b, const struct policy *p, const char *text)
{
	const char *given = NULL;
	char host[256];
	char name[256];
	uint16_t port;
	uint16_t of;

	if (value_target(text, host, &port) < 0)
		return;
	for (size_t i = 0; i < p->n_resolve; i++) {
		const struct policy_pair *r = &p->resolve[i];

		if (value_target(r->name, name, &of) < 0 ||
		    strcmp(name, host) != 0)
			continue;
		if (of == port || (of == 0 && !given))
			given = r->value;
		if (of == port)
			break;
	}
	if (given)
		(void)buf_printf(b, "; resolve says %s", given);
}

/*
 * Rules that requests may use besides the one that lets the connection in; true
 * if one of all wants requests to be read.
 */
static bool add_others(struct strv *ret, const struct policy *p,
		       const char *text, const struct policy_host *first)
{
	bool wants = is_read(first);

	for (const struct policy_host *h = network_next(p, text, NULL); h;
	     h = network_next(p, text, h)) {
		struct buf line;

		if (h == first)
			continue;
		wants |= is_read(h);
		buf_init(&line, 65536);
		(void)buf_printf(&line, "network.allow names host '%s'",
				 h->host);
		add_terms(&line, h);
		(void)buf_printf(&line, " (%s:%u)", h->at.file, h->at.line);
		if (!line.error)
			(void)strv_add(ret, line.data);
		buf_done(&line);
	}
	return wants;
}

/* Port 80 is plain HTTP, which is read as it is. */
static const char *how_read(const char *text)
{
	char host[256];
	uint16_t port = 0;

	return value_target(text, host, &port) == 0 && port == 80
		       ? "; requests are read"
		       : "; TLS is opened, requests are read";
}

static int explain_connect(const struct policy *p, const char *text,
			   bool as_json)
{
	struct network_judgement j;
	struct strv also = { 0 };
	struct answer a = { .what = "connect", .text = text, .also = &also };
	struct buf why;
	int code;

	network_judge(p, text, &j);
	buf_init(&why, 65536);
	(void)buf_puts(&why, j.why);
	if (j.rule) {
		a.file = j.rule->at.file;
		a.line = j.rule->at.line;
		add_terms(&why, j.rule);
		if (add_others(&also, p, text, j.rule))
			(void)buf_puts(&why, how_read(text));
		add_quotas(&why, j.rule);
		add_address(&why, p, text);
	}
	a.decision = j.decision;
	a.why = why.data ? why.data : j.why;
	code = tell(&a, as_json);
	buf_done(&why);
	strv_done(&also);
	return code;
}

static int bad_call(void)
{
	say("policy explain takes [--policy FILE] [--json] and either "
	    "--command "
	    "STRING or --connect HOST:PORT; - reads the string from standard "
	    "input");
	return EXIT_OURS;
}

struct call {
	const char *policy;
	const char *command;
	const char *connect;
	bool json;
};

static int parse_call(int argc, char **argv, struct call *ret)
{
	const struct {
		const char *name;
		const char **to;
	} flags[] = { { "--policy", &ret->policy },
		      { "--command", &ret->command },
		      { "--connect", &ret->connect } };

	for (int i = 1; i < argc; i++) {
		bool known = strcmp(argv[i], "--json") == 0;

		ret->json |= known;
		for (size_t k = 0; !known && k < ARRAY_SIZE(flags); k++) {
			size_t len = strlen(flags[k].name);

			if (strncmp(argv[i], flags[k].name, len) != 0)
				continue;
			known = true;
			if (argv[i][len] == '=')
				*flags[k].to = argv[i] + len + 1;
			else if (!argv[i][len] && i + 1 < argc)
				*flags[k].to = argv[++i];
			else
				return -EINVAL;
		}
		if (!known)
			return -EINVAL;
	}
	return !ret->command == !ret->connect ? -EINVAL : 0;
}

/* All of standard input; more than can be judged is still read as such. */
static int read_input(struct buf *ret)
{
	char chunk[16384];
	ssize_t n;

	buf_init(ret, 16 << 20);
	while ((n = read(0, chunk, sizeof(chunk))) > 0)
		if (buf_add(ret, chunk, (size_t)n) < 0)
			return -E2BIG;
	if (n == 0 && !ret->data)
		return buf_add(ret, "", 0);
	return n < 0 ? -errno : 0;
}

int policy_cmd_explain(int argc, char **argv)
{
	struct call call = { 0 };
	struct compiled c = { 0 };
	struct buf input;
	int code = EXIT_OURS;

	if (parse_call(argc, argv, &call) < 0)
		return bad_call();
	if (compiled_open(call.policy, &c) < 0)
		return EXIT_OURS;
	buf_init(&input, 1);
	if (call.connect) {
		code = explain_connect(c.policy, call.connect, call.json);
	} else if (strcmp(call.command, "-") != 0) {
		code = explain_command(c.policy, call.command,
				       strlen(call.command), call.json);
	} else if (read_input(&input) < 0) {
		say("standard input cannot be read, or is larger than 16 MiB");
	} else {
		code = explain_command(c.policy, input.data ? input.data : "",
				       input.len, call.json);
	}
	buf_done(&input);
	compiled_done(&c);
	return code;
}
