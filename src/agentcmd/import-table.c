/* SPDX-License-Identifier: Apache-2.0 */

/* AutoGen's names (0.4 to 0.7) and what they are here. */

#include "agentcmd/import.h"

#include <string.h>

#include "base/util.h"

/* theirs -> ours; ours NULL: nothing is lost without it. */
static const struct import_field group_chat[] = {
	{ "name", "name", IMPORT_SAME },
	{ "description", "description", IMPORT_SAME },
	{ "participants", "participants", IMPORT_PARTS },
	{ "termination_condition", "termination", IMPORT_PART },
	{ "max_turns", "max_turns", IMPORT_SAME },
	{ "emit_team_events", "emit_team_events", IMPORT_SAME },
	{ 0 },
};
static const struct import_field selector[] = {
	{ "name", "name", IMPORT_SAME },
	{ "description", "description", IMPORT_SAME },
	{ "participants", "participants", IMPORT_PARTS },
	{ "termination_condition", "termination", IMPORT_PART },
	{ "max_turns", "max_turns", IMPORT_SAME },
	{ "emit_team_events", "emit_team_events", IMPORT_SAME },
	{ "model_client", "model", IMPORT_PART },
	{ "selector_prompt", "prompt", IMPORT_SAME },
	{ "allow_repeated_speaker", "allow_repeated_speaker", IMPORT_SAME },
	{ "max_selector_attempts", "max_selector_attempts", IMPORT_SAME },
	{ 0 },
};
static const struct import_field assistant[] = {
	{ "name", "name", IMPORT_SAME },
	{ "description", "description", IMPORT_SAME },
	{ "model_client", "model", IMPORT_PART },
	{ "tools", "tools", IMPORT_PARTS },
	{ "workbench", "tools", IMPORT_WORKBENCH },
	{ "handoffs", "handoffs", IMPORT_HANDOFFS },
	{ "model_context", "context", IMPORT_PART },
	{ "memory", "memory", IMPORT_PARTS },
	{ "system_message", "system_message", IMPORT_SAME },
	{ "model_client_stream", "stream", IMPORT_SAME },
	{ "reflect_on_tool_use", "reflect_on_tool_use", IMPORT_SAME },
	{ "tool_call_summary_format", "summary_format", IMPORT_SAME },
	{ "max_tool_iterations", "max_tool_iterations", IMPORT_SAME },
	{ 0 },
};
static const struct import_field executor_agent[] = {
	{ "name", "name", IMPORT_SAME },
	{ "description", "description", IMPORT_SAME },
	{ "code_executor", "executor", IMPORT_PART },
	{ "model_client", "model", IMPORT_PART },
	{ "system_message", "system_message", IMPORT_SAME },
	{ "model_context", "context", IMPORT_PART },
	{ "sources", "sources", IMPORT_SAME },
	{ "supported_languages", "languages", IMPORT_SAME },
	{ "max_retries_on_error", "max_retries_on_error", IMPORT_COUNT },
	{ "approval_func", "approval", IMPORT_APPROVER },
	{ 0 },
};
static const struct import_field user_proxy[] = {
	{ "name", "name", IMPORT_SAME },
	{ "description", "description", IMPORT_SAME },
	{ 0 },
};
static const struct import_field openai[] = {
	{ "model", "model", IMPORT_SAME },
	{ "base_url", "base_url", IMPORT_SAME },
	{ "api_key", "api_key", IMPORT_KEY },
	{ "timeout", "timeout", IMPORT_SAME },
	{ "temperature", "temperature", IMPORT_SAME },
	{ "top_p", "top_p", IMPORT_SAME },
	{ "max_tokens", "max_tokens", IMPORT_SAME },
	{ "seed", "seed", IMPORT_SAME },
	{ "model_info", "info", IMPORT_INFO },
	{ 0 },
};
static const struct import_field max_messages[] = {
	{ "max_messages", "n", IMPORT_SAME },
	{ "include_agent_event", "include_events", IMPORT_SAME },
	{ 0 },
};
static const struct import_field text_mention[] = {
	{ "text", "text", IMPORT_SAME },
	{ "sources", "sources", IMPORT_SAME },
	{ 0 },
};
static const struct import_field token_usage[] = {
	{ "max_total_token", "max_total", IMPORT_SAME },
	{ "max_prompt_token", "max_prompt", IMPORT_SAME },
	{ "max_completion_token", "max_completion", IMPORT_SAME },
	{ 0 },
};
static const struct import_field handoff[] = {
	{ "target", "target", IMPORT_SAME },
	{ 0 },
};
static const struct import_field timeout[] = {
	{ "timeout_seconds", "seconds", IMPORT_SAME },
	{ 0 },
};
static const struct import_field source_match[] = {
	{ "sources", "sources", IMPORT_SAME },
	{ 0 },
};
static const struct import_field text_message[] = {
	{ "source", "source", IMPORT_SAME },
	{ 0 },
};
static const struct import_field function_call[] = {
	{ "function_name", "name", IMPORT_SAME },
	{ 0 },
};
static const struct import_field conditions[] = {
	{ "conditions", "conditions", IMPORT_PARTS },
	{ 0 },
};
static const struct import_field buffered[] = {
	{ "buffer_size", "n", IMPORT_SAME },
	{ 0 },
};
static const struct import_field head_tail[] = {
	{ "head_size", "head", IMPORT_SAME },
	{ "tail_size", "tail", IMPORT_SAME },
	{ 0 },
};
static const struct import_field token_limit[] = {
	{ "token_limit", "max", IMPORT_SAME },
	{ 0 },
};
static const struct import_field list_memory[] = {
	{ "memory_contents", "entries", IMPORT_MEMORY },
	{ "name", NULL, IMPORT_SAME },
	{ 0 },
};
/* The box is what the container was for; its image is chosen by the policy. */
static const struct import_field docker[] = {
	{ "timeout", "timeout", IMPORT_BOX },
	{ "image", "image", IMPORT_BOX },
	{ "work_dir", "workspace", IMPORT_BOX },
	{ "auto_remove", NULL, IMPORT_SAME },
	{ "stop_container", NULL, IMPORT_SAME },
	{ "container_name", NULL, IMPORT_SAME },
	{ "delete_tmp_files", NULL, IMPORT_SAME },
	{ 0 },
};
static const struct import_field local[] = {
	{ "timeout", "timeout", IMPORT_BOX },
	{ "work_dir", "workspace", IMPORT_BOX },
	{ "cleanup_temp_files", NULL, IMPORT_SAME },
	{ 0 },
};
static const struct import_field python_tool[] = {
	{ "executor", NULL, IMPORT_EXECUTOR },
	{ "name", NULL, IMPORT_SAME },
	{ "description", NULL, IMPORT_SAME },
	{ 0 },
};
static const struct import_field agent_tool[] = {
	{ "agent", "agent", IMPORT_PART },
	{ "return_value_as_last_message", NULL, IMPORT_SAME },
	{ 0 },
};
static const struct import_field team_tool[] = {
	{ "team", "team", IMPORT_PART },
	{ "name", "name", IMPORT_SAME },
	{ "description", "description", IMPORT_SAME },
	{ "return_value_as_last_message", NULL, IMPORT_SAME },
	{ 0 },
};
static const struct import_field nothing[] = { { 0 } };

