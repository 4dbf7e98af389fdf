/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What of the history a model sees.
 *
 * The whole history is kept; a kind chooses from it. It is chosen in groups:
 * calls of the assistant with all their results are one group, every other
 * message is one of its own. So no call is seen without its results, and no
 * result without its call. The last group is always seen, however small the
 * limit: a model that is asked about nothing answers nothing.
 */

#include "agent/context.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool has_role(const json_t *m, const char *role)
{
	const char *have = json_string_value(json_object_get(m, "role"));

	return have && strcmp(have, role) == 0;
}

static bool is_result(const struct context *c, size_t i)
{
	return has_role(json_array_get(c->messages, i), "tool");
}

/* Where the group begins that ends before `end`; end > 0. */
static size_t group_begin(const struct context *c, size_t end)
{
	size_t at = end - 1;

	while (at > 0 && is_result(c, at))
		at--;
	return at;
}

/* Where the group ends that begins at `begin`. */
static size_t group_end(const struct context *c, size_t begin)
{
	size_t n = json_array_size(c->messages);
	size_t at = begin + 1;

	while (at < n && is_result(c, at))
		at++;
	return at;
}

/* From `begin` on, but no results whose call is not there. */
int context_add_range(const struct context *c, json_t *list, size_t begin,
		      size_t end)
{
	while (begin < end && is_result(c, begin))
		begin++;
	for (; begin < end; begin++)
		if (json_array_append(list,
				      json_array_get(c->messages, begin)) < 0)
			return -ENOMEM;
	return 0;
}

size_t context_tail(const struct context *c, size_t n, size_t from)
{
	size_t size = json_array_size(c->messages);
	size_t begin = size > from ? group_begin(c, size) : size;

	while (begin > from) {
		size_t before = group_begin(c, begin);

		if (before < from || size - before > n)
			break;
		begin = before;
	}
	return begin;
}

static int choose_all(const struct context *c, json_t *list)
{
	return context_add_range(c, list, 0, json_array_size(c->messages));
}

static int choose_last(const struct context *c, json_t *list)
{
	return context_add_range(c, list, context_tail(c, c->n, 0),
				 json_array_size(c->messages));
}

json_t *context_note(size_t left_out)
{
	return json_pack("{s:s, s:s, s:o}", "role", "user", "source", "context",
			 "content",
			 json_sprintf("[%zu %s left out here.]", left_out,
				      left_out == 1 ? "message was"
						    : "messages were"));
}

static int choose_head_tail(const struct context *c, json_t *list)
{
	size_t size = json_array_size(c->messages);
	size_t head = 0;
	size_t tail;

	while (head < size && group_end(c, head) <= c->head)
		head = group_end(c, head);
	tail = context_tail(c, c->tail, head);
	if (context_add_range(c, list, 0, head) < 0)
		return -ENOMEM;
	if (tail > head &&
	    json_array_append_new(list, context_note(tail - head)) < 0)
		return -ENOMEM;
	return context_add_range(c, list, tail, size);
}

/* The tokens of the messages from begin to end; < 0: no memory. */
static int64_t count(const struct context *c, size_t begin, size_t end)
{
	json_t *part = json_array();
	int64_t n = -1;

	if (part && context_add_range(c, part, begin, end) == 0)
		n = model_count_tokens(c->model, part, NULL);
	json_decref(part);
	return n;
}

int64_t context_tail_tokens(const struct context *c, int64_t max, size_t from)
{
	size_t size = json_array_size(c->messages);
	size_t begin = size > from ? group_begin(c, size) : size;
	int64_t sum = count(c, begin, size);

	while (sum >= 0 && begin > from) {
		size_t before = group_begin(c, begin);
		int64_t more = count(c, before, begin);

		if (more < 0)
			return -ENOMEM;
		if (before < from || sum + more > max)
			break;
		sum += more;
		begin = before;
	}
	return sum < 0 ? -ENOMEM : (int64_t)begin;
}

static int choose_tokens(const struct context *c, json_t *list)
{
	int64_t begin = context_tail_tokens(c, c->max, 0);

	if (begin < 0)
		return -ENOMEM;
	return context_add_range(c, list, (size_t)begin,
				 json_array_size(c->messages));
}

static const struct context_kind kinds[] = {
	{ "unbounded", choose_all },           { "last", choose_last },
	{ "head_tail", choose_head_tail },     { "tokens", choose_tokens },
	{ "summary", context_choose_summary },
};

static const struct setting settings[] = {
	{ "kind", SETTING_TEXT },     { "n", SETTING_POSITIVE },
	{ "head", SETTING_POSITIVE }, { "tail", SETTING_POSITIVE },
	{ "max", SETTING_POSITIVE },  { "messages", SETTING_POSITIVE },
	{ "keep", SETTING_POSITIVE }, { "tokens", SETTING_POSITIVE },
	{ "model", SETTING_ANY },     { "prompt", SETTING_TEXT },
};

/* What each kind cannot do without. */
static int check_limits(struct context *c, const json_t *config,
			struct err *err)
{
	const struct model_info *info = c->model ? model_info(c->model) : NULL;
	const char *kind = c->kind->name;

