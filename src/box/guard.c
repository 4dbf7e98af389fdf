/* SPDX-License-Identifier: Apache-2.0 */
#include "box/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/num.h"
#include "base/util.h"
#include "box/approve.h"
#include "box/guard-facts.h"
#include "box/guard-image.h"
#include "box/line.h"
#include "box/policy-load.h"
#include "box/result.h"
#include "policy/never.h"

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

/* A string that lives as long as the guard. */
static char *own(struct guard *g, const char *text)
{
	if (strv_add(&g->owned, text) < 0)
		return NULL;
	return g->owned.v[g->owned.n - 1];
}

static int denied(struct guard *g, struct err *err, const char *text)
{
	g->refused = REFUSED_DENIED;
	return err_set(err, EPERM, "%s", text);
}

static int judge(struct guard *g, const struct command_rules *rules,
		 const char *where, struct err *err)
{
	struct judgement j;
	char text[480];

	for (size_t i = 0; i < g->spec->n_blocks; i++)
		g->spec->blocks[i].program = NULL;
	if (line_judge(g->spec, rules, &j, err) < 0)
		return -err->code;
	if (j.decision == DECISION_DENY) {
		(void)snprintf(text, sizeof(text), "%s%s", j.why, where);
		return denied(g, err, text);
	}
	if (j.decision > g->verdict.decision) {
		g->verdict.decision = j.decision;
		(void)snprintf(g->verdict.why, sizeof(g->verdict.why), "%s",
			       j.why);
	}
	if (!g->rule || j.decision == DECISION_ASK)
		g->rule = j.rule;
	return 0;
}

static bool is_given(const struct command_rules *rules, const char *name)
{
	for (size_t i = 0; rules && i < rules->n_allow; i++)
		if (strcmp(rules->allow[i].name, name) == 0)
			return true;
	for (size_t i = 0; rules && i < rules->n_ask; i++)
		if (strcmp(rules->ask[i].name, name) == 0)
			return true;
	return !rules;
}

/*
 * The request's own list, by name. It narrows the policy's: what that does
 * not have is not in the box, whatever the request says.
 */
static int judge_allowed(struct guard *g, const struct command_rules *policy,
			 struct err *err)
{
	const struct strv *names = &g->given->allowed;
	_cleanup_free_ struct command_rule *allow = calloc(names->n + 1,
							   sizeof(*allow));
	struct command_rules rules = { .allow = allow };
	int r;

	if (!allow)
		return no_memory(err);
	if (policy) {
		rules.deny = policy->deny;
		rules.n_deny = policy->n_deny;
		rules.hosts = policy->hosts;
	}
	for (size_t i = 0; i < names->n; i++)
		if (is_given(policy, names->v[i]))
			allow[rules.n_allow++].name = names->v[i];
	r = judge(g, &rules, " (allowed_commands)", err);
	/* A rule of this list ends with this function. */
	if (g->rule >= allow && g->rule < allow + rules.n_allow)
		g->rule = NULL;
	return r;
}

int guard_commands(struct guard *g, struct err *err)
{
	const struct command_rules *rules = g->policy && g->policy->has_commands
						    ? &g->policy->commands
						    : NULL;
	bool has_list = rules || g->given->has_allowed;
	char where[300] = "";

	if (g->image && (has_list || g->given->has_programs)) {
		g->refused = REFUSED_INVALID;
		return err_set(err, EOPNOTSUPP,
			       "a list of commands holds for the root 'host' "
			       "alone; with an image it is not in this build");
	}

	if (!has_list && !g->given->command_line)
		return 0;
	/* The copy has the lists of the original; from here on its own. */
	g->spec->n_line = 0;
	if (has_list)
		memset(&g->spec->programs, 0, sizeof(g->spec->programs));
	g->owns_programs = has_list;
	if (rules)
		(void)snprintf(where, sizeof(where), " (commands, %.200s:%u)",
			       g->policy->commands_at.file,
			       g->policy->commands_at.line);
	if ((rules || !g->given->has_allowed) &&
	    judge(g, rules, where, err) < 0)
		return -err->code;
	return g->given->has_allowed ? judge_allowed(g, rules, err) : 0;
}

/* asking */

static const char *const joiners[] = { "&&", "||", ";", "|" };

