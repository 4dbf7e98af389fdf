/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settings as a JSON object, for programs that have them as data.
 *
 * Each member is a setting under one of its names. A list is the setting
 * several times; a map is what docker-py takes there: volumes by source,
 * places in memory with their options, variables. What is not known, is there
 * twice, or has a value of another kind, is an error, and then nothing of the
 * object counts for a run: the caller has no spec to run with.
 *
 * The reader is the ledger's, which wants no white space; so that goes first.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"
#include "box/settings.h"
#include "box/spec.h"
#include "box/spec-load.h"
#include "ledger/read.h"

/* As the kernel's MAX_ARG_STRLEN, its NUL with it. */
#define MAX_VALUE (128U << 10)

/* Options of docker that are settings here, or always so, or refused. */
static const char *const docker_names[] = {
	"network",      "net",         "memory",        "cpus",
	"cpu-period",   "cpu-quota",   "cap-add",       "read-only",
	"pids-limit",   "volume",      "tmpfs",         "workdir",
	"user",         "env",         "env-file",      "name",
	"label",        "rm",          "interactive",   "tty",
	"security-opt", "privileged",  "device",        "pid",
	"ipc",          "uts",         "userns",        "cgroupns",
	"entrypoint",   "hostname",    "domainname",    "add-host",
	"shm-size",     "ulimit",      "cpu-shares",    "cpuset-cpus",
	"group-add",    "memory-swap", "oom-score-adj", "memory-reservation",
	NULL,
};

static int bad(struct err *err, const char *name, const char *what)
{
	return err_set(err, EINVAL, "%.60s takes %s", name, what);
}

size_t json_squeeze(char *text, size_t len)
{
	bool in_string = false;
	size_t to = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!in_string && c && strchr(" \t\r\n", c))
			continue;
		text[to++] = c;
		if (in_string && c == '\\' && i + 1 < len)
			text[to++] = text[++i];
		else if (c == '"')
			in_string = !in_string;
	}
	return to;
}

/*
 * A string, number or boolean as text; anything else is none. -E2BIG: it is
 * longer than any word of a program can be.
 */
static int text_of(const struct value *v, struct buf *ret)
{
	char type = value_type(v);

	buf_init(ret, MAX_VALUE);
	if (!type || !strchr("\"0tf", type))
		return -EINVAL;
	if (value_text(v, ret) < 0 || buf_add(ret, "", 1) < 0)
		return ret->error == -E2BIG ? -E2BIG : -EINVAL;
	return strlen(ret->data) + 1 == ret->len ? 0 : -EINVAL;
}

/* Which of several, by what stands before the '=', here or in `prefix`. */
static int too_long(struct err *err, const char *name, const char *prefix,
		    const struct value *v)
{
	const char *text = prefix ? prefix : v->p + 1;
	size_t room = prefix ? strlen(prefix) : v->len - 1;
	const char *eq = memchr(text, '=', MIN(room, 64));

	if (!eq)
		return err_set(err, EINVAL,
			       "%.60s: a value is longer than %u bytes, the "
			       "kernel's limit of one string",
			       name, MAX_VALUE - 1);
	return err_set(err, EINVAL,
		       "%.60s: '%.*s' is longer than %u bytes, the kernel's "
		       "limit of one string",
		       name, (int)(eq - text), text, MAX_VALUE - 1);
}

/* `name` with one value, or with PREFIX:VALUE. */
static int set_one(struct cordon_spec *s, const char *name, const char *prefix,
		   const struct value *v, struct err *err)
{
	struct buf text;
	struct buf full;
	int r;

	buf_init(&full, MAX_VALUE - 1);
	r = text_of(v, &text);
	if (r == -E2BIG)
		r = too_long(err, name, prefix, v);
	else if (r < 0)
		r = bad(err, name, "a text, a number, true or false there");
	else if (!prefix)
		r = spec_set(s, name, text.data, err);
	else if (buf_printf(&full, "%s", prefix) < 0 ||
		 buf_puts(&full, text.data) < 0)
		r = too_long(err, name, prefix, v);
	else
		r = spec_set(s, name, full.data, err);
	buf_done(&text);
	buf_done(&full);
	return r;
}

