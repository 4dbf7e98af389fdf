/* SPDX-License-Identifier: Apache-2.0 */
#include "box/guard-parts.h"
#include "box/work-bind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/guard-facts.h"
#include "box/guard-image.h"
#include "box/policy-load.h"
#include "box/result.h"
#include "policy/never.h"

int guard_no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

/* A string that lives as long as the guard. */
char *guard_own(struct guard *g, const char *text)
{
	if (strv_add(&g->owned, text) < 0)
		return NULL;
	return g->owned.v[g->owned.n - 1];
}

int guard_denied(struct guard *g, struct err *err, const char *text)
{
	g->refused = REFUSED_DENIED;
	return err_set(err, EPERM, "%s", text);
}

/* the request, as the policy sees it */

struct question {
	struct policy_request req;
	struct request_mount mounts[SPEC_MAX_ITEMS + 1];
	struct mount_facts *facts; /* of the binds, then of the workspace */
	struct request_mount copies[SPEC_MAX_ITEMS];
	struct mount_facts *copy_facts;
	struct request_place places[SPEC_MAX_ITEMS];
	const char *layers[WIRE_LAYERS];
	struct strv images;
};

static void ask_numbers(const struct cordon_spec *s, struct policy_request *req)
{
	const uint64_t values[POLICY_NUMBERS] = {
		[POLICY_TIMEOUT] = s->timeout_us,
		[POLICY_CPU_TIME] = s->cpu_time_us,
		[POLICY_MEMORY] = s->memory,
		[POLICY_CPUS] = (s->cpu_quota_us * 1000 + s->cpu_period_us -
				 1) /
				s->cpu_period_us,
		[POLICY_PIDS] = s->pids,
		[POLICY_OUTPUT] = s->output,
		[POLICY_DISK] = s->disk,
		[POLICY_FILES] = s->nofile,
	};

	for (int i = 0; i < POLICY_NUMBERS; i++) {
		req->numbers[i].value = values[i];
		req->numbers[i].is_stated = s->stated & 1U << i;
	}
	/* Without a limit of its own it asks for any amount. */
	if (!s->cpu_time_us)
		req->numbers[POLICY_CPU_TIME].is_stated = false;
}

/*
 * What a daemon that is root does for somebody else: what the box makes will
 * belong to the directory's owner, so that must be who asks.
 */
static int check_owner(struct guard *g, const struct spec_bind *b,
		       const struct mount_facts *facts, struct err *err)
{
	char text[480];

	if (!g->spec->is_peer || (facts->is_ours && facts->may_write))
		return 0;
	(void)snprintf(text, sizeof(text),
		       "volume '%.200s' cannot be writable: %s", b->source,
		       facts->is_ours ? "you may not write to it"
				      : "it is not yours");
	return guard_denied(g, err, text);
}

/* Of all that is mounted only a work_dir is made where it is missing. */
static int look_at(const struct spec_bind *b, const struct mount_ask *ask,
		   struct mount_facts *facts, struct request_mount *ret,
		   struct err *err)
{
	return b->is_work_dir ? place_look(ask, facts, ret, err)
			      : mount_look(ask, facts, ret, err);
}

static int ask_mounts(struct guard *g, struct question *q, size_t declared,
		      struct err *err)
{
	const struct guard_by none = { 0 };
	const struct guard_by *by = g->by ? g->by : &none;
	struct cordon_spec *s = g->spec;
	struct policy_request *req = &q->req;

