/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/policy-load.h"
#include "ledger/ledger.h"
#include "tool/call.h"

int toolset_policy(const char *given, struct policy **ret, struct err *err)
{
	_cleanup_free_ char *name = NULL;

	if (policy_find(given ? given : getenv("CORDON_POLICY"), &name, err) <
	    0)
		return -err->code;
	return policy_load(name ? name : "strict", ret, err);
}

int toolset_new(const struct toolset_options *o, struct toolset **ret,
		struct err *err)
{
	struct toolset *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->loop = o->loop;
	s->is_interactive = o->is_interactive;
	s->event = o->event;
	s->arg = o->arg;
	if (toolset_policy(o->policy, &s->policy, err) < 0) {
		free(s);
		return err_wrap(err, "tools");
	}
	*ret = s;
	return 0;
}

void tool_free(struct tool *t)
{
	char *description = t->description;
	json_t *schema = t->schema;

	t->ops->free(t);
	free(description);
	json_decref(schema);
}

/* First the tools, which end what they still do; then what is left of it. */
void toolset_free(struct toolset *s)
{
	if (!s)
		return;
	s->is_ending = true;
	for (struct call *c = s->calls; c; c = c->next)
		if (c->token)
			cancel_fire(c->token, "the tools are put away");
	for (size_t i = 0; i < s->n_tools; i++)
		tool_free(s->tools[i]);
	while (s->calls)
		call_free(s->calls);
	toolset_stop(s);
	while (s->n_benches > 0)
		workbench_free(s->benches[--s->n_benches]);
	free((void *)s->benches);
	policy_free(s->policy);
	ledger_close(s->ledger);
	free(s);
}

bool tool_name_check(const char *name)
{
	size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"abcdefghijklmnopqrstuvwxyz0123456789_-");

	return n > 0 && n <= 64 && name[n] == '\0';
}

/* What a policy has rules for must not be something else. */
static bool is_own_name(const char *name)
{
	static const char *const own[] = { "run_python", "run_shell",
					   "run_code",   "read_file",
					   "write_file", "list_files" };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (strcmp(own[i], name) == 0)
			return true;
	return false;
}

static int check(const struct toolset *s, const struct tool *t, struct err *err)
{
	if (!tool_name_check(t->name))
		return err_set(err, EINVAL,
			       "tool '%.64s': a name has 1 to 64 letters, "
			       "digits, '_' and '-'",
			       t->name);
	if (is_own_name(t->name) && (!t->kind || strcmp(t->kind, t->name) != 0))
		return err_set(err, EINVAL,
			       "'%s' is the name of a tool of Cordon's own; "
			       "another tool needs another",
			       t->name);
	if (toolset_find(s, t->name))
		return err_set(err, EEXIST, "there are two tools '%s'",
			       t->name);
	if (s->n_tools == CALL_MAX_TOOLS)
		return err_set(err, E2BIG, "there are more than %d tools",
			       CALL_MAX_TOOLS);
	if (!json_is_object(t->schema))
		return err_set(err, EINVAL, "tool '%s' has no schema", t->name);
	if (schema_check(t->schema, err) < 0)
		return err_wrap(err, "tool '%s'", t->name);
	return 0;
}

int toolset_add(struct toolset *s, struct tool *t, struct err *err)
{
	int r = check(s, t, err);

	if (r < 0)
		tool_free(t);
	else
		s->tools[s->n_tools++] = t;
	return r;
}

static bool has_bench(const struct toolset *s, const char *name)
{
	for (size_t i = 0; i < s->n_benches; i++)
		if (strcmp(s->benches[i]->name, name) == 0)
			return true;
	return false;
}

static int check_bench(const struct toolset *s, const struct workbench *w,
		       struct err *err)
{
	if (has_bench(s, w->name))
		return err_set(err, EEXIST, "there are two toolsets '%s'",
			       w->name);
	if (s->n_tools + w->n_tools > CALL_MAX_TOOLS)
		return err_set(err, E2BIG, "there are more than %d tools",
			       CALL_MAX_TOOLS);
	for (size_t i = 0; i < w->n_tools; i++)
		if (check(s, w->tools[i], err) < 0)
			return err_wrap(err, "toolset '%s'", w->name);
	return 0;
}

int toolset_add_workbench(struct toolset *s, struct workbench *w,
			  struct err *err)
{
	size_t n = s->n_benches + 1;
	int r = check_bench(s, w, err);
	struct workbench **more = NULL;

	if (r == 0)
		more = reallocarray((void *)s->benches, n,
				    sizeof(struct workbench *));
	if (!more) {
		workbench_free(w);
		return r < 0 ? r : err_set(err, ENOMEM, "out of memory");
	}
	s->benches = more;
	s->benches[s->n_benches++] = w;
	for (size_t i = 0; i < w->n_tools; i++)
		s->tools[s->n_tools++] = w->tools[i];
	w->n_tools = 0;
	return 0;
}

/* In their order: so the last that runs is known by a number. */
int toolset_start(struct toolset *s, struct err *err)
{
	for (; s->n_started < s->n_benches; s->n_started++) {
		struct workbench *w = s->benches[s->n_started];

		if (w->ops->start && w->ops->start(w, err) < 0)
			return err_wrap(err, "start the toolset '%s'", w->name);
		w->is_started = true;
	}
	return 0;
}

