/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/box.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/util.h"
#include "box/guard.h"
#include "box/policy-load.h"
#include "box/spec.h"
#include "tool/call.h"

#define RUN_OF(ptr, member)                                                    \
	((struct box_run *)((char *)(ptr)-offsetof(struct box_run, member)))

struct box_run {
	struct box_run *next, **at;
	struct box_tool *tool;
	struct tool_call *call;
	struct cordon_spec *spec;
	struct cordon_job *job;
	struct watch watch;
	struct cancel_hook hook;
	struct guard_asker asker;
};

/* the request */

static int error_in(struct err *err, const struct cordon_error *from)
{
	return err_set(err, from->code, "%s", from->text);
}

/* Where the spec has a number of the policy; cpus are two. */
static uint64_t *number_of(struct cordon_spec *s, int n)
{
	uint64_t *const places[POLICY_NUMBERS] = {
		[POLICY_TIMEOUT] = &s->timeout_us,
		[POLICY_CPU_TIME] = &s->cpu_time_us,
		[POLICY_MEMORY] = &s->memory,
		[POLICY_CPUS] = &s->cpu_quota_us,
		[POLICY_PIDS] = &s->pids,
		[POLICY_OUTPUT] = &s->output,
		[POLICY_DISK] = &s->disk,
		[POLICY_FILES] = &s->nofile,
	};

	return places[n];
}

/* The policy's limits for this tool: a ceiling, and never more than was. */
static int narrow(struct cordon_spec *s, const char *tool,
		  const struct policy_value *values, struct err *err)
{
	for (int i = 0; values && i < POLICY_NUMBERS; i++) {
		const struct policy_value *v = &values[i];
		uint64_t *have = number_of(s, i);
		uint64_t most = v->value;

		if (!v->is_stated)
			continue;
		if (i == POLICY_CPUS)
			most = v->value * s->cpu_period_us / 1000;
		if ((s->stated & 1U << i) && *have > most)
			return err_set(err, EPERM,
				       "%s is above the ceiling %s (%s:%u: "
				       "tools.%s.sandbox)",
				       policy_number_name(
					       (enum policy_number)i),
				       v->text, v->at.file, v->at.line, tool);
		/* No limit on CPU time is more than any. */
		if (*have > most || *have == 0)
			*have = most;
		s->stated |= 1U << i;
	}
	return 0;
}

static int make_spec(struct box_tool *b, const struct tool_call *c,
		     struct cordon_spec **ret, struct err *err)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error e = { 0 };
	int r = 0;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	if (b->settings &&
	    cordon_spec_set_json(s, b->settings, strlen(b->settings), &e) < 0)
		r = error_in(err, &e);
	/* After the settings, which are not to choose their own ceiling. */
	if (r == 0)
		r = spec_set(s, "policy", b->policy, err);
	if (r == 0)
		r = b->kind->fill(b, c->args, s, err);
	if (r == 0)
		r = narrow(s, b->tool.name, c->narrow, err);
	if (r < 0) {
		cordon_spec_free(s);
		return r;
	}
	s->agent = c->agent;
	*ret = s;
	return 0;
}

/* the judgement */

static int add_line(struct strv *to, const char *fmt, ...) PRINTF(2, 3);
static int add_line(struct strv *to, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return strv_add(to, text);
}

static int list_limits(const struct cordon_spec *s, struct strv *ret)
{
	return add_line(ret,
			"limits: timeout %llu ms, memory %llu, cpus %.2f, "
			"pids %llu, output %llu, disk %llu, files %llu, "
			"network %s",
			(unsigned long long)s->timeout_us / 1000,
			(unsigned long long)s->memory,
			(double)s->cpu_quota_us / (double)s->cpu_period_us,
			(unsigned long long)s->pids,
			(unsigned long long)s->output,
			(unsigned long long)s->disk,
			(unsigned long long)s->nofile,
			s->has_network ? "as below" : "none");
}

static void put_list(struct buf *b, const char *name,
		     const struct policy_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		(void)buf_printf(b, "%s%s", i ? " " : name, list->v[i]);
}

static void put_hosts(struct buf *b, const char *verb,
		      const struct policy_host *hosts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct policy_host *h = &hosts[i];

		(void)buf_printf(b, "; %s %s", verb, h->host);
		for (size_t k = 0; k < h->n_ports; k++)
			(void)buf_printf(b, ":%u", h->ports[k]);
		put_list(b, " ", &h->methods);
		put_list(b, " ", &h->paths);
		if (h->secret_env)
			(void)buf_printf(b, " with %s", h->secret_env);
	}
}