	if (s->n_binds == 0 && !s->workspace)
		return 0;
	q->facts = calloc(s->n_binds + 1, sizeof(*q->facts));
	if (!q->facts)
		return guard_no_memory(err);
	for (size_t i = 0; i < s->n_binds; i++) {
		struct spec_bind *b = &s->binds[i];
		const struct mount_ask ask = {
			.source = b->source,
			.target = b->target,
			.is_rw = b->mode == BIND_RW,
			.policy = g->policy,
			.policy_name = g->policy_name,
			.others = by->others,
			.policies = by->policies,
			.policies_name = by->policies_name,
			.state = by->state
		};

		if (look_at(b, &ask, &q->facts[i], &q->mounts[i], err) < 0) {
			g->refused = REFUSED_INVALID;
			return err_wrap(err,
					b->is_work_dir ? "work_dir" : "volume");
		}
		if (b->mode == BIND_RW && i < declared &&
		    check_owner(g, b, &q->facts[i], err) < 0)
			return -err->code;
		q->mounts[i].is_declared = i >= declared;
		/* From here on the very thing that was looked at. */
		b->dev = q->facts[i].dev;
		b->ino = q->facts[i].ino;
		b->source = guard_own(g, q->facts[i].path);
		if (!b->source)
			return guard_no_memory(err);
	}
	req->n_mounts = s->n_binds;
	if (s->workspace) {
		const struct mount_ask ask = {
			.source = s->workspace,
			.target = "/workspace",
			.policy = g->policy,
			.policy_name = g->policy_name,
			.others = by->others,
			.policies = by->policies,
			.policies_name = by->policies_name,
			.state = by->state
		};
		size_t i = req->n_mounts++;

		if (mount_look(&ask, &q->facts[i], &q->mounts[i], err) < 0) {
			g->refused = REFUSED_INVALID;
			return err_wrap(err, "workspace");
		}
		q->mounts[i].word = "workspace";
		s->workspace = guard_own(g, q->facts[i].path);
		s->workspace_dev = q->facts[i].dev;
		s->workspace_ino = q->facts[i].ino;
		if (!s->workspace)
			return guard_no_memory(err);
	}
	req->mounts = q->mounts;
	return 0;
}

static int ask_copies(struct guard *g, struct question *q, struct err *err)
{
	struct cordon_spec *s = g->spec;

	if (s->n_copies == 0)
		return 0;
	q->copy_facts = calloc(s->n_copies, sizeof(*q->copy_facts));
	if (!q->copy_facts)
		return guard_no_memory(err);
	for (size_t i = 0; i < s->n_copies; i++) {
		struct spec_copy *c = &s->copies[i];

		if (copy_look(c->dir, g->policy, g->policy_name,
			      &q->copy_facts[i], &q->copies[i], err) < 0) {
			g->refused = REFUSED_INVALID;
			return err_wrap(err, "copy-out");
		}
		/* From here on the very place that was looked at. */
		c->dir = guard_own(g, q->copy_facts[i].path);
		if (!c->dir)
			return guard_no_memory(err);
	}
	q->req.copies = q->copies;
	q->req.n_copies = s->n_copies;
	return 0;
}

static void ask_rest(const struct guard *g, struct question *q)
{
	const struct cordon_spec *s = g->given;
	struct policy_request *req = &q->req;

	for (size_t i = 0; i < s->n_tmpfs; i++)
		q->places[i] = (struct request_place){
			.path = s->tmpfs[i].target,
			.size = s->tmpfs[i].size,
			.is_stated = s->tmpfs[i].has_size,
			.ret_size = g->by ? &g->spec->tmpfs[i].size : NULL,
		};
	req->places = q->places;
	req->n_places = s->n_tmpfs;
	for (int i = 0; i < WIRE_LAYERS; i++)
		if (s->best_effort & 1U << i)
			q->layers[req->n_best_effort++] = layer_name(
				(enum wire_layer)i);
	req->best_effort = q->layers;
	req->env = (const char *const *)s->env.v;
	req->n_env = s->env.n;
	req->env_from_host = (const char *const *)s->env_from_host.v;
	req->n_env_from_host = s->env_from_host.n;
	req->hosts = (const char *const *)s->allow_hosts.v;
	/* A program more has the network that its box was given. */
	req->n_hosts = g->by && g->by->is_exec ? 0 : s->allow_hosts.n;
	req->secrets = (const char *const *)s->secrets.v;
	req->n_secrets = s->secrets.n;
	req->image = s->image                        ? s->image
		     : s->stated & SPEC_STATED_IMAGE ? "host"
						     : NULL;
	req->image_names = (const char *const *)q->images.v;
	req->isolation = s->stated & SPEC_STATED_ISOLATION ? "native" : NULL;
	req->has_user = g->spec->stated & SPEC_STATED_USER;
	req->uid = g->spec->uid;
	req->gid = g->spec->gid;
	req->states_root = s->stated & SPEC_STATED_ROOT;
	req->wants_writable_root = s->writable_root;
	req->is_code = s->n_blocks > 0;
	req->is_empty = s->is_empty && !s->n_blocks && !s->command.n &&
			!s->command_line;
	req->has_list = s->has_allowed;
}

