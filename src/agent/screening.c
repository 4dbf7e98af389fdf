/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/screening.h"

#include <stdio.h>
#include <string.h>

#include "runtime/filter-policy.h"

bool screening_prompt(const struct agent *a, unsigned int roles,
		      const char *type, json_t **data, struct fault *why)
{
	const struct screen_view v = { .to = a->name,
				       .type = type,
				       .roles = roles };
	char reason[256];
	json_t *now = NULL;
	enum filter_act act;

	if (!a->screen || !*data)
		return true;
	act = screen_apply(a->screen, &v, *data, &now, reason);
	if (act == FILTER_REJECT) {
		fault_set(why, FAULT_REJECTED, "%s", reason);
		return false;
	}
	if (act == FILTER_REPLACE) {
		json_decref(*data);
		*data = now;
	}
	return true;
}

/* Ids and names are labels to a filter; what it would change is replaced. */
static bool screen_label(const struct agent *a, json_t *call,
			 const char *member, json_t *instead)
{
	const struct screen_view v = { .from = a->name,
				       .type = "ToolCallRequestEvent",
				       .roles = ROLE_ASSISTANT };
	const char *text = json_string_value(json_object_get(call, member));
	char reason[256];
	char *now = NULL;
	bool is_kept = !text || screen_text(a->screen, &v, text, &now,
					    reason) == FILTER_PASS;

	free(now);
	if (!is_kept)
		return json_object_set_new(call, member, instead) == 0;
	json_decref(instead);
	return true;
}

static json_t *screened_calls(const struct agent *a, const json_t *calls)
{
	json_t *list = json_deep_copy(calls);
	size_t i;
	json_t *call;

	json_array_foreach(list, i, call)
	{
		if (!screen_label(a, call, "id",
				  json_sprintf("call-%zu", i + 1)) ||
		    !screen_label(a, call, "name", json_string("masked"))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static char *text_in(const json_t *o, const char *name)
{
	return (char *)json_string_value(json_object_get(o, name));
}

bool screening_answer(const struct agent *a, const struct model_result *r,
		      struct model_result *ret, json_t **holder,
		      struct fault *why)
{
	const struct screen_view v = { .from = a->name,
				       .type = "answer",
				       .roles = ROLE_ASSISTANT };
	char reason[256];
	json_t *now = NULL;
	json_t *o;
	bool is_refused;

	*ret = *r;
	*holder = NULL;
	if (!a->screen)
		return true;
	o = json_pack("{s:s?, s:s?}", "content", r->content, "thought",
		      r->thought);
	is_refused = o && screen_apply(a->screen, &v, o, &now, reason) ==
				  FILTER_REJECT;
	*holder = now ? now : json_incref(o);
	json_decref(o);
	if (is_refused) {
		fault_set(why, FAULT_REJECTED, "%s", reason);
		return false;
	}
	ret->content = text_in(*holder, "content");
	ret->thought = text_in(*holder, "thought");
	ret->calls = r->calls ? screened_calls(a, r->calls) : NULL;
	if (*holder &&
	    (!ret->calls ||
	     json_object_set_new(*holder, "calls", ret->calls) == 0) &&
	    !ret->calls == !r->calls)
		return true;
	fault_set(why, FAULT_INTERNAL, "out of memory");
	return false;
}

bool screening_call(const struct agent *a, const char *arguments, char **ret,
		    char *reason)
{
	const struct screen_view v = { .from = a->name,
				       .type = "ToolCallRequestEvent",
				       .roles = ROLE_ASSISTANT };

	*ret = NULL;
	if (!a->screen)
		return true;
	return screen_text(a->screen, &v, arguments, ret, reason) !=
	       FILTER_REJECT;
}

bool screening_result(const struct agent *a, char **text, bool *is_error)
{
	const struct screen_view v = { .from = a->name,
				       .type = "ToolCallExecutionEvent",
				       .roles = ROLE_TOOL };
	char reason[256];
	char *now = NULL;
	enum filter_act act;

	if (!a->screen || !*text)
		return false;
	act = screen_text(a->screen, &v, *text, &now, reason);
	if (act == FILTER_PASS)
		return false;
	if (act == FILTER_REJECT) {
		*is_error = true;
		if (asprintf(&now, "The result was withheld. Reason: %s",
			     reason) < 0)
			now = NULL;
	}
	free(*text);
	*text = now;
	return true;
}