/* The programs as they will be executed, each list ended by NULL. */
static size_t list_programs(const struct cordon_spec *s,
			    struct approve_program *ret)
{
	if (s->command.n) {
		ret[0] = (struct approve_program){
			"", (const char *const *)s->command.v
		};
		return 1;
	}
	for (size_t i = 0; i < s->n_line; i++)
		ret[i] = (struct approve_program){
			i ? joiners[s->line[i].join] : "",
			(const char *const *)s->line[i].argv.v
		};
	return s->n_line;
}

/* All blocks one after the other, as they will be run. */
static int list_code(const struct cordon_spec *s, struct buf *text)
{
	for (size_t i = 0; i < s->n_blocks; i++)
		if ((i && buf_puts(text, "\n") < 0) ||
		    buf_add(text, s->blocks[i].code, s->blocks[i].len) < 0)
			return -ENOMEM;
	return 0;
}

static void who_is_asked(const struct policy *p, struct approve_request *req)
{
	bool any = !p || p->ask.n == 0;

	req->may_terminal = any || policy_list_has(&p->ask, "terminal");
	req->may_store = any || policy_list_has(&p->ask, "store");
	req->expire_ms = p ? p->expire_us / 1000 : 0;
}

/*
 * Readable when a signal came that would end us and that the caller holds
 * back for itself; it is not taken from there. Others end us anyway.
 */
static int watch_signals(void)
{
	static const int ends[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
	sigset_t blocked;
	sigset_t set;
	bool any = false;

	(void)sigemptyset(&set);
	if (pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0)
		return NO_FD;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (sigismember(&blocked, ends[i]) == 1) {
			(void)sigaddset(&set, ends[i]);
			any = true;
		}
	return any ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : NO_FD;
}

/* Where each block ends and in what it is written is part of what is asked. */
static void name_blocks(const struct cordon_spec *s, struct buf *out)
{
	for (size_t i = 0; s->n_blocks > 1 && i < s->n_blocks; i++)
		buf_printf(out, "%s%s (%zu bytes)", i ? ", " : "",
			   s->blocks[i].lang_name, s->blocks[i].len);
	if (s->n_blocks == 1)
		buf_puts(out, s->blocks[0].lang_name);
}

static int ask_person(struct guard *g, const struct buf *code,
		      const char *language, struct err *err)
{
	_cleanup_fd_ int signals = watch_signals();
	const struct cordon_spec *s = g->spec;
	struct approve_program programs[SPEC_MAX_LINE];
	struct approve_request req = {
		.kind = s->n_blocks ? "code" : "command",
		.programs = programs,
		.n_programs = list_programs(s, programs),
		.language = language,
		.text = s->n_blocks ? code->data : NULL,
		.text_len = s->n_blocks ? code->len : 0,
		.why = g->verdict.why,
		.rule = g->rule ? g->rule->name : "approvals",
		.file = g->rule && g->rule->file ? g->rule->file
			: g->policy ? g->policy->flat.sources[0].name
				    : NULL,
		.line = g->rule ? g->rule->line : 0,
		.cancel = signals,
	};
	struct approve_answer *answer = &g->answer;
	char text[600];

	who_is_asked(g->policy, &req);
	g->was_asked = approve_ask(&req, answer, err) == 0;
	if (!g->was_asked) {
		(void)snprintf(text, sizeof(text),
			       "a person must be asked (%.200s), and that "
			       "failed: %.200s",
			       g->verdict.why, err->text);
		return denied(g, err, text);
	}
	if (!answer->is_allowed) {
		(void)snprintf(text, sizeof(text),
			       "a person was asked (%.200s), and the answer is "
			       "no: %.250s",
			       g->verdict.why, answer->reason);
		return denied(g, err, text);
	}
	return 0;
}

int guard_ask(struct guard *g, struct err *err)
{
	struct buf language;
	struct buf code;
	int r;

	if (g->verdict.decision != DECISION_ASK)
		return 0;
	buf_init(&code, 64 << 20);
	buf_init(&language, 64 << 10);
	name_blocks(g->spec, &language);
	r = list_code(g->spec, &code) < 0 || language.error
		    ? no_memory(err)
		    : ask_person(g, &code, language.data, err);
	buf_done(&language);
	buf_done(&code);
	return r;
}

/* what the policy adds */

static bool is_target(const struct cordon_spec *s, const char *path)
{
	for (size_t i = 0; i < s->n_binds; i++)
		if (strcmp(s->binds[i].target, path) == 0)
			return true;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, path) == 0)
			return true;
	return false;
}

