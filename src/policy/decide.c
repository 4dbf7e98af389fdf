/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/decide.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "policy/never.h"
#include "policy/network.h"
#include "policy/steer.h"
#include "policy/values.h"

struct decider {
	const struct policy *p;
	const struct policy_request *req;
	struct policy_verdict *ret;
	bool asks;
};

static bool deny(struct decider *d, const char *fmt, ...) PRINTF(2, 3);
static bool deny(struct decider *d, const char *fmt, ...)
{
	va_list ap;

	d->ret->decision = DECISION_DENY;
	va_start(ap, fmt);
	(void)vsnprintf(d->ret->why, sizeof(d->ret->why), fmt, ap);
	va_end(ap);
	return false;
}

bool path_is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	if (len == 1 && top[0] == '/')
		return path[0] == '/';
	return strncmp(path, top, len) == 0 &&
	       (path[len] == '/' || path[len] == '\0');
}

/* The file that applies, for "nothing in it says so". */
static const char *file_of(const struct policy *p)
{
	return p->flat.n_sources ? p->flat.sources[0].name : "the policy";
}

/* numbers */

static void format_number(enum policy_number n, uint64_t v, char *ret,
			  size_t size)
{
	switch (n) {
	case POLICY_TIMEOUT:
	case POLICY_CPU_TIME:
		if (v % 1000000 == 0)
			(void)snprintf(ret, size, "%" PRIu64 "s", v / 1000000);
		else
			(void)snprintf(ret, size, "%" PRIu64 "ms", v / 1000);
		break;
	case POLICY_CPUS:
		(void)snprintf(ret, size, "%" PRIu64 ".%03" PRIu64, v / 1000,
			       v % 1000);
		break;
	case POLICY_MEMORY:
	case POLICY_OUTPUT:
	case POLICY_DISK:
		if (v % (1 << 20) == 0 && v > 0)
			(void)snprintf(ret, size, "%" PRIu64 "m", v >> 20);
		else
			(void)snprintf(ret, size, "%" PRIu64 " bytes", v);
		break;
	default:
		(void)snprintf(ret, size, "%" PRIu64, v);
		break;
	}
}

static bool decide_numbers(struct decider *d)
{
	for (int i = 0; i < POLICY_NUMBERS; i++) {
		const struct request_number *have = &d->req->numbers[i];
		const struct policy_value *top = d->p ? &d->p->numbers[i]
						      : NULL;
		char text[48];

		d->ret->numbers[i] = have->value;
		if (!top || !top->is_stated)
			continue;
		if (have->is_stated && have->value <= top->value)
			continue;
		d->ret->numbers[i] = top->value;
		if (!have->is_stated)
			continue;
		d->ret->clamped |= 1U << i;
		if (d->req->clamps)
			continue;
		format_number((enum policy_number)i, have->value, text,
			      sizeof(text));
		return deny(d,
			    "%s %s is above the ceiling %s (%s:%u: "
			    "sandbox.%s)",
			    policy_number_name((enum policy_number)i), text,
			    top->text, top->at.file, top->at.line,
			    policy_number_name((enum policy_number)i));
	}
	return true;
}

/* mounts */

/*
 * Whether mount_roots names this very thing: for a directory with secrets or
 * a home, exactly; for a whole tree such as /etc, some directory in it.
 */
static bool names(const struct policy *p, const char *path, const char *tree)
{
	for (size_t i = 0; i < p->mount_roots.n; i++) {
		const char *root = p->mount_roots.v[i];

		if (tree ? path_is_below(root, tree) &&
				    path_is_below(path, root)
			 : strcmp(root, path) == 0)
			return true;
	}
	return false;
}

/* By each policy that holds. */
static bool is_named(const struct policy *p, const char *path, const char *tree)
{
	bool is_so = p != NULL;

	for (; is_so && p; p = p->outer)
		is_so = names(p, path, tree);
	return is_so;
}

/* As whoever asked for it calls it. */
static const char *word_of(const struct request_mount *m)
{
	return m->word ? m->word : "volume";
}

