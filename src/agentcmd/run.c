/* SPDX-License-Identifier: Apache-2.0 */

/* cordon agent run */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/checkpoint.h"
#include "agentcmd/agentcmd.h"
#include "agentcmd/console.h"
#include "agentcmd/session.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"

#define TASK_MAX ((size_t)1 << 20)

struct runner {
	struct call *call;
	struct console console;
	struct session *session;
	bool is_deaf; /* nobody reads standard output any more */
};

/* For the handler. */
static struct session *volatile running;
static volatile sig_atomic_t interrupts;

/* The first one ends the run in order; the second does not wait for that. */
static void on_signal(int signal)
{
	int saved = errno;

	(void)signal;
	if (interrupts++ || !running)
		_exit(EXIT_STOPPED);
	session_cancel(running);
	errno = saved;
}

/* Handlers, not a mask: programs that are started here inherit none. */
static void listen_to_signals(void)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	(void)sigaction(SIGINT, &act, NULL);
	(void)sigaction(SIGTERM, &act, NULL);
	(void)sigaction(SIGHUP, &act, NULL);
	(void)sigaction(SIGPIPE, &ignore, NULL);
}

static void put(struct runner *r, const json_t *o)
{
	_cleanup_free_ char *text = json_dumps(o, JSON_COMPACT);
	int e = -ENOMEM;

	if (text)
		e = io_write_all(STDOUT_FILENO, text, strlen(text));
	if (e == 0)
		e = io_write_all(STDOUT_FILENO, "\n", 1);
	r->is_deaf = r->is_deaf || e < 0;
}

static void on_event(void *arg, json_t *event)
{
	struct runner *r = arg;

	if (r->call->json) {
		put(r, event);
	} else {
		console_event(&r->console, event);
		if (console_flush(&r->console, STDOUT_FILENO) < 0)
			r->is_deaf = true;
	}
	if (r->is_deaf && running)
		session_cancel(running);
}

/* The last line of --json says what it is. */
static void tell_end(struct runner *r, json_t *result)
{
	if (r->call->json) {
		json_t *typed = json_pack("{s:s}", "type", "TaskResult");

		json_object_update(typed, result);
		put(r, typed);
		json_decref(typed);
		return;
	}
	console_result(&r->console, result, clock_us());
	if (console_flush(&r->console, STDOUT_FILENO) < 0)
		r->is_deaf = true;
}

/* A run that was cut short by a limit, not by a person, has failed. */
static int status_of(const json_t *result)
{
	static const struct {
		const char *status;
		int exit;
	} known[] = { { "completed", 0 },
		      { "suspended", EXIT_WAITS },
		      { "cancelled", EXIT_STOPPED } };
	const char *status = json_string_value(
		json_object_get(result, "status"));

	for (size_t i = 0; status && i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i].status, status) == 0 &&
		    (known[i].exit != EXIT_STOPPED || interrupts))
			return known[i].exit;
	return EXIT_FAILED;
}

/* The task as it was given, or all of standard input for "-". */
static int read_task(const char *said, char **ret, struct err *err)
{
	struct buf text;
	char chunk[4096];
	ssize_t n = 0;

	if (strcmp(said, "-") != 0) {
		*ret = strdup(said);
		return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
	}
	buf_init(&text, TASK_MAX);
	while ((n = read(STDIN_FILENO, chunk, sizeof(chunk))) > 0)
		(void)buf_add(&text, chunk, (size_t)n);
	if (n < 0 || text.error || text.len == 0) {
		buf_done(&text);
		return err_set(err, EINVAL,
			       "standard input has no task, or one of more "
			       "than %zu KiB",
			       TASK_MAX >> 10);
	}
	*ret = buf_take(&text);
	return 0;
}

static int carry_out(struct runner *r, const char *task,
		     const json_t *checkpoint, struct err *err)
{
	json_t *result = NULL;
	int e;

	running = r->session;
	listen_to_signals();
	if (checkpoint)
		e = session_resume(r->session, checkpoint, task, &result, err);
	else
		e = session_run(r->session, task, &result, err);
	running = NULL;
	if (e < 0)
		return e;
	tell_end(r, result);
	e = status_of(result);
	json_decref(result);
	return e;
}