/* Where it can go: an answer is bound to that as to any limit. */
static int list_network(const struct guard *g, struct strv *ret)
{
	const struct cordon_spec *s = g->spec;
	struct buf b;
	int r;

	if (!s->has_network)
		return 0;
	buf_init(&b, 1U << 20);
	(void)buf_puts(&b, "network: no other hosts than these");
	if (g->policy) {
		put_hosts(&b, "may", g->policy->allow_hosts,
			  g->policy->n_allow_hosts);
		put_hosts(&b, "asks", g->policy->ask_hosts,
			  g->policy->n_ask_hosts);
	}
	for (size_t i = 0; i < s->allow_hosts.n; i++)
		(void)buf_printf(&b, "; wants %s", s->allow_hosts.v[i]);
	r = b.error ? b.error : strv_add(ret, b.data);
	buf_done(&b);
	return r;
}

/* All that makes the same code do something else, and what crosses. */
static int list_places(const struct cordon_spec *s, struct tool_judgement *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_binds; i++) {
		const struct spec_bind *m = &s->binds[i];
		bool is_rw = m->mode == BIND_RW;

		r = add_line(&ret->changes, "mount %s -> %s %s", m->source,
			     m->target, is_rw ? "rw" : "ro");
		if (is_rw && !ret->crosses)
			(void)snprintf(ret->why, sizeof(ret->why),
				       "it can change '%.200s' of this machine",
				       m->source);
		ret->crosses |= is_rw;
	}
	for (size_t i = 0; r == 0 && i < s->n_copies; i++) {
		r = add_line(&ret->changes, "copy out %s -> %s",
			     s->copies[i].glob, s->copies[i].dir);
		if (!ret->crosses)
			(void)snprintf(ret->why, sizeof(ret->why),
				       "results are copied to '%.200s'",
				       s->copies[i].dir);
		ret->crosses = true;
	}
	if (r == 0 && s->workspace)
		r = add_line(&ret->changes, "workspace %s", s->workspace);
	if (r == 0 && s->image)
		r = add_line(&ret->changes, "image %s", s->image);
	for (size_t i = 0; r == 0 && i < s->env.n; i++)
		r = add_line(&ret->changes, "variable %s", s->env.v[i]);
	return r;
}

