/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * libcurl's multi interface says which sockets it waits for (socket_changed)
 * and until when (timer_changed); libuv and the loop's timer wait, and tell it
 * so by step(). What it reads goes to the request's buffer, and a task tells
 * the owner about it after libcurl has returned. The owner runs in the same
 * thread and before the next read, so the buffer stays small; one that
 * overflows ends the request.
 *
 * Connections are kept between requests, POOL_IDLE of them. How many there may
 * be at once follows from how many descriptors this process may have; requests
 * beyond that wait in libcurl.
 */

#include "model/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "base/clock.h"
#include "base/util.h"

/* libcurl reads at most 100 times 16 KiB from a socket in one step. */
#define IN_MAX ((size_t)4 << 20)

enum { POOL_IDLE = 32, FDS_LEFT = 64, FEW = 16 };

struct http {
	struct loop *loop;
	unsigned int refs;
	CURLM *multi;
	struct timer timer;
	struct task task;  /* as a timer that is due at once */
	uint64_t serial;   /* of the last request */
	struct http *next; /* of this thread's pools */
};

struct sock {
	uv_poll_t poll; /* first: it is what is closed */
	struct http *pool;
	curl_socket_t fd;
};

/* A loop belongs to one thread, and its pool with it. */
static _Thread_local struct http *pools;

#define OF(type, ptr, member)                                                  \
	((struct type *)((char *)(ptr)-offsetof(struct type, member)))

/* Ends it for want of memory. */
static void fail_short(struct http_call *c)
{
	c->is_over = true;
	c->code = CURLE_OUT_OF_MEMORY;
	(void)snprintf(c->text, sizeof(c->text), "out of memory");
	timer_stop(&c->timer);
	loop_soon(c->pool->loop, &c->task);
}

/* --- one step of libcurl --- */

static void is_finished(const CURLMsg *msg)
{
	struct http_call *c = NULL;

	(void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &c);
	c->code = (int)msg->data.result;
	c->is_over = true;
	if (c->code && !c->text[0])
		(void)snprintf(c->text, sizeof(c->text), "%s",
			       curl_easy_strerror(msg->data.result));
	timer_stop(&c->timer);
	loop_soon(c->pool->loop, &c->task);
}

static void step(struct http *h, curl_socket_t fd, int events)
{
	CURLMsg *msg;
	int n;

	(void)curl_multi_socket_action(h->multi, fd, events, &n);
	while ((msg = curl_multi_info_read(h->multi, &n)))
		if (msg->msg == CURLMSG_DONE)
			is_finished(msg);
}

static void is_due(struct timer *t)
{
	step(OF(http, t, timer), CURL_SOCKET_TIMEOUT, 0);
}

static void is_due_now(struct task *t)
{
	step(OF(http, t, task), CURL_SOCKET_TIMEOUT, 0);
}

static int timer_changed(CURLM *multi, long ms, void *arg)
{
	struct http *h = arg;

	(void)multi;
	timer_stop(&h->timer);
	task_drop(&h->task);
	if (ms == 0)
		loop_soon(h->loop, &h->task);
	else if (ms > 0 && timer_set(h->loop, &h->timer,
				     clock_us() + (int64_t)ms * 1000) < 0)
		loop_soon(h->loop, &h->task); /* it is told the time again */
	return 0;
}

static void is_ready(uv_poll_t *poll, int status, int events)
{
	struct sock *s = poll->data;
	int flags = 0;

	if (status < 0)
		flags = CURL_CSELECT_ERR;
	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	step(s->pool, s->fd, flags);
}

static void free_handle(uv_handle_t *h)
{
	free(h);
}

static struct sock *new_sock(struct http *h, curl_socket_t fd)
{
	struct sock *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (uv_poll_init_socket(loop_uv(h->loop), &s->poll, fd) < 0) {
		free(s);
		return NULL;
	}
	s->poll.data = s;
	s->pool = h;
	s->fd = fd;
	(void)curl_multi_assign(h->multi, fd, s);
	return s;
}

/*
 * No memory to wait for its socket. libcurl is not told so: it would give up
 * all requests of the pool, and those to come.
 */
static void give_up(CURL *easy)
{
	struct http_call *c = NULL;

	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &c);
	if (c)
		fail_short(c);
}

static int socket_changed(CURL *easy, curl_socket_t fd, int what, void *arg,
			  void *old)
{
	struct http *h = arg;
	struct sock *s = old;
	int events = 0;

	if (what == CURL_POLL_REMOVE) {
		if (s)
			uv_close((uv_handle_t *)&s->poll, free_handle);
		(void)curl_multi_assign(h->multi, fd, NULL);
		return 0;
	}
	if (!s)
		s = new_sock(h, fd);
	if (!s) {
		give_up(easy);
		return 0;
	}
	if (what & CURL_POLL_IN)
		events |= UV_READABLE;
	if (what & CURL_POLL_OUT)
		events |= UV_WRITABLE;
	if (uv_poll_start(&s->poll, events, is_ready) < 0)
		give_up(easy);
	return 0;
}

