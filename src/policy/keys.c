/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/keys.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"
#include "policy/values.h"

#define WORDS(...)                                                             \
	(const char *const[])                                                  \
	{                                                                      \
		__VA_ARGS__, NULL                                              \
	}
#define SCALAR(name_, takes_, check_, regex_)                                  \
	static const struct grammar name_ = { .kind = GRAMMAR_SCALAR,          \
					      .takes = (takes_),               \
					      .check = (check_),               \
					      .regex = (regex_) }
#define NUMBER(name_, takes_, check_, number_, regex_)                         \
	static const struct grammar name_ = { .kind = GRAMMAR_SCALAR,          \
					      .takes = (takes_),               \
					      .check = (check_),               \
					      .number = (number_),             \
					      .regex = (regex_) }
/* Words in the order from loose to tight. */
#define CHOICE(name_, takes_, ...)                                             \
	static const struct grammar name_ = { .kind = GRAMMAR_SCALAR,          \
					      .takes = (takes_),               \
					      .words = WORDS(__VA_ARGS__) }
#define BOOL(name_, loose_, tight_)                                            \
	static const struct grammar name_ = { .kind = GRAMMAR_SCALAR,          \
					      .takes = "true or false",        \
					      .words = WORDS(loose_, tight_),  \
					      .is_bool = true }
#define LIST(name_, takes_, item_)                                             \
	static const struct grammar name_ = { .kind = GRAMMAR_LIST,            \
					      .takes = (takes_),               \
					      .item = &(item_) }
/* Where no item would mean anything, or make the rule do nothing. */
#define FILLED(name_, takes_, item_)                                           \
	static const struct grammar name_ = { .kind = GRAMMAR_LIST,            \
					      .takes = (takes_),               \
					      .item = &(item_),                \
					      .is_filled = true }
#define MAP(name_, takes_, keys_)                                              \
	static const struct grammar name_ = { .kind = GRAMMAR_MAP,             \
					      .takes = (takes_),               \
					      .keys = (keys_) }
#define END                                                                    \
	{                                                                      \
		NULL, NULL, false, NULL                                        \
	}

static int plain_number(const char *t, uint64_t *ret)
{
	return num_parse(t, UINT64_MAX, ret);
}

static int isolation_number(const char *t, uint64_t *ret)
{
	int rank = value_isolation_rank(t);

	if (rank < 0)
		return -EINVAL;
	*ret = (uint64_t)(2 - rank);
	return 0;
}

static int size_or_none(const char *t, uint64_t *ret)
{
	if (strcmp(t, "none") != 0)
		return num_parse_size(t, ret);
	*ret = UINT64_MAX;
	return 0;
}

/* Of an hour, where each of the units has a whole number. */
static int rate_number(const char *t, uint64_t *ret)
{
	uint32_t seconds = 1;
	int r = value_rate(t, ret, &seconds);

	if (r == 0)
		*ret *= 3600 / seconds;
	return r;
}

#define RE_TIME "^[0-9.]+(us|ms|s|m|min|h)?$"
#define RE_SIZE "^[0-9.]+[kKmMgGtT]?[bB]?$"

NUMBER(g_time, "a time such as 30s, 500ms or 2m", value_is_time,
       num_parse_duration, RE_TIME);
NUMBER(g_size, "a size such as 64m, 1g or a number of bytes", value_is_size,
       num_parse_size, RE_SIZE);
/* Where 0 would be no bound at all: of a quota, a log, a file system. */
NUMBER(g_some, "a size of at least 1 byte such as 64m or 1g", value_is_some,
       num_parse_size, RE_SIZE);
NUMBER(g_size_or_none, "a size of at least 1 byte such as 64m, or none",
       value_is_size_or_none, size_or_none, "^(none|[0-9.]+[kKmMgGtT]?[bB]?)$");
NUMBER(g_memory, "a size of at least 1m, such as 256m or 1g", value_is_memory,
       num_parse_size, RE_SIZE);
