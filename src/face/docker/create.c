/* SPDX-License-Identifier: Apache-2.0 */

/* POST /containers/create: the body's own fields, and the call. */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "face/docker/fields.h"
#include "face/docker/image-run.h"
#include "face/docker/routes.h"

void making_init(struct making *k, struct docker *d, const struct peer *peer)
{
	memset(k, 0, sizeof(*k));
	k->d = d;
	k->peer = peer;
	k->settings = json_object();
	k->warnings = json_array();
	k->config = json_object();
	k->host = json_object();
	k->want.face = "docker";
	k->want.clamp = true;
	k->want.stop_timeout_s = -1;
	docker_policy(d, peer, &k->policy);
}

void making_done(struct making *k)
{
	json_decref(k->settings);
	json_decref(k->warnings);
	json_decref(k->config);
	json_decref(k->host);
	json_decref(k->entrypoint);
	json_decref(k->cmd);
	json_decref(k->env);
	free((void *)k->want.settings);
	free((void *)k->want.extra);
	free(k->argv);
}

TAKE(take_image)
{
	char ref[REF_MAX];

	if (need_str(k, v, w, &k->image) < 0)
		return -1;
	if (ref_normalise(k->image, ref) < 0)
		return say_no(&k->said, 400, "invalid reference format: %.100s",
			      k->image);
	set_str(k, "image", ref_is_host(k->image) ? "host" : k->image);
	return 0;
}

TAKE(take_entrypoint)
{
	k->entrypoint = need_strs(k, v, w, true);
	return k->entrypoint ? 0 : -1;
}

TAKE(take_workdir)
{
	const char *text;

	if (need_str(k, v, w, &text) < 0)
		return -1;
	if (*text != '/')
		return say_no(&k->said, 400,
			      "%s: the working directory '%.100s' is invalid, "
			      "it needs to be an absolute path",
			      w, text);
	set_str(k, "workdir", text);
	return 0;
}

TAKE(take_user)
{
	const char *user;

	/* Root, too: who it is instead, and that it is, the preparer says. */
	if (need_str(k, v, w, &user) < 0)
		return -1;
	set_str(k, "user", user);
	return 0;
}

TAKE(take_hostname)
{
	const char *text;

	if (need_str(k, v, w, &text) < 0)
		return -1;
	if (strlen(text) > 63 || text[strspn(text, "abcdefghijklmnopqrstuvwxyzA"
						   "BCDEFGHIJKLMNOPQRSTUVWXYZ"
						   "0123456789.-_")])
		return say_no(&k->said, 400, "%s: invalid hostname: %.100s", w,
			      text);
	set_str(k, strcasecmp(w, "Hostname") == 0 ? "hostname" : "domainname",
		text);
	return 0;
}

TAKE(take_labels)
{
	const char *name;
	json_t *value;

	if (!json_is_object(v))
		return say_no(&k->said, 400, "%s: a map is expected", w);
	json_object_foreach(v, name, value)
	{
		char text[4096];

		if (!json_is_string(value) || !*name || strchr(name, '='))
			return say_no(&k->said, 400,
				      "%s: '%.60s' is no label with a text", w,
				      name);
		if ((size_t)snprintf(text, sizeof(text), "%s=%s", name,
				     json_string_value(value)) >= sizeof(text))
			return say_no(&k->said, 400, "%s: '%.60s' is too long",
				      w, name);
		if (strncmp(name, "io.cordon.", 10) == 0 &&
		    take_label_settings(k, value, name) < 0)
			return -1;
		set_add(k, "label", text);
	}
	return 0;
}

TAKE(take_tty)
{
	return need_bool(k, v, w, &k->want.tty);
}

TAKE(take_open_stdin)
{
	return need_bool(k, v, w, &k->want.open_stdin);
}

TAKE(take_stdin_once)
{
	return need_bool(k, v, w, &k->want.stdin_once);
}

TAKE(take_attach)
{
	bool unused;

	/* Which streams a client follows, it says when it attaches. */
	return need_bool(k, v, w, &unused);
}