/* --- the pool --- */

static long most_connections(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur == RLIM_INFINITY)
		return 0;
	return r.rlim_cur < FDS_LEFT + FEW
		       ? FEW
		       : (long)MIN(r.rlim_cur - FDS_LEFT, 1 << 20);
}

static void begin_curl(void)
{
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

static struct http *new_pool(struct loop *l)
{
	struct http *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->loop = l;
	h->timer.fire = is_due;
	h->task.run = is_due_now;
	return h;
}

/*
 * With the first request: libcurl's TLS takes 2 MiB, which agents that wait
 * for work do not need.
 */
static int begin_pool(struct http *h)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (h->multi)
		return 0;
	(void)pthread_once(&once, begin_curl);
	h->multi = curl_multi_init();
	if (!h->multi)
		return -ENOMEM;
	(void)curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION,
				socket_changed);
	(void)curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	(void)curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION,
				timer_changed);
	(void)curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	(void)curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS,
				(long)POOL_IDLE);
	(void)curl_multi_setopt(h->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
				most_connections());
	return 0;
}

int http_get(struct loop *l, struct http **ret, struct err *err)
{
	struct http *h = pools;

	while (h && h->loop != l)
		h = h->next;
	if (!h) {
		h = new_pool(l);
		if (!h)
			return err_set(err, ENOMEM, "libcurl: out of memory");
		h->next = pools;
		pools = h;
	}
	h->refs++;
	*ret = h;
	return 0;
}

void http_put(struct http *h)
{
	struct http **at = &pools;

	if (!h || --h->refs)
		return;
	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	if (h->multi)
		(void)curl_multi_cleanup(h->multi);
	timer_stop(&h->timer);
	task_drop(&h->task);
	free(h);
}

/* --- what a request tells --- */

/* What may be better a moment later; a wrong certificate is not. */
static bool is_unreached(int code)
{
	static const int codes[] = {
		CURLE_COULDNT_RESOLVE_PROXY,
		CURLE_COULDNT_RESOLVE_HOST,
		CURLE_COULDNT_CONNECT,
		CURLE_OPERATION_TIMEDOUT,
		CURLE_SSL_CONNECT_ERROR,
		CURLE_GOT_NOTHING,
		CURLE_SEND_ERROR,
		CURLE_RECV_ERROR,
		CURLE_HTTP2,
		CURLE_HTTP2_STREAM,
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i] == code)
			return true;
	return false;
}

/* The owner may stop the request, or start it anew, in each of these. */
static void tell(struct task *t)
{
	struct http_call *c = OF(http_call, t, task);
	uint64_t serial = c->serial;
	struct buf in = c->in;
	struct http_end end;

	if (c->has_head && !c->has_told_head) {
		c->has_told_head = true;
		c->events->head(c->arg, &c->head);
	}
	if (c->serial == serial && in.len) {
		/* Taken out first: what comes meanwhile is not there yet. */
		buf_init(&c->in, IN_MAX);
		c->events->body(c->arg, in.data, in.len);
		buf_done(&in);
	}
	if (c->serial != serial || !c->is_over)
		return;
	end = (struct http_end){ .status = c->has_head ? c->head.status : 0,
				 .is_whole = c->code == CURLE_OK && !c->is_late,
				 .is_late = c->is_late ||
					    c->code == CURLE_OPERATION_TIMEDOUT,
				 .is_unreached = !c->has_byte && !c->is_late &&
						 is_unreached(c->code),
				 .text = c->text };
	http_stop(c);
	c->events->end(c->arg, &end);
}

static void is_too_late(struct timer *t)
{
	struct http_call *c = OF(http_call, t, timer);

	c->is_late = true;
	c->is_over = true;
	(void)snprintf(c->text, sizeof(c->text), "%s",
		       c->has_head ? "the rest of the answer did not come in "
				     "time"
				   : "no answer came in time");
	loop_soon(c->pool->loop, &c->task);
}

/* --- what libcurl tells --- */

static void more_came(struct http_call *c)
{
	if (timer_set(c->pool->loop, &c->timer, clock_us() + c->idle_us) < 0)
		fail_short(c);
	loop_soon(c->pool->loop, &c->task);
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;

	if (c->is_over)
		return 0;
	if (buf_add(&c->in, data, size * n) < 0) {
		(void)snprintf(c->text, sizeof(c->text),
			       "too much came at once, or memory is short");
		return 0;
	}
	more_came(c);
	return size * n;
}