static bool never_by_path(struct decider *d, const struct request_mount *m)
{
	for (const struct never_path *n = never_paths; n->path; n++) {
		bool hit = n->is_deep ? path_is_below(m->path, n->path)
				      : strcmp(m->path, n->path) == 0;

		if (!hit ||
		    (n->may_name &&
		     is_named(d->p, m->path, n->is_deep ? n->path : NULL)))
			continue;
		return deny(d,
			    "%s '%s': %s (%s) is never mounted into a "
			    "box%s",
			    word_of(m), m->source, n->path, n->why,
			    n->may_name ? ", unless a policy's mount_roots "
					  "names it"
					: "");
	}
	return true;
}

static bool never_by_facts(struct decider *d, const struct request_mount *m)
{
	const char *credential = m->credential ? m->credential
					       : never_credential_in(m->path);

	if (m->is_special)
		return deny(d,
			    "%s '%s': a unix socket, device or pipe is "
			    "never mounted into a box",
			    word_of(m), m->source);
	if (m->is_state || m->holds_state)
		return deny(d,
			    "%s '%s': Cordon's own state %s never "
			    "mounted into a box",
			    word_of(m), m->source,
			    m->is_state ? "is" : "lies in it, and is");
	if (m->is_policy)
		return deny(d,
			    "%s '%s': the policy file is never mounted "
			    "into a box",
			    word_of(m), m->source);
	if (m->is_home && !is_named(d->p, m->path, NULL))
		return deny(d,
			    "%s '%s': a home directory is never mounted "
			    "into a box, unless a policy's mount_roots names "
			    "it; mount a directory in it",
			    word_of(m), m->source);
	if (credential && !is_named(d->p, m->path, NULL))
		return deny(d,
			    "%s '%s': it holds credentials ('%s'), and "
			    "such a directory is never mounted into a box, "
			    "unless a policy's mount_roots names it",
			    word_of(m), m->source, credential);
	if (m->is_rw && never_made_at(m->path))
		return deny(d,
			    "%s '%s' cannot be writable: tools of the "
			    "host obey '%s'",
			    word_of(m), m->source, never_made_at(m->path));
	if (m->is_rw && m->not_protected)
		return deny(d, "%s '%s' cannot be writable: %s", word_of(m),
			    m->source, m->not_protected);
	return true;
}

static bool mount_is_given_by(struct decider *d, const struct policy *p,
			      const struct request_mount *m)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (strcmp(p->mounts[i].from, m->path) == 0 &&
		    strcmp(p->mounts[i].to, m->target) == 0 &&
		    (p->mounts[i].is_rw || !m->is_rw))
			return true;
	for (size_t i = 0; i < p->mount_roots.n; i++) {
		if (!path_is_below(m->path, p->mount_roots.v[i]))
			continue;
		if (!m->is_rw || policy_may_write(p, m->target))
			return true;
		return deny(d,
			    "%s '%s' may not be writable at '%s' (%s:%u: "
			    "sandbox.writable)",
			    word_of(m), m->source, m->target,
			    p->writable.at.file, p->writable.at.line);
	}
	if (p->mount_roots.is_stated)
		return deny(d,
			    "%s '%s' is not below a directory that may be "
			    "mounted (%s:%u: sandbox.mount_roots)",
			    word_of(m), m->source, p->mount_roots.at.file,
			    p->mount_roots.at.line);
	return deny(d,
		    "%s '%s' is not given: %s states neither "
		    "sandbox.mount_roots nor this mount",
		    word_of(m), m->source, file_of(p));
}

/* A policy's own mount is for the one above it one that is asked for. */
static bool mount_is_given(struct decider *d, const struct request_mount *m)
{
	for (const struct policy *p = d->p; p; p = p->outer)
		if (!(m->is_declared && p == d->p) &&
		    !mount_is_given_by(d, p, m))
			return false;
	return true;
}

static bool decide_mounts(struct decider *d)
{
	for (size_t i = 0; i < d->req->n_mounts; i++) {
		const struct request_mount *m = &d->req->mounts[i];

		if (!never_by_path(d, m) || !never_by_facts(d, m) ||
		    !mount_is_given(d, m))
			return false;
	}
	return true;
}

/*
 * A directory that results are copied to is written like a volume, by us
 * rather than by the box. Without a policy the person at the command line
 * says where.
 */