TAKE(take_stop_signal)
{
	const char *text;

	if (need_str(k, v, w, &text) < 0)
		return -1;
	k->want.stop_signal = signal_parse(text);
	if (k->want.stop_signal < 0)
		return say_no(&k->said, 400, "invalid signal: %.40s", text);
	return 0;
}

TAKE(take_stop_timeout)
{
	int64_t n;

	if (need_int(k, v, w, -1, 100000000, &n) < 0)
		return -1;
	k->want.stop_timeout_s = n < 0 ? INT32_MAX : (int)n;
	return 0;
}

TAKE(take_volumes_later)
{
	if (!json_is_object(v))
		return say_no(&k->said, 400, "%s: a map is expected", w);
	return 0;
}

TAKE(take_network_disabled)
{
	bool is_off = false;

	if (need_bool(k, v, w, &is_off) < 0)
		return -1;
	set_str(k, "network", "none");
	return 0;
}

const struct field config_fields[] = {
	{ "Image", FIELD_TAKEN, take_image, NULL },
	{ "Cmd", FIELD_TAKEN, take_cmd, NULL },
	{ "Entrypoint", FIELD_TAKEN, take_entrypoint, NULL },
	{ "Env", FIELD_TAKEN, take_env, NULL },
	{ "WorkingDir", FIELD_TAKEN, take_workdir, NULL },
	{ "User", FIELD_TAKEN, take_user, NULL },
	{ "Hostname", FIELD_TAKEN, take_hostname, NULL },
	{ "Domainname", FIELD_TAKEN, take_hostname, NULL },
	{ "Labels", FIELD_TAKEN, take_labels, NULL },
	{ "Tty", FIELD_TAKEN, take_tty, NULL },
	{ "OpenStdin", FIELD_TAKEN, take_open_stdin, NULL },
	{ "StdinOnce", FIELD_TAKEN, take_stdin_once, NULL },
	{ "AttachStdin", FIELD_TAKEN, take_attach, NULL },
	{ "AttachStdout", FIELD_TAKEN, take_attach, NULL },
	{ "AttachStderr", FIELD_TAKEN, take_attach, NULL },
	{ "StopSignal", FIELD_TAKEN, take_stop_signal, NULL },
	{ "StopTimeout", FIELD_TAKEN, take_stop_timeout, NULL },
	{ "Volumes", FIELD_TAKEN, take_volumes_later, NULL },
	{ "NetworkDisabled", FIELD_TAKEN, take_network_disabled, NULL },
	{ "Healthcheck", FIELD_NOTED, NULL, "boxes have no health checks" },
	{ "ExposedPorts", FIELD_NOTED, NULL, "no port is published" },
	{ "OnBuild", FIELD_QUIET, NULL, NULL },
	{ "Shell", FIELD_QUIET, NULL, NULL },
	{ "ArgsEscaped", FIELD_QUIET, NULL, NULL },
	{ "MacAddress", FIELD_NOT_THERE, NULL, "a box has no such interface" },
	{ "HostConfig", FIELD_TAKEN, take_host_config, NULL },
	{ "NetworkingConfig", FIELD_TAKEN, take_networking, NULL },
	{ NULL, 0, NULL, NULL },
};

/* ---- the command ---- */

static size_t append(const char **argv, size_t n, json_t *list)
{
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v) argv[n++] = json_string_value(v);
	argv[n] = NULL;
	return n;
}

/* [""] is how a client takes the image's entry point away. */
static bool is_reset(json_t *list)
{
	const char *first = json_string_value(json_array_get(list, 0));

	return json_array_size(list) == 1 && first && !*first;
}

/*
 * With an image the preparer merges, since it knows what the image says. The
 * machine's own programs have neither entry point nor command but a shell.
 */
