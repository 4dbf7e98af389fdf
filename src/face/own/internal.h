/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of the own face share.
 *
 * A request that cannot be answered at once is an act: it holds the call or
 * feed that will answer it, and lets go of both when the client has gone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "face/http.h"
#include "front/manager.h"

#define OWN_JSON  "application/json"
#define OWN_TAR   "application/x-tar"
#define OWN_FRAME "application/vnd.docker.multiplexed-stream"
#define OWN_RAW   "application/vnd.docker.raw-stream"
/* The largest document that is made here. */
#define OWN_MAX ((size_t)64 << 20)

struct act {
	struct manager *m;
	struct http_request *r;
	struct call *call;
};

/* With `r` as its data; NULL: it was answered. */
struct act *act_new(struct http_request *r, struct manager *m);
/* `c` as it came from the manager: NULL is answered. */
void act_wait(struct act *a, struct call *c);
/* For what the call tells at its end; false: an error, which was answered. */
bool act_ended(struct act *a, const struct err *err);
void act_done(void *arg, const struct err *err); /* 204, or the error */

void own_error(struct http_request *r, const struct err *err);
void own_fail(struct http_request *r, int status, const char *text);
/* Takes the buffer; what could not be written is a 500. */
void own_send(struct http_request *r, int status, struct buf *b);

/* The box or exec of the first parameter; NULL: it was answered. */
struct box *own_box(struct http_request *r, struct manager *m);
struct exec *own_exec(struct http_request *r, struct manager *m);

/* Of the query. A bad value is answered, and then they return false. */
bool own_flag(struct http_request *r, const char *name, bool other);
bool own_number(struct http_request *r, const char *name, int64_t other,
		int64_t *ret);
bool own_signal(struct http_request *r, int other, int *ret);
/* "TERM", "SIGTERM", "15"; 0: there is none such. */
int own_signal_of(const char *text);

/* Documents. */
struct json;
void own_put_time(struct json *j, const char *name, int64_t ns);
void own_put_exec(struct json *j, const struct exec *e);
void own_send_box(struct http_request *r, int status, const struct box *b);
void own_send_exec(struct http_request *r, int status, const struct exec *e);

/* body.c: bodies by a table; texts live until body_done(). */
enum body_kind {
	BODY_TEXT,
	BODY_BOOL,
	BODY_INT,
	BODY_TIME,
	BODY_LIST,
	BODY_JSON
};
struct body_member {
	const char *name;
	enum body_kind kind;
	size_t offset; /* const char *, bool, int64_t, uint64_t (us), */
	/* const char *const *, const char * (JSON) */
	char type; /* BODY_JSON: '{' or '[' */
};
struct body {
	void *root; /* json_t */
	void **made;
	size_t n_made;
};
int body_read(struct http_request *r, const struct body_member *table, size_t n,
	      void *ret, struct body *b, struct err *err);
void body_done(struct body *b);
/* The caller's; NULL if it is none. */
char *own_base64(const char *text, size_t *ret_len);
/* A member of an object as JSON, the caller's; NULL if there is none. */
char *own_doc_member(const char *json, const char *name);
double own_doc_number(const char *json, const char *name, double other);
/* Adds the strings of a list; name NULL: the document is the list. */
void own_doc_list(const char *json, const char *name, struct strv *ret);

/* With this member where it has none; the caller's. NULL: no memory. */
char *own_doc_default(const char *json, const char *name, const char *text);

/* result.c: the document of a run (cordon-result(5)), the caller's. */
struct capture;
struct wire_outcome;
struct cordon_result;
struct run_facts {
	const char *id;
	const char *spec, *warnings;     /* JSON */
	const struct cordon_result *net; /* what its gate refused, or NULL */
	bool is_code;
	const struct wire_outcome *outcome;
	const struct err *refusal; /* instead of one */
	const char *cancel_reason; /* NULL: was not cancelled */
	struct capture *out, *err, *both;
	uint64_t timeout_us; /* 0: the spec's */
};
char *own_result(const struct run_facts *f);

/* pump.c: the streams of a program on a pipe. */
struct pump;
struct pump *pump_new(bool is_raw);
struct sink pump_sink(struct pump *p);
void pump_set_feed(struct pump *p, struct feed *f);
void pump_open(struct pump *p, struct http_request *r); /* the upgrade */
void pump_free(struct pump *p);                         /* without one */
/* The upgrade with this feed; NULL: *err is answered, the pump is freed. */
void pump_join(struct pump *p, struct http_request *r, struct feed *f,
	       const struct err *err);
#define PUMP_HEAD 8
void own_frame_head(char head[PUMP_HEAD], int stream, size_t len);

#define OWN_HANDLER(name) void name(struct http_request *r, void *ctx)
OWN_HANDLER(own_version);
OWN_HANDLER(own_info);
OWN_HANDLER(own_events);
OWN_HANDLER(own_run);
OWN_HANDLER(own_run_cancel);
OWN_HANDLER(own_boxes);
OWN_HANDLER(own_box_create);
OWN_HANDLER(own_box_inspect);
OWN_HANDLER(own_box_remove);
OWN_HANDLER(own_box_start);
OWN_HANDLER(own_box_stop);
OWN_HANDLER(own_box_restart);
OWN_HANDLER(own_box_kill);
OWN_HANDLER(own_box_pause);
OWN_HANDLER(own_box_resume);
OWN_HANDLER(own_box_rename);
OWN_HANDLER(own_box_resize);
OWN_HANDLER(own_box_wait);
OWN_HANDLER(own_box_logs);
OWN_HANDLER(own_box_attach);
OWN_HANDLER(own_box_stats);
OWN_HANDLER(own_box_top);
OWN_HANDLER(own_box_stat);
OWN_HANDLER(own_files_get);
OWN_HANDLER(own_files_put);
OWN_HANDLER(own_box_changes);
OWN_HANDLER(own_execs);
OWN_HANDLER(own_exec_create);
OWN_HANDLER(own_exec_inspect);
OWN_HANDLER(own_exec_attach);
OWN_HANDLER(own_exec_resize);
OWN_HANDLER(own_exec_kill);
OWN_HANDLER(own_images);
OWN_HANDLER(own_image_load);
OWN_HANDLER(own_image_import);
OWN_HANDLER(own_image_prune);
OWN_HANDLER(own_image_inspect);
OWN_HANDLER(own_image_remove);
OWN_HANDLER(own_image_save);
OWN_HANDLER(own_image_tag);
