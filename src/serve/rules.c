/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The policy of the daemon. It always has one: what is named, else what is
 * found as for `cordon run`, else the preset `daemon`. YAML is read by
 * cordon-desk (box/policy-load.h); preparers have the parsed form in the memory
 * that they are forked with.
 *
 * Under it are those that a request may name (named.h): the presets, and files
 * of a directory, if one is said. None is looked for: whoever can make one
 * beside the policy could keep it from being read again.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/num.h"
#include "base/say.h"
#include "base/util.h"
#include "box/policy-load.h"
#include "policy/preset.h"
#include "serve/daemon.h"

#define PRESET "daemon"

/* Preparers stand elsewhere: the way to the file must mean the same there. */
static char *absolute(const char *name)
{
	_cleanup_free_ char *cwd = NULL;
	char *path = NULL;

	if (name[0] == '/')
		return strdup(name);
	cwd = getcwd(NULL, 0);
	if (!cwd || asprintf(&path, "%s/%s", cwd, name) < 0)
		return NULL;
	return path;
}

static int load_named(const struct daemon *d, const struct policy *p,
		      struct named *ret, struct err *err)
{
	_cleanup_free_ char *dir = NULL;

	if (d->o->policies && !(dir = absolute(d->o->policies)))
		return err_set(err, ENOMEM, "out of memory");
	return named_load(ret, dir, p, err);
}

int rules_load(struct daemon *d, struct err *err)
{
	const char *given = d->o->policy ? d->o->policy
					 : getenv("CORDON_POLICY");
	_cleanup_free_ char *found = NULL;
	struct named named;
	struct policy *p = NULL;
	char *name = NULL;

	if (policy_find(given, &found, err) < 0 ||
	    policy_load(found ? found : PRESET, &p, err) < 0)
		return -err->code;
	if (found && !preset_find(found) && !(name = absolute(found))) {
		policy_free(p);
		return err_set(err, ENOMEM, "out of memory");
	}
	if (load_named(d, p, &named, err) < 0) {
		policy_free(p);
		free(name);
		return -err->code;
	}
	named_done(&d->named);
	policy_free(d->policy);
	free(d->policy_name);
	d->policy = p;
	d->policy_name = name;
	d->policy_loaded = (int64_t)time(NULL);
	d->named = named;
	return 0;
}

int rules_find(const struct daemon *d, const char *name,
	       const struct policy **ret, struct err *err)
{
	const struct named_policy *found;

	if (!name || !*name) {
		*ret = d->policy;
		return 0;
	}
	if (named_find(&d->named, name, &found, err) < 0)
		return -err->code;
	*ret = found->policy;
	return 0;
}

void rules_say(const struct daemon *d)
{
	const struct flat_source *s = &d->policy->flat.sources[0];

	say("policy: %s, sha256 %.12s", s->name, s->sha256);
	for (size_t i = 0; i < d->named.n; i++)
		if (d->named.v[i].file && !d->named.v[i].policy)
			say("policy '%s' cannot be asked for by its name: %s",
			    d->named.v[i].name, d->named.v[i].why.text);
}

/* docker.exec has no member of its own in struct policy: nobody else asks. */
static const char *word(const struct policy *p, const char *path,
			const char *other)
{
	const struct flat_line *l = flat_get(&p->flat, path);

	if (!l && p->outer)
		l = flat_get(&p->outer->flat, path);
	return l ? l->value : other;
}

static void put_size(struct json *j, const char *name, const char *text)
{
	uint64_t size;

	if (num_parse_size(text, &size) < 0)
		json_none(j, name);
	else
		json_int(j, name, (int64_t)size);
}

void rules_docker(struct json *j, const struct policy *p)
{
	json_open(j, "docker", '{');
	json_str(j, "over_ceiling", word(p, "docker.over_ceiling", "clamp"));
	json_bool(j, "allow_root_inside",
		  strcmp(word(p, "docker.allow_root_inside", "false"),
			 "true") == 0);
	json_str(j, "bind_symlinks", word(p, "docker.bind_symlinks", "deny"));
	json_open(j, "exec", '{');
	json_str(j, "on_disconnect",
		 word(p, "docker.exec.on_disconnect", "keep"));
	json_str(j, "children", word(p, "docker.exec.children", "keep"));
	json_bool(j, "shims",
		  strcmp(word(p, "docker.exec.shims", "true"), "true") == 0);
	put_size(j, "max_output", word(p, "docker.exec.max_output", "none"));
	json_close(j, '}');
	put_size(j, "log_max", word(p, "docker.log_max", "64m"));
	json_close(j, '}');
}

int rules_tell(struct daemon *d)
{
	const struct order o = { .type = ORDER_POLICY };
	const struct flat_source *s = &d->policy->flat.sources[0];
	_cleanup_fd_ int doc = NO_FD;
	struct err err = { 0 };
	struct buf text;
	struct json j = { .out = &text };

	buf_init(&text, 65536);
	json_open(&j, NULL, '{');
	json_str(&j, "file", s->name);
	json_str(&j, "sha256", s->sha256);
	json_int(&j, "time", d->policy_loaded);
	json_open(&j, "named", '[');
	for (size_t i = 0; i < d->named.n; i++)
		if (d->named.v[i].policy)
			json_str(&j, NULL, d->named.v[i].name);
	json_close(&j, ']');
	rules_docker(&j, d->policy);
	json_close(&j, '}');
	doc = doc_seal(&text, &err);
	buf_done(&text);
	return doc < 0 ? doc : io_send(d->front, &o, sizeof(o), &doc, 1);
}
