/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/desk.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "gate/conn.h"
#include "gate/questions.h"

/* Nobody will answer: who waits is refused, and who comes is too. */
static void gone(struct gate *g)
{
	uv_close((uv_handle_t *)&g->desk_poll, NULL);
	fd_close(&g->desk);
	questions_end(g->questions);
	conns_answered(g);
}

static void on_desk(uv_poll_t *p, int status, int events)
{
	struct gate *g = p->data;
	struct gate_answer a;
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	ssize_t n = io_recv(g->desk, &a, sizeof(a), MSG_DONTWAIT, fds, &n_fds);

	(void)events;
	for (int i = 0; i < n_fds; i++)
		(void)close(fds[i]);
	if (n == -EAGAIN && status == 0)
		return;
	if (n != sizeof(a) || a.head.type != GATE_ANSWER)
		gone(g);
	else if (questions_answer(g->questions, a.head.number,
				  a.is_allowed == 1))
		conns_answered(g);
}

int desk_start(struct gate *g, struct err *err)
{
	int r;

	if (g->desk < 0)
		return 0;
	r = uv_poll_init(&g->loop, &g->desk_poll, g->desk);
	if (r == 0)
		r = uv_poll_start(&g->desk_poll, UV_READABLE, on_desk);
	if (r < 0)
		return err_errno(err, -r, "watch the desk");
	g->desk_poll.data = g;
	/* It is the client that a gate lives for. */
	uv_unref((uv_handle_t *)&g->desk_poll);
	return 0;
}

int desk_ask(struct gate *g, uint32_t number, const char *host, uint16_t port)
{
	struct gate_ask ask = { .head = { GATE_ASKED, number }, .port = port };

	if (g->desk < 0 || strlen(host) >= sizeof(ask.host))
		return -ENOTCONN;
	(void)strcpy(ask.host, host);
	return io_send_now(g->desk, &ask, sizeof(ask), NULL, 0);
}
