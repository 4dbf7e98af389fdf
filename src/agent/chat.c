/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/chat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/util.h"

/*
 * What a member has to be. Members that are not named here may be there too:
 * they are kept.
 */
enum want {
	TEXT,
	TEXT_OR_NULL,
	NUMBER,
	OBJECT,
	LIST,
	TEXTS,
	PARTS,
	CALLS,
	RESULTS,
};

struct member {
	const char *name;
	enum want want;
};

static const struct chat_kind {
	const char *name;
	bool is_message;
	struct member members[3];
} kinds[] = {
	{ "TextMessage", true, { { "content", TEXT } } },
	{ "StopMessage", true, { { "content", TEXT } } },
	{ "MultiModalMessage", true, { { "content", PARTS } } },
	{ "HandoffMessage",
	  true,
	  { { "content", TEXT }, { "target", TEXT }, { "context", LIST } } },
	{ "ToolCallSummaryMessage",
	  true,
	  { { "content", TEXT },
	    { "tool_calls", CALLS },
	    { "results", RESULTS } } },
	{ "StructuredMessage",
	  true,
	  { { "content", OBJECT },
	    { "schema_name", TEXT },
	    { "format_string", TEXT_OR_NULL } } },
	{ "ToolCallRequestEvent", false, { { "content", CALLS } } },
	{ "ToolCallExecutionEvent", false, { { "content", RESULTS } } },
	{ "CodeGenerationEvent",
	  false,
	  { { "retry_attempt", NUMBER },
	    { "content", TEXT },
	    { "code_blocks", LIST } } },
	{ "CodeExecutionEvent",
	  false,
	  { { "retry_attempt", NUMBER }, { "result", OBJECT } } },
	{ "UserInputRequestedEvent",
	  false,
	  { { "request_id", TEXT }, { "prompt", TEXT } } },
	{ "ApprovalRequestedEvent", false, { { "approval", OBJECT } } },
	{ "ApprovalDecidedEvent", false, { { "decision", OBJECT } } },
	{ "MemoryQueryEvent", false, { { "content", LIST } } },
	{ "ModelClientStreamingChunkEvent",
	  false,
	  { { "content", TEXT }, { "full_message_id", TEXT_OR_NULL } } },
	{ "ThoughtChunkEvent",
	  false,
	  { { "content", TEXT }, { "full_message_id", TEXT_OR_NULL } } },
	{ "ContextSummaryEvent",
	  false,
	  { { "content", TEXT }, { "upto", NUMBER } } },
	{ "ThoughtEvent", false, { { "content", TEXT } } },
	{ "SelectSpeakerEvent", false, { { "content", TEXTS } } },
	{ "SelectorEvent", false, { { "content", TEXT } } },
	{ "ErrorEvent", false, { { "error", OBJECT } } },
	/* What an agent or a team that is a tool says while it works. */
	{ "InnerEvent", false, { { "call_id", TEXT }, { "content", OBJECT } } },
};

static const struct chat_kind *find_kind(const char *type)
{
	for (size_t i = 0; type && i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, type) == 0)
			return &kinds[i];
	return NULL;
}

const char *chat_type_at(size_t i)
{
	return i < ARRAY_SIZE(kinds) ? kinds[i].name : NULL;
}

const char *chat_type(const json_t *chat)
{
	return json_string_value(json_object_get(chat, "type"));
}

const char *chat_source(const json_t *chat)
{
	return json_string_value(json_object_get(chat, "source"));
}

bool chat_is_message(const json_t *chat)
{
	const char *type = chat_type(chat);
	const struct chat_kind *k = find_kind(type);
	static const char end[] = "Message";
	size_t len = type ? strlen(type) : 0;

	if (k)
		return k->is_message;
	return len >= sizeof(end) - 1 &&
	       strcmp(type + len - (sizeof(end) - 1), end) == 0;
}

bool chat_is_chunk(const json_t *chat)
{
	const char *type = chat_type(chat);

	return type && (strcmp(type, "ModelClientStreamingChunkEvent") == 0 ||
			strcmp(type, "ThoughtChunkEvent") == 0);
}

void chat_id(char ret[CHAT_ID])
{
	unsigned char b[16];

	/* Cannot fail for so few bytes once the machine is up. */
	(void)!getrandom(b, sizeof(b), 0);
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	(void)snprintf(ret, CHAT_ID,
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
		       "%02x%02x%02x%02x%02x%02x",
		       b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8],
		       b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

int64_t chat_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void chat_time(int64_t ms, char ret[32])
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char day[24] = "";

	if (gmtime_r(&s, &tm))
		(void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(ret, 32, "%s.%03dZ", day, (int)(ms % 1000));
}

int64_t chat_when(const char *text)
{
	struct tm tm = { 0 };
	const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm)
			       : NULL;
	int ms = 0;

	if (!end || (*end == '.' && sscanf(end, ".%3dZ", &ms) != 1) ||
	    (*end != '.' && *end != 'Z'))
		return -1;
	return (int64_t)timegm(&tm) * 1000 + ms;
}

