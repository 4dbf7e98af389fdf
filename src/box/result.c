/* SPDX-License-Identifier: Apache-2.0 */
#include "box/result.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/util.h"

/* The largest document: streams as text and as base64, escaped. */
#define MAX_DOCUMENT (2ULL << 30)

static const char *const layers[] = {
	[WIRE_L_MEMORY] = "memory",     [WIRE_L_CPU] = "cpu",
	[WIRE_L_PIDS] = "pids",         [WIRE_L_CPUSET] = "cpuset",
	[WIRE_L_LANDLOCK] = "landlock", [WIRE_L_OWN_UID] = "own-uid",
};
_Static_assert(ARRAY_SIZE(layers) == WIRE_LAYERS, "a name for each layer");

const char *layer_name(enum wire_layer layer)
{
	return layers[layer];
}

/* The run that decides: the last one. */
static const struct run *last(const struct cordon_result *r)
{
	return &r->runs[r->n_runs - 1];
}

const char *cordon_result_status(const struct cordon_result *r)
{
	return verdict_status(&last(r)->verdict);
}

const char *cordon_result_cause(const struct cordon_result *r)
{
	return cause_name(last(r)->verdict.cause);
}

const char *cordon_result_message(const struct cordon_result *r)
{
	return r->message;
}

int cordon_result_exit_code(const struct cordon_result *r)
{
	return last(r)->verdict.exit_code;
}

int cordon_result_signal(const struct cordon_result *r)
{
	return last(r)->verdict.signal;
}

static const char *stream_text(const struct stream *s, size_t *ret_len)
{
	if (ret_len)
		*ret_len = s->len;
	return s->data ? s->data : "";
}

const char *cordon_result_stdout(const struct cordon_result *r, size_t *ret_len)
{
	return stream_text(&last(r)->out, ret_len);
}

const char *cordon_result_stderr(const struct cordon_result *r, size_t *ret_len)
{
	return stream_text(&last(r)->err, ret_len);
}

void stream_take(struct stream *s, struct capture *c)
{
	s->total = c->total;
	s->missing = capture_missing(c);
	s->data = capture_take(c, &s->len, &s->cut);
	/* Nothing could be kept: all of it is missing, and that is told. */
	if (!s->data)
		s->missing = s->total;
}

void stream_done(struct stream *s)
{
	free(s->data);
	*s = (struct stream){ 0 };
}

static void put_stream(struct json *j, const char *name, const struct stream *s)
{
	char other[24];
	const char *text = stream_text(s, NULL);

	json_bytes(j, name, text, s->len);
	if (utf8_check(text, s->len))
		return;
	(void)strcpy(other, name);
	(void)strcat(other, "_b64");
	json_base64(j, other, text, s->len);
}

static int64_t ms(uint64_t us)
{
	return (int64_t)((us + 500) / 1000);
}

static bool is_truncated(const struct run *run)
{
	return run->out.missing || run->err.missing;
}

/* Of the whole: any of its blocks, or both streams together. */
static bool is_any_truncated(const struct cordon_result *r)
{
	bool is = r->has_output && r->output.missing;

	for (size_t i = 0; i < r->n_runs; i++)
		is |= is_truncated(&r->runs[i]);
	return is;
}

/* One block, or what the last one is to the whole. */
static void put_run(struct json *j, const struct run *run, bool truncated,
		    const char *code_file)
{
	const struct wire_outcome *o = &run->outcome;

	json_str(j, "status", verdict_status(&run->verdict));
	json_str(j, "cause", cause_name(run->verdict.cause));
	json_int(j, "exit_code", run->verdict.exit_code);
	if (run->verdict.signal)
		json_int(j, "signal", run->verdict.signal);
	else
		json_none(j, "signal");
	put_stream(j, "stdout", &run->out);
	put_stream(j, "stderr", &run->err);
	json_int(j, "stdout_bytes", (int64_t)run->out.total);
	json_int(j, "stderr_bytes", (int64_t)run->err.total);
	json_bool(j, "truncated", truncated);
	json_int(j, "execution_time_ms", ms(o->wall_us));
	json_int(j, "cpu_time_ms", ms(o->cpu_us));
	json_decimal(j, "memory_used_mb", (double)o->memory_peak / (1 << 20));
	json_int(j, "peak_pids", (int64_t)o->pids_peak);
	json_open(j, "events", '{');
	json_int(j, "oom_kills", (int64_t)o->oom_kills);
	json_int(j, "pids_refused", (int64_t)o->pids_refused);
	json_close(j, '}');
	if (code_file)
		json_str(j, "code_file", code_file);
}

static void add_refused(struct cordon_result *r, const char *what,
			const char *reason, const char *text, uint64_t count)
{
	struct refused *d;

	for (size_t i = 0; i < r->n_refused; i++) {
		d = &r->refused[i];
		if (strcmp(d->what, what) == 0 &&
		    strcmp(d->reason, reason) == 0) {
			d->count += count;
			return;
		}
	}
	if (!r->refused)
		r->refused = calloc(RESULT_REFUSED, sizeof(*r->refused));
	d = r->refused && r->n_refused < RESULT_REFUSED
		    ? &r->refused[r->n_refused]
		    : NULL;
	if (!d || !(d->what = strdup(what))) {
		r->n_refused_more += count;
		return;
	}
	d->reason = reason;
	d->text = text;
	d->count = count;
	r->n_refused++;
}

void result_add_denial(struct cordon_result *r, const char *what,
		       const char *reason, const char *text)
{
	add_refused(r, what, reason, text, 1);
}

