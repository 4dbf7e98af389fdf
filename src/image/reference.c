/* SPDX-License-Identifier: Apache-2.0 */
#include "image/reference.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "image/digest.h"

#define DEFAULT_HOST "docker.io"
#define OLD_HOST     "index.docker.io"
#define OFFICIAL     "library/"

static bool is_low(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_word(char c)
{
	return is_low(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

/* What stands between two words of a path: '.', '_', '__' or any number of -.
 */
static size_t separator(const char *p)
{
	if (*p == '.')
		return 1;
	if (*p == '_')
		return p[1] == '_' ? 2 : 1;
	return strspn(p, "-");
}

/* One part of a path: words of small letters and digits. */
static bool is_part(const char *p, const char *end)
{
	while (p < end) {
		if (!is_low(*p))
			return false;
		while (p < end && is_low(*p))
			p++;
		if (p == end)
			return true;
		p += separator(p);
	}
	return false;
}

static bool is_path(const char *path)
{
	for (;;) {
		const char *slash = strchrnul(path, '/');

		if (!is_part(path, slash))
			return false;
		if (!*slash)
			return true;
		path = slash + 1;
	}
}

static bool is_host(const char *host, size_t len)
{
	const char *end = host + len;
	const char *colon = memchr(host, ':', len);

	if (colon) {
		size_t digits = strspn(colon + 1, "0123456789");

		if (digits == 0 || digits > 5 || colon + 1 + digits != end)
			return false;
		end = colon;
	}
	for (const char *p = host; p < end; p++) {
		bool edge = p == host || p + 1 == end || p[-1] == '.' ||
			    p[1] == '.';

		if (isalnum((unsigned char)*p) && !(*p & 0x80))
			continue;
		if (edge || (*p != '.' && *p != '-'))
			return false;
	}
	return end > host;
}

static bool is_tag(const char *tag)
{
	if (!is_word(*tag) || strlen(tag) > 128)
		return false;
	for (; *tag; tag++)
		if (!is_word(*tag) && *tag != '.' && *tag != '-')
			return false;
	return true;
}

/* Whether the first part names a host and not a directory of the default one.
 */
static bool names_host(const char *text, size_t len)
{
	return memchr(text, '.', len) || memchr(text, ':', len) ||
	       (len == 9 && memcmp(text, "localhost", 9) == 0);
}

static int bad(struct err *err, const char *text, const char *why)
{
	return err_set(err, IMAGE_BAD_NAME, "'%.100s' is not an image name: %s",
		       text, why);
}

/* The name in `text`, which has neither tag nor digest any more. */
static int parse_name(const char *all, const char *text, struct image_ref *ret,
		      struct err *err)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : 0;
	const char *host = DEFAULT_HOST;
	size_t host_len = strlen(DEFAULT_HOST);
	const char *official = "";
	int n;

	if (slash && names_host(text, len)) {
		host = text;
		host_len = len;
		text = slash + 1;
		if (!is_host(host, host_len))
			return bad(err, all, "the host is not one");
	}
	if (host_len == strlen(OLD_HOST) &&
	    memcmp(host, OLD_HOST, host_len) == 0) {
		host = DEFAULT_HOST;
		host_len = strlen(DEFAULT_HOST);
	}
	if (!is_path(text))
		return bad(err, all,
			   "it takes small letters and digits, joined by '.', "
			   "'_', '__', '-' or '/'");
	if (host_len == strlen(DEFAULT_HOST) &&
	    memcmp(host, DEFAULT_HOST, host_len) == 0 && !strchr(text, '/'))
		official = OFFICIAL;
	if (image_digest_digits(text) == 64 && strlen(text) == 64)
		return bad(err, all, "64 hexadecimal digits are an id");
	n = snprintf(ret->name, sizeof(ret->name), "%.*s/%s%s", (int)host_len,
		     host, official, text);
	if (n < 0 || (size_t)n >= sizeof(ret->name))
		return bad(err, all, "it is too long");
	return 0;
}

int image_ref_parse(const char *text, struct image_ref *ret, struct err *err)
{
	char copy[IMAGE_REF_MAX + IMAGE_DIGEST];
	char *at;
	char *colon;
	char *slash;

	memset(ret, 0, sizeof(*ret));
	if (strlen(text) >= sizeof(copy))
		return bad(err, text, "it is too long");
	(void)strcpy(copy, text);
	at = strchr(copy, '@');
	if (at) {
		*at = '\0';
		if (!image_digest_check(at + 1))
			return bad(err, text,
				   "after '@' comes 'sha256:' and 64 digits");
		(void)strcpy(ret->digest, at + 1);
	}
	slash = strrchr(copy, '/');
	colon = strrchr(slash ? slash : copy, ':');
	if (colon) {
		*colon = '\0';
		if (!is_tag(colon + 1))
			return bad(err, text, "the tag is not one");
		(void)strcpy(ret->tag, colon + 1);
	} else if (!at) {
		(void)strcpy(ret->tag, "latest");
	}
	return parse_name(text, copy, ret, err);
}

void image_ref_format(const struct image_ref *ref, char ret[IMAGE_REF_MAX])
{
	(void)snprintf(ret, IMAGE_REF_MAX, "%s%s%s", ref->name,
		       *ref->tag ? ":" : "", ref->tag);
}

const char *image_ref_short(const char *name)
{
	static const char host[] = DEFAULT_HOST "/";
	static const char official[] = OFFICIAL;
	const char *slash;

	if (strncmp(name, host, sizeof(host) - 1) != 0)
		return name;
	/* What would then be taken for a host keeps the one it has. */
	slash = strchr(name + sizeof(host) - 1, '/');
	if (slash && names_host(name + sizeof(host) - 1,
				(size_t)(slash - name) - sizeof(host) + 1))
		return name;
	name += sizeof(host) - 1;
	if (strncmp(name, official, sizeof(official) - 1) == 0 &&
	    !strchr(name + sizeof(official) - 1, '/'))
		name += sizeof(official) - 1;
	return name;
}

bool image_ref_names(const struct image_ref *ref, const struct strv *names)
{
	size_t len = strlen(ref->name);

	for (size_t i = 0; i < names->n; i++)
		if (strncmp(names->v[i], ref->name, len) == 0 &&
		    names->v[i][len] == ':')
			return true;
	return false;
}
