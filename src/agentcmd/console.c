/* SPDX-License-Identifier: Apache-2.0 */
#include "agentcmd/console.h"

#include <stdio.h>
#include <string.h>

#include "agentcmd/console-text.h"
#include "agent/agent.h"
#include "tool/tool.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"

#define OUT_MAX ((size_t)16 << 20)

void console_init(struct console *c, bool is_colour, bool is_stats)
{
	memset(c, 0, sizeof(*c));
	buf_init(&c->out, OUT_MAX);
	c->is_colour = is_colour;
	c->is_stats = is_stats;
	c->started = clock_us();
}

void console_done(struct console *c)
{
	buf_done(&c->out);
}

int console_flush(struct console *c, int fd)
{
	int e = c->out.len ? io_write_all(fd, c->out.data, c->out.len) : 0;

	buf_done(&c->out);
	buf_init(&c->out, OUT_MAX);
	return e;
}

static const char *text_of(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

static void end_line(struct console *c)
{
	if (c->is_mid_line)
		(void)buf_puts(&c->out, "\n");
	c->is_mid_line = false;
}

/* "---------- TextMessage (writer) ----------" */
static void header_as(struct console *c, const json_t *event, const char *type)
{
	const char *source = text_of(event, "source");

	end_line(c);
	paint(c, PAINT_HEAD);
	(void)buf_puts(&c->out, "---------- ");
	put_word(c, type ? type : "event");
	(void)buf_puts(&c->out, " (");
	put_word(c, source ? source : "?");
	(void)buf_puts(&c->out, ") ----------");
	paint(c, PAINT_NONE);
	(void)buf_puts(&c->out, "\n");
}

static void show_usage(struct console *c, const json_t *event)
{
	const json_t *u = json_object_get(event, "models_usage");
	int64_t prompt = json_integer_value(
		json_object_get(u, "prompt_tokens"));
	int64_t completion = json_integer_value(
		json_object_get(u, "completion_tokens"));

	if (!json_is_object(u))
		return;
	c->prompt += prompt;
	c->completion += completion;
	c->cost += json_number_value(json_object_get(u, "cost"));
	if (c->is_stats) {
		end_line(c);
		paint(c, PAINT_DIM);
		(void)buf_printf(&c->out,
				 "[Prompt tokens: %lld, Completion tokens: "
				 "%lld]",
				 (long long)prompt, (long long)completion);
		paint(c, PAINT_NONE);
		(void)buf_puts(&c->out, "\n");
	}
}

static void header(struct console *c, const json_t *event)
{
	header_as(c, event, text_of(event, "type"));
}

/* messages */

static void show_message(struct console *c, const json_t *event)
{
	const char *id = text_of(event, "id");
	_cleanup_free_ char *text = chat_to_text(event);
	const char *source = text_of(event, "source");

	c->messages++;
	if (source && strcmp(source, "user") != 0)
		c->turns++;
	/* Its chunks were shown already. */
	if (id && *c->chunks_of && strcmp(id, c->chunks_of) == 0) {
		end_line(c);
		c->chunks_of[0] = '\0';
		return;
	}
	header(c, event);
	put_lines(c, text ? text : "", "");
}

/* `of`: whose were shown last; `type`: what they will have been. */
static void show_chunk_of(struct console *c, const json_t *event, char of[64],
			  const char *type)
{
	const char *id = text_of(event, "full_message_id");
	const char *text = text_of(event, "content");

	/* One that a filter has emptied is not shown; the message will be. */
	if (!text || !*text)
		return;
	if (!id || strcmp(id, of) != 0) {
		header_as(c, event, type);
		(void)snprintf(of, 64, "%s", id ? id : "");
	}
	put_running(c, text);
}

static void show_chunk(struct console *c, const json_t *event)
{
	show_chunk_of(c, event, c->chunks_of, "TextMessage");
}

static void show_thought_chunk(struct console *c, const json_t *event)
{
	show_chunk_of(c, event, c->thoughts_of, "ThoughtEvent");
}

/* events */

static void show_calls(struct console *c, const json_t *event)
{
	json_t *call;
	size_t i;

	header(c, event);
	json_array_foreach(json_object_get(event, "content"), i, call)
	{
		const char *name = text_of(call, "name");
		const char *args = text_of(call, "arguments");

		c->tool_calls++;
		paint(c, PAINT_CALL);
		put_word(c, name ? name : "?");
		paint(c, PAINT_NONE);
		put_arguments(c, args ? args : "{}");
	}
}

bool console_is_denied(const json_t *result)
{
	static const char *const begins[] = { "Tool call was denied",
					      "Tool call was not approved" };
	const char *cause = text_of(json_object_get(result, "detail"), "cause");
	const char *text = text_of(result, "content");

	if (cause && strcmp(cause, "denied") == 0)
		return true;
	for (size_t i = 0; text && i < ARRAY_SIZE(begins); i++)
		if (strncmp(text, begins[i], strlen(begins[i])) == 0)
			return json_is_true(
				json_object_get(result, "is_error"));
	return false;
}

bool console_is_unknown(const json_t *result)
{
	const char *status = text_of(json_object_get(result, "detail"),
				     "status");
	const char *text = text_of(result, "content");

	return (status && strcmp(status, "unknown") == 0) ||
	       (text &&
		strncmp(text, TOOL_UNKNOWN, sizeof(TOOL_UNKNOWN) - 1) == 0);
}

/* In a word, what became of a call. */
static const char *verdict_of(const json_t *result, const json_t *box)
{
	bool is_error = json_is_true(json_object_get(result, "is_error"));

	if (console_is_denied(result))
		return "denied";
	if (console_is_unknown(result))
		return "outcome unknown";
	return is_error && !json_is_object(box) ? "error" : "allowed";
}

/* "run_python: allowed; the box: exited, status 0, 41 ms, 9 MiB" */
static void show_verdict(struct console *c, const char *name,
			 const json_t *result, const json_t *box)
{
	bool is_denied = console_is_denied(result);
	bool is_error = json_is_true(json_object_get(result, "is_error"));

	paint(c, is_denied ? PAINT_BAD : is_error ? PAINT_WARN : PAINT_GOOD);
	put_word(c, name ? name : "?");
	(void)buf_printf(&c->out, ": %s", verdict_of(result, box));
	paint(c, PAINT_NONE);
	if (json_is_object(box) && !console_is_unknown(result)) {
		const char *cause = text_of(box, "cause");

		(void)buf_puts(&c->out, "; box: ");
		put_word(c, cause ? cause : "?");
		(void)buf_printf(&c->out, ", status %lld, %lld ms",
				 (long long)json_integer_value(
					 json_object_get(box, "exit_code")),
				 (long long)json_number_value(
					 json_object_get(box,
							 "execution_time_ms")));
	}
	(void)buf_puts(&c->out, "\n");
}

/* What a box said, as it was: the model gets it wrapped up. */
static void show_box(struct console *c, const json_t *box)
{
	static const char *const parts[] = { "stdout", "stderr", "message" };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const char *text = text_of(box, parts[i]);

		if (text && *text)
			put_lines(c, text, "  ");
	}
}

