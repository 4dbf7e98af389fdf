/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/narrow.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "policy/decide.h"
#include "policy/keys.h"
#include "policy/narrow-parts.h"
#include "policy/steer.h"
#include "policy/typed.h"
#include "policy/values.h"

int narrow_looser(struct err *err, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(err, EPERM, "%s", text);
}

const char *narrow_name(const struct policy *p)
{
	return p->flat.sources[0].name;
}

/* With the life of the policy; NULL and *err. */
static void *narrow_memory(struct policy *p, size_t n, size_t size,
			   struct err *err)
{
	struct typed_reader r = { .p = p, .err = err };

	return typed_memory(&r, n, size);
}

static const struct policy_pair *has_pair(const struct policy_pair *pairs,
					  size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(pairs[i].name, name) == 0)
			return &pairs[i];
	return NULL;
}

/* ---- numbers and single words ---- */

static int narrow_numbers(struct policy *p, const struct policy *o,
			  struct err *err)
{
	for (int i = 0; i < POLICY_NUMBERS; i++) {
		struct policy_value *have = &p->numbers[i];
		const struct policy_value *top = &o->numbers[i];

		if (top->is_stated && !have->is_stated)
			*have = *top;
		if (top->is_stated && have->value > top->value)
			return narrow_looser(
				err,
				"sandbox.%s %s (%.80s:%u) is above %s "
				"(%.80s:%u)",
				policy_number_name((enum policy_number)i),
				have->text, have->at.file, have->at.line,
				top->text, top->at.file, top->at.line);
	}
	return 0;
}

/*
 * Those that are no permission are the outer one's where they are not stated;
 * one that is not given is never looser. `other` holds where the outer one does
 * not state it: the tightest, if that depends on the face.
 */
static const struct word {
	const char *path;
	const char *other;
} words[] = {
	{ "sandbox.isolation", "native" },
	{ "sandbox.read_only", "true" },
	{ "network.connections", "256" },
	{ "network.ask_wait", "60s" },
	{ "approvals.expire", "10m" },
	{ "images.pull", "false" },
	{ "docker.over_ceiling", "clamp" },
	{ "docker.allow_root_inside", "false" },
	{ "docker.bind_symlinks", "deny" },
	{ "docker.exec.on_disconnect", "keep" },
	{ "docker.exec.children", "keep" },
	{ "docker.exec.shims", "true" },
	{ "docker.exec.max_output", "none" },
	{ "docker.log_max", "64m" },
};

static const struct grammar *grammar_at(const char *path)
{
	const struct grammar *g = &grammar_policy;
	const char *at = path;

	while (g && at) {
		char part[64];

		if (flat_part(at, part, sizeof(part), &at) < 0)
			return NULL;
		g = grammar_step(g, part);
	}
	return g;
}

static int narrow_words(struct policy *p, const struct policy *o,
			struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *path = words[i].path;
		const struct grammar *g = grammar_at(path);
		const struct flat_line *have = flat_get(&p->flat, path);
		const struct flat_line *top = flat_get(&o->flat, path);
		const char *most = top ? top->value : words[i].other;

		if (have && (!g || grammar_compare(g, have->value, most) > 0))
			return narrow_looser(
				err,
				"%s '%.60s' (%.80s:%u) is looser than "
				"'%.60s' of %.80s",
				path, have->value, have->file, have->line, most,
				narrow_name(o));
	}
	if (!p->isolation.text)
		p->isolation = o->isolation;
	if (!p->over_ceiling.text)
		p->over_ceiling = o->over_ceiling;
	if (!p->bind_symlinks.text)
		p->bind_symlinks = o->bind_symlinks;
	if (!p->connections.is_stated)
		p->connections = o->connections;
	if (!p->ask_wait.is_stated)
		p->ask_wait = o->ask_wait;
	if (!p->expire_us)
		p->expire_us = o->expire_us;
	return 0;
}

static int narrow_user(struct policy *p, const struct policy *o,
		       struct err *err)
{
	uint32_t have[2] = { 0 };
	uint32_t top[2] = { 0 };
	bool may_root = o->allow_root_inside.text &&
			strcmp(o->allow_root_inside.text, "true") == 0;

