/* SPDX-License-Identifier: Apache-2.0 */

/* Blocks out of text, and text out of results. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/executor.h"

static bool has_text(const json_t *list, const char *text)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v) if (json_is_string(v) &&
					   strcmp(json_string_value(v), text) ==
						   0) return true;
	return false;
}

bool executor_reads(const struct executor *e, const json_t *chat)
{
	const json_t *sources = json_object_get(e->config, "sources");
	const char *source = chat_source(chat);

	return chat_is_message(chat) && (!json_is_array(sources) ||
					 (source && has_text(sources, source)));
}

/* As the executor takes it: nothing but what runs. */
static json_t *plain_block(const json_t *b)
{
	static const char *const members[] = { "language", "code", "filename" };
	json_t *o = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		json_t *v = json_object_get(b, members[i]);

		if (json_is_string(v) &&
		    json_object_set(o, members[i], v) < 0) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

int executor_find(const struct executor *e, const char *text, json_t *list)
{
	json_t *found = fences_find(text, strlen(text), e->languages,
				    setting_text(e->config, "untagged_language",
						 NULL));
	size_t i;
	json_t *b;
	int r = found ? 0 : -ENOMEM;

	json_array_foreach(json_object_get(found, "blocks"), i,
			   b) if (json_array_append_new(list, plain_block(b)) <
				  0) r = -ENOMEM;
	json_decref(found);
	return r;
}

json_t *executor_calls(const struct executor *e, const json_t *blocks)
{
	json_t *args = json_pack("{s:O}", "blocks", blocks);
	_cleanup_free_ char *text = args ? chat_dump(args) : NULL;
	char id[CHAT_ID];

	json_decref(args);
	chat_id(id);
	if (!text)
		return NULL;
	return json_pack("[{s:s, s:s, s:s}]", "id", id, "name", e->tool,
			 "arguments", text);
}

/* --- results --- */

static const char tool_words[] = "Tool call was not approved.";

/*
 * What never came to a box has no result document: it was not approved, or
 * could not be called. Then this is all there is to say of it.
 */
json_t *executor_result(const json_t *detail, const json_t *result)
{
	const char *text = setting_text(result, "content", "");
	bool is_denied = strncmp(text, tool_words, sizeof(tool_words) - 1) == 0;
	bool is_unknown = strncmp(text, TOOL_UNKNOWN,
				  sizeof(TOOL_UNKNOWN) - 1) == 0;

	if (json_is_object(detail))
		return json_incref((json_t *)detail);
	if (json_is_false(json_object_get(result, "is_error")))
		return json_pack("{s:s, s:s, s:i, s:s}", "status", "success",
				 "cause", "exited", "exit_code", 0, "output",
				 text);
	if (is_denied)
		return json_pack("{s:s, s:s, s:i, s:o}", "status", "error",
				 "cause", "denied", "exit_code", 126, "output",
				 json_sprintf("Code execution was not "
					      "approved.%s",
					      text + sizeof(tool_words) - 1));
	if (is_unknown)
		return json_pack("{s:s, s:s, s:i, s:s}", "status", "unknown",
				 "cause", "lost", "exit_code", 125, "output",
				 text);
	return json_pack("{s:s, s:s, s:i, s:s}", "status", "error", "cause",
			 "invalid", "exit_code", 125, "output", text);
}

bool executor_is_good(const json_t *result)
{
	return strcmp(setting_text(result, "status", ""), "success") == 0;
}

/* Whether a program was started at all. */
static bool has_run(const json_t *result)
{
	static const char *const unrun[] = { "denied", "not_found", "invalid",
					     "setup" };
	const char *cause = setting_text(result, "cause", "exited");

	for (size_t i = 0; i < ARRAY_SIZE(unrun); i++)
		if (strcmp(unrun[i], cause) == 0)
			return false;
	return true;
}

static bool is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

char *executor_report(const json_t *result)
{
	const char *output = setting_text(result, "output", "");
	long long code = (long long)setting_int(result, "exit_code", 0);
	char *text = NULL;
	bool is_unknown = strcmp(setting_text(result, "status", ""),
				 "unknown") == 0;
	int r;

	if ((is_unknown || !has_run(result)) && !is_blank(output))
		r = asprintf(&text, "%s", output);
	else if (!has_run(result))
		r = asprintf(&text, "The code did not run (%s).",
			     setting_text(result, "cause", "unknown"));
	else if (is_blank(output))
		r = asprintf(&text,
			     "The script ran without console output. "
			     "The POSIX exit code was: %lld",
			     code);
	else if (!executor_is_good(result))
		r = asprintf(&text,
			     "The script ran, then exited with an error "
			     "(POSIX exit code: %lld)\nIts output was:\n%s",
			     code, output);
	else
		r = asprintf(&text, "%s", output);
	return r < 0 ? NULL : text;
}

char *executor_no_code(const struct executor *e)
{
	const char *first = json_string_value(json_array_get(e->languages, 0));
	char *text = NULL;

	if (asprintf(&text,
		     "No code blocks found in the thread. Write at least one "
		     "block between fences that name a language which is "
		     "enabled, such as ```%s.",
		     first ? first : "python") < 0)
		return NULL;
	return text;
}
