/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORDON_AGENT_H
#define CORDON_AGENT_H

/*
 * libcordon-agent: agents that use tools, and run what they write in a box.
 *
 *	struct cordon_agent *a = cordon_agent_parse(
 *		"name: coder\n"
 *		"model: gpt-4o-mini\n"
 *		"tools: [run_python]\n", NULL, &err);
 *	char *result;
 *
 *	if (cordon_agent_run(a, "What is 6 times 7?", &result, &err) == 0)
 *		puts(result);
 *
 * An agent or a team is what a file of cordon-agent(1) says, in either of its
 * forms. Tools of the program's own are functions; the file names them like
 * any other tool, also for an agent or a team that is a tool itself
 * ("tools: [{agent: {name: helper, tools: [dice]}}]"). Everything a tool does
 * is under the policy, asked about, recorded and bounded as with the command.
 *
 * A call that returns int returns 0 or a negative errno value and fills in
 * *err (which may be NULL). How a task ended, well or badly, is in its
 * TaskResult. Objects belong to one thread; only cordon_agent_cancel() may be
 * called from another, or from a signal handler.
 */

#include <cordon/cordon.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cordon_agent;

/* A tool: its name, what it does, a JSON schema of its arguments. */
struct cordon_tool {
	const char *name, *description, *schema;
	/*
	 * Called with the arguments, which are valid by the schema, as JSON.
	 * Returns the result's text, from malloc(3); NULL is a failure, and
	 * *err says to the model what it was.
	 */
	char *(*call)(void *arg, const char *args, struct cordon_error *err);
	void *arg;
	/* Not 0: it changes nothing outside, so nobody is asked about it. */
	int read_only;
	/*
	 * Not 0: what it returns is no text but a JSON list of parts,
	 * {"type":"text","text"}, {"type":"json","json"} and
	 * {"type":"image","mime","data"} with the data in base64.
	 */
	int parts;
};

/* `tools` ends with a name that is NULL; or it is NULL. NULL on failure. */
CORDON_API struct cordon_agent *cordon_agent_parse(
	const char *yaml, const struct cordon_tool *tools,
	struct cordon_error *err);
CORDON_API struct cordon_agent *cordon_agent_load(
	const char *file, const struct cordon_tool *tools,
	struct cordon_error *err);
CORDON_API void cordon_agent_free(struct cordon_agent *a);

/*
 * Functions that a file can name: who is next (`selector_func`), who could be
 * (`candidate_func`), whether it ends (`stop: {function: NAME}`). They are the
 * process's, added by one thread before the file that names them is read; a
 * name that is added again stands for the new one. At most 32 of each.
 *
 * The messages are a JSON list: all of the conversation for the first, what is
 * new since the last turn for the second.
 */
/*
 * Returns names, with commas between them, from malloc(3). NULL is nobody, and
 * the model is asked as if there were no function; or *err says what failed,
 * and the run ends with it.
 */
CORDON_API int cordon_agent_add_speaker(const char *name,
					char *(*call)(void *arg,
						      const char *messages,
						      struct cordon_error *err),
					void *arg, struct cordon_error *err);
/* Returns 1: it ends; 0: it goes on; < 0, and *err: it failed. */
CORDON_API int cordon_agent_add_condition(const char *name,
					  int (*call)(void *arg,
						      const char *messages,
						      struct cordon_error *err),
					  void *arg, struct cordon_error *err);

/*
 * Before the first run: "replay" FILE, "record" FILE, "model" NAME, "policy"
 * PRESET or FILE, "secret" NAME@HOST, "trace" FILE, "checkpoints" NAME (a
 * directory below the state directory), as the flags of cordon-agent(1).
 */
CORDON_API int cordon_agent_set(struct cordon_agent *a, const char *name,
				const char *value, struct cordon_error *err);

/* Every message and event as it comes, one JSON document each. */
CORDON_API void cordon_agent_on_event(struct cordon_agent *a,
				      void (*event)(void *arg,
						    const char *json),
				      void *arg);

/*
 * Gives it a task and waits for the end. *ret is the TaskResult as JSON; the
 * caller frees it. The next task goes on with the same conversation.
 */
CORDON_API int cordon_agent_run(struct cordon_agent *a, const char *task,
				char **ret, struct cordon_error *err);
/*
 * Goes on with a task that was suspended: with its answer where somebody waits
 * for words, else NULL; approvals are answered with cordon-approvals(1). `id`
 * is a run or a checkpoint of another process, NULL: of this one.
 */
CORDON_API int cordon_agent_resume(struct cordon_agent *a, const char *id,
				   const char *answer, char **ret,
				   struct cordon_error *err);
/* Ends the task that goes on: models, tools and boxes. */
CORDON_API void cordon_agent_cancel(struct cordon_agent *a);

#ifdef __cplusplus
}
#endif

#endif
