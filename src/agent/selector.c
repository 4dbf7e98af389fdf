/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A model says who is next.
 *
 * A function of the program is asked first, where one is named; then, unless
 * only one candidate is left, the model, which has to answer with exactly one
 * name. An answer that will not do is given back to it with what is wrong,
 * and it is asked again; after so many attempts it is the previous speaker,
 * or the first candidate where nobody may speak twice. Whoever it is becomes
 * the previous speaker, on every way there is.
 */

#include <string.h>

#include "agent/parts.h"
#include "agent/screening.h"
#include "agent/selector.h"
#include "agent/team-parts.h"
#include "base/util.h"
#include "runtime/filter-policy.h"

#define VERSION 1

struct selector {
	struct team *team;
	char *prompt, *selector_func, *candidate_func;
	bool may_repeat;
	unsigned int max_attempts;
	char *previous; /* or NULL */

	/* While it chooses. */
	struct speaker_choice choice;
	struct cancel *cancel;
	const json_t *thread;
	json_t *candidates; /* names */
	json_t *dialogue;   /* with the model */
	unsigned int attempts;
	struct model_call *call;
	struct task task;
};

/* --- the end of a choice --- */

static void forget(struct selector *s)
{
	json_decref(take_ptr(s->candidates));
	json_decref(take_ptr(s->dialogue));
	s->attempts = 0;
}

static void give_up(struct selector *s, const struct fault *why)
{
	forget(s);
	s->choice.done(s->choice.arg, NULL, why);
}

static void give_up_text(struct selector *s, enum fault_code code,
			 const char *text)
{
	struct fault why = { 0 };

	fault_set(&why, code, "%s", text);
	give_up(s, &why);
	fault_done(&why);
}

static void decide(struct selector *s, const char *name)
{
	json_t *names = json_pack("[s]", name);
	char *previous = strdup(name);

	if (!names || !previous) {
		json_decref(names);
		free(previous);
		give_up_text(s, FAULT_INTERNAL, "out of memory");
		return;
	}
	free(s->previous);
	s->previous = previous;
	forget(s);
	s->choice.done(s->choice.arg, names, NULL);
	json_decref(names);
}

static bool is_previous(const struct selector *s, const char *name)
{
	return s->previous && strcmp(s->previous, name) == 0;
}

static bool is_candidate(const struct selector *s, const char *name)
{
	size_t i;
	json_t *c;

	json_array_foreach(s->candidates, i,
			   c) if (strcmp(json_string_value(c), name) ==
				  0) return true;
	return false;
}

/* The model could not say it. */
static void fall_back(struct selector *s)
{
	size_t i;
	json_t *c;

	if (s->may_repeat && s->previous) {
		decide(s, s->previous);
		return;
	}
	json_array_foreach(s->candidates, i,
			   c) if (s->may_repeat ||
				  !is_previous(s, json_string_value(c))) break;
	if (i == json_array_size(s->candidates))
		i = 0; /* only the previous one is left */
	decide(s, json_string_value(json_array_get(s->candidates, i)));
}

/* --- the dialogue with the model --- */

static void ask(struct selector *s);

/* NULL: it will do, and `ret` is who; else what is wrong with it. */
static const char *judge(const struct selector *s, const char *text,
			 const char **ret)
{
	const char *names[64];
	size_t n = MIN(team_size(s->team), ARRAY_SIZE(names));
	size_t at = 0;
	size_t found;

	for (size_t i = 0; i < n; i++)
		names[i] = team_member(s->team, i);
	found = selector_name_find(text, names, n, &at);
	if (found == 0)
		return "No name was in your answer.";
	if (found > 1)
		return "More than one name was in your answer.";
	*ret = names[at];
	if (is_previous(s, names[at]) && !s->may_repeat)
		return "That participant has just spoken.";
	if (!is_candidate(s, names[at]))
		return "That participant cannot speak now.";
	return NULL;
}

