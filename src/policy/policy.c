/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"
#include "policy/values.h"

#define PATH_MAX_FLAT 512

struct policy_block {
	struct policy_block *next;
	_Alignas(16) char data[];
};

/* The reader: fails once, and then does nothing more. */
struct reader {
	struct policy *p;
	struct err *err;
	const char *file; /* for what stands nowhere */
	bool has_failed;
};

static int cannot(struct reader *r, const struct origin *at, const char *what)
{
	if (!r->has_failed)
		(void)err_set(r->err, EBADMSG, "%.200s:%u:%u: %s",
			      at && at->file ? at->file : r->file,
			      at && at->file ? at->line : 1,
			      at && at->file ? at->column : 1, what);
	r->has_failed = true;
	return -EBADMSG;
}

static void *get_memory(struct reader *r, size_t n, size_t size)
{
	struct policy_block *b = calloc(1, sizeof(*b) + (n + 1) * size);

	if (!b) {
		(void)err_set(r->err, ENOMEM, "out of memory");
		r->has_failed = true;
		return NULL;
	}
	b->next = r->p->blocks;
	r->p->blocks = b;
	return b->data;
}

static struct origin origin_of(const struct flat_line *l)
{
	return l ? (struct origin){ l->file, l->line, l->column }
		 : (struct origin){ 0 };
}

#define JOIN(buf, ...)                                                         \
	((size_t)snprintf(buf, sizeof(buf), __VA_ARGS__) < sizeof(buf))

/* "top.key", by hand: this is most of what a run does with a policy. */
static bool join(char ret[PATH_MAX_FLAT], const char *top, const char *key)
{
	size_t a = strlen(top);
	size_t b = strlen(key);

	if (a + b + 2 > PATH_MAX_FLAT)
		return false;
	memcpy(ret, top, a);
	ret[a] = '.';
	memcpy(ret + a + 1, key, b);
	ret[a + 1 + b] = '\0';
	return true;
}

static const struct flat_line *get(struct reader *r, const char *top,
				   const char *key)
{
	char path[PATH_MAX_FLAT];

	if (!join(path, top, key)) {
		(void)cannot(r, NULL, "a path is too long");
		return NULL;
	}
	return flat_get(&r->p->flat, path);
}

static const char *text_of(struct reader *r, const char *top, const char *key)
{
	const struct flat_line *l = get(r, top, key);

	return l ? l->value : NULL;
}

/* Where an item of a list stands: where its leading key does. */
static struct origin item_origin(struct reader *r, const char *top,
				 const char *key)
{
	const struct flat_line *l = get(r, top, key);

	return origin_of(l ? l : flat_below(&r->p->flat, top));
}

static void read_word(struct reader *r, const char *top, const char *key,
		      struct policy_word *ret)
{
	const struct flat_line *l = get(r, top, key);

	ret->text = l ? l->value : NULL;
	ret->at = origin_of(l);
}

static bool has_item(struct reader *r, const char *path, size_t i)
{
	char item[PATH_MAX_FLAT];

	return JOIN(item, "%s.%zu", path, i) && flat_below(&r->p->flat, item);
}

/*
 * How many items a list has. They are numbered without gaps: an item that is
 * left out would be a rule that nobody sees.
 */
static size_t count_items(struct reader *r, const char *path)
{
	const struct flat_line *l;
	size_t at = 0;
	size_t n = 0;

	while (has_item(r, path, n))
		n++;
	while ((l = flat_next(&r->p->flat, path, &at))) {
		char part[16];
		const char *next;
		uint64_t index;

		if (flat_part(l->path + strlen(path) + 1, part, sizeof(part),
			      &next) < 0 ||
		    num_parse(part, n ? n - 1 : 0, &index) < 0 || n == 0) {
			const struct origin o = origin_of(l);

			(void)cannot(r, &o, "an item of a list is missing");
			return 0;
		}
	}
	return n;
}

static void read_list(struct reader *r, const char *top, const char *key,
		      struct policy_list *ret)
{
	char path[PATH_MAX_FLAT];
	const struct flat_line *first;
	struct origin *origins;
	const char **v;

