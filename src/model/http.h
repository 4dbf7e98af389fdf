/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP requests on the loop, by libcurl.
 *
 * One pool of connections for each loop, shared by all models on it. A request
 * is a part of its owner's structure. It calls `head` once, `body` any number
 * of times and `end` once, always from the loop and never from within
 * libcurl, so each of them may call http_stop(), or start another.
 *
 * Certificates are always checked, redirects are never followed (they would
 * take the key elsewhere), and no protocol but http and https is spoken.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "loop/loop.h"

struct http;

/* The loop's pool, made if there is none. */
int http_get(struct loop *l, struct http **ret, struct err *err);
void http_put(struct http *h);

struct http_head {
	int status;
	char type[64];        /* of the content */
	char retry_after[64]; /* empty: not there */
};

struct http_end {
	int status;        /* 0: nothing came, or no whole head */
	bool is_whole;     /* the answer ended as its framing said */
	bool is_late;      /* a time of ours passed */
	bool is_unreached; /* the connection failed before the first byte */
	const char *text;
};

struct http_events {
	void (*head)(void *arg, const struct http_head *head);
	void (*body)(void *arg, const char *data, size_t len);
	void (*end)(void *arg, const struct http_end *end);
};

/* All of it is the caller's until the end or http_stop(). Times are in us. */
struct http_request {
	const char *url;
	const char *headers[4]; /* "Name: value"; NULL: no more */
	const char *body;
	size_t len;
	const char *ca_file; /* NULL: the system's */
	int64_t connect_us, first_us, idle_us;
	const struct http_events *events;
	void *arg;
};

struct http_call {
	struct http *pool;
	void *easy; /* NULL: nothing is under way */
	void *headers;
	struct task task;
	struct timer timer;
	const struct http_events *events;
	void *arg;
	int64_t idle_us;
	struct http_head head;
	struct buf in; /* has come, and is not told yet */
	bool has_byte, has_head, has_told_head, is_over, is_late;
	uint64_t serial; /* which request of the pool this is; 0: none */
	int code;        /* libcurl's */
	char text[256];  /* its words for it */
};

/* 0 or -errno; nothing is called where it failed. */
int http_start(struct http *h, struct http_call *c,
	       const struct http_request *q);
/* Closes its connection, if the answer has not come whole. */
void http_stop(struct http_call *c);
