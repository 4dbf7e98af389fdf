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
#include "front/doc.h"

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
/* 409: which container of that user has the name. */
void answer_taken(struct http_request *r, struct docker *d, uid_t owner,
		  const char *name);
/* As answer_err() without a request: the status, and the text. */
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
#define SIGNAL_TEXT 16
void signal_format(int signal, char ret[SIGNAL_TEXT]); /* "SIGKILL" */
/*
 * Whether the text has this in it, as it stands or as a regular expression of
 * base/regex.h, whose time is bounded. What is none is found nowhere.
 */
bool pattern_found(const char *pattern, const char *text);

/* ---- names.c ---- */

#define REF_MAX 512
/* "python" -> "docker.io/library/python:latest"; an id stays. -1: none. */
int ref_normalise(const char *text, char ret[REF_MAX]);
bool ref_is_same(const char *a, const char *b);
/* The image that is this machine's own programs. */
const char *host_id(void); /* sha256:... */
/* Repository and tag (or digest, by the sign '@') as one; -1: too long. */
int ref_join(const char *repo, const char *sign, const char *tag,
	     char ret[REF_MAX]);
bool ref_is_host(const char *text);
/* The beginning of its id, of any length: where no other image has that. */
bool ref_may_be_host(const char *text);
/* This machine's as Go names it, "amd64"; "linux/amd64" or "amd64" is it. */
const char *platform_here(void);
bool platform_fits(const char *text);
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
/* Each value a boolean, or a number; else answered, `f` let go: false. */
bool need_bools(struct http_request *r, json_t *f, const char *name);
bool need_numbers(struct http_request *r, json_t *f, const char *name);
/* Each one "24h" or a time since 1970; what is made before fits. */
bool need_untils(struct http_request *r, json_t *f, const char *name);
bool until_fits(const char *value, int64_t created_ns);
/* Of a value that need_bools() let through. */
bool filter_is_true(const char *value);
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
/* Its own over its image's; borrowed, never NULL. */
json_t *labels_of(json_t *extra, json_t *spec);
const char *state_name(enum box_state s);
/* Of the image: the name as asked, and its id. */
const char *image_of(json_t *extra, json_t *spec);
const char *image_id_of(json_t *spec);
json_t *networks_of(json_t *extra);
json_t *mounts_of(json_t *spec);
/* Both are the caller's. */
void path_and_args(json_t *extra, json_t *spec, json_t **ret_path,
		   json_t **ret_args);
json_t *inspect_box(struct docker *d, struct box *b);

/* "ID DATE" of the commit that this is built of, or " " (commit.c.in). */
extern const char docker_commit[];

/* ---- warnings.c ---- */

/* Appends what is to be known of a box besides what its request said. */
void warnings_of(const struct box_view *v, json_t *list);

/* ---- list.c ---- */

json_t *list_row(struct box *b, bool with_size);
/* A container's document or a list of rows, with the sizes of their images. */
json_t *put_sizes(json_t *doc, json_t *images);
/* Takes a container's document, or a list of rows; their images' sizes first */
void answer_sized(struct http_request *r, struct docker *d, json_t *doc);

/* ---- images.c ---- */

/*
 * The images as GET /images/json lists them; `host` is among them. Those of
 * the store have their layers and sizes too, which is not for clients.
 */
#define LAYER_SIZES "LayerSizes"
typedef void images_fn(void *arg, json_t *list, const struct err *err);
struct image_query;
struct image_query *images_list(struct docker *d, const struct peer *peer,
				images_fn *done, void *arg, struct err *err);
void image_query_drop(struct image_query *q);

/* ---- system.c ---- */

/* Of "bridge" or "none", which are all that there are. */
void network_id(const char *name, char ret[65]);

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