	if (!join(path, top, key)) {
		(void)cannot(r, NULL, "a path is too long");
		return;
	}
	first = flat_below(&r->p->flat, path);
	if (!first)
		return;
	ret->n = count_items(r, path);
	ret->is_stated = true;
	ret->at = origin_of(first);
	v = get_memory(r, ret->n, sizeof(*v));
	origins = get_memory(r, ret->n, sizeof(*origins));
	if (!v || !origins) {
		ret->n = 0;
		return;
	}
	for (size_t i = 0; i < ret->n; i++) {
		char number[24];
		const struct flat_line *l;

		(void)snprintf(number, sizeof(number), "%zu", i);
		l = get(r, path, number);
		if (!l) {
			(void)cannot(r, &ret->at, "a list holds no words");
			ret->n = 0;
			return;
		}
		v[i] = l->value;
		origins[i] = origin_of(l);
	}
	ret->v = v;
	ret->origins = origins;
}

/* Names of the user's own with one value each. */
static const struct policy_pair *read_pairs(struct reader *r, const char *path,
					    size_t *ret_n)
{
	const struct flat_line *l;
	struct policy_pair *pairs;
	size_t at = 0;
	size_t n = 0;

	while (flat_next(&r->p->flat, path, &at))
		n++;
	pairs = get_memory(r, n, sizeof(*pairs));
	at = 0;
	for (size_t i = 0;
	     pairs && i < n && (l = flat_next(&r->p->flat, path, &at)); i++) {
		const char *key = l->path + strlen(path) + 1;
		char *name = get_memory(r, strlen(key), 1);
		const char *next;

		if (!name)
			return NULL;
		if (flat_part(key, name, strlen(key) + 1, &next) < 0 || next) {
			const struct origin o = origin_of(l);

			(void)cannot(r, &o, "a name cannot be read");
			return NULL;
		}
		pairs[i].name = name;
		pairs[i].value = l->value;
		pairs[i].at = origin_of(l);
	}
	*ret_n = pairs ? n : 0;
	return pairs;
}

static int parse_plain(const char *t, uint64_t *ret)
{
	return num_parse(t, UINT64_MAX, ret);
}

static const struct {
	const char *name;
	int (*parse)(const char *text, uint64_t *ret);
} numbers[] = {
	[POLICY_TIMEOUT] = { "timeout", num_parse_duration },
	[POLICY_CPU_TIME] = { "cpu_time", num_parse_duration },
	[POLICY_MEMORY] = { "memory", num_parse_size },
	[POLICY_CPUS] = { "cpus", num_parse_milli },
	[POLICY_PIDS] = { "pids", parse_plain },
	[POLICY_OUTPUT] = { "output", num_parse_size },
	[POLICY_DISK] = { "disk", num_parse_size },
	[POLICY_FILES] = { "files", parse_plain },
};
_Static_assert(ARRAY_SIZE(numbers) == POLICY_NUMBERS, "a number has no name");

const char *policy_number_name(enum policy_number n)
{
	return numbers[n].name;
}

static void read_numbers(struct reader *r, const char *top,
			 struct policy_value *ret)
{
	for (int i = 0; i < POLICY_NUMBERS; i++) {
		const struct flat_line *l = get(r, top, numbers[i].name);

		if (!l)
			continue;
		ret[i].at = origin_of(l);
		ret[i].text = l->value;
		if (numbers[i].parse(l->value, &ret[i].value) < 0)
			(void)cannot(r, &ret[i].at, "a number cannot be read");
		ret[i].is_stated = true;
	}
}

static void read_mounts(struct reader *r)
{
	size_t n = count_items(r, "sandbox.mounts");
	struct policy_mount *m = get_memory(r, n, sizeof(*m));

	for (size_t i = 0; m && i < n; i++) {
		char top[64];
		const char *mode;

		(void)snprintf(top, sizeof(top), "sandbox.mounts.%zu", i);
		m[i].at = item_origin(r, top, "from");
		m[i].from = text_of(r, top, "from");
		m[i].to = text_of(r, top, "to");
		mode = text_of(r, top, "mode");
		m[i].is_rw = mode && strcmp(mode, "rw") == 0;
		if (!m[i].from || !m[i].to || m[i].from[0] != '/')
			(void)cannot(r, &m[i].at,
				     "a mount needs 'from' and 'to'");
	}
	r->p->mounts = m;
	r->p->n_mounts = m ? n : 0;
}