#define CHAT  "autogen_agentchat."
#define ENDS  CHAT "conditions."
#define SEEN  "autogen_core.model_context."
#define CODES "autogen_ext.code_executors."

static const struct import_provider table[] = {
	{ CHAT "teams.RoundRobinGroupChat", "cordon.team.round_robin",
	  group_chat },
	{ CHAT "teams.SelectorGroupChat", "cordon.team.selector", selector },
	{ CHAT "agents.AssistantAgent", "cordon.agent.assistant", assistant },
	{ CHAT "agents.CodeExecutorAgent", "cordon.agent.code_executor",
	  executor_agent },
	{ CHAT "agents.UserProxyAgent", "cordon.agent.user_proxy", user_proxy },
	{ "autogen_ext.models.openai.OpenAIChatCompletionClient",
	  "cordon.model.openai", openai },
	{ ENDS "MaxMessageTermination", "cordon.termination.max_messages",
	  max_messages },
	{ ENDS "TextMentionTermination", "cordon.termination.text_mention",
	  text_mention },
	{ ENDS "StopMessageTermination", "cordon.termination.stop_message",
	  nothing },
	{ ENDS "TokenUsageTermination", "cordon.termination.token_usage",
	  token_usage },
	{ ENDS "HandoffTermination", "cordon.termination.handoff", handoff },
	{ ENDS "TimeoutTermination", "cordon.termination.timeout", timeout },
	{ ENDS "ExternalTermination", "cordon.termination.external", nothing },
	{ ENDS "SourceMatchTermination", "cordon.termination.source_match",
	  source_match },
	{ ENDS "TextMessageTermination", "cordon.termination.text_message",
	  text_message },
	{ ENDS "FunctionCallTermination", "cordon.termination.function_call",
	  function_call },
	{ CHAT "base.OrTerminationCondition", "cordon.termination.any",
	  conditions },
	{ CHAT "base.AndTerminationCondition", "cordon.termination.all",
	  conditions },
	{ SEEN "UnboundedChatCompletionContext", "cordon.context.unbounded",
	  nothing },
	{ SEEN "BufferedChatCompletionContext", "cordon.context.last",
	  buffered },
	{ SEEN "HeadAndTailChatCompletionContext", "cordon.context.head_tail",
	  head_tail },
	{ SEEN "TokenLimitedChatCompletionContext", "cordon.context.tokens",
	  token_limit },
	{ "autogen_core.memory.ListMemory", "cordon.memory.list", list_memory },
	{ CODES "docker.DockerCommandLineCodeExecutor", "cordon.tool.run_code",
	  docker },
	{ CODES "local.LocalCommandLineCodeExecutor", "cordon.tool.run_code",
	  local },
	{ "autogen_ext.tools.code_execution.PythonCodeExecutionTool",
	  "cordon.tool.run_python", python_tool },
	{ CHAT "tools.AgentTool", "cordon.tool.agent", agent_tool },
	{ CHAT "tools.TeamTool", "cordon.tool.team", team_tool },
};

const struct import_provider *import_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const char *dot = strrchr(table[i].theirs, '.');
		size_t package = strcspn(table[i].theirs, ".");
		const char *last = strrchr(name, '.');

		/* Its modules move about between versions; the package and the
		 * name of the class do not. */
		if (strncmp(name, table[i].theirs, package + 1) == 0 && last &&
		    strcmp(last, dot) == 0)
			return &table[i];
	}
	return NULL;
}
