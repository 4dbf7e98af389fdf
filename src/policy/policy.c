/* SPDX-License-Identifier: Apache-2.0 */

/* The sections of a policy, typed; and what is out of range in them. */

#include "policy/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"
#include "policy/typed.h"

static void read_mount(struct typed_reader *r, const char *top, void *item)
{
	struct policy_mount *m = item;
	const char *mode = typed_text(r, top, "mode");

	m->at = typed_origin(r, top, "from");
	m->from = typed_text(r, top, "from");
	m->to = typed_text(r, top, "to");
	m->is_rw = mode && strcmp(mode, "rw") == 0;
	if (!m->from || !m->to || m->from[0] != '/')
		(void)typed_fail(r, &m->at, "a mount needs 'from' and 'to'");
}

/* A place in memory is a writable place: the two lists must agree. */
static void read_tmpfs(struct typed_reader *r)
{
	struct policy *p = r->p;
	struct policy_pair *pairs;

	p->tmpfs = typed_pairs(r, "sandbox.tmpfs", &p->n_tmpfs);
	pairs = (struct policy_pair *)p->tmpfs;
	for (size_t i = 0; i < p->n_tmpfs; i++) {
		if (num_parse_size(pairs[i].value, &pairs[i].size) < 0)
			(void)typed_fail(r, &pairs[i].at,
					 "a size cannot be read");
		if (p->writable.is_stated &&
		    !policy_list_has(&p->writable, pairs[i].name))
			(void)typed_fail(r, &pairs[i].at,
					 "a place under 'tmpfs' is not in "
					 "'writable'; add it there too");
	}
}

static void read_sandbox(struct typed_reader *r)
{
	struct policy *p = r->p;

	typed_numbers(r, "sandbox", p->numbers);
	typed_word(r, "sandbox", "isolation", &p->isolation);
	typed_word(r, "sandbox", "user", &p->user);
	typed_word(r, "sandbox", "read_only", &p->read_only);
	typed_list(r, "sandbox", "images", &p->images);
	typed_list(r, "sandbox", "writable", &p->writable);
	typed_list(r, "sandbox", "mount_roots", &p->mount_roots);
	typed_list(r, "sandbox", "env_from_host", &p->env_from_host);
	typed_list(r, "sandbox", "require", &p->require);
	for (size_t i = 0; i < p->mount_roots.n; i++)
		if (p->mount_roots.v[i][0] != '/')
			(void)typed_fail(r, &p->mount_roots.origins[i],
					 "a root of mounts is not absolute");
	p->mounts = typed_items(r, "sandbox.mounts", sizeof(*p->mounts),
				read_mount, &p->n_mounts);
	read_tmpfs(r);
	p->env = typed_pairs(r, "sandbox.env", &p->n_env);
}

static enum operands operands_of(const char *word)
{
	if (!word || strcmp(word, "grammar") == 0)
		return OPERANDS_GRAMMAR;
	if (strcmp(word, "any") == 0)
		return OPERANDS_ANY;
	if (strcmp(word, "paths") == 0)
		return OPERANDS_PATHS;
	return OPERANDS_NONE;
}

static void read_rule(struct typed_reader *r, const char *top, void *item)
{
	struct command_rule *ret = item;
	const struct origin at = typed_origin(r, top, "name");
	struct policy_list list = { 0 };
	char args[TYPED_PATH];
	char second[TYPED_PATH];

	ret->file = at.file;
	ret->line = at.line;
	ret->name = typed_text(r, top, "name");
	if (!ret->name)
		(void)typed_fail(r, &at, "a command has no 'name'");
	typed_list(r, top, "sub", &list);
	ret->sub = list.is_stated ? list.v : NULL;
	memset(&list, 0, sizeof(list));
	typed_list(r, top, "flags", &list);
	ret->flags = list.is_stated ? list.v : NULL;
	ret->operands = operands_of(typed_text(r, top, "operands"));
	if (!JOIN(args, "%s.args.0", top) || !JOIN(second, "%s.args.1", top) ||
	    flat_below(&r->p->flat, second)) {
		const struct origin o = origin_of(
			flat_below(&r->p->flat, second));

		(void)typed_fail(r, o.file ? &o : &at,
				 "'args' takes one {script: DIR}");
		return;
	}
	ret->script = typed_text(r, args, "script");
	/* An empty list of arguments: none. */
	if (typed_get(r, top, "args"))
		ret->operands = OPERANDS_NONE;
}

static const struct command_rule *read_rules(struct typed_reader *r,
					     const char *path, size_t *ret_n)
{
	return typed_items(r, path, sizeof(struct command_rule), read_rule,
			   ret_n);
}

/* "https://host", "http://host:8080": what a URL may begin with. */
static const char *url_of(struct typed_reader *r, const char *scheme,
			  const char *host, uint16_t port)
{
	bool is_usual = port == (scheme[4] ? 443 : 80);
	size_t size = strlen(host) + 32;
	char *text = typed_memory(r, size, 1);

	if (!text)
		return NULL;
	(void)snprintf(text, size, is_usual ? "%s://%s" : "%s://%s:%u", scheme,
		       host, port);
	return text;
}

