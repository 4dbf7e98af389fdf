/* SPDX-License-Identifier: Apache-2.0 */
#include "model/openai-config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"
#include "model/secret.h"

#define DEFAULT_URL "https://api.openai.com/v1"

enum kind { OURS, SETTING, SECONDS, NUMBER, FLAG };

static const struct field {
	const char *name;
	enum kind kind;
	size_t at;
	double least, most;
} fields[] = {
	{ "model", OURS, 0, 0, 0 },
	{ "base_url", OURS, 0, 0, 0 },
	{ "api_key", OURS, 0, 0, 0 },
	{ "info", OURS, 0, 0, 0 },
	{ "ca_file", OURS, 0, 0, 0 },
	{ "extra", OURS, 0, 0, 0 },
	{ "timeout", SECONDS, offsetof(struct openai_config, limit_us), 0.001,
	  86400 },
	{ "connect_timeout", SECONDS,
	  offsetof(struct openai_config, connect_us), 0.001, 3600 },
	{ "first_byte_timeout", SECONDS,
	  offsetof(struct openai_config, first_us), 0.001, 3600 },
	{ "idle_timeout", SECONDS, offsetof(struct openai_config, idle_us),
	  0.001, 3600 },
	{ "retry_delay", SECONDS, offsetof(struct openai_config, retry.base_us),
	  0, 60 },
	{ "max_retries", NUMBER, offsetof(struct openai_config, retry.most), 0,
	  10 },
	{ "include_name", FLAG, offsetof(struct openai_config, has_names), 0,
	  0 },
	{ "stream_usage", FLAG,
	  offsetof(struct openai_config, has_stream_usage), 0, 0 },
	{ "temperature", SETTING, 0, 0, 0 },
	{ "top_p", SETTING, 0, 0, 0 },
	{ "max_tokens", SETTING, 0, 0, 0 },
	{ "max_completion_tokens", SETTING, 0, 0, 0 },
	{ "seed", SETTING, 0, 0, 0 },
	{ "stop", SETTING, 0, 0, 0 },
	{ "presence_penalty", SETTING, 0, 0, 0 },
	{ "frequency_penalty", SETTING, 0, 0, 0 },
	{ "reasoning_effort", SETTING, 0, 0, 0 },
	{ "parallel_tool_calls", SETTING, 0, 0, 0 },
	{ "user", SETTING, 0, 0, 0 },
};

static const struct field *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

/* 2.5, or "30s": as people write times elsewhere. */
static bool read_number(const struct field *f, const json_t *v, double *ret)
{
	uint64_t us;

	if (f->kind == SECONDS && json_is_string(v) &&
	    num_parse_duration(json_string_value(v), &us) == 0)
		*ret = (double)us / 1e6;
	else if (json_is_number(v))
		*ret = json_number_value(v);
	else
		return false;
	return *ret >= f->least && *ret <= f->most;
}

static int take_number(struct openai_config *c, const struct field *f,
		       const json_t *v, struct err *err)
{
	char *at = (char *)c + f->at;
	double n;

	if (!read_number(f, v, &n))
		return err_set(err, EINVAL, "'%s' must be %s from %g to %g",
			       f->name,
			       f->kind == SECONDS ? "a time, in seconds"
						  : "a number",
			       f->least, f->most);
	if (f->kind == SECONDS)
		*(int64_t *)at = (int64_t)(n * 1e6);
	else
		*(int *)at = (int)n;
	return 0;
}

static int take_field(struct openai_config *c, const char *name, json_t *v,
		      struct err *err)
{
	const struct field *f = find(name);

	if (!f)
		return err_set(err, EINVAL, "no such field: '%s'", name);
	if (f->kind == SECONDS || f->kind == NUMBER)
		return take_number(c, f, v, err);
	if (f->kind == SETTING && json_object_set(c->settings, name, v) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (f->kind != FLAG)
		return 0;
	if (!json_is_boolean(v))
		return err_set(err, EINVAL, "'%s' must be true or false", name);
	*(bool *)((char *)c + f->at) = json_is_true(v);
	return 0;
}

/* A name or password in it, or a query, would be a key in a document. */
static int check_url(const char *url, struct err *err)
{
	const char *host = strstr(url, "://");

	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return err_set(err, EINVAL,
			       "base_url must begin with http:// or https://");
	if (strpbrk(host + 3, "@?#"))
		return err_set(err, EINVAL,
			       "base_url has no name, password or query in it; "
			       "a key goes into 'api_key'");
	return 0;
}

static int set_url(struct openai_config *c, const char *url, struct err *err)
{
	size_t len = strlen(url);
	int r = check_url(url, err);

	if (r < 0)
		return r;
	while (len && url[len - 1] == '/')
		len--;
	if (asprintf(&c->url, "%.*s/chat/completions", (int)len, url) < 0) {
		c->url = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

/* Which server, and whether the default key is meant for it. */
static int set_server(struct openai_config *c, const json_t *config,
		      struct err *err)
{
	const char *said = json_string_value(
		json_object_get(config, "base_url"));
	const char *env = getenv("OPENAI_BASE_URL");
	const char *usual = env && *env ? env : DEFAULT_URL;
	json_t *key = json_object_get(config, "api_key");
	bool is_usual = !said || strcmp(said, usual) == 0 ||
			strcmp(said, DEFAULT_URL) == 0;
	int r = set_url(c, said ? said : usual, err);

	if (r < 0)
		return r;
	if (key) {
		c->key = json_incref(key);
		return secret_check(key, err);
	}
	env = getenv("OPENAI_API_KEY");
	if (is_usual && ((env && *env) || strcmp(usual, DEFAULT_URL) == 0))
		c->key = json_pack("{s:s}", "env", "OPENAI_API_KEY");
	return 0;
}

static int set_rest(struct openai_config *c, const json_t *config,
		    struct err *err)
{
	json_t *ca = json_object_get(config, "ca_file");
	json_t *extra = json_object_get(config, "extra");

	if (ca && !json_is_string(ca))
		return err_set(err, EINVAL, "'ca_file' must be a path");
	if (ca) {
		c->ca_file = strdup(json_string_value(ca));
		if (!c->ca_file)
			return err_set(err, ENOMEM, "out of memory");
	}
	if (extra && json_object_update(c->settings, extra) < 0)
		return err_set(err, EINVAL, "'extra' must be an object");
	return 0;
}

int openai_config_load(struct openai_config *c, struct model_info *info,
		       const json_t *config, struct err *err)
{
	json_t *said = json_object_get(config, "info");
	const char *name;
	json_t *v;
	int r = 0;

	*c = (struct openai_config){ .settings = json_object(),
				     .retry = { 3, 500 * 1000 },
				     .connect_us = 10 * 1000000LL,
				     .first_us = 120 * 1000000LL,
				     .idle_us = 60 * 1000000LL,
				     .limit_us = 600 * 1000000LL,
				     .has_names = true,
				     .has_stream_usage = true };
	if (!c->settings)
		return err_set(err, ENOMEM, "out of memory");
	json_object_foreach((json_t *)config, name, v)
	{
		r = take_field(c, name, v, err);
		if (r < 0)
			return r;
	}
	if (said)
		r = info_load(info, said, err);
	if (r == 0)
		r = set_server(c, config, err);
	return r < 0 ? r : set_rest(c, config, err);
}

void openai_config_done(struct openai_config *c)
{
	free(c->url);
	free(c->ca_file);
	json_decref(c->key);
	json_decref(c->settings);
	memset(c, 0, sizeof(*c));
}
