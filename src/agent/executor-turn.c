/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn of the code executor.
 *
 *	without a model:  blocks of the messages -> run -> what came of it
 *	with one:	  model -> blocks? -> run -> good? -> model's answer
 *			    ^                       | not, and retries left
 *			    +---- "retry" <- model's decision
 */

#include <string.h>

#include "agent/executor.h"

#define STATE   "executor.turn"
#define VERSION 1

static const char decide_words[] =
	"The code failed. Decide whether another attempt makes sense: answer "
	"with a JSON object with `retry`, true or false, and `reason`.";
static const char answer_words[] =
	"Answer now: say in words what the code showed.";

static struct attempt *attempt_of(struct think *k)
{
	return (struct attempt *)((char *)k -
				  offsetof(struct attempt, w.think));
}

static struct attempt *attempt_new(struct executor *e, struct turn *t)
{
	struct work *w = work_new(sizeof(struct attempt), &e->work, &e->agent,
				  e->context, e->model, t);

	if (!w) {
		turn_done(t, NULL);
		return NULL;
	}
	work_limits(w, e->config);
	((struct attempt *)w)->e = e;
	return work_tools(w, e->belt.set) ? (struct attempt *)w : NULL;
}

static void say(struct attempt *x, const char *text,
		const struct model_usage *u)
{
	json_t *fields = text ? json_pack("{s:s}", "content", text) : NULL;

	work_finish(&x->w, work_chat(&x->w, "TextMessage", fields, u));
}

/* --- running --- */

static void ran(void *arg, struct batch *b);

static struct batch *make_batch(struct attempt *x, json_t *calls)
{
	struct executor *e = x->e;
	struct batch *b = batch_new(&e->belt, &e->agent, x->w.turn, calls);

	if (!b)
		return NULL;
	b->done = ran;
	b->arg = x;
	x->w.batch = b;
	work_calls(&x->w, e->config);
	return b;
}

static void run(struct attempt *x, const json_t *blocks)
{
	json_t *calls = executor_calls(x->e, blocks);
	struct batch *b = calls ? make_batch(x, calls) : NULL;

	json_decref(calls);
	if (b)
		batch_start(b);
	else
		work_fail_short(&x->w);
}

static void suspend(struct attempt *x)
{
	json_t *o = saved_new(STATE, VERSION, NULL);

	if (json_object_set_new(o, "attempt", json_integer(x->n)) < 0) {
		json_decref(o);
		o = NULL;
	}
	work_suspend(&x->w, o);
}

static void tell_run(struct attempt *x, json_t *result)
{
	turn_event(x->w.turn,
		   chat_new("CodeExecutionEvent", x->e->agent.name,
			    json_pack("{s:I, s:O}", "retry_attempt",
				      (json_int_t)x->n, "result", result)));
}

/* --- the model --- */

static void ask(struct attempt *x, const char *words, json_t *schema,
		void (*done)(struct think *k, const struct model_result *r,
			     const struct fault *why))
{
	struct think_about q = { .system = x->e->system,
				 .output_schema = schema };

	if (words)
		q.after = json_pack("[{s:s, s:s, s:s}]", "role", "user",
				    "source", x->e->agent.name, "content",
				    words);
	x->w.think.done = done;
	think_start(&x->w.think, &q);
	json_decref(q.after);
	json_decref(schema);
}

/* Text there must be; false: the turn has failed. */
static bool has_answer(struct attempt *x, const struct model_result *r,
		       const struct fault *why)
{
	if (!r) {
		work_fail(&x->w, why);
		return false;
	}
	work_thought(&x->w, r);
	if (r->content || r->finish == FINISH_STOP)
		return true;
	work_fail_empty(&x->w, r);
	return false;
}

static void answered(struct think *k, const struct model_result *r,
		     const struct fault *why)
{
	struct attempt *x = attempt_of(k);

	if (!has_answer(x, r, why))
		return;
	work_keep(&x->w, r);
	say(x, r->content ? r->content : "", &r->usage);
}

static void generated(struct think *k, const struct model_result *r,
		      const struct fault *why)
{
	struct attempt *x = attempt_of(k);
	json_t *blocks = json_array();
	const char *text = r && r->content ? r->content : "";

	if (!has_answer(x, r, why)) {
		json_decref(blocks);
		return;
	}
	work_keep(&x->w, r);
	if (executor_find(x->e, text, blocks) < 0) {
		work_fail_short(&x->w);
	} else if (json_array_size(blocks) == 0) {
		say(x, text, &r->usage);
	} else {
		json_t *fields = json_pack("{s:I, s:s, s:O}", "retry_attempt",
					   (json_int_t)x->n, "content", text,
					   "code_blocks", blocks);

		turn_event(x->w.turn, work_chat(&x->w, "CodeGenerationEvent",
						fields, &r->usage));
		run(x, blocks);
	}
	json_decref(blocks);
}

