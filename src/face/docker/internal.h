/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of Docker's face share.
 *
 * A handler either answers at once, or makes a struct ask, which holds what it
 * waits for. The ask belongs to the request: when the client has left, or after
 * the answer, the manager's call is dropped and the ask is freed.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "base/util.h"
#include "face/http.h"

#define DOCKER_API     "1.51"
#define DOCKER_API_MIN "1.24"
#define DOCKER_COMPAT  "28.0.0"

/* Versions as numbers: 1.42 is 1042. Without a prefix, the newest. */
#define VERSION(major, minor) ((major)*1000U + (minor))

#define JSON_TYPE "application/json"
#define TEXT_TYPE "text/plain; charset=utf-8"

struct note; /* execs.h */

struct docker {
	struct manager *m;
	uv_loop_t *loop;
	struct http_face face;
	char server[96];
	const char *headers[9];
	struct note *notes; /* what is known of execs beyond the manager */
	unsigned int n_notes;
	unsigned int names; /* to make such up from */
};

/* ---- docker.c: answers ---- */

/* {"message": ...} */
void answer_fail(struct http_request *r, int status, const char *fmt, ...)
	PRINTF(3, 4);
/*
 * By the one table from the manager's errors to Docker's statuses and texts.
 * `name` is what the client called it by.
 */
void answer_err(struct http_request *r, const struct err *err,
		const char *name);
/* The same without a request: the status, and the text. */
int error_status(const struct err *err, const char *name, char *ret,
		 size_t size);
/* Takes the document; NULL is a 500. */
void answer_json(struct http_request *r, int status, json_t *doc);
void answer_empty(struct http_request *r, int status);

/* ---- docker.c: requests ---- */

struct docker *docker_of(void *ctx);
/* The box of the first parameter; NULL when that was answered. */
struct box *need_box(struct http_request *r, struct docker *d);
/* trimmed and in lower case: "", 0, no, false, none are false */
bool bool_parse(const char *text);
bool query_bool(const struct http_request *r, const char *name, bool absent);
/* Seconds and nanoseconds since 1970; "" is 0. */
int time_parse(const char *text, int64_t *ret_ns);
/* The body as an object; NULL when that was answered. "" is {}. */
json_t *need_body(struct http_request *r);
json_t *body_parse(const char *text, size_t len, struct err *err);

struct ask {
	struct http_request *r;
	struct docker *d;
	struct call *call;
	char *name;
	int same; /* an error that is no news: 304 */
	void (*let_go)(struct ask *a);
};

/* Of at least the size of a struct ask, zeroed; frees itself by the request. */
void *ask_new(struct http_request *r, struct docker *d, size_t size,
	      void (*let_go)(struct ask *a));
/* A mgr_done_fn for those that answer with no body. */
void ask_done_empty(void *arg, const struct err *err);

/* Errors that are foreseen, for functions without a request. */
struct said {
	int status;
	char text[768];
};
int say_no(struct said *said, int status, const char *fmt, ...) PRINTF(3, 4);

/* ---- formats.c ---- */

/* "2026-01-02T03:04:05.123456789Z"; 0 is Docker's zero time. */
void time_format(int64_t ns, char ret[40]);
/* As Docker says durations: "About a minute", "3 hours". */
void human_duration(int64_t seconds, char *ret, size_t size);
/* From st_mode to Go's os.FileMode. */
uint32_t go_mode(uint32_t st_mode);
void base64_encode(const void *data, size_t len, struct buf *out);
/* A signal by name, with or without SIG, or number; -1. */
int signal_parse(const char *text);
const char *signal_name(int signal); /* "KILL"; "" unknown */
/*
 * Whether a simple pattern (^ $ . * and letters) is found in the text. With
 * any other sign of regular expressions it is taken as it stands.
 */
bool pattern_found(const char *pattern, const char *text);

/* ---- names.c ---- */

#define REF_MAX 512
/* "python" -> "docker.io/library/python:latest"; an id stays. -1: none. */
int ref_normalise(const char *text, char ret[REF_MAX]);
bool ref_is_same(const char *a, const char *b);
/* The image that is this machine's own programs. */
const char *host_id(void); /* sha256:... */
bool ref_is_host(const char *text);
bool container_name_check(const char *name); /* of a container */
bool user_is_root(const char *user);         /* "root", "0", "0:GROUP" */

/* ---- filters.c ---- */

/*
 * An object of lists of strings, from either shape; NULL and *err for anything
 * else, and for names that are not in `known` (separated by spaces).
 */
json_t *filters_parse(const char *text, const char *known, struct err *err);
/* From the query; NULL when that was answered. */
json_t *need_filters(struct http_request *r, const char *known);
bool filters_has(const json_t *filters, const char *name);
typedef bool filter_fn(const char *value, void *arg);
/* True where there is no such filter, or one value of it fits. */
bool filters_any(const json_t *filters, const char *name, filter_fn *fn,
		 void *arg);
/* All of `label` (and none of `label!`) in an object of strings. */
bool filters_labels(const json_t *filters, json_t *labels);

/* ---- inspect.c ---- */

json_t *member_doc(const char *text); /* of the manager's; NULL is {} */
const char *member_str(const json_t *object, const char *name);
json_t *labels_of(json_t *extra); /* borrowed; never NULL */
const char *state_name(enum box_state s);
/* Of the image: the name as asked, and its id. */
const char *image_of(json_t *extra, json_t *spec);
const char *image_id_of(json_t *spec);
json_t *networks_of(json_t *extra);
json_t *mounts_of(json_t *spec);
void path_and_args(json_t *extra, json_t *spec, const char **ret_path,
		   json_t **ret_args);
json_t *inspect_box(struct docker *d, struct box *b);

/* ---- list.c ---- */

json_t *list_row(struct box *b, bool with_size);
/* Takes a container's document, or a list of rows; their images' sizes first */
void answer_sized(struct http_request *r, struct docker *d, json_t *doc);

/* ---- images.c ---- */

/* The images as GET /images/json lists them; `host` is among them. */
typedef void images_fn(void *arg, json_t *list, const struct err *err);
struct image_query;
struct image_query *images_list(struct docker *d, const struct peer *peer,
				images_fn *done, void *arg, struct err *err);
void image_query_drop(struct image_query *q);

/* ---- policy.c ---- */

/* The section `docker` of the policy in force. */
struct docker_policy {
	bool allow_root_inside;
	bool kill_on_disconnect;
	bool kill_children;
	bool shims;
	uint64_t max_output;
	uint64_t log_max;
};
void docker_policy(struct docker *d, const struct peer *peer,
		   struct docker_policy *ret);