static int run_config(struct call *c, const struct config *config,
		      const char *task, const json_t *checkpoint,
		      struct err *err)
{
	bool is_here = !c->no_input && isatty(STDIN_FILENO);
	const char *first = json_string_value(
		json_object_get(json_object_get(checkpoint, "about"), "task"));
	struct runner r = { .call = c };
	struct session_options o = {
		.crew = { .config = config,
			  .replay = c->replay,
			  .record = c->record,
			  .model = c->model,
			  .secrets = c->secrets,
			  .policy = c->policy,
			  .was_policy = c->was_policy,
			  .trace = c->trace,
			  .log = c->log,
			  .metrics = c->metrics,
			  .is_interactive = is_here,
			  .event = on_event,
			  .arg = &r },
		.has_prompt = !c->no_input,
		.checkpoints = CHECKPOINTS_DIR,
		.task = checkpoint ? first : task,
	};
	int e;

	console_init(&r.console, use_colour(STDOUT_FILENO), c->stats);
	e = session_open(&o, &r.session, err);
	if (e == 0)
		e = carry_out(&r, task, checkpoint, err);
	session_close(r.session);
	console_done(&r.console);
	return e;
}

/* The answer that a checkpoint waits for: as an operand, or asked here. */
static int find_answer(struct call *c, const json_t *doc, char **ret,
		       struct err *err)
{
	const json_t *what = session_waits_for(doc);
	const char *prompt = json_string_value(json_object_get(what, "prompt"));
	size_t size = 0;

	if (c->n)
		return read_task(c->operands[0], ret, err);
	if (!what)
		return 0;
	if (!c->no_input && isatty(STDIN_FILENO)) {
		say("%s", prompt ? prompt : "what is the answer?");
		if (getline(ret, &size, stdin) > 0) {
			(*ret)[strcspn(*ret, "\n")] = '\0';
			return 0;
		}
	}
	say("'%s' waits for words of a person: cordon agent run --resume %s "
	    "'...'",
	    json_string_value(json_object_get(what, "agent")), c->resume);
	return EXIT_WAITS;
}

/* What the run began with and is not said anew. */
static void take_before(struct call *c, const json_t *about)
{
	if (!c->replay)
		c->replay = json_string_value(json_object_get(about, "replay"));
	if (!c->model)
		c->model = json_string_value(json_object_get(about, "model"));
	c->was_policy = json_string_value(json_object_get(about, "policy"));
}

/* Without a file: the checkpoint has the configuration. */
static int resume(struct call *c, struct err *err)
{
	struct checkpoints *store = NULL;
	struct config config = { 0 };
	_cleanup_free_ char *answer = NULL;
	json_t *doc = NULL;
	int e = session_checkpoints(CHECKPOINTS_DIR, &store, err);

	if (e < 0)
		return e;
	e = checkpoints_read(store, c->resume, &doc, err);
	checkpoints_close(store);
	if (e == 0)
		e = session_config(doc, &config, err);
	if (e == 0)
		e = find_answer(c, doc, &answer, err);
	if (e == 0) {
		take_before(c, json_object_get(doc, "about"));
		e = run_config(c, &config, answer, doc, err);
	}
	json_decref(doc);
	config_done(&config);
	return e;
}

int run_run(struct call *c, struct err *err)
{
	_cleanup_free_ char *task = NULL;
	struct config config;
	int e;

	if (c->replay && c->record)
		return err_set(err, EINVAL,
			       "--replay and --record do not go together");
	if (c->resume) {
		if (c->n > 1)
			return err_set(err, EINVAL,
				       "--resume takes an answer at most; its "
				       "file is known");
		return resume(c, err);
	}
	if (c->n < 2)
		return err_set(err, EINVAL,
			       "run takes a file and a task: cordon agent run "
			       "coder.yaml 'Compute ...'");
	if (strcmp(c->operands[0], "-") == 0 &&
	    strcmp(c->operands[1], "-") == 0)
		return err_set(err, EINVAL,
			       "standard input is the file or the task, not "
			       "both");
	e = read_task(c->operands[1], &task, err);
	if (e == 0)
		e = config_read(c->operands[0], NULL, &config, err);
	if (e < 0)
		return e;
	e = run_config(c, &config, task, NULL, err);
	config_done(&config);
	return e;
}