static void show_results(struct console *c, const json_t *event)
{
	json_t *r;
	size_t i;

	header(c, event);
	json_array_foreach(json_object_get(event, "content"), i, r)
	{
		const json_t *box = json_object_get(r, "detail");
		const char *text = text_of(r, "content");

		c->denials += console_is_denied(r);
		c->unknown += console_is_unknown(r);
		show_verdict(c, text_of(r, "name"), r, box);
		if (json_is_string(json_object_get(box, "stdout")))
			show_box(c, box);
		else
			put_lines(c, text ? text : "", "  ");
	}
}

static void show_code(struct console *c, const json_t *event)
{
	const json_t *result = json_object_get(event, "result");
	const char *cause = text_of(result, "cause");
	json_t *as = json_pack("{s:b, s:O?}", "is_error",
			       cause && strcmp(cause, "exited") != 0, "detail",
			       result);

	c->tool_calls++;
	c->denials += console_is_denied(as);
	c->unknown += console_is_unknown(as);
	header(c, event);
	show_verdict(c, "code", as, result);
	json_decref(as);
	show_box(c, result);
}

static void show_text(struct console *c, const json_t *event)
{
	_cleanup_free_ char *text = chat_to_text(event);

	header(c, event);
	put_lines(c, text ? text : "", "  ");
}