/* The hosts and ports of `network.allow`, for programs that take URLs. */
static const char *const *read_urls(struct typed_reader *r)
{
	const struct policy *p = r->p;
	const char **urls;
	size_t n = 0;

	for (size_t i = 0; i < p->n_allow_hosts; i++)
		n += 2 * p->allow_hosts[i].n_ports;
	urls = typed_memory(r, n, sizeof(*urls));
	n = 0;
	for (size_t i = 0; urls && i < p->n_allow_hosts; i++)
		for (size_t k = 0; k < p->allow_hosts[i].n_ports; k++) {
			const struct policy_host *h = &p->allow_hosts[i];

			urls[n++] = url_of(r, "https", h->host, h->ports[k]);
			urls[n++] = url_of(r, "http", h->host, h->ports[k]);
			if (r->has_failed)
				return NULL;
		}
	return urls;
}

static void read_commands(struct typed_reader *r)
{
	struct policy *p = r->p;
	struct command_rules *c = &p->commands;
	const struct flat_line *l = flat_below(&p->flat, "commands");
	const char *otherwise = typed_text(r, "commands", "otherwise");

	p->has_commands = l != NULL;
	p->commands_at = origin_of(l);
	c->allow = read_rules(r, "commands.allow", &c->n_allow);
	c->ask = read_rules(r, "commands.ask", &c->n_ask);
	c->deny = read_rules(r, "commands.deny", &c->n_deny);
	c->ask_otherwise = otherwise && strcmp(otherwise, "ask") == 0;
	c->hosts = read_urls(r);
}

/* A tool's name ends where agents, approval or sandbox begins. */
static size_t next_tool(struct typed_reader *r, size_t at, char *ret,
			size_t size, struct origin *ret_at)
{
	const struct flat_line *l = flat_next(&r->p->flat, "tools", &at);
	const char *next;

	if (!l)
		return 0;
	*ret_at = origin_of(l);
	if (flat_part(l->path + strlen("tools."), ret, size, &next) < 0) {
		(void)typed_fail(r, ret_at,
				 "the name of a tool cannot be read");
		return 0;
	}
	return at;
}

static void read_tool(struct typed_reader *r, const char *path,
		      const char *name, struct policy_tool *ret)
{
	char sandbox[TYPED_PATH];
	char *copy = typed_memory(r, strlen(name), 1);
	const char *approval = typed_text(r, path, "approval");

	if (!copy)
		return;
	(void)strcpy(copy, name);
	ret->name = copy;
	ret->at = origin_of(flat_below(&r->p->flat, path));
	typed_list(r, path, "agents", &ret->agents);
	ret->always_asks = approval && strcmp(approval, "always") == 0;
	ret->never_asks = approval && strcmp(approval, "never") == 0;
	if (!JOIN(sandbox, "%s.sandbox", path))
		(void)typed_fail(r, &ret->at, "the name of a tool is too long");
	typed_numbers(r, sandbox, ret->numbers);
	for (int i = 0; i < POLICY_NUMBERS; i++)
		if (ret->numbers[i].is_stated && r->p->numbers[i].is_stated &&
		    ret->numbers[i].value > r->p->numbers[i].value)
			(void)typed_fail(r, &ret->numbers[i].at,
					 "a tool may only narrow: a number is "
					 "above that of 'sandbox'");
}

/* The part of a line's path that names its tool, as written. */
static void tool_path(const struct flat_line *l, char *ret, size_t size)
{
	const char *end = l->path + strlen("tools.");

	while (*end && *end != '.')
		end += *end == '\\' && end[1] ? 2 : 1;
	(void)snprintf(ret, size, "%.*s", (int)(end - l->path), l->path);
}

static void read_tools(struct typed_reader *r)
{
	struct policy *p = r->p;
	size_t max = 0;
	size_t at = 0;
	char path[TYPED_PATH] = "";
	struct policy_tool *tools;

	while (flat_next(&p->flat, "tools", &at))
		max++;
	tools = typed_memory(r, max, sizeof(*tools));
	for (at = 0; tools && max > 0 && !r->has_failed; max--) {
		char name[200];
		char now[TYPED_PATH];
		struct origin where;

		at = next_tool(r, at, name, sizeof(name), &where);
		if (at == 0)
			break;
		tool_path(p->flat.sorted[at - 1], now, sizeof(now));
		if (strcmp(now, path) == 0)
			continue;
		(void)strcpy(path, now);
		read_tool(r, path, name, &tools[p->n_tools++]);
	}
	p->tools = tools;
}