void toolset_stop(struct toolset *s)
{
	while (s->n_started > 0) {
		struct workbench *w = s->benches[--s->n_started];

		w->is_started = false;
		if (w->ops->stop)
			w->ops->stop(w);
	}
}

int toolset_reset(struct toolset *s, struct err *err)
{
	struct err why = { 0 };

	for (size_t i = 0; i < s->n_tools; i++)
		if (s->tools[i]->ops->reset)
			s->tools[i]->ops->reset(s->tools[i]);
	for (size_t i = 0; i < s->n_benches; i++) {
		struct workbench *w = s->benches[i];
		struct err one = { 0 };

		if (!w->ops->reset || w->ops->reset(w, &one) == 0)
			continue;
		(void)err_wrap(&one, "reset the toolset '%s'", w->name);
		why = why.code ? why : one;
	}
	if (!why.code)
		return 0;
	*err = why;
	return -err->code;
}

struct tool *toolset_find(const struct toolset *s, const char *name)
{
	for (size_t i = 0; i < s->n_tools; i++)
		if (strcmp(s->tools[i]->name, name) == 0)
			return s->tools[i];
	return NULL;
}

static json_t *describe(const struct tool *t)
{
	return json_pack("{s:s, s:s, s:O, s:b}", "name", t->name, "description",
			 t->description ? t->description : "", "parameters",
			 t->schema, "strict", (int)t->is_strict);
}

json_t *toolset_list(const struct toolset *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_tools; i++)
		(void)json_array_append_new(list, describe(s->tools[i]));
	return list;
}

json_t *toolset_list_for(const struct toolset *s, const char *agent)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_tools; i++)
		if (rules_give(s->policy, s->tools[i], agent))
			(void)json_array_append_new(list,
						    describe(s->tools[i]));
	return list;
}

static void keep(json_t *to, const char *name, json_t *state)
{
	if (state)
		(void)json_object_set_new(to, name, state);
}

json_t *toolset_save(const struct toolset *s)
{
	json_t *benches = json_object();
	json_t *tools = json_object();

	for (size_t i = 0; i < s->n_tools; i++) {
		struct tool *t = s->tools[i];

		keep(tools, t->name, t->ops->save ? t->ops->save(t) : NULL);
	}
	for (size_t i = 0; i < s->n_benches; i++) {
		struct workbench *w = s->benches[i];

		keep(benches, w->name, w->ops->save ? w->ops->save(w) : NULL);
	}
	return json_pack("{s:s, s:i, s:o, s:o}", "type", "toolset", "version",
			 1, "tools", tools, "toolsets", benches);
}

static int load_benches(struct toolset *s, const json_t *states,
			struct err *err)
{
	for (size_t i = 0; i < s->n_benches; i++) {
		struct workbench *w = s->benches[i];
		const json_t *own = json_object_get(states, w->name);

		if (own && w->ops->load && w->ops->load(w, own, err) < 0)
			return err_wrap(err, "toolset '%s'", w->name);
	}
	return 0;
}

/* State of a tool that is not here is not an error: it has nothing to do. */
int toolset_load(struct toolset *s, const json_t *state, struct err *err)
{
	const char *type = json_string_value(json_object_get(state, "type"));
	const json_t *tools = json_object_get(state, "tools");

	if (!type || strcmp(type, "toolset") != 0 ||
	    json_integer_value(json_object_get(state, "version")) != 1 ||
	    !json_is_object(tools))
		return err_set(err, EINVAL,
			       "not the state of a toolset, or a newer one");
	for (size_t i = 0; i < s->n_tools; i++) {
		struct tool *t = s->tools[i];
		const json_t *own = json_object_get(tools, t->name);

		if (own && t->ops->load && t->ops->load(t, own, err) < 0)
			return err_wrap(err, "tool '%s'", t->name);
	}
	return load_benches(s, json_object_get(state, "toolsets"), err);
}

json_t *toolset_mark(const struct toolset *s)
{
	json_t *mark = NULL;

	for (size_t i = 0; i < s->n_tools; i++) {
		struct tool *t = s->tools[i];

		if (!t->has_history)
			continue;
		if (!mark)
			mark = json_object();
		keep(mark, t->name, t->ops->save(t));
	}
	return mark;
}

void toolset_rewind(struct toolset *s, const json_t *mark)
{
	struct err err = { 0 };

	for (size_t i = 0; i < s->n_tools; i++) {
		struct tool *t = s->tools[i];
		const json_t *was = json_object_get(mark, t->name);

		if (t->has_history && was)
			(void)t->ops->load(t, was, &err);
	}
}

void toolset_pause(struct toolset *s, bool is_paused)
{
	for (size_t i = 0; i < s->n_tools; i++)
		if (s->tools[i]->ops->pause)
			s->tools[i]->ops->pause(s->tools[i], is_paused);
}

unsigned int toolset_depth(const struct toolset *s)
{
	unsigned int most = 0;

	for (size_t i = 0; i < s->n_tools; i++)
		most = MAX(most, s->tools[i]->depth);
	return most;
}