static void show_thought(struct console *c, const json_t *event)
{
	const char *id = text_of(event, "id");

	if (!id || strcmp(id, c->thoughts_of) != 0)
		show_text(c, event);
}

/* {"id","tool","arguments",...}: what a person is asked. */
static void show_approval(struct console *c, const json_t *event)
{
	const json_t *a = json_object_get(event, "approval");
	const char *id = text_of(a, "id");
	const char *tool = text_of(a, "tool");

	header(c, event);
	put_word(c, tool ? tool : "a call");
	(void)buf_puts(&c->out, " waits for a person: cordon approvals show ");
	put_word(c, id ? id : "?");
	(void)buf_puts(&c->out, "\n");
}

static void show_decision(struct console *c, const json_t *event)
{
	const json_t *a = json_object_get(event, "decision");
	bool is_allowed = json_is_true(json_object_get(a, "approved"));
	bool is_unknown = json_object_get(a, "outcome");
	const char *why = text_of(a, "reason");

	header(c, event);
	paint(c, is_unknown ? PAINT_WARN : is_allowed ? PAINT_GOOD : PAINT_BAD);
	(void)buf_puts(&c->out, is_unknown ? "approved before, outcome unknown"
				: is_allowed ? "approved"
					     : "not approved");
	paint(c, PAINT_NONE);
	if (why && *why) {
		(void)buf_puts(&c->out, ": ");
		put_word(c, why);
	}
	(void)buf_puts(&c->out, "\n");
}

static void show_error(struct console *c, const json_t *event)
{
	const json_t *e = json_object_get(event, "error");
	const char *code = text_of(e, "code");
	const char *message = text_of(e, "message");

	header(c, event);
	paint(c, PAINT_BAD);
	put_word(c, code ? code : "error");
	paint(c, PAINT_NONE);
	(void)buf_puts(&c->out, ": ");
	put_word(c, message ? message : "");
	(void)buf_puts(&c->out, "\n");
}

/* The prompt is written by whoever asks. */
static void show_nothing(struct console *c, const json_t *event)
{
	(void)c;
	(void)event;
}

static void show_inner(struct console *c, const json_t *event);

static const struct {
	const char *type;
	void (*show)(struct console *c, const json_t *event);
} events[] = {
	{ "ToolCallRequestEvent", show_calls },
	{ "ToolCallExecutionEvent", show_results },
	{ "CodeGenerationEvent", show_text },
	{ "CodeExecutionEvent", show_code },
	{ "UserInputRequestedEvent", show_nothing },
	{ "ApprovalRequestedEvent", show_approval },
	{ "ApprovalDecidedEvent", show_decision },
	{ "ModelClientStreamingChunkEvent", show_chunk },
	{ "ThoughtChunkEvent", show_thought_chunk },
	{ "ThoughtEvent", show_thought },
	{ "ErrorEvent", show_error },
	{ "InnerEvent", show_inner },
};

/* As if it were said here: "boss > helper". What it used stands outside. */
static void show_inner(struct console *c, const json_t *event)
{
	json_t *inner = json_copy(json_object_get(event, "content"));
	const char *outer = text_of(event, "source");
	const char *source = text_of(inner, "source");
	json_t *both = json_sprintf("%s > %s", outer ? outer : "?",
				    source ? source : "?");

	if (both && json_object_set_new(inner, "source", both) == 0 &&
	    json_object_set_new(inner, "models_usage", json_null()) == 0)
		console_event(c, inner);
	json_decref(inner);
}

void console_event(struct console *c, const json_t *event)
{
	const char *type = text_of(event, "type");
	void (*show)(struct console *, const json_t *) = NULL;

	for (size_t i = 0; type && i < ARRAY_SIZE(events); i++)
		if (strcmp(events[i].type, type) == 0)
			show = events[i].show;
	if (!show)
		show = chat_is_message(event) ? show_message : show_text;
	show(c, event);
	show_usage(c, event);
}