static int add_bind(struct guard *g, const char *source, const char *target,
		    int mode, const struct stat *st, struct err *err)
{
	struct cordon_spec *s = g->spec;
	struct spec_bind *b = &s->binds[s->n_binds];

	if (s->n_binds == SPEC_MAX_ITEMS)
		return err_set(err, E2BIG, "more than %d volumes",
			       SPEC_MAX_ITEMS);
	memset(b, 0, sizeof(*b));
	b->source = own(g, source);
	b->target = own(g, target);
	b->mode = mode;
	b->dev = st ? st->st_dev : 0;
	b->ino = st ? st->st_ino : 0;
	if (!b->source || !b->target)
		return no_memory(err);
	s->n_binds++;
	return 0;
}

static int add_place(struct guard *g, const char *target, uint64_t size,
		     struct err *err)
{
	struct cordon_spec *s = g->spec;

	if (is_target(s, target))
		return 0;
	if (s->n_tmpfs == SPEC_MAX_ITEMS)
		return err_set(err, E2BIG, "too many writable places");
	s->tmpfs[s->n_tmpfs].target = own(g, target);
	s->tmpfs[s->n_tmpfs].size = size;
	if (!s->tmpfs[s->n_tmpfs].target)
		return no_memory(err);
	s->n_tmpfs++;
	return 0;
}

static int add_mounts(struct guard *g, size_t *ret_first, struct err *err)
{
	const struct policy *p = g->policy;

	*ret_first = g->spec->n_binds;
	for (size_t i = 0; p && i < p->n_mounts; i++) {
		const struct policy_mount *m = &p->mounts[i];

		if (is_target(g->spec, m->to))
			continue;
		if (add_bind(g, m->from, m->to, m->is_rw ? BIND_RW : BIND_RO,
			     NULL, err) < 0)
			return -err->code;
	}
	return 0;
}

static int add_places(struct guard *g, struct err *err)
{
	static const char *const usual[] = { "/tmp", "/workspace", "/dev/shm" };
	const struct policy *p = g->policy;
	struct cordon_spec *s = g->spec;

	for (size_t i = 0; i < p->n_tmpfs; i++)
		if (add_place(g, p->tmpfs[i].name, p->tmpfs[i].size, err) < 0)
			return -err->code;
	for (size_t i = 0; i < p->writable.n; i++) {
		bool is_usual = false;

		for (size_t k = 0; k < ARRAY_SIZE(usual); k++)
			is_usual |= strcmp(usual[k], p->writable.v[i]) == 0;
		if (!is_usual &&
		    add_place(g, p->writable.v[i], s->disk, err) < 0)
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
		return no_memory(err);
	}
	return strv_add(env, text) < 0 ? no_memory(err) : 0;
}

static int add_envs(struct guard *g, struct err *err)
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

static void tighten(struct guard *g)
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
	return denied(g, err, text);
}

static int ask_mounts(struct guard *g, struct question *q, size_t declared,
		      struct err *err)
{
	const char *state = g->by ? g->by->state : NULL;
	struct cordon_spec *s = g->spec;
	struct policy_request *req = &q->req;