/* protected names */

static int join(char *ret, size_t size, const char *a, const char *b)
{
	return (size_t)snprintf(ret, size, "%s/%s", a, b) < size
		       ? 0
		       : -ENAMETOOLONG;
}

/* Shows one name of a writable directory as it is, and read-only. */
static int cover(struct guard *g, const struct spec_bind *b, const char *name,
		 int mode, struct err *err)
{
	char source[4096];
	char target[4096];
	struct stat st;

	if (join(source, sizeof(source), b->source, name) < 0 ||
	    join(target, sizeof(target), b->target, name) < 0)
		return err_set(err, ENAMETOOLONG, "a path is too long");
	if (guard_has_target(g->spec, target))
		return 0;
	if (lstat(source, &st) < 0)
		return err_errno(err, errno, "open '%s'", source);
	return guard_add_bind(g, source, target, mode, &st, err);
}

static int watch_dir(struct guard *g, const struct spec_bind *b,
		     const char *given, uint64_t missing, struct err *err)
{
	struct guard_watch *w = &g->watches[g->n_watches];
	struct stat st;

	w->dir = open(b->source,
		      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->dir < 0 || fstat(w->dir, &st) < 0 || st.st_ino != b->ino ||
	    st.st_dev != b->dev) {
		fd_close(&w->dir);
		return err_set(err, ESTALE, "volume '%s' cannot be watched",
			       given);
	}
	w->source = guard_own(g, given);
	w->missing = missing;
	if (g->by && g->by->sweeps_links)
		guard_links_begin(w);
	g->n_watches++;
	return w->source ? 0 : guard_no_memory(err);
}

/* Its files, where they lie in that directory. */
static int cover_policy(struct guard *g, const struct policy *p,
			const struct spec_bind *b, struct err *err)
{
	for (size_t i = 0; i < p->flat.n_sources; i++) {
		const char *name = p->flat.sources[i].name;
		const char *slash = strrchr(name, '/');
		size_t len = strlen(b->source);

		if (slash && (size_t)(slash - name) == len &&
		    strncmp(name, b->source, len) == 0 &&
		    cover(g, b, slash + 1, BIND_RO, err) < 0)
			return -err->code;
	}
	return 0;
}

int guard_protect_dir(struct guard *g, const struct spec_bind *b,
		      const char *given, struct err *err)
{
	uint64_t missing = 0;

	for (size_t i = 0; never_made[i]; i++) {
		char path[4096];
		struct stat st;
		bool is_pin;

		if (join(path, sizeof(path), b->source, never_made[i]) < 0)
			return err_set(err, ENAMETOOLONG, "a path is too long");
		if (lstat(path, &st) < 0) {
			missing |= 1ULL << i;
			continue;
		}
		/*
		 * .git stays writable but for what is named below it; being
		 * a mount of its own it cannot be renamed away.
		 */
		is_pin = strcmp(never_made[i], ".git") == 0 &&
			 S_ISDIR(st.st_mode);
		if (cover(g, b, never_made[i], is_pin ? BIND_RW : BIND_RO,
			  err) < 0)
			return -err->code;
	}
	for (const struct policy *p = g->policy; p; p = p->outer)
		if (cover_policy(g, p, b, err) < 0)
			return -err->code;
	for (const struct policy *const *o = g->by ? g->by->others : NULL;
	     o && *o; o++)
		if (cover_policy(g, *o, b, err) < 0)
			return -err->code;
	return watch_dir(g, b, given, missing, err);
}

