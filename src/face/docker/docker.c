/* SPDX-License-Identifier: Apache-2.0 */

/* The table of routes, versions, and the answers that all of them give. */

#include "face/docker/docker.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <cordon/cordon.h>

#include "face/docker/internal.h"
#include "face/docker/routes.h"

#define BODY_DEPTH 64

struct docker *docker_of(void *ctx)
{
	return ctx;
}

/* ---- errors ---- */

/*
 * How the docker command chooses its exit status: these words mean 126 and
 * 127 there. What is neither must not have them.
 */
static const struct {
	const char *from, *to;
} meant_elsewhere[] = {
	{ "executable file not found", "no program of that name" },
	{ "no such file or directory", "it does not exist" },
	{ "permission denied", "not permitted" },
	{ "is a directory", "that is a folder" },
};

static void replace(char *text, size_t size, const char *from, const char *to)
{
	char rest[768];
	char *at;

	while ((at = strcasestr(text, from)) != NULL) {
		(void)snprintf(rest, sizeof(rest), "%s", at + strlen(from));
		(void)snprintf(at, size - (size_t)(at - text), "%s%s", to,
			       rest);
	}
}

static void one_line(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
}

/* In `form`, %n is the client's name, %t the manager's text. */
static const struct error_row {
	int code;
	int status;
	const char *form;
} errors[] = {
	{ MGR_NOT_FOUND, 404, "No such container: %n" },
	{ MGR_AMBIGUOUS, 400,
	  "Multiple IDs found with provided prefix: %n (%t)" },
	{ MGR_NAME_TAKEN, 409,
	  "Conflict. The container name \"/%n\" is already in use by "
	  "container %t. You have to remove (or rename) that container to be "
	  "able to reuse that name." },
	{ MGR_INVALID, 400, "%t" },
	{ MGR_DENIED, 403, "cordon: %t" },
	{ MGR_ASKED, 403, "cordon: %t" },
	{ MGR_NO_IMAGE, 404, "No such image: %n" },
	{ MGR_NOT_RUNNING, 409, "container %n is not running" },
	{ MGR_IS_RUNNING, 409,
	  "cannot remove container \"/%n\": container is running: stop the "
	  "container before removing or force remove" },
	{ MGR_REMOVING, 409, "removal of container %n is already in progress" },
	{ MGR_HAS_RUN, 409, "%t" },
	{ MGR_NO_PROGRAM, 400, "failed to start: %t" },
	{ MGR_NOT_EXECUTABLE, 400, "failed to start: %t" },
	{ MGR_BUSY, 503, "cordon: %t" },
	{ MGR_READ_ONLY, 400, "container %n: rootfs is marked read-only" },
	{ MGR_NO_FILE, 404, "%t" },
	{ MGR_NO_SPACE, 413, "cordon: %t" },
	{ MGR_UNSUPPORTED, 501, "cordon: %t" },
	{ MGR_SETUP, 500, "cordon: the box could not be built: %t" },
	{ MGR_LOST, 500, "cordon: %t" },
	{ MGR_PAUSED, 409,
	  "Container %n is paused, unpause the container first" },
};

static void put_form(struct buf *out, const char *form, const char *name,
		     const char *text)
{
	for (; *form; form++)
		if (form[0] == '%' && form[1] == 'n')
			buf_printf(out, "%.300s", name), form++;
		else if (form[0] == '%' && form[1] == 't')
			buf_puts(out, text), form++;
		else
			buf_add(out, form, 1);
}

/* A text of ours that begins as the form does is not said twice. */
static const char *without(const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(text, prefix, len) == 0 ? text + len : text;
}

/* The words by which the client knows it, if they are not there. */
static void must_have(char *text, size_t size, const char *part,
		      const char *words)
{
	size_t len = strlen(text);

	if (!strstr(text, part))
		(void)snprintf(text + len, size - len, "%s%s", len ? ": " : "",
			       words);
}