NUMBER(g_cpus, "a number of CPUs such as 0.5 or 2", value_is_cpus,
       num_parse_milli, "^[0-9.]+$");
NUMBER(g_pids, "a number from 2 to 4194304", value_is_pids, plain_number,
       "^[0-9]+$");
NUMBER(g_files, "a number from 16 to 1048576", value_is_files, plain_number,
       "^[0-9]+$");
NUMBER(g_isolation, "native, oci:RUNTIME, docker or vm", value_is_isolation,
       isolation_number, "^(native|docker|vm|oci:[A-Za-z0-9._-]+)$");
SCALAR(g_user, "UID[:GID], nobody or root", value_is_user,
       "^([0-9]+|nobody|root)(:([0-9]+|nogroup|nobody|root))?$");
SCALAR(g_box_path, "an absolute path in the box, such as /workspace",
       value_is_box_path, "^/.");
SCALAR(g_host_path, "a path on this machine", value_is_host_path, NULL);
SCALAR(g_env_name, "the name of a variable, such as LANG", value_is_env_name,
       "^[A-Za-z_][A-Za-z0-9_]*$");
SCALAR(g_secret_name,
       "the name of a variable, such as API_TOKEN, and none that Cordon sets "
       "for its authority, such as SSL_CERT_FILE",
       value_is_secret_name, "^[A-Za-z_][A-Za-z0-9_]*$");
SCALAR(g_image, "'host', or a name, glob or digest of an image", value_is_image,
       NULL);
SCALAR(g_host,
       "a host such as api.example.org, '*.example.org', an address or a CIDR",
       value_is_host, NULL);
SCALAR(g_port, "a port from 1 to 65535, but not 53: names are the gate's",
       value_is_port, "^[0-9]+$");
SCALAR(g_method, "a method that the gate lets through: " VALUE_METHODS(", "),
       value_is_method, "^(" VALUE_METHODS("|") ")$");
SCALAR(g_url_path, "a path such as '/repos/**'", value_is_url_path, "^/");
SCALAR(g_header, "the name of an HTTP header", value_is_header, NULL);
SCALAR(g_format, "a text with {} in it, such as 'Bearer {}'", value_is_format,
       "\\{\\}");
SCALAR(g_reached, "ADDRESS or ADDRESS:PORT, such as 127.0.0.1:8443",
       value_is_reached, NULL);
SCALAR(g_field, "the name of a field: letters, digits, '.', '_' and '-'",
       value_is_field, "^[A-Za-z0-9._-]+$");
NUMBER(g_rate, "new connections a minute, or N/s, N/m, N/h", value_is_rate,
       rate_number, "^[0-9]+(/[smh])?$");
NUMBER(g_connections, "a number from 1 to 65535", value_is_connections,
       plain_number, "^[0-9]+$");
NUMBER(g_wait, "a time of at most 1h such as 30s, or 0: it fails at once",
       value_is_wait, num_parse_duration, RE_TIME);
SCALAR(g_endpoint, "HOST:PORT", value_is_endpoint, ":[0-9]+$");
SCALAR(g_program, "the name of a program, without a directory",
       value_is_program, "^[A-Za-z0-9._+\\[][A-Za-z0-9._+\\[-]*$");
SCALAR(g_flag, "a flag such as -n or --long", value_is_flag, "^-.");
SCALAR(g_word, "a word", value_is_word, NULL);
SCALAR(g_text, "some text", value_is_text, NULL);
SCALAR(g_pattern,
       "a regular expression with . [a-z] ( ) | * + ? {m,n} ^ $ \\d \\w \\s "
       "\\b, and (?i) first where case does not matter; no back references, "
       "lookaround or lazy quantifiers",
       value_is_regex, NULL);
