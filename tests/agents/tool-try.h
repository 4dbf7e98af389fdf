/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For tests of tools: a state directory of their own, a policy as text, a
 * call that is waited for.
 */

#include "tests/tap.h"

#include <cordon/cordon.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/util.h"
#include "tool/tool.h"

#define MAX_EVENTS 64

struct
try {
	char dir[128]; /* of this test; state and policy are in it */
	char policy[256];
	struct loop *loop;
	struct toolset *set;
	json_t *events[MAX_EVENTS];
	size_t n_events;
};

/* One call and how it ended. */
struct tried {
	int n; /* outcomes; more than one is one too many */
	enum tool_end end;
	bool is_error;
	char text[65536 + 256];
	json_t *detail;
	json_t *pending;
};

__attribute__((unused)) static void try_write(const char *path,
					      const char *text)
{
	FILE *f = fopen(path, "we");

	CHECK(f != NULL);
	if (!f)
		return;
	(void)fputs(text, f);
	(void)fclose(f);
}

static void try_event(void *arg, const json_t *event)
{
	struct try *t = arg;

	if (t->n_events < MAX_EVENTS)
		t->events[t->n_events++] = json_deep_copy(event);
}

/* The toolset anew, as another process would make it. */
__attribute__((unused)) static void try_set(struct try *t, bool is_interactive)
{
	struct err err = { 0 };
	const struct toolset_options o = { .loop = t->loop,
					   .policy = t->policy,
					   .is_interactive = is_interactive,
					   .event = try_event,
					   .arg = t };

	toolset_free(t->set);
	t->set = NULL;
	if (toolset_new(&o, &t->set, &err) < 0) {
		printf("# %s\n", err.text);
		exit(1);
	}
}

/* `policy`: NULL is `strict`, else its text. */
__attribute__((unused)) static void try_open(struct try *t, const char *policy)
{
	const char *build = getenv("CORDON_BUILD");
	struct err err = { 0 };
	char path[256];

	memset(t, 0, sizeof(*t));
	(void)snprintf(t->dir, sizeof(t->dir), "/tmp/cordon-tool-XXXXXX");
	CHECK(mkdtemp(t->dir) != NULL);
	(void)setenv("CORDON_LIBEXEC", build ? build : "build", 1);
	(void)snprintf(path, sizeof(path), "%s/state", t->dir);
	(void)mkdir(path, 0700);
	(void)setenv("CORDON_STATE_DIR", path, 1);
	(void)snprintf(path, sizeof(path), "%s/run", t->dir);
	(void)mkdir(path, 0700);
	(void)setenv("CORDON_RUNTIME_DIR", path, 1);
	(void)unsetenv("CORDON_POLICY");
	(void)strcpy(t->policy, "strict");
	if (policy) {
		(void)snprintf(t->policy, sizeof(t->policy), "%s/cordon.yaml",
			       t->dir);
		try_write(t->policy, policy);
	}
	CHECK_INT(loop_new(&t->loop, &err), 0);
	try_set(t, false);
}

__attribute__((unused)) static void try_forget_events(struct try *t)
{
	while (t->n_events > 0)
		json_decref(t->events[--t->n_events]);
}

__attribute__((unused)) static void try_close(struct try *t)
{
	char line[200];

	toolset_free(t->set);
	loop_free(t->loop);
	try_forget_events(t);
	(void)snprintf(line, sizeof(line), "rm -rf %s", t->dir);
	CHECK_INT(system(line), 0);
}

__attribute__((unused)) static void try_add(struct try *t, struct tool *tool)
{
	struct err err = { 0 };

	if (toolset_add(t->set, tool, &err) < 0) {
		printf("# %s\n", err.text);
		tap_bad++;
	}
}

__attribute__((unused)) static void tried_take(void *arg,
					       const struct tool_outcome *o)
{
	struct tried *d = arg;
	size_t i;
	json_t *part;

	d->n++;
	d->end = o->end;
	d->is_error = o->result.is_error;
	d->text[0] = '\0';
	json_array_foreach(o->result.content, i, part)
	{
		const char *text = json_string_value(
			json_object_get(part, "text"));
		size_t n = strlen(d->text);

		(void)snprintf(d->text + n, sizeof(d->text) - n, "%s",
			       text ? text : "");
	}
	json_decref(d->detail);
	json_decref(d->pending);
	d->detail = json_incref(o->result.detail);
	d->pending = json_incref(o->pending);
}

__attribute__((unused)) static void tried_done(struct tried *d)
{
	json_decref(d->detail);
	json_decref(d->pending);
	memset(d, 0, sizeof(*d));
}

static bool tried_over(void *arg)
{
	return ((struct tried *)arg)->n > 0;
}

/* What is wanted, waited for. */
__attribute__((unused)) static void try_want(struct try *t,
					     const struct tool_want *w,
					     struct tried *ret)
{
	tried_done(ret);
	toolset_call(t->set, w, tried_take, ret);
	/* Never from within the call. */
	CHECK_INT(ret->n, 0);
	CHECK(loop_run(t->loop, tried_over, ret));
	CHECK_INT(ret->n, 1);
}

__attribute__((unused)) static void try_call(struct try *t, const char *name,
					     const char *arguments,
					     struct tried *ret)
{
	const struct tool_want w = { .id = "call_1",
				     .name = name,
				     .arguments = arguments,
				     .agent = "coder",
				     .run = "r1" };

	try_want(t, &w, ret);
}

/* Everything that is on the ledger; the caller frees it. */
__attribute__((unused)) static char *try_ledger(const struct try *t)
{
	char path[256];
	char chunk[4096];
	struct buf b;
	ssize_t n;
	int fd;

	buf_init(&b, 4 << 20);
	(void)snprintf(path, sizeof(path), "%s/state/ledger/000001.jsonl",
		       t->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, chunk, sizeof(chunk))) > 0)
		(void)buf_add(&b, chunk, (size_t)n);
	fd_close(&fd);
	return b.data ? buf_take(&b) : strdup("");
}

/* How often it is there. */
__attribute__((unused)) static int try_count(const char *text, const char *part)
{
	int n = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}
