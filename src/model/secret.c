/* SPDX-License-Identifier: Apache-2.0 */
#include "model/secret.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/util.h"

/* Shorter ones are no secrets, but words such as "none". */
enum { SHORTEST = 5 };

int secret_check(const json_t *ref, struct err *err)
{
	const json_t *env = json_object_get(ref, "env");
	const json_t *file = json_object_get(ref, "file");

	if (json_is_object(ref) && json_object_size(ref) == 1 &&
	    json_string_length(env ? env : file) > 0)
		return 0;
	return err_set(err, EINVAL,
		       "a key is given as {\"env\": \"NAME\"} or {\"file\": "
		       "\"/path\"}, never itself");
}

static int from_file(const char *path, char ret[SECRET_MAX], struct err *err)
{
	ssize_t n = io_read_file(AT_FDCWD, path, ret, SECRET_MAX);

	if (n < 0)
		return err_errno(err, (int)-n, "read the key in '%s'", path);
	return 0;
}

static int from_env(const char *name, char ret[SECRET_MAX], struct err *err)
{
	const char *value = getenv(name);

	if (!value)
		return err_set(err, ENOENT,
			       "the key's variable '%s' is not set", name);
	if (strlen(value) >= SECRET_MAX)
		return err_set(err, E2BIG, "the key in '%s' is too long", name);
	(void)snprintf(ret, SECRET_MAX, "%s", value);
	return 0;
}

/* A line of a header is made of it: nothing may end that line. */
static int trim(char *text)
{
	size_t from = strspn(text, " \t\r\n");
	size_t len = strlen(text);

	while (len > from && isspace((unsigned char)text[len - 1]))
		len--;
	memmove(text, text + from, len - from);
	text[len - from] = '\0';
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			return -EINVAL;
	return text[0] ? 0 : -EINVAL;
}

int secret_read(const json_t *ref, char ret[SECRET_MAX], struct err *err)
{
	const char *env = json_string_value(json_object_get(ref, "env"));
	const char *file = json_string_value(json_object_get(ref, "file"));
	int r = env ? from_env(env, ret, err) : from_file(file, ret, err);

	if (r < 0)
		return r;
	if (trim(ret) < 0) {
		explicit_bzero(ret, SECRET_MAX);
		return err_set(err, EINVAL,
			       "the key in '%s' is empty, or has blanks or "
			       "control characters in it",
			       env ? env : file);
	}
	return 0;
}

void secret_mask(char *text, const char *secret)
{
	size_t len = secret ? strlen(secret) : 0;

	if (!text || len < SHORTEST)
		return;
	for (char *p = strstr(text, secret); p; p = strstr(p, secret))
		memset(p, '*', len);
}
