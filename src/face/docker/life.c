/* SPDX-License-Identifier: Apache-2.0 */

/* start, stop, restart, kill, wait, pause, rename, remove, prune */

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "face/docker/internal.h"
#include "face/docker/routes.h"

static bool is_alive(const struct box *b)
{
	struct box_view v;

	box_look(b, &v);
	return v.state == BOX_RUNNING || v.state == BOX_PAUSED;
}

static void fail_stopped(struct http_request *r, const struct box *b)
{
	struct box_view v;

	box_look(b, &v);
	answer_fail(r, 409, "container %s is not running", v.id);
}

/* ---- start ---- */

HANDLER(post_start)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	struct ask *a;

	if (!b)
		return;
	if (is_alive(b)) {
		answer_empty(r, 304);
		return;
	}
	a = ask_new(r, d, sizeof(*a), NULL);
	a->same = MGR_IS_RUNNING;
	a->call = box_start(b, ask_done_empty, a);
}

/* ---- stop, restart, kill ---- */

/* -1 when that was answered. */
static int signal_asked(struct http_request *r, int absent)
{
	const char *text = http_query(r, "signal");
	int s = text && *text ? signal_parse(text) : absent;

	if (s < 0)
		answer_fail(r, 400, "invalid signal: %.40s", text);
	return s;
}

/* -1: the box's own; INT_MAX: no limit. */
static bool timeout_asked(struct http_request *r, int *ret)
{
	const char *text = http_query(r, "t");
	uint64_t n;

	*ret = -1;
	if (!text || !*text)
		return true;
	if (*text == '-') {
		*ret = INT_MAX;
		return true;
	}
	/* docker-py may send 10.0 */
	if (num_parse_milli(text, &n) < 0 || n / 1000 >= INT_MAX) {
		answer_fail(r, 400, "t: '%.40s' is not a number", text);
		return false;
	}
	*ret = (int)(n / 1000);
	return true;
}

static void stop_or_restart(struct http_request *r, struct docker *d,
			    bool is_restart)
{
	struct box *b = need_box(r, d);
	struct ask *a;
	int timeout;
	int s;

	if (!b)
		return;
	if (!timeout_asked(r, &timeout))
		return;
	s = signal_asked(r, 0);
	if (s < 0)
		return;
	if (!is_restart && !is_alive(b)) {
		answer_empty(r, 304);
		return;
	}
	a = ask_new(r, d, sizeof(*a), NULL);
	a->same = is_restart ? 0 : MGR_NOT_RUNNING;
	a->call = is_restart ? box_restart(b, s, timeout, ask_done_empty, a)
			     : box_stop(b, s, timeout, ask_done_empty, a);
}

HANDLER(post_stop)
{
	stop_or_restart(r, docker_of(ctx), false);
}

HANDLER(post_restart)
{
	stop_or_restart(r, docker_of(ctx), true);
}

HANDLER(post_kill)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	struct ask *a;
	int s;

	if (!b)
		return;
	s = signal_asked(r, SIGKILL);
	if (s < 0)
		return;
	if (!is_alive(b)) {
		fail_stopped(r, b);
		return;
	}
	a = ask_new(r, d, sizeof(*a), NULL);
	a->call = box_kill(b, s, ask_done_empty, a);
}

/* ---- wait ---- */

struct waiting {
	struct ask ask;
	bool is_begun;
};

static void waited(void *arg, int exit_code, const char *error)
{
	struct waiting *w = arg;
	json_t *doc = json_pack("{s:i}", "StatusCode", exit_code);
	char *text;

	w->ask.call = NULL;
	/* Why it could not be started was told to whoever started it. */
	if (error && *error && (exit_code < 126 || exit_code > 128))
		json_object_set_new(doc, "Error",
				    json_pack("{s:o}", "Message",
					      doc_string(error)));
	if (!w->is_begun) {
		answer_json(w->ask.r, 200, doc);
		return;
	}
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (text) {
		(void)http_write(w->ask.r, text, strlen(text));
		(void)http_write(w->ask.r, "\n", 1);
	}
	free(text);
	http_end(w->ask.r);
}

