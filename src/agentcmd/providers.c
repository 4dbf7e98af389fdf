/* SPDX-License-Identifier: Apache-2.0 */

/* The table of providers: all that a configuration can name, and its fields. */

#include <string.h>

#include "agentcmd/fields.h"
#include "base/util.h"

const struct field budget_fields[] = {
	FIELD("tokens", FIELD_COUNT),
	FIELD("cost", FIELD_NUMBER),
	FIELD("wall_seconds", FIELD_NUMBER),
	FIELD("tool_calls", FIELD_COUNT),
	{ 0 },
};

#define TEAM_FIELDS                                                            \
	FIELD("name", FIELD_NAME), FIELD("description", FIELD_TEXT),           \
		MUST_PART("participants", FIELD_PARTS, "agent"),               \
		PART("termination", FIELD_PART, "termination"),                \
		FIELD("max_turns", FIELD_COUNT),                               \
		FIELD("emit_team_events", FIELD_BOOL),                         \
		FIELD("output_task_messages", FIELD_BOOL),                     \
		GROUP("budget", budget_fields),                                \
		PART("on_agent_error", FIELD_CHOICE, "stop|skip|retry"),       \
		FIELD("policy", FIELD_TEXT)

static const struct field round_robin[] = { TEAM_FIELDS, { 0 } };

static const struct field selector[] = {
	TEAM_FIELDS,
	MUST_PART("model", FIELD_PART, "model"),
	FIELD("prompt", FIELD_TEXT),
	FIELD("allow_repeated_speaker", FIELD_BOOL),
	FIELD("max_selector_attempts", FIELD_COUNT),
	FIELD("selector_func", FIELD_SPEAKER),
	FIELD("candidate_func", FIELD_SPEAKER),
	{ 0 },
};

static const struct field assistant[] = {
	MUST("name", FIELD_NAME),
	FIELD("description", FIELD_TEXT),
	MUST_PART("model", FIELD_PART, "model"),
	FIELD("system_message", FIELD_TEXT),
	PART("tools", FIELD_PARTS, "tool"),
	PART("toolsets", FIELD_PARTS, "toolset"),
	FIELD("handoffs", FIELD_HANDOFFS),
	PART("context", FIELD_PART, "context"),
	PART("memory", FIELD_PARTS, "memory"),
	FIELD("stream", FIELD_BOOL),
	FIELD("parallel", FIELD_BOOL),
	FIELD("max_tool_iterations", FIELD_COUNT),
	FIELD("reflect_on_tool_use", FIELD_BOOL),
	FIELD("summary_format", FIELD_TEXT),
	FIELD("output_schema", FIELD_MAP),
	FIELD("output_format", FIELD_TEXT),
	PART("approval", FIELD_CHOICE, "policy|always|never"),
	FIELD("max_tokens_per_turn", FIELD_COUNT),
	FIELD("max_cost_per_turn", FIELD_NUMBER),
	FIELD("policy", FIELD_TEXT),
	{ 0 },
};

static const struct field code_executor[] = {
	MUST("name", FIELD_NAME),
	FIELD("description", FIELD_TEXT),
	MUST_PART("executor", FIELD_PART, "tool"),
	PART("model", FIELD_PART, "model"),
	FIELD("system_message", FIELD_TEXT),
	FIELD("languages", FIELD_TEXTS),
	FIELD("untagged_language", FIELD_TEXT),
	FIELD("sources", FIELD_TEXTS),
	FIELD("max_retries_on_error", FIELD_COUNT),
	PART("approval", FIELD_CHOICE, "policy|always|never"),
	PART("context", FIELD_PART, "context"),
	FIELD("policy", FIELD_TEXT),
	{ 0 },
};

static const struct field user_proxy[] = {
	MUST("name", FIELD_NAME),
	FIELD("description", FIELD_TEXT),
	FIELD("prompt", FIELD_TEXT),
	FIELD("expire_seconds", FIELD_COUNT),
	{ 0 },
};

static const struct field model_info_fields[] = {
	FIELD("vision", FIELD_BOOL),
	FIELD("function_calling", FIELD_BOOL),
	FIELD("json_output", FIELD_BOOL),
	FIELD("structured_output", FIELD_BOOL),
	FIELD("multiple_system_messages", FIELD_BOOL),
	FIELD("streaming", FIELD_BOOL),
	FIELD("family", FIELD_TEXT),
	FIELD("context_window", FIELD_COUNT),
	FIELD("max_output", FIELD_COUNT),
	FIELD("price_prompt", FIELD_NUMBER),
	FIELD("price_completion", FIELD_NUMBER),
	{ 0 },
};