/* A place in memory is a writable place: the two lists must agree. */
static void read_tmpfs(struct reader *r)
{
	struct policy *p = r->p;
	struct policy_pair *pairs;

	p->tmpfs = read_pairs(r, "sandbox.tmpfs", &p->n_tmpfs);
	pairs = (struct policy_pair *)p->tmpfs;
	for (size_t i = 0; i < p->n_tmpfs; i++) {
		if (num_parse_size(pairs[i].value, &pairs[i].size) < 0)
			(void)cannot(r, &pairs[i].at, "a size cannot be read");
		if (p->writable.is_stated &&
		    !policy_list_has(&p->writable, pairs[i].name))
			(void)cannot(r, &pairs[i].at,
				     "a place under 'tmpfs' is not in "
				     "'writable'; add it there too");
	}
}

static void read_sandbox(struct reader *r)
{
	struct policy *p = r->p;

	read_numbers(r, "sandbox", p->numbers);
	read_word(r, "sandbox", "isolation", &p->isolation);
	read_word(r, "sandbox", "user", &p->user);
	read_word(r, "sandbox", "read_only", &p->read_only);
	read_list(r, "sandbox", "images", &p->images);
	read_list(r, "sandbox", "writable", &p->writable);
	read_list(r, "sandbox", "mount_roots", &p->mount_roots);
	read_list(r, "sandbox", "env_from_host", &p->env_from_host);
	read_list(r, "sandbox", "require", &p->require);
	for (size_t i = 0; i < p->mount_roots.n; i++)
		if (p->mount_roots.v[i][0] != '/')
			(void)cannot(r, &p->mount_roots.origins[i],
				     "a root of mounts is not absolute");
	read_mounts(r);
	read_tmpfs(r);
	p->env = read_pairs(r, "sandbox.env", &p->n_env);
}

static void read_ports(struct reader *r, const char *top,
		       struct policy_host *ret)
{
	struct policy_list list = { 0 };
	uint16_t *ports;

	read_list(r, top, "ports", &list);
	ret->n_ports = list.is_stated ? list.n : 1;
	ports = get_memory(r, ret->n_ports, sizeof(*ports));
	if (!ports || r->has_failed)
		return;
	ports[0] = list.is_stated ? 0 : 443;
	for (size_t i = 0; i < list.n; i++) {
		uint64_t port = 0;

		if (num_parse(list.v[i], 65535, &port) < 0)
			(void)cannot(r, &list.origins[i],
				     "a port cannot be read");
		ports[i] = (uint16_t)port;
	}
	ret->ports = ports;
}

static void read_host(struct reader *r, const char *top,
		      struct policy_host *ret)
{
	char secret[PATH_MAX_FLAT];
	const char *bytes = text_of(r, top, "bytes");

	ret->at = item_origin(r, top, "host");
	ret->host = text_of(r, top, "host");
	if (!ret->host)
		(void)cannot(r, &ret->at, "a rule has no 'host'");
	read_ports(r, top, ret);
	read_list(r, top, "methods", &ret->methods);
	read_list(r, top, "paths", &ret->paths);
	if (JOIN(secret, "%s.secret", top)) {
		ret->secret_env = text_of(r, secret, "env");
		ret->secret_header = text_of(r, secret, "header");
		ret->secret_format = text_of(r, secret, "format");
	}
	if (bytes && num_parse_size(bytes, &ret->bytes) < 0)
		(void)cannot(r, &ret->at, "a size cannot be read");
}

static const struct policy_host *read_hosts(struct reader *r, const char *path,
					    size_t *ret_n)
{
	size_t n = count_items(r, path);
	struct policy_host *hosts = get_memory(r, n, sizeof(*hosts));

	for (size_t i = 0; hosts && i < n; i++) {
		char top[64];

		(void)snprintf(top, sizeof(top), "%s.%zu", path, i);
		read_host(r, top, &hosts[i]);
	}
	*ret_n = hosts ? n : 0;
	return hosts;
}

