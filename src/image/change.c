/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `--change`: lines of a Dockerfile that set something in the configuration.
 * A list is JSON (["a", "b"]) or else a line for `/bin/sh -c`.
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "image/config.h"
#include "image/doc.h"

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

static int set_text(char **at, const char *value, struct err *err)
{
	char *copy = strdup(value);

	if (!copy)
		return no_memory(err);
	free(*at);
	*at = copy;
	return 0;
}

static int set_list(struct strv *list, const char *value, struct err *err)
{
	json_t *top = NULL;
	json_t *one;
	size_t i;
	int r = 0;

	strv_done(list);
	*list = (struct strv){ 0 };
	if (*value != '[') {
		if (strv_add(list, "/bin/sh") < 0 || strv_add(list, "-c") < 0 ||
		    strv_add(list, value) < 0)
			return no_memory(err);
		return 0;
	}
	if (image_doc_parse(value, strlen(value), &top, err) < 0)
		return -err->code;
	json_array_foreach(top, i, one)
	{
		if (!json_is_string(one))
			r = err_set(err, EINVAL, "the list takes strings only");
		else if (strv_add(list, json_string_value(one)) < 0)
			r = no_memory(err);
		if (r < 0)
			break;
	}
	json_decref(top);
	return r;
}

/* Replaces the one with the same name, or adds it. */
static int set_pair(struct strv *list, const char *pair, struct err *err)
{
	size_t len = (size_t)(strchr(pair, '=') - pair) + 1;

	for (size_t i = 0; i < list->n; i++)
		if (strncmp(list->v[i], pair, len) == 0)
			return set_text(&list->v[i], pair, err);
	return strv_add(list, pair) < 0 ? no_memory(err) : 0;
}

/* The next word, quotes taken off; NULL at the end or if one is not closed. */
static char *next_word(char **at)
{
	char *from = *at ? *at + strspn(*at, " \t") : NULL;
	char *word = from;
	char *to = from;
	char quote = 0;

	if (!from || !*from)
		return NULL;
	for (; *from && (quote || !isblank((unsigned char)*from)); from++) {
		if (quote && *from == quote)
			quote = 0;
		else if (!quote && (*from == '"' || *from == '\''))
			quote = *from;
		else if (*from == '\\' && quote != '\'' && from[1])
			*to++ = *++from;
		else
			*to++ = *from;
	}
	if (quote)
		return NULL;
	*at = *from ? from + 1 : from;
	*to = '\0';
	return word;
}

/* "A=b C='d e'", or the old form "A b". */
static int set_pairs(struct strv *list, const char *value, struct err *err)
{
	_cleanup_free_ char *copy = strdup(value);
	char *at = copy;
	size_t n = 0;
	char *word;

	if (!copy)
		return no_memory(err);
	if (copy[strcspn(copy, "= \t")] != '=') {
		char *blank = copy + strcspn(copy, " \t");

		if (!*blank || blank == copy)
			return err_set(err, EINVAL, "it takes NAME=VALUE");
		*blank = '=';
		return set_pair(list, copy, err);
	}
	while ((word = next_word(&at))) {
		const char *is = strchr(word, '=');

		if (!is || is == word)
			return err_set(err, EINVAL, "it takes NAME=VALUE");
		if (set_pair(list, word, err) < 0)
			return -err->code;
		n++;
	}
	return n && !*at ? 0
			 : err_set(err, EINVAL,
				   "it takes NAME=VALUE, quotes closed");
}

static int change_cmd(struct image_config *c, const char *v, struct err *err)
{
	return set_list(&c->cmd, v, err);
}

static int change_entrypoint(struct image_config *c, const char *v,
			     struct err *err)
{
	return set_list(&c->entrypoint, v, err);
}

static int change_env(struct image_config *c, const char *v, struct err *err)
{
	return set_pairs(&c->env, v, err);
}

static int change_label(struct image_config *c, const char *v, struct err *err)
{
	return set_pairs(&c->labels, v, err);
}

static int change_workdir(struct image_config *c, const char *v,
			  struct err *err)
{
	if (*v != '/')
		return err_set(err, EINVAL, "it takes an absolute path");
	return set_text(&c->working_dir, v, err);
}

static int change_user(struct image_config *c, const char *v, struct err *err)
{
	return set_text(&c->user, v, err);
}

static int change_stopsignal(struct image_config *c, const char *v,
			     struct err *err)
{
	return set_text(&c->stop_signal, v, err);
}

static int change_expose(struct image_config *c, const char *v, struct err *err)
{
	char port[32];
	size_t digits = strspn(v, "0123456789");
	const char *kind = v + digits;

	if (digits == 0 || digits > 5 ||
	    (*kind && strcmp(kind, "/tcp") != 0 && strcmp(kind, "/udp") != 0))
		return err_set(err, EINVAL, "it takes PORT, /tcp or /udp");
	(void)snprintf(port, sizeof(port), "%s%s", v, *kind ? "" : "/tcp");
	return strv_add(&c->exposed_ports, port) < 0 ? no_memory(err) : 0;
}

/* "/a /b", or a list. */
static int change_volume(struct image_config *c, const char *v, struct err *err)
{
	_cleanup_free_ char *copy = strdup(v);
	struct strv paths = { 0 };
	char *at = copy;
	int r = copy ? 0 : no_memory(err);

	if (r == 0 && *v == '[')
		r = set_list(&paths, v, err);
	else
		for (char *w = NULL; r == 0 && (w = next_word(&at));)
			r = strv_add(&paths, w) < 0 ? no_memory(err) : 0;
	for (size_t i = 0; r == 0 && i < paths.n; i++)
		if (paths.v[i][0] != '/')
			r = err_set(err, EINVAL, "it takes absolute paths");
		else if (strv_add(&c->volumes, paths.v[i]) < 0)
			r = no_memory(err);
	strv_done(&paths);
	return r;
}

static const struct {
	const char *word;
	int (*set)(struct image_config *c, const char *value, struct err *err);
} changes[] = {
	{ "CMD", change_cmd },       { "ENTRYPOINT", change_entrypoint },
	{ "ENV", change_env },       { "LABEL", change_label },
	{ "USER", change_user },     { "WORKDIR", change_workdir },
	{ "EXPOSE", change_expose }, { "STOPSIGNAL", change_stopsignal },
	{ "VOLUME", change_volume },
};

int image_config_change(struct image_config *config, const char *line,
			struct err *err)
{
	size_t len = strcspn(line, " \t");
	const char *value = line + len + strspn(line + len, " \t");

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		if (strlen(changes[i].word) != len ||
		    strncasecmp(changes[i].word, line, len) != 0)
			continue;
		if (!*value)
			return err_set(err, EINVAL, "'%.60s' has no value",
				       line);
		if (changes[i].set(config, value, err) < 0)
			return err_wrap(err, "'%.60s'", line);
		return 0;
	}
	return err_set(err, EINVAL,
		       "'%.60s' cannot be changed; CMD, ENTRYPOINT, ENV, "
		       "EXPOSE, LABEL, STOPSIGNAL, USER, VOLUME and WORKDIR "
		       "can",
		       line);
}