SCALAR(g_any, "some text", value_is_any, NULL);
SCALAR(g_registry, "the name of a registry", value_is_registry, NULL);
SCALAR(g_extends,
       "a preset (strict, data-analysis, shell-tools, build, cautious) or a "
       "path",
       value_is_preset_or_path, NULL);

BOOL(g_tight_true, "false", "true");
BOOL(g_tight_false, "true", "false");
CHOICE(g_version, "1", "1");
CHOICE(g_mode, "ro or rw", "rw", "ro");
CHOICE(g_layer,
       "userns, seccomp, landlock, cgroup, memory, cpu, pids, cpuset or "
       "own-uid",
       "userns", "seccomp", "landlock", "cgroup", "memory", "cpu", "pids",
       "cpuset", "own-uid");
CHOICE(g_default, "deny, the only value", "deny");
CHOICE(g_inspect, "rules-only, the only value", "rules-only");
CHOICE(g_operands, "grammar, any, paths or none", "any", "paths", "grammar",
       "none");
CHOICE(g_otherwise, "deny or ask", "ask", "deny");
CHOICE(g_approval, "never, policy or always", "never", "policy", "always");
CHOICE(g_role, "user, assistant, tool or system", "user", "assistant", "tool",
       "system");
CHOICE(g_match, "secrets, host_paths or urls", "secrets", "host_paths", "urls");
CHOICE(g_do, "strip, mask or reject", "strip", "mask", "reject");
CHOICE(g_asker, "terminal or store", "terminal", "store");
CHOICE(g_kind, "commands or code", "commands", "code");
CHOICE(g_code_class, "contained", "contained");
CHOICE(g_over, "clamp or deny", "clamp", "deny");
CHOICE(g_symlinks, "deny, allow or sweep", "allow", "sweep", "deny");
CHOICE(g_disconnect, "keep or kill", "keep", "kill");
CHOICE(g_kept, "commands, code or output", "commands", "code", "output");
CHOICE(g_redact, "secrets", "secrets");
CHOICE(g_cause,
       "a cause: exited, signal, timeout, cpu, memory, pids, disk, output, "
       "denied, cancelled, not_found, invalid or setup",
       "exited", "signal", "timeout", "cpu", "memory", "pids", "disk", "output",
       "denied", "cancelled", "not_found", "invalid", "setup");

/* Those of which a run tells whether they denied something. */
CHOICE(g_test_layer,
       "policy, net, mount, cpu, memory, pids, disk or output: a layer that "
       "tells what it denied",
       "policy", "net", "mount", "cpu", "memory", "pids", "disk", "output");

/* sandbox */

LIST(g_images, "a list of images", g_image);
LIST(g_box_paths, "a list of paths in the box", g_box_path);
LIST(g_host_paths, "a list of directories of this machine", g_host_path);
LIST(g_env_names, "a list of names of variables", g_env_name);
LIST(g_layers, "a list of layers", g_layer);

static const struct grammar_key mount_keys[] = {
	{ "from", &g_host_path, true,
	  "a directory or file of this machine; relative to the policy file" },
	{ "to", &g_box_path, true, "where it is in the box" },
	{ "mode", &g_mode, false, "ro unless said" },
	END,
};
MAP(g_mount, "{from: DIR, to: PATH, mode: ro}", mount_keys);
LIST(g_mounts, "a list of {from: DIR, to: PATH, mode: ro}", g_mount);

static const struct grammar g_tmpfs = { .kind = GRAMMAR_DICT,
					.takes = "a map of paths to sizes",
					.item = &g_some,
					.check_key = value_is_box_path,
					.key_takes = "an absolute path" };
static const struct grammar g_env = { .kind = GRAMMAR_DICT,
				      .takes = "a map of variables",
				      .item = &g_any,
				      .check_key = value_is_env_name,
				      .key_takes = "the name of a variable" };

