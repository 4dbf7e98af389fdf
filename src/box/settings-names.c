/* SPDX-License-Identifier: Apache-2.0 */

/* Who runs in the box, and what the box and other machines are called there. */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"
#include "box/settings-set.h"
#include "box/wire.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static int id(const char *text, uint32_t *to)
{
	uint64_t n;

	if (num_parse(text, UINT32_MAX - 1, &n) < 0)
		return -EINVAL;
	*to = (uint32_t)n;
	return 0;
}

/* A name that an image may have. */
static bool is_user_name(const char *v)
{
	size_t len = strlen(v);

	return len > 0 && len < 64 &&
	       strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789_.-$") == len &&
	       v[0] != '-' && strspn(v, "0123456789") != len;
}

/* UID[:GID], or names: of the root's passwd, which is ours, or an image's. */
SETTER(set_user)
{
	static const struct {
		const char *name;
		uint32_t id;
	} names[] = { { "root", 0 },
		      { "nobody", 65534 },
		      { "nogroup", 65534 } };
	char text[64];
	const char *part[2] = { text, NULL };
	uint32_t ids[2] = { 65534, 65534 };
	bool is_ours = true;
	char *colon;

	if ((size_t)snprintf(text, sizeof(text), "%s", v) >= sizeof(text))
		return err_set(err, EINVAL, "the name is too long");
	colon = strchr(text, ':');
	if (colon) {
		*colon = '\0';
		part[1] = colon + 1;
	}
	for (int i = 0; i < 2 && part[i]; i++) {
		int r = id(part[i], &ids[i]);

		for (size_t k = 0; r < 0 && k < ARRAY_SIZE(names); k++)
			if (strcmp(part[i], names[k].name) == 0) {
				ids[i] = names[k].id;
				r = 0;
			}
		if (r < 0 && !is_user_name(part[i]))
			return err_set(err, EINVAL,
				       "'%s' is neither a number nor a name in "
				       "the box's passwd (root, nobody)",
				       part[i]);
		is_ours &= r == 0;
	}
	s->stated |= SPEC_STATED_USER;
	if (put_text(&s->user, v, err) < 0)
		return -err->code;
	s->is_user_ours = is_ours;
	s->uid = ids[0];
	s->gid = part[1] ? ids[1] : ids[0];
	return 0;
}

/* A number, or a name of the image; the guard finds it. */
SETTER(set_group_add)
{
	if (!*v || strlen(v) > 64 || strpbrk(v, ":,\n"))
		return err_set(err, EINVAL, "'%.60s' is not a group", v);
	if (s->group_add.n >= WIRE_MAX_GROUPS)
		return err_set(err, E2BIG, "more than %d groups",
			       WIRE_MAX_GROUPS);
	if (strv_add(&s->group_add, v) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

SETTER(set_name)
{
	size_t len = strlen(v);

	if (len == 0 || len > 63 ||
	    strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		      "0123456789_.-") != len ||
	    v[0] == '-' || v[0] == '.')
		return err_set(err, EINVAL,
			       "'%s' is not a name: letters, digits, '_', '.' "
			       "and '-', at most 63",
			       v);
	return put_text(&s->name, v, err);
}

/* Of what a line in /etc/hosts may name, without what could be another line. */
static bool is_host(const char *v, size_t len, size_t max)
{
	return len > 0 && len <= max && strspn(v, LETTERS "-._") >= len &&
	       v[0] != '-' && v[0] != '.';
}

SETTER(set_hostname)
{
	if (!is_host(v, strlen(v), 63))
		return err_set(err, EINVAL,
			       "'%s' is not a host name: letters, digits, '-' "
			       "and '.', at most 63",
			       v);
	return put_text(&s->hostname, v, err);
}

SETTER(set_domainname)
{
	if (*v && !is_host(v, strlen(v), 63))
		return err_set(err, EINVAL, "'%s' is not a domain name", v);
	return put_text(&s->domainname, v, err);
}

/* NAME:ADDRESS, as Docker has it; the address may have colons itself. */
SETTER(set_add_host)
{
	size_t len = strcspn(v, ":=");
	const char *address = v[len] ? v + len + 1 : v + len;
	unsigned char raw[16];
	char line[400];

	if (strcmp(address, "host-gateway") == 0)
		return err_set(err, EPERM,
			       "'host-gateway' is refused: the host is not "
			       "reachable from a box");
	if (!is_host(v, len, 253) || (inet_pton(AF_INET, address, raw) != 1 &&
				      inet_pton(AF_INET6, address, raw) != 1))
		return err_set(err, EINVAL,
			       "'%s' is not NAME:ADDRESS, such as db:10.0.0.7",
			       v);
	if (s->hosts.n >= 1024)
		return err_set(err, E2BIG, "more than 1024 hosts");
	(void)snprintf(line, sizeof(line), "%s %.*s", address, (int)len, v);
	return put_item(&s->hosts, line, err);
}

/* The last of one name holds. */
SETTER(set_label)
{
	size_t len = strcspn(v, "=") + 1;

	if (!strchr(v, '=') || v[0] == '=')
		return err_set(err, EINVAL, "'%s' is not KEY=VALUE", v);
	for (size_t i = 0; i < s->labels.n; i++)
		if (strncmp(s->labels.v[i], v, len) == 0)
			return put_text(&s->labels.v[i], v, err);
	return put_item(&s->labels, v, err);
}
