/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the client adds to one call of a model: the same request to the same
 * server on this machine, by libcurl alone and by model_start(), turn by turn.
 * Both keep one connection. Prints the medians and their difference as lines
 * of bench/figure.h; ends with 1 if it is over the bar of 1 ms.
 *
 *	model-call [ROUNDS]
 */

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "figure.h"
#include "model/model.h"
#include "model/openai.h"

#define BAR_MS  1.0
#define TEXT    "What is the answer, and why is it that and not another one?"
#define NAME    "gpt-4o"
#define ROUNDS  2000
#define WARM_UP 50
#define CHUNKS  50

/* An answer of 500 characters, whole and in CHUNKS of them. */
static char document[16384], stream[16384];

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what)
{
	(void)fprintf(stderr, "model-call: %s\n", what);
	exit(2);
}

/* --- the server --- */

static void wrap(char *out, size_t size, const char *type, const char *body)
{
	(void)snprintf(out, size,
		       "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n"
		       "Content-Length: %zu\r\n\r\n%s",
		       type, strlen(body), body);
}

static void make_answers(void)
{
	char body[12288];
	size_t n = 0;

	(void)snprintf(body, sizeof(body),
		       "{\"id\":\"x\",\"model\":\"" NAME "\",\"choices\":[{"
		       "\"index\":0,\"message\":{\"role\":\"assistant\","
		       "\"content\":\"%0500d\"},\"finish_reason\":\"stop\"}],"
		       "\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":"
		       "9}}",
		       0);
	wrap(document, sizeof(document), "application/json", body);
	for (int i = 0; i < CHUNKS; i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n,
				      "data: {\"id\":\"x\",\"choices\":[{"
				      "\"index\":0,\"delta\":{\"content\":"
				      "\"%010d\"}}]}\n\n",
				      i);
	(void)snprintf(body + n, sizeof(body) - n,
		       "data: {\"choices\":[{\"delta\":{},\"finish_reason\":"
		       "\"stop\"}]}\n\ndata: [DONE]\n\n");
	wrap(stream, sizeof(stream), "text/event-stream", body);
}

/* One request is one read here: they are small. */
static void answer(int fd)
{
	char text[65536];
	ssize_t n;

	while ((n = recv(fd, text, sizeof(text) - 1, 0)) > 0) {
		const char *reply;

		text[n] = '\0';
		/* The head may come without its body. */
		if (!strchr(text, '{'))
			continue;
		reply = strstr(text, "\"stream\":true") ? stream : document;
		if (io_send_all(fd, reply, strlen(reply)) < 0)
			break;
	}
	(void)close(fd);
}

/* A child for each connection: there are two. */
static void serve(int listener)
{
	(void)signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		int one = 1;

		if (fd < 0)
			continue;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
				 sizeof(one));
		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			answer(fd);
			_exit(0);
		}
		(void)close(fd);
	}
}

static pid_t start_server(int *ret_port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(fd, 16) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		die("cannot listen");
	*ret_port = ntohs(at.sin_port);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd);
	}
	(void)close(fd);
	return pid;
}

/* --- libcurl alone --- */

static size_t swallow(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	*(size_t *)arg += size * n;
	return size * n;
}

struct bare {
	CURL *easy;
	struct curl_slist *headers;
	size_t got;
};