static const struct grammar_key sandbox_keys[] = {
	{ "isolation", &g_isolation, false, "the least that is accepted" },
	{ "images", &g_images, false,
	  "names, globs, digests; the first is the default" },
	{ "timeout", &g_time, false, "wall-clock time" },
	{ "cpu_time", &g_time, false, "CPU time" },
	{ "memory", &g_memory, false, "memory, without swap" },
	{ "cpus", &g_cpus, false, "CPU quota" },
	{ "pids", &g_pids, false, "processes and threads" },
	{ "output", &g_size, false, "kept of each stream" },
	{ "disk", &g_some, false, "workspace and scratch layer" },
	{ "files", &g_files, false, "open files of each process" },
	{ "user", &g_user, false, "the user in the box" },
	{ "read_only", &g_tight_true, false, "the root file system" },
	{ "writable", &g_box_paths, false,
	  "the only writable places besides declared rw mounts" },
	{ "tmpfs", &g_tmpfs, false, "places in memory and their sizes" },
	{ "mounts", &g_mounts, false, "what is mounted into each box" },
	{ "mount_roots", &g_host_paths, false,
	  "where a flag or a request may mount from" },
	{ "env", &g_env, false, "variables of each box" },
	{ "env_from_host", &g_env_names, false,
	  "names of variables that may be passed in" },
	{ "require", &g_layers, false,
	  "layers that must be there, or nothing runs" },
	END,
};
MAP(g_sandbox, "a map of limits and permissions of the box", sandbox_keys);

/* network */

FILLED(g_ports, "a list of ports, such as [443]", g_port);
FILLED(g_methods, "a list of HTTP methods, such as [GET]", g_method);
FILLED(g_url_paths, "a list of paths, such as ['/repos/**']", g_url_path);
static const struct grammar_key secret_keys[] = {
	{ "env", &g_secret_name, true, "the variable of the host that has it" },
	{ "header", &g_header, false,
	  "the header it is put into; '*': any that has the placeholder" },
	{ "query", &g_field, false, "the field of the query it is put into" },
	{ "body", &g_field, false,
	  "the field of a form or JSON body it is put into" },
	{ "format", &g_format, false, "how it is written in the header" },
	END,
};
MAP(g_secret,
    "{env: NAME, header: NAME, format: 'Bearer {}'}; query or body: FIELD "
    "instead of header",
    secret_keys);
static const struct grammar_key host_keys[] = {
	{ "host", &g_host, true,
	  "exact; '*.example.org' is subdomains only; an address if meant" },
	{ "ports", &g_ports, false, "443 unless said" },
	{ "methods", &g_methods, false, "HTTP methods, and WEBSOCKET" },
	{ "paths", &g_url_paths, false, "HTTP paths" },
	{ "secret", &g_secret, false, "sent to this host only" },
	{ "bytes", &g_some, false, "both ways, in the life of a box" },
	{ "connections", &g_connections, false, "at the same time" },
	{ "rate", &g_rate, false, "new connections a minute, or N/s, N/h" },
	END,
};
MAP(g_host_rule, "{host: NAME, ports: [443]}", host_keys);
LIST(g_host_rules, "a list of {host: NAME, ports: [443]}", g_host_rule);
static const struct grammar g_resolve = {
	.kind = GRAMMAR_DICT,
	.takes = "a map of NAME[:PORT] to ADDRESS[:PORT]",
	.item = &g_reached,
	.check_key = value_is_name_end,
	.key_takes = "NAME[:PORT]"
};
static const struct grammar_key network_keys[] = {
	{ "default", &g_default, false, "the only value" },
	{ "allow", &g_host_rules, false, "hosts that may be reached" },
	{ "ask", &g_host_rules, false, "hosts that ask" },
	{ "ask_wait", &g_wait, false,
	  "how long a connection that asks waits (60s); 0: it fails" },
	{ "resolve", &g_resolve, false, "the policy's own word for a host" },
	{ "inspect", &g_inspect, false,
	  "TLS is opened only where a rule needs it" },
	{ "ca", &g_host_path, false,
	  "PEM: whom to trust behind TLS that is opened; this machine's list" },
	{ "connections", &g_connections, false,
	  "of a box at the same time (256)" },
	END,
};
MAP(g_network,
    "a map of default, allow, ask, ask_wait, resolve, inspect, ca, connections",
    network_keys);

