/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "base/visible.h"
#include "desk/glob.h"

static const char *const kinds[] = { "equals", "glob", "any" };

/* paths */

struct step {
	char name[PATTERN_PATH]; /* "": an index */
	size_t index;
};

struct path {
	struct step steps[PATTERN_DEPTH];
	size_t n;
};

static const char *read_name(const char *p, struct step *s)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
		"0123456789-";
	size_t n = strspn(p, letters);

	if (n == 0 || n >= sizeof(s->name))
		return NULL;
	memcpy(s->name, p, n);
	s->name[n] = '\0';
	return p + n;
}

/* ["..."]: a JSON string; an empty name is none. */
static const char *read_quoted(const char *p, struct step *s)
{
	const char *end = p + 1;
	json_t *text;
	bool fits;

	while (*end && *end != '"')
		end += *end == '\\' && end[1] ? 2 : 1;
	if (!*end)
		return NULL;
	text = json_loadb(p, (size_t)(end + 1 - p), JSON_DECODE_ANY, NULL);
	fits = json_string_length(text) > 0 &&
	       json_string_length(text) < sizeof(s->name);
	if (fits)
		(void)strcpy(s->name, json_string_value(text));
	json_decref(text);
	return fits && end[1] == ']' ? end + 2 : NULL;
}

static const char *read_index(const char *p, struct step *s)
{
	size_t n = strspn(p, "0123456789");

	if (n == 0 || n > 6 || (n > 1 && *p == '0') || p[n] != ']')
		return NULL;
	s->index = strtoul(p, NULL, 10);
	s->name[0] = '\0';
	return p + n + 1;
}

/* Where the path ends; NULL: it is none. */
static const char *read_path(const char *p, struct path *ret)
{
	const char *begin = p;

	ret->n = 0;
	if (*p++ != '$')
		return NULL;
	while (p && (*p == '.' || *p == '[')) {
		struct step *s = &ret->steps[ret->n++];

		if (ret->n > ARRAY_SIZE(ret->steps) - 1)
			return NULL;
		if (*p == '.')
			p = read_name(p + 1, s);
		else if (p[1] == '"')
			p = read_quoted(p + 1, s);
		else
			p = read_index(p + 1, s);
	}
	return p && p - begin < PATTERN_PATH ? p : NULL;
}

static bool read_whole(const char *text, struct path *ret)
{
	const char *end = text ? read_path(text, ret) : NULL;

	return end && !*end;
}

static const json_t *look_up(const json_t *v, const struct path *p)
{
	for (size_t i = 0; v && i < p->n; i++) {
		const struct step *s = &p->steps[i];

		v = s->name[0] ? json_object_get(v, s->name)
			       : json_array_get(v, s->index);
	}
	return v;
}

/* reading */

static int check_term(const json_t *term, struct err *err)
{
	const json_t *glob = json_object_get(term, "glob");
	const json_t *any = json_object_get(term, "any");
	const char *path = json_string_value(json_object_get(term, "path"));
	struct path parsed;

	if (!json_is_object(term) || json_object_size(term) != 2)
		return err_set(err, EINVAL,
			       "a term has a path and one of equals, glob, "
			       "any");
	if (!read_whole(path, &parsed))
		return err_set(err, EINVAL,
			       "'%.100s' is not a path such as $.name, "
			       "$.list[0] or $[\"name\"]",
			       path ? path : "");
	if (glob)
		return json_is_string(glob)
			       ? glob_check(json_string_value(glob), err)
			       : err_set(err, EINVAL, "a glob is a text");
	if (any ? !json_is_true(any) : !json_object_get(term, "equals"))
		return err_set(err, EINVAL, "a term has equals, glob or any");
	return 0;
}

static int check(const json_t *pattern, struct err *err)
{
	size_t n = json_array_size(pattern);

	if (n == 0 || n > PATTERN_TERMS)
		return err_set(err, EINVAL, "a pattern has 1 to %d terms",
			       PATTERN_TERMS);
	for (size_t i = 0; i < n; i++)
		if (check_term(json_array_get(pattern, i), err) < 0)
			return -err->code;
	return 0;
}

json_t *pattern_parse(const char *text, struct err *err)
{
	struct err why = { 0 };
	json_t *p = NULL;

	if (strlen(text) > PATTERN_MAX)
		(void)err_set(&why, E2BIG, "a pattern has at most %d bytes",
			      PATTERN_MAX);
	else if (!(p = json_loads(text, JSON_REJECT_DUPLICATES, NULL)))
		(void)err_set(&why, EINVAL, "a pattern is a list of terms");
	if (why.code || check(p, &why) < 0) {
		json_decref(p);
		(void)err_set(err, why.code, "%s", why.text);
		return NULL;
	}
	return p;
}

static json_t *read_value(const char *kind, const char *text)
{
	if (strcmp(kind, "glob") == 0)
		return json_string(text);
	return json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
}

int pattern_add(json_t *pattern, const char *kind, const char *said,
		struct err *err)
{
	bool is_any = strcmp(kind, "any") == 0;
	struct path path;
	const char *end = read_path(said, &path);
	json_t *value = NULL;
	json_t *term;
	int r;

