/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A face for tests/face/wire.py, which drives it: server SOCKET. It says
 * "ready", serves until its standard input ends, and then says how many
 * requests and pipes were let go.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/util.h"
#include "face/http.h"

static uv_loop_t *loop;
static struct http *server;
static int n_given, n_gone;

static void text(struct http_request *r, int status, const char *s)
{
	http_answer(r, status, "text/plain", s, strlen(s));
}

/* What was understood of a request. */
static void on_echo(struct http_request *r, void *ctx)
{
	char *out = NULL;
	size_t len = 0;
	size_t body_len;
	const char *body = http_body(r, &body_len);
	const char *x = http_query(r, "x");
	const char *h = http_header(r, "X-Test");
	unsigned int i = 0;
	FILE *f = open_memstream(&out, &len);

	(void)ctx;
	if (!f)
		return;
	(void)fprintf(f,
		      "%s %s [%s] x=%s uid=%u h=%s body=%zu:", http_method(r),
		      http_path(r), http_param(r, 0), x ? x : "-",
		      http_peer(r)->uid, h ? h : "-", body_len);
	(void)fwrite(body, 1, body_len < 100 ? body_len : 100, f);
	for (const char *v; (v = http_query_next(r, "n", &i));)
		(void)fprintf(f, " n=%s", v);
	(void)fclose(f);
	http_add_header(r, "X-More", "yes");
	http_add_header(r, "X-Bad", "a\r\nX-Split: 1");
	http_answer(r, 200, "application/json", out, len);
	free(out);
}

static void on_nothing(struct http_request *r, void *ctx)
{
	(void)ctx;
	http_answer(r, 204, NULL, NULL, 0);
}

static void on_big(struct http_request *r, void *ctx)
{
	size_t len = 8 << 20;
	char *big = malloc(len);

	(void)ctx;
	memset(big, 'b', len);
	http_answer(r, 200, "text/plain", big, len);
	free(big);
}

/* answers that come later */

struct later {
	struct http_request *r;
	uv_timer_t timer;
	int left;
	bool is_over;
};

static void freed(uv_handle_t *h)
{
	free(h->data);
}

static void later_gone(void *data)
{
	struct later *l = data;

	n_gone++;
	uv_close((uv_handle_t *)&l->timer, freed);
}

static struct later *later_new(struct http_request *r)
{
	struct later *l = calloc(1, sizeof(*l));

	n_given++;
	l->r = r;
	(void)uv_timer_init(loop, &l->timer);
	l->timer.data = l;
	http_set_data(r, l, later_gone);
	return l;
}

static void late(uv_timer_t *t)
{
	text(((struct later *)t->data)->r, 200, "late");
}

static void on_late(struct http_request *r, void *ctx)
{
	const char *ms = http_query(r, "ms");

	(void)ctx;
	(void)uv_timer_start(&later_new(r)->timer, late,
			     (uint64_t)atoi(ms ? ms : "50"), 0);
}

static void tick(uv_timer_t *t)
{
	struct later *l = t->data;
	char line[32];
	int n = snprintf(line, sizeof(line), "{\"left\":%d}\r\n", l->left);

	if (l->left-- > 0) {
		(void)http_write(l->r, line, (size_t)n);
		return;
	}
	(void)uv_timer_stop(t);
	http_end(l->r);
}

static void on_ticks(struct http_request *r, void *ctx)
{
	const char *n = http_query(r, "n");
	struct later *l = later_new(r);

	(void)ctx;
	l->left = atoi(n ? n : "3");
	http_begin(r, 200, "application/json", http_query(r, "raw") != NULL);
	(void)uv_timer_start(&l->timer, tick, 20, 20);
}

/* As much as the client takes, without end; how much was written. */
static size_t flood_bytes;

static void flood_more(void *data)
{
	static char block[65536];
	struct later *l = data;
	size_t n;

	memset(block, 'f', sizeof(block));
	do {
		n = http_write(l->r, block, sizeof(block));
		flood_bytes += n;
	} while (n == sizeof(block));
}