static const struct field openai[] = {
	MUST("model", FIELD_TEXT),
	FIELD("base_url", FIELD_TEXT),
	FIELD("api_key", FIELD_SECRET),
	FIELD("timeout", FIELD_TIME),
	FIELD("connect_timeout", FIELD_TIME),
	FIELD("first_byte_timeout", FIELD_TIME),
	FIELD("idle_timeout", FIELD_TIME),
	FIELD("max_retries", FIELD_NUMBER),
	FIELD("retry_delay", FIELD_TIME),
	FIELD("ca_file", FIELD_TEXT),
	FIELD("include_name", FIELD_BOOL),
	FIELD("stream_usage", FIELD_BOOL),
	FIELD("temperature", FIELD_NUMBER),
	FIELD("top_p", FIELD_NUMBER),
	FIELD("max_tokens", FIELD_COUNT),
	FIELD("max_completion_tokens", FIELD_COUNT),
	FIELD("reasoning_effort", FIELD_TEXT),
	FIELD("parallel_tool_calls", FIELD_BOOL),
	FIELD("stop", FIELD_TEXTS),
	FIELD("seed", FIELD_NUMBER),
	GROUP("info", model_info_fields),
	FIELD("extra", FIELD_MAP),
	{ 0 },
};

static const struct field replay[] = {
	MUST("file", FIELD_TEXT),
	{ 0 },
};

#define TOOL_FIELDS                                                            \
	FIELD("name", FIELD_TOOL), FIELD("description", FIELD_TEXT),           \
		PART("approval", FIELD_CHOICE, "policy|always|never"),         \
		FIELD("idempotent", FIELD_BOOL), FIELD("timeout", FIELD_TIME), \
		FIELD("max_result", FIELD_COUNT)

static const struct field code_tool[] = {
	TOOL_FIELDS,
	FIELD("box", FIELD_BOX),
	{ 0 },
};

static const struct field file_tool[] = {
	TOOL_FIELDS,
	FIELD("workspace", FIELD_TEXT),
	{ 0 },
};

static const struct field program_tool[] = {
	TOOL_FIELDS,
	MUST("path", FIELD_TEXT),
	FIELD("box", FIELD_BOX),
	{ 0 },
};

/* A function of the program that loads it (cordon/agent.h). */
static const struct field function_tool[] = {
	MUST("name", FIELD_TOOL),
	PART("approval", FIELD_CHOICE, "policy|always|never"),
	{ 0 },
};

/* An agent or a team of its own, which this agent can give tasks to. */
static const struct field agent_tool[] = {
	TOOL_FIELDS,
	MUST_PART("agent", FIELD_PART, "agent"),
	{ 0 },
};

static const struct field team_tool[] = {
	TOOL_FIELDS,
	MUST_PART("team", FIELD_PART, "team"),
	{ 0 },
};

#define TOOLSET_FIELDS FIELD("name", FIELD_TOOL), FIELD("names", FIELD_NAMES)

static const struct field static_toolset[] = {
	TOOLSET_FIELDS,
	MUST_PART("tools", FIELD_PARTS, "tool"),
	{ 0 },
};

static const struct field sandbox_toolset[] = {
	TOOLSET_FIELDS,
	FIELD("tools", FIELD_TEXTS),
	FIELD("box", FIELD_BOX),
	{ 0 },
};

