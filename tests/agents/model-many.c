/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A thousand calls on one loop, each waiting for its own stream, which a
 * server of one process trickles to all of them. Every piece arrives, in its
 * order and at its call, and every call ends once.
 */

#include "tests/tap.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "base/util.h"
#include "model-server.h"
#include "model.h"

enum { CALLS = 1000, PIECES = 10 };

/* --- the server --- */

struct client {
	int fd;
	int number; /* of the call, from its request; -1: not read yet */
	size_t len;
	char request[2048];
};

static void read_request(struct client *c)
{
	ssize_t n = recv(c->fd, c->request + c->len,
			 sizeof(c->request) - 1 - c->len, MSG_DONTWAIT);
	const char *at;

	if (n <= 0)
		return;
	c->len += (size_t)n;
	c->request[c->len] = '\0';
	at = strstr(c->request, "call-");
	if (at && strchr(at, '}'))
		c->number = (int)strtol(at + 5, NULL, 10);
}

static void send_piece(const struct client *c, int i)
{
	char body[256];
	char text[512];

	if (i < PIECES)
		(void)snprintf(body, sizeof(body),
			       "data: {\"choices\":[{\"delta\":{\"content\":"
			       "\"%d.%d;\"}}]}\n\n",
			       c->number, i);
	else
		(void)snprintf(body, sizeof(body),
			       "data: {\"choices\":[{\"delta\":{},"
			       "\"finish_reason\":\"stop\"}],\"usage\":{"
			       "\"prompt_tokens\":1,\"completion_tokens\":10}}"
			       "\n\ndata: [DONE]\n\n");
	(void)snprintf(text, sizeof(text), "%s%zx\r\n%s\r\n%s",
		       i == 0 ? "HTTP/1.1 200 OK\r\nContent-Type: "
				"text/event-stream\r\nTransfer-Encoding: "
				"chunked\r\n\r\n"
			      : "",
		       strlen(body), body, i == PIECES ? "0\r\n\r\n" : "");
	(void)io_send_all(c->fd, text, strlen(text));
}

static void trickle(int listener, struct served *seen)
{
	static struct client all[CALLS];
	int n = 0;

	for (; n < CALLS; n++) {
		all[n].fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		all[n].number = -1;
		if (all[n].fd < 0)
			_exit(1);
		seen->connections++;
	}
	for (int i = 0; i < CALLS; i++)
		while (all[i].number < 0) {
			struct pollfd p = { all[i].fd, POLLIN, 0 };

			(void)poll(&p, 1, 1000);
			read_request(&all[i]);
		}
	/* All of them wait now. The order is another one in each round. */
	for (int piece = 0; piece <= PIECES; piece++) {
		for (int i = 0; i < CALLS; i++)
			send_piece(&all[(i * 7 + piece * 13) % CALLS], piece);
		nap(5);
	}
	nap(20000);
}

/* --- the calls --- */

static int n_over, n_faults, n_most, n_waiting;

struct one {
	int next; /* piece */
	int ends;
	bool is_wrong;
	int number;
};

static void one_chunk(void *arg, bool is_thought, const char *text, size_t len)
{
	struct one *o = arg;
	char want[32];

	if (o->next == 0 && ++n_waiting > n_most)
		n_most = n_waiting;
	(void)snprintf(want, sizeof(want), "%d.%d;", o->number, o->next++);
	if (is_thought || len != strlen(want) || memcmp(text, want, len) != 0)
		o->is_wrong = true;
}

static void one_done(void *arg, const struct model_result *r,
		     const struct fault *why)
{
	struct one *o = arg;

	if (why && n_faults++ == 0)
		printf("# %s\n", why->message);
	if (r && r->usage.completion != PIECES)
		o->is_wrong = true;
	o->ends++;
	n_over++;
	n_waiting--;
}

static bool all_over(void *arg)
{
	(void)arg;
	return n_over == CALLS;
}

static void start_one(struct model *m, struct one *o)
{
	static const struct model_events events = { one_chunk, one_done };
	struct model_request q = { .is_stream = true };
	char text[32];

	(void)snprintf(text, sizeof(text), "call-%d", o->number);
	q.messages = json_pack("[{s:s, s:s}]", "role", "user", "content", text);
	CHECK(model_start(m, &q, &events, o) != NULL);
	json_decref(q.messages);
}

static struct server start_server(void)
{
	struct server s = { 0 };
	int fd = listen_here(&s.port);

	s.seen = mmap(NULL, sizeof(*s.seen), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	(void)snprintf(s.url, sizeof(s.url), "http://127.0.0.1:%d/v1", s.port);
	(void)fflush(NULL);
	s.pid = fork();
	if (s.pid == 0) {
		trickle(fd, s.seen);
		_exit(0);
	}
	(void)close(fd);
	return s;
}

TEST(a_thousand_streams_on_one_loop)
{
	static struct one all[CALLS];
	struct rlimit files;
	struct server s;
	struct model *m = NULL;
	struct err err = { 0 };
	json_t *config;
	int wrong = 0;

	/* One descriptor for each, here and at the server. */
	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = MIN(files.rlim_max, 4096);
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	if (files.rlim_cur < CALLS + 100)
		SKIP("too few descriptors are allowed");
	(void)setenv("no_proxy", "*", 1);
	s = start_server();
	config = json_pack("{s:s, s:s}", "model", "m", "base_url", s.url);
	CHECK(model_openai(the_loop(), config, &m, &err) == 0);
	json_decref(config);
	for (int i = 0; i < CALLS; i++) {
		all[i].number = i;
		start_one(m, &all[i]);
	}
	(void)loop_run(the_loop(), all_over, NULL);
	for (int i = 0; i < CALLS; i++)
		wrong += all[i].is_wrong || all[i].ends != 1 ||
			 all[i].next != PIECES;
	CHECK_INT(n_over, CALLS);
	CHECK_INT(n_faults, 0);
	CHECK_INT(wrong, 0);
	CHECK_INT(n_most, CALLS);
	CHECK_INT(s.seen->connections, CALLS);
	CHECK_INT(model_total(m)->calls, CALLS);
	CHECK_INT(model_total(m)->completion, CALLS * PIECES);
	model_unref(m);
	server_end(&s);
	loop_free(the_loop());
}

TAP_MAIN()