/* {"bind": "/data", "mode": "ro"} */
static int set_volume(struct cordon_spec *s, const char *source,
		      const struct value *v, struct err *err)
{
	static const char takes[] = "{SOURCE: {\"bind\": PATH, \"mode\": "
				    "\"ro\" or \"rw\"}}, no colon in either";
	struct value bind;
	struct value mode;
	struct value name;
	struct value each;
	char to[4096] = "";
	char full[8192];
	struct buf text;

	if (value_type(v) != '{' || !value_get(v, "bind", &bind) ||
	    strchr(source, ':'))
		return bad(err, "volumes", takes);
	for (struct walk w = walk_start(v); walk_next(&w, &name, &each);)
		if (!value_is(&name, "bind") && !value_is(&name, "mode"))
			return bad(err, "volumes", takes);
	if (text_of(&bind, &text) == 0 && !strchr(text.data, ':') &&
	    text.len < sizeof(to))
		memcpy(to, text.data, text.len);
	buf_done(&text);
	if (value_get(v, "mode", &mode) && !value_is(&mode, "ro") &&
	    !value_is(&mode, "rw"))
		to[0] = '\0';
	if (!to[0] ||
	    (size_t)snprintf(full, sizeof(full), "%s:%s:%s", source, to,
			     value_is(&mode, "rw") ? "rw" : "ro") >=
		    sizeof(full))
		return bad(err, "volumes", takes);
	return spec_set(s, "volume", full, err);
}

/* {"/tmp": "size=64m"}, {"/tmp": "64m"}, {"/tmp": ""} */
static int set_tmpfs(struct cordon_spec *s, const char *place,
		     const struct value *v, struct err *err)
{
	char full[8192];
	struct buf text;
	int n = -1;

	if (text_of(v, &text) == 0 && !strchr(place, ':'))
		n = snprintf(full, sizeof(full), "%s%s%s%s", place,
			     *text.data ? ":" : "",
			     *text.data >= '0' && *text.data <= '9' ? "size="
								    : "",
			     text.data);
	buf_done(&text);
	if (n < 0 || n >= (int)sizeof(full))
		return bad(err, "tmpfs", "{PLACE: SIZE or \"size=SIZE\"}");
	return spec_set(s, "tmpfs", full, err);
}

static int set_env(struct cordon_spec *s, const char *name,
		   const struct value *v, struct err *err)
{
	char prefix[1024];

	if (strchr(name, '=') ||
	    (size_t)snprintf(prefix, sizeof(prefix), "%s=", name) >=
		    sizeof(prefix))
		return bad(err, "env", "{NAME: VALUE}");
	return set_one(s, "env", prefix, v, err);
}

static bool is_docker(const char *name)
{
	for (size_t i = 0; docker_names[i]; i++)
		if (strcmp(name, docker_names[i]) == 0)
			return true;
	return false;
}

/* {"network": "none", "pids-limit": 128} */
static int set_extra(struct cordon_spec *s, const char *name,
		     const struct value *v, struct err *err)
{
	if (!is_docker(name))
		return err_set(err, EINVAL,
			       "extra_docker_args: '%.60s' is not an option "
			       "that is known here",
			       name);
	return set_one(s, name, NULL, v, err);
}

/* {"db": "10.0.0.7"} */
static int set_host(struct cordon_spec *s, const char *name,
		    const struct value *v, struct err *err)
{
	char prefix[300];

	if (strpbrk(name, ":=") ||
	    (size_t)snprintf(prefix, sizeof(prefix), "%s:", name) >=
		    sizeof(prefix))
		return bad(err, "extra_hosts", "{NAME: ADDRESS}");
	return set_one(s, "add-host", prefix, v, err);
}

/* A member under either of its names, as a number; `other` if there is none. */
static int ulimit_part(const struct value *v, const char *lower,
		       const char *upper, const char *other, char *ret,
		       size_t size)
{
	struct value part;
	struct buf text;
	int n = -1;

	if (!value_get(v, lower, &part) && !value_get(v, upper, &part)) {
		n = other ? snprintf(ret, size, "%s", other) : -1;
		return n >= 0 && (size_t)n < size ? 0 : -EINVAL;
	}
	if (text_of(&part, &text) == 0)
		n = snprintf(ret, size, "%s", text.data);
	buf_done(&text);
	return n >= 0 && (size_t)n < size ? 0 : -EINVAL;
}

/* {"soft": 1024, "hard": 2048}, of the limit `name` */
static int set_ulimit_object(struct cordon_spec *s, const char *name,
			     const struct value *v, struct err *err)
{
	char soft[32];
	char hard[32];
	char full[160];

	if (ulimit_part(v, "soft", "Soft", NULL, soft, sizeof(soft)) < 0 ||
	    ulimit_part(v, "hard", "Hard", soft, hard, sizeof(hard)) < 0 ||
	    (size_t)snprintf(full, sizeof(full), "%s=%s:%s", name, soft,
			     hard) >= sizeof(full))
		return bad(err, "ulimits",
			   "{\"name\": NAME, \"soft\": N, \"hard\": N}");
	return spec_set(s, "ulimit", full, err);
}