static int tell_judgement(struct box_tool *b, const struct guard *g,
			  const json_t *args, struct tool_judgement *ret)
{
	int r = 0;

	if (b->kind->changes)
		r = b->kind->changes(b, args, &ret->changes);
	if (r == 0 && b->kind->blocks) {
		ret->n_told = (unsigned int)ret->changes.n;
		ret->blocks = b->kind->blocks(b, args);
		r = json_array_size(ret->blocks) > 0 ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = list_places(g->spec, ret);
	ret->is_contained = !ret->crosses && !g->spec->has_network;
	if (r == 0)
		r = list_limits(g->spec, &ret->changes);
	if (r == 0)
		r = list_network(g, &ret->changes);
	ret->decision = g->verdict.decision;
	if (ret->decision == DECISION_ASK)
		(void)snprintf(ret->why, sizeof(ret->why), "%s",
			       g->verdict.why);
	if (r == 0 && b->kind->show) {
		ret->text = b->kind->show(b, args);
		r = ret->text ? 0 : -ENOMEM;
	}
	return r;
}

static void denied(struct tool_judgement *ret, bool is_invalid,
		   const struct err *why)
{
	ret->decision = DECISION_DENY;
	ret->cause = is_invalid ? "invalid" : "denied";
	(void)snprintf(ret->why, sizeof(ret->why), "%s", why->text);
}

/* The spec's own refusals are found here too, before anybody is asked. */
static int judge(struct tool *t, const struct tool_call *c,
		 struct tool_judgement *ret, struct err *err)
{
	struct box_tool *b = (struct box_tool *)t;
	_cleanup_free_ struct guard *g = calloc(1, sizeof(*g));
	struct cordon_spec *s = NULL;
	struct err why = { 0 };
	int r = 0;

	if (!g)
		return err_set(err, ENOMEM, "out of memory");
	if (make_spec(b, c, &s, &why) < 0) {
		denied(ret, why.code != EPERM, &why);
		return 0;
	}
	if (guard_judge(s, g, &why) < 0)
		denied(ret, g->refused == REFUSED_INVALID, &why);
	else if (tell_judgement(b, g, c->args, ret) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	guard_done(g);
	cordon_spec_free(s);
	return r;
}

/* the run */

/* Whoever made the call has asked; here only what was said is passed on. */
static int was_asked(void *arg, const struct approve_request *req,
		     struct approve_answer *ret, struct err *err)
{
	const struct box_run *run = arg;

	(void)req;
	*ret = (struct approve_answer){ .scope = "once", .by = "cordon" };
	if (!run->call->answer)
		return err_set(err, EPERM, "nobody was asked");
	*ret = *run->call->answer;
	return 0;
}

static void on_output(void *arg, int stream, const void *data, size_t len)
{
	struct box_run *run = arg;
	json_t *part = result_text(data, len);

	(void)stream;
	if (json_object_get(part, "text"))
		tool_progress(run->call,
			      json_string_value(json_object_get(part, "text")));
	json_decref(part);
}

static void run_free(struct box_run *run)
{
	if (run->watch.handle)
		watch_stop(&run->watch);
	cancel_unhook(&run->hook);
	cordon_spec_free(run->spec);
	if (run->next)
		run->next->at = run->at;
	*run->at = run->next;
	free(run);
}

/* The detail then has all of it but what the parts hold already. */
static void take_parts(struct tool_result *r, const char *text)
{
	struct err err = { 0 };
	json_t *list = result_parts(text, &err);

	if (!list) {
		result_set(r, true, err.text);
		return;
	}
	json_decref(r->content);
	r->content = list;
	(void)json_object_del(r->detail, "stdout");
	(void)json_object_del(r->detail, "output");
}

static void finish(struct box_run *run)
{
	struct tool_call *c = run->call;
	struct box_tool *b = run->tool;
	struct cordon_result *r = cordon_job_end(take_ptr(run->job));
	_cleanup_free_ char *json = r ? cordon_result_json(r) : NULL;
	_cleanup_free_ char *text = NULL;
	struct tool_result ret = { 0 };
	bool is_good = r && strcmp(cordon_result_status(r), "success") == 0;

	ret.detail = json ? json_loads(json, 0, NULL) : NULL;
	text = ret.detail ? b->kind->report(b, ret.detail) : NULL;
	result_set(&ret, !is_good,
		   text ? text : "its result could not be read");
	if (is_good && text && b->tool.gives_parts)
		take_parts(&ret, text);
	run_free(run);
	keeper_left(b->keeper,
		    r && strcmp(cordon_result_cause(r), "lost") == 0);
	if (r)
		cordon_result_free(r);
	tool_done(c, &ret);
}

static void on_ready(struct watch *w)
{
	struct box_run *run = RUN_OF(w, watch);

	if (cordon_job_step(run->job))
		finish(run);
}

static void on_cancel(struct cancel_hook *h, struct cancel *c)
{
	struct box_run *run = RUN_OF(h, hook);
	const char *why = cancel_reason(c);

	if (run->job)
		cordon_job_cancel(run->job, why);
}

static int start(struct box_run *run, struct err *err)
{
	static const struct cordon_events events = { .output = on_output };
	struct box_tool *b = run->tool;
	struct cordon_error e = { 0 };

	if (make_spec(b, run->call, &run->spec, err) < 0 || !run->spec)
		return -err->code;
	run->asker = (struct guard_asker){ .how = was_asked, .arg = run };
	run->spec->asker = &run->asker;
	if (keeper_open(b->keeper, err) < 0)
		return -err->code;
	run->job = cordon_start(keeper_cordon(b->keeper), run->spec, &events,
				run, &e);
	if (!run->job)
		return error_in(err, &e);
	keeper_entered(b->keeper);
	run->watch.ready = on_ready;
	if (watch_start(b->loop, &run->watch, cordon_job_fd(run->job)) < 0) {
		cordon_result_free(cordon_job_end(take_ptr(run->job)));
		keeper_left(b->keeper, false);
		return err_set(err, EIO, "a run cannot be watched");
	}
	run->hook.fired = on_cancel;
	cancel_hook(run->call->cancel, &run->hook);
	return 0;
}

/* As a run that never was, so that there is one way to read them all. */
static void refuse(struct tool_call *c, const char *cause, const char *why)
{
	json_t *o = json_pack("{s:b, s:s, s:s, s:s}", "success", 0, "output",
			      why, "status", "error", "cause", cause);
	_cleanup_free_ char *text = o ? json_dumps(o, 0) : NULL;
	struct tool_result r = {
		.detail = json_pack("{s:s, s:s, s:s, s:i}", "status", "error",
				    "cause", cause, "message", why, "exit_code",
				    strcmp(cause, "denied") == 0 ? 126 : 125)
	};

	json_decref(o);
	result_set(&r, true, text ? text : why);
	tool_done(c, &r);
}

static void call(struct tool *t, struct tool_call *c)
{
	struct box_tool *b = (struct box_tool *)t;
	const struct tool_judgement *no = c->denied;
	struct box_run *run;
	struct err err = { 0 };

	if (no) {
		refuse(c, no->cause ? no->cause : "denied", no->why);
		return;
	}
	run = calloc(1, sizeof(*run));
	if (!run) {
		tool_done_text(c, true, "out of memory");
		return;
	}
	run->tool = b;
	run->call = c;
	run->at = &b->runs;
	run->next = b->runs;
	if (run->next)
		run->next->at = &run->next;
	b->runs = run;
	if (start(run, &err) == 0)
		return;
	run_free(run);
	refuse(c, err.code == EPERM ? "denied" : "setup", err.text);
}

static void free_tool(struct tool *t)
{
	struct box_tool *b = (struct box_tool *)t;

	/* Ends what runs, and waits until nothing of it is left. */
	while (b->runs)
		finish(b->runs);
	keeper_unref(b->keeper);
	if (b->kind->free)
		b->kind->free(b);
	free(b->settings);
	free(b->policy);
	free(b);
}

static const struct tool_ops ops = { .call = call,
				     .judge = judge,
				     .free = free_tool };

/* reporting */

static const char *text_of(const json_t *doc, const char *name)
{
	const char *text = json_string_value(json_object_get(doc, name));

	return text ? text : "";
}

/* Both streams, and the reason where it did not end well. */
static char *all_output(const json_t *doc, bool is_good)
{
	const char *output = text_of(doc, "output");
	const char *why = text_of(doc, "message");
	struct buf b;

	buf_init(&b, 64U << 20);
	if (*output)
		(void)buf_puts(&b, output);
	else
		(void)buf_printf(&b, "%s%s", text_of(doc, "stdout"),
				 text_of(doc, "stderr"));
	if (!is_good && *why && !(b.data && strstr(b.data, why)))
		(void)buf_printf(&b, "%s%s",
				 b.data && b.len && b.data[b.len - 1] != '\n'
					 ? "\n"
					 : "",
				 why);
	return b.data ? buf_take(&b) : strdup("");
}

static char *reduced(const json_t *doc, const char *output, size_t max)
{
	const char *status = text_of(doc, "status");
	struct tool_result r = { 0 };
	json_t *o;
	char *text;

	result_set(&r, false, output);
	result_cut(&r, max);
	o = json_pack("{s:b, s:O, s:s, s:s}", "success",
		      (int)(strcmp(status, "success") == 0), "output",
		      json_object_get(json_array_get(r.content, 0), "text"),
		      "status", status, "cause", text_of(doc, "cause"));
	tool_result_done(&r);
	text = o ? json_dumps(o, 0) : NULL;
	json_decref(o);
	return text;
}

/* What is escaped takes more room; then less of it is told. */
char *box_report(struct box_tool *b, const json_t *doc)
{
	size_t max = b->tool.max_result ? b->tool.max_result : CALL_MAX_RESULT;
	bool is_good = strcmp(text_of(doc, "status"), "success") == 0;
	_cleanup_free_ char *output = all_output(doc, is_good);
	char *text = NULL;

	for (size_t most = max; output && most > 0; most /= 2) {
		free(text);
		text = reduced(doc, output, most);
		if (!text || strlen(text) <= max)
			break;
	}
	return text;
}

/* An agent always has a policy: the one that applies here, or the shipped. */
static int find_policy(const char *given, char **ret, struct err *err)
{
	if (policy_find(given ? given : getenv("CORDON_POLICY"), ret, err) < 0)
		return -err->code;
	if (!*ret)
		*ret = strdup("strict");
	return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* What is wrong in them is said when the tool is made, not when it is used. */
static int check_settings(const char *settings, struct err *err)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error e = { 0 };
	int r = 0;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	if (cordon_spec_set_json(s, settings, strlen(settings), &e) < 0)
		r = error_in(err, &e);
	cordon_spec_free(s);
	return r;
}

int box_tool_init(struct box_tool *b, const struct tool_box *from,
		  const struct box_kind *kind, const char *name,
		  const char *description, const json_t *schema,
		  struct err *err)
{
	b->kind = kind;
	b->loop = from->loop;
	b->keeper = from->keeper ? keeper_ref(from->keeper)
				 : keeper_new(from->cordon);
	if (!b->keeper)
		return err_set(err, ENOMEM, "out of memory");
	if (from->settings)
		b->settings = json_dumps(from->settings, 0);
	if (from->settings && !b->settings) {
		keeper_unref(b->keeper);
		return err_set(err, ENOMEM, "out of memory");
	}
	if ((b->settings && check_settings(b->settings, err) < 0) ||
	    find_policy(from->policy, &b->policy, err) < 0 ||
	    tool_init(&b->tool, &ops, name, description, schema, err) < 0) {
		keeper_unref(b->keeper);
		free(b->settings);
		free(b->policy);
		return -err->code;
	}
	b->tool.is_boxed = true;
	return 0;
}
