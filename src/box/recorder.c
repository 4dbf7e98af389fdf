/* SPDX-License-Identifier: Apache-2.0 */
#include "box/recorder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"
#include "box/handle.h"
#include "box/images.h"
#include "box/prepare.h"
#include "gate/reason.h"
#include "ledger/ledger.h"
#include "ledger/redact.h"

#define MAX_MOUNTS (2 * SPEC_MAX_ITEMS + 8)

/*
 * What the box cannot start without, whatever the machine has: the layers
 * that were not given up by --best-effort.
 */
static void list_layers(const struct cordon_spec *s, const char **ret)
{
	static const struct {
		const char *name;
		uint32_t bits;
	} table[] = {
		{ "namespaces", 0 },
		{ "capabilities", 0 },
		{ "seccomp", 0 },
		{ "landlock", 1U << WIRE_L_LANDLOCK },
		{ "memory", 1U << WIRE_L_MEMORY },
		{ "cpu", 1U << WIRE_L_CPU },
		{ "pids", 1U << WIRE_L_PIDS },
	};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (!(s->best_effort & table[i].bits))
			ret[n++] = table[i].name;
	ret[n] = NULL;
}

/* The root: this machine's programs, or an image; and a layer for changes. */
static size_t list_root(const struct cordon_spec *s, struct ledger_mount *m)
{
	size_t n = 0;

	if (!s->root && !s->has_programs)
		m[n++] = (struct ledger_mount){ "/usr", "/usr", "ro", 0 };
	if (s->writable_root)
		m[n++] = (struct ledger_mount){ NULL, "/", "rw", s->disk };
	return n;
}

/* Those that every box has, where nothing else is. */
static size_t list_scratch(const struct cordon_spec *s, struct ledger_mount *m)
{
	const struct {
		const char *target;
		bool is_ro;
	} places[] = {
		{ "/tmp", s->no_tmp },
		{ "/dev/shm", s->no_shm },
		{ "/workspace", s->no_workspace },
	};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		uint64_t size = prepare_scratch(s, places[i].target);

		if (size)
			m[n++] = (struct ledger_mount){ NULL, places[i].target,
							places[i].is_ro ? "ro"
									: "rw",
							size };
	}
	return n;
}

static size_t list_mounts(const struct cordon_spec *s, struct ledger_mount *m)
{
	size_t n = list_root(s, m);

	for (size_t i = 0; i < s->n_binds; i++)
		m[n++] = (struct ledger_mount){
			s->binds[i].source, s->binds[i].target,
			s->binds[i].mode == BIND_RW ? "rw" : "ro", 0
		};
	for (size_t i = 0; i < s->n_tmpfs; i++)
		m[n++] = (struct ledger_mount){ NULL, s->tmpfs[i].target,
						s->tmpfs[i].is_ro ? "ro" : "rw",
						s->tmpfs[i].size };
	return n + list_scratch(s, m + n);
}

static size_t list_limits(const struct cordon_spec *s, struct ledger_limit *l)
{
	size_t n = 0;

	l[n++] = (struct ledger_limit){ "timeout_ms", s->timeout_us / 1000 };
	l[n++] = (struct ledger_limit){ "memory", s->memory };
	l[n++] = (struct ledger_limit){ "cpu_quota_us", s->cpu_quota_us };
	l[n++] = (struct ledger_limit){ "cpu_period_us", s->cpu_period_us };
	l[n++] = (struct ledger_limit){ "pids", s->pids };
	l[n++] = (struct ledger_limit){ "output", s->output };
	l[n++] = (struct ledger_limit){ "disk", s->disk };
	l[n++] = (struct ledger_limit){ "files", spec_held_to(s, RLIMIT_NOFILE,
							      s->nofile) };
	l[n++] = (struct ledger_limit){
		"file_size", spec_held_to(s, RLIMIT_FSIZE, s->fsize)
	};
	return n;
}

static size_t list_code(const struct cordon_spec *s, struct ledger_code *c)
{
	for (size_t i = 0; i < s->n_blocks; i++)
		c[i] = (struct ledger_code){ s->blocks[i].lang_name,
					     s->blocks[i].code,
					     s->blocks[i].len };
	return s->n_blocks;
}

static size_t count_words(const struct cordon_spec *s)
{
	size_t n = s->n_line + 2;

	for (size_t i = 0; i < s->n_line; i++)
		n += s->line[i].argv.n;
	return n;
}

/* A policy that states what is kept, and not them, has them hashed only. */
static bool keeps_commands(const struct policy *p)
{
	return !p || !p->keep_text.is_stated ||
	       policy_list_has(&p->keep_text, "commands");
}

/*
 * A command line as one list, with what joins its programs in between: all of
 * it, whatever its length, since a program could stand at the end. The caller
 * frees the list; NULL where there is only code.
 */