static bool decide_copies(struct decider *d)
{
	char why[sizeof(d->ret->why)];

	for (size_t i = 0; i < d->req->n_copies; i++) {
		const struct request_mount *m = &d->req->copies[i];

		if (!d->p && !m->is_state)
			continue;
		if (never_by_path(d, m) && never_by_facts(d, m) &&
		    mount_is_given(d, m))
			continue;
		(void)memcpy(why, d->ret->why, sizeof(why));
		return deny(d, "copy-out: %.*s", (int)sizeof(why) - 11, why);
	}
	return true;
}

/* writable places */

bool policy_may_write(const struct policy *p, const char *place)
{
	return !p || !p->writable.is_stated ||
	       policy_list_has(&p->writable, place);
}

/* Where the whole root may be written, so may a place of its own in it. */
static bool is_root_writable(const struct policy *p)
{
	return p && p->read_only.text &&
	       strcmp(p->read_only.text, "false") == 0;
}

bool policy_gives_place(const struct policy *p, const char *place)
{
	if (!p)
		return true;
	for (size_t i = 0; i < p->n_tmpfs; i++)
		if (strcmp(p->tmpfs[i].name, place) == 0)
			return true;
	return p->writable.is_stated ? policy_list_has(&p->writable, place)
				     : is_root_writable(p);
}

/* As a number: lowered if nobody asked for it, or if that is what is done. */
static bool decide_size(struct decider *d, const struct request_place *place,
			uint64_t top)
{
	if (place->size <= top)
		return true;
	if (!place->ret_size || (place->is_stated && !d->req->clamps))
		return false;
	*place->ret_size = top;
	return true;
}

static bool decide_place_by(struct decider *d, const struct policy *p,
			    const struct request_place *place)
{
	static const char *const usual[] = { "/tmp", "/workspace", "/dev/shm" };
	const struct policy_value *disk = &p->numbers[POLICY_DISK];
	bool is_given = false;

	for (size_t i = 0; i < p->n_tmpfs; i++) {
		if (strcmp(p->tmpfs[i].name, place->path) != 0)
			continue;
		if (!decide_size(d, place, p->tmpfs[i].size))
			return deny(d,
				    "%s of %" PRIu64 " bytes is above the "
				    "ceiling %s (%s:%u: sandbox.tmpfs)",
				    place->path, place->size, p->tmpfs[i].value,
				    p->tmpfs[i].at.file, p->tmpfs[i].at.line);
		return true;
	}
	if (!p->writable.is_stated && is_root_writable(p)) {
		if (!disk->is_stated || decide_size(d, place, disk->value))
			return true;
		return deny(d,
			    "%s of %" PRIu64 " bytes is above the ceiling %s "
			    "(%s:%u: sandbox.disk)",
			    place->path, place->size, disk->text, disk->at.file,
			    disk->at.line);
	}
	if (p->writable.is_stated)
		is_given = policy_list_has(&p->writable, place->path);
	else
		for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
			is_given |= strcmp(usual[i], place->path) == 0;
	if (is_given)
		return true;
	if (p->writable.is_stated)
		return deny(d,
			    "'%s' may not be writable (%s:%u: "
			    "sandbox.writable)",
			    place->path, p->writable.at.file,
			    p->writable.at.line);
	return deny(d,
		    "'%s' may not be writable: %s states no sandbox.writable",
		    place->path, file_of(p));
}

/* By each policy that holds, as the one before it has lowered it. */
static bool decide_place(struct decider *d, const struct request_place *place)
{
	struct request_place now = *place;

	for (const struct policy *p = d->p; p; p = p->outer) {
		if (!decide_place_by(d, p, &now))
			return false;
		if (now.ret_size)
			now.size = MIN(now.size, *now.ret_size);
	}
	return true;
}

static bool decide_places(struct decider *d)
{
	const struct policy *p = d->p;
	bool says_writable = is_root_writable(p);

	d->ret->is_writable_root = d->req->states_root
					   ? d->req->wants_writable_root
					   : says_writable;
	if (!p)
		return true;
	for (size_t i = 0; i < d->req->n_places; i++)
		if (!decide_place(d, &d->req->places[i]))
			return false;
	if (d->ret->is_writable_root && !says_writable) {
		if (p->read_only.text)
			return deny(d,
				    "the root file system is read-only "
				    "(%s:%u: sandbox.read_only)",
				    p->read_only.at.file, p->read_only.at.line);
		return deny(d,
			    "the root file system is read-only: %s does not "
			    "state 'read_only: false'",
			    file_of(p));
	}
	return true;
}

