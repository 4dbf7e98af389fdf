/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory that runs out: the allocation number `fail_at` fails, of ours and of
 * jansson. The linker's --wrap brings them here (tests/agents/meson.build);
 * `calls` counts them.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

static long calls;
static long fail_at; /* 0: never */

static bool is_failing(void)
{
	if (++calls != fail_at)
		return false;
	errno = ENOMEM;
	return true;
}

/* The linker gives us these names. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_asprintf(char **ret, const char *fmt, ...);
int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);
int __real_vasprintf(char **ret, const char *fmt, va_list ap);
int __wrap___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap);
/* With ASan: whether something is lost. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

void *__wrap_malloc(size_t size)
{
	return is_failing() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return is_failing() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return is_failing() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return is_failing() ? NULL : __real_reallocarray(p, n, size);
}

char *__wrap_strdup(const char *text)
{
	return is_failing() ? NULL : __real_strdup(text);
}

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
	return is_failing() ? -1 : __real_vasprintf(ret, fmt, ap);
}

int __wrap___vasprintf_chk(char **ret, int flag, const char *fmt, va_list ap)
{
	(void)flag;
	return is_failing() ? -1 : __real_vasprintf(ret, fmt, ap);
}

int __wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = __wrap_vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}

int __wrap___asprintf_chk(char **ret, int flag, const char *fmt, ...)
{
	va_list ap;
	int n;

	(void)flag;
	va_start(ap, fmt);
	n = __wrap_vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}
/* NOLINTEND(bugprone-reserved-identifier) */