static int list_words(const struct cordon_spec *s, const char ***ret,
		      struct err *err)
{
	static const char *const joins[] = { "&&", "||", ";", "|" };
	const char **words;
	size_t n = 0;

	*ret = NULL;
	if (s->n_line == 0 && s->command.n == 0 && !s->command_line)
		return 0;
	words = calloc(count_words(s) + s->command.n, sizeof(*words));
	if (!words)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < s->command.n; i++)
		words[n++] = s->command.v[i];
	for (size_t i = 0; i < s->n_line; i++) {
		if (i > 0)
			words[n++] = joins[s->line[i].join];
		for (size_t k = 0; k < s->line[i].argv.n; k++)
			words[n++] = s->line[i].argv.v[k];
	}
	if (n == 0)
		words[n++] = s->command_line;
	*ret = words;
	return 0;
}

/* With its digest, since a name may be given to another one. */
static void name_image(const struct cordon_spec *s, char *ret, size_t size)
{
	if (s->root && strcmp(s->root->name, s->root->id) != 0)
		(void)snprintf(ret, size, "%s@%s", s->root->name, s->root->id);
	else
		(void)snprintf(ret, size, "%s",
			       s->root    ? s->root->id
			       : s->image ? s->image
					  : "host");
}

void record_decision_of(struct record_decision *ret, const struct guard *g,
			enum refusal refused, const struct err *why)
{
	const struct flat_source *file = g->policy && g->policy->flat.n_sources
						 ? &g->policy->flat.sources[0]
						 : NULL;

	*ret = (struct record_decision){
		.decision = refused == REFUSED_DENIED ? "deny"
			    : g->was_asked            ? "ask"
						      : "allow",
		.reason = refused        ? why->text
			  : g->was_asked ? g->answer.reason
					 : NULL,
		.answer = g->was_asked ? &g->answer : NULL,
		.policy = g->policy,
		.policy_file = file ? file->name : NULL,
		.policy_sha256 = file ? file->sha256 : NULL,
	};
	if (g->rule && g->rule->file) {
		(void)snprintf(ret->rule_text, sizeof(ret->rule_text), "%s:%u",
			       g->rule->file, g->rule->line);
		ret->rule = ret->rule_text;
	}
}

char *recorder_start_members(const struct cordon_spec *s,
			     const struct record_of *of,
			     const struct record_decision *d, struct err *err)
{
	struct ledger_mount mounts[MAX_MOUNTS];
	struct ledger_limit limits[16];
	struct ledger_code code[SPEC_MAX_BLOCKS];
	_cleanup_free_ const char **words = NULL;
	const char *layers[8];
	struct strv env = { 0 };
	const struct policy *p = d->policy;
	char image[IMAGE_REF_MAX + IMAGE_DIGEST];
	struct ledger_run_start start = {
		.run = of->run,
		.agent = s->agent,
		.box = of->box,
		.face = of->face,
		.peer = of->peer,
		.name = s->name,
		.decision = d->decision,
		.rule = d->rule,
		.reason = d->reason,
		.approval = d->answer && d->answer->id[0] ? d->answer->id
							  : NULL,
		.approved_by = d->answer && d->answer->is_allowed
				       ? d->answer->by
				       : NULL,
		.policy_file = d->policy_file,
		.policy_sha256 = d->policy_sha256,
		.hide_argv = !keeps_commands(p),
		.keep_code = p && policy_list_has(&p->keep_text, "code"),
		.code = code,
		.n_code = list_code(s, code),
		.workdir = s->workdir ? s->workdir : "/workspace",
		.image = image,
		.isolation = "native",
		.mounts = mounts,
		.n_mounts = list_mounts(s, mounts),
		.network = s->egress ? (names_t)s->egress->hosts->v : NULL,
		.uid = s->uid,
		.gid = s->gid,
		.limits = limits,
		.n_limits = list_limits(s, limits),
		.layers = layers,
	};
	char *members = NULL;

	name_image(s, image, sizeof(image));
	start.argv = NULL;
	list_layers(s, layers);
	if (prepare_env(s, &env) == 0 && list_words(s, &words, err) == 0) {
		start.argv = words;
		start.env = (names_t)env.v;
		members = ledger_run_start_members(&start);
	}
	strv_done(&env);
	if (!members)
		(void)err_set(err, ENOMEM, "out of memory");
	return members;
}

static int write_start(struct ledger *l, const struct cordon_spec *s,
		       const struct cordon_result *result,
		       const struct record_decision *d, struct err *err)
{
	const struct record_of of = { .run = result->id };
	_cleanup_free_ char *members = recorder_start_members(s, &of, d, err);

	if (!members)
		return -err->code;
	if (ledger_append(l, "run.start", members, NULL, err) < 0)
		return -err->code;
	return ledger_sync(l, err);
}