/* the rest */

static bool decide_user(struct decider *d)
{
	const struct policy *p = d->p;
	uint32_t uid = 0;
	uint32_t gid = 0;

	if (!p || !p->user.text)
		return true;
	if (value_user(p->user.text, &uid, &gid) < 0)
		return deny(d, "%s:%u: sandbox.user cannot be read",
			    p->user.at.file, p->user.at.line);
	if (d->req->has_user && (d->req->uid != uid || d->req->gid != gid))
		return deny(d, "user %u:%u is not %s (%s:%u: sandbox.user)",
			    d->req->uid, d->req->gid, p->user.text,
			    p->user.at.file, p->user.at.line);
	d->ret->has_user = true;
	d->ret->uid = uid;
	d->ret->gid = gid;
	return true;
}

static bool image_matches(const struct policy_list *l, const char *image)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i], image) == 0 ||
		    (strcmp(image, "host") != 0 &&
		     fnmatch(l->v[i], image, FNM_NOESCAPE) == 0))
			return true;
	return false;
}

static bool any_matches(const struct policy_list *l, const char *const *names)
{
	for (; names && *names; names++)
		if (image_matches(l, *names))
			return true;
	return false;
}

static bool decide_image(struct decider *d)
{
	const struct policy_list *l = d->p ? &d->p->images : NULL;
	const char *image = d->req->image;

	if (!image)
		image = l && l->n > 0 ? l->v[0] : "host";
	if (l && l->is_stated && !image_matches(l, image) &&
	    !any_matches(l, d->req->image_names))
		return deny(d,
			    "image '%s' is not given (%s:%u: "
			    "sandbox.images)",
			    image, l->at.file, l->at.line);
	if (l && !l->is_stated && strcmp(image, "host") != 0)
		return deny(d,
			    "image '%s' is not given: %s states no "
			    "sandbox.images",
			    image, file_of(d->p));
	d->ret->image = image;
	return true;
}

static bool decide_isolation(struct decider *d)
{
	const struct policy_word *w = d->p ? &d->p->isolation : NULL;
	const char *asked = d->req->isolation ? d->req->isolation : NULL;
	const char *least = w && w->text ? w->text : "native";
	const char *level = asked ? asked : least;

	if (w && value_isolation_rank(level) < value_isolation_rank(least))
		return deny(d,
			    "isolation '%s' is less than '%s' (%s:%u: "
			    "sandbox.isolation)",
			    level, least, w->at.file, w->at.line);
	if (strcmp(level, "native") != 0)
		return deny(d, "isolation '%s' is not in this build%s%s", level,
			    w && w->at.file ? ", and is the least accepted by "
					    : "",
			    w && w->at.file ? w->at.file : "");
	return true;
}

/* Under a list of commands nothing goes around it (steer.h). */
static bool decide_steering(struct decider *d)
{
	const struct policy *p = d->p;
	bool is_listed = p && p->has_commands;

	if (!is_listed && !d->req->has_list)
		return true;
	for (size_t i = 0; i < d->req->n_env; i++) {
		const char *have = d->req->env[i];
		size_t len = strcspn(have, "=");
		bool is_stated = false;

		for (size_t k = 0; p && k < p->n_env; k++)
			is_stated |= strlen(p->env[k].name) == len &&
				     memcmp(p->env[k].name, have, len) == 0;
		if (is_stated || !steers(have))
			continue;
		if (!is_listed)
			return deny(d,
				    "variable '%.*s' steers what listed "
				    "commands do (allowed_commands)",
				    (int)len, have);
		return deny(d,
			    "variable '%.*s' steers what listed commands do "
			    "(%s:%u: commands); only sandbox.env of the policy "
			    "may set it",
			    (int)len, have, p->commands_at.file,
			    p->commands_at.line);
	}
	return true;
}

