/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Users by name, in the files of an image. They are foreign: no link is
 * followed, and a line that is not exactly of its form is none.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"
#include "box/image-parse.h"

#define FILE_MAX (1U << 20)

/* "name:password:number:rest", for passwd and group alike. */
struct account {
	const char *name;
	size_t name_len;
	uint32_t id;
	uint32_t gid; /* passwd: the field after the number */
};

static bool field(const char **p, const char **ret, size_t *ret_len)
{
	*ret = *p;
	*ret_len = strcspn(*p, ":\n");
	*p += *ret_len;
	if (**p != ':')
		return false;
	(*p)++;
	return true;
}

static bool number(const char *text, size_t len, uint32_t *ret)
{
	char copy[16];
	uint64_t n;

	if (len == 0 || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (num_parse(copy, UINT32_MAX - 1, &n) < 0)
		return false;
	*ret = (uint32_t)n;
	return true;
}

static bool parse_line(const char *p, bool is_passwd, struct account *ret)
{
	const char *text;
	size_t len;

	if (!field(&p, &ret->name, &ret->name_len) || ret->name_len == 0 ||
	    !field(&p, &text, &len) || !field(&p, &text, &len) ||
	    !number(text, len, &ret->id))
		return false;
	ret->gid = 0;
	return !is_passwd ||
	       (field(&p, &text, &len) && number(text, len, &ret->gid));
}

/* The first line that has this name, or else this number. */
static bool find_account(const char *file, bool is_passwd, const char *name,
			 struct account *ret)
{
	struct account by_number = { 0 };
	bool has_number = false;
	uint32_t id = 0;
	bool is_number = number(name, strlen(name), &id);

	for (const char *p = file; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		struct account a;

		if (!parse_line(p, is_passwd, &a))
			continue;
		if (a.name_len == strlen(name) &&
		    memcmp(a.name, name, a.name_len) == 0) {
			*ret = a;
			return true;
		}
		if (is_number && a.id == id && !has_number) {
			by_number = a;
			has_number = true;
		}
	}
	*ret = by_number;
	return has_number;
}

bool image_account_find(const char *file, bool is_passwd, const char *name,
			uint32_t *ret_id, uint32_t *ret_gid)
{
	struct account a;

	if (!find_account(file, is_passwd, name, &a))
		return false;
	*ret_id = a.id;
	*ret_gid = a.gid;
	return true;
}

/* A file of accounts; one that is missing has none. */
static int read_accounts(const struct box_image *image, const char *path,
			 char **ret, struct err *err)
{
	long n;

	*ret = malloc(FILE_MAX);
	if (!*ret)
		return err_set(err, ENOMEM, "out of memory");
	**ret = '\0';
	n = box_image_read(image, path, *ret, FILE_MAX);
	if (n == -ENOENT || n == -ENOTDIR) {
		**ret = '\0';
		return 0;
	}
	if (n == -ELOOP)
		return err_set(err, ELOOP,
			       "%s of image '%.100s' is a link, which is not "
			       "followed; name the user by number",
			       path, image->name);
	if (n < 0)
		return err_errno(err, (int)-n, "read %s of image '%.100s'",
				 path, image->name);
	return 0;
}

static int unknown(const struct box_image *image, const char *what,
		   const char *name, struct err *err)
{
	return err_set(err, ENOENT,
		       "unable to find %s '%.64s': image '%.100s' has none of "
		       "that name",
		       what, name, image->name);
}

int box_image_group(const struct box_image *image, const char *name,
		    uint32_t *ret, struct err *err)
{
	_cleanup_free_ char *file = NULL;
	uint32_t unused;

	if (number(name, strlen(name), ret))
		return 0;
	if (read_accounts(image, "/etc/group", &file, err) < 0)
		return -err->code;
	if (!image_account_find(file, false, name, ret, &unused))
		return unknown(image, "group", name, err);
	return 0;
}

int box_image_user(const struct box_image *image, const char *text,
		   uint32_t *ret_uid, uint32_t *ret_gid, struct err *err)
{
	_cleanup_free_ char *file = NULL;
	char name[256];
	bool is_number;
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	if (len >= sizeof(name))
		return err_set(err, EINVAL, "a user's name is too long");
	memcpy(name, text, len);
	name[len] = '\0';
	*ret_uid = 0;
	*ret_gid = 0;
	is_number = number(name, len, ret_uid);
	/* By number with a group, nothing is left to look up. */
	if (len > 0 && !(is_number && colon && colon[1])) {
		if (read_accounts(image, "/etc/passwd", &file, err) < 0) {
			if (!is_number || err->code != ELOOP)
				return -err->code;
			err->code = 0;
			*file = '\0';
		}
		if (image_account_find(file, true, name, ret_uid, ret_gid))
			is_number = true;
		else if (is_number)
			*ret_gid = *ret_uid;
		if (!is_number)
			return unknown(image, "user", name, err);
	}
	if (colon && colon[1])
		return box_image_group(image, colon + 1, ret_gid, err);
	return 0;
}

/* "a,b,c" has it as a whole word. */
static bool is_member(const char *list, const char *name, size_t len)
{
	const char *end = list + strcspn(list, "\n");

	while (list < end) {
		size_t n = strcspn(list, ",\n");

		if (n == len && memcmp(list, name, len) == 0)
			return true;
		list += n + 1;
	}
	return false;
}

size_t image_groups_find(const char *file, const char *name, size_t len,
			 uint32_t *ret, size_t max)
{
	size_t n = 0;

	for (const char *p = file; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		const char *rest = p;
		struct account a;
		const char *text;
		size_t skip;

		if (len == 0 || n == max || !parse_line(p, false, &a))
			continue;
		for (int i = 0; i < 3; i++)
			(void)field(&rest, &text, &skip);
		if (is_member(rest, name, len))
			ret[n++] = a.id;
	}
	return n;
}

size_t box_image_groups(const struct box_image *image, const char *text,
			uint32_t *ret, size_t max)
{
	_cleanup_free_ char *users = NULL;
	_cleanup_free_ char *groups = NULL;
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	struct err unused = { 0 };
	struct account who;
	char name[256];

	if ((colon && colon[1]) || len >= sizeof(name))
		return 0;
	memcpy(name, text, len);
	name[len] = '\0';
	/* An empty one is root, by number. */
	if (read_accounts(image, "/etc/passwd", &users, &unused) < 0 ||
	    !find_account(users, true, len ? name : "0", &who) ||
	    read_accounts(image, "/etc/group", &groups, &unused) < 0)
		return 0;
	return image_groups_find(groups, who.name, who.name_len, ret, max);
}
