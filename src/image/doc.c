/* SPDX-License-Identifier: Apache-2.0 */
#include "image/doc.h"

#include <stdio.h>
#include <string.h>

#include "image/digest.h"

#define DEPTH_MAX 64

/* The library takes a stack frame for each level, up to 2048 of them. */
static bool is_deep(const char *text, size_t len)
{
	int depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		if (in_string) {
			if (text[i] == '\\')
				i++;
			else if (text[i] == '"')
				in_string = false;
		} else if (text[i] == '"') {
			in_string = true;
		} else if (text[i] == '{' || text[i] == '[') {
			if (++depth > DEPTH_MAX)
				return true;
		} else if (text[i] == '}' || text[i] == ']') {
			depth--;
		}
	}
	return false;
}

int image_doc_parse(const char *text, size_t len, json_t **ret, struct err *err)
{
	json_error_t wrong;

	if (len > IMAGE_DOC_MAX)
		return err_set(err, IMAGE_TOO_LARGE,
			       "a JSON document of more than %zu bytes",
			       IMAGE_DOC_MAX);
	if (is_deep(text, len))
		return err_set(err, IMAGE_TOO_LARGE,
			       "a JSON document that is nested more than %d "
			       "deep",
			       DEPTH_MAX);
	*ret = json_loadb(text, len, JSON_REJECT_DUPLICATES, &wrong);
	if (!*ret)
		return err_set(err, IMAGE_CORRUPT,
			       "a JSON document that is not one, at byte %d: "
			       "%s",
			       wrong.position, wrong.text);
	return 0;
}

json_t *image_doc_get(json_t *object, const char *name, json_type kind,
		      struct err *err)
{
	json_t *value;

	if (err->code)
		return NULL;
	if (!json_is_object(object)) {
		err_set(err, IMAGE_CORRUPT,
			"'%s' is asked of what is no object", name);
		return NULL;
	}
	value = json_object_get(object, name);
	if (!value || json_is_null(value))
		return NULL;
	if (json_typeof(value) != kind) {
		err_set(err, IMAGE_CORRUPT, "'%s' is of the wrong kind", name);
		return NULL;
	}
	return value;
}

char *image_doc_text(json_t *object, const char *name, struct err *err)
{
	json_t *value = image_doc_get(object, name, JSON_STRING, err);
	char *copy;

	if (err->code)
		return NULL;
	copy = strdup(value ? json_string_value(value) : "");
	if (!copy)
		err_set(err, ENOMEM, "out of memory");
	return copy;
}

int image_doc_texts(json_t *object, const char *name, struct strv *ret,
		    struct err *err)
{
	json_t *list = image_doc_get(object, name, JSON_ARRAY, err);
	json_t *value;
	size_t i;

	if (err->code)
		return -err->code;
	json_array_foreach(list, i, value)
	{
		if (!json_is_string(value))
			return err_set(err, IMAGE_CORRUPT,
				       "'%s' has something that is no string",
				       name);
		if (strv_add(ret, json_string_value(value)) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

int image_doc_names(json_t *object, const char *name, struct strv *ret,
		    struct err *err)
{
	json_t *map = image_doc_get(object, name, JSON_OBJECT, err);
	const char *key;
	json_t *value;

	if (err->code)
		return -err->code;
	json_object_foreach(map, key,
			    value) if (strv_add(ret, key) <
				       0) return err_set(err, ENOMEM,
							 "out of memory");
	return 0;
}

int image_doc_digest(json_t *object, const char *name, char ret[IMAGE_DIGEST],
		     struct err *err)
{
	json_t *value = image_doc_get(object, name, JSON_STRING, err);

	ret[0] = '\0';
	if (err->code)
		return -err->code;
	if (!value)
		return 0;
	if (!image_digest_check(json_string_value(value)))
		return err_set(err, IMAGE_CORRUPT,
			       "'%s' is not a SHA-256 digest", name);
	(void)strcpy(ret, json_string_value(value));
	return 0;
}
