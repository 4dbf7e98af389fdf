/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whose message it is, from its own words: the chat messages and events of
 * section 13 (type and source) and the neutral form of model/model.h (role).
 * What is not known is looked at by the rules for everybody.
 */

#include <string.h>

#include "base/base64.h"
#include "base/util.h"
#include "runtime/filter-policy.h"
#include "runtime/filter-walk.h"

enum { BY_SOURCE = 0 };

static const struct {
	const char *type;
	unsigned int roles;
} types[] = {
	{ "TextMessage", BY_SOURCE },
	{ "StopMessage", BY_SOURCE },
	{ "MultiModalMessage", BY_SOURCE },
	{ "HandoffMessage", BY_SOURCE },
	{ "StructuredMessage", BY_SOURCE },
	{ "ToolCallSummaryMessage", ROLE_ASSISTANT | ROLE_TOOL },
	{ "ToolCallRequestEvent", ROLE_ASSISTANT },
	{ "ToolCallExecutionEvent", ROLE_TOOL },
	{ "CodeGenerationEvent", ROLE_ASSISTANT },
	{ "CodeExecutionEvent", ROLE_TOOL },
	{ "UserInputRequestedEvent", ROLE_ASSISTANT },
	{ "ApprovalRequestedEvent", ROLE_ASSISTANT },
	{ "ApprovalDecidedEvent", ROLE_USER },
	{ "MemoryQueryEvent", ROLE_TOOL },
	{ "ContextSummaryEvent", ROLE_ASSISTANT | ROLE_TOOL },
	{ "ModelClientStreamingChunkEvent", ROLE_ASSISTANT },
	{ "ThoughtEvent", ROLE_ASSISTANT },
	{ "ThoughtChunkEvent", ROLE_ASSISTANT },
	{ "SelectSpeakerEvent", ROLE_ASSISTANT },
	{ "SelectorEvent", ROLE_ASSISTANT },
};

static const struct {
	const char *name;
	unsigned int role;
} roles[] = {
	{ "user", ROLE_USER },
	{ "assistant", ROLE_ASSISTANT },
	{ "tool", ROLE_TOOL },
	{ "system", ROLE_SYSTEM },
};

static const char *text_of(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

static unsigned int by_source(const char *source, const char *const *people)
{
	if (strcmp(source, "user") == 0)
		return ROLE_USER;
	for (; people && *people; people++)
		if (strcmp(source, *people) == 0)
			return ROLE_USER;
	return ROLE_ASSISTANT;
}

static unsigned int by_role(const json_t *o)
{
	const char *role = text_of(o, "role");

	if (!role ||
	    (!json_object_get(o, "content") && !json_object_get(o, "results") &&
	     !json_object_get(o, "calls")))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		if (strcmp(role, roles[i].name) == 0)
			return roles[i].role;
	return ROLE_ALL;
}

unsigned int role_of(const json_t *o, const char *const *people)
{
	const char *type = text_of(o, "type");
	const char *source = text_of(o, "source");

	if (!type || !source)
		return by_role(o);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strcmp(type, types[i].type) != 0)
			continue;
		return types[i].roles ? types[i].roles
				      : by_source(source, people);
	}
	return ROLE_ALL;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

bool role_is_label(const char *member)
{
	static const char *const labels[] = {
		"id",         "source",     "type",
		"role",       "created_at", "models_usage",
		"name",       "call_id",    "target",
		"request_id", "schema",     "full_message_id",
		"mime",       "is_error",   "retry_attempt",
		NULL,
	};

	return is_one_of(member, labels);
}

bool role_is_own_label(const char *member)
{
	static const char *const labels[] = { "run",    "checkpoint", "status",
					      "kind",   "agent",      "team",
					      "tool",   "code",       "parent",
					      "agents", NULL };

	return role_is_label(member) || is_one_of(member, labels);
}

bool role_is_nested(const char *member)
{
	static const char *const nested[] = { "context", "messages", NULL };

	return is_one_of(member, nested);
}

/* A turn that waits: the agent's own state, with its calls. */
unsigned int role_of_member(const char *member)
{
	static const char *const own[] = { "pending", "suspended", NULL };

	return is_one_of(member, own) ? ROLE_ASSISTANT : 0;
}

bool role_is_free(const json_t *o)
{
	const char *type = text_of(o, "type");

	return type && strcmp(type, "StructuredMessage") == 0;
}

bool role_is_chunk(const json_t *o)
{
	const char *type = text_of(o, "type");

	return type && (strcmp(type, "ModelClientStreamingChunkEvent") == 0 ||
			strcmp(type, "ThoughtChunkEvent") == 0);
}

bool role_is_image(const json_t *o)
{
	static const struct {
		const char *bytes;
		size_t len;
	} begins[] = {
		{ "\x89PNG\r\n\x1a\n", 8 },
		{ "\xff\xd8\xff", 3 },
		{ "GIF8", 4 },
		{ "RIFF", 4 },
	};
	const char *mime = text_of(o, "mime");
	const char *data = text_of(o, "data");
	bool ret = false;
	struct buf b;

	if (!mime || !data || strncmp(mime, "image/", 6) != 0)
		return false;
	buf_init(&b, 64);
	(void)base64_add(&b, data, strnlen(data, 64));
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		ret |= b.len >= 16 &&
		       memcmp(b.data, begins[i].bytes, begins[i].len) == 0;
	/* Digits to the end, or it is something else with a picture's head. */
	ret = ret && data[strspn(data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm"
				       "nopqrstuvwxyz0123456789+/=")] == '\0';
	buf_done(&b);
	return ret;
}