static void read_network(struct reader *r)
{
	struct policy *p = r->p;

	p->allow_hosts = read_hosts(r, "network.allow", &p->n_allow_hosts);
	p->ask_hosts = read_hosts(r, "network.ask", &p->n_ask_hosts);
	p->resolve = read_pairs(r, "network.resolve", &p->n_resolve);
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

static void read_rule(struct reader *r, const char *top,
		      struct command_rule *ret)
{
	const struct origin at = item_origin(r, top, "name");
	struct policy_list list = { 0 };
	char args[PATH_MAX_FLAT];
	char second[PATH_MAX_FLAT];

	ret->file = at.file;
	ret->line = at.line;
	ret->name = text_of(r, top, "name");
	if (!ret->name)
		(void)cannot(r, &at, "a command has no 'name'");
	read_list(r, top, "sub", &list);
	ret->sub = list.is_stated ? list.v : NULL;
	memset(&list, 0, sizeof(list));
	read_list(r, top, "flags", &list);
	ret->flags = list.is_stated ? list.v : NULL;
	ret->operands = operands_of(text_of(r, top, "operands"));
	if (!JOIN(args, "%s.args.0", top) || !JOIN(second, "%s.args.1", top) ||
	    flat_below(&r->p->flat, second)) {
		const struct origin o = origin_of(
			flat_below(&r->p->flat, second));

		(void)cannot(r, o.file ? &o : &at,
			     "'args' takes one {script: DIR}");
		return;
	}
	ret->script = text_of(r, args, "script");
	/* An empty list of arguments: none. */
	if (get(r, top, "args"))
		ret->operands = OPERANDS_NONE;
}

static const struct command_rule *read_rules(struct reader *r, const char *path,
					     size_t *ret_n)
{
	size_t n = count_items(r, path);
	struct command_rule *rules = get_memory(r, n, sizeof(*rules));

	for (size_t i = 0; rules && i < n; i++) {
		char top[64];

		(void)snprintf(top, sizeof(top), "%s.%zu", path, i);
		read_rule(r, top, &rules[i]);
	}
	*ret_n = rules ? n : 0;
	return rules;
}

static void read_commands(struct reader *r)
{
	struct policy *p = r->p;
	struct command_rules *c = &p->commands;
	const struct flat_line *l = flat_below(&p->flat, "commands");
	const char *otherwise = text_of(r, "commands", "otherwise");
	const char **hosts = get_memory(r, p->n_allow_hosts, sizeof(*hosts));

	p->has_commands = l != NULL;
	p->commands_at = origin_of(l);
	c->allow = read_rules(r, "commands.allow", &c->n_allow);
	c->ask = read_rules(r, "commands.ask", &c->n_ask);
	c->deny = read_rules(r, "commands.deny", &c->n_deny);
	c->ask_otherwise = otherwise && strcmp(otherwise, "ask") == 0;
	for (size_t i = 0; hosts && i < p->n_allow_hosts; i++)
		hosts[i] = p->allow_hosts[i].host;
	c->hosts = hosts;
}

/* A tool's name ends where agents, approval or sandbox begins. */
static size_t next_tool(struct reader *r, size_t at, char *ret, size_t size,
			struct origin *ret_at)
{
	const struct flat_line *l = flat_next(&r->p->flat, "tools", &at);
	const char *next;

	if (!l)
		return 0;
	*ret_at = origin_of(l);
	if (flat_part(l->path + strlen("tools."), ret, size, &next) < 0) {
		(void)cannot(r, ret_at, "the name of a tool cannot be read");
		return 0;
	}
	return at;
}

static void read_tool(struct reader *r, const char *path, const char *name,
		      struct policy_tool *ret)
{
	char sandbox[PATH_MAX_FLAT];
	char *copy = get_memory(r, strlen(name), 1);
	const char *approval = text_of(r, path, "approval");

	if (!copy)
		return;
	(void)strcpy(copy, name);
	ret->name = copy;
	ret->at = origin_of(flat_below(&r->p->flat, path));
	read_list(r, path, "agents", &ret->agents);
	ret->always_asks = approval && strcmp(approval, "always") == 0;
	if (!JOIN(sandbox, "%s.sandbox", path))
		(void)cannot(r, &ret->at, "the name of a tool is too long");
	read_numbers(r, sandbox, ret->numbers);
	for (int i = 0; i < POLICY_NUMBERS; i++)
		if (ret->numbers[i].is_stated && r->p->numbers[i].is_stated &&
		    ret->numbers[i].value > r->p->numbers[i].value)
			(void)cannot(r, &ret->numbers[i].at,
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

static void read_tools(struct reader *r)
{
	struct policy *p = r->p;
	size_t max = 0;
	size_t at = 0;
	char path[PATH_MAX_FLAT] = "";
	struct policy_tool *tools;

	while (flat_next(&p->flat, "tools", &at))
		max++;
	tools = get_memory(r, max, sizeof(*tools));
	for (at = 0; tools && max > 0 && !r->has_failed; max--) {
		char name[200];
		char now[PATH_MAX_FLAT];
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

static void read_filters(struct reader *r)
{
	size_t n = count_items(r, "filters");
	struct policy_filter *f = get_memory(r, n, sizeof(*f));

	for (size_t i = 0; f && i < n; i++) {
		char top[64];
		char match[80];

		(void)snprintf(top, sizeof(top), "filters.%zu", i);
		(void)snprintf(match, sizeof(match), "%s.match", top);
		f[i].at = item_origin(r, top, "do");
		f[i].regex = text_of(r, match, "regex");
		if (!f[i].regex)
			read_list(r, top, "match", &f[i].match);
		read_list(r, top, "on", &f[i].on);
		f[i].action = text_of(r, top, "do");
		f[i].reason = text_of(r, top, "reason");
		if (!f[i].action || !f[i].on.is_stated ||
		    (!f[i].regex && !f[i].match.is_stated))
			(void)cannot(r, &f[i].at,
				     "a filter needs 'on', 'match' and 'do'");
	}
	r->p->filters = f;
	r->p->n_filters = f ? n : 0;
}

static void read_test(struct reader *r, const char *top,
		      struct policy_test *ret)
{
	const char *expect = text_of(r, top, "expect");
	struct origin layer;
	char sub[80];

	ret->at = item_origin(r, top, "name");
	ret->name = text_of(r, top, "name");
	read_list(r, top, "run", &ret->run);
	ret->command = text_of(r, top, "command");
	ret->connect = text_of(r, top, "connect");
	ret->layer = text_of(r, top, "layer");
	layer = origin_of(get(r, top, "layer"));
	(void)snprintf(sub, sizeof(sub), "%s.code", top);
	ret->code_lang = text_of(r, sub, "lang");
	ret->code_text = text_of(r, sub, "text");
	(void)snprintf(sub, sizeof(sub), "%s.expect", top);
	ret->cause = text_of(r, sub, "cause");
	ret->expect = ret->cause ? EXPECT_CAUSE : EXPECT_DENIED;
	if (expect && strcmp(expect, "allowed") == 0)
		ret->expect = EXPECT_ALLOWED;
	else if (expect && strcmp(expect, "ask") == 0)
		ret->expect = EXPECT_ASK;
	if (ret->layer && ret->expect != EXPECT_DENIED)
		(void)cannot(r, &layer,
			     "'layer' says which layer denies; it goes with "
			     "'expect: denied' only");
	if (ret->layer && ret->connect && strcmp(ret->layer, "net") != 0)
		(void)cannot(r, &layer,
			     "a connection is denied by the layer net");
	if (!ret->name || (!expect && !ret->cause) ||
	    (ret->run.n > 0) + (ret->command != NULL) +
			    (ret->code_lang && ret->code_text) +
			    (ret->connect != NULL) !=
		    1)
		(void)cannot(r, &ret->at,
			     "a test needs 'name', 'expect' and one of 'run', "
			     "'command', 'code' and 'connect'");
}

static void read_tests(struct reader *r)
{
	size_t n = count_items(r, "tests");
	struct policy_test *t = get_memory(r, n, sizeof(*t));

	for (size_t i = 0; t && i < n; i++) {
		char top[64];

		(void)snprintf(top, sizeof(top), "tests.%zu", i);
		read_test(r, top, &t[i]);
	}
	r->p->tests = t;
	r->p->n_tests = t ? n : 0;
}

static void read_rest(struct reader *r)
{
	struct policy *p = r->p;
	const char *expire = text_of(r, "approvals", "expire");

	if (expire && num_parse_duration(expire, &p->expire_us) < 0)
		(void)cannot(r, NULL, "approvals.expire cannot be read");
	read_list(r, "approvals", "ask", &p->ask);
	read_list(r, "approvals", "always", &p->always);
	read_word(r, "images", "pull", &p->pull);
	read_list(r, "images", "registries", &p->registries);
	read_word(r, "docker", "over_ceiling", &p->over_ceiling);
	read_word(r, "docker", "allow_root_inside", &p->allow_root_inside);
	read_word(r, "docker", "bind_symlinks", &p->bind_symlinks);
	read_list(r, "ledger", "keep_text", &p->keep_text);
	read_list(r, "ledger", "redact", &p->redact);
}

struct policy *policy_parse(const char *text, size_t len, struct err *err)
{
	static void (*const sections[])(struct reader *) = {
		read_sandbox, read_network, read_commands, read_tools,
		read_filters, read_rest,    read_tests,
	};
	struct policy *p = calloc(1, sizeof(*p));
	struct reader r = { .p = p, .err = err };
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
		(void)cannot(&r, NULL, "it was not compiled");
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