	if (!p->user.text)
		p->user = o->user;
	if (!p->user.text)
		return 0;
	if (value_user(p->user.text, &have[0], &have[1]) < 0)
		return narrow_looser(err, "sandbox.user cannot be read");
	if (o->user.text && (value_user(o->user.text, &top[0], &top[1]) < 0 ||
			     memcmp(have, top, sizeof(have)) != 0))
		return narrow_looser(
			err, "sandbox.user is %.40s and %.40s in %.100s",
			p->user.text, o->user.text, narrow_name(o));
	if (!o->user.text && (have[0] == 0 || have[1] == 0) && !may_root)
		return narrow_looser(err,
				     "sandbox.user is root, and %.100s has no "
				     "docker.allow_root_inside",
				     narrow_name(o));
	return 0;
}

/* ---- lists of words ---- */

int narrow_miss(struct err *err, const char *what, const char *word,
		const struct policy *without)
{
	return narrow_looser(err, "%s has '%.100s', and %.150s has not", what,
			     word, narrow_name(without));
}

/* Every item of `a` is in `b`. */
static int is_in(const struct policy_list *a, const struct policy_list *b,
		 const char *what, const struct policy *of_b, struct err *err)
{
	for (size_t i = 0; i < a->n; i++)
		if (!policy_list_has(b, a->v[i]))
			return narrow_miss(err, what, a->v[i], of_b);
	return 0;
}

/* More of them is tighter; what is not stated is the outer one's. */
static int narrow_demands(struct policy *p, const struct policy *o,
			  struct err *err)
{
	static const char *const usual[] = { "commands", NULL };
	const struct policy_list kept = { .v = usual, .n = 1 };
	const struct {
		const char *what;
		struct policy_list *have;
		const struct policy_list *least;
	} lists[] = {
		{ "sandbox.require", &p->require, &o->require },
		{ "approvals.always", &p->always, &o->always },
		{ "ledger.redact", &p->redact, &o->redact },
		{ "ledger.keep_text", &p->keep_text,
		  o->keep_text.is_stated ? &o->keep_text : &kept },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		if (!lists[i].have->is_stated && lists[i].least->is_stated)
			*lists[i].have = *lists[i].least;
		if (lists[i].have->is_stated &&
		    is_in(lists[i].least, lists[i].have, lists[i].what, p,
			  err) < 0)
			return -err->code;
	}
	return 0;
}

/* Fewer of them is tighter; what is not stated is none. */
static int narrow_permissions(struct policy *p, const struct policy *o,
			      struct err *err)
{
	/* This one is no permission: not stated, it is all. */
	if (!p->ask.is_stated)
		p->ask = o->ask;
	if (o->ask.is_stated &&
	    is_in(&p->ask, &o->ask, "approvals.ask", o, err) < 0)
		return -err->code;
	if (is_in(&p->code_patterns, &o->code_patterns,
		  "approvals.code_patterns", o, err) < 0 ||
	    is_in(&p->env_from_host, &o->env_from_host, "sandbox.env_from_host",
		  o, err) < 0)
		return -err->code;
	return is_in(&p->registries, &o->registries, "images.registries", o,
		     err);
}

/* ---- the box ---- */

/* Whether all images that `image`, which may be a glob, means are in the list.
 */
static bool gives_image(const struct policy_list *l, const char *image)
{
	bool is_glob = strpbrk(image, "*?[") != NULL;

	if (!l->is_stated)
		return strcmp(image, "host") == 0;
	if (policy_list_has(l, image))
		return true;
	for (size_t i = 0; strcmp(image, "host") != 0 && i < l->n; i++)
		if (is_glob ? strcmp(l->v[i], "*") == 0
			    : fnmatch(l->v[i], image, FNM_NOESCAPE) == 0)
			return true;
	return false;
}

static int narrow_images(struct policy *p, const struct policy *o,
			 struct err *err)
{
	if (!p->images.is_stated && !gives_image(&o->images, "host"))
		return narrow_miss(err, "sandbox.images, not stated,", "host",
				   o);
	for (size_t i = 0; i < p->images.n; i++)
		if (!gives_image(&o->images, p->images.v[i]))
			return narrow_miss(err, "sandbox.images",
					   p->images.v[i], o);
	return 0;
}

