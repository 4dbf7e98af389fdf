/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Images in results: {"type":"image","mime","data"}, the data in base64.
 *
 * What an image is its first bytes say, not its name. Whatever a tool gives as
 * one is looked at before a model gets it; what is none, or too large, or one
 * too many, becomes a text that says so.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/util.h"
#include "tool/call.h"

const char *image_mime(const void *data, size_t len)
{
	static const struct {
		const char *mime;
		const char *bytes;
		size_t at, len;
	} begins[] = {
		{ "image/png", "\x89PNG\r\n\x1a\n", 0, 8 },
		{ "image/jpeg", "\xff\xd8\xff", 0, 3 },
		{ "image/gif", "GIF87a", 0, 6 },
		{ "image/gif", "GIF89a", 0, 6 },
		{ "image/webp", "WEBP", 8, 4 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (len >= begins[i].at + begins[i].len && len >= 16 &&
		    memcmp((const char *)data + begins[i].at, begins[i].bytes,
			   begins[i].len) == 0)
			return begins[i].mime;
	return NULL;
}

json_t *image_part(const void *data, size_t len)
{
	const char *mime = image_mime(data, len);
	struct buf b;
	struct json j = { .out = &b };
	json_t *o;

	if (!mime)
		return NULL;
	buf_init(&b, 2 * (size_t)IMAGE_MAX);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "image");
	json_str(&j, "mime", mime);
	json_base64(&j, "data", data, len);
	json_close(&j, '}');
	o = b.error ? NULL : json_loadb(b.data, b.len, 0, NULL);
	buf_done(&b);
	return o;
}

static bool is_image(const json_t *part)
{
	const char *type = json_string_value(json_object_get(part, "type"));

	return type && strcmp(type, "image") == 0;
}

int image_bytes(const json_t *part, struct buf *ret)
{
	const json_t *data = json_object_get(part, "data");

	buf_init(ret, IMAGE_MAX);
	if (!is_image(part) || !json_is_string(data))
		return -EINVAL;
	return base64_add(ret, json_string_value(data),
			  json_string_length(data));
}

/* NULL: it may go on as it is; else why not, in `why`. */
static const char *check(const json_t *part, size_t n, char why[160])
{
	const char *said = json_string_value(json_object_get(part, "mime"));
	const char *mime = NULL;
	struct buf b;
	int r = image_bytes(part, &b);

	if (r == 0)
		mime = image_mime(b.data ? b.data : "", b.len);
	if (n >= IMAGES_MAX)
		(void)snprintf(why, 160, "there are more than %d", IMAGES_MAX);
	else if (b.error)
		(void)snprintf(why, 160, "it has more than %u bytes",
			       IMAGE_MAX);
	else if (!mime)
		(void)snprintf(why, 160, "it is no PNG, JPEG, GIF or WebP");
	else if (!said || strcmp(said, mime) != 0)
		(void)snprintf(why, 160, "it is not what it is said to be");
	else
		why[0] = '\0';
	buf_done(&b);
	return why[0] ? why : NULL;
}

void result_check_images(struct tool_result *r)
{
	size_t n = 0;
	size_t i;
	json_t *part;

	json_array_foreach(r->content, i, part)
	{
		char text[220];
		char why[160];

		if (!is_image(part))
			continue;
		if (!check(part, n++, why))
			continue;
		(void)snprintf(text, sizeof(text),
			       "[An image was left out: %s.]", why);
		(void)json_array_set_new(r->content, i,
					 result_text(text, strlen(text)));
	}
}

/* --- lists of parts, as programs and functions give them --- */

static bool is_part(const json_t *part)
{
	const char *type = json_string_value(json_object_get(part, "type"));

	if (!type)
		return false;
	if (strcmp(type, "text") == 0)
		return json_is_string(json_object_get(part, "text"));
	if (strcmp(type, "json") == 0)
		return json_object_get(part, "json") != NULL;
	return is_image(part) &&
	       json_is_string(json_object_get(part, "mime")) &&
	       json_is_string(json_object_get(part, "data"));
}

json_t *result_parts(const char *text, struct err *err)
{
	json_error_t why;
	json_t *list = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	size_t i;
	json_t *part;

	if (!list) {
		(void)err_set(err, EINVAL, "its result is no JSON: %s",
			      why.text);
		return NULL;
	}
	if (!json_is_array(list))
		(void)err_set(err, EINVAL, "its result is no list of parts");
	json_array_foreach(list, i, part)
	{
		if (!err->code && !is_part(part))
			(void)err_set(err, EINVAL,
				      "part %zu of its result is no text, "
				      "image or json",
				      i);
	}
	if (!err->code)
		return list;
	json_decref(list);
	return NULL;
}
