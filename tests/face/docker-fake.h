/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP and a box manager that are not there, for tests of Docker's face: what
 * the face asks for is noted, what it would be told comes from `fake`, and
 * callbacks come when fake_run() is called, never before.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "box/wire.h"
#include "face/http.h"
#include "face/route.h"

struct http_pipe {
	const struct http_pipe_events *events;
	void *data;
	struct buf out;
	size_t room; /* it takes so much; 0: no limit */
	bool has_ended;
	bool wants_input;
};

struct http_request {
	const struct http_route *route;
	struct route_params params;
	struct query query;
	const char *method;
	char path[4096];
	const char *body;
	size_t body_len;
	unsigned int version;
	bool wants_upgrade;
	struct peer peer;
	void *data;
	void (*gone)(void *data);
	void (*ready)(void *data);
	http_body_fn *on_body;
	/* the answer */
	int status;
	char type[128];
	char headers[2048]; /* "Name: value\n" ... */
	struct buf out;
	size_t room; /* what http_write() takes at once; 0: all */
	bool is_begun, is_raw, has_ended, was_cut;
	struct http_pipe *pipe;
};

struct box {
	struct box_view v;
	struct sink sink;
	struct log_sink log;
	struct attach_want attached;
	struct log_want logs;
	char *texts[4]; /* settings, extra, name, spec */
};

struct exec {
	struct exec_view v;
	struct sink sink;
	char *command[64];
};

struct feed {
	void *owner;
	struct buf input;
	size_t takes; /* so much input, 0: all */
	bool has_ended, was_dropped, was_ready;
	void (*on_input)(void *arg);
	void *arg;
};

/* What was asked of the manager, and what it shall say. */
struct fake {
	struct err err;       /* of the next call */
	struct err start_err; /* why an exec may not start */
	bool has_no_feed;     /* an exec finds no memory for one */
	bool has_unmade;      /* the box is still being made */
	int created, started, removed, killed, signal, timeout_s, stopped;
	struct box box;
	bool has_box;
	struct box other; /* a second one, in lists only */
	bool has_other;
	struct exec exec;
	bool has_exec;
	bool has_past; /* it is gone with its box, and still known */
	struct exec_want exec_want;
	char exec_user[64], exec_dir[256], exec_env[256];
	struct feed feed;
	struct box_want want;
	char *settings, *extra, *name;
	char command[1024]; /* joined by '|' */
	const char *note;   /* the policy's */
	const char *spec, *clamped, *warnings;
	struct file_stat stat;
	char path[4096];
	struct buf written;
	char image_args[1024];
	const char *image_says;
	struct buf image_input;
	const char *tar;
	box_waited_fn *waiter;
	void *waiter_arg;
	event_fn *event_fn;
	void *event_arg;
	int (*resume)(void); /* of the events; NULL: all was taken */
	int64_t since_ns;
	int events;
	char event_told[1024]; /* type, action, attributes of the last */
	struct wire_outcome outcome;
	bool has_outcome;
	struct box_usage usage;
	struct box_process processes[2];
};
extern struct fake fake;

void fake_reset(void);
/* A container that is there already: "web", id of 64 'a'. */
void fake_box(enum box_state state);
void fake_exec(void);
/* Calls back what was asked. */
void fake_run(void);

/* Through the face's table, as the server would. NULL body: none. */
struct http_request *fake_ask(const char *method, const char *url,
			      const char *body);
struct http_request *fake_ask_upgrade(const char *method, const char *url,
				      const char *body);
/* The same bytes as a stream. */
void fake_send_body(struct http_request *r, const char *data, size_t len);
void fake_done(struct http_request *r);
const char *fake_out(struct http_request *r); /* "" where there is none */