/* {"nofile": 1024}, {"nofile": "1024:2048"}, {"nofile": {"soft": 1024}} */
static int set_ulimit_of(struct cordon_spec *s, const char *name,
			 const struct value *v, struct err *err)
{
	char prefix[64];

	if (value_type(v) == '{')
		return set_ulimit_object(s, name, v, err);
	if ((size_t)snprintf(prefix, sizeof(prefix), "%s=", name) >=
	    sizeof(prefix))
		return bad(err, "ulimits", "{NAME: N}");
	return set_one(s, "ulimit", prefix, v, err);
}

/* One of a list: {"name": "nofile", "soft": 1024, "hard": 2048} */
static int set_ulimit_item(struct cordon_spec *s, const struct value *v,
			   struct err *err)
{
	char name[32];

	if (ulimit_part(v, "name", "Name", NULL, name, sizeof(name)) < 0)
		return bad(err, "ulimits",
			   "{\"name\": NAME, \"soft\": N, \"hard\": N}");
	return set_ulimit_object(s, name, v, err);
}

/* Settings that take a map, and what one member of it does. */
static const struct {
	const char *name;
	int (*set)(struct cordon_spec *s, const char *key,
		   const struct value *v, struct err *err);
} maps[] = {
	{ "volumes", set_volume },
	{ "extra-volumes", set_volume },
	{ "tmpfs", set_tmpfs },
	{ "env", set_env },
	{ "extra-docker-args", set_extra },
	{ "extra-hosts", set_host },
	{ "add-host", set_host },
	{ "ulimits", set_ulimit_of },
	{ "ulimit", set_ulimit_of },
};

static int set_map(struct cordon_spec *s, const char *name,
		   const struct value *v, struct err *err)
{
	struct value key;
	struct value item;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		if (strcmp(maps[i].name, name) != 0)
			continue;
		for (struct walk w = walk_start(v);
		     r == 0 && walk_next(&w, &key, &item);) {
			struct buf text;

			r = text_of(&key, &text) < 0
				    ? bad(err, name, "plain keys")
				    : maps[i].set(s, text.data, &item, err);
			buf_done(&text);
		}
		return r;
	}
	return bad(err, name, "no map");
}

/*
 * Options as on docker's command line: --name VALUE, --name=VALUE, -m VALUE.
 * An option that waits for its value is kept in `ret_open`.
 */
static int docker_word(struct cordon_spec *s, const char *word,
		       const struct setting **open, struct err *err)
{
	const struct setting *setting = NULL;
	const char *value = strchr(word, '=');
	char name[64] = "";

	if (*open) {
		setting = *open;
		*open = NULL;
		return spec_set(s, setting->name, word, err);
	}
	if (strncmp(word, "--", 2) == 0) {
		size_t len = value ? (size_t)(value - word - 2)
				   : strlen(word + 2);

		if (len < sizeof(name))
			memcpy(name, word + 2, len);
		setting = is_docker(name) ? setting_find(name) : NULL;
		if (value)
			value++;
	} else if (word[0] == '-' && word[1] && !word[2]) {
		setting = setting_find_letter(word[1]);
		value = NULL;
		if (setting && !is_docker(setting->name))
			setting = NULL;
	}
	if (!setting)
		return err_set(err, EINVAL,
			       "docker_args: '%.60s' is not an option that is "
			       "known here",
			       word);
	/* Switches there that take a word here. */
	if (!value && (strcmp(setting->name, "remove") == 0 ||
		       strcmp(name, "privileged") == 0))
		value = "true";
	if (!value && setting->value) {
		*open = setting;
		return 0;
	}
	return spec_set(s, setting->name, value, err);
}

static int set_docker(struct cordon_spec *s, const struct value *list,
		      struct err *err)
{
	const struct setting *open = NULL;
	struct value none;
	struct value item;
	int r = 0;

	if (value_type(list) != '[')
		return bad(err, "docker_args", "a list of words");
	for (struct walk w = walk_start(list);
	     r == 0 && walk_next(&w, &none, &item);) {
		struct buf text;

		r = text_of(&item, &text) < 0
			    ? bad(err, "docker_args", "a list of words")
			    : docker_word(s, text.data, &open, err);
		buf_done(&text);
	}
	if (r == 0 && open)
		r = bad(err, open->name, open->value);
	return r;
}

