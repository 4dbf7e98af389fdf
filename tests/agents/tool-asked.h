/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A tool that asks, and the desk as a person uses it. */

#include "tool-try.h"

#include <sys/wait.h>

static int n_made;

static char *touch(void *arg, const char *args, struct err *err)
{
	(void)arg;
	(void)err;
	n_made++;
	return strdup(args);
}

static struct tool *make(const char *name)
{
	struct tool *t = NULL;
	struct err err = { 0 };

	CHECK_INT(tool_function(name, "changes the host", NULL, touch, NULL, &t,
				&err),
		  0);
	return t;
}

/* Runs the desk as a person does; its status. */
static int desk(const char *fmt, ...) PRINTF(1, 2);
static int desk(const char *fmt, ...)
{
	char words[200];
	char line[700];
	va_list ap;
	int status;

	va_start(ap, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	(void)snprintf(line, sizeof(line),
		       "%s/cordon-desk approvals %s >%s/said 2>&1",
		       getenv("CORDON_LIBEXEC"), words,
		       getenv("CORDON_STATE_DIR"));
	status = system(line);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char said[16384];

__attribute__((unused)) static const char *desk_said(void)
{
	char path[256];
	FILE *f;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "%s/said",
		       getenv("CORDON_STATE_DIR"));
	f = fopen(path, "re");
	if (f) {
		n = fread(said, 1, sizeof(said) - 1, f);
		(void)fclose(f);
	}
	said[n] = '\0';
	(void)unlink(path);
	return said;
}

static void call(struct try *t, const char *args, const char *approval,
		 struct tried *ret)
{
	const struct tool_want w = { .id = "call_1",
				     .name = "touch",
				     .arguments = args,
				     .agent = "coder",
				     .team = "t",
				     .run = "r1",
				     .approval = approval };

	try_want(t, &w, ret);
}

static const char *text(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

/* Suspends; the id. */
__attribute__((unused)) static void suspend(struct try *t, const char *args,
					    struct tried *d, char id[16])
{
	call(t, args, NULL, d);
	CHECK_INT(d->end, TOOL_SUSPENDED);
	CHECK(text(d->pending, "id") != NULL);
	(void)snprintf(id, 16, "%s",
		       d->pending && text(d->pending, "id")
			       ? text(d->pending, "id")
			       : "none");
}

__attribute__((unused)) static void restart(struct try *t)
{
	try_set(t, false);
	try_add(t, make("touch"));
	try_forget_events(t);
}