/* commands */

LIST(g_words, "a list of words", g_word);
LIST(g_flags, "a list of flags", g_flag);
static const struct grammar_key arg_keys[] = {
	{ "script", &g_box_path, true,
	  "the first operand is a script below this directory" },
	END,
};
MAP(g_arg, "{script: DIR}", arg_keys);
LIST(g_args, "a list with {script: DIR}", g_arg);
static const struct grammar_key command_keys[] = {
	{ "name", &g_program, true, "the program, without a directory" },
	{ "sub", &g_words, false, "the first operand is one of these" },
	{ "flags", &g_flags, false, "these instead of the shipped ones" },
	{ "operands", &g_operands, false, "what else may be given" },
	{ "args", &g_args, false, "a script file" },
	END,
};
static const struct grammar g_command = {
	.kind = GRAMMAR_MAP,
	.takes = "the name of a program, or {name: PROGRAM, flags: [...]}",
	.keys = command_keys,
	.shorthand = "name"
};
LIST(g_command_list, "a list of programs", g_command);
static const struct grammar_key commands_keys[] = {
	{ "allow", &g_command_list, false, "the only programs in the box" },
	{ "ask", &g_command_list, false, "programs that ask" },
	{ "deny", &g_command_list, false, "wins over allow" },
	{ "otherwise", &g_otherwise, false, "what no rule names; deny" },
	END,
};
MAP(g_commands, "a map of allow, ask, deny, otherwise", commands_keys);

/* tools */

static const struct grammar_key tool_sandbox_keys[] = {
	{ "timeout", &g_time, false, NULL },
	{ "cpu_time", &g_time, false, NULL },
	{ "memory", &g_memory, false, NULL },
	{ "cpus", &g_cpus, false, NULL },
	{ "pids", &g_pids, false, NULL },
	{ "output", &g_size, false, NULL },
	{ "disk", &g_some, false, NULL },
	{ "files", &g_files, false, NULL },
	END,
};
MAP(g_tool_sandbox, "a map of lower numbers, such as {timeout: 10s}",
    tool_sandbox_keys);
static const struct grammar_key tool_keys[] = {
	{ "agents", &g_words, false, "which agents have it; '*' is all" },
	{ "approval", &g_approval, false,
	  "always; never; or policy: what crosses the wall" },
	{ "sandbox", &g_tool_sandbox, false, "narrower limits" },
	END,
};
MAP(g_tool, "a map of agents, approval, sandbox", tool_keys);
static const struct grammar g_tools = { .kind = GRAMMAR_DICT,
					.takes = "a map of tools",
					.item = &g_tool,
					.check_key = value_is_word,
					.key_takes = "the name of a tool" };

/* filters */

static const struct grammar_key regex_keys[] = {
	{ "regex", &g_pattern, true,
	  "a regular expression without back references, lookaround, lazy "
	  "quantifiers" },
	END,
};
MAP(g_regex, "{regex: TEXT}", regex_keys);
static const struct grammar g_matches = {
	.kind = GRAMMAR_LIST,
	.takes = "a list of secrets, host_paths, urls, or {regex: TEXT}",
	.item = &g_match,
	.is_filled = true,
	.other = &g_regex
};
FILLED(g_roles, "a list of user, assistant, tool, system", g_role);
static const struct grammar_key filter_keys[] = {
	{ "on", &g_roles, true, "whose messages" },
	{ "match", &g_matches, true, "what is looked for" },
	{ "do", &g_do, true, "what is done" },
	{ "reason", &g_text, false, "what the sender is told" },
	END,
};
MAP(g_filter, "{on: [...], match: [...], do: strip}", filter_keys);
LIST(g_filters, "a list of filters", g_filter);

