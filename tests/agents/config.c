/* SPDX-License-Identifier: Apache-2.0 */

/* Configurations: the short form, components, errors with their place. */

#include "tests/tap.h"

#include "agent/team.h"
#include "agentcmd/config.h"
#include "agentcmd/fields.h"
#include "base/util.h"

static struct err err;

static int load(const char *text, struct config *c)
{
	static const char *const functions[] = { "dice", NULL };

	memset(&err, 0, sizeof(err));
	return config_parse("t.yaml", text, strlen(text), functions, c, &err);
}

/* What is wrong with it, "" for nothing. */
static const char *wrong(const char *text)
{
	struct config c;

	if (load(text, &c) == 0) {
		config_done(&c);
		return "";
	}
	return err.text;
}

/* The value at a pointer such as "/config/participants/0". */
static json_t *find(const struct config *c, const char *path)
{
	json_t *v = c->component;
	_cleanup_free_ char *copy = strdup(path + 1);
	char *rest = copy;
	char *part;

	while (v && (part = strsep(&rest, "/")))
		v = json_is_array(v) ? json_array_get(v, (size_t)atoi(part))
				     : json_object_get(v, part);
	return v;
}

static const char *text_at(const struct config *c, const char *path)
{
	return json_string_value(find(c, path));
}

#define AGENT "/config/participants/0/config"

TEST(one_agent_in_ten_lines)
{
	struct config c;

	CHECK_INT(
		load("name: coder\n"
		     "model: gpt-4o-mini\n"
		     "system: You write Python and run it.\n"
		     "tools:\n"
		     "  - run_python: {approval: always, box: {timeout: 5s}}\n"
		     "  - run_shell\n"
		     "  - dice\n"
		     "  - ./tools/count\n"
		     "box: {memory: 256m, timeout: 10s}\n"
		     "policy: strict\n",
		     &c),
		0);
	CHECK_STR(text_at(&c, "/provider"), "cordon.team.round_robin");
	CHECK_STR(text_at(&c, "/config/policy"), "strict");
	CHECK_STR(text_at(&c, AGENT "/name"), "coder");
	CHECK_STR(text_at(&c, AGENT "/model/config/model"), "gpt-4o-mini");
	CHECK_STR(text_at(&c, AGENT "/system_message"),
		  "You write Python and run it.");
	CHECK_STR(text_at(&c, AGENT "/tools/0/provider"),
		  "cordon.tool.run_python");
	CHECK_STR(text_at(&c, AGENT "/tools/0/config/box/timeout"), "5s");
	CHECK_STR(text_at(&c, AGENT "/tools/0/config/box/memory"), "256m");
	CHECK_STR(text_at(&c, AGENT "/tools/0/config/approval"), "always");
	CHECK_STR(text_at(&c, AGENT "/tools/1/config/box/timeout"), "10s");
	CHECK_STR(text_at(&c, AGENT "/tools/2/provider"),
		  "cordon.tool.function");
	CHECK_STR(text_at(&c, AGENT "/tools/3/provider"),
		  "cordon.tool.program");
	CHECK_STR(text_at(&c, AGENT "/tools/3/config/path"), "./tools/count");
	CHECK_STR(text_at(&c, "/config/termination/provider"),
		  "cordon.termination.source_match");
	CHECK_STR(text_at(&c, "/config/termination/config/sources/0"), "coder");
	config_done(&c);
}

