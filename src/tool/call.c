/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/util.h"

#define CALL_OF(ptr, member)                                                   \
	((struct call *)((char *)(ptr)-offsetof(struct call, member)))

/* steps */

static void run_step(struct task *t)
{
	struct call *c = CALL_OF(t, task);

	c->step(c);
}

void call_soon(struct call *c, void (*step)(struct call *c))
{
	c->step = step;
	c->task.run = run_step;
	loop_soon(c->set->loop, &c->task);
}

void call_event(struct call *c, json_t *event)
{
	if (event && c->set->event && !c->set->is_ending)
		c->set->event(c->set->arg, event);
	json_decref(event);
}

/* the end */

static void tell(struct call *c)
{
	if (c->is_told)
		return;
	c->is_told = true;
	c->done(c->arg, &c->outcome);
}

static void take_text(struct call *c, bool is_error, const char *text)
{
	struct tool_result r = { 0 };

	result_set(&r, is_error, text);
	call_take(c, &r);
}

static const char *status_of(const struct call *c)
{
	if (cancel_is_late(c->token))
		return "timeout";
	if (cancel_is_fired(c->token))
		return "cancelled";
	if (c->is_unknown)
		return "unknown";
	if (c->decision == DECISION_DENY)
		return "denied";
	return c->outcome.result.is_error ? "error" : "success";
}

/* Nobody is told of an end that is not on the record. */
static void record_end(struct call *c)
{
	struct err err = { 0 };
	char text[700];

	if (c->outcome.end == TOOL_SUSPENDED ||
	    record_call(c, status_of(c), &err) == 0)
		return;
	(void)snprintf(text, sizeof(text),
		       "the call ended (%s), but that could not be recorded: "
		       "%s",
		       status_of(c), err.text);
	json_decref(c->outcome.result.detail);
	c->outcome.result.detail = NULL;
	result_set(&c->outcome.result, true, text);
}

static bool is_busy(const struct call *c)
{
	return c->is_running || c->asking;
}

static void end(struct call *c)
{
	size_t max = c->tool && c->tool->max_result ? c->tool->max_result
						    : CALL_MAX_RESULT;

	result_check_images(&c->outcome.result);
	result_cut(&c->outcome.result, max);
	record_end(c);
	tell(c);
	if (!is_busy(c))
		call_free(c);
}

static void settle(struct call *c)
{
	c->has_outcome = true;
	cancel_unhook(&c->hook);
	timer_stop(&c->grace);
	call_soon(c, end);
}

void call_take(struct call *c, struct tool_result *r)
{
	if (c->has_outcome) {
		tool_result_done(r);
		return;
	}
	c->outcome.end = TOOL_RESULT;
	c->outcome.result = *r;
	*r = (struct tool_result){ 0 };
	settle(c);
}

void call_suspend(struct call *c)
{
	if (c->has_outcome)
		return;
	c->outcome.end = TOOL_SUSPENDED;
	c->outcome.pending = json_incref(c->record);
	settle(c);
}

/* The tool is through with it. */
static void let_go(struct call *c)
{
	c->is_running = false;
	if (c->has_outcome && c->is_told)
		call_soon(c, call_free);
}

void tool_suspend(struct tool_call *tc, json_t *record)
{
	struct call *c = CALL_OF(tc, c);

	if (!record) {
		tool_done_text(tc, true, "out of memory");
		return;
	}
	json_decref(c->record);
	c->record = record;
	let_go(c);
	call_suspend(c);
}

void tool_event(struct tool_call *tc, json_t *event)
{
	struct call *c = CALL_OF(tc, c);

	if (event && c->event && !c->has_outcome)
		c->event(c->event_arg, event);
	json_decref(event);
}

void call_refuse(struct call *c, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	take_text(c, true, text ? text : "out of memory");
}

static void refuse_cancelled(struct call *c)
{
	const char *why = cancel_reason(c->token);

	if (cancel_is_late(c->token))
		call_refuse(c, "Tool call took too long and was ended.");
	else
		call_refuse(c, "Tool call was cancelled: %s",
			    why ? why : "no reason was given");
}

static void forget_judgement(struct call *c)
{
	free(c->judged.text);
	strv_done(&c->judged.changes);
	json_decref(c->judged.blocks);
	c->judged = (struct tool_judgement){ 0 };
}