HANDLER(post_wait)
{
	static const struct {
		const char *name;
		enum box_condition condition;
	} names[] = { { "", WAIT_NOT_RUNNING },
		      { "not-running", WAIT_NOT_RUNNING },
		      { "next-exit", WAIT_NEXT_EXIT },
		      { "removed", WAIT_REMOVED } };
	struct docker *d = docker_of(ctx);
	const char *text = http_query(r, "condition");
	struct err err = { 0 };
	struct waiting *w;
	size_t i = 0;

	text = text ? text : "";
	while (i < ARRAY_SIZE(names) && strcmp(names[i].name, text) != 0)
		i++;
	if (i == ARRAY_SIZE(names)) {
		answer_fail(r, 400, "invalid condition: \"%.60s\"", text);
		return;
	}
	w = ask_new(r, d, sizeof(*w), NULL);
	w->ask.call = box_wait(d->m, http_peer(r), http_param(r, 0),
			       names[i].condition, waited, w, &err);
	if (!w->ask.call) {
		answer_err(r, &err, http_param(r, 0));
		return;
	}
	/* The client starts the container when it has seen the headers. */
	w->is_begun = http_version(r) >= VERSION(1, 30);
	if (w->is_begun)
		http_begin(r, 200, JSON_TYPE, false);
}

/* ---- pause, resize, rename ---- */

static void set_paused(struct http_request *r, struct docker *d, bool is_paused)
{
	struct box *b = need_box(r, d);
	struct box_view v;
	struct ask *a;

	if (!b)
		return;
	box_look(b, &v);
	if (!is_alive(b)) {
		fail_stopped(r, b);
	} else if (is_paused && v.state == BOX_PAUSED) {
		answer_fail(r, 409, "Container %s is already paused", v.id);
	} else if (!is_paused && v.state != BOX_PAUSED) {
		answer_fail(r, 409, "Container %s is not paused", v.id);
	} else {
		a = ask_new(r, d, sizeof(*a), NULL);
		a->call = box_pause(b, is_paused, ask_done_empty, a);
	}
}

HANDLER(post_pause)
{
	set_paused(r, docker_of(ctx), true);
}

HANDLER(post_unpause)
{
	set_paused(r, docker_of(ctx), false);
}

static bool size_asked(struct http_request *r, uint64_t *ret_h, uint64_t *ret_w)
{
	const char *h = http_query(r, "h");
	const char *w = http_query(r, "w");

	if (num_parse(h ? h : "0", 65535, ret_h) < 0 ||
	    num_parse(w ? w : "0", 65535, ret_w) < 0) {
		answer_fail(r, 400, "h and w are numbers up to 65535");
		return false;
	}
	return true;
}

HANDLER(post_resize)
{
	struct box *b = need_box(r, docker_of(ctx));
	struct err err = { 0 };
	struct box_view v;
	uint64_t h;
	uint64_t w;

	if (!b || !size_asked(r, &h, &w))
		return;
	box_look(b, &v);
	/* Before the start it is kept. */
	if (v.state == BOX_EXITED)
		fail_stopped(r, b);
	else if (h > 0 && w > 0 &&
		 box_resize(b, (unsigned int)h, (unsigned int)w, &err) < 0)
		answer_err(r, &err, v.id);
	else
		answer_empty(r, 200);
}

HANDLER(post_exec_resize)
{
	struct docker *d = docker_of(ctx);
	struct err err = { 0 };
	const char *id = http_param(r, 0);
	struct exec *e = exec_find(d->m, http_peer(r), id, &err);
	uint64_t h;
	uint64_t w;

	if (!e)
		answer_fail(r, 404, "No such exec instance: %.80s", id);
	else if (!size_asked(r, &h, &w))
		return;
	else if (h > 0 && w > 0 &&
		 exec_resize(e, (unsigned int)h, (unsigned int)w, &err) < 0)
		answer_fail(r, 409, "exec %s is not running", id);
	else
		answer_empty(r, 200);
}