TEST(a_team_in_twenty)
{
	struct config c;

	CHECK_INT(load("team: selector\n"
		       "model: {model: llama3.1, base_url: "
		       "'http://127.0.0.1:11434/v1', info: {price_prompt: "
		       "0, price_completion: 0}}\n"
		       "agents:\n"
		       "  writer:\n"
		       "    description: writes\n"
		       "    tools: [run_python]\n"
		       "    context: {last: 20}\n"
		       "  critic:\n"
		       "    model: {model: gpt-4o, info: {price_prompt: 3, "
		       "price_completion: 9}}\n"
		       "    memory: [be short]\n"
		       "  runner: {kind: code_executor, languages: [python]}\n"
		       "  person: {kind: user}\n"
		       "stop: {text: APPROVE, messages: 12, time: 2m}\n"
		       "budget: {tokens: 50000, cost: 0.5, time: 90}\n"
		       "policy: team-policy.yaml\n",
		       &c),
		  0);
	CHECK_STR(text_at(&c, "/provider"), "cordon.team.selector");
	CHECK_STR(text_at(&c, "/config/model/config/model"), "llama3.1");
	CHECK_STR(text_at(&c, AGENT "/model/config/model"), "llama3.1");
	CHECK_STR(text_at(&c, AGENT "/context/provider"),
		  "cordon.context.last");
	CHECK_STR(text_at(&c, "/config/participants/1/config/model/config/"
			      "model"),
		  "gpt-4o");
	CHECK_STR(text_at(&c, "/config/participants/2/config/executor/"
			      "provider"),
		  "cordon.tool.run_code");
	CHECK(!find(&c, "/config/participants/2/config/model"));
	CHECK_STR(text_at(&c, "/config/participants/3/provider"),
		  "cordon.agent.user_proxy");
	CHECK_STR(text_at(&c, "/config/termination/provider"),
		  "cordon.termination.any");
	CHECK(json_number_value(find(&c, "/config/termination/config/"
					 "conditions/2/config/seconds")) ==
	      120);
	CHECK(json_number_value(find(&c, "/config/budget/wall_seconds")) == 90);
	config_done(&c);
}

/* Each with the line where it is, and the path. */
TEST(errors_have_their_place)
{
	CHECK_HAS(wrong("name: a\nmodle: x\n"),
		  "t.yaml:2:1: /modle: no such field");
	CHECK_HAS(wrong("name: a\nmodel: x\ntools: [run_python, rum]\n"),
		  "t.yaml:3:21: /tools/1: no such tool 'rum'");
	CHECK_HAS(wrong("name: a\n"), "'model' is missing");
	CHECK_HAS(wrong("name: a b\nmodel: x\n"), "t.yaml:1:1: /name: write");
	CHECK_HAS(wrong("model: x\nbox: {memry: 1g}\n"), "t.yaml:2:");
	CHECK_HAS(wrong("model: x\nbox: {memry: 1g}\n"), "memry");
	CHECK_HAS(wrong("model: x\nstop: {mesages: 3}\n"),
		  "/stop/mesages: no such condition");
	CHECK_HAS(wrong("model: x\nstop: {messages: 0}\n"), "/stop/messages/n");
	CHECK_HAS(wrong("model: x\ncontext: {last: none}\n"), "t.yaml:2:1");
	CHECK_HAS(wrong("model: x\ncontext:\n  summary: {mesages: 4}\n"),
		  "t.yaml:3:13: /context/summary/mesages: no such field");
	CHECK_HAS(wrong("model: x\ncontext:\n  summary: {messages: 4,\n"
			"    model: {modell: y}}\n"),
		  "t.yaml:4:13: /context/summary/model/modell: no such field");
	CHECK_HAS(wrong("model: x\ncontext: {summary: no}\n"),
		  "/context/summary/messages: write a whole number");
	CHECK_HAS(wrong("team: selector\nmodel: x\nmax_turns: 2\n"
			"agents: {a: {}, b: {}}\ncandidate_func: who\n"),
		  "t.yaml:5:1: /candidate_func: no function is registered as "
		  "'who'; a program that links libcordon-agent");
	CHECK_HAS(wrong("model: x\nstop:\n  any:\n    - {text: a}\n"
			"    - function: full\n"),
		  "t.yaml:5:7: /stop/any/1/function/name: no function");
	CHECK_HAS(wrong("{\"provider\":\"cordon.termination.function\","
			"\"config\":{\"name\":\"full\"}}"),
		  "/config/name: no function is registered as 'full'");
	CHECK_HAS(wrong("team: round_robin\nmodel: x\nselector_func: f\n"
			"agents: {a: {}}\nmax_turns: 2\n"),
		  "/selector_func: no function");
	CHECK_HAS(wrong("model: x\nprompt: p\n"
			"agents: {a: {}}\nmax_turns: 2\n"),
		  "t.yaml:2:1: /prompt: no such field; "
		  "cordon.team.round_robin has");
	CHECK_HAS(wrong("model: x\nhandoffs: [b, {name: c}]\n"),
		  "t.yaml:2:1: /handoffs/1: 'target' is missing");
	CHECK_HAS(wrong("model: x\nhandoffs:\n  - {target: b,\n     mesage: "
			"c}\n"),
		  "t.yaml:4:6: /handoffs/0/mesage: no such field; a handoff "
		  "has target, description, name, message");
	CHECK_HAS(wrong("model: x\nhandoffs: [no name]\n"),
		  "/handoffs/0: write a name of letters");
	CHECK_HAS(wrong("model: x\nhandoffs: 7\n"),
		  "/handoffs: write a list of agents");
	CHECK_HAS(wrong("agents:\n  a: {model: x}\n"), "would never end");
	CHECK_HAS(wrong("max_turns: 2\nagents:\n  a: {model: x, name: b}\n"),
		  "/agents/a");
	CHECK_HAS(wrong("model: x\nmodel: y\n"), "/model: this key is there "
						 "twice");
	CHECK_HAS(wrong("model: [x\n"), "t.yaml:");
	CHECK_HAS(wrong("model: x\ntools: [run_python, run_python]\n"),
		  "two tools called 'run_python'");
	CHECK_HAS(wrong("- a\n"), "this is no map");
	CHECK_HAS(wrong(""), "this is no map");
	CHECK_HAS(wrong("model: x\n---\nmodel: y\n"), "more than one document");
	CHECK_HAS(wrong("{\"provider\": \"cordon.team.none\"}"),
		  "/provider: no such provider");
	CHECK_HAS(wrong("{\"provider\": "), "t.yaml:1:");
	CHECK_HAS(wrong("kind: user\ntools: [run_python]\nmax_turns: 1\n"),
		  "/tools: no such field");
}