int error_status(const struct err *err, const char *name, char *ret,
		 size_t size)
{
	struct error_row row = { 0, 500, "cordon: %t" };
	char text[sizeof(err->text)];
	struct buf out;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].code == err->code)
			row = errors[i];
	(void)snprintf(text, sizeof(text), "%s",
		       without(err->text, "cordon: "));
	if (row.code == MGR_NO_PROGRAM)
		must_have(text, sizeof(text), "executable file not found",
			  "executable file not found in $PATH");
	if (row.code == MGR_NOT_EXECUTABLE && strcasestr(text, "director"))
		must_have(text, sizeof(text), "is a directory",
			  "is a directory");
	/* Of a directory too: older commands know no other word. */
	if (row.code == MGR_NOT_EXECUTABLE)
		must_have(text, sizeof(text), "permission denied",
			  "permission denied");
	if (row.code != MGR_NO_PROGRAM && row.code != MGR_NOT_EXECUTABLE)
		for (size_t i = 0; i < ARRAY_SIZE(meant_elsewhere); i++)
			replace(text, sizeof(text), meant_elsewhere[i].from,
				meant_elsewhere[i].to);
	buf_init(&out, size - 1);
	put_form(&out, row.form, name ? name : "",
		 text[0] ? text : "no reason was given");
	(void)snprintf(ret, size, "%s", out.data ? out.data : row.form);
	one_line(ret);
	buf_done(&out);
	return row.status;
}

static void put_message(struct http_request *r, int status, const char *text)
{
	answer_json(r, status,
		    json_pack("{s:o}", "message",
			      doc_string(text[0] ? text : "failed")));
}

void answer_fail(struct http_request *r, int status, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	one_line(text);
	put_message(r, status, text);
}

void answer_err(struct http_request *r, const struct err *err, const char *name)
{
	char text[1024];
	int status = error_status(err, name ? name : "", text, sizeof(text));

	put_message(r, status, text);
}

void answer_taken(struct http_request *r, struct docker *d, uid_t owner,
		  const char *name)
{
	const char *id = box_name_holder(d->m, owner, name);
	struct err err = { .code = MGR_NAME_TAKEN };

	/* It may have been one that could then not be made. */
	(void)snprintf(err.text, sizeof(err.text), id ? "\"%s\"" : "%s",
		       id ? id : "that is gone by now");
	answer_err(r, &err, name);
}

int say_no(struct said *said, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(said->text, sizeof(said->text), fmt, ap);
	va_end(ap);
	one_line(said->text);
	said->status = status;
	return -1;
}

void answer_json(struct http_request *r, int status, json_t *doc)
{
	char *text = doc ? json_dumps(doc, JSON_COMPACT | JSON_ENCODE_ANY)
			 : NULL;

	json_decref(doc);
	if (text)
		http_answer(r, status, JSON_TYPE, text, strlen(text));
	else
		http_answer(r, 500, JSON_TYPE,
			    "{\"message\":\"cordon: a text is not UTF-8\"}",
			    41);
	free(text);
}

void answer_empty(struct http_request *r, int status)
{
	http_answer(r, status, NULL, NULL, 0);
}

/* ---- requests ---- */

struct box *need_box(struct http_request *r, struct docker *d)
{
	struct err err = { 0 };
	const char *name = http_param(r, 0);
	struct box *b = box_find(d->m, http_peer(r), name, &err);

	if (!b)
		answer_err(r, &err, name);
	return b;
}

