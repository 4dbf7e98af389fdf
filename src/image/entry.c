/* SPDX-License-Identifier: Apache-2.0 */
#include "image/entry.h"

#include <string.h>

#define GONE   ".wh."
#define BOOKS  ".wh..wh."
#define OPAQUE ".wh..wh..opq"

#define NAME_LEN 255 /* of one part, on every file system that matters */

static bool begins(const char *part, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(part, with, strlen(with)) == 0;
}

static int refuse(struct err *err, const char *name, const char *why)
{
	return err_set(err, IMAGE_REFUSED, "entry '%.120s': %s", name, why);
}

static int add_part(const char *name, const char *part, size_t len,
		    struct image_entry *e, struct err *err)
{
	size_t used = strlen(e->path);

	if (len == 2 && memcmp(part, "..", 2) == 0)
		return refuse(err, name, "its name has '..' in it");
	if (len > NAME_LEN)
		return refuse(err, name, "a part of its name is too long");
	if (used + len + 2 > sizeof(e->path))
		return refuse(err, name, "its name is too long");
	if (used > 0)
		e->path[used++] = '/';
	memcpy(e->path + used, part, len);
	e->path[used + len] = '\0';
	e->base = used;
	return 0;
}

/* The last part begins with ".wh.". */
static int read_mark(const char *name, struct image_entry *e, struct err *err)
{
	char *part = e->path + e->base;
	size_t len = strlen(part);
	const char *what = part + strlen(GONE);

	if (strcmp(part, OPAQUE) == 0) {
		e->kind = IMAGE_ENTRY_OPAQUE;
		e->path[e->base ? e->base - 1 : 0] = '\0';
		part = strrchr(e->path, '/');
		e->base = part ? (size_t)(part + 1 - e->path) : 0;
		return 0;
	}
	if (begins(part, len, BOOKS)) {
		e->kind = IMAGE_ENTRY_NONE;
		return 0;
	}
	if (!*what || strcmp(what, ".") == 0 || strcmp(what, "..") == 0)
		return refuse(err, name, "it removes what is no file");
	e->kind = IMAGE_ENTRY_GONE;
	memmove(part, what, strlen(what) + 1);
	return 0;
}

int image_entry_parse(const char *name, struct image_entry *ret,
		      struct err *err)
{
	const char *p = name;
	bool is_mark = false;
	int depth = 0;

	ret->kind = IMAGE_ENTRY_ROOT;
	ret->path[0] = '\0';
	ret->base = 0;
	for (;;) {
		size_t len;

		p += strspn(p, "/");
		if (!*p)
			break;
		len = strcspn(p, "/");
		if (len == 1 && *p == '.') {
			p++;
			continue;
		}
		if (is_mark)
			return refuse(err, name,
				      "it lies below a removed file");
		if (++depth > IMAGE_ENTRY_DEPTH)
			return refuse(err, name, "it lies too deep");
		if (add_part(name, p, len, ret, err) < 0)
			return -IMAGE_REFUSED;
		p += len;
		if (begins(ret->path + ret->base, len, BOOKS) &&
		    strcmp(ret->path + ret->base, OPAQUE) != 0) {
			ret->kind = IMAGE_ENTRY_NONE;
			return 0;
		}
		is_mark = begins(ret->path + ret->base, len, GONE);
		ret->kind = IMAGE_ENTRY_FILE;
	}
	return is_mark ? read_mark(name, ret, err) : 0;
}