/* As much of it as a request could have there. */
static int check_place(const struct policy *o, const char *path, uint64_t size,
		       struct err *err)
{
	const struct request_place place = { .path = path,
					     .size = size,
					     .is_stated = true };
	const struct policy_request req = { .places = &place,
					    .n_places = 1,
					    .is_empty = true };
	struct policy_verdict v;

	policy_decide(o, &req, &v);
	return v.decision == DECISION_DENY ? narrow_looser(err, "%.380s", v.why)
					   : 0;
}

/* What is bounded there is bounded here. */
static int take_bounds(struct policy *p, const struct policy *o,
		       struct err *err)
{
	struct policy_pair *all = narrow_memory(p, p->n_tmpfs + o->n_tmpfs,
						sizeof(*all), err);
	size_t n = p->n_tmpfs;

	if (!all)
		return -err->code;
	for (size_t i = 0; i < n; i++)
		all[i] = p->tmpfs[i];
	for (size_t i = 0; i < o->n_tmpfs; i++)
		if (policy_may_write(p, o->tmpfs[i].name) &&
		    !has_pair(p->tmpfs, p->n_tmpfs, o->tmpfs[i].name))
			all[n++] = o->tmpfs[i];
	p->tmpfs = all;
	p->n_tmpfs = n;
	return 0;
}

static int narrow_places(struct policy *p, const struct policy *o,
			 struct err *err)
{
	if (!p->writable.is_stated)
		p->writable = o->writable;
	for (size_t i = 0; i < p->writable.n; i++)
		if (check_place(o, p->writable.v[i], 0, err) < 0)
			return -err->code;
	for (size_t i = 0; i < p->n_tmpfs; i++)
		if (check_place(o, p->tmpfs[i].name, p->tmpfs[i].size, err) < 0)
			return -err->code;
	return take_bounds(p, o, err);
}

/* What is mounted is judged by both, when it is known (decide.c). */
static int narrow_roots(struct policy *p, const struct policy *o,
			struct err *err)
{
	for (size_t i = 0; i < p->mount_roots.n; i++) {
		bool is_below = false;

		for (size_t k = 0; k < o->mount_roots.n; k++)
			is_below |= path_is_below(p->mount_roots.v[i],
						  o->mount_roots.v[k]);
		if (!is_below)
			return narrow_miss(err, "sandbox.mount_roots",
					   p->mount_roots.v[i], o);
	}
	return 0;
}

static int narrow_env(struct policy *p, const struct policy *o, struct err *err)
{
	if (p->n_env == 0) {
		p->env = o->env;
		p->n_env = o->n_env;
	}
	for (size_t i = 0; i < p->n_env; i++) {
		const struct policy_pair *e = &p->env[i];
		const struct policy_pair *top = has_pair(o->env, o->n_env,
							 e->name);

		/* A variable can go around a list of commands. */
		if (top ? strcmp(top->value, e->value) != 0
			: o->has_commands && steers(e->name))
			return narrow_looser(
				err,
				"sandbox.env gives '%.60s' a value that "
				"%.100s does not",
				e->name, narrow_name(o));
	}
	for (size_t k = 0; k < o->n_env; k++)
		if (!has_pair(p->env, p->n_env, o->env[k].name))
			return narrow_looser(err,
					     "sandbox.env has no '%.60s', "
					     "which %.100s fixes",
					     o->env[k].name, narrow_name(o));
	return 0;
}

/* ---- commands ---- */

bool narrow_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Fewer words permit less; none at all is whatever the grammar has. */
static bool are_in(const char *const *a, const char *const *b)
{
	if (!a || !b)
		return a == b;
	for (; *a; a++) {
		const char *const *at = b;

		while (*at && strcmp(*at, *a) != 0)
			at++;
		if (!*at)
			return false;
	}
	return true;
}

static bool permits_as(const struct command_rule *a,
		       const struct command_rule *b)
{
	return strcmp(a->name, b->name) == 0 && are_in(a->sub, b->sub) &&
	       are_in(a->flags, b->flags) && a->operands == b->operands &&
	       narrow_same(a->script, b->script);
}