/* What a person was shown, without secrets: the first of it is enough. */
static void put_subject(struct json *j, const struct cordon_spec *s, bool keep)
{
	_cleanup_free_ const char **list = NULL;
	struct err unused = { 0 };
	struct buf text;

	(void)list_words(s, &list, &unused);
	buf_init(&text, 64 << 10);
	if (list && !keep)
		(void)buf_puts(&text, "a command");
	for (size_t i = 0; keep && list && list[i]; i++) {
		if (i)
			(void)buf_puts(&text, " ");
		(void)redact_argument(&text, i ? list[i - 1] : NULL, list[i],
				      strlen(list[i]));
	}
	if (!list && s->n_blocks)
		buf_printf(&text, "%s code, %zu bytes", s->blocks[0].lang_name,
			   s->blocks[0].len);
	json_str(j, "subject", text.data ? text.data : "");
	buf_done(&text);
}

static void put_redacted(struct json *j, const char *name, const char *text)
{
	struct buf b;

	buf_init(&b, 64 << 10);
	(void)redact(&b, text, strlen(text));
	json_str(j, name, b.data ? b.data : "");
	buf_done(&b);
}

static int append(struct ledger *l, const char *kind, struct json *j,
		  struct err *err)
{
	int r;

	json_close(j, '}');
	r = j->out->error ? err_set(err, ENOMEM, "out of memory")
			  : ledger_append(l, kind, j->out->data, NULL, err);
	buf_done(j->out);
	return r;
}

/* That a person was asked, and what the answer was. */
static int write_answer(struct ledger *l, const struct cordon_spec *s,
			const char *run, const struct record_decision *d,
			struct err *err)
{
	const struct approve_answer *a = d->answer;
	struct buf out;
	struct json j = { .out = &out };

	if (!a)
		return 0;
	buf_init(&out, 256 << 10);
	json_open(&j, NULL, '{');
	json_str(&j, "approval", a->id[0] ? a->id : "-");
	json_str(&j, "run", run);
	json_str(&j, "what", s->n_blocks ? "code" : "command");
	put_subject(&j, s, keeps_commands(d->policy));
	if (append(l, "approval.request", &j, err) < 0)
		return -err->code;
	buf_init(&out, 64 << 10);
	j = (struct json){ .out = &out };
	json_open(&j, NULL, '{');
	json_str(&j, "approval", a->id[0] ? a->id : "-");
	json_str(&j, "run", run);
	json_str(&j, "decision", a->is_allowed ? "allow" : "deny");
	if (a->scope[0])
		json_str(&j, "scope", a->scope);
	if (a->reason[0])
		put_redacted(&j, "reason", a->reason);
	json_str(&j, "by", a->by[0] ? a->by : "nobody");
	return append(l, "approval.answer", &j, err);
}

int recorder_start(struct recorder *r, const struct cordon_spec *s,
		   const struct cordon_result *result,
		   const struct record_decision *d, struct err *err)
{
	if (s->no_ledger)
		return 0;
	r->keep_output = d->policy &&
			 policy_list_has(&d->policy->keep_text, "output");
	if (ledger_open(NULL, &r->ledger, err) < 0 ||
	    write_answer(r->ledger, s, result->id, d, err) < 0 ||
	    write_start(r->ledger, s, result, d, err) < 0) {
		recorder_done(r);
		return err_wrap(err, "record the run, which therefore does "
				     "not start");
	}
	return 0;
}

static bool has_address(const struct gate_event *ev)
{
	static const uint8_t none[16];

	return memcmp(ev->address, none, sizeof(none)) != 0;
}

static void put_address(struct json *j, const struct gate_event *ev)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool is_v4 = memcmp(ev->address, mapped, sizeof(mapped)) == 0;
	char text[INET6_ADDRSTRLEN];

	if (has_address(ev) && inet_ntop(is_v4 ? AF_INET : AF_INET6,
					 is_v4 ? ev->address + 12 : ev->address,
					 text, sizeof(text)))
		json_str(j, "address", text);
}

/* What the reason's sentence does not say: another name, which secret. */
static void put_reason(struct json *j, const struct gate_event *ev)
{
	char text[400];

	if (ev->reason == GATE_OK)
		return;
	json_str(j, "code", gate_reason_word(ev->reason));
	(void)snprintf(text, sizeof(text), "%s%s%s",
		       gate_reason_text(ev->reason), ev->detail[0] ? ": " : "",
		       ev->detail);
	json_str(j, "reason", text);
}

static const char *protocol_of(const struct gate_event *ev)
{
	if (ev->kind == GATE_E_NAME)
		return "dns";
	if (ev->reason == GATE_R_ADDRESS)
		return "ip";
	if (ev->reason == GATE_R_UDP)
		return "udp";
	return ev->method[0] ? "http" : "tcp";
}