static void say(struct selector *s, const char *role, const char *source,
		const char *text)
{
	(void)json_array_append_new(s->dialogue,
				    json_pack("{s:s, s:s, s:s}", "role", role,
					      "source", source, "content",
					      text));
}

static void try_again(struct selector *s, const char *answer, const char *wrong)
{
	_cleanup_free_ char *names = json_dumps(s->candidates, 0);
	_cleanup_free_ char *text = NULL;

	if (++s->attempts >= s->max_attempts) {
		fall_back(s);
		return;
	}
	if (asprintf(&text,
		     "%s Answer with exactly one of %s, and nothing else.",
		     wrong, names ? names : "the participants") < 0)
		text = NULL;
	say(s, "assistant", "selector", answer);
	say(s, "user", "team", text ? text : wrong);
	ask(s);
}

/* Money and tokens of choosing are the run's, too. */
static void charge(struct selector *s, const struct model_result *r)
{
	struct account *a = &s->team->run.used;

	a->prompt += r->usage.prompt;
	a->completion += r->usage.completion;
	a->cost += r->usage.cost;
}

static void on_answer(void *arg, const struct model_result *r,
		      const struct fault *why)
{
	struct selector *s = arg;
	const char *text = r && r->content ? r->content : "";
	const char *name = NULL;
	const char *wrong;

	s->call = NULL;
	if (!r) {
		give_up(s, why);
		return;
	}
	charge(s, r);
	if (s->team->emit_events)
		team_note(s->team,
			  chat_new("SelectorEvent", s->team->name,
				   json_pack("{s:s}", "content", text)));
	wrong = judge(s, text, &name);
	if (budget_passed(&s->team->budget, &s->team->run.used))
		give_up_text(s, FAULT_CANCELLED, "the budget is used up");
	else if (wrong)
		try_again(s, text, wrong);
	else
		decide(s, name);
}

static void ask(struct selector *s)
{
	static const struct model_events events = { .done = on_answer };
	const struct model_request q = { .messages = s->dialogue,
					 .cancel = s->cancel };

	s->call = model_start(s->team->model, &q, &events, s);
	if (!s->call)
		give_up_text(s, FAULT_INTERNAL, "out of memory");
}

/* The team's own words, with descriptions of the participants in them. */
static void ask_model(struct selector *s)
{
	_cleanup_free_ char *text = selector_prompt(s->team, s->prompt,
						    s->candidates, s->thread);
	json_t *prompt = text ? json_string(text) : NULL;
	struct fault why = { 0 };

	s->dialogue = json_array();
	if (!prompt || !s->dialogue) {
		give_up_text(s, FAULT_INTERNAL, "out of memory");
	} else if (!screening_prompt(s->team->members[0]->agent, ROLE_SYSTEM,
				     "selector", &prompt, &why)) {
		give_up(s, &why);
	} else {
		say(s, "user", "team", json_string_value(prompt));
		ask(s);
	}
	fault_done(&why);
	json_decref(prompt);
}

/* --- who can be next --- */

