/* SPDX-License-Identifier: Apache-2.0 */

/* Workbenches: what all of them share, and the two kinds of this build. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "tool/box.h"
#include "tool/call.h"

int workbench_init(struct workbench *w, const struct workbench_ops *ops,
		   const char *name, struct err *err)
{
	if (!name || !tool_name_check(name))
		return err_set(err, EINVAL,
			       "toolset '%.64s': a name has 1 to 64 letters, "
			       "digits, '_' and '-'",
			       name ? name : "");
	w->ops = ops;
	(void)snprintf(w->name, sizeof(w->name), "%s", name);
	return 0;
}

void workbench_free(struct workbench *w)
{
	if (!w)
		return;
	while (w->n_tools > 0)
		tool_free(w->tools[--w->n_tools]);
	if (w->ops->free)
		w->ops->free(w);
	else
		free(w);
}

static struct tool *find(const struct workbench *w, const char *name)
{
	for (size_t i = 0; i < w->n_tools; i++)
		if (strcmp(w->tools[i]->name, name) == 0)
			return w->tools[i];
	return NULL;
}

int workbench_add(struct workbench *w, struct tool *t, struct err *err)
{
	int r = 0;

	if (find(w, t->name))
		r = err_set(err, EEXIST, "the toolset '%s' has two tools '%s'",
			    w->name, t->name);
	else if (w->n_tools == WORKBENCH_TOOLS)
		r = err_set(err, E2BIG,
			    "the toolset '%s' has more than %d tools", w->name,
			    WORKBENCH_TOOLS);
	if (r < 0)
		tool_free(t);
	else
		w->tools[w->n_tools++] = t;
	return r;
}

int workbench_rename(struct workbench *w, const char *from, const char *to,
		     struct err *err)
{
	struct tool *t = find(w, from);

	if (!t)
		return err_set(err, ENOENT, "the toolset '%s' has no tool '%s'",
			       w->name, from);
	if (!tool_name_check(to))
		return err_set(err, EINVAL,
			       "'%.64s' is no name for a tool: 1 to 64 "
			       "letters, digits, '_' and '-'",
			       to);
	if (find(w, to) && find(w, to) != t)
		return err_set(err, EEXIST,
			       "the toolset '%s' has a tool '%s' already",
			       w->name, to);
	(void)snprintf(t->name, sizeof(t->name), "%s", to);
	return 0;
}

static bool has_name(const json_t *names, const char *name)
{
	for (size_t i = 0; i < json_array_size(names); i++)
		if (strcmp(json_string_value(json_array_get(names, i)), name) ==
		    0)
			return true;
	return false;
}

int workbench_keep(struct workbench *w, const json_t *names, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));

		if (!name || !find(w, name))
			return err_set(err, ENOENT,
				       "the toolset '%s' has no tool '%.64s'",
				       w->name, name ? name : "");
	}
	for (size_t i = 0; i < w->n_tools; i++) {
		struct tool *t = w->tools[i];

		if (has_name(names, t->name))
			w->tools[n++] = t;
		else
			tool_free(t);
	}
	w->n_tools = n;
	return 0;
}

/* static */

int workbench_static(const char *name, struct workbench **ret, struct err *err)
{
	static const struct workbench_ops ops = { 0 };
	_cleanup_free_ struct workbench *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(err, ENOMEM, "out of memory");
	if (workbench_init(w, &ops, name, err) < 0)
		return -err->code;
	*ret = take_ptr(w);
	return 0;
}

/* sandbox */

struct sandbox {
	struct workbench bench;
	struct keeper *keeper;
};

static int start(struct workbench *w, struct err *err)
{
	return keeper_open(((struct sandbox *)w)->keeper, err);
}

static void stop(struct workbench *w)
{
	keeper_close(((struct sandbox *)w)->keeper);
}

/* One that runs something is kept until that has ended. */
static int reset(struct workbench *w, struct err *err)
{
	struct sandbox *s = (struct sandbox *)w;

	keeper_close(s->keeper);
	return w->is_started ? keeper_open(s->keeper, err) : 0;
}

static void free_sandbox(struct workbench *w)
{
	keeper_unref(((struct sandbox *)w)->keeper);
	free(w);
}

static const struct workbench_ops sandbox_ops = {
	.start = start, .stop = stop, .reset = reset, .free = free_sandbox
};

int workbench_sandbox(const char *name, const struct tool_box *box,
		      struct workbench **ret, struct err *err)
{
	static const char *const names[] = { "run_python", "run_shell",
					     "run_code" };
	struct tool_box shared = *box;
	struct sandbox *s = calloc(1, sizeof(*s));
	struct tool *t = NULL;
	int r = 0;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	r = workbench_init(&s->bench, &sandbox_ops, name, err);
	if (r < 0) {
		free(s);
		return r;
	}
	s->keeper = box->keeper ? keeper_ref(box->keeper)
				: keeper_new(box->cordon);
	if (!s->keeper)
		r = err_set(err, ENOMEM, "out of memory");
	shared.keeper = s->keeper;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
		r = tool_code(&shared, names[i], &t, err);
		if (r == 0)
			r = workbench_add(&s->bench, t, err);
	}
	if (r < 0) {
		workbench_free(&s->bench);
		return err_wrap(err, "toolset '%s'", name);
	}
	*ret = &s->bench;
	return 0;
}