char *recorder_connection_members(const struct record_connection *c)
{
	const struct gate_event *ev = c->event;
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, 64 << 10);
	json_open(&j, NULL, '{');
	json_str(&j, "run", c->run);
	if (c->box)
		json_str(&j, "box", c->box);
	if (c->agent)
		json_str(&j, "agent", c->agent);
	json_str(&j, "decision", c->is_denied ? "deny" : "allow");
	if (c->rule)
		json_str(&j, "rule", c->rule);
	put_reason(&j, ev);
	json_str(&j, "host", ev->host);
	json_int(&j, "port", ev->port);
	put_address(&j, ev);
	json_str(&j, "protocol", protocol_of(ev));
	if (ev->reason == GATE_R_ADDRESS)
		json_int(&j, "count", (int64_t)ev->count);
	if (ev->method[0]) {
		json_str(&j, "method", ev->method);
		json_str(&j, "path", ev->path);
		json_int(&j, "answer", ev->status);
	}
	/* Not of what was refused before a byte of it could move. */
	if (ev->kind == GATE_E_CLOSE || ev->method[0]) {
		json_int(&j, "bytes_in", (int64_t)ev->received);
		json_int(&j, "bytes_out", (int64_t)ev->sent);
		json_int(&j, "duration_ms", (int64_t)(ev->us / 1000));
	}
	json_close(&j, '}');
	if (!out.error)
		return buf_take(&out);
	buf_done(&out);
	return NULL;
}

int recorder_connection(struct recorder *r, const struct record_connection *c,
			struct err *err)
{
	_cleanup_free_ char *members = NULL;

	if (!r->ledger)
		return 0;
	members = recorder_connection_members(c);
	return members ? ledger_append(r->ledger, "connection", members, NULL,
				       err)
		       : err_set(err, ENOMEM, "out of memory");
}

static int write_end(struct ledger *l, const struct cordon_result *result,
		     bool keep_output, struct err *err)
{
	const struct run *run = &result->runs[result->n_runs - 1];
	const char *missing[WIRE_LAYERS + 1];
	bool is_unrouted = result->has_gate && run->outcome.net_refused > 0;
	size_t n_denials = result->violations.n + result->n_refused +
			   is_unrouted;
	_cleanup_free_ struct ledger_denial *denials = calloc(n_denials + 1,
							      sizeof(*denials));
	size_t n = 0;
	size_t at = 0;
	struct ledger_run_end end = {
		.run = result->id,
		.status = verdict_status(&run->verdict),
		.cause = cause_name(run->verdict.cause),
		.exit_code = run->verdict.exit_code,
		.signal = run->verdict.signal,
		.message = result->message,
		.wall_ms = run->outcome.wall_us / 1000,
		.cpu_ms = run->outcome.cpu_us / 1000,
		.memory_peak = run->outcome.memory_peak,
		.pids_peak = run->outcome.pids_peak,
		.oom_kills = run->outcome.oom_kills,
		.pids_refused = run->outcome.pids_refused,
		.out = { run->out.total, run->out.data, run->out.len },
		.err = { run->err.total, run->err.data, run->err.len },
		.not_enforced = missing,
		.denials = denials,
		.n_denials = n_denials,
		.keep_output = keep_output,
	};

	if (!denials)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < result->violations.n; i++)
		denials[at++] = (struct ledger_denial){
			"mount", result->violations.v[i]
		};
	if (is_unrouted)
		denials[at++] = (struct ledger_denial){ "net", "address" };
	for (size_t i = 0; i < result->n_refused; i++)
		denials[at++] = (struct ledger_denial){
			"net", result->refused[i].what
		};
	for (int i = 0; i < WIRE_LAYERS; i++)
		if (result->not_enforced & 1U << i)
			missing[n++] = layer_name((enum wire_layer)i);
	missing[n] = NULL;
	return ledger_run_end(l, &end, err);
}

/* Signing is the desk's: once in many records, and not in the way of one. */
static void seal(void)
{
	char path[4096];
	struct err unused = { 0 };
	pid_t pid;

	if (program_find("cordon-desk", path, sizeof(path), &unused) < 0)
		return;
	pid = vfork();
	if (pid == 0) {
		(void)execl(path, path, "audit", "seal", "--quiet",
			    (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
}

int recorder_end(struct recorder *r, const struct cordon_result *result,
		 struct err *err)
{
	int ret;

	if (!r->ledger)
		return 0;
	ret = write_end(r->ledger, result, r->keep_output, err);
	if (ret == 0 && ledger_take_seal_due(r->ledger))
		seal();
	recorder_done(r);
	return ret;
}

void recorder_done(struct recorder *r)
{
	ledger_close(r->ledger);
	r->ledger = NULL;
}
