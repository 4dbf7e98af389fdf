/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The resident memory of a process with an idle team of ten agents: each with
 * a client of its own for an OpenAI-compatible model and a tool, round robin,
 * with a condition. Nothing is asked of a model.
 *
 * Prints lines of tab-separated values: what, figure, unit, bar ("-": none).
 * Ends with 1 when a bar does not hold.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/team.h"
#include "base/util.h"
#include "figure.h"

#define AGENTS 10

static double resident_mib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		exit(2);
	(void)fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void must(int r, const struct err *err)
{
	if (r == 0)
		return;
	(void)fprintf(stderr, "team-memory: %s\n", err->text);
	exit(2);
}

static char *add(void *arg, const char *args, struct err *err)
{
	(void)arg;
	(void)args;
	(void)err;
	return strdup("3");
}

static struct toolset *tools(struct loop *l)
{
	const struct toolset_options o = { .loop = l };
	struct toolset *s = NULL;
	struct tool *t = NULL;
	struct err err = { 0 };
	json_t *schema = json_pack("{s:s, s:{s:{s:s}, s:{s:s}}, s:[s,s]}",
				   "type", "object", "properties", "a", "type",
				   "number", "b", "type", "number", "required",
				   "a", "b");

	must(toolset_new(&o, &s, &err), &err);
	must(tool_function("add", "Adds two numbers", schema, add, NULL, &t,
			   &err),
	     &err);
	must(toolset_add(s, t, &err), &err);
	json_decref(schema);
	return s;
}

static struct agent *agent(struct loop *l, int i)
{
	json_t *config = json_pack("{s:s, s:s}", "model", "gpt-4o", "base_url",
				   "http://127.0.0.1:1/v1");
	struct model *m = NULL;
	struct agent *a = NULL;
	struct err err = { 0 };
	char name[16];

	(void)snprintf(name, sizeof(name), "agent_%d", i);
	must(model_openai(l, config, &m, &err), &err);
	json_decref(config);
	must(agent_assistant(l, name, NULL, m, tools(l), &a, &err), &err);
	model_unref(m);
	return a;
}

int main(void)
{
	struct err err = { 0 };
	struct agent *agents[AGENTS];
	struct loop *l = NULL;
	struct runtime *rt;
	struct team *team = NULL;
	json_t *stop = json_pack("{s:{s:i}}", "max_messages", "n", 10);
	struct team_options o = { .name = "crew",
				  .kind = &team_round_robin,
				  .agents = agents,
				  .n_agents = AGENTS };

	must(loop_new(&l, &err), &err);
	rt = runtime_new(l, NULL, &err);
	must(rt ? 0 : -1, &err);
	for (int i = 0; i < AGENTS; i++)
		agents[i] = agent(l, i);
	o.runtime = rt;
	must(termination_new(stop, &o.stop, &err), &err);
	must(team_new(&o, &team, &err), &err);
	figure("resident memory, idle team of 10 agents", resident_mib(), "MiB",
	       AT_MOST, 10);
	json_decref(stop);
	team_free(team);
	runtime_free(rt);
	loop_free(l);
	return figure_failed ? 1 : 0;
}
