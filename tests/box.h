/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Running something in a box from a test, in one line.
 *
 *	struct cordon_result *r = box_run("memory=64m", "timeout=5s",
 *					  BOX_CMD, "python3", "-c", code, NULL);
 *
 * Settings are "name=value" strings up to BOX_CMD, which begins the command.
 * The keeper is found through CORDON_LIBEXEC, else in the build tree; a
 * result is always returned, or the test fails and ends.
 *
 * $CORDON_BUILD/tests/probe is a static program with many small attacks (see
 * probe.c); BOX_PROBE mounts it at /probe.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cordon/cordon.h>

#define BOX_CMD ((const char *)1)

static struct cordon *box_handle;

static inline struct cordon *box_open(void)
{
	struct cordon_error err = { 0 };
	const char *build = getenv("CORDON_BUILD");

	if (!getenv("CORDON_LIBEXEC") && build)
		(void)setenv("CORDON_LIBEXEC", build, 1);
	if (!box_handle)
		box_handle = cordon_open(&err);
	if (!box_handle) {
		printf("# cannot open: %s\n", err.text);
		(void)fflush(NULL);
		_exit(1);
	}
	return box_handle;
}

static inline const char *box_probe(void)
{
	static char text[4200];
	const char *build = getenv("CORDON_BUILD");

	(void)snprintf(text, sizeof(text), "volume=%s/tests/probe:/probe:ro",
		       build ? build : "build");
	return text;
}

#define BOX_PROBE box_probe()

static inline void box_set(struct cordon_spec *s, const char *setting)
{
	struct cordon_error err = { 0 };
	const char *eq = strchr(setting, '=');
	char name[64];
	size_t len = eq ? (size_t)(eq - setting) : strlen(setting);

	memcpy(name, setting, len);
	name[len] = '\0';
	if (cordon_spec_set(s, name, eq ? eq + 1 : NULL, &err) < 0) {
		printf("# cannot set %s: %s\n", setting, err.text);
		(void)fflush(NULL);
		_exit(1);
	}
}

/* Builds a spec from the arguments of box_run(). */
static inline struct cordon_spec *box_spec_va(const char *first, va_list ap)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error err = { 0 };
	const char *argv[64];
	int n = 0;
	const char *word = first;

	for (; word && word != BOX_CMD; word = va_arg(ap, const char *))
		box_set(s, word);
	while (word && n < 63 && (word = va_arg(ap, const char *)))
		argv[n++] = word;
	argv[n] = NULL;
	if (cordon_spec_command(s, argv, &err) < 0) {
		printf("# bad command: %s\n", err.text);
		(void)fflush(NULL);
		_exit(1);
	}
	return s;
}

static inline struct cordon_spec *box_spec(const char *first, ...)
{
	struct cordon_spec *s;
	va_list ap;

	va_start(ap, first);
	s = box_spec_va(first, ap);
	va_end(ap);
	return s;
}

static inline struct cordon_result *box_run_spec(struct cordon_spec *s)
{
	struct cordon_error err = { 0 };
	struct cordon_result *r = NULL;

	if (cordon_run(box_open(), s, &r, &err) < 0) {
		printf("# cannot run: %s\n", err.text);
		(void)fflush(NULL);
		_exit(1);
	}
	cordon_spec_free(s);
	return r;
}

static inline struct cordon_result *box_run(const char *first, ...)
{
	struct cordon_spec *s;
	va_list ap;

	va_start(ap, first);
	s = box_spec_va(first, ap);
	va_end(ap);
	return box_run_spec(s);
}

/* Everything it said, for a failing test. */
static inline void box_show(const struct cordon_result *r)
{
	char *json = cordon_result_json(r);

	printf("# %s", json ? json : "(no memory)\n");
	free(json);
}