	if (!end || *end != (is_any ? '\0' : '='))
		return err_set(err, EINVAL, "--%s takes %s, not '%.100s'", kind,
			       is_any ? "$.PATH" : "$.PATH=VALUE", said);
	value = is_any ? json_true() : read_value(kind, end + 1);
	if (!value)
		return err_set(err, EINVAL,
			       "'%.100s' is not JSON; a text stands in quotes",
			       end + 1);
	term = json_pack("{s:s%, s:o}", "path", said, (size_t)(end - said),
			 kind, value);
	r = term ? check_term(term, err)
		 : err_set(err, EINVAL, "a pattern is UTF-8 text");
	if (r < 0)
		json_decref(term);
	else if (json_array_append_new(pattern, term) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	return r;
}

/* matching */

static const char *kind_of(const json_t *term)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (json_object_get(term, kinds[i]))
			return kinds[i];
	return "";
}

static bool term_fits(const json_t *term, const json_t *args,
		      bool (*fits)(const char *glob, const char *text))
{
	const char *glob = json_string_value(json_object_get(term, "glob"));
	const json_t *equals = json_object_get(term, "equals");
	struct path path;
	const json_t *v;

	if (!read_whole(json_string_value(json_object_get(term, "path")),
			&path))
		return false;
	v = look_up(args, &path);
	if (glob)
		return json_is_string(v) && fits(glob, json_string_value(v));
	if (equals)
		return v && json_equal(equals, v);
	return json_is_true(json_object_get(term, "any"));
}

static bool is_told(const json_t *pattern, const struct path *at)
{
	for (size_t i = 0; i < json_array_size(pattern); i++) {
		const json_t *term = json_array_get(pattern, i);
		struct path p;
		bool same = read_whole(json_string_value(
					       json_object_get(term, "path")),
				       &p) &&
			    p.n == at->n;

		for (size_t k = 0; same && k < p.n; k++)
			same = strcmp(p.steps[k].name, at->steps[k].name) ==
				       0 &&
			       (p.steps[k].name[0] ||
				p.steps[k].index == at->steps[k].index);
		if (same)
			return true;
	}
	return false;
}

static bool is_covered(const json_t *pattern, const json_t *v, struct path *at);

static bool covers_object(const json_t *pattern, json_t *v, struct path *at)
{
	struct step *s = &at->steps[at->n - 1];
	const char *name;
	json_t *one;

	json_object_foreach(v, name, one)
	{
		if (!*name || strlen(name) >= sizeof(s->name))
			return false;
		(void)strcpy(s->name, name);
		if (!is_covered(pattern, one, at))
			return false;
	}
	return true;
}

static bool covers_array(const json_t *pattern, const json_t *v,
			 struct path *at)
{
	struct step *s = &at->steps[at->n - 1];

	for (size_t i = 0; i < json_array_size(v); i++) {
		s->name[0] = '\0';
		s->index = i;
		if (!is_covered(pattern, json_array_get(v, i), at))
			return false;
	}
	return true;
}

/* All of it: by a term, or part by part. What is empty is told or is not. */
static bool is_covered(const json_t *pattern, const json_t *v, struct path *at)
{
	size_t parts = json_is_object(v) ? json_object_size(v)
					 : json_array_size(v);
	bool ret;

	if (is_told(pattern, at))
		return true;
	if (parts == 0 || at->n + 1 >= ARRAY_SIZE(at->steps))
		return at->n == 0 && json_is_object(v) && parts == 0;
	at->n++;
	ret = json_is_object(v) ? covers_object(pattern, (json_t *)v, at)
				: covers_array(pattern, v, at);
	at->n--;
	return ret;
}

static json_t *read_arguments(const char *text)
{
	return text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static bool all_fit(const json_t *pattern, const json_t *args,
		    bool (*fits)(const char *glob, const char *text))
{
	for (size_t i = 0; i < json_array_size(pattern); i++)
		if (!term_fits(json_array_get(pattern, i), args, fits))
			return false;
	return json_array_size(pattern) > 0 && json_is_object(args);
}

bool pattern_allows(const json_t *pattern, const char *arguments)
{
	struct path *at = calloc(1, sizeof(*at));
	json_t *args = read_arguments(arguments);
	bool ret = at && args && all_fit(pattern, args, glob_allows) &&
		   is_covered(pattern, args, at);

	json_decref(args);
	free(at);
	return ret;
}

bool pattern_denies(const json_t *pattern, const char *arguments)
{
	json_t *args = read_arguments(arguments);
	bool ret = !args || all_fit(pattern, args, glob_denies);

	json_decref(args);
	return ret;
}

/* showing */

void pattern_show(const json_t *pattern, struct buf *out)
{
	for (size_t i = 0; i < json_array_size(pattern); i++) {
		const json_t *term = json_array_get(pattern, i);
		const char *kind = kind_of(term);
		const char *path = json_string_value(
			json_object_get(term, "path"));
		_cleanup_free_ char *value = json_dumps(json_object_get(term,
									kind),
							JSON_ENCODE_ANY |
								JSON_COMPACT);

		buf_puts(out, i ? ", " : "");
		visible_text(out, path ? path : "", path ? strlen(path) : 0,
			     PATTERN_PATH);
		buf_printf(out, " %s", kind);
		if (strcmp(kind, "any") == 0 || !value)
			continue;
		buf_puts(out, " ");
		visible_text(out, value, strlen(value), GLOB_MAX);
	}
}