static const struct field max_messages[] = {
	MUST("n", FIELD_COUNT),
	FIELD("include_events", FIELD_BOOL),
	{ 0 },
};
static const struct field text_mention[] = {
	MUST("text", FIELD_TEXT),
	FIELD("sources", FIELD_TEXTS),
	FIELD("include_task", FIELD_BOOL),
	{ 0 },
};
static const struct field token_usage[] = {
	FIELD("max_total", FIELD_COUNT),
	FIELD("max_prompt", FIELD_COUNT),
	FIELD("max_completion", FIELD_COUNT),
	{ 0 },
};
static const struct field handoff[] = {
	MUST("target", FIELD_NAME),
	{ 0 },
};
static const struct field timeout[] = {
	MUST("seconds", FIELD_NUMBER),
	{ 0 },
};
static const struct field source_match[] = {
	MUST("sources", FIELD_TEXTS),
	{ 0 },
};
static const struct field text_message[] = {
	FIELD("source", FIELD_TEXT),
	FIELD("include_task", FIELD_BOOL),
	{ 0 },
};
static const struct field function_call[] = {
	MUST("name", FIELD_TOOL),
	{ 0 },
};
static const struct field function[] = {
	MUST("name", FIELD_CONDITION),
	{ 0 },
};
static const struct field cost[] = {
	MUST("max", FIELD_NUMBER),
	{ 0 },
};
static const struct field counted[] = {
	MUST("n", FIELD_COUNT),
	{ 0 },
};
static const struct field resource[] = {
	FIELD("cpu", FIELD_NUMBER),
	FIELD("memory", FIELD_COUNT),
	{ 0 },
};
static const struct field several[] = {
	MUST_PART("conditions", FIELD_PARTS, "termination"),
	{ 0 },
};
static const struct field head_tail[] = {
	MUST("head", FIELD_COUNT),
	MUST("tail", FIELD_COUNT),
	{ 0 },
};
static const struct field tokens[] = {
	MUST("max", FIELD_COUNT),
	{ 0 },
};
static const struct field summary[] = {
	FIELD("messages", FIELD_COUNT), FIELD("tokens", FIELD_COUNT),
	FIELD("keep", FIELD_COUNT),     PART("model", FIELD_PART, "model"),
	FIELD("prompt", FIELD_TEXT),    { 0 },
};
static const struct field list_memory[] = {
	MUST("entries", FIELD_TEXTS),
	{ 0 },
};
static const struct field nothing[] = { { 0 } };

#define TEAM  "cordon.team."
#define AGENT "cordon.agent."
#define TOOL  "cordon.tool."
#define STOP  "cordon.termination."
#define SEEN  "cordon.context."

static const struct provider table[] = {
	{ TEAM "round_robin", "team", round_robin },
	{ TEAM "selector", "team", selector },
	{ AGENT "assistant", "agent", assistant },
	{ AGENT "code_executor", "agent", code_executor },
	{ AGENT "user_proxy", "agent", user_proxy },
	{ "cordon.model.openai", "model", openai },
	{ "cordon.model.replay", "model", replay },
	{ TOOL "run_python", "tool", code_tool },
	{ TOOL "run_shell", "tool", code_tool },
	{ TOOL "run_code", "tool", code_tool },
	{ TOOL "read_file", "tool", file_tool },
	{ TOOL "write_file", "tool", file_tool },
	{ TOOL "list_files", "tool", file_tool },
	{ TOOL "program", "tool", program_tool },
	{ TOOL "function", "tool", function_tool },
	{ TOOL "agent", "tool", agent_tool },
	{ TOOL "team", "tool", team_tool },
	{ "cordon.toolset.static", "toolset", static_toolset },
	{ "cordon.toolset.sandbox", "toolset", sandbox_toolset },
	{ STOP "max_messages", "termination", max_messages },
	{ STOP "text_mention", "termination", text_mention },
	{ STOP "stop_message", "termination", nothing },
	{ STOP "token_usage", "termination", token_usage },
	{ STOP "handoff", "termination", handoff },
	{ STOP "timeout", "termination", timeout },
	{ STOP "external", "termination", nothing },
	{ STOP "source_match", "termination", source_match },
	{ STOP "text_message", "termination", text_message },
	{ STOP "function_call", "termination", function_call },
	{ STOP "function", "termination", function },
	{ STOP "cost", "termination", cost },
	{ STOP "loop", "termination", counted },
	{ STOP "errors", "termination", counted },
	{ STOP "tool_calls", "termination", counted },
	{ STOP "resource", "termination", resource },
	{ STOP "any", "termination", several },
	{ STOP "all", "termination", several },
	{ SEEN "unbounded", "context", nothing },
	{ SEEN "last", "context", counted },
	{ SEEN "head_tail", "context", head_tail },
	{ SEEN "tokens", "context", tokens },
	{ SEEN "summary", "context", summary },
	{ "cordon.memory.list", "memory", list_memory },
};

const char *provider_absent(const char *name)
{
	if (name && strcmp(name, "cordon.toolset.mcp") == 0)
		return "toolsets of MCP servers are not in this build; there "
		       "are static and sandbox";
	return NULL;
}

const struct provider *provider_at(size_t i)
{
	return i < ARRAY_SIZE(table) ? &table[i] : NULL;
}

const struct provider *provider_find(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}