void call_free(struct call *c)
{
	char *const texts[] = { c->id,       c->name,    c->arguments,
				c->agent,    c->team,    c->run,
				c->approval, c->context, c->traceparent };

	task_drop(&c->task);
	cancel_unhook(&c->hook);
	timer_stop(&c->grace);
	call_ask_end(c);
	if (!c->has_outcome)
		result_set(&c->outcome.result, true,
			   "Tool call was cancelled: the tools are put away");
	tell(c);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	cancel_unref(c->token);
	cancel_unref(c->parent);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	forget_judgement(c);
	json_decref(c->args);
	json_decref(c->suspended);
	json_decref(c->reply);
	json_decref(c->record);
	json_decref(c->outcome.pending);
	tool_result_done(&c->outcome.result);
	free(c);
}

/* cancelling */

static void is_too_slow(struct timer *t)
{
	refuse_cancelled(CALL_OF(t, grace));
}

/* The tool hears it from the token itself; what waits here is ended. */
static void is_cancelled(struct cancel_hook *h, struct cancel *token)
{
	struct call *c = CALL_OF(h, hook);

	(void)token;
	if (c->has_outcome)
		return;
	if (c->asking) {
		call_ask_cancel(c);
		refuse_cancelled(c);
	} else if (c->is_running) {
		c->grace.fire = is_too_slow;
		if (timer_set(c->set->loop, &c->grace,
			      clock_us() + CALL_GRACE_US) < 0)
			refuse_cancelled(c);
	}
}

static int set_token(struct call *c, int64_t deadline)
{
	struct cancel *token = cancel_new(c->set->loop, c->parent, deadline);

	if (!token)
		return -ENOMEM;
	cancel_unhook(&c->hook);
	cancel_unref(c->token);
	c->token = token;
	c->hook.fired = is_cancelled;
	cancel_hook(token, &c->hook);
	return 0;
}

/* the call itself */

void call_run(struct call *c)
{
	int64_t time = c->tool->timeout ? c->tool->timeout : CALL_TIMEOUT_US;
	struct err err = { 0 };

	if (cancel_is_fired(c->token)) {
		refuse_cancelled(c);
		return;
	}
	/* Of what a box holds, the box tells the ledger before it starts. */
	if (!c->tool->is_boxed && !c->was_asked &&
	    record_decision(c, &err) < 0) {
		call_refuse(c, "Tool call was not made: %s", err.text);
		return;
	}
	if (set_token(c, clock_us() + time) < 0) {
		call_refuse(c, "out of memory");
		return;
	}
	c->c.args = c->args;
	c->c.cancel = c->token;
	c->c.answer = c->was_asked ? &c->answer : NULL;
	c->c.denied = c->decision == DECISION_DENY ? &c->judged : NULL;
	c->is_running = true;
	c->tool->ops->call(c->tool, &c->c);
}

void tool_done(struct tool_call *tc, struct tool_result *r)
{
	struct call *c = CALL_OF(tc, c);

	if (!c->is_running) {
		tool_result_done(r);
		return;
	}
	let_go(c);
	call_take(c, r);
}

void tool_done_text(struct tool_call *tc, bool is_error, const char *fmt, ...)
{
	struct tool_result r = { 0 };
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	result_set(&r, is_error || n < 0, n < 0 ? "out of memory" : text);
	if (n < 0)
		text = NULL;
	tool_done(tc, &r);
}

void tool_progress(struct tool_call *tc, const char *text)
{
	struct call *c = CALL_OF(tc, c);
	size_t len = strlen(text);

	if (c->has_outcome || c->told + len > CALL_PROGRESS)
		return;
	c->told += len;
	call_event(c, json_pack("{s:s, s:s, s:s, s:s?, s:s}", "type",
				"tool_progress", "call_id", c->id, "name",
				c->name, "agent", c->agent, "text", text));
}

/* the beginning */

static void refuse_unknown(struct call *c)
{
	struct buf b;

	c->decision = DECISION_DENY;
	(void)snprintf(c->why, sizeof(c->why), "there is no such tool");
	buf_init(&b, 8192);
	for (size_t i = 0; i < c->set->n_tools; i++)
		(void)buf_printf(&b, "%s%s", i ? ", " : "",
				 c->set->tools[i]->name);
	call_refuse(c, "There is no tool '%.64s'. There are: %s", c->name,
		    b.data ? b.data : "none");
	buf_done(&b);
}

static int read_arguments(struct call *c, struct err *err)
{
	const char *text = c->arguments;
	size_t len = strlen(text);
	json_error_t why;

	if (len > CALL_MAX_ARGUMENTS)
		return err_set(err, E2BIG, "more than %u bytes",
			       CALL_MAX_ARGUMENTS);
	if (text[strspn(text, " \t\r\n")] == '\0')
		text = "{}";
	c->args = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	if (!c->args)
		return err_set(err, EINVAL, "not JSON: line %d, column %d: %s",
			       why.line, why.column, why.text);
	if (!json_is_object(c->args))
		return err_set(err, EINVAL, "not a JSON object");
	return schema_validate(c->tool->schema, c->args, err);
}