static bool decide_env(struct decider *d)
{
	const struct policy *p = d->p;

	for (size_t i = 0; i < d->req->n_env_from_host; i++) {
		const char *name = d->req->env_from_host[i];

		if (!p)
			return deny(d,
				    "'%s' is not NAME=VALUE; the host's own "
				    "variables are not passed in, unless a "
				    "policy's env_from_host names them",
				    name);
		if (policy_list_has(&p->env_from_host, name))
			continue;
		return deny(d,
			    "variable '%s' may not be passed in: %s does not "
			    "name it in sandbox.env_from_host",
			    name,
			    p->env_from_host.is_stated
				    ? p->env_from_host.at.file
				    : file_of(p));
	}
	for (size_t i = 0; p && i < d->req->n_env; i++)
		for (size_t k = 0; k < p->n_env; k++) {
			const char *have = d->req->env[i];
			size_t len = strlen(p->env[k].name);

			if (strncmp(have, p->env[k].name, len) == 0 &&
			    have[len] == '=' &&
			    strcmp(have + len + 1, p->env[k].value) != 0)
				return deny(d,
					    "variable '%s' is fixed (%s:%u: "
					    "sandbox.env)",
					    p->env[k].name, p->env[k].at.file,
					    p->env[k].at.line);
		}
	return true;
}

static bool decide_host(struct decider *d, const char *host)
{
	struct network_judgement j;

	network_judge(d->p, host, &j);
	/* Without a policy who asks is who decides, but for what never is. */
	if (!d->p && !j.is_never)
		return true;
	if (j.decision == DECISION_DENY)
		return deny(d, "host '%s': %s", host, j.why);
	if (j.decision == DECISION_ASK) {
		d->asks = true;
		(void)snprintf(d->ret->why, sizeof(d->ret->why),
			       "host '%.100s': %.200s (%.140s:%u)", host, j.why,
			       j.rule->at.file, j.rule->at.line);
	}
	return true;
}

static bool decide_hosts(struct decider *d)
{
	for (size_t i = 0; i < d->req->n_hosts; i++)
		if (!decide_host(d, d->req->hosts[i]))
			return false;
	for (size_t i = 0; i < d->req->n_secrets; i++) {
		const char *secret = d->req->secrets[i];
		const char *at = strchr(secret, '@');
		char name[256];

		if (!at || (size_t)(at - secret) >= sizeof(name))
			return deny(d, "secret '%s': it is not NAME@HOST",
				    secret);
		(void)snprintf(name, sizeof(name), "%.*s", (int)(at - secret),
			       secret);
		if (!decide_host(d, at + 1))
			return false;
		if (d->p && !network_gives(d->p, name, at + 1))
			return deny(d,
				    "secret '%s': no rule of network.allow in "
				    "%s sends it there",
				    secret, file_of(d->p));
	}
	return true;
}

static bool layer_is(const char *required, const char *layer)
{
	return strcmp(required, layer) == 0 ||
	       (strcmp(required, "cgroup") == 0 &&
		(strcmp(layer, "memory") == 0 || strcmp(layer, "cpu") == 0 ||
		 strcmp(layer, "pids") == 0));
}

static bool decide_layers(struct decider *d)
{
	const struct policy_list *l = d->p ? &d->p->require : NULL;

	for (size_t i = 0; l && i < l->n; i++)
		for (size_t k = 0; k < d->req->n_best_effort; k++)
			if (layer_is(l->v[i], d->req->best_effort[k]))
				return deny(d,
					    "layer '%s' must be there (%s:%u: "
					    "sandbox.require)",
					    l->v[i], l->origins[i].file,
					    l->origins[i].line);
	return true;
}

static bool decide_asking(struct decider *d)
{
	const char *kind = d->req->is_code ? "code" : "commands";

	if (d->p && !d->req->is_empty && policy_list_has(&d->p->always, kind)) {
		d->asks = true;
		(void)snprintf(d->ret->why, sizeof(d->ret->why),
			       "%s:%u: approvals.always has '%s'",
			       d->p->always.at.file, d->p->always.at.line,
			       kind);
	}
	return true;
}

void policy_decide(const struct policy *p, const struct policy_request *req,
		   struct policy_verdict *ret)
{
	static bool (*const steps[])(struct decider *) = {
		decide_mounts,   decide_copies, decide_numbers,   decide_places,
		decide_user,     decide_image,  decide_isolation, decide_env,
		decide_steering, decide_hosts,  decide_layers,    decide_asking,
	};
	struct decider d = { .p = p, .req = req, .ret = ret };

	memset(ret, 0, sizeof(*ret));
	ret->decision = DECISION_DENY;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (!steps[i](&d))
			return;
	ret->decision = d.asks ? DECISION_ASK : DECISION_ALLOW;
}