static int put_command(struct making *k)
{
	static const char *const shell[] = { "/bin/sh", NULL };
	size_t size = json_array_size(k->cmd) + json_array_size(k->entrypoint) +
		      1;
	bool no_entry = is_reset(k->entrypoint);
	size_t n = 0;

	k->argv = calloc(size, sizeof(*k->argv));
	if (!k->argv)
		abort();
	if (!ref_is_host(k->image)) {
		/* [""] is none, there as here; the image's Cmd goes with it. */
		if (k->entrypoint)
			json_object_set(k->settings, "entrypoint",
					k->entrypoint);
		n = append(k->argv, 0, k->cmd);
		k->want.command = n > 0 ? k->argv : NULL;
		return 0;
	}
	if (!no_entry)
		n = append(k->argv, 0, k->entrypoint);
	n = append(k->argv, n, k->cmd);
	if (n == 0 && no_entry)
		return say_no(&k->said, 400, "no command specified");
	k->want.command = n > 0 ? k->argv : shell;
	return 0;
}

static int put_env(struct making *k)
{
	json_t *v;
	size_t i;

	json_array_foreach(k->env, i, v)
	{
		const char *text = json_string_value(v);

		if (!*text || *text == '=')
			return say_no(&k->said, 400,
				      "Env: invalid environment variable: "
				      "%.60s",
				      text);
		/* There is no image whose value could go. */
		if (!strchr(text, '=') && ref_is_host(k->image))
			continue;
		set_add(k, "env", text);
	}
	return 0;
}

int making_container(struct making *k, json_t *body)
{
	json_t *extra;

	k->keep = k->config;
	if (fields_take(config_fields, "", body, k) < 0)
		return -1;
	if (!k->image)
		return say_no(&k->said, 400,
			      "Image: no image was specified for the "
			      "container");
	if (put_command(k) < 0 || put_env(k) < 0 ||
	    take_volumes(k, json_object_get(k->config, "Volumes")) < 0)
		return -1;
	k->want.kill_on_disconnect = k->policy.kill_on_disconnect;
	k->want.kill_exec_rest |= k->policy.kill_children;
	k->want.log_max = k->policy.log_max;
	k->want.shims = k->policy.shims;
	if (!k->want.exec_max_output)
		k->want.exec_max_output = k->policy.max_output;
	json_object_del(k->config, "HostConfig");
	json_object_del(k->config, "NetworkingConfig");
	extra = json_pack("{s:O,s:O,s:O}", "Config", k->config, "HostConfig",
			  k->host, "Warnings", k->warnings);
	k->want.settings = json_dumps(k->settings, JSON_COMPACT);
	k->want.extra = json_dumps(extra, JSON_COMPACT);
	json_decref(extra);
	if (!k->want.settings || !k->want.extra)
		return say_no(&k->said, 400, "the body has a bad text");
	return 0;
}

/* ---- the route ---- */

struct create {
	struct ask ask;
	json_t *body;
	json_t *warnings;
	char *image;
	char *name_asked;
	bool is_host; /* it was asked for as that */
};

static void create_gone(struct ask *a)
{
	struct create *c = (struct create *)a;

	json_decref(c->body);
	json_decref(c->warnings);
	free(c->image);
	free(c->name_asked);
}

/* However the refusal was sorted on its way here. */
static bool is_no_image(const struct err *err)
{
	return err->code == MGR_NO_IMAGE ||
	       strncmp(err->text, "No such image", 13) == 0;
}

static void fail_create(struct create *c, const struct err *err)
{
	struct err taken = *err;

	if (is_no_image(err))
		taken.code = MGR_NO_IMAGE;
	switch (taken.code) {
	case MGR_NO_IMAGE:
		answer_fail(c->ask.r, 404, "No such image: %s", c->image);
		return;
	case MGR_NAME_TAKEN:
		answer_taken(c->ask.r, c->ask.d, http_peer(c->ask.r)->uid,
			     c->name_asked);
		return;
	case MGR_NOT_FOUND:
	case MGR_NO_FILE:
		/* 404 means a missing image here, and the client pulls. */
		taken.code = MGR_INVALID;
		answer_err(c->ask.r, &taken, c->name_asked);
		return;
	default:
		answer_err(c->ask.r, err, c->name_asked);
	}
}

static void create_host(struct create *c);

