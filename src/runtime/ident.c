/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/ident.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* What may be in a name; strspn() makes a table anew each time. */
enum { IN_ACTOR_TYPE = 1, IN_TOPIC_TYPE = 2 };
static const unsigned char letters[256] = {
	['a' ... 'z'] = 3, ['A' ... 'Z'] = 3, ['0' ... '9'] = 3, ['_'] = 3,
	['.'] = 3,         ['-'] = 3,         [':'] = 2,         ['='] = 2,
};

static size_t span(const char *text, int kind)
{
	size_t n = 0;

	while (letters[(unsigned char)text[n]] & kind)
		n++;
	return n;
}

static unsigned int forks;

static void has_forked(void)
{
	forks++;
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, has_forked);
}

static void fill(struct uuid_pool *p)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char *at = (char *)p->ids;
	size_t left = sizeof(p->ids);

	(void)pthread_once(&once, watch_forks);
	while (left > 0) {
		ssize_t n = getrandom(at, left, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			abort();
		at += n;
		left -= (size_t)n;
	}
	p->left = UUIDS_AT_ONCE;
	p->forks = forks;
}

struct uuid uuid_make(struct uuid_pool *p)
{
	struct uuid u;

	if (p->left == 0 || p->forks != forks)
		fill(p);
	u = p->ids[--p->left];
	u.high = (u.high & ~0xf000ULL) | 0x4000;              /* version 4 */
	u.low = (u.low & ~(3ULL << 62)) | 0x8000000000000000; /* RFC 9562 */
	return u;
}

void uuid_format(struct uuid u, char ret[UUID_TEXT])
{
	static const char hex[] = "0123456789abcdef";
	int at = 0;

	for (int i = 0; i < 32; i++) {
		uint64_t half = i < 16 ? u.high : u.low;

		if (i == 8 || i == 12 || i == 16 || i == 20)
			ret[at++] = '-';
		ret[at++] = hex[half >> (60 - 4 * (i % 16)) & 15];
	}
	ret[at] = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool uuid_parse(const char *text, struct uuid *ret)
{
	uint64_t half[2] = { 0 };
	int n = 0;

	if (!text || strlen(text) != UUID_TEXT - 1)
		return false;
	for (int i = 0; i < UUID_TEXT - 1; i++) {
		bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
		int d = digit(text[i]);

		if (is_dash != (text[i] == '-') || (!is_dash && d < 0))
			return false;
		if (is_dash)
			continue;
		half[n / 16] = half[n / 16] << 4 | (unsigned int)d;
		n++;
	}
	*ret = (struct uuid){ half[0], half[1] };
	return !uuid_is_none(*ret);
}

static bool is_of(const char *text, int kind)
{
	size_t len = span(text, kind);

	return len > 0 && len <= TYPE_MAX && !text[len];
}

bool actor_type_check(const char *type)
{
	return is_of(type, IN_ACTOR_TYPE);
}

bool topic_type_check(const char *type)
{
	return is_of(type, IN_TOPIC_TYPE);
}

bool topic_prefix_check(const char *prefix)
{
	return !*prefix || is_of(prefix, IN_TOPIC_TYPE);
}

bool message_type_check(const char *type)
{
	const char *dot = strrchr(type, '.');

	return is_of(type, IN_ACTOR_TYPE) && dot && dot != type && dot[1];
}

static bool is_utf8(const char *text, size_t len)
{
	json_t *s;
	size_t ascii = 0;

	while (ascii < len && (unsigned char)text[ascii] < 0x80)
		ascii++;
	if (ascii == len)
		return true;
	s = json_stringn(text, len);

	json_decref(s);
	return s != NULL;
}

static size_t split(const char *text, int kind, size_t min)
{
	size_t type = span(text, kind);
	size_t rest;

	if (type == 0 || type > TYPE_MAX || text[type] != '/')
		return 0;
	rest = strlen(text + type + 1);
	if (rest < min || rest > KEY_MAX || !is_utf8(text + type + 1, rest))
		return 0;
	return type;
}

size_t actor_id_split(const char *id)
{
	return split(id, IN_ACTOR_TYPE, 1);
}

size_t topic_split(const char *topic)
{
	return split(topic, IN_TOPIC_TYPE, 0);
}