static int protect(struct guard *g, const struct question *q, struct err *err)
{
	size_t n = g->spec->n_binds;

	for (size_t i = 0; i < n; i++) {
		const struct spec_bind b = g->spec->binds[i];

		/* What is still to be made: guard_make(). */
		if (b.mode == BIND_RW && q->facts[i].is_dir &&
		    b.ino != MOUNT_MISSING &&
		    guard_protect_dir(g, &b, q->mounts[i].source, err) < 0)
			return -err->code;
	}
	return 0;
}

_Static_assert(SPEC_STATED_IMAGE >= 1U << POLICY_NUMBERS,
	       "bits of numbers and others are apart");

static int copy_spec(struct guard *g, struct err *err)
{
	const struct cordon_spec *s = g->given;

	g->spec = malloc(sizeof(*g->spec));
	if (!g->spec)
		return guard_no_memory(err);
	*g->spec = *s;
	g->spec->no_links = g->by && g->by->refuses_links;
	g->spec->no_pipes = g->by && g->by->refuses_pipes;
	memset(&g->spec->env, 0, sizeof(g->spec->env));
	for (size_t i = 0; i < s->env.n; i++)
		if (strv_add(&g->spec->env, s->env.v[i]) < 0)
			return guard_no_memory(err);
	return 0;
}

/* Whether the workspace that is copied in has what is mounted at `target`. */
static bool is_copied_over(const struct cordon_spec *s, const char *target)
{
	char path[8192];
	struct stat st;

	if (!path_is_below(target, "/workspace"))
		return false;
	(void)snprintf(path, sizeof(path), "%s%s", s->workspace,
		       target + strlen("/workspace"));
	return lstat(path, &st) == 0 || errno != ENOENT;
}

/*
 * What is copied in never reaches the host: through a volume at the workspace,
 * or below it, it would be written there, over what it has. As it is packed
 * each name is held against them again (workspace.c).
 */
static int check_copied_in(struct guard *g, struct err *err)
{
	const struct cordon_spec *s = g->spec;

	for (size_t i = 0; s->workspace && i < s->n_binds; i++) {
		const char *target = s->binds[i].target;

		if (!is_copied_over(s, target))
			continue;
		g->refused = REFUSED_INVALID;
		return err_set(err, EINVAL,
			       "workspace: '%.150s' would be copied into the "
			       "volume at '%.150s'; give one of them, or mount "
			       "the volume outside /workspace",
			       s->workspace, target);
	}
	for (size_t i = 0; s->workspace && i < s->n_tmpfs; i++)
		if (s->tmpfs[i].is_ro &&
		    is_copied_over(s, s->tmpfs[i].target)) {
			g->refused = REFUSED_INVALID;
			return err_set(err, EINVAL,
				       "workspace: it cannot be copied to "
				       "'%.150s', a tmpfs that is ro",
				       s->tmpfs[i].target);
		}
	return 0;
}

static int add_mounts(struct guard *g, size_t *ret_first, struct err *err)
{
	return guard_add_mounts(g, ret_first, err) < 0
		       ? -err->code
		       : check_copied_in(g, err);
}

static int decide(struct guard *g, struct question *q, struct err *err)
{
	bool no_mounts = g->by && g->by->is_exec;
	size_t declared = 0;
	size_t n = 0;

	while (never_made[n])
		n++;
	if (n > 64)
		return err_set(err, E2BIG, "more than 64 protected names");
	if (add_mounts(g, &declared, err) < 0)
		return -err->code;
	if (guard_image_names(g, &q->images, err) < 0)
		return -err->code;
	if (!no_mounts &&
	    (ask_mounts(g, q, declared, err) < 0 || ask_copies(g, q, err) < 0))
		return -err->code;
	q->req.clamps = g->by && g->by->clamps;
	ask_numbers(g->given, &q->req);
	ask_rest(g, q);
	policy_decide(g->policy, &q->req, &g->verdict);
	if (g->verdict.decision == DECISION_DENY)
		return guard_denied(g, err, g->verdict.why);
	if (g->image_err.code) {
		g->refused = REFUSED_INVALID;
		*err = g->image_err;
		return -err->code;
	}
	if (guard_network(g, err) < 0)
		return -err->code;
	if (g->policy && g->given->no_ledger)
		return guard_denied(g, err, "a run under a policy is recorded");
	if (g->policy) {
		guard_tighten(g);
		if (guard_lower(g, err) < 0 || guard_add_places(g, err) < 0)
			return -err->code;
	}
	if (g->image && !no_mounts && guard_add_volumes(g, err) < 0)
		return -err->code;
	if (g->spec->no_workspace &&
	    (g->spec->n_blocks > 0 || g->spec->workspace))
		return guard_denied(
			g, err,
			"code is put into /workspace, which may not be "
			"written (sandbox.writable)");
	if (guard_add_envs(g, err) < 0 ||
	    (!no_mounts && protect(g, q, err) < 0))
		return -err->code;
	return guard_commands(g, err);
}