HANDLER(post_rename)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	const char *name = http_query(r, "name");
	struct err err = { 0 };
	struct box_view v;

	if (!b)
		return;
	if (name && *name == '/')
		name++;
	if (!name || !container_name_check(name)) {
		answer_fail(r, 400,
			    "Invalid container name (%.100s), only "
			    "[a-zA-Z0-9][a-zA-Z0-9_.-] are allowed",
			    name ? name : "");
		return;
	}
	box_look(b, &v);
	if (box_rename(b, name, &err) == 0)
		answer_empty(r, 204);
	else if (err.code == MGR_NAME_TAKEN)
		answer_taken(r, d, v.owner, name);
	else
		answer_err(r, &err, name);
}

/* ---- remove ---- */

HANDLER(delete_container)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	struct ask *a;

	if (!b)
		return;
	if (query_bool(r, "link", false)) {
		answer_fail(r, 400, "link: there are no links to remove");
		return;
	}
	a = ask_new(r, d, sizeof(*a), NULL);
	a->call = box_remove(b, query_bool(r, "force", false), ask_done_empty,
			     a);
}

/* ---- prune ---- */

struct prune {
	struct ask ask;
	json_t *ids;  /* to do, the last first */
	json_t *gone; /* done */
	char id[65];
};

static void prune_next(struct prune *p);

static void prune_gone(struct ask *a)
{
	struct prune *p = (struct prune *)a;

	json_decref(p->ids);
	json_decref(p->gone);
}

static void pruned(void *arg, const struct err *err)
{
	struct prune *p = arg;

	p->ask.call = NULL;
	if (!err)
		json_array_append_new(p->gone, json_string(p->id));
	prune_next(p);
}

static void prune_next(struct prune *p)
{
	for (;;) {
		size_t n = json_array_size(p->ids);
		struct err err = { 0 };
		struct box *b;

		if (n == 0)
			break;
		(void)snprintf(p->id, sizeof(p->id), "%s",
			       json_string_value(
				       json_array_get(p->ids, n - 1)));
		json_array_remove(p->ids, n - 1);
		b = box_find(p->ask.d->m, http_peer(p->ask.r), p->id, &err);
		if (!b)
			continue;
		p->ask.call = box_remove(b, false, pruned, p);
		return;
	}
	answer_json(p->ask.r, 200,
		    json_pack("{s:O,s:i}", "ContainersDeleted", p->gone,
			      "SpaceReclaimed", 0));
}

static bool is_older(const char *value, void *arg)
{
	return until_fits(value, *(int64_t *)arg);
}

HANDLER(post_prune)
{
	struct docker *d = docker_of(ctx);
	json_t *f = need_filters(r, "label label! until");
	struct box **boxes = NULL;
	struct prune *p;
	size_t n;

	if (!f || !need_untils(r, f, "until"))
		return;
	p = ask_new(r, d, sizeof(*p), prune_gone);
	p->ids = json_array();
	p->gone = json_array();
	n = box_list(d->m, http_peer(r), &boxes);
	for (size_t i = 0; i < n; i++) {
		struct box_view v;
		json_t *extra;
		json_t *spec;

		box_look(boxes[i], &v);
		if (v.state != BOX_CREATED && v.state != BOX_EXITED)
			continue;
		extra = member_doc(v.extra);
		spec = member_doc(v.spec);
		if (filters_labels(f, labels_of(extra, spec)) &&
		    filters_any(f, "until", is_older, &v.created_ns))
			json_array_append_new(p->ids, json_string(v.id));
		json_decref(spec);
		json_decref(extra);
	}
	free(boxes);
	json_decref(f);
	prune_next(p);
}