	if (s->n_binds == 0 && !s->workspace)
		return 0;
	q->facts = calloc(s->n_binds + 1, sizeof(*q->facts));
	if (!q->facts)
		return no_memory(err);
	for (size_t i = 0; i < s->n_binds; i++) {
		struct spec_bind *b = &s->binds[i];
		const struct mount_ask ask = { .source = b->source,
					       .target = b->target,
					       .is_rw = b->mode == BIND_RW,
					       .policy = g->policy,
					       .policy_name = g->policy_name,
					       .state = state };

		if (mount_look(&ask, &q->facts[i], &q->mounts[i], err) < 0) {
			g->refused = REFUSED_INVALID;
			return err_wrap(err, "volume");
		}
		if (b->mode == BIND_RW && i < declared &&
		    check_owner(g, b, &q->facts[i], err) < 0)
			return -err->code;
		q->mounts[i].is_declared = i >= declared;
		/* From here on the very thing that was looked at. */
		b->dev = q->facts[i].dev;
		b->ino = q->facts[i].ino;
		b->source = own(g, q->facts[i].path);
		if (!b->source)
			return no_memory(err);
	}
	req->n_mounts = s->n_binds;
	if (s->workspace) {
		const struct mount_ask ask = { .source = s->workspace,
					       .target = "/workspace",
					       .policy = g->policy,
					       .policy_name = g->policy_name,
					       .state = state };
		size_t i = req->n_mounts++;

		if (mount_look(&ask, &q->facts[i], &q->mounts[i], err) < 0) {
			g->refused = REFUSED_INVALID;
			return err_wrap(err, "workspace");
		}
		s->workspace = own(g, q->facts[i].path);
		s->workspace_dev = q->facts[i].dev;
		s->workspace_ino = q->facts[i].ino;
		if (!s->workspace)
			return no_memory(err);
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
		return no_memory(err);
	for (size_t i = 0; i < s->n_copies; i++) {
		struct spec_copy *c = &s->copies[i];

		if (copy_look(c->dir, g->policy, g->policy_name,
			      &q->copy_facts[i], &q->copies[i], err) < 0) {
			g->refused = REFUSED_INVALID;
			return err_wrap(err, "copy-out");
		}
		/* From here on the very place that was looked at. */
		c->dir = own(g, q->copy_facts[i].path);
		if (!c->dir)
			return no_memory(err);
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
		q->places[i] = (struct request_place){ s->tmpfs[i].target,
						       s->tmpfs[i].size };
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
	if (is_target(g->spec, target))
		return 0;
	if (lstat(source, &st) < 0)
		return err_errno(err, errno, "open '%s'", source);
	return add_bind(g, source, target, mode, &st, err);
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
	w->source = own(g, given);
	w->missing = missing;
	g->n_watches++;
	return w->source ? 0 : no_memory(err);
}

static int protect_dir(struct guard *g, const struct spec_bind *b,
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
	for (size_t i = 0; g->policy && i < g->policy->flat.n_sources; i++) {
		const char *name = g->policy->flat.sources[i].name;
		const char *slash = strrchr(name, '/');
		size_t len = strlen(b->source);

		if (slash && (size_t)(slash - name) == len &&
		    strncmp(name, b->source, len) == 0 &&
		    cover(g, b, slash + 1, BIND_RO, err) < 0)
			return -err->code;
	}
	return watch_dir(g, b, given, missing, err);
}

static int protect(struct guard *g, const struct question *q, struct err *err)
{
	size_t n = g->spec->n_binds;

	for (size_t i = 0; i < n; i++) {
		const struct spec_bind b = g->spec->binds[i];

		if (b.mode == BIND_RW && q->facts[i].is_dir &&
		    protect_dir(g, &b, q->mounts[i].source, err) < 0)
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
		return no_memory(err);
	*g->spec = *s;
	g->spec->no_links = g->by && g->by->refuses_links;
	memset(&g->spec->env, 0, sizeof(g->spec->env));
	for (size_t i = 0; i < s->env.n; i++)
		if (strv_add(&g->spec->env, s->env.v[i]) < 0)
			return no_memory(err);
	return 0;
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
		return denied(g, err, g->verdict.why);
	if (g->image_err.code) {
		g->refused = REFUSED_INVALID;
		*err = g->image_err;
		return -err->code;
	}
	if (g->policy && g->given->no_ledger)
		return denied(g, err, "a run under a policy is recorded");
	if (g->policy) {
		tighten(g);
		if (add_places(g, err) < 0)
			return -err->code;
	}
	if (g->spec->no_workspace &&
	    (g->spec->n_blocks > 0 || g->spec->workspace))
		return denied(g, err,
			      "code is put into /workspace, which may not be "
			      "written (sandbox.writable)");
	if (add_envs(g, err) < 0 || (!no_mounts && protect(g, q, err) < 0))
		return -err->code;
	return guard_commands(g, err);
}

/*
 * Before the box lives: what it can write on the host might be, or lie above,
 * such a directory, and a link there would lead us anywhere.
 */
static int open_copies(struct guard *g, struct err *err)
{
	for (size_t i = 0; i < g->spec->n_copies; i++) {
		const char *dir = g->spec->copies[i].dir;
		_cleanup_fd_ int fd = NO_FD;
		char path[4096];

		(void)mkdir(dir, 0777);
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0) {
			g->refused = REFUSED_INVALID;
			return err_errno(err, errno, "copy-out: open '%s'",
					 dir);
		}
		if (fd_path(fd, path, sizeof(path)) < 0 ||
		    strcmp(path, dir) != 0)
			return err_set(err, ESTALE,
				       "copy-out: '%s' is no longer what it "
				       "was a moment ago",
				       dir);
		g->copies[g->n_copies++] = take_fd(&fd);
	}
	return 0;
}

int guard_open(const struct cordon_spec *s, struct guard *ret, struct err *err)
{
	int r = guard_judge(s, ret, err);

	if (r == 0)
		r = guard_ask(ret, err);
	return r < 0 ? r : open_copies(ret, err);
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
		return no_memory(err);
	if (s->policy)
		return denied(g, err,
			      "a request to the daemon cannot name a policy; "
			      "the daemon has its own");
	if (s->n_copies > 0) {
		g->refused = REFUSED_INVALID;
		return err_set(err, EINVAL,
			       "copy-out: the daemon copies nothing to the "
			       "host; ask it for the files");
	}
	if (by->may_not_mount && (s->n_binds > 0 || s->workspace))
		return denied(g, err,
			      "this daemon is not root, and mounts only what "
			      "its own user asks for");
	return 0;
}

static int judge_whole(struct guard *g, struct err *err)
{
	_cleanup_free_ struct question *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return no_memory(err);
	if (copy_spec(g, err) < 0)
		return -err->code;
	r = guard_image(g, err);
	if (r == 0)
		r = decide(g, q, err);
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

/* afterwards */

/* Gives it a name that nothing obeys; false if that cannot be done. */
static bool move_away(int dir, const char *name, char *away, size_t size)
{
	for (int i = 0; i < 100; i++) {
		(void)snprintf(away, size, "%s.cordon-removed-%d", name, i);
		if (syscall(SYS_renameat2, dir, name, dir, away,
			    1 /* RENAME_NOREPLACE */) == 0)
			return true;
		if (errno != EEXIST)
			break;
	}
	return false;
}

/* A name that is not there is well; one that we may not look for is told. */
static void tell_unseen(const char *source, const char *name, int code,
			struct strv *ret)
{
	char line[600];

	if (code == ENOENT || code == ENOTDIR || code == ELOOP)
		return;
	(void)snprintf(line, sizeof(line),
		       "violation: '%s' in '%.300s' could not be looked for: "
		       "%s",
		       name, source, strerror(code));
	(void)strv_add(ret, line);
}

/*
 * The box may have taken away the owner's rights to a directory, so that what
 * it made there is not found: they are given back while we look. The mode
 * from before, or -1 where nothing was changed.
 */
static int unlock_dir(int dir)
{
	char path[64];
	struct stat st;

	if (fstat(dir, &st) < 0 || st.st_uid != geteuid() ||
	    (st.st_mode & 0700) == 0700)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	if (chmod(path, (st.st_mode & 07777) | 0700) < 0)
		return -1;
	return (int)(st.st_mode & 07777);
}

static void lock_dir(int dir, int mode)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	if (mode >= 0)
		(void)chmod(path, (mode_t)mode);
}

/*
 * The box is dead, but what it left may be links: the directory above a name
 * is entered without following one, and a rename does not follow either.
 */
static void sweep_name(int dir, const char *source, const char *name,
		       struct strv *ret)
{
	const char *slash = strchr(name, '/');
	const char *last = slash ? slash + 1 : name;
	char away[128];
	char line[600];
	struct stat st;
	bool gone;

	if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		tell_unseen(source, name, errno, ret);
		return;
	}
	gone = move_away(dir, last, away, sizeof(away));
	(void)snprintf(line, sizeof(line),
		       "violation: '%s' was made in '%.300s', where the box "
		       "must not; it %s%s",
		       name, source,
		       gone ? "is now " : "could not be moved away",
		       gone ? away : "");
	(void)strv_add(ret, line);
}

static void sweep_one(int at, const char *source, const char *name,
		      struct strv *ret)
{
	const char *slash = strchr(name, '/');
	_cleanup_fd_ int below = NO_FD;
	char top[64];
	int mode;

	if (!slash) {
		sweep_name(at, source, name, ret);
		return;
	}
	(void)snprintf(top, sizeof(top), "%.*s", (int)(slash - name), name);
	below = openat(at, top, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0) {
		tell_unseen(source, name, errno, ret);
		return;
	}
	mode = unlock_dir(below);
	sweep_name(below, source, name, ret);
	lock_dir(below, mode);
}

void guard_sweep_dir(int dir, const char *source, uint64_t missing,
		     struct strv *ret)
{
	int mode = unlock_dir(dir);

	for (size_t k = 0; k < 64 && never_made[k]; k++)
		if (missing & 1ULL << k)
			sweep_one(dir, source, never_made[k], ret);
	lock_dir(dir, mode);
}

void guard_sweep(struct guard *g, struct strv *ret)
{
	for (size_t i = 0; i < g->n_watches; i++)
		guard_sweep_dir(g->watches[i].dir, g->watches[i].source,
				g->watches[i].missing, ret);
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
	memset(g, 0, sizeof(*g));
}
