/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Conditions as a tree: leaves are rows of termination-kinds.c, the rest are
 * groups, `any` and `all`.
 *
 * What has fired keeps its reason until it is reset. A group `all` does not
 * ask such a part again, so its parts may fire in different turns; asking the
 * whole tree again once it has fired is a mistake of the caller, and said.
 *
 * The state has the shape of the tree: {"type","version","reason"} with a
 * leaf's counters or a group's `parts`. It is checked as a whole before any
 * of it is taken.
 */

#include "agent/termination.h"

#include <string.h>

#include "base/util.h"

#define STATE_VERSION 1
#define MAX_DEPTH     200
#define MAX_PARTS     1000
#define MAX_REASON    (64 << 10)

static int make(const json_t *config, int depth, struct termination **ret,
		struct err *err);

static const char *type_name(const struct termination *t)
{
	if (t->kind)
		return t->kind->name;
	return t->is_all ? "all" : "any";
}

void termination_free(struct termination *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_parts; i++)
		termination_free(t->parts[i]);
	free((void *)t->parts);
	json_decref(t->args);
	json_decref(t->seen);
	free(t->reason);
	free(t);
}

static const struct termination_arg *find_arg(
	const struct termination_kind *kind, const char *name)
{
	for (size_t i = 0; i < TERMINATION_ARGS; i++)
		if (kind->args[i].name && strcmp(kind->args[i].name, name) == 0)
			return &kind->args[i];
	return NULL;
}

static bool is_texts(const json_t *v)
{
	size_t i;
	json_t *one;

	if (json_array_size(v) == 0)
		return false;
	json_array_foreach((json_t *)v, i,
			   one) if (json_string_length(one) == 0) return false;
	return true;
}

static bool arg_fits(enum arg_type type, const json_t *v)
{
	switch (type) {
	case ARG_COUNT:
		return json_is_integer(v) && json_integer_value(v) >= 1;
	case ARG_NUMBER:
		/* A year and a trillion are both below it. */
		return json_is_number(v) && json_number_value(v) > 0 &&
		       json_number_value(v) < 1e12;
	case ARG_TEXT:
		return json_string_length(v) > 0;
	case ARG_TEXTS:
		return is_texts(v);
	case ARG_BOOL:
		return json_is_boolean(v);
	}
	return false;
}

static int check_args(const struct termination_kind *kind, json_t *args,
		      struct err *err)
{
	static const char *const wants[] = {
		[ARG_COUNT] = "a whole number above 0",
		[ARG_NUMBER] = "a number above 0",
		[ARG_TEXT] = "a text",
		[ARG_TEXTS] = "a list of texts",
		[ARG_BOOL] = "true or false",
	};
	const char *name;
	json_t *v;

	json_object_foreach(args, name, v)
	{
		const struct termination_arg *a = find_arg(kind, name);

		if (!a)
			return err_set(err, EINVAL, "%s: no such field", name);
		if (!arg_fits(a->type, v))
			return err_set(err, EINVAL, "%s: must be %s", name,
				       wants[a->type]);
	}
	for (size_t i = 0; i < TERMINATION_ARGS; i++)
		if (kind->args[i].is_needed &&
		    !json_object_get(args, kind->args[i].name))
			return err_set(err, EINVAL, "'%s' is missing",
				       kind->args[i].name);
	if (kind->wants_one && json_object_size(args) == 0)
		return err_set(err, EINVAL, "one limit at least is needed");
	return 0;
}