json_t *chat_new(const char *type, const char *source, json_t *fields)
{
	char id[CHAT_ID];
	char now[32];
	json_t *o;

	chat_id(id);
	chat_time(chat_now(), now);
	o = json_pack("{s:s, s:s, s:n, s:{}, s:s, s:s}", "id", id, "source",
		      source, "models_usage", "metadata", "created_at", now,
		      "type", type);
	if (!fields || !o || json_object_update(o, fields) < 0) {
		json_decref(o);
		o = NULL;
	}
	json_decref(fields);
	return o;
}

json_t *chat_text(const char *source, const char *content)
{
	return chat_new("TextMessage", source,
			json_pack("{s:s}", "content", content));
}

/* The cost is said where it is known: budgets are counted from here. */
void chat_set_usage(json_t *chat, const struct model_usage *u)
{
	json_t *o;

	if (!chat || !u)
		return;
	o = json_pack("{s:I, s:I}", "prompt_tokens", (json_int_t)u->prompt,
		      "completion_tokens", (json_int_t)u->completion);
	if (o && u->cost > 0)
		(void)json_object_set_new(o, "cost", json_real(u->cost));
	(void)json_object_set_new(chat, "models_usage", o);
}

/* --- checking --- */

static bool has_texts(const json_t *o, const char *const *names)
{
	for (; *names; names++)
		if (!json_is_string(json_object_get(o, *names)))
			return false;
	return true;
}

static bool all_have(const json_t *list, const char *const *names)
{
	size_t i;
	json_t *o;

	if (!json_is_array(list))
		return false;
	json_array_foreach(list, i, o) if (!has_texts(o, names)) return false;
	return true;
}

static bool is_part(const json_t *v)
{
	static const char *const image[] = { "mime", "data", NULL };

	return json_is_string(v) || has_texts(v, image);
}

static bool all_are(const json_t *list, bool (*is)(const json_t *v))
{
	size_t i;
	json_t *v;

	if (!json_is_array(list))
		return false;
	json_array_foreach(list, i, v) if (!is(v)) return false;
	return true;
}

static bool is_text(const json_t *v)
{
	return json_is_string(v);
}

static bool is_wanted(const json_t *v, enum want want)
{
	static const char *const call[] = { "id", "name", "arguments", NULL };
	static const char *const result[] = { "call_id", "name", "content",
					      NULL };

	switch (want) {
	case TEXT:
		return json_is_string(v);
	case TEXT_OR_NULL:
		return !v || json_is_null(v) || json_is_string(v);
	case NUMBER:
		return json_is_integer(v);
	case OBJECT:
		return json_is_object(v);
	case LIST:
		return json_is_array(v);
	case TEXTS:
		return all_are(v, is_text);
	case PARTS:
		return all_are(v, is_part);
	case CALLS:
		return all_have(v, call);
	case RESULTS:
		return all_have(v, result);
	}
	return false;
}

static bool is_usage(const json_t *u)
{
	return !u || json_is_null(u) ||
	       (json_is_integer(json_object_get(u, "prompt_tokens")) &&
		json_is_integer(json_object_get(u, "completion_tokens")));
}

int chat_check(const json_t *chat, struct err *err)
{
	static const char *const common[] = { "id", "source", "created_at",
					      NULL };
	const char *type = chat_type(chat);
	const struct chat_kind *k = find_kind(type);
	const json_t *metadata = json_object_get(chat, "metadata");

	if (!type || !*type)
		return err_set(err, EINVAL, "a message has no type");
	if (!k)
		return 0;
	for (size_t i = 0; common[i]; i++)
		if (!json_is_string(json_object_get(chat, common[i])))
			return err_set(err, EINVAL, "%s: '%s' is no text", type,
				       common[i]);
	if (!is_usage(json_object_get(chat, "models_usage")))
		return err_set(err, EINVAL, "%s: 'models_usage' has no counts",
			       type);
	if (metadata && !json_is_object(metadata))
		return err_set(err, EINVAL, "%s: 'metadata' is no object",
			       type);
	for (size_t i = 0; i < ARRAY_SIZE(k->members); i++) {
		const struct member *m = &k->members[i];

		if (m->name &&
		    !is_wanted(json_object_get(chat, m->name), m->want))
			return err_set(err, EINVAL,
				       "%s: '%s' is missing or of a wrong kind",
				       type, m->name);
	}
	return 0;
}