bool bool_parse(const char *text)
{
	static const char *const no[] = { "", "0", "no", "false", "none" };
	size_t len;

	while (*text && isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (strlen(no[i]) == len && strncasecmp(text, no[i], len) == 0)
			return false;
	return true;
}

bool query_bool(const struct http_request *r, const char *name, bool absent)
{
	const char *v = http_query(r, name);

	return v ? bool_parse(v) : absent;
}

int time_parse(const char *text, int64_t *ret_ns)
{
	int64_t seconds = 0;
	int64_t ns = 0;
	int64_t unit = 100000000;
	const char *p = text;

	for (; isdigit((unsigned char)*p); p++) {
		if (seconds > 9000000000LL)
			return -EINVAL;
		seconds = seconds * 10 + (*p - '0');
	}
	if (p > text && *p == '.')
		for (p++; isdigit((unsigned char)*p); p++, unit /= 10)
			ns += unit * (*p - '0');
	if (*p)
		return -EINVAL;
	*ret_ns = MIN(seconds, 9000000000LL) * 1000000000 + ns;
	return 0;
}

json_t *body_parse(const char *text, size_t len, struct err *err)
{
	json_error_t at;
	json_t *doc;
	size_t depth = 0;
	bool in_string = false;

	if (len == 0)
		return json_object();
	/* jansson's own limit is 2048 levels; ours is what bodies need. */
	for (size_t i = 0; i < len; i++) {
		if (in_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			in_string = !in_string;
		else if (!in_string && (text[i] == '{' || text[i] == '['))
			depth++;
		else if (!in_string && depth > 0 &&
			 (text[i] == '}' || text[i] == ']'))
			depth--;
		if (depth > BODY_DEPTH) {
			(void)err_set(err, EINVAL,
				      "invalid JSON: more than %d levels",
				      BODY_DEPTH);
			return NULL;
		}
	}
	doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
	if (!doc) {
		(void)err_set(err, EINVAL,
			      "invalid JSON: line %d column %d: %s", at.line,
			      at.column, at.text);
		return NULL;
	}
	if (!json_is_object(doc)) {
		(void)err_set(err, EINVAL,
			      "invalid JSON: the body is not an object");
		json_decref(doc);
		return NULL;
	}
	return doc;
}

json_t *need_body(struct http_request *r)
{
	struct err err = { 0 };
	size_t len;
	const char *text = http_body(r, &len);
	json_t *doc = body_parse(text, len, &err);

	if (!doc)
		answer_fail(r, 400, "%s", err.text);
	return doc;
}

static void ask_gone(void *data)
{
	struct ask *a = data;

	call_drop(a->call);
	if (a->let_go)
		a->let_go(a);
	free(a->name);
	free(a);
}

void *ask_new(struct http_request *r, struct docker *d, size_t size,
	      void (*let_go)(struct ask *a))
{
	struct ask *a = calloc(1, size);
	const char *name = http_param(r, 0);

	if (!a)
		abort();
	a->r = r;
	a->d = d;
	a->let_go = let_go;
	a->name = strdup(name ? name : "");
	if (!a->name)
		abort();
	http_set_data(r, a, ask_gone);
	return a;
}

void ask_done_empty(void *arg, const struct err *err)
{
	struct ask *a = arg;

	a->call = NULL;
	if (err && err->code == a->same && a->same)
		answer_empty(a->r, 304);
	else if (err)
		answer_err(a->r, err, a->name);
	else
		answer_empty(a->r, 204);
}

/* ---- versions ---- */

static bool number_parse(const char **p, unsigned int *ret)
{
	const char *from = *p;

	for (*ret = 0; isdigit((unsigned char)**p); (*p)++)
		if (*p - from < 4)
			*ret = *ret * 10 + (unsigned int)(**p - '0');
	return *p > from && *p - from <= 3;
}

/* Whether the path begins with a version; then *ret_rest is after it. */
static bool version_parse(const char *path, unsigned int *ret,
			  const char **ret_rest)
{
	const char *p = path;
	unsigned int major;
	unsigned int minor;

	if (strncmp(p, "/v", 2) != 0)
		return false;
	p += 2;
	if (!number_parse(&p, &major) || *p++ != '.' ||
	    !number_parse(&p, &minor) || (*p && *p != '/'))
		return false;
	*ret = VERSION(major, minor);
	*ret_rest = p;
	return true;
}

static const char *enter(struct http_request *r, const char *path)
{
	unsigned int v = VERSION(1, 51);
	const char *rest = path;

	if (version_parse(path, &v, &rest) && v < VERSION(1, 24)) {
		answer_fail(r, 400,
			    "client version %u.%u is too old. Minimum "
			    "supported API "
			    "version is " DOCKER_API_MIN
			    ", please upgrade your client to a newer version",
			    v / 1000, v % 1000);
		return NULL;
	}
	if (v > VERSION(1, 51)) {
		answer_fail(r, 400,
			    "client version %u.%u is too new. Maximum "
			    "supported API "
			    "version is " DOCKER_API,
			    v / 1000, v % 1000);
		return NULL;
	}
	http_set_version(r, v);
	return rest;
}

static void fail_face(struct http_request *r, int status, const char *text)
{
	if (status == 404)
		answer_fail(r, 404, "page not found");
	else if (status == 503)
		answer_fail(r, 503, "cordon: %s",
			    text ? text : "too many requests");
	else
		answer_fail(r, status, "%s", text ? text : "bad request");
}

/* ---- what there is not ---- */

static const struct {
	const char *start;
	const char *feature;
} features[] = {
	{ "/build", "building images" },
	{ "/images/search", "searching for images" },
	{ "/images/", "pushing images" },
	{ "/auth", "logging in to a registry" },
	{ "/commit", "committing a container" },
	{ "/containers/", "updating a container or its checkpoints" },
	{ "/networks", "making or changing networks" },
	{ "/volumes", "making or removing volumes" },
	{ "/distribution", "asking a registry" },
	{ "/session", "a session of the builder" },
	{ "/plugins", "listing or installing plugins" },
	{ "/swarm", "swarm mode" },
	{ "/nodes", "swarm mode" },
	{ "/services", "swarm mode" },
	{ "/tasks", "swarm mode" },
	{ "/secrets", "swarm mode" },
	{ "/configs", "swarm mode" },
};

static void not_there(struct http_request *r, void *ctx)
{
	const char *path = http_path(r);
	const char *what = "this request";
	unsigned int v;

	(void)ctx;
	(void)version_parse(path, &v, &path);
	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		if (strncmp(path, features[i].start,
			    strlen(features[i].start)) == 0) {
			what = features[i].feature;
			break;
		}
	if (strlen(path) > 10 &&
	    strcmp(path + strlen(path) - 10, "/attach/ws") == 0)
		what = "attaching by a web socket";
	answer_fail(r, 501, "cordon: %s is not supported", what);
}

#define C "/containers/{}"

static const struct http_route routes[] = {
	{ "HEAD", "/_ping", get_ping, 0 },
	{ "GET", "/_ping", get_ping, 0 },
	{ "GET", "/version", get_version, 0 },
	{ "GET", "/info", get_info, 0 },
	{ "GET", "/events", get_events, 0 },
	{ "GET", "/system/df", get_df, 0 },
	{ "GET", "/networks", get_networks, 0 },
	{ "GET", "/networks/{}", get_network, 0 },
	{ "GET", "/volumes", get_volumes, 0 },
	{ "GET", "/volumes/{}", get_volume, 0 },
	{ "GET", "/plugins/{*}/json", get_plugin, 0 },

	{ "GET", "/containers/json", get_containers, 0 },
	{ "POST", "/containers/create", post_create, HTTP_BODY_WHOLE },
	{ "POST", "/containers/prune", post_prune, HTTP_BODY_WHOLE },
	{ "GET", C "/json", get_container, 0 },
	{ "POST", C "/start", post_start, HTTP_BODY_WHOLE },
	{ "POST", C "/stop", post_stop, HTTP_BODY_WHOLE },
	{ "POST", C "/restart", post_restart, HTTP_BODY_WHOLE },
	{ "POST", C "/kill", post_kill, HTTP_BODY_WHOLE },
	{ "POST", C "/wait", post_wait, HTTP_BODY_WHOLE },
	{ "POST", C "/attach", post_attach, HTTP_BODY_WHOLE | HTTP_UPGRADES },
	{ "POST", C "/resize", post_resize, HTTP_BODY_WHOLE },
	{ "GET", C "/logs", get_logs, 0 },
	{ "GET", C "/top", get_top, 0 },
	{ "GET", C "/stats", get_stats, 0 },
	{ "GET", C "/changes", get_changes, 0 },
	{ "GET", C "/export", get_export, 0 },
	{ "HEAD", C "/archive", head_archive, 0 },
	{ "GET", C "/archive", get_archive, 0 },
	{ "PUT", C "/archive", put_archive, HTTP_BODY_STREAM },
	{ "POST", C "/rename", post_rename, HTTP_BODY_WHOLE },
	{ "POST", C "/pause", post_pause, HTTP_BODY_WHOLE },
	{ "POST", C "/unpause", post_unpause, HTTP_BODY_WHOLE },
	{ "DELETE", C, delete_container, HTTP_BODY_WHOLE },

	{ "POST", C "/exec", post_exec, HTTP_BODY_WHOLE },
	{ "POST", "/exec/{}/start", post_exec_start,
	  HTTP_BODY_WHOLE | HTTP_UPGRADES },
	{ "GET", "/exec/{}/json", get_exec, 0 },
	{ "POST", "/exec/{}/resize", post_exec_resize, HTTP_BODY_WHOLE },

	{ "GET", "/images/json", get_images, 0 },
	{ "GET", "/images/get", get_images_save, 0 },
	{ "GET", "/images/search", not_there, 0 },
	{ "POST", "/images/create", post_image_create, HTTP_BODY_STREAM },
	{ "POST", "/images/load", post_image_load, HTTP_BODY_STREAM },
	{ "POST", "/images/prune", post_images_prune, HTTP_BODY_WHOLE },
	{ "GET", "/images/{*}/json", get_image, 0 },
	{ "GET", "/images/{*}/history", get_image_history, 0 },
	{ "GET", "/images/{*}/get", get_image_save, 0 },
	{ "POST", "/images/{*}/tag", post_image_tag, HTTP_BODY_WHOLE },
	{ "POST", "/images/{*}/push", not_there, HTTP_BODY_WHOLE },
	{ "DELETE", "/images/{*}", delete_image, HTTP_BODY_WHOLE },

	/* Understood, and not supported. */
	{ "POST", "/build", not_there, 0 },
	{ "POST", "/build/{*}", not_there, 0 },
	{ "POST", "/auth", not_there, HTTP_BODY_WHOLE },
	{ "POST", "/commit", not_there, HTTP_BODY_WHOLE },
	{ "POST", "/session", not_there, 0 },
	{ "POST", C "/update", not_there, HTTP_BODY_WHOLE },
	{ "GET", C "/checkpoints", not_there, 0 },
	{ "POST", C "/checkpoints", not_there, HTTP_BODY_WHOLE },
	{ "DELETE", C "/checkpoints/{}", not_there, 0 },
	{ "GET", C "/attach/ws", not_there, 0 },
	{ "POST", "/networks/{*}", not_there, HTTP_BODY_WHOLE },
	{ "DELETE", "/networks/{}", not_there, 0 },
	{ "POST", "/volumes/{*}", not_there, HTTP_BODY_WHOLE },
	{ "PUT", "/volumes/{*}", not_there, HTTP_BODY_WHOLE },
	{ "DELETE", "/volumes/{*}", not_there, 0 },
	{ "GET", "/distribution/{*}/json", not_there, 0 },
	{ "POST", "/plugins/{*}", not_there, HTTP_BODY_WHOLE },
	{ "GET", "/plugins", not_there, 0 },
	{ "GET", "/plugins/privileges", not_there, 0 },
	{ "DELETE", "/plugins/{*}", not_there, 0 },
#define SWARM(path)                                                            \
	{ "GET", path, not_there, 0 }, { "GET", path "/{*}", not_there, 0 },   \
		{ "POST", path "/{*}", not_there, HTTP_BODY_WHOLE },           \
	{                                                                      \
		"DELETE", path "/{*}", not_there, 0                            \
	}
	SWARM("/swarm"),
	SWARM("/nodes"),
	SWARM("/services"),
	SWARM("/tasks"),
	SWARM("/secrets"),
	SWARM("/configs"),
};

const struct http_face *docker_face(struct manager *m)
{
	struct docker *d = calloc(1, sizeof(*d));
	const char *headers[] = { "Api-Version",
				  DOCKER_API,
				  "Ostype",
				  "linux",
				  "Docker-Experimental",
				  "false",
				  "Server",
				  d ? d->server : "",
				  NULL };

	if (!d)
		return NULL;
	d->m = m;
	d->loop = manager_loop(m);
	(void)snprintf(d->server, sizeof(d->server),
		       "Docker/" DOCKER_COMPAT " Cordon/%s (linux)",
		       cordon_version());
	_Static_assert(sizeof(headers) == sizeof(d->headers), "all of them");
	memcpy(d->headers, headers, sizeof(headers));
	d->face = (struct http_face){ .routes = routes,
				      .n_routes = ARRAY_SIZE(routes),
				      .ctx = d,
				      .headers = d->headers,
				      .enter = enter,
				      .fail = fail_face };
	return &d->face;
}