/* {"n":10}, or the first argument alone, or nothing at all. */
static json_t *spell_out(const struct termination_kind *kind, const json_t *v)
{
	const struct termination_arg *first = &kind->args[0];
	json_t *o;

	if (json_is_object(v))
		return json_deep_copy(v);
	o = json_object();
	if (!v || json_is_null(v) || (!first->name && json_is_true(v)))
		return o;
	/* One source needs no list. */
	if (first->type == ARG_TEXTS && json_is_string(v))
		v = json_pack("[O]", (json_t *)v);
	else
		json_incref((json_t *)v);
	if (json_object_set_new(o, first->name ? first->name : "value",
				(json_t *)v) < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static int make_leaf(struct termination *t, const char *name, const json_t *v,
		     struct err *err)
{
	const char *function;

	t->kind = termination_kind_find(name);
	if (!t->kind)
		return err_set(err, EINVAL, "no such condition: '%s'", name);
	t->args = spell_out(t->kind, v);
	if (!t->args)
		return err_set(err, ENOMEM, "out of memory");
	if (check_args(t->kind, t->args, err) < 0)
		return err_wrap(err, "%s", name);
	function = json_string_value(json_object_get(t->args, "name"));
	if (strcmp(name, "function") == 0 &&
	    !termination_has_function(function))
		return err_set(err, EINVAL,
			       "function: none is registered as '%s'",
			       function);
	return 0;
}

static int make_group(struct termination *t, const char *name, const json_t *v,
		      int depth, struct err *err)
{
	size_t n = json_array_size(v);

	if (n == 0 || n > MAX_PARTS)
		return err_set(err, EINVAL,
			       "%s: must be a list of 1 to %d conditions", name,
			       MAX_PARTS);
	t->is_all = strcmp(name, "all") == 0;
	t->parts = calloc(n, sizeof(struct termination *));
	if (!t->parts)
		return err_set(err, ENOMEM, "out of memory");
	while (t->n_parts < n) {
		if (make(json_array_get(v, t->n_parts), depth + 1,
			 &t->parts[t->n_parts], err) < 0)
			return err_wrap(err, "%s[%zu]", name, t->n_parts);
		t->n_parts++;
	}
	return 0;
}

static int fill(struct termination *t, const json_t *config, int depth,
		struct err *err)
{
	void *at = json_object_iter((json_t *)config);
	const char *name;

	if (json_object_size(config) != 1)
		return err_set(err, EINVAL,
			       "a condition is an object with one name, such "
			       "as {\"max_messages\":{\"n\":10}}");
	if (depth > MAX_DEPTH)
		return err_set(err, EINVAL, "deeper than %d levels", MAX_DEPTH);
	name = json_object_iter_key(at);
	if (strcmp(name, "any") == 0 || strcmp(name, "all") == 0)
		return make_group(t, name, json_object_iter_value(at), depth,
				  err);
	return make_leaf(t, name, json_object_iter_value(at), err);
}

static int make(const json_t *config, int depth, struct termination **ret,
		struct err *err)
{
	struct termination *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_set(err, ENOMEM, "out of memory");
	r = fill(t, config, depth, err);
	if (r < 0) {
		termination_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

int termination_new(const json_t *config, struct termination **ret,
		    struct err *err)
{
	return make(config, 0, ret, err);
}

/* Everybody is asked, also after one has fired: each counts for itself. */
static bool look_at_parts(struct termination *t, const struct stop_facts *f,
			  struct buf *why, struct fault *bad)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_parts && bad->code == FAULT_NONE; i++) {
		struct termination *p = t->parts[i];

		if (!p->reason)
			free(termination_check(p, f, bad));
		if (!p->reason)
			continue;
		(void)buf_printf(why, "%s%s", n > 0 ? ", " : "", p->reason);
		n++;
	}
	return t->is_all ? n == t->n_parts : n > 0;
}

static bool look(struct termination *t, const struct stop_facts *f,
		 struct buf *why, struct fault *bad)
{
	return t->kind ? t->kind->look(t, f, why, bad)
		       : look_at_parts(t, f, why, bad);
}

char *termination_check(struct termination *t, const struct stop_facts *f,
			struct fault *ret_fault)
{
	struct buf why;
	bool is_over;

	if (t->reason) {
		fault_set(ret_fault, FAULT_INTERNAL,
			  "the condition '%s' has fired already; reset it "
			  "first",
			  type_name(t));
		return NULL;
	}
	buf_init(&why, MAX_REASON);
	is_over = look(t, f, &why, ret_fault) && ret_fault->code == FAULT_NONE;
	if (is_over)
		t->reason = buf_take(&why);
	buf_done(&why);
	if (is_over && !t->reason)
		fault_set(ret_fault, FAULT_INTERNAL, "out of memory");
	return t->reason ? strdup(t->reason) : NULL;
}

/* Groups: any is over with the first of its parts, all with the last. */
static int64_t group_deadline(const struct termination *t, int64_t started)
{
	int64_t at = 0;

	for (size_t i = 0; i < t->n_parts; i++) {
		const struct termination *p = t->parts[i];
		int64_t one = p->reason ? 0 : termination_deadline(p, started);

		if (t->is_all && !p->reason && one == 0)
			return 0;
		if (one > 0 && (at == 0 || (t->is_all ? one > at : one < at)))
			at = one;
	}
	return at;
}

int64_t termination_deadline(const struct termination *t, int64_t started)
{
	if (!t->kind)
		return group_deadline(t, started);
	if (strcmp(t->kind->name, "timeout") != 0)
		return 0;
	return started +
	       (int64_t)(json_number_value(
				 json_object_get(t->args, "seconds")) *
			 1e6);
}

void termination_set(struct termination *t)
{
	for (size_t i = 0; i < t->n_parts; i++)
		termination_set(t->parts[i]);
	if (t->kind && strcmp(t->kind->name, "external") == 0)
		t->counts[0] = 1;
}

void termination_reset(struct termination *t)
{
	for (size_t i = 0; i < t->n_parts; i++)
		termination_reset(t->parts[i]);
	memset(t->counts, 0, sizeof(t->counts));
	json_decref(t->seen);
	t->seen = NULL;
	free(t->reason);
	t->reason = NULL;
}

static json_t *save_parts(const struct termination *t)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < t->n_parts; i++)
		if (json_array_append_new(list, termination_save(t->parts[i])) <
		    0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

json_t *termination_save(const struct termination *t)
{
	json_t *o = json_pack("{s:s, s:i, s:s?}", "type", type_name(t),
			      "version", STATE_VERSION, "reason", t->reason);
	int bad = 0;

	for (int i = 0; t->kind && i < TERMINATION_COUNTS; i++)
		if (t->kind->counts[i])
			bad |= json_object_set_new(o, t->kind->counts[i],
						   json_integer(t->counts[i]));
	if (t->seen)
		bad |= json_object_set_new(o, "seen", json_deep_copy(t->seen));
	if (!t->kind)
		bad |= json_object_set_new(o, "parts", save_parts(t));
	if (bad) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static int check_leaf_state(const struct termination *t, const json_t *state,
			    struct err *err)
{
	const json_t *seen = json_object_get(state, "seen");

	for (int i = 0; i < TERMINATION_COUNTS; i++) {
		const char *name = t->kind->counts[i];
		const json_t *v = name ? json_object_get(state, name) : NULL;

		if (name && (!json_is_integer(v) || json_integer_value(v) < 0))
			return err_set(err, EINVAL, "%s: '%s' is no count",
				       type_name(t), name);
	}
	if (seen && !json_is_object(seen))
		return err_set(err, EINVAL, "%s: 'seen' is no object",
			       type_name(t));
	return 0;
}

static int check_state(const struct termination *t, const json_t *state,
		       struct err *err)
{
	const json_t *parts = json_object_get(state, "parts");
	const char *type = json_string_value(json_object_get(state, "type"));
	json_int_t version = json_integer_value(
		json_object_get(state, "version"));

	if (!type || strcmp(type, type_name(t)) != 0)
		return err_set(err, EINVAL,
			       "the state is that of '%s', the condition is "
			       "'%s'",
			       type ? type : "nothing", type_name(t));
	if (version != STATE_VERSION)
		return err_set(err, EINVAL, "%s: version %lld is not known",
			       type, (long long)version);
	if (t->kind)
		return check_leaf_state(t, state, err);
	if (json_array_size(parts) != t->n_parts)
		return err_set(err, EINVAL,
			       "%s: the state has %zu parts, not "
			       "%zu",
			       type, json_array_size(parts), t->n_parts);
	for (size_t i = 0; i < t->n_parts; i++)
		if (check_state(t->parts[i], json_array_get(parts, i), err) < 0)
			return err_wrap(err, "%s[%zu]", type, i);
	return 0;
}

static void take_state(struct termination *t, const json_t *state)
{
	const json_t *parts = json_object_get(state, "parts");
	const char *reason = json_string_value(
		json_object_get(state, "reason"));

	termination_reset(t);
	for (size_t i = 0; i < t->n_parts; i++)
		take_state(t->parts[i], json_array_get(parts, i));
	for (int i = 0; t->kind && i < TERMINATION_COUNTS; i++)
		if (t->kind->counts[i])
			t->counts[i] = json_integer_value(
				json_object_get(state, t->kind->counts[i]));
	t->seen = json_deep_copy(json_object_get(state, "seen"));
	t->reason = reason ? strdup(reason) : NULL;
}

int termination_load(struct termination *t, const json_t *state,
		     struct err *err)
{
	int r = check_state(t, state, err);

	if (r == 0)
		take_state(t, state);
	return r;
}

json_t *termination_dump(const struct termination *t)
{
	json_t *list;

	if (t->kind)
		return json_pack("{s:o}", t->kind->name,
				 json_deep_copy(t->args));
	list = json_array();
	for (size_t i = 0; list && i < t->n_parts; i++)
		if (json_array_append_new(list, termination_dump(t->parts[i])) <
		    0) {
			json_decref(list);
			return NULL;
		}
	return json_pack("{s:o}", type_name(t), list);
}
