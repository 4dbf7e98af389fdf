/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * A text that did not fit ends where a character ends: what is cut within one
 * is no UTF-8, and no document takes it. Only the last three bytes can be the
 * beginning of a longer character.
 */
static void err_end(char *text, size_t size, int wanted)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t at = size - 1;
	size_t whole;

	if (wanted < 0 || (size_t)wanted < size)
		return;
	while (at > 1 && size - at < 4 && (p[at - 1] & 0xc0) == 0x80)
		at--;
	whole = p[at - 1] >= 0xf0 ? 4 : p[at - 1] >= 0xe0 ? 3 : 2;
	if (p[at - 1] >= 0xc0 && size - at < whole)
		text[at - 1] = '\0';
}

static void err_format(struct err *err, int code, const char *fmt, va_list ap)
{
	err->code = code;
	err_end(err->text, sizeof(err->text),
		vsnprintf(err->text, sizeof(err->text), fmt, ap));
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -code;
	va_start(ap, fmt);
	err_format(err, code, fmt, ap);
	va_end(ap);
	return -code;
}

int err_errno(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	if (!err)
		return -code;
	va_start(ap, fmt);
	err_format(err, code, fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	(void)snprintf(err->text + len, sizeof(err->text) - len, ": %s",
		       strerror(code));
	return -code;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char subject[160];
	char rest[sizeof(err->text)];
	va_list ap;

	if (!err)
		return -EIO;
	va_start(ap, fmt);
	err_end(subject, sizeof(subject),
		vsnprintf(subject, sizeof(subject), fmt, ap));
	va_end(ap);
	memcpy(rest, err->text, sizeof(rest));
	rest[sizeof(rest) - 1] = '\0';
	/* err_end() takes what was wanted, and 300 is all that is. */
	err_end(rest, 301, (int)strlen(rest));
	err_end(err->text, sizeof(err->text),
		snprintf(err->text, sizeof(err->text), "%s: %.300s", subject,
			 rest));
	return -err->code;
}

int err_stage(struct err *err, const char *stage)
{
	if (!err)
		return -EIO;
	if (!err->stage[0])
		(void)snprintf(err->stage, sizeof(err->stage), "%s", stage);
	return -err->code;
}
