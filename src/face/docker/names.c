/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names of images and of containers. What a name is, cordon-image decides when
 * it is asked; here names are only compared.
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/visible.h"
#include "face/docker/internal.h"

/* "sha256:" or nothing, then only hexadecimal digits. */
static const char *id_digits(const char *text)
{
	if (strncmp(text, "sha256:", 7) == 0)
		text += 7;
	if (!*text || strlen(text) > 64)
		return NULL;
	return text[strspn(text, "0123456789abcdef")] ? NULL : text;
}

static bool has_host(const char *text)
{
	size_t len = strcspn(text, "/");

	if (!text[len])
		return false;
	return memchr(text, '.', len) || memchr(text, ':', len) ||
	       (len == 9 && strncmp(text, "localhost", 9) == 0);
}

int ref_normalise(const char *text, char ret[REF_MAX])
{
	const char *last = strrchr(text, '/');
	const char *rest = text;
	bool has_tag;
	int n;

	for (const char *p = text; *p; p++)
		if (!isgraph((unsigned char)*p))
			return -1;
	if (!*text || strchr("/-", *text) || strlen(text) > 400)
		return -1;
	if (strncmp(text, "sha256:", 7) == 0 ||
	    (strlen(text) == 64 && id_digits(text))) {
		(void)snprintf(ret, REF_MAX, "sha256:%s",
			       strncmp(text, "sha256:", 7) ? text : text + 7);
		return 0;
	}
	if (strncmp(text, "index.docker.io/", 16) == 0)
		rest = text + 16;
	else if (strncmp(text, "docker.io/", 10) == 0)
		rest = text + 10;
	has_tag = strchr(last ? last : text, ':') || strchr(text, '@');
	if (rest == text && has_host(text))
		n = snprintf(ret, REF_MAX, "%s", text);
	else
		n = snprintf(ret, REF_MAX, "docker.io/%s%s",
			     strchr(rest, '/') ? "" : "library/", rest);
	if (!has_tag && n > 0 && n < REF_MAX)
		(void)snprintf(ret + n, REF_MAX - (size_t)n, ":latest");
	return 0;
}

int ref_join(const char *repo, const char *sign, const char *tag,
	     char ret[REF_MAX])
{
	size_t len = tag ? strlen(tag) : 0;

	/* A digest is as long as it is. */
	if (strlen(repo) > 255 || (len > 128 && *sign != '@') ||
	    (size_t)snprintf(ret, REF_MAX, "%s%s%s", repo, len ? sign : "",
			     len ? tag : "") >= REF_MAX)
		return -1;
	return 0;
}

bool ref_is_same(const char *a, const char *b)
{
	char x[REF_MAX];
	char y[REF_MAX];

	return ref_normalise(a, x) == 0 && ref_normalise(b, y) == 0 &&
	       strcmp(x, y) == 0;
}

const char *host_id(void)
{
	static char id[7 + 65];

	if (!id[0]) {
		(void)snprintf(id, sizeof(id), "sha256:");
		visible_sha256("cordon: image host", 18, id + 7);
	}
	return id;
}

bool ref_is_host(const char *text)
{
	const char *digits = id_digits(text);

	if (digits && strlen(digits) >= 6 &&
	    strncmp(host_id() + 7, digits, strlen(digits)) == 0)
		return true;
	return ref_is_same(text, "host");
}

bool ref_may_be_host(const char *text)
{
	const char *digits = id_digits(text);

	return digits && strncmp(host_id() + 7, digits, strlen(digits)) == 0;
}

const char *platform_here(void)
{
	static const struct {
		const char *machine, *name;
	} names[] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };
	static struct utsname u;

	(void)uname(&u);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].machine, u.machine) == 0)
			return names[i].name;
	return u.machine;
}

bool platform_fits(const char *text)
{
	const char *have = platform_here();
	const char *want = strncmp(text, "linux", 5) == 0 ? text + 5 : text;

	want += *want == '/';
	return !*want || (strncmp(want, have, strlen(have)) == 0 &&
			  (!want[strlen(have)] || want[strlen(have)] == '/'));
}

bool container_name_check(const char *name)
{
	size_t len = strlen(name);

	if (len < 2 || len > 255 || !isalnum((unsigned char)name[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_.-", name[i]))
			return false;
	return true;
}

bool user_is_root(const char *user)
{
	size_t len = strcspn(user, ":");

	return (len == 4 && strncmp(user, "root", 4) == 0) ||
	       (len > 0 && strspn(user, "0") == len);
}