static json_t *everybody(const struct selector *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < team_size(s->team); i++) {
		const char *name = team_member(s->team, i);

		if ((s->may_repeat || !is_previous(s, name)) &&
		    json_array_append_new(list, json_string(name)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static void choose_candidate(struct selector *s)
{
	struct fault why = { 0 };

	if (s->candidate_func) {
		s->candidates = selector_call(s->team, s->candidate_func,
					      s->thread, &why);
		if (!s->candidates && !why.code)
			fault_set(&why, FAULT_HANDLER, "'%s' has no candidate",
				  s->candidate_func);
	} else {
		s->candidates = everybody(s);
		if (!s->candidates)
			fault_set(&why, FAULT_INTERNAL, "out of memory");
	}
	if (why.code)
		give_up(s, &why);
	else if (json_array_size(s->candidates) == 1)
		decide(s, json_string_value(json_array_get(s->candidates, 0)));
	else
		ask_model(s);
	fault_done(&why);
}

static void choose(struct task *task)
{
	struct selector *s = (struct selector *)((char *)task -
						 offsetof(struct selector,
							  task));
	struct fault why = { 0 };
	json_t *names = NULL;

	if (team_size(s->team) == 1) {
		decide(s, team_member(s->team, 0));
		return;
	}
	if (s->selector_func)
		names = selector_call(s->team, s->selector_func, s->thread,
				      &why);
	if (why.code)
		give_up(s, &why);
	else if (names)
		decide(s, json_string_value(json_array_get(names, 0)));
	else
		choose_candidate(s);
	json_decref(names);
	fault_done(&why);
}

static void next(void *own, const json_t *thread, struct cancel *cancel,
		 struct speaker_choice choice)
{
	struct selector *s = own;

	s->thread = thread;
	s->cancel = cancel;
	s->choice = choice;
	loop_soon(s->team->loop, &s->task);
}

/* --- its life --- */

static void selector_free(void *own)
{
	struct selector *s = own;

	task_drop(&s->task);
	if (s->call)
		model_drop(s->call);
	forget(s);
	free(s->prompt);
	free(s->selector_func);
	free(s->candidate_func);
	free(s->previous);
	free(s);
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static int check(const struct selector *s, struct err *err)
{
	const char *const functions_of[] = { s->selector_func,
					     s->candidate_func };

	for (size_t i = 0; i < ARRAY_SIZE(functions_of); i++)
		if (functions_of[i] && !selector_has_function(functions_of[i]))
			return err_set(err, EINVAL,
				       "no function is registered as '%s'",
				       functions_of[i]);
	if (team_size(s->team) > 64)
		return err_set(err, EINVAL, "more than 64 participants");
	if (!s->prompt)
		return err_set(err, ENOMEM, "out of memory");
	if (!s->team->model && team_size(s->team) > 1)
		return err_set(err, EINVAL, "a selector needs a model");
	return 0;
}

static int make(struct team *t, const json_t *config, void **ret,
		struct err *err)
{
	struct selector *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->team = t;
	s->task.run = choose;
	s->prompt = copy(setting_text(config, "prompt", selector_default));
	s->selector_func = copy(setting_text(config, "selector_func", NULL));
	s->candidate_func = copy(setting_text(config, "candidate_func", NULL));
	s->may_repeat = setting_bool(config, "allow_repeated_speaker", false);
	s->max_attempts = (unsigned int)setting_int(config,
						    "max_selector_attempts", 3);
	r = check(s, err);
	if (r < 0)
		selector_free(s);
	else
		*ret = s;
	return r;
}

static void reset(void *own)
{
	struct selector *s = own;

	free(take_ptr(s->previous));
}

static json_t *save(void *own)
{
	const struct selector *s = own;

	return json_pack("{s:s, s:i, s:s?}", "type", "selector", "version",
			 VERSION, "previous", s->previous);
}

static int load(void *own, const json_t *state, struct err *err)
{
	struct selector *s = own;
	const char *previous = json_string_value(
		json_object_get(state, "previous"));
	int r = saved_check(state, "selector", VERSION, err);

	if (r < 0)
		return r;
	if (previous && !team_find(s->team, previous))
		return err_set(err, EINVAL, "'%s' is no participant", previous);
	free(s->previous);
	s->previous = copy(previous);
	return 0;
}

static const struct setting settings[] = {
	{ "prompt", SETTING_TEXT },
	{ "allow_repeated_speaker", SETTING_BOOL },
	{ "max_selector_attempts", SETTING_POSITIVE },
	{ "selector_func", SETTING_TEXT },
	{ "candidate_func", SETTING_TEXT },
};

const struct team_kind team_selector = { .name = "selector",
					 .settings = settings,
					 .n_settings = ARRAY_SIZE(settings),
					 .make = make,
					 .next = next,
					 .reset = reset,
					 .save = save,
					 .load = load,
					 .free = selector_free };