static void read_filter(struct typed_reader *r, const char *top, void *item)
{
	struct policy_filter *f = item;
	char match[80];

	(void)snprintf(match, sizeof(match), "%s.match", top);
	f->at = typed_origin(r, top, "do");
	f->regex = typed_text(r, match, "regex");
	if (!f->regex)
		typed_list(r, top, "match", &f->match);
	typed_list(r, top, "on", &f->on);
	f->action = typed_text(r, top, "do");
	f->reason = typed_text(r, top, "reason");
	if (!f->action || !f->on.is_stated ||
	    (!f->regex && !f->match.is_stated))
		(void)typed_fail(r, &f->at,
				 "a filter needs 'on', 'match' and 'do'");
}

static void read_filters(struct typed_reader *r)
{
	struct policy *p = r->p;

	p->filters = typed_items(r, "filters", sizeof(*p->filters), read_filter,
				 &p->n_filters);
}

static void read_test(struct typed_reader *r, const char *top, void *item)
{
	struct policy_test *ret = item;
	const char *expect = typed_text(r, top, "expect");
	struct origin layer;
	char sub[80];

	ret->at = typed_origin(r, top, "name");
	ret->name = typed_text(r, top, "name");
	typed_list(r, top, "run", &ret->run);
	ret->command = typed_text(r, top, "command");
	ret->connect = typed_text(r, top, "connect");
	ret->layer = typed_text(r, top, "layer");
	layer = origin_of(typed_get(r, top, "layer"));
	(void)snprintf(sub, sizeof(sub), "%s.code", top);
	ret->code_lang = typed_text(r, sub, "lang");
	ret->code_text = typed_text(r, sub, "text");
	(void)snprintf(sub, sizeof(sub), "%s.expect", top);
	ret->cause = typed_text(r, sub, "cause");
	ret->expect = ret->cause ? EXPECT_CAUSE : EXPECT_DENIED;
	if (expect && strcmp(expect, "allowed") == 0)
		ret->expect = EXPECT_ALLOWED;
	else if (expect && strcmp(expect, "ask") == 0)
		ret->expect = EXPECT_ASK;
	if (ret->layer && ret->expect != EXPECT_DENIED)
		(void)typed_fail(
			r, &layer,
			"'layer' says which layer denies; it goes with "
			"'expect: denied' only");
	if (ret->layer && ret->connect && strcmp(ret->layer, "net") != 0)
		(void)typed_fail(r, &layer,
				 "a connection is denied by the layer net");
	if (!ret->name || (!expect && !ret->cause) ||
	    (ret->run.n > 0) + (ret->command != NULL) +
			    (ret->code_lang && ret->code_text) +
			    (ret->connect != NULL) !=
		    1)
		(void)typed_fail(
			r, &ret->at,
			"a test needs 'name', 'expect' and one of 'run', "
			"'command', 'code' and 'connect'");
}

static void read_tests(struct typed_reader *r)
{
	struct policy *p = r->p;

	p->tests = typed_items(r, "tests", sizeof(*p->tests), read_test,
			       &p->n_tests);
}

static void read_rest(struct typed_reader *r)
{
	struct policy *p = r->p;
	const char *expire = typed_text(r, "approvals", "expire");

	if (expire && num_parse_duration(expire, &p->expire_us) < 0)
		(void)typed_fail(r, NULL, "approvals.expire cannot be read");
	typed_list(r, "approvals", "ask", &p->ask);
	typed_list(r, "approvals", "always", &p->always);
	typed_list(r, "approvals", "code_patterns", &p->code_patterns);
	typed_word(r, "images", "pull", &p->pull);
	typed_list(r, "images", "registries", &p->registries);
	typed_word(r, "docker", "over_ceiling", &p->over_ceiling);
	typed_word(r, "docker", "allow_root_inside", &p->allow_root_inside);
	typed_word(r, "docker", "bind_symlinks", &p->bind_symlinks);
	typed_list(r, "ledger", "keep_text", &p->keep_text);
	typed_list(r, "ledger", "redact", &p->redact);
}

struct policy *policy_parse(const char *text, size_t len, struct err *err)
{
	static void (*const sections[])(struct typed_reader *) = {
		read_sandbox, policy_read_network, read_commands, read_tools,
		read_filters, read_rest,           read_tests,
	};
	struct policy *p = calloc(1, sizeof(*p));
	struct typed_reader r = { .p = p, .err = err };
	const struct flat_line *version;

	if (!p) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	if (flat_parse(text, len, &p->flat, err) < 0) {
		free(p);
		return NULL;
	}
	r.file = p->flat.sources[0].name;
	version = flat_get(&p->flat, "version");
	if (!version || flat_get(&p->flat, "extends"))
		(void)typed_fail(&r, NULL, "it was not compiled");
	for (size_t i = 0; !r.has_failed && i < ARRAY_SIZE(sections); i++)
		sections[i](&r);
	if (r.has_failed) {
		policy_free(p);
		return NULL;
	}
	return p;
}

void policy_free(struct policy *p)
{
	struct policy_block *next;

	if (!p)
		return;
	for (struct policy_block *b = p->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	flat_done(&p->flat);
	free(p);
}

bool policy_list_has(const struct policy_list *l, const char *word)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i], word) == 0)
			return true;
	return false;
}
