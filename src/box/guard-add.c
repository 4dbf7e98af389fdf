/* SPDX-License-Identifier: Apache-2.0 */

/* What the policy adds to a request, and where it makes it tighter. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/util.h"
#include "box/guard-parts.h"
#include "box/result.h"
#include "box/settings.h"

bool guard_has_target(const struct cordon_spec *s, const char *path)
{
	for (size_t i = 0; i < s->n_binds; i++)
		if (strcmp(s->binds[i].target, path) == 0)
			return true;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, path) == 0)
			return true;
	return false;
}

int guard_add_bind(struct guard *g, const char *source, const char *target,
		   int mode, const struct stat *st, struct err *err)
{
	struct cordon_spec *s = g->spec;
	struct spec_bind *b = &s->binds[s->n_binds];

	if (s->n_binds == SPEC_MAX_ITEMS)
		return err_set(err, E2BIG, "more than %d volumes",
			       SPEC_MAX_ITEMS);
	memset(b, 0, sizeof(*b));
	b->source = guard_own(g, source);
	b->target = guard_own(g, target);
	b->mode = mode;
	b->dev = st ? st->st_dev : 0;
	b->ino = st ? st->st_ino : 0;
	if (!b->source || !b->target)
		return guard_no_memory(err);
	spec_plain_path(b->target);
	s->n_binds++;
	return 0;
}

int guard_add_place(struct guard *g, const char *target, uint64_t size,
		    bool is_volume, struct err *err)
{
	struct cordon_spec *s = g->spec;

	if (guard_has_target(s, target))
		return 0;
	if (s->n_tmpfs == SPEC_MAX_ITEMS)
		return err_set(err, E2BIG, "too many writable places");
	s->tmpfs[s->n_tmpfs] = (struct spec_tmpfs){ .is_volume = is_volume,
						    .size = size };
	s->tmpfs[s->n_tmpfs].target = guard_own(g, target);
	if (!s->tmpfs[s->n_tmpfs].target)
		return guard_no_memory(err);
	s->n_tmpfs++;
	return 0;
}

int guard_add_mounts(struct guard *g, size_t *ret_first, struct err *err)
{
	const struct policy *p = g->policy;

	*ret_first = g->spec->n_binds;
	for (size_t i = 0; p && i < p->n_mounts; i++) {
		const struct policy_mount *m = &p->mounts[i];

		if (guard_has_target(g->spec, m->to))
			continue;
		if (guard_add_bind(g, m->from, m->to,
				   m->is_rw ? BIND_RW : BIND_RO, NULL, err) < 0)
			return -err->code;
	}
	return 0;
}

int guard_add_places(struct guard *g, struct err *err)
{
	static const char *const usual[] = { "/tmp", "/workspace", "/dev/shm" };
	const struct policy *p = g->policy;
	struct cordon_spec *s = g->spec;

	for (size_t i = 0; i < p->n_tmpfs; i++)
		if (guard_add_place(g, p->tmpfs[i].name, p->tmpfs[i].size,
				    false, err) < 0)
			return -err->code;
	for (size_t i = 0; i < p->writable.n; i++) {
		bool is_usual = false;

		for (size_t k = 0; k < ARRAY_SIZE(usual); k++)
			is_usual |= strcmp(usual[k], p->writable.v[i]) == 0;
		if (!is_usual && guard_add_place(g, p->writable.v[i], s->disk,
						 true, err) < 0)
			return -err->code;
	}
	s->no_tmp |= !policy_may_write(p, "/tmp");
	s->no_workspace |= !policy_may_write(p, "/workspace");
	s->no_shm |= !policy_may_write(p, "/dev/shm");
	return 0;
}

static bool has_env(const struct cordon_spec *s, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < s->env.n; i++)
		if (strncmp(s->env.v[i], name, len) == 0 &&
		    s->env.v[i][len] == '=')
			return true;
	return false;
}

/* One NAME=VALUE more, in a vector that is the guard's. */
static int add_env(struct guard *g, const char *name, const char *value,
		   struct err *err)
{
	struct strv *env = &g->spec->env;
	_cleanup_free_ char *text = NULL;

	if (has_env(g->spec, name))
		return 0;
	if (asprintf(&text, "%s=%s", name, value) < 0) {
		text = NULL;
		return guard_no_memory(err);
	}
	return strv_add(env, text) < 0 ? guard_no_memory(err) : 0;
}

int guard_add_envs(struct guard *g, struct err *err)
{
	const struct policy *p = g->policy;

	for (size_t i = 0; i < g->given->env_from_host.n; i++) {
		const char *name = g->given->env_from_host.v[i];
		const char *value = getenv(name);

		if (value && add_env(g, name, value, err) < 0)
			return -err->code;
	}
	for (size_t i = 0; p && i < p->n_env; i++)
		if (add_env(g, p->env[i].name, p->env[i].value, err) < 0)
			return -err->code;
	return 0;
}

static uint32_t layer_bits(const char *name)
{
	if (strcmp(name, "cgroup") == 0)
		return 1U << WIRE_L_MEMORY | 1U << WIRE_L_CPU |
		       1U << WIRE_L_PIDS;
	for (int i = 0; i < WIRE_LAYERS; i++)
		if (strcmp(name, layer_name((enum wire_layer)i)) == 0)
			return 1U << i;
	return 0; /* user namespaces and the filter are always there */
}

void guard_tighten(struct guard *g)
{
	const uint64_t *n = g->verdict.numbers;
	struct cordon_spec *s = g->spec;

	s->timeout_us = n[POLICY_TIMEOUT];
	s->cpu_time_us = n[POLICY_CPU_TIME];
	s->memory = n[POLICY_MEMORY];
	s->cpu_quota_us = n[POLICY_CPUS] * s->cpu_period_us / 1000;
	s->pids = n[POLICY_PIDS];
	s->output = n[POLICY_OUTPUT];
	s->disk = n[POLICY_DISK];
	s->nofile = n[POLICY_FILES];
	s->writable_root = g->verdict.is_writable_root;
	if (g->verdict.has_user) {
		s->uid = g->verdict.uid;
		s->gid = g->verdict.gid;
	}
	for (size_t i = 0; i < g->policy->require.n; i++)
		s->require |= layer_bits(g->policy->require.v[i]);
}

/* What `ulimit` asks for is never more than what a box has here. */
static int note_ulimits(struct guard *g, struct err *err)
{
	const struct cordon_spec *s = g->spec;
	char text[160];

	for (int i = 0; i < WIRE_RLIMITS; i++) {
		uint64_t most = UINT64_MAX;
		struct rlimit now;

		if (!(s->rlimits_set & 1U << i))
			continue;
		if (i == RLIMIT_NOFILE)
			most = s->nofile;
		else if (i == RLIMIT_FSIZE)
			most = s->fsize;
		else if (getrlimit(i, &now) == 0)
			most = now.rlim_max;
		if (s->rlimits[i].soft <= most ||
		    s->rlimits[i].soft == UINT64_MAX)
			continue;
		(void)snprintf(text, sizeof(text),
			       "ulimit %s is %llu: it can only be lowered%s",
			       ulimit_name(i), (unsigned long long)most,
			       i == RLIMIT_NOFILE  ? " (--files raises it)"
			       : i == RLIMIT_FSIZE ? " (--file-size raises it)"
						   : "");
		if (strv_add(&g->notes, text) < 0)
			return guard_no_memory(err);
	}
	return 0;
}

int guard_add_notes(struct guard *g, struct err *err)
{
	g->spec->notes = &g->notes;
	return guard_lower_here(g, err) < 0 ? -err->code : note_ulimits(g, err);
}