static void created(void *arg, struct box *b, const struct err *err)
{
	struct create *c = arg;
	struct box_view v;

	c->ask.call = NULL;
	/* The few first digits of its id, which no other image has. */
	if (err && is_no_image(err) && !c->is_host &&
	    ref_may_be_host(c->image)) {
		create_host(c);
		return;
	}
	if (err) {
		fail_create(c, err);
		return;
	}
	box_look(b, &v);
	warnings_of(&v, c->warnings);
	answer_json(c->ask.r, 201,
		    json_pack("{s:s,s:O}", "Id", v.id, "Warnings",
			      c->warnings));
}

static bool check_query(struct http_request *r, const char **ret_name)
{
	const char *name = http_query(r, "name");

	*ret_name = NULL;
	if (name && *name) {
		*ret_name = *name == '/' ? name + 1 : name;
		if (!container_name_check(*ret_name)) {
			answer_fail(r, 400,
				    "Invalid container name (%.100s), only "
				    "[a-zA-Z0-9][a-zA-Z0-9_.-] are allowed",
				    name);
			return false;
		}
	}
	return true;
}

/* ---- another platform ---- */

static void fail_platform(struct http_request *r, const char *image)
{
	answer_fail(r, 404,
		    "image with reference %.200s was found but does not match "
		    "the specified platform: wanted %.60s, actual: linux/%s",
		    image, http_query(r, "platform"), platform_here());
}

static void platform_have(void *arg, json_t *doc, const struct err *err)
{
	struct image_ask *x = arg;

	(void)doc;
	x->job = NULL;
	if (err)
		image_fail(x->ask.r, err, x->other);
	else
		fail_platform(x->ask.r, x->other);
}

/* Every image of the store is of this machine's: is this one there at all? */
static void refuse_platform(struct http_request *r, struct docker *d,
			    const char *image)
{
	struct image_ask *x = image_ask_new(r, d);
	struct err err = { 0 };

	x->other = strdup(image);
	if (!x->other)
		abort();
	if (ref_is_host(image)) {
		fail_platform(r, image);
		return;
	}
	x->job = image_job_new(d, http_peer(r),
			       (const char *[]){ "inspect", "--json", x->other,
						 NULL },
			       false, platform_have, x, &err);
	if (!x->job)
		image_fail(r, &err, image);
}

/* Answers what cannot be made; false then. */
static bool need_making(struct http_request *r, struct making *k, json_t *body,
			const char *name)
{
	if (making_container(k, body) == 0)
		return true;
	making_denied(k, "", name);
	answer_fail(r, k->said.status, "%s", k->said.text);
	return false;
}

static void ask_create(struct create *c, struct making *k)
{
	json_decref(c->warnings);
	c->warnings = json_incref(k->warnings);
	k->want.name = *c->name_asked ? c->name_asked : NULL;
	c->ask.call = box_create(c->ask.d->m, http_peer(c->ask.r), &k->want,
				 created, c);
}

static void create_host(struct create *c)
{
	struct making k;
	const char *name;
	json_t *v;

	c->is_host = true;
	/* However the client wrote the field's name. */
	json_object_foreach(c->body, name, v)
	{
		if (strcasecmp(name, "Image") == 0)
			json_object_set_new(c->body, name, json_string("host"));
	}
	making_init(&k, c->ask.d, http_peer(c->ask.r));
	if (need_making(c->ask.r, &k, c->body, c->name_asked))
		ask_create(c, &k);
	making_done(&k);
}

HANDLER(post_create)
{
	struct docker *d = docker_of(ctx);
	const char *platform = http_query(r, "platform");
	struct making k;
	struct create *c;
	json_t *body;
	const char *name;

	if (!check_query(r, &name))
		return;
	body = need_body(r);
	if (!body)
		return;
	making_init(&k, d, http_peer(r));
	if (!need_making(r, &k, body, name)) {
		json_decref(body);
	} else if (platform && !platform_fits(platform)) {
		refuse_platform(r, d, k.image);
		json_decref(body);
	} else {
		c = ask_new(r, d, sizeof(*c), create_gone);
		c->body = body;
		c->image = strdup(k.image);
		c->name_asked = strdup(name ? name : "");
		if (!c->image || !c->name_asked)
			abort();
		ask_create(c, &k);
	}
	making_done(&k);
}