/* "Name: value" of this name: the value, without what is around it. */
static void keep(const char *line, size_t len, const char *name, char *ret,
		 size_t size)
{
	size_t n = strlen(name);

	if (len <= n || line[n] != ':' || strncasecmp(line, name, n) != 0)
		return;
	for (n++; n < len && (line[n] == ' ' || line[n] == '\t');)
		n++;
	while (len > n && strchr("\r\n \t", line[len - 1]))
		len--;
	(void)snprintf(ret, size, "%.*s", (int)(len - n), line + n);
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;
	size_t len = size * n;
	long status = 0;

	c->has_byte = true;
	if (len >= 5 && memcmp(line, "HTTP/", 5) == 0)
		memset(&c->head, 0, sizeof(c->head));
	keep(line, len, "content-type", c->head.type, sizeof(c->head.type));
	keep(line, len, "retry-after", c->head.retry_after,
	     sizeof(c->head.retry_after));
	if (len > 2)
		return len;
	/* An empty line: the end of this head, which may be a 1xx. */
	(void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200) {
		c->head.status = (int)status;
		c->has_head = true;
		more_came(c);
	}
	return len;
}

/* --- one request --- */

static int add_headers(struct http_call *c, const struct http_request *q)
{
	/* Without it libcurl waits for a word before it sends a large body. */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	for (size_t i = 0; i < ARRAY_SIZE(q->headers) && q->headers[i]; i++) {
		struct curl_slist *more = list ? curl_slist_append(
							 list, q->headers[i])
					       : NULL;

		if (!more) {
			curl_slist_free_all(list);
			return -ENOMEM;
		}
		list = more;
	}
	c->headers = list;
	return list ? 0 : -ENOMEM;
}

/*
 * With signals off libcurl leaves SIGPIPE to us, and OpenSSL's writes to a
 * closed connection would end the process; with them on it ignores SIGPIPE
 * while it works. It uses no signals itself, where it resolves names in
 * threads.
 */
static long no_signal(void)
{
	const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);

	return !(v->features & CURL_VERSION_ASYNCHDNS);
}

static void set_safety(CURL *e, const struct http_request *q)
{
	(void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	/* What is not encrypted goes through nobody's hands. */
	if (strncmp(q->url, "http://", 7) == 0)
		(void)curl_easy_setopt(e, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
	(void)curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
	(void)curl_easy_setopt(e, CURLOPT_SSLVERSION,
			       (long)CURL_SSLVERSION_TLSv1_2);
	(void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, no_signal());
	(void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
			       (long)(q->connect_us / 1000));
	if (q->ca_file)
		(void)curl_easy_setopt(e, CURLOPT_CAINFO, q->ca_file);
}

static void set_request(CURL *e, struct http_call *c,
			const struct http_request *q)
{
	(void)curl_easy_setopt(e, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(e, CURLOPT_POSTFIELDS, q->body);
	(void)curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE,
			       (curl_off_t)q->len);
	(void)curl_easy_setopt(e, CURLOPT_HTTPHEADER, c->headers);
	(void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
	(void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	(void)curl_easy_setopt(e, CURLOPT_HEADERDATA, c);
	(void)curl_easy_setopt(e, CURLOPT_PRIVATE, c);
	(void)curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->text);
}

_Static_assert(sizeof(((struct http_call *)0)->text) >= CURL_ERROR_SIZE,
	       "libcurl writes that much");

int http_start(struct http *h, struct http_call *c,
	       const struct http_request *q)
{
	CURL *e = begin_pool(h) < 0 ? NULL : curl_easy_init();

	*c = (struct http_call){ .pool = h,
				 .easy = e,
				 .serial = ++h->serial,
				 .events = q->events,
				 .arg = q->arg,
				 .idle_us = q->idle_us,
				 .task.run = tell,
				 .timer.fire = is_too_late };
	buf_init(&c->in, IN_MAX);
	if (!e || add_headers(c, q) < 0)
		goto no_memory;
	set_safety(e, q);
	set_request(e, c, q);
	if (curl_easy_setopt(e, CURLOPT_URL, q->url) != CURLE_OK ||
	    timer_set(h->loop, &c->timer, clock_us() + q->first_us) < 0 ||
	    curl_multi_add_handle(h->multi, e) != CURLM_OK)
		goto no_memory;
	return 0;

no_memory:
	http_stop(c);
	return -ENOMEM;
}

/* The key may be in one of them. */
static void wipe_headers(struct curl_slist *list)
{
	for (struct curl_slist *h = list; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(list);
}

void http_stop(struct http_call *c)
{
	if (!c->easy)
		return;
	task_drop(&c->task);
	timer_stop(&c->timer);
	(void)curl_multi_remove_handle(c->pool->multi, c->easy);
	curl_easy_cleanup(c->easy);
	c->easy = NULL;
	c->serial = 0;
	wipe_headers(take_ptr(c->headers));
	buf_done(&c->in);
}