/* the end */

static double usage_of(const json_t *result, const char *name, double counted)
{
	const json_t *v = json_object_get(json_object_get(result, "usage"),
					  name);

	return json_is_number(v) ? json_number_value(v) : counted;
}

static void row(struct console *c, const char *name)
{
	paint(c, PAINT_DIM);
	(void)buf_printf(&c->out, "%-12s", name);
	paint(c, PAINT_NONE);
}

/* With --stats: the lines that people know from elsewhere. */
static void show_stats(struct console *c, const json_t *result, double seconds)
{
	const char *reason = text_of(result, "stop_reason");

	(void)buf_printf(&c->out, "Number of messages: %zu\nFinish reason: ",
			 json_array_size(json_object_get(result, "messages")));
	put_word(c, reason ? reason : "none");
	(void)buf_printf(&c->out,
			 "\nTotal prompt tokens: %.0f\nTotal completion "
			 "tokens: %.0f\nDuration: %.2f seconds\n",
			 usage_of(result, "prompt_tokens", (double)c->prompt),
			 usage_of(result, "completion_tokens",
				  (double)c->completion),
			 seconds);
}

static void show_end(struct console *c, const json_t *result)
{
	const char *status = text_of(result, "status");
	const char *reason = text_of(result, "stop_reason");
	const char *message = text_of(json_object_get(result, "error"),
				      "message");
	bool is_good = status && strcmp(status, "completed") == 0;

	row(c, "ended");
	paint(c, is_good ? PAINT_GOOD : PAINT_WARN);
	put_word(c, status ? status : "?");
	paint(c, PAINT_NONE);
	(void)buf_puts(&c->out, ": ");
	put_word(c, reason ? reason : message ? message : "no reason");
	(void)buf_puts(&c->out, "\n");
}

/* Pending questions, and how to go on. */
static void show_resume(struct console *c, const json_t *result)
{
	const char *status = text_of(result, "status");
	const char *id = text_of(result, "checkpoint");
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(result, "pending"), i, p)
	{
		const char *what = text_of(p, "id");

		row(c, "waits for");
		put_word(c, what ? what : "?");
		(void)buf_puts(&c->out, "\n");
	}
	if (id && status && strcmp(status, "completed") != 0) {
		row(c, "to go on");
		(void)buf_puts(&c->out, "cordon agent run --resume ");
		put_word(c, id);
		(void)buf_puts(&c->out, "\n");
	}
}

void console_result(struct console *c, const json_t *result, int64_t now)
{
	double seconds = (double)(now - c->started) / 1e6;

	end_line(c);
	paint(c, PAINT_HEAD);
	(void)buf_puts(&c->out, "---------- summary ----------");
	paint(c, PAINT_NONE);
	(void)buf_puts(&c->out, "\n");
	if (c->is_stats)
		show_stats(c, result, seconds);
	show_end(c, result);
	row(c, "turns");
	(void)buf_printf(&c->out, "%.0f\n",
			 usage_of(result, "turns", (double)c->turns));
	row(c, "tool calls");
	(void)buf_printf(&c->out, "%.0f, denied %lld",
			 usage_of(result, "tool_calls", (double)c->tool_calls),
			 (long long)c->denials);
	if (c->unknown)
		(void)buf_printf(&c->out, ", outcome unknown %lld",
				 (long long)c->unknown);
	(void)buf_puts(&c->out, "\n");
	row(c, "tokens");
	(void)buf_printf(&c->out, "%.0f prompt, %.0f completion\n",
			 usage_of(result, "prompt_tokens", (double)c->prompt),
			 usage_of(result, "completion_tokens",
				  (double)c->completion));
	/* Nothing is said where no prices are known, and where it is free. */
	if (usage_of(result, "cost", c->cost) > 0) {
		row(c, "cost");
		(void)buf_printf(&c->out, "$%.5f\n",
				 usage_of(result, "cost", c->cost));
	}
	row(c, "time");
	(void)buf_printf(&c->out, "%.2f s\n", seconds);
	show_resume(c, result);
}