/* approvals, images, docker, ledger */

/* None: whatever would ask, denies. */
LIST(g_askers, "a list of terminal, store", g_asker);
LIST(g_kinds, "a list of commands, code", g_kind);
LIST(g_code_classes, "a list of contained", g_code_class);
static const struct grammar_key approvals_keys[] = {
	{ "expire", &g_time, false, "no answer by then is a denial" },
	{ "ask", &g_askers, false, "where the question is put" },
	{ "always", &g_kinds, false, "what asks although it is allowed" },
	{ "code_patterns", &g_code_classes, false,
	  "code that a remembered pattern may allow, whatever it says: "
	  "contained (no network, nothing of the host can be written)" },
	END,
};
MAP(g_approvals, "a map of expire, ask, always, code_patterns", approvals_keys);

LIST(g_registries, "a list of registries", g_registry);
static const struct grammar_key images_keys[] = {
	{ "pull", &g_tight_false, false, "whether images may be fetched" },
	{ "registries", &g_registries, false, "from where" },
	END,
};
MAP(g_images_section, "a map of pull, registries", images_keys);

static const struct grammar_key exec_keys[] = {
	{ "on_disconnect", &g_disconnect, false, NULL },
	{ "children", &g_disconnect, false, NULL },
	{ "shims", &g_tight_false, false, NULL },
	{ "max_output", &g_size_or_none, false, NULL },
	END,
};
MAP(g_exec, "a map of on_disconnect, children, shims, max_output", exec_keys);
static const struct grammar_key docker_keys[] = {
	{ "over_ceiling", &g_over, false, "for numbers only" },
	{ "allow_root_inside", &g_tight_false, false,
	  "uid 0 inside; never on the host" },
	{ "bind_symlinks", &g_symlinks, false,
	  "in writable volumes; sweep: those that lead out are removed when "
	  "the box is dead" },
	{ "exec", &g_exec, false, NULL },
	{ "log_max", &g_some, false, NULL },
	END,
};
MAP(g_docker, "a map of settings of the Docker face", docker_keys);

LIST(g_kept_list, "a list of commands, code, output", g_kept);
LIST(g_redact_list, "a list with secrets", g_redact);
static const struct grammar_key ledger_keys[] = {
	{ "keep_text", &g_kept_list, false, "recorded as text" },
	{ "redact", &g_redact_list, false, "left out of that text" },
	END,
};
MAP(g_ledger, "a map of keep_text, redact", ledger_keys);

/* tests */

LIST(g_argv, "a list of a program and its arguments", g_any);
static const struct grammar_key code_keys[] = {
	{ "lang", &g_word, true, NULL },
	{ "text", &g_text, true, NULL },
	END,
};
MAP(g_code, "{lang: LANGUAGE, text: CODE}", code_keys);
static const struct grammar_key cause_keys[] = {
	{ "cause", &g_cause, true, NULL },
	END,
};
MAP(g_expect_cause, "{cause: CAUSE}", cause_keys);
static const struct grammar g_expect = {
	.kind = GRAMMAR_SCALAR,
	.takes = "allowed, denied, ask, or {cause: CAUSE}",
	.words = WORDS("allowed", "ask", "denied"),
	.other = &g_expect_cause
};
static const struct grammar_key test_keys[] = {
	{ "name", &g_word, true, "what it shows" },
	{ "run", &g_argv, false, "a program and its arguments" },
	{ "command", &g_text, false, "a command line" },
	{ "code", &g_code, false, "a piece of code" },
	{ "connect", &g_endpoint, false, "HOST:PORT" },
	{ "expect", &g_expect, true, "what must happen" },
	{ "layer", &g_test_layer, false, "which layer denies it" },
	END,
};
static const struct grammar g_test = {
	.kind = GRAMMAR_MAP,
	.takes = "{name: TEXT, run: [...], expect: denied}",
	.keys = test_keys,
	.one_of = WORDS("run", "command", "code", "connect")
};
LIST(g_tests, "a list of tests", g_test);