TEST(secrets_are_only_named)
{
	CHECK_HAS(wrong("model: {model: x, api_key: sk-123}\n"),
		  "/model/api_key: write {env: NAME} or {file: PATH}");
	CHECK(!strstr(wrong("model: {model: x, api_key: sk-123}\n"), "sk-123"));
	CHECK_STR(wrong("model: {model: x, api_key: {env: K}}\n"), "");
	CHECK_STR(wrong("model: {model: x, api_key: {file: ./key}}\n"), "");
	CHECK_HAS(wrong("model: {model: x, api_key: {env: K, file: f}}\n"),
		  "/model/api_key");
}

/* D37: names lead nowhere but into the table. */
TEST(d37_loading_runs_nothing)
{
	static const char *const hostile[] = {
		"{\"provider\":\"test_evil.Evil\",\"config\":{}}",
		"{\"provider\":\"os.system\",\"config\":{\"command\":\"touch "
		"/tmp/cordon-d37\"}}",
		"{\"provider\":\"cordon.tool.run_python\",\"config\":{}}",
		"{\"provider\":\"../../tmp/evil.so\",\"config\":{}}",
		"provider: !!python/object/apply:os.system ['touch "
		"/tmp/cordon-d37']\n",
		"model: !!python/object/apply:os.system [id]\n",
		"model: x\ntools: [os.system]\n",
		"model: x\ntools: ['$(touch /tmp/cordon-d37)']\n",
		"model: x\ntools: [{run_python: {source_code: 'import os'}}]\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		CHECK(*wrong(hostile[i]) != '\0');
	CHECK(access("/tmp/cordon-d37", F_OK) < 0);
}

TEST(aliases_do_not_grow)
{
	char text[2000] = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
	char line[120];

	for (int k = 'b'; k < 'i'; k++) {
		(void)snprintf(
			line, sizeof(line),
			"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", k, k,
			k - 1, k - 1, k - 1, k - 1, k - 1, k - 1, k - 1, k - 1,
			k - 1);
		strcat(text, line);
	}
	CHECK_HAS(wrong(text), "too many values");
	CHECK_HAS(wrong("model: &m [*m]\n"), "t.yaml:");
}

static void check_round_trip(const char *text)
{
	struct config c;
	struct config d;
	char *once;
	char *twice;

	CHECK_INT(load(text, &c), 0);
	if (err.code) {
		printf("# %s\n", err.text);
		return;
	}
	once = config_dump(&c);
	CHECK_INT(load(once, &d), 0);
	if (err.code)
		printf("# %s\n", err.text);
	twice = config_dump(&d);
	CHECK_STR(twice, once);
	free(once);
	free(twice);
	config_done(&c);
	config_done(&d);
}

static json_t *who(void *arg, const json_t *thread, struct fault *why)
{
	(void)arg;
	(void)thread;
	(void)why;
	return NULL;
}

static bool is_full(void *arg, const json_t *fresh, struct fault *why)
{
	return !arg && !fresh && !why;
}

#define PRICES "info: {price_prompt: 1, price_completion: 0}"

/* None is built in: whoever sets a limit says them, in every form. */
TEST(limits_in_dollars_need_prices)
{
	static const char *const bad[][2] = {
		{ "model: gpt-4o\nbudget: {tokens: 9, cost: 1}\n",
		  "t.yaml:2:21: /budget/cost: a limit in dollars needs the "
		  "prices of 'gpt-4o'; write model: {model: gpt-4o, info:" },
		{ "model: {model: m, info: {price_prompt: 1}}\n"
		  "budget: {cost: 1}\n",
		  "/budget/cost: a limit" },
		{ "model: m\nstop: {any: [{text: X}, {all: [{cost: 2}]}]}\n",
		  "t.yaml:2:1: /stop: a limit" },
		{ "model: m\nmax_cost_per_turn: 1\n",
		  "t.yaml:2:1: /max_cost_per_turn: a limit" },
		{ "max_turns: 1\nagents:\n  a: {model: m}\n"
		  "  b: {model: n, max_cost_per_turn: 1}\n",
		  "t.yaml:4:17: /agents/b/max_cost_per_turn: a limit in "
		  "dollars needs the prices of 'n'" },
		/* All that a run pays for. */
		{ "team: selector\nmodel: s\nmax_turns: 1\nagents:\n"
		  "  a: {model: {model: m, " PRICES "}}\n"
		  "  b: {model: {model: m, " PRICES "}}\n"
		  "budget: {cost: 1}\n",
		  "/budget/cost: a limit in dollars needs the prices of 's'" },
		{ "model: {model: m, " PRICES "}\nmax_cost_per_turn: 1\n"
		  "context: {summary: {messages: 9, model: sum}}\n",
		  "/max_cost_per_turn: a limit in dollars needs the prices of "
		  "'sum'" },
		{ "model: {model: m, " PRICES "}\nbudget: {cost: 1}\n"
		  "tools: [{agent: {name: b, description: d, model: in}}]\n",
		  "/budget/cost: a limit in dollars needs the prices of 'in'" },
		{ "model: m\n"
		  "tools: [{agent: {name: b, description: d, model: in,\n"
		  "  max_cost_per_turn: 1}}]\n",
		  "a limit in dollars needs the prices of 'in'" },
		{ "{\"provider\":\"cordon.agent.assistant\",\"config\":{"
		  "\"name\":\"a\",\"max_cost_per_turn\":1,\"model\":{"
		  "\"provider\":\"cordon.model.openai\",\"config\":{"
		  "\"model\":\"m\"}}}}",
		  "/config/max_cost_per_turn: a limit" },
	};
	static const char *const good[] = {
		"model: {model: m, " PRICES "}\nbudget: {cost: 1}\n"
		"max_cost_per_turn: 2\nstop: {cost: 3}\n",
		"model: m\nbudget: {tokens: 9}\n",
		"max_turns: 1\nagents:\n  a: {model: m}\n"
		"  b: {model: {model: n, " PRICES "}, max_cost_per_turn: 1}\n",
		"{\"provider\":\"cordon.agent.assistant\",\"config\":{"
		"\"name\":\"a\",\"max_cost_per_turn\":1,\"model\":{"
		"\"provider\":\"cordon.model.replay\",\"config\":{"
		"\"file\":\"r\"}}}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_HAS(wrong(bad[i][0]), bad[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK_STR(wrong(good[i]), "");
}

/* D19: dump, load, dump; every component, every field. */
TEST(d19_dumps_load_as_they_are)
{
	CHECK(selector_register("who", who, NULL, NULL) == 0);
	CHECK(termination_register("full", is_full, NULL, NULL) == 0);
	check_round_trip(
		"team: selector\nmodel: {model: m, info: {price_prompt: 1, "
		"price_completion: 2}}\nname: crew\ndescription: d\n"
		"agents:\n"
		"  a: {system: s, tools: [run_python, run_shell, run_code,\n"
		"      read_file, write_file, list_files, dice, ./p],\n"
		"      context: {head: 1, tail: 2}, memory: [x], stream: "
		"false,\n"
		"      parallel: false, handoffs: [b], max_tool_iterations: "
		"3,\n"
		"      reflect_on_tool_use: true, summary_format: '{result}',\n"
		"      output_schema: {type: object}, output_format: f}\n"
		"  b: {kind: code_executor, sources: [a], languages: [sh],\n"
		"      max_retries_on_error: 2, context: {tokens: 100}}\n"
		"  c: {kind: user, prompt: '? '}\n"
		"  d: {context: {summary: {messages: 9, tokens: 90, keep: 3,\n"
		"      model: {model: n, temperature: 0, info: {price_prompt: "
		"1,\n"
		"      price_completion: 2}}, prompt: q}}}\n"
		"  e: {context: {summary: 12}, handoffs: [a, {target: b,\n"
		"      description: d, name: to-b, message: m}]}\n"
		"stop:\n  any:\n"
		"    - {text: {text: X, sources: [a, b], include_task: true}}\n"
		"    - all: [{messages: {n: 3, include_events: true}},\n"
		"            {tokens: {max_prompt: 4}}]\n"
		"    - {time: 1.5}\n    - {answer: [a]}\n    - {text_from: a}\n"
		"    - {handoff: b}\n    - {call: run_python}\n"
		"    - {cost: 0.25}\n    - {loop: 3}\n    - {errors: 2}\n"
		"    - {tool_calls: 9}\n    - {cpu: 10}\n"
		"    - {function: full}\n    - {stop_message: true}\n    - "
		"{external: true}\n"
		"max_turns: 7\nallow_repeated_speaker: true\n"
		"max_selector_attempts: 2\nselector_func: who\n"
		"candidate_func: who\nprompt: p\nemit_team_events: true\n"
		"output_task_messages: false\non_agent_error: skip\n"
		"budget: {tokens: 1, cost: 2, time: 3s, tool_calls: 4}\n"
		"policy: strict\n");
	check_round_trip("model: x\nbox: {volumes: ['./d:/workspace/data:ro'], "
			 "env: {A: b}}\ntools: [run_python]\n");
}

TEST(a_field_of_another_type_is_refused)
{
	const struct provider *p;

	for (size_t i = 0; (p = provider_at(i)); i++) {
		char text[300];

		(void)snprintf(text, sizeof(text),
			       "{\"provider\":\"%s\",\"config\":{\"nonsense\":"
			       "1}}",
			       p->name);
		CHECK_HAS(wrong(text), "/config/nonsense: no such field");
		(void)snprintf(text, sizeof(text),
			       "{\"provider\":\"%s\",\"version\":2}", p->name);
		CHECK_HAS(wrong(text), "this build knows 1");
		(void)snprintf(text, sizeof(text),
			       "{\"provider\":\"%s\",\"component_type\":"
			       "\"executor\"}",
			       p->name);
		CHECK_HAS(wrong(text), "is of the type");
	}
}

static const char theirs[] =
	"{\"provider\":\"autogen_agentchat.teams.RoundRobinGroupChat\","
	"\"component_type\":\"team\",\"version\":1,\"label\":\"t\",\"config\":{"
	"\"participants\":[{\"provider\":\"autogen_agentchat.agents."
	"AssistantAgent\",\"config\":{\"name\":\"coder\",\"model_client\":{"
	"\"provider\":\"autogen_ext.models.openai."
	"OpenAIChatCompletionClient\",\"config\":{\"model\":\"gpt-4o\","
	"\"api_key\":\"sk-secret\"}},\"workbench\":[{\"provider\":"
	"\"autogen_core.tools.StaticStreamWorkbench\",\"config\":{\"tools\":["
	"{\"provider\":\"autogen_core.tools.FunctionTool\",\"config\":{"
	"\"source_code\":\"import os\"}},{\"provider\":\"autogen_ext.tools."
	"code_execution.PythonCodeExecutionTool\",\"config\":{\"executor\":{"
	"\"provider\":\"autogen_ext.code_executors.docker."
	"DockerCommandLineCodeExecutor\",\"config\":{\"timeout\":30}}}}]}}],"
	"\"metadata\":{\"k\":\"v\"},\"model_client_stream\":true,"
	"\"tool_call_summary_format\":\"{result}\"}}],"
	"\"termination_condition\":{\"provider\":\"autogen_agentchat.base."
	"OrTerminationCondition\",\"config\":{\"conditions\":[{\"provider\":"
	"\"autogen_agentchat.conditions.TextMentionTermination\",\"config\":{"
	"\"text\":\"DONE\"}},{\"provider\":\"autogen_agentchat.conditions."
	"MaxMessageTermination\",\"config\":{\"max_messages\":9,"
	"\"include_agent_event\":false}}]}}}}";

static bool is_left(const json_t *left, const char *path)
{
	json_t *one;
	size_t i;

	json_array_foreach(
		left, i,
		one) if (strcmp(json_string_value(json_object_get(one, "path")),
				path) == 0) return true;
	return false;
}

TEST(an_import_says_what_it_left_out)
{
	json_t *from = json_loads(theirs, 0, NULL);
	json_t *left = NULL;
	json_t *to;
	char *text;
	struct config c;

	memset(&err, 0, sizeof(err));
	to = config_import(from, &left, &err);
	CHECK(to != NULL);
	text = json_dumps(to, 0);
	CHECK(!strstr(text, "sk-secret") && !strstr(text, "import os"));
	CHECK_INT(load(text, &c), 0);
	if (err.code)
		printf("# %s\n", err.text);
	CHECK_STR(text_at(&c, "/label"), "t");
	CHECK_STR(text_at(&c, AGENT "/model/config/model"), "gpt-4o");
	CHECK_STR(text_at(&c, AGENT "/tools/0/provider"),
		  "cordon.tool.run_python");
	CHECK(json_integer_value(
		      find(&c, AGENT "/tools/0/config/box/timeout")) == 30);
	CHECK_STR(text_at(&c, "/config/termination/config/conditions/0/config/"
			      "text"),
		  "DONE");
	CHECK_INT((int)json_array_size(left), 3);
	CHECK(is_left(left, AGENT "/model_client/config/api_key"));
	CHECK(is_left(left, AGENT "/workbench/0/config/tools/0"));
	CHECK(is_left(left, AGENT "/metadata"));
	config_done(&c);
	free(text);
	json_decref(to);
	json_decref(left);
	json_decref(from);
}

TEST(handoffs_are_imported_with_their_words)
{
	json_t *from = json_loads(
		"{\"provider\":\"autogen_agentchat.agents.AssistantAgent\","
		"\"config\":{\"name\":\"a\",\"model_client\":{\"provider\":"
		"\"autogen_ext.models.openai.OpenAIChatCompletionClient\","
		"\"config\":{\"model\":\"m\"}},\"handoffs\":[\"b\","
		"{\"target\":\"c\",\"description\":\"d\",\"name\":"
		"\"transfer_to_c\",\"message\":\"go\"},"
		"{\"target\":\"e\",\"odd\":1},{\"name\":\"f\"}]}}",
		0, NULL);
	json_t *left = NULL;
	json_t *to = config_import(from, &left, &err);
	json_t *list = json_object_get(json_object_get(to, "config"),
				       "handoffs");
	char *text = json_dumps(to, 0);
	struct config c;

	CHECK_INT(load(text, &c), 0);
	CHECK_INT((int)json_array_size(list), 3);
	CHECK_STR(json_string_value(
			  json_object_get(json_array_get(list, 1), "message")),
		  "go");
	CHECK(is_left(left, "/config/handoffs/2"));
	CHECK(is_left(left, "/config/handoffs/3"));
	CHECK_INT((int)json_array_size(left), 2);
	config_done(&c);
	free(text);
	json_decref(to);
	json_decref(left);
	json_decref(from);
}

TEST(what_nobody_knows_is_no_import)
{
	json_t *from = json_loads("{\"provider\":\"test_x.Evil\"}", 0, NULL);
	json_t *left = NULL;

	CHECK(config_import(from, &left, &err) == NULL);
	CHECK_INT((int)json_array_size(left), 1);
	json_decref(left);
	json_decref(from);
}

TEST(the_schema_is_made)
{
	json_t *schema = config_schema();

	CHECK(json_object_size(json_object_get(schema, "$defs")) > 40);
	json_decref(schema);
}

TEST(toolsets_in_both_forms)
{
	struct config c;
	struct config again;
	char *text;

	CHECK_INT(load("name: a\nmodel: m\nbox: {memory: 64m}\n"
		       "toolsets:\n"
		       "  - sandbox\n"
		       "  - static: {name: mine, tools: [dice, ./count], "
		       "names: {dice: roll}}\n",
		       &c),
		  0);
	CHECK_STR(err.text, "");
	CHECK_STR(text_at(&c, AGENT "/toolsets/0/provider"),
		  "cordon.toolset.sandbox");
	CHECK_STR(text_at(&c, AGENT "/toolsets/0/config/box/memory"), "64m");
	CHECK_STR(text_at(&c, AGENT "/toolsets/1/config/tools/0/provider"),
		  "cordon.tool.function");
	CHECK_STR(text_at(&c, AGENT "/toolsets/1/config/names/dice"), "roll");
	/* Who has tools calls them more than once. */
	CHECK_INT(json_integer_value(find(&c, AGENT "/max_tool_iterations")),
		  10);
	text = config_dump(&c);
	CHECK_INT(load(text, &again), 0);
	CHECK(json_equal(c.component, again.component));
	free(text);
	config_done(&c);
	config_done(&again);
}

TEST(toolsets_that_cannot_be)
{
#define SETS "name: a\nmodel: m\ntools: [dice]\ntoolsets:\n"
	CHECK_HAS(wrong(SETS "  - static: {tools: [dice]}\n"),
		  "'a' has two tools called 'dice'");
	CHECK_STR(wrong(SETS "  - static: {tools: [dice], names: {dice: d}}\n"),
		  "");
	CHECK_HAS(wrong(SETS "  - sandbox: {names: {run_python: dice}}\n"),
		  "'a' has two tools called 'dice'");
	CHECK_HAS(wrong(SETS "  - sandbox\n  - sandbox\n"),
		  "'a' has two tools called 'run_python'");
	CHECK_STR(wrong(SETS "  - sandbox: {tools: [run_python]}\n"
			     "  - sandbox: {tools: run_shell}\n"),
		  "");
	CHECK_HAS(wrong(SETS "  - mcp: {command: [x]}\n"), "not in this build");
	CHECK_HAS(wrong("provider: cordon.agent.assistant\nconfig: {name: a, "
			"model: {provider: cordon.model.openai, config: "
			"{model: m}}, toolsets: [{provider: "
			"cordon.toolset.mcp, config: {}}]}\n"),
		  "not in this build");
	CHECK_HAS(wrong(SETS "  - static: {}\n"), "write a list of tools");
	CHECK_HAS(wrong(SETS "  - boxes\n"), "write sandbox");
	CHECK_HAS(wrong(SETS "  - sandbox: {names: {run_python: a b}}\n"),
		  "t.yaml:5");
}

TAP_MAIN()
