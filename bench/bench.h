/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the measuring programs share: a clock, a way out, a handle.
 *
 * They are ordinary users of the public library. Each prints its raw samples
 * as lines of tab-separated values on standard output; report.py makes
 * medians, tables and verdicts of them.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cordon/cordon.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(
	const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)fputs("bench: ", stderr);
	(void)vfprintf(stderr, format, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	exit(2);
}

/* A number from the command line, from 1 to max. */
static inline unsigned int number(const char *text, unsigned int max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || n < 1 || n > max)
		die("'%s' is not a number from 1 to %u", text, max);
	return (unsigned int)n;
}

static inline struct cordon *open_handle(void)
{
	struct cordon_error err = { 0 };
	struct cordon *c = cordon_open(&err);

	if (!c)
		die("%s", err.text);
	return c;
}

static inline struct cordon_spec *new_spec(const char *const *argv)
{
	struct cordon_error err = { 0 };
	struct cordon_spec *s = cordon_spec_new();

	if (!s)
		die("out of memory");
	if (cordon_spec_command(s, argv, &err) < 0)
		die("%s", err.text);
	return s;
}
