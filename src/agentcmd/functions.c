/* SPDX-License-Identifier: Apache-2.0 */

/* cordon/agent.h: functions of the program that a team's file can name. */

#include "agentcmd/api.h"

#include <errno.h>
#include <string.h>

#include "agent/named.h"
#include "agent/team.h"
#include "base/util.h"

typedef char *speak_fn(void *arg, const char *thread, struct cordon_error *err);
typedef int end_fn(void *arg, const char *messages, struct cordon_error *err);

/* The program's functions; the agents' tables point here. */
static struct named speakers[NAMED_MAX], conditions[NAMED_MAX];

static void tell(const char *name, const struct cordon_error *from,
		 struct fault *why)
{
	fault_set(why, FAULT_HANDLER, "'%s': %s", name,
		  from->text[0] ? from->text : "the function failed");
}

/* "a, b" as a list of names. */
static json_t *names_of(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		size_t len = strcspn(text, ", \n");

		if (len &&
		    json_array_append_new(list, json_stringn(text, len)) < 0)
			break;
		text += len + (text[len] != '\0');
	}
	if (!*text)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *speak(void *arg, const json_t *thread, struct fault *why)
{
	const struct named *f = arg;
	struct cordon_error err = { 0 };
	_cleanup_free_ char *text = json_dumps(thread, JSON_COMPACT);
	_cleanup_free_ char *names = NULL;
	json_t *list = NULL;

	if (text)
		names = ((speak_fn *)f->fn)(f->arg, text, &err);
	if (names && !err.code)
		list = names_of(names);
	if (err.code)
		tell(f->name, &err, why);
	else if (!text || (names && !list))
		fault_set(why, FAULT_INTERNAL, "out of memory");
	return list;
}

static bool is_end(void *arg, const json_t *fresh, struct fault *why)
{
	const struct named *f = arg;
	struct cordon_error err = { 0 };
	_cleanup_free_ char *text = json_dumps(fresh, JSON_COMPACT);
	int r = text ? ((end_fn *)f->fn)(f->arg, text, &err) : 0;

	if (!text)
		fault_set(why, FAULT_INTERNAL, "out of memory");
	else if (r < 0)
		tell(f->name, &err, why);
	return r > 0;
}

static int add(struct named *table, const char *name, named_fn *fn, void *arg,
	       struct err *err)
{
	if (!name || !fn)
		return err_set(err, EINVAL,
			       "a function needs a name, and a "
			       "name a function");
	return named_add(table, name, fn, arg, err);
}

int cordon_agent_add_speaker(const char *name, speak_fn *call, void *arg,
			     struct cordon_error *ret)
{
	struct err err = { 0 };
	int e = add(speakers, name, (named_fn *)call, arg, &err);

	if (e == 0)
		e = selector_register(name, speak,
				      (void *)named_find(speakers, name), &err);
	return e < 0 ? api_give(ret, &err) : 0;
}

int cordon_agent_add_condition(const char *name, end_fn *call, void *arg,
			       struct cordon_error *ret)
{
	struct err err = { 0 };
	int e = add(conditions, name, (named_fn *)call, arg, &err);

	if (e == 0)
		e = termination_register(name, is_end,
					 (void *)named_find(conditions, name),
					 &err);
	return e < 0 ? api_give(ret, &err) : 0;
}
