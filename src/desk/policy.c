/* SPDX-License-Identifier: Apache-2.0 */

/* cordon policy: check, show, explain, test, compile, schema */

#include "desk/desk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "box/policy-load.h"
#include "desk/policy-cmd.h"
#include "desk/policy-tree.h"
#include "desk/public-suffix.h"

int compiled_open(const char *file, struct compiled *ret)
{
	struct err err = { 0 };
	struct sources sources = { 0 };
	struct node *tree = NULL;
	int r = policy_find(file ? file : getenv("CORDON_POLICY"), &ret->file,
			    &err);

	memset(&ret->flat, 0, sizeof(ret->flat));
	ret->policy = NULL;
	if (r == 0 && !ret->file)
		r = err_set(&err, ENOENT,
			    "there is no policy: no ./cordon.yaml, none in "
			    "~/.config/cordon or /etc/cordon; name a file");
	if (r == 0)
		r = policy_read(ret->file, &sources, &tree, &err);
	if (r == 0)
		r = policy_flat(tree, &sources, &ret->flat, &err);
	if (r == 0) {
		ret->policy = policy_parse(ret->flat.data, ret->flat.len, &err);
		r = ret->policy ? 0 : -err.code;
	}
	node_free(tree);
	sources_done(&sources);
	if (r < 0) {
		say("%s", err.text);
		compiled_done(ret);
	}
	return r;
}

void compiled_done(struct compiled *c)
{
	policy_free(c->policy);
	buf_done(&c->flat);
	free(c->file);
	memset(c, 0, sizeof(*c));
}

struct call {
	const char *file;
	bool json;
	bool never;
};

static int bad_call(const char *name, const char *takes)
{
	say("policy %s takes %s", name, *takes ? takes : "nothing");
	return EXIT_OURS;
}

static int run_check(const struct compiled *c, const struct call *call)
{
	const struct policy *p = c->policy;

	(void)call;
	printf("%s: valid; %zu values", c->file, p->flat.n_lines);
	if (p->flat.n_sources > 1)
		printf(", extends %s", p->flat.sources[1].name);
	printf(", %zu tests\n", p->n_tests);
	return 0;
}

static int run_show(const struct compiled *c, const struct call *call)
{
	return policy_cmd_show(c, call->json);
}

static int run_test(const struct compiled *c, const struct call *call)
{
	(void)call;
	return policy_cmd_test(c);
}

static int run_compile(const struct compiled *c, const struct call *call)
{
	(void)call;
	return io_write_all(1, c->flat.data, c->flat.len) < 0 ? EXIT_OURS : 0;
}

static int run_schema(const struct compiled *c, const struct call *call)
{
	(void)c;
	(void)call;
	return policy_cmd_schema();
}

enum { NO_FILE, MAY_FILE, MUST_FILE };

static const struct verb {
	const char *name;
	const char *takes;
	bool has_flags;
	int file;
	int (*run)(const struct compiled *c, const struct call *call);
	const char *about;
} verbs[] = {
	{ "check", "[FILE]", false, MAY_FILE, run_check,
	  "is it valid; errors with file, line and column" },
	{ "show", "[FILE] [--never] [--json]", true, MAY_FILE, run_show,
	  "what is in force and where it comes from; --never: what no file "
	  "gives" },
	{ "explain",
	  "[--policy FILE] [--json] --command STRING|--connect HOST:PORT",
	  false, NO_FILE, NULL,
	  "would this be allowed: 0 allow, 1 deny, 3 ask; - reads STRING from "
	  "standard input" },
	{ "test", "[FILE]", false, MAY_FILE, run_test,
	  "runs the file's tests in real boxes; TAP" },
	{ "compile", "FILE", false, MUST_FILE, run_compile,
	  "the form that a run reads, one value a line" },
	{ "schema", "", false, NO_FILE, run_schema,
	  "the grammar, as JSON schema" },
};

void policy_words(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		printf("policy\t%s\t%s\t%s\n", verbs[i].name, verbs[i].takes,
		       verbs[i].about);
}

static int print_help(void)
{
	(void)puts("usage: cordon policy COMMAND ...\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		printf("  %s %s\n      %s\n", verbs[i].name, verbs[i].takes,
		       verbs[i].about);
	(void)puts("\ncordon-policy(5) says more.");
	return 0;
}

static int run_verb(const struct verb *v, int argc, char **argv)
{
	struct call call = { 0 };
	struct compiled c = { 0 };
	int code;

	for (int i = 1; i < argc; i++) {
		if (v->has_flags && strcmp(argv[i], "--json") == 0)
			call.json = true;
		else if (v->has_flags && strcmp(argv[i], "--never") == 0)
			call.never = true;
		else if (v->file != NO_FILE && argv[i][0] != '-' &&
			 argv[i][0] && !call.file)
			call.file = argv[i];
		else
			return bad_call(v->name, v->takes);
	}
	if (v->file == MUST_FILE && !call.file)
		return bad_call(v->name, v->takes);
	if (v->file == NO_FILE)
		return v->run(NULL, &call);
	if (call.never) {
		if (call.file)
			return bad_call(v->name, "no FILE with --never");
		policy_cmd_never(call.json);
		return 0;
	}
	if (compiled_open(call.file, &c) < 0)
		return EXIT_OURS;
	code = v->run(&c, &call);
	compiled_done(&c);
	return code;
}

/* For a run without a policy: a pattern of --allow-host (policy-load.h). */
static int check_host(const char *host)
{
	struct err err = { 0 };

	if (suffix_check(host, &err) == 0)
		return 0;
	say("%s", err.text);
	return EXIT_OURS;
}

int cmd_policy(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return print_help();
	if (strcmp(name, "explain") == 0)
		return policy_cmd_explain(argc - 1, argv + 1);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(name, verbs[i].name) == 0)
			return run_verb(&verbs[i], argc - 1, argv + 1);
	if (strcmp(name, "keys") == 0 && argc == 2)
		return policy_cmd_keys();
	if (strcmp(name, "host") == 0 && argc == 3)
		return check_host(argv[2]);
	say("policy takes check, show, explain, test, compile or schema; see "
	    "'cordon policy --help'");
	return EXIT_OURS;
}