int guard_open(const struct cordon_spec *s, struct guard *ret, struct err *err)
{
	return guard_judge(s, ret, err) < 0 ? -err->code : guard_ask(ret, err);
}

/*
 * What the request names, else what applies here: for every face the same. The
 * name it was found by is kept, since a link on its way must not be the box's.
 */
static int find_policy(struct guard *g, struct err *err)
{
	const char *name = g->given->policy;

	if (policy_find(name ? name : getenv("CORDON_POLICY"), &g->policy_name,
			err) < 0)
		return -err->code;
	if (g->policy_name &&
	    policy_load(g->policy_name, &g->owned_policy, err) < 0)
		return -err->code;
	g->policy = g->owned_policy;
	return 0;
}

/* What a request to a daemon cannot say: it would mean the daemon's own. */
static int take_policy(struct guard *g, const struct guard_by *by,
		       struct err *err)
{
	const struct cordon_spec *s = g->given;

	g->by = by;
	g->policy = by->policy;
	if (by->policy_name && !(g->policy_name = strdup(by->policy_name)))
		return guard_no_memory(err);
	if (s->n_copies > 0) {
		g->refused = REFUSED_INVALID;
		return err_set(err, EINVAL,
			       "copy-out: the daemon copies nothing to the "
			       "host; ask it for the files");
	}
	if (by->may_not_mount && (s->n_binds > 0 || s->workspace))
		return guard_denied(
			g, err,
			"this daemon is not root, and mounts only what "
			"its own user asks for");
	return 0;
}

static int judge_whole(struct guard *g, struct err *err)
{
	_cleanup_free_ struct question *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return guard_no_memory(err);
	if (copy_spec(g, err) < 0)
		return -err->code;
	r = guard_image(g, err);
	if (r == 0)
		r = guard_add_work_dir(g, err);
	if (r == 0)
		r = decide(g, q, err);
	if (r == 0)
		r = guard_groups(g, err);
	if (r == 0)
		r = guard_add_notes(g, err);
	strv_done(&q->images);
	free(q->facts);
	free(q->copy_facts);
	return r;
}

int guard_judge(const struct cordon_spec *s, struct guard *ret, struct err *err)
{
	memset(ret, 0, sizeof(*ret));
	ret->given = s;
	return find_policy(ret, err) < 0 ? -err->code : judge_whole(ret, err);
}

int guard_judge_by(const struct cordon_spec *s, const struct guard_by *by,
		   struct guard *ret, struct err *err)
{
	memset(ret, 0, sizeof(*ret));
	ret->given = s;
	return take_policy(ret, by, err) < 0 ? -err->code
					     : judge_whole(ret, err);
}

void guard_done(struct guard *g)
{
	for (size_t i = 0; i < g->n_watches; i++)
		fd_close(&g->watches[i].dir);
	for (size_t i = 0; i < g->n_copies; i++)
		fd_close(&g->copies[i]);
	if (g->spec) {
		strv_done(&g->spec->env);
		for (size_t i = 0; i < g->spec->n_line; i++)
			strv_done(&g->spec->line[i].argv);
		if (g->owns_programs)
			strv_done(&g->spec->programs);
	}
	free(g->spec);
	guard_image_done(g);
	policy_free(g->owned_policy);
	free(g->policy_name);
	strv_done(&g->owned);
	strv_done(&g->made);
	strv_done(&g->notes);
	strv_done(&g->lowered);
	memset(g, 0, sizeof(*g));
}