int call_judge(struct call *c, struct err *err)
{
	struct tool *t = c->tool;

	forget_judgement(c);
	c->c.args = c->args;
	if (t->ops->judge && t->ops->judge(t, &c->c, &c->judged, err) < 0)
		return -err->code;
	rules_decide(c);
	return 0;
}

static void deny(struct call *c, const char *what, const char *why)
{
	c->decision = DECISION_DENY;
	(void)snprintf(c->why, sizeof(c->why), "%s", why);
	call_refuse(c, "%s: %s", what, why);
}

/* What a person was asked about waits for the answer, whatever rules say now.
 */
static bool was_asked(struct call *c)
{
	if (!c->approval || c->decision != DECISION_ALLOW)
		return false;
	c->decision = DECISION_ASK;
	c->rule_text = "asked before";
	(void)snprintf(c->why, sizeof(c->why),
		       "a person was asked about this call");
	return true;
}

/* It was let through before it waited, and asks its own questions. */
static bool goes_on(struct call *c)
{
	if (!c->suspended || !c->tool->has_history ||
	    c->decision == DECISION_DENY)
		return false;
	c->decision = DECISION_ALLOW;
	c->rule_text = "it goes on";
	c->c.suspended = c->suspended;
	c->c.reply = c->reply;
	return true;
}

static void begin(struct call *c)
{
	struct err err = { 0 };

	if (cancel_is_fired(c->token)) {
		refuse_cancelled(c);
		return;
	}
	c->tool = toolset_find(c->set, c->name);
	if (!c->tool)
		refuse_unknown(c);
	else if (rules_find(c, &err) < 0)
		deny(c, "Tool call was denied", err.text);
	else if (read_arguments(c, &err) < 0)
		deny(c, "The arguments are wrong", err.text);
	else if (call_judge(c, &err) < 0)
		deny(c, "Tool call was not made", err.text);
	else if (goes_on(c))
		call_run(c);
	else if (c->decision == DECISION_ASK || was_asked(c))
		call_ask(c);
	else if (c->decision == DECISION_DENY && !c->tool->is_boxed)
		deny(c, "Tool call was denied", c->judged.why);
	else
		/* What a box is denied is told in the form of its results. */
		call_run(c);
}

static char *copy(const char *text, bool *bad)
{
	char *ret = text ? strdup(text) : NULL;

	*bad |= text && !ret;
	return ret;
}

static struct call *call_new(struct toolset *s, const struct tool_want *w)
{
	struct call *c = calloc(1, sizeof(*c));
	bool bad = false;

	if (!c)
		return NULL;
	c->set = s;
	c->begun = clock_us();
	c->id = copy(w->id ? w->id : "", &bad);
	c->name = copy(w->name ? w->name : "", &bad);
	c->arguments = copy(w->arguments ? w->arguments : "", &bad);
	c->agent = copy(w->agent, &bad);
	c->team = copy(w->team, &bad);
	c->run = copy(w->run, &bad);
	c->approval = copy(w->approval, &bad);
	c->context = copy(w->context, &bad);
	c->must_ask = w->must_ask;
	c->parent = cancel_ref(w->cancel);
	c->traceparent = copy(w->traceparent, &bad);
	c->suspended = json_incref(w->suspended);
	c->reply = json_incref(w->reply);
	c->event = w->event;
	c->event_arg = w->event_arg;
	c->c = (struct tool_call){ .id = c->id,
				   .agent = c->agent,
				   .team = c->team,
				   .run = c->run,
				   .traceparent = c->traceparent };
	c->at = &s->calls;
	c->next = s->calls;
	if (c->next)
		c->next->at = &c->next;
	s->calls = c;
	if (!bad && set_token(c, 0) == 0)
		return c;
	c->is_told = true;
	call_free(c);
	return NULL;
}

void toolset_call(struct toolset *s, const struct tool_want *w,
		  void (*done)(void *arg, const struct tool_outcome *o),
		  void *arg)
{
	struct call *c = call_new(s, w);

	if (!c) {
		struct tool_outcome o = { .end = TOOL_RESULT };

		/* The one case without a loop in between: nothing is left. */
		result_set(&o.result, true, "out of memory");
		done(arg, &o);
		tool_result_done(&o.result);
		return;
	}
	c->done = done;
	c->arg = arg;
	call_soon(c, begin);
}
