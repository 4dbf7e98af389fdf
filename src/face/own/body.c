/* SPDX-License-Identifier: Apache-2.0 */

/* Reading JSON bodies, by a table of their members. */

#include <jansson.h>
#include <string.h>

#include "base/base64.h"
#include "base/num.h"
#include "base/util.h"
#include "face/own/internal.h"

/* Deeper ones are refused by the reader before they cost a stack. */
#define FLAGS (JSON_REJECT_DUPLICATES | JSON_DECODE_ANY)

static int keep(struct body *b, void *p)
{
	void **made = p ? realloc(b->made, (b->n_made + 1) * sizeof(*made))
			: NULL;

	if (!made) {
		free(p);
		return -ENOMEM;
	}
	b->made = made;
	made[b->n_made++] = p;
	return 0;
}

static int read_list(struct body *b, const json_t *v, const char *const **ret)
{
	const char **list;

	if (!json_is_array(v))
		return -EINVAL;
	list = calloc(json_array_size(v) + 1, sizeof(*list));
	if (keep(b, list) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(v); i++) {
		list[i] = json_string_value(json_array_get(v, i));
		if (!list[i])
			return -EINVAL;
	}
	*ret = list;
	return 0;
}

/* "30s", or a number of seconds. */
static int read_time(const json_t *v, uint64_t *ret)
{
	double s = json_number_value(v);

	if (json_is_string(v))
		return num_parse_duration(json_string_value(v), ret);
	if (!json_is_number(v) || s < 0 || s > 1e9)
		return -EINVAL;
	*ret = (uint64_t)(s * 1e6);
	return 0;
}

static int read_json(struct body *b, const json_t *v, char type,
		     const char **ret)
{
	char *text;

	if (type == '{' ? !json_is_object(v) : !json_is_array(v))
		return -EINVAL;
	text = json_dumps(v, JSON_COMPACT);
	if (keep(b, text) < 0)
		return -ENOMEM;
	*ret = text;
	return 0;
}

static int read_member(struct body *b, const json_t *v,
		       const struct body_member *m, char *at)
{
	switch (m->kind) {
	case BODY_TEXT:
		*(const char **)(void *)at = json_string_value(v);
		return json_is_string(v) ? 0 : -EINVAL;
	case BODY_BOOL:
		*(bool *)at = json_is_true(v);
		return json_is_boolean(v) ? 0 : -EINVAL;
	case BODY_INT:
		*(int64_t *)(void *)at = json_integer_value(v);
		return json_is_integer(v) ? 0 : -EINVAL;
	case BODY_TIME:
		return read_time(v, (uint64_t *)(void *)at);
	case BODY_LIST:
		return read_list(b, v, (const char *const **)(void *)at);
	case BODY_JSON:
		return read_json(b, v, m->type, (const char **)(void *)at);
	}
	return -EINVAL;
}

static const char *kind_text(enum body_kind kind, char type)
{
	switch (kind) {
	case BODY_TEXT:
		return "a string";
	case BODY_BOOL:
		return "true or false";
	case BODY_INT:
		return "a whole number";
	case BODY_TIME:
		return "a time, such as \"30s\", or seconds";
	case BODY_LIST:
		return "a list of strings";
	case BODY_JSON:
		return type == '{' ? "an object" : "a list";
	}
	return "";
}

static const struct body_member *find_member(const struct body_member *table,
					     size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

int body_read(struct http_request *r, const struct body_member *table, size_t n,
	      void *ret, struct body *b, struct err *err)
{
	size_t len;
	const char *text = http_body(r, &len);
	json_error_t why;
	const char *name;
	json_t *v;

	*b = (struct body){ 0 };
	if (len == 0)
		return 0;
	b->root = json_loadb(text, len, FLAGS, &why);
	if (!b->root)
		return err_set(err, MGR_INVALID, "body, line %d: %s", why.line,
			       why.text);
	if (!json_is_object((json_t *)b->root))
		return err_set(err, MGR_INVALID, "the body takes an object");
	json_object_foreach((json_t *)b->root, name, v)
	{
		const struct body_member *m = find_member(table, n, name);
		int e;

		if (!m)
			return err_set(err, MGR_INVALID,
				       "'%.100s' is not known here", name);
		if (json_is_null(v))
			continue;
		e = read_member(b, v, m, (char *)ret + m->offset);
		if (e == -ENOMEM)
			return err_set(err, ENOMEM, "out of memory");
		if (e < 0)
			return err_set(err, MGR_INVALID, "'%s' takes %s", name,
				       kind_text(m->kind, m->type));
	}
	return 0;
}

void body_done(struct body *b)
{
	json_decref(b->root);
	for (size_t i = 0; i < b->n_made; i++)
		free(b->made[i]);
	free(b->made);
	*b = (struct body){ 0 };
}

char *own_base64(const char *text, size_t *ret_len)
{
	struct buf b;

	buf_init(&b, strlen(text) + 1);
	/* The NUL does not count, and makes something of nothing. */
	if (base64_add(&b, text, strlen(text)) < 0 || buf_add(&b, "", 1) < 0) {
		buf_done(&b);
		return NULL;
	}
	*ret_len = b.len - 1;
	return buf_take(&b);
}

char *own_doc_member(const char *json, const char *name)
{
	json_t *root = json ? json_loads(json, FLAGS, NULL) : NULL;
	const json_t *v = json_object_get(root, name);
	char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(root);
	return text;
}

double own_doc_number(const char *json, const char *name, double other)
{
	json_t *root = json ? json_loads(json, FLAGS, NULL) : NULL;
	const json_t *v = json_object_get(root, name);
	double n = json_is_number(v) ? json_number_value(v) : other;

	json_decref(root);
	return n;
}

void own_doc_list(const char *json, const char *name, struct strv *ret)
{
	json_t *root = json ? json_loads(json, FLAGS, NULL) : NULL;
	const json_t *list = name ? json_object_get(root, name) : root;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (text)
			(void)strv_add(ret, text);
	}
	json_decref(root);
}

char *own_doc_default(const char *json, const char *name, const char *text)
{
	json_t *root = json_loads(json ? json : "{}", FLAGS, NULL);
	char *out = NULL;

	if (root && (json_object_get(root, name) ||
		     json_object_set_new(root, name, json_string(text)) == 0))
		out = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return out;
}