static json_t *decision_schema(void)
{
	return json_pack("{s:s, s:{s:s, s:{s:{s:s}, s:{s:s}}, s:[s, s], s:b}}",
			 "name", "retry_decision", "schema", "type", "object",
			 "properties", "retry", "type", "boolean", "reason",
			 "type", "string", "required", "retry", "reason",
			 "additionalProperties", 0);
}

/* What cannot be read is no wish to go on. */
static void decided(struct think *k, const struct model_result *r,
		    const struct fault *why)
{
	struct attempt *x = attempt_of(k);
	json_t *o = r && r->content ? json_loads(r->content, 0, NULL) : NULL;
	bool is_retry = json_is_true(json_object_get(o, "retry"));
	const char *reason = setting_text(o, "reason", "none given");

	if (!has_answer(x, r, why)) {
		json_decref(o);
		return;
	}
	turn_event(x->w.turn,
		   work_chat(&x->w, "ThoughtEvent",
			     json_pack("{s:o}", "content",
				       json_sprintf("%s: %s",
						    is_retry ? "Retry"
							     : "No retry",
						    reason)),
			     &r->usage));
	work_keep(&x->w, r);
	json_decref(o);
	if (is_retry) {
		x->n++;
		ask(x, NULL, NULL, generated);
	} else {
		ask(x, answer_words, NULL, answered);
	}
}

/* What the program said is shown to the model as data. */
static void show_run(struct attempt *x, const char *text)
{
	_cleanup_free_ char *marked = chat_untrusted("code execution", text);

	context_add(x->e->context,
		    marked ? json_pack("{s:s, s:s, s:s}", "role", "user",
				       "source", x->e->agent.name, "content",
				       marked)
			   : NULL);
}

static void go_on(struct attempt *x, const json_t *result)
{
	_cleanup_free_ char *text = executor_report(result);

	if (!text) {
		work_fail_short(&x->w);
	} else if (!x->e->model) {
		say(x, text, NULL);
	} else {
		show_run(x, text);
		if (executor_is_good(result) || x->n >= x->e->max_retries)
			ask(x, answer_words, NULL, answered);
		else
			ask(x, decide_words, decision_schema(), decided);
	}
}

static void ran(void *arg, struct batch *b)
{
	struct attempt *x = arg;
	bool is_cancelled = cancel_is_fired(turn_cancel(x->w.turn));
	json_t *result;

	if (is_cancelled)
		batch_fill(b, "Code execution was cancelled.");
	if (batch_waiting(b) < b->n) {
		suspend(x);
		return;
	}
	result = executor_result(json_array_get(b->details, 0),
				 json_array_get(b->results, 0));
	if (!result) {
		work_fail_short(&x->w);
		return;
	}
	tell_run(x, result);
	batch_drop(take_ptr(x->w.batch));
	if (is_cancelled)
		work_fail_cancelled(&x->w);
	else
		go_on(x, result);
	json_decref(result);
}

/* --- the turn --- */

static int find_in(struct attempt *x, const json_t *chat, json_t *blocks)
{
	_cleanup_free_ char *text = NULL;

	if (!executor_reads(x->e, chat))
		return 0;
	text = chat_to_text(chat);
	return text ? executor_find(x->e, text, blocks) : -ENOMEM;
}

static void run_theirs(struct attempt *x)
{
	json_t *blocks = json_array();
	size_t i;
	json_t *m;
	int r = blocks ? 0 : -ENOMEM;

	json_array_foreach(turn_messages(x->w.turn), i, m) if (r == 0)
		r = find_in(x, m, blocks);
	if (r < 0) {
		work_fail_short(&x->w);
	} else if (json_array_size(blocks) == 0) {
		_cleanup_free_ char *text = executor_no_code(x->e);

		say(x, text, NULL);
	} else {
		run(x, blocks);
	}
	json_decref(blocks);
}

void executor_begin(struct agent *agent, struct turn *t)
{
	struct executor *e = (struct executor *)agent;
	struct attempt *x = attempt_new(e, t);
	size_t i;
	json_t *m;

	if (!x)
		return;
	if (!e->model) {
		run_theirs(x);
		return;
	}
	json_array_foreach(turn_messages(t), i, m) if (executor_reads(e, m))
		work_hear(&x->w, m);
	ask(x, NULL, NULL, generated);
}

void executor_resume(struct agent *agent, struct turn *t,
		     const json_t *suspended, const json_t *answer)
{
	const json_t *state = json_object_get(suspended, "state");
	struct attempt *x = attempt_new((struct executor *)agent, t);
	json_t *calls;

	if (!x)
		return;
	/* A filter may change them; what was suspended stays as it is. */
	calls = json_deep_copy(json_object_get(state, "calls"));
	x->n = setting_int(state, "attempt", 0);
	(void)make_batch(x, calls);
	json_decref(calls);
	if (work_resume(&x->w, STATE, VERSION, suspended, answer))
		batch_start(x->w.batch);
}

void executor_abandon(struct agent *agent, struct turn *t)
{
	struct work *w = ((struct executor *)agent)->work;

	(void)t;
	if (w)
		work_drop(w);
}
