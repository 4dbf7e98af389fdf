/* SPDX-License-Identifier: Apache-2.0 */

/* The table of routes, and what all handlers share. */

#include "face/own/own.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cordon/cordon.h>

#include "base/json.h"
#include "base/num.h"
#include "base/util.h"
#include "face/own/internal.h"

static const struct http_route routes[] = {
	{ "GET", "/v1/version", own_version, 0 },
	{ "GET", "/v1/info", own_info, 0 },
	{ "GET", "/v1/events", own_events, 0 },
	{ "POST", "/v1/run", own_run, HTTP_BODY_WHOLE },
	{ "DELETE", "/v1/runs/{}", own_run_cancel, 0 },
	{ "GET", "/v1/boxes", own_boxes, 0 },
	{ "POST", "/v1/boxes", own_box_create, HTTP_BODY_WHOLE },
	{ "GET", "/v1/boxes/{}", own_box_inspect, 0 },
	{ "DELETE", "/v1/boxes/{}", own_box_remove, 0 },
	{ "POST", "/v1/boxes/{}/start", own_box_start, 0 },
	{ "POST", "/v1/boxes/{}/stop", own_box_stop, 0 },
	{ "POST", "/v1/boxes/{}/restart", own_box_restart, 0 },
	{ "POST", "/v1/boxes/{}/kill", own_box_kill, 0 },
	{ "POST", "/v1/boxes/{}/pause", own_box_pause, 0 },
	{ "POST", "/v1/boxes/{}/resume", own_box_resume, 0 },
	{ "POST", "/v1/boxes/{}/rename", own_box_rename, 0 },
	{ "POST", "/v1/boxes/{}/resize", own_box_resize, 0 },
	{ "POST", "/v1/boxes/{}/wait", own_box_wait, 0 },
	{ "GET", "/v1/boxes/{}/logs", own_box_logs, 0 },
	{ "POST", "/v1/boxes/{}/attach", own_box_attach, HTTP_UPGRADES },
	{ "GET", "/v1/boxes/{}/stats", own_box_stats, 0 },
	{ "GET", "/v1/boxes/{}/top", own_box_top, 0 },
	{ "GET", "/v1/boxes/{}/stat", own_box_stat, 0 },
	{ "GET", "/v1/boxes/{}/files", own_files_get, 0 },
	{ "PUT", "/v1/boxes/{}/files", own_files_put, HTTP_BODY_STREAM },
	{ "GET", "/v1/boxes/{}/changes", own_box_changes, 0 },
	{ "GET", "/v1/boxes/{}/execs", own_execs, 0 },
	{ "POST", "/v1/boxes/{}/execs", own_exec_create,
	  HTTP_BODY_WHOLE | HTTP_UPGRADES },
	{ "GET", "/v1/execs/{}", own_exec_inspect, 0 },
	{ "POST", "/v1/execs/{}/attach", own_exec_attach, HTTP_UPGRADES },
	{ "POST", "/v1/execs/{}/resize", own_exec_resize, 0 },
	{ "POST", "/v1/execs/{}/kill", own_exec_kill, 0 },
	{ "GET", "/v1/images", own_images, 0 },
	{ "POST", "/v1/images/load", own_image_load, HTTP_BODY_STREAM },
	{ "POST", "/v1/images/import", own_image_import, HTTP_BODY_STREAM },
	{ "POST", "/v1/images/prune", own_image_prune, 0 },
	{ "GET", "/v1/images/{*}/save", own_image_save, 0 },
	{ "POST", "/v1/images/{*}/tag", own_image_tag, 0 },
	{ "GET", "/v1/images/{*}", own_image_inspect, 0 },
	{ "DELETE", "/v1/images/{*}", own_image_remove, 0 },
};

/* One row for each error of the manager, and for HTTP's own. */
static const struct {
	int code;
	int status;
	const char *name;
} errors[] = {
	{ MGR_NOT_FOUND, 404, "not_found" },
	{ MGR_AMBIGUOUS, 400, "ambiguous" },
	{ MGR_NAME_TAKEN, 409, "name_taken" },
	{ MGR_INVALID, 400, "invalid" },
	{ MGR_DENIED, 403, "denied" },
	{ MGR_ASKED, 403, "asked" },
	{ MGR_NO_IMAGE, 404, "no_image" },
	{ MGR_NOT_RUNNING, 409, "not_running" },
	{ MGR_IS_RUNNING, 409, "is_running" },
	{ MGR_PAUSED, 409, "is_paused" },
	{ MGR_REMOVING, 409, "removing" },
	{ MGR_HAS_RUN, 409, "has_run" },
	{ MGR_NO_PROGRAM, 400, "no_program" },
	{ MGR_NOT_EXECUTABLE, 400, "not_executable" },
	{ MGR_BUSY, 503, "busy" },
	{ MGR_READ_ONLY, 403, "read_only" },
	{ MGR_NO_FILE, 404, "no_file" },
	{ MGR_NO_SPACE, 507, "no_space" },
	{ MGR_UNSUPPORTED, 501, "unsupported" },
	{ MGR_SETUP, 500, "setup" },
	{ MGR_LOST, 410, "lost" },
	/* What HTTP finds wrong comes as a status. */
	{ 0, 413, "too_large" },
	{ 0, 408, "too_slow" },
	{ 0, 431, "too_large" },
	{ 0, 404, "not_found" },
	{ 0, 400, "invalid" },
	{ 0, 503, "busy" },
};