	if (c->max == 0 && info)
		c->max = info->context_window - info->max_output;
	if (strcmp(kind, "last") == 0 && c->n == 0)
		return err_set(err, EINVAL, "/context/n: is missing");
	if (strcmp(kind, "head_tail") == 0 && (c->head == 0 || c->tail == 0))
		return err_set(err, EINVAL,
			       "/context: head and tail are needed");
	if (strcmp(kind, "tokens") == 0 && (!c->model || c->max <= 0))
		return err_set(err, EINVAL,
			       "/context/max: is missing, and the model's "
			       "window is not known");
	if (strcmp(kind, "summary") == 0)
		return context_init_summary(c, config, err);
	return 0;
}

int context_new(const json_t *config, const struct model *m,
		struct context **ret, struct err *err)
{
	const char *kind = setting_text(config, "kind", "unbounded");
	struct context *c;
	size_t i = 0;
	int r = settings_check(config, settings, ARRAY_SIZE(settings), err);

	if (r < 0)
		return err_wrap(err, "/context");
	while (i < ARRAY_SIZE(kinds) && strcmp(kinds[i].name, kind) != 0)
		i++;
	if (i == ARRAY_SIZE(kinds))
		return err_set(err, EINVAL,
			       "/context/kind: no such kind: '%.40s'; there "
			       "are unbounded, last, head_tail, tokens, "
			       "summary",
			       kind);
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, ENOMEM, "out of memory");
	c->kind = &kinds[i];
	c->model = m;
	c->n = (size_t)setting_int(config, "n", 0);
	c->head = (size_t)setting_int(config, "head", 0);
	c->tail = (size_t)setting_int(config, "tail", 0);
	c->max = setting_int(config, "max", 0);
	c->messages = json_array();
	r = c->messages ? check_limits(c, config, err)
			: err_set(err, ENOMEM, "out of memory");
	if (r < 0)
		context_free(c);
	else
		*ret = c;
	return r;
}

void context_free(struct context *c)
{
	if (!c)
		return;
	json_decref(c->messages);
	json_decref(c->loaded);
	json_decref(c->summaries);
	free(c->prompt);
	free(c);
}

void context_add(struct context *c, json_t *message)
{
	if (json_array_append_new(c->messages, message) < 0)
		c->is_short = true;
}

bool context_is_short(const struct context *c)
{
	return c->is_short;
}

json_t *context_messages(const struct context *c)
{
	json_t *list = c->is_short ? NULL : json_array();

	if (list && c->kind->choose(c, list) == 0)
		return list;
	json_decref(list);
	return NULL;
}

size_t context_mark(struct context *c)
{
	/* What is there is there for good: only the last one counts. */
	while (json_array_size(c->summaries) > 1)
		(void)json_array_remove(c->summaries, 0);
	c->n_settled = json_array_size(c->summaries);
	return json_array_size(c->messages);
}

json_t *context_since(const struct context *c, size_t mark)
{
	json_t *list = json_array();

	for (size_t i = mark; i < json_array_size(c->messages); i++)
		if (json_array_append(list, json_array_get(c->messages, i)) <
		    0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

void context_rewind(struct context *c, size_t mark)
{
	while (json_array_size(c->messages) > mark)
		(void)json_array_remove(c->messages,
					json_array_size(c->messages) - 1);
	context_unsummarise(c, c->n_settled);
	c->is_short = false;
}

void context_clear(struct context *c)
{
	context_rewind(c, 0);
	context_unsummarise(c, 0);
}

json_t *context_save(const struct context *c)
{
	return context_save_before(c, SIZE_MAX);
}

json_t *context_save_before(const struct context *c, size_t mark)
{
	json_t *o = saved_new("context", 1, c->loaded);
	json_t *list = json_copy(c->messages);

	while (json_array_size(list) > mark)
		(void)json_array_remove(list, json_array_size(list) - 1);
	if (json_object_set_new(o, "messages", list) < 0 ||
	    context_save_summary(c, mark != SIZE_MAX, o) < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

int context_load(struct context *c, const json_t *state, struct err *err)
{
	const json_t *list = json_object_get(state, "messages");
	json_t *summaries = NULL;
	json_t *copy;
	size_t i;
	json_t *m;

	if (saved_check(state, "context", 1, err) < 0)
		return -EINVAL;
	if (!json_is_array(list))
		return err_set(err, EINVAL, "a context has no messages");
	json_array_foreach(list, i, m) if (
		!json_is_string(json_object_get(
			m, "role"))) return err_set(err, EINVAL,
						    "message %zu of a context "
						    "has no role",
						    i);
	if (context_load_summary(c, state, json_array_size(list), &summaries,
				 err) < 0)
		return -err->code;
	copy = json_copy((json_t *)list);
	if (!copy) {
		json_decref(summaries);
		return err_set(err, ENOMEM, "out of memory");
	}
	json_decref(c->summaries);
	c->summaries = summaries;
	c->n_settled = json_array_size(summaries);
	json_decref(c->messages);
	c->messages = copy;
	json_decref(c->loaded);
	c->loaded = json_incref((json_t *)state);
	c->is_short = false;
	return 0;
}