static void bare_begin(struct bare *b, const char *url)
{
	b->easy = curl_easy_init();
	b->headers = curl_slist_append(NULL, "Content-Type: application/json");
	b->headers = curl_slist_append(b->headers, "Expect:");
	(void)curl_easy_setopt(b->easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(b->easy, CURLOPT_NOPROXY, "*");
	(void)curl_easy_setopt(b->easy, CURLOPT_HTTPHEADER, b->headers);
	(void)curl_easy_setopt(b->easy, CURLOPT_WRITEFUNCTION, swallow);
	(void)curl_easy_setopt(b->easy, CURLOPT_WRITEDATA, &b->got);
}

static double bare_call(struct bare *b, const char *body)
{
	double before = now_ms();

	b->got = 0;
	(void)curl_easy_setopt(b->easy, CURLOPT_POSTFIELDS, body);
	if (curl_easy_perform(b->easy) != CURLE_OK || b->got < 100)
		die("libcurl got no answer");
	return now_ms() - before;
}

/* --- the client --- */

struct end {
	bool is_over, is_good;
};

static void on_chunk(void *arg, bool is_thought, const char *text, size_t len)
{
	(void)arg;
	(void)is_thought;
	(void)text;
	(void)len;
}

static void on_done(void *arg, const struct model_result *r,
		    const struct fault *why)
{
	struct end *e = arg;

	e->is_over = true;
	e->is_good = r && r->content && strlen(r->content) == 500;
	if (why)
		(void)fprintf(stderr, "%s\n", why->message);
}

static bool is_over(void *arg)
{
	return ((struct end *)arg)->is_over;
}

static double our_call(struct loop *l, struct model *m, json_t *messages,
		       bool is_stream)
{
	static const struct model_events events = { on_chunk, on_done };
	struct model_request q = { .messages = messages,
				   .is_stream = is_stream };
	struct end e = { 0 };
	double before = now_ms();

	if (!model_start(m, &q, &events, &e))
		die("out of memory");
	(void)loop_run(l, is_over, &e);
	if (!e.is_good)
		die("the client got no answer");
	return now_ms() - before;
}

/* --- measuring --- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *samples, int n)
{
	qsort(samples, (size_t)n, sizeof(*samples), compare);
	return samples[n / 2];
}

/* The body that the client sends, so that both send the same. */
static char *body_of(const struct model *m, json_t *messages, bool is_stream)
{
	json_t *none = json_object();
	struct openai_form form = { .model = NAME,
				    .info = model_info(m),
				    .settings = none,
				    .has_names = true,
				    .has_stream_usage = true };
	struct model_request q = { .messages = messages,
				   .is_stream = is_stream };
	struct fault why = { 0 };
	char *body = openai_body(&form, &q, &why);

	json_decref(none);
	if (!body)
		die(why.message);
	return body;
}

static void measure(struct loop *l, struct model *m, const char *url,
		    int rounds, bool is_stream)
{
	const char *how = is_stream ? "streamed" : "plain";
	json_t *messages = json_pack("[{s:s, s:s, s:s}]", "role", "user",
				     "source", "user", "content", TEXT);
	double *bare = calloc((size_t)rounds, sizeof(double));
	double *ours = calloc((size_t)rounds, sizeof(double));
	char *body = body_of(m, messages, is_stream);
	struct bare b;
	char name[64];
	double x;
	double y;

	if (!bare || !ours)
		die("out of memory");
	bare_begin(&b, url);
	for (int i = -WARM_UP; i < rounds; i++) {
		x = bare_call(&b, body);
		y = our_call(l, m, messages, is_stream);
		if (i >= 0) {
			bare[i] = x;
			ours[i] = y;
		}
	}
	x = 1000 * median(bare, rounds);
	y = 1000 * median(ours, rounds);
	(void)snprintf(name, sizeof(name), "model call, %s, libcurl", how);
	figure(name, x, "us", NO_BAR, 0);
	(void)snprintf(name, sizeof(name), "model call, %s, Cordon", how);
	figure(name, y, "us", NO_BAR, 0);
	(void)snprintf(name, sizeof(name), "model call, %s, added", how);
	figure(name, y - x, "us", AT_MOST, 1000 * BAR_MS);
	curl_slist_free_all(b.headers);
	curl_easy_cleanup(b.easy);
	free(bare);
	free(ours);
	free(body);
	json_decref(messages);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : ROUNDS;
	char base[64];
	char url[96];
	struct loop *l = NULL;
	struct model *m = NULL;
	struct err err = { 0 };
	json_t *config;
	int port;
	pid_t server;

	if (rounds < 1 || rounds > 1000000)
		die("ROUNDS is a number from 1 to 1000000");
	make_answers();
	server = start_server(&port);
	(void)setenv("no_proxy", "*", 1);
	(void)snprintf(base, sizeof(base), "http://127.0.0.1:%d/v1", port);
	(void)snprintf(url, sizeof(url), "%s/chat/completions", base);
	config = json_pack("{s:s, s:s}", "model", NAME, "base_url", base);
	if (loop_new(&l, &err) < 0 || model_openai(l, config, &m, &err) < 0)
		die(err.text);
	measure(l, m, url, rounds, false);
	measure(l, m, url, rounds, true);
	model_unref(m);
	loop_free(l);
	json_decref(config);
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	return figure_failed;
}