static void on_flood(struct http_request *r, void *ctx)
{
	struct later *l = later_new(r);

	(void)ctx;
	flood_bytes = 0;
	http_begin(r, 200, "text/plain", false);
	http_on_ready(r, flood_more);
	flood_more(l);
}

static void on_flooded(struct http_request *r, void *ctx)
{
	char line[64];

	(void)ctx;
	(void)snprintf(line, sizeof(line), "%zu %d %d", flood_bytes, n_given,
		       n_gone);
	text(r, 200, line);
}

/* a body piece by piece, taken slowly where asked for */

struct eater {
	struct http_request *r;
	uv_timer_t timer;
	size_t bytes, pieces, most;
	unsigned int sum;
	bool is_slow, is_full;
};

static void eat_again(uv_timer_t *t)
{
	struct eater *e = t->data;

	e->is_full = false;
	http_body_ready(e->r);
}

static size_t eat(void *data, const char *bytes, size_t len)
{
	struct eater *e = data;
	size_t n = e->is_slow && len > 1000 ? 1000 : len;

	if (!bytes) {
		char line[80];

		(void)snprintf(line, sizeof(line), "%zu %u", e->bytes, e->sum);
		text(e->r, 200, line);
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		e->sum += (unsigned char)bytes[i];
	e->bytes += n;
	if (n < len)
		(void)uv_timer_start(&e->timer, eat_again, 1, 0);
	return n;
}

static void eater_gone(void *data)
{
	n_gone++;
	uv_close((uv_handle_t *)&((struct eater *)data)->timer, freed);
}

static void on_eat(struct http_request *r, void *ctx)
{
	struct eater *e;

	(void)ctx;
	if (http_query(r, "refuse")) {
		text(r, 404, "no such place");
		return;
	}
	e = calloc(1, sizeof(*e));
	n_given++;
	e->r = r;
	e->is_slow = http_query(r, "slow") != NULL;
	(void)uv_timer_init(loop, &e->timer);
	e->timer.data = e;
	http_set_data(r, e, eater_gone);
	http_on_body(r, eat);
}

/* pipes */

struct end {
	struct http_pipe *p;
	uv_timer_t timer;
	bool is_over;
};

static void pipe_gone(void *data)
{
	struct end *e = data;

	n_gone++;
	uv_close((uv_handle_t *)&e->timer, freed);
}

static size_t pipe_in(void *data, const char *bytes, size_t len)
{
	struct end *e = data;
	struct iovec v = { .iov_base = (void *)(uintptr_t)bytes,
			   .iov_len = len };

	return pipe_write(e->p, &v, 1);
}

static void pipe_in_end(void *data)
{
	struct end *e = data;
	struct iovec v = { .iov_base = (void *)(uintptr_t) "<end>",
			   .iov_len = 5 };

	(void)pipe_write(e->p, &v, 1);
	pipe_end(e->p);
}

static void pipe_more(void *data)
{
	pipe_input_ready(((struct end *)data)->p);
}

static const struct http_pipe_events echo_events = {
	.input = pipe_in,
	.input_end = pipe_in_end,
	.ready = pipe_more,
	.gone = pipe_gone,
};

static struct end *end_new(void)
{
	struct end *e = calloc(1, sizeof(*e));

	n_given++;
	(void)uv_timer_init(loop, &e->timer);
	e->timer.data = e;
	return e;
}

static void on_pipe(struct http_request *r, void *ctx)
{
	struct end *e = end_new();

	(void)ctx;
	e->p = http_upgrade(r, "application/vnd.docker.raw-stream",
			    &echo_events, e);
}

/* One byte and the end, at once: the race of docker-api.md 6.5. */
static size_t ignore(void *data, const char *bytes, size_t len)
{
	(void)data;
	(void)bytes;
	return len;
}

static void nothing(void *data)
{
	(void)data;
}

static const struct http_pipe_events short_events = {
	.input = ignore,
	.input_end = nothing,
	.ready = nothing,
	.gone = pipe_gone,
};

static void on_short(struct http_request *r, void *ctx)
{
	struct end *e = end_new();
	struct iovec v[2] = {
		{ (char[]){ 1, 0, 0, 0, 0, 0, 0, 1 }, 8 },
		{ (char[]){ 'x' }, 1 },
	};

	(void)ctx;
	e->p = http_upgrade(r, "application/vnd.docker.multiplexed-stream",
			    &short_events, e);
	if (!http_query(r, "silent"))
		(void)pipe_write(e->p, v, 2);
	pipe_end(e->p);
}

/* Writes without end into a pipe. */
static void hose_more(void *data)
{
	static char block[65536];
	struct end *e = data;
	struct iovec v = { block, sizeof(block) };
	size_t n;

	do {
		n = pipe_write(e->p, &v, 1);
		flood_bytes += n;
	} while (n == sizeof(block));
}

static const struct http_pipe_events hose_events = {
	.input = ignore,
	.input_end = nothing,
	.ready = hose_more,
	.gone = pipe_gone,
};

static void on_hose(struct http_request *r, void *ctx)
{
	struct end *e = end_new();

	(void)ctx;
	flood_bytes = 0;
	e->p = http_upgrade(r, "x/y", &hose_events, e);
	hose_more(e);
}

static const char *enter(struct http_request *r, const char *path)
{
	if (strncmp(path, "/v9/", 4) == 0) {
		text(r, 400, "too new");
		return NULL;
	}
	if (strncmp(path, "/v1/", 4) != 0)
		return path;
	http_set_version(r, 1);
	return path + 3;
}

static void fail(struct http_request *r, int status, const char *why)
{
	char line[200];

	(void)snprintf(line, sizeof(line), "{\"message\":\"%s\"}", why);
	http_answer(r, status, "application/json", line, strlen(line));
}

static const struct http_route routes[] = {
	{ "GET", "/echo/{}", on_echo, 0 },
	{ "POST", "/echo/{}", on_echo, HTTP_BODY_WHOLE },
	{ "GET", "/images/{*}/json", on_echo, 0 },
	{ "GET", "/many/{*}", on_echo, 0 },
	{ "POST", "/nothing", on_nothing, 0 },
	{ "GET", "/big", on_big, 0 },
	{ "GET", "/late", on_late, 0 },
	{ "GET", "/ticks", on_ticks, 0 },
	{ "GET", "/flood", on_flood, 0 },
	{ "GET", "/state", on_flooded, 0 },
	{ "PUT", "/eat", on_eat, HTTP_BODY_STREAM },
	{ "POST", "/pipe", on_pipe, HTTP_BODY_WHOLE | HTTP_UPGRADES },
	{ "POST", "/short", on_short, HTTP_BODY_WHOLE | HTTP_UPGRADES },
	{ "POST", "/hose", on_hose, HTTP_BODY_WHOLE | HTTP_UPGRADES },
};

static const char *const headers[] = { "Api-Version", "1.51", NULL };

static const struct http_face face = {
	.routes = routes,
	.n_routes = ARRAY_SIZE(routes),
	.headers = headers,
	.enter = enter,
	.fail = fail,
};

static void on_stdin(uv_poll_t *poll, int status, int events)
{
	char c;

	(void)status;
	(void)events;
	if (read(0, &c, 1) > 0)
		return;
	uv_close((uv_handle_t *)poll, NULL);
	http_free(server);
}

int main(int argc, char **argv)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct err err = { 0 };
	uv_poll_t input;

	if (argc != 2 || fd < 0)
		return 2;
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", argv[1]);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(fd, 512) < 0)
		return 2;
	loop = uv_default_loop();
	server = http_new(loop, fd, &face, &err);
	if (!server)
		return 2;
	(void)uv_poll_init(loop, &input, 0);
	(void)uv_poll_start(&input, UV_READABLE, on_stdin);
	printf("ready\n");
	(void)fflush(stdout);
	(void)uv_run(loop, UV_RUN_DEFAULT);
	printf("%d %d\n", n_given, n_gone);
	return uv_loop_close(loop) == 0 && n_given == n_gone ? 0 : 1;
}
