/* SPDX-License-Identifier: Apache-2.0 */

/* POST /containers/{}/attach */

#include "face/docker/routes.h"
#include "face/docker/stream.h"

static bool keys_asked(struct http_request *r, struct keys *ret)
{
	const char *text = http_query(r, "detachKeys");

	if (keys_parse(text ? text : "", ret) == 0)
		return true;
	answer_fail(r, 400, "detachKeys: '%.60s' is not a list of keys", text);
	return false;
}

HANDLER(post_attach)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	struct attach_want want = {
		.stdin_ = query_bool(r, "stdin", false),
		.stdout_ = query_bool(r, "stdout", false),
		.stderr_ = query_bool(r, "stderr", false),
		.logs = query_bool(r, "logs", false),
		.stream = query_bool(r, "stream", false),
	};
	struct err err = { 0 };
	struct box_view v;
	struct wire *w;
	struct sink sink;

	if (!b)
		return;
	box_look(b, &v);
	if (v.state == BOX_PAUSED) {
		answer_fail(
			r, 409,
			"container %s is paused, unpause the container before "
			"attach",
			v.id);
		return;
	}
	w = wire_new(d);
	if (!keys_asked(r, &w->keys)) {
		wire_free(w);
		return;
	}
	/* Input only where the container was made for it. */
	want.stdin_ = want.stdin_ && want.stream && v.open_stdin;
	w->has_keys = v.tty && want.stdin_;
	w->has[0] = want.stdin_;
	w->has[1] = want.stdout_;
	w->has[2] = want.stderr_ && !v.tty;
	sink = wire_sink(w);
	w->feed = box_attach(b, &want, &sink, &err);
	if (!w->feed) {
		answer_err(r, &err, v.id);
		wire_free(w);
		return;
	}
	wire_open(w, r, !v.tty);
}
