/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/event-log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "base/util.h"

struct event_log {
	int fd;
	bool has_contents;
};

int event_log_open(const char *path, bool has_contents, struct event_log **ret,
		   struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;
	struct event_log *l;

	if (strcmp(path, "-") == 0)
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
			  0600);
	if (fd < 0)
		return err_errno(err, errno, "open '%s'", path);
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_set(err, ENOMEM, "out of memory");
	l->fd = take_fd(&fd);
	l->has_contents = has_contents;
	*ret = l;
	return 0;
}

void event_log_close(struct event_log *l)
{
	if (!l)
		return;
	fd_close(&l->fd);
	free(l);
}

static json_t *now_json(void)
{
	struct timespec t;
	struct tm tm;
	char text[32];

	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return json_sprintf("%s.%03dZ", text, (int)(t.tv_nsec / 1000000));
}

/* Takes over `line`. One that cannot be written is lost, and nobody waits. */
static void put(struct event_log *l, json_t *line)
{
	json_t *whole = json_pack("{s:o}", "time", now_json());
	char *text = NULL;
	size_t len;

	if (whole && line && json_object_update(whole, line) == 0)
		text = json_dumps(whole, JSON_COMPACT);
	if (text) {
		len = strlen(text);
		text[len] = '\n'; /* in the place of its NUL */
		(void)io_write_all(l->fd, text, len + 1);
	}
	free(text);
	json_decref(whole);
	json_decref(line);
}

void event_log_runtime(struct event_log *l, const json_t *event)
{
	if (l)
		put(l, json_copy((json_t *)event));
}

static const char *text_of(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

/* A line for each call or result in a list. */
static void put_calls(struct event_log *l, const json_t *chat, const char *what)
{
	const json_t *c;
	size_t i;

	json_array_foreach(json_object_get(chat, "content"), i, c)
	{
		const char *id = text_of(c, "id");
		json_t *detail = json_object_get(c, "detail");

		put(l, json_pack("{s:s, s:s*, s:s*, s:s*, s:O*}", "event", what,
				 "agent", text_of(chat, "source"), "tool",
				 text_of(c, "name"), "call",
				 id ? id : text_of(c, "call_id"), "is_error",
				 json_object_get(c, "is_error")));
		if (json_is_object(detail))
			put(l, json_pack("{s:s, s:s*, s:s*, s:s*, s:O*}",
					 "event", "code_execution", "agent",
					 text_of(chat, "source"), "run",
					 text_of(detail, "id"), "cause",
					 text_of(detail, "cause"), "usage",
					 json_object_get(detail, "usage")));
	}
}

static void put_requests(struct event_log *l, const json_t *chat)
{
	put_calls(l, chat, "tool_call");
}

static void put_results(struct event_log *l, const json_t *chat)
{
	put_calls(l, chat, "tool_result");
}

static void put_code(struct event_log *l, const json_t *chat)
{
	const json_t *r = json_object_get(chat, "result");

	put(l, json_pack("{s:s, s:s*, s:s*, s:s*}", "event", "code_execution",
			 "agent", text_of(chat, "source"), "run",
			 text_of(r, "id"), "cause", text_of(r, "cause")));
}

/* Pieces of an answer are not worth a line each. */
static void put_nothing(struct event_log *l, const json_t *chat)
{
	(void)l;
	(void)chat;
}

static void put_message(struct event_log *l, const json_t *chat)
{
	put(l, json_pack("{s:s, s:s*, s:s*, s:s*, s:O*}", "event", "message",
			 "agent", text_of(chat, "source"), "type",
			 text_of(chat, "type"), "id", text_of(chat, "id"),
			 "content",
			 l->has_contents ? json_object_get(chat, "content")
					 : NULL));
}

void event_log_chat(struct event_log *l, const json_t *chat)
{
	static const struct {
		const char *type;
		void (*put)(struct event_log *l, const json_t *chat);
	} table[] = {
		{ "ToolCallRequestEvent", put_requests },
		{ "ToolCallExecutionEvent", put_results },
		{ "CodeExecutionEvent", put_code },
		{ "ModelClientStreamingChunkEvent", put_nothing },
		{ "ThoughtChunkEvent", put_nothing },
	};
	const char *type = text_of(chat, "type");
	json_t *usage = json_object_get(chat, "models_usage");
	size_t i = 0;

	if (!l || !type)
		return;
	if (json_is_object(usage))
		put(l,
		    json_pack("{s:s, s:s*, s:O}", "event", "llm_call", "agent",
			      text_of(chat, "source"), "usage", usage));
	while (i < ARRAY_SIZE(table) && strcmp(type, table[i].type) != 0)
		i++;
	if (i < ARRAY_SIZE(table))
		table[i].put(l, chat);
	else
		put_message(l, chat);
}