static bool is_permitted(const struct command_rule *rules, size_t n,
			 const struct command_rule *r)
{
	for (size_t i = 0; i < n; i++)
		if (permits_as(r, &rules[i]))
			return true;
	return false;
}

static const char *base_name(const char *program)
{
	const char *slash = strrchr(program, '/');

	return slash ? slash + 1 : program;
}

static bool permits(const struct command_rule *rules, size_t n,
		    const char *program)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(base_name(rules[i].name), base_name(program)) == 0)
			return true;
	return false;
}

/* What asks there asks here, by the same rule, or cannot be had at all. */
static bool still_asks(const struct command_rules *a,
		       const struct command_rule *r)
{
	for (size_t i = 0; i < a->n_ask; i++)
		if (permits_as(&a->ask[i], r) && permits_as(r, &a->ask[i]))
			return true;
	for (size_t i = 0; i < a->n_deny; i++)
		if (strcmp(a->deny[i].name, r->name) == 0 && !a->deny[i].sub &&
		    !a->deny[i].flags)
			return true;
	return !a->ask_otherwise && !permits(a->allow, a->n_allow, r->name) &&
	       !permits(a->ask, a->n_ask, r->name);
}

/* What is denied there is denied here. */
static int take_denials(struct policy *p, const struct policy *o,
			struct err *err)
{
	struct command_rules *a = &p->commands;
	const struct command_rules *b = &o->commands;
	struct command_rule *all = narrow_memory(p, a->n_deny + b->n_deny,
						 sizeof(*all), err);

	if (!all)
		return -err->code;
	for (size_t i = 0; i < a->n_deny; i++)
		all[i] = a->deny[i];
	for (size_t i = 0; i < b->n_deny; i++)
		all[a->n_deny + i] = b->deny[i];
	a->deny = all;
	a->n_deny += b->n_deny;
	return 0;
}

static int not_same(struct err *err, const char *key,
		    const struct command_rule *r, const struct policy *o)
{
	return narrow_looser(
		err,
		"commands.%s '%.60s' (%.80s:%u) is by no such rule "
		"in %.100s",
		key, r->name, r->file, r->line, narrow_name(o));
}

static int narrow_commands(struct policy *p, const struct policy *o,
			   struct err *err)
{
	const struct command_rules *a = &p->commands;
	const struct command_rules *b = &o->commands;

	if (!o->has_commands)
		return 0;
	if (!p->has_commands)
		return narrow_looser(
			err, "it states no commands, and %.100s:%u lists them",
			o->commands_at.file, o->commands_at.line);
	if (a->ask_otherwise && !b->ask_otherwise)
		return narrow_looser(
			err,
			"commands.otherwise is 'ask', and 'deny' in "
			"%.100s",
			narrow_name(o));
	for (size_t i = 0; i < a->n_allow; i++)
		if (!is_permitted(b->allow, b->n_allow, &a->allow[i]))
			return not_same(err, "allow", &a->allow[i], o);
	for (size_t i = 0; i < a->n_ask; i++)
		if (!is_permitted(b->ask, b->n_ask, &a->ask[i]) &&
		    !is_permitted(b->allow, b->n_allow, &a->ask[i]))
			return not_same(err, "ask", &a->ask[i], o);
	for (size_t i = 0; i < b->n_ask; i++)
		if (!still_asks(a, &b->ask[i]))
			return narrow_looser(err,
					     "'%.60s' does not ask, as it does "
					     "in %.100s",
					     b->ask[i].name, narrow_name(o));
	return take_denials(p, o, err);
}

int policy_narrow(struct policy *p, const struct policy *outer, struct err *err)
{
	static int (*const steps[])(struct policy *, const struct policy *,
				    struct err *) = {
		narrow_numbers,  narrow_words,       narrow_user,
		narrow_demands,  narrow_permissions, narrow_images,
		narrow_roots,    narrow_places,      narrow_env,
		narrow_commands, narrow_network,
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (steps[i](p, outer, err) < 0)
			return -err->code;
	p->outer = outer;
	return 0;
}