/* Where a list says all there is, an empty one says: nothing. */
static int state_list(struct cordon_spec *s, const char *name)
{
	if (strcmp(name, "allowed-commands") == 0)
		s->has_allowed = true;
	else if (strcmp(name, "entrypoint") == 0)
		s->has_entrypoint = true;
	else if (strcmp(name, "writable-paths") == 0)
		s->has_writable = s->no_tmp = s->no_shm = s->no_workspace =
			true;
	else
		return 0;
	return strv_add(&s->asked_lists, name);
}

static int set_list(struct cordon_spec *s, const char *name,
		    const struct value *v, struct err *err)
{
	struct value none;
	struct value item;
	int r = 0;

	if (state_list(s, name) < 0)
		return err_set(err, ENOMEM, "out of memory");
	/* docker-py has a list of "SRC:DST:MODE" there too. */
	if (strcmp(name, "volumes") == 0 || strcmp(name, "extra-volumes") == 0)
		name = "volume";
	for (struct walk w = walk_start(v);
	     r == 0 && walk_next(&w, &none, &item);)
		r = value_type(&item) == '{' && strncmp(name, "ulimit", 6) == 0
			    ? set_ulimit_item(s, &item, err)
			    : set_one(s, name, NULL, &item, err);
	return r;
}

static int set_member(struct cordon_spec *s, const struct value *key,
		      const struct value *v, struct err *err)
{
	char name[64] = "";
	struct buf text;

	if (text_of(key, &text) == 0 && text.len <= sizeof(name))
		memcpy(name, text.data, text.len);
	buf_done(&text);
	for (char *p = name; *p; p++)
		if (*p == '_')
			*p = '-';
	if (!name[0])
		return err_set(err, EINVAL, "a member without a proper name");
	if (strcmp(name, "blocks") == 0)
		return blocks_load(s, v, err);
	/* Whatever its value is. */
	if (!setting_find(name) && strcmp(name, "docker-args") != 0 &&
	    strcmp(name, "extra-docker-args") != 0 &&
	    setting_unknown(name, err) == -EOPNOTSUPP)
		return value_type(v) == 'n' ? (err->code = 0) : -err->code;
	err->code = 0;
	/* None is how a setting that is not given is written. */
	if (value_type(v) == 'n')
		return setting_find(name)
			       ? 0
			       : err_set(err, EINVAL,
					 "there is no setting '%s'", name);
	if (strcmp(name, "docker-args") == 0)
		return set_docker(s, v, err);
	if (value_type(v) == '{')
		return set_map(s, name, v, err);
	if (value_type(v) == '[')
		return set_list(s, name, v, err);
	return set_one(s, name, NULL, v, err);
}

/* The same name twice, also with another kind of dash, is no object. */
static bool is_twice(const struct value *object, const struct value *key)
{
	struct value name;
	struct value v;
	int n = 0;

	for (struct walk w = walk_start(object); walk_next(&w, &name, &v);) {
		bool same = name.len == key->len;

		for (size_t i = 0; same && i < name.len; i++)
			same = name.p[i] == key->p[i] ||
			       (strchr("-_", name.p[i]) &&
				strchr("-_", key->p[i]));
		n += same;
	}
	return n > 1;
}

static int load(struct cordon_spec *s, const struct value *object,
		struct err *err)
{
	struct value name;
	struct value v;

	if (value_type(object) != '{')
		return err_set(err, EINVAL, "settings are a JSON object");
	for (struct walk w = walk_start(object); walk_next(&w, &name, &v);) {
		if (is_twice(object, &name))
			return err_set(err, EINVAL, "%.*s is there twice",
				       (int)MIN(name.len, 60), name.p);
		if (set_member(s, &name, &v, err) < 0)
			return -err->code;
	}
	return 0;
}

int cordon_spec_set_json(struct cordon_spec *s, const char *json, size_t len,
			 struct cordon_error *out)
{
	struct err err = { 0 };
	_cleanup_free_ char *text = len <= SPEC_MAX_JSON ? malloc(len + 1)
							 : NULL;
	struct value object = { text, 0 };

	if (!text) {
		(void)err_set(&err, E2BIG, "settings of more than 1 MiB");
		return error_out(out, &err);
	}
	memcpy(text, json, len);
	object.len = json_squeeze(text, len);
	if (!utf8_check(text, object.len) || !value_check(text, object.len))
		(void)err_set(&err, EINVAL, "settings are a JSON object");
	else
		(void)load(s, &object, &err);
	return err.code ? error_out(out, &err) : 0;
}
