/* SPDX-License-Identifier: Apache-2.0 */

/* A function of the program as a tool. It runs here and now, in no box. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "tool/call.h"
#include "tool/kinds.h"

struct function {
	struct tool tool;
	tool_fn *fn;
	void *arg;
};

static void call(struct tool *t, struct tool_call *c)
{
	struct function *f = (struct function *)t;
	_cleanup_free_ char *args = json_dumps(c->args, JSON_COMPACT);
	_cleanup_free_ char *text = NULL;
	struct tool_result r = { 0 };
	struct err err = { 0 };

	if (args)
		text = f->fn(f->arg, args, &err);
	else
		(void)err_set(&err, ENOMEM, "out of memory");
	if (text && t->gives_parts)
		r.content = result_parts(text, &err);
	if (r.content)
		tool_done(c, &r);
	else if (text && !t->gives_parts)
		tool_done_text(c, false, "%s", text);
	else
		tool_done_text(c, true, "%s",
			       err.text[0] ? err.text : "it failed");
}

static void free_function(struct tool *t)
{
	free(t);
}

static const struct tool_ops ops = { .call = call, .free = free_function };

int tool_init(struct tool *t, const struct tool_ops *ops_, const char *name,
	      const char *description, const json_t *schema, struct err *err)
{
	size_t len = name ? strlen(name) : 0;

	t->ops = ops_;
	if (len == 0 || len >= sizeof(t->name))
		return err_set(err, EINVAL, "a tool's name has 1 to 64 bytes");
	(void)strcpy(t->name, name);
	t->description = strdup(description ? description : "");
	t->schema = schema ? json_deep_copy(schema)
			   : json_pack("{s:s}", "type", "object");
	if (!t->description || !t->schema) {
		free(t->description);
		json_decref(t->schema);
		return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

int tool_function(const char *name, const char *description,
		  const json_t *schema, tool_fn *fn, void *arg,
		  struct tool **ret, struct err *err)
{
	_cleanup_free_ struct function *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(err, ENOMEM, "out of memory");
	f->fn = fn;
	f->arg = arg;
	if (tool_init(&f->tool, &ops, name, description, schema, err) < 0)
		return -err->code;
	*ret = &take_ptr(f)->tool;
	return 0;
}