static void send_error(struct http_request *r, int status, const char *name,
		       const char *text)
{
	struct buf b;
	struct json j = { .out = &b };

	buf_init(&b, 8192);
	json_open(&j, NULL, '{');
	json_open(&j, "error", '{');
	json_str(&j, "code", name);
	json_str(&j, "message", *text ? text : name);
	json_close(&j, '}');
	json_close(&j, '}');
	http_answer(r, status, OWN_JSON, b.data, b.len);
	buf_done(&b);
}

void own_error(struct http_request *r, const struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].code && errors[i].code == err->code) {
			send_error(r, errors[i].status, errors[i].name,
				   err->text);
			return;
		}
	send_error(r, 500, "internal", err->text);
}

void own_fail(struct http_request *r, int status, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (!errors[i].code && errors[i].status == status) {
			send_error(r, status, errors[i].name, text);
			return;
		}
	send_error(r, status, "internal", text);
}

void own_send(struct http_request *r, int status, struct buf *b)
{
	(void)buf_puts(b, "\n");
	if (b->error)
		own_fail(r, 500, "the answer is too large");
	else
		http_answer(r, status, OWN_JSON, b->data, b->len);
	buf_done(b);
}

/* acts */

static void act_gone(void *data)
{
	struct act *a = data;

	call_drop(a->call);
	free(a);
}

struct act *act_new(struct http_request *r, struct manager *m)
{
	struct act *a = calloc(1, sizeof(*a));

	if (!a) {
		own_fail(r, 500, "out of memory");
		return NULL;
	}
	a->r = r;
	a->m = m;
	http_set_data(r, a, act_gone);
	return a;
}

void act_wait(struct act *a, struct call *c)
{
	a->call = c;
	if (!c)
		own_fail(a->r, 500, "out of memory");
}

bool act_ended(struct act *a, const struct err *err)
{
	a->call = NULL;
	if (err)
		own_error(a->r, err);
	return !err;
}

void act_done(void *arg, const struct err *err)
{
	struct act *a = arg;

	if (act_ended(a, err))
		http_answer(a->r, 204, NULL, NULL, 0);
}

/* what requests name */

struct box *own_box(struct http_request *r, struct manager *m)
{
	struct err err = { 0 };
	struct box *b = box_find(m, http_peer(r), http_param(r, 0), &err);

	if (!b)
		own_error(r, &err);
	return b;
}

struct exec *own_exec(struct http_request *r, struct manager *m)
{
	struct err err = { 0 };
	struct exec *e = exec_find(m, http_peer(r), http_param(r, 0), &err);

	if (!e)
		own_error(r, &err);
	return e;
}

bool own_flag(struct http_request *r, const char *name, bool other)
{
	static const char *const no[] = { "0", "no", "false", "none" };
	const char *text = http_query(r, name);

	if (!text)
		return other;
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (strcasecmp(text, no[i]) == 0)
			return false;
	return true;
}

static bool bad_query(struct http_request *r, const char *name,
		      const char *what)
{
	struct err err = { 0 };

	(void)err_set(&err, MGR_INVALID, "'%s' takes %s", name, what);
	own_error(r, &err);
	return false;
}

bool own_number(struct http_request *r, const char *name, int64_t other,
		int64_t *ret)
{
	const char *text = http_query(r, name);
	uint64_t n;

	*ret = other;
	if (!text || !*text)
		return true;
	if (num_parse(text + (*text == '-'), INT64_MAX, &n) < 0)
		return bad_query(r, name, "a number");
	*ret = *text == '-' ? -(int64_t)n : (int64_t)n;
	return true;
}

int own_signal_of(const char *text)
{
	int s;

	return num_parse_signal(text, &s) < 0 ? 0 : s;
}

bool own_signal(struct http_request *r, int other, int *ret)
{
	const char *text = http_query(r, "signal");

	*ret = other;
	if (!text || !*text)
		return true;
	*ret = own_signal_of(text);
	return *ret ? true : bad_query(r, "signal", "a signal, such as TERM");
}

/* the daemon itself */

OWN_HANDLER(own_version)
{
	struct buf b;
	struct json j = { .out = &b };

	(void)ctx;
	buf_init(&b, OWN_MAX);
	json_open(&j, NULL, '{');
	json_str(&j, "version", cordon_version());
	json_str(&j, "api", "1");
	json_close(&j, '}');
	own_send(r, 200, &b);
}

OWN_HANDLER(own_info)
{
	struct manager_view v;
	struct buf b;
	struct json j = { .out = &b };

	manager_look(ctx, http_peer(r), &v);
	buf_init(&b, OWN_MAX);
	json_open(&j, NULL, '{');
	json_open(&j, "boxes", '{');
	json_int(&j, "created", v.created);
	json_int(&j, "running", v.running);
	json_int(&j, "paused", v.paused);
	json_int(&j, "exited", v.exited);
	json_close(&j, '}');
	json_int(&j, "cpus", v.cpus);
	json_int(&j, "memory", (int64_t)v.memory_total);
	own_put_time(&j, "started_ms", v.started_ns);
	json_raw(&j, "policy", v.policy_note ? v.policy_note : "null");
	json_close(&j, '}');
	own_send(r, 200, &b);
}

static const char *const headers[] = { "Server", "Cordon", NULL };

const struct http_face *own_face(struct manager *m)
{
	static struct http_face face = {
		.routes = routes,
		.n_routes = ARRAY_SIZE(routes),
		.headers = headers,
		.fail = own_fail,
	};

	face.ctx = m;
	return &face;
}