static const struct grammar_key policy_keys[] = {
	{ "version", &g_version, true, "of this grammar" },
	{ "extends", &g_extends, false,
	  "a preset or a file that this one tightens or adds to" },
	{ "sandbox", &g_sandbox, false, "the box" },
	{ "network", &g_network, false, "egress" },
	{ "commands", &g_commands, false,
	  "present: only these programs exist in the box" },
	{ "tools", &g_tools, false, "tools of agents" },
	{ "filters", &g_filters, false, "on messages, in order" },
	{ "approvals", &g_approvals, false, "questions to people" },
	{ "images", &g_images_section, false, "where images come from" },
	{ "docker", &g_docker, false, "the Docker face" },
	{ "ledger", &g_ledger, false, "the record" },
	{ "tests", &g_tests, false, "run by cordon policy test" },
	END,
};

const struct grammar grammar_policy = {
	.kind = GRAMMAR_MAP,
	.takes = "a map that begins with 'version: 1'",
	.keys = policy_keys,
};

const struct grammar_key *grammar_key(const struct grammar *g, const char *name)
{
	if (g->kind != GRAMMAR_MAP)
		return NULL;
	for (const struct grammar_key *k = g->keys; k->name; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

bool grammar_check(const struct grammar *g, const char *text)
{
	if (g->kind != GRAMMAR_SCALAR)
		return false;
	if (g->check)
		return g->check(text);
	for (size_t i = 0; g->words && g->words[i]; i++)
		if (strcmp(g->words[i], text) == 0)
			return true;
	return false;
}

static const struct grammar *step(const struct grammar *g, const char *part)
{
	const struct grammar_key *key;
	uint64_t index;

	switch (g->kind) {
	case GRAMMAR_MAP:
		key = grammar_key(g, part);
		return key ? key->value : NULL;
	case GRAMMAR_LIST:
		return num_parse(part, 65535, &index) == 0 &&
				       (part[0] != '0' || !part[1])
			       ? g->item
			       : NULL;
	case GRAMMAR_DICT:
		return g->check_key(part) ? g->item : NULL;
	case GRAMMAR_SCALAR:
		break;
	}
	return NULL;
}

const struct grammar *grammar_step(const struct grammar *g, const char *part)
{
	const struct grammar *next = step(g, part);

	return next || !g->other ? next : step(g->other, part);
}

const struct grammar *grammar_form(const struct grammar *g,
				   enum grammar_kind kind)
{
	if (g->kind == kind)
		return g;
	return g->other && g->other->kind == kind ? g->other : NULL;
}

static int rank(const struct grammar *g, const char *text)
{
	int i = 0;

	while (g->words[i] && strcmp(g->words[i], text) != 0)
		i++;
	return i;
}

/* Two that are the same in an hour may let in another number at once. */
static int compare_bursts(const char *a, const char *b, int in_an_hour)
{
	uint32_t seconds;
	uint64_t x = 0;
	uint64_t y = 0;

	if (value_rate(a, &x, &seconds) < 0 ||
	    value_rate(b, &y, &seconds) < 0 || x > y)
		return 1;
	return x < y && in_an_hour == 0 ? -1 : in_an_hour;
}

int grammar_compare(const struct grammar *g, const char *a, const char *b)
{
	uint64_t x = 0;
	uint64_t y = 0;

	if (g->number) {
		if (g->number(a, &x) < 0 || g->number(b, &y) < 0)
			return 1;
		if (g == &g_rate)
			return compare_bursts(a, b, (x > y) - (x < y));
		if (x == y)
			return g == &g_isolation && strcmp(a, b) != 0;
		return x < y ? -1 : 1;
	}
	if (strcmp(a, b) == 0)
		return 0;
	return g->words && rank(g, a) > rank(g, b) ? -1 : 1;
}