void result_add_denials(struct cordon_result *r, const struct cordon_result *of)
{
	if (!of)
		return;
	r->has_gate = r->has_gate || of->has_gate;
	for (size_t i = 0; i < of->n_refused; i++)
		add_refused(r, of->refused[i].what, of->refused[i].reason,
			    of->refused[i].text, of->refused[i].count);
	r->n_refused_more += of->n_refused_more;
}

/* What no gate sees: the kernel itself refused it. */
static void put_unseen(struct json *j, const struct cordon_result *r)
{
	uint64_t n = last(r)->outcome.net_refused;

	if (!n)
		return;
	json_open(j, NULL, '{');
	json_str(j, "layer", "net");
	json_str(j, "what", r->has_gate ? "address" : "socket");
	if (r->has_gate) {
		json_str(j, "reason", "no_route");
		json_str(j, "message",
			 "no rule names this address, so there "
			 "is no route to it");
		json_int(j, "count", (int64_t)n);
	}
	json_close(j, '}');
}

void result_put_refused(struct json *j, const struct cordon_result *r)
{
	for (size_t i = 0; i < r->n_refused; i++) {
		const struct refused *d = &r->refused[i];

		json_open(j, NULL, '{');
		json_str(j, "layer", "net");
		json_str(j, "what", d->what);
		json_str(j, "reason", d->reason);
		json_str(j, "message", d->text);
		json_int(j, "count", (int64_t)d->count);
		json_close(j, '}');
	}
	if (r->n_refused_more) {
		json_open(j, NULL, '{');
		json_str(j, "layer", "net");
		json_str(j, "what", "others");
		json_int(j, "count", (int64_t)r->n_refused_more);
		json_close(j, '}');
	}
}

static void put_lists(struct json *j, const struct cordon_result *r)
{
	json_open(j, "files", '[');
	for (size_t i = 0; i < r->files.n; i++) {
		json_open(j, NULL, '{');
		json_str(j, "path", r->files.files[i].path);
		json_int(j, "size", (int64_t)r->files.files[i].size);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_open(j, "denials", '[');
	put_unseen(j, r);
	result_put_refused(j, r);
	for (size_t i = 0; i < r->violations.n; i++) {
		json_open(j, NULL, '{');
		json_str(j, "layer", "mount");
		json_str(j, "what", r->violations.v[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_open(j, "not_enforced", '[');
	for (int i = 0; i < WIRE_LAYERS; i++)
		if (r->not_enforced & 1U << i)
			json_str(j, NULL, layers[i]);
	json_close(j, ']');
	json_open(j, "warnings", '[');
	result_put_missing(j, r);
	for (size_t i = 0; i < r->warnings.n; i++)
		json_str(j, NULL, r->warnings.v[i]);
	json_close(j, ']');
}

void result_put_labels(struct json *j, const struct strv *labels)
{
	json_open(j, "labels", '{');
	for (size_t i = 0; i < labels->n; i++) {
		char *eq = strchr(labels->v[i], '=');

		*eq = '\0';
		json_str(j, labels->v[i], eq + 1);
		*eq = '=';
	}
	json_close(j, '}');
}

static void put_runs(struct json *j, const struct cordon_result *r)
{
	json_open(j, "runs", '[');
	for (size_t i = 0; i < r->n_runs; i++) {
		json_open(j, NULL, '{');
		put_run(j, &r->runs[i], is_truncated(&r->runs[i]),
			r->runs[i].code_file);
		json_close(j, '}');
	}
	json_close(j, ']');
}

char *cordon_result_json(const struct cordon_result *r)
{
	struct buf out;
	struct json j = { .out = &out };

	if (r->document)
		return strdup(r->document);
	buf_init(&out, MAX_DOCUMENT);
	json_open(&j, NULL, '{');
	json_str(&j, "id", r->id);
	if (r->name)
		json_str(&j, "name", r->name);
	put_run(&j, last(r), is_any_truncated(r), r->runs[0].code_file);
	if (r->message)
		json_str(&j, "message", r->message);
	if (r->cancel_reason)
		json_str(&j, "cancel_reason", r->cancel_reason);
	if (r->limits.cpu_period_us) /* else they are not known here */
		result_put_limits(&j, r);
	put_lists(&j, r);
	if (r->labels.n)
		result_put_labels(&j, &r->labels);
	if (r->has_output) {
		put_stream(&j, "output", &r->output);
		put_runs(&j, r);
		json_open(&j, "skipped", '[');
		json_close(&j, ']');
	}
	json_close(&j, '}');
	buf_puts(&out, "\n");
	if (out.error) {
		buf_done(&out);
		return NULL;
	}
	return buf_take(&out);
}

void result_new_id(struct cordon_result *r)
{
	unsigned char raw[16] = { 0 };

	(void)!getrandom(raw, sizeof(raw), 0);
	hex_format(raw, sizeof(raw), r->id);
}

char *result_json_of(enum cause cause, int exit_code, const char *message)
{
	struct run run = { .verdict = { cause, exit_code, 0 } };
	struct cordon_result r = { .runs = &run, .n_runs = 1 };
	char *text;

	result_new_id(&r);
	r.message = strdup(message);
	text = cordon_result_json(&r);
	free(r.message);
	return text;
}

void cordon_result_free(struct cordon_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_runs; i++) {
		free(r->runs[i].out.data);
		free(r->runs[i].err.data);
		free(r->runs[i].code_file);
	}
	free(r->runs);
	free(r->message);
	free(r->cancel_reason);
	free(r->output.data);
	listing_done(&r->files);
	strv_done(&r->warnings);
	strv_done(&r->violations);
	for (size_t i = 0; i < r->n_refused; i++)
		free(r->refused[i].what);
	free(r->refused);
	strv_done(&r->labels);
	strv_done(&r->limits.places);
	free(r->name);
	free(r->document);
	free(r);
}
