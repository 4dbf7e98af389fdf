/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void err_format(struct err *err, int code, const char *fmt, va_list ap)
{
	err->code = code;
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
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
	(void)vsnprintf(subject, sizeof(subject), fmt, ap);
	va_end(ap);
	memcpy(rest, err->text, sizeof(rest));
	rest[sizeof(rest) - 1] = '\0';
	(void)snprintf(err->text, sizeof(err->text), "%s: %.300s", subject,
		       rest);
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
