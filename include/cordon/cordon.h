/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORDON_H
#define CORDON_H

/*
 * libcordon: run a program or a piece of code inside a cordon.
 *
 *	struct cordon *c = cordon_open(&err);
 *	struct cordon_spec *s = cordon_spec_new();
 *	struct cordon_result *r;
 *
 *	cordon_spec_set(s, "memory", "512m", &err);
 *	cordon_spec_code(s, "python", "print(6 * 7)", 12, NULL, &err);
 *	if (cordon_run(c, s, &r, &err) == 0)
 *		printf("%s: %s", cordon_result_cause(r),
 *		       cordon_result_stdout(r, NULL));
 *
 * A handle (struct cordon) is one keeper process; open one and use it for
 * many runs. A spec says what to run and within which limits; it may be used
 * for several runs. Everything is denied that the spec does not give.
 *
 * Policy: where a policy file applies, it is the ceiling of every run, and a
 * run that asks for more ends with the cause "denied". It is the file that the
 * setting "policy" names (or a preset, such as "strict"); else CORDON_POLICY in
 * the environment; else ./cordon.yaml, $XDG_CONFIG_HOME/cordon/cordon.yaml,
 * /etc/cordon/cordon.yaml, the first that is there, looked for at each run as
 * cordon-run(1) does. One that cannot be read is an error, and nothing runs.
 *
 * Threads: a handle and its jobs belong to one thread at a time; handles are
 * independent of each other. cordon_job_cancel() may be called from any
 * thread while the job exists.
 *
 * Errors: a call that returns int returns 0 or a negative errno value and
 * fills in *err (which may be NULL). An error means that nothing was run. How
 * a run ended, also when it was denied or its box could not be built, is in
 * the result, never in the error.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when something here changes its meaning or goes away. */
#define CORDON_ABI 1

#if defined(__GNUC__)
#define CORDON_API __attribute__((visibility("default")))
#else
#define CORDON_API
#endif

struct cordon;
struct cordon_spec;
struct cordon_job;
struct cordon_result;

struct cordon_error {
	int code;       /* errno value */
	char text[512]; /* what failed and what to do about it */
};

/* The ABI and version of the library that is loaded. */
CORDON_API unsigned int cordon_abi(void);
CORDON_API const char *cordon_version(void);

/* Starts a keeper. NULL on failure. */
CORDON_API struct cordon *cordon_open(struct cordon_error *err);

/* Ends all its runs, waits until nothing of them is left, frees it. */
CORDON_API void cordon_close(struct cordon *c);

/*
 * What to run. NULL only when memory is short.
 *
 * Settings are names and values, as on the command line of cordon-run(1)
 * without the dashes: "timeout", "memory", "cpus", "pids-limit", "volume" and
 * so on; an underscore is as good as a dash, and the names of docker-py
 * ("mem_limit", "network_disabled", ...) mean what they mean there. A setting
 * that can be given several times adds up.
 */
CORDON_API struct cordon_spec *cordon_spec_new(void);
CORDON_API void cordon_spec_free(struct cordon_spec *s);
CORDON_API int cordon_spec_set(struct cordon_spec *s, const char *name,
			       const char *value, struct cordon_error *err);

/*
 * The same for several settings at once, as a JSON object: {"memory": "512m",
 * "pids_limit": 64}. A list is the setting several times; "volumes", "tmpfs",
 * "env", "extra_hosts", "ulimits" and "extra_docker_args" may be maps, as in
 * docker-py; "docker_args" is a list of options as on docker's command line;
 * "blocks" is a list of {"language", "code", "filename", "args", "stdin"}.
 * "allowed_commands" is a list of programs, and then only these exist in the
 * box and a command is judged as by a policy's commands.allow;
 * "writable_paths" are the only writable places; an empty list of either
 * allows nothing. null is a setting that is not given. What is not known is an
 * error. After an error the spec is not to be run.
 */
CORDON_API int cordon_spec_set_json(struct cordon_spec *s, const char *json,
				    size_t len, struct cordon_error *err);

/* A program and its arguments, ended by NULL. Instead of code. */
CORDON_API int cordon_spec_command(struct cordon_spec *s,
				   const char *const *argv,
				   struct cordon_error *err);

/*
 * A block of code. Several blocks run one after the other in one box and
 * stop at the first that fails (unless "continue-on-error" is set).
 * `filename` names the file in the workspace, NULL lets Cordon name it.
 */
CORDON_API int cordon_spec_code(struct cordon_spec *s, const char *language,
				const void *code, size_t len,
				const char *filename, struct cordon_error *err);

/* All of standard input. Without it there is none. */
CORDON_API int cordon_spec_stdin(struct cordon_spec *s, const void *data,
				 size_t len, struct cordon_error *err);

/* Runs it and waits for the end. The caller frees *ret. */
CORDON_API int cordon_run(struct cordon *c, const struct cordon_spec *s,
			  struct cordon_result **ret, struct cordon_error *err);

/*
 * The same for an event loop: start, poll cordon_job_fd() for reading, call
 * cordon_job_step() when it is ready; it never blocks and calls `events`.
 * It returns 1 when the run has ended, 0 when it goes on. A job that is
 * never stepped keeps its output in pipes, and its program waits.
 */
struct cordon_events {
	/* The program was started; on a terminal, fd is the terminal. */
	void (*started)(void *arg, int tty_fd);
	/* Bytes of stream 1 or 2, as they came; not bounded by a limit. */
	void (*output)(void *arg, int stream, const void *data, size_t len);
};

CORDON_API struct cordon_job *cordon_start(struct cordon *c,
					   const struct cordon_spec *s,
					   const struct cordon_events *events,
					   void *arg, struct cordon_error *err);
CORDON_API int cordon_job_fd(const struct cordon_job *j);
CORDON_API int cordon_job_step(struct cordon_job *j);

/*
 * Where standard input is kept open ("interactive"): writes some bytes
 * without blocking, returns how many were taken; len 0 closes it.
 */
CORDON_API long cordon_job_write(struct cordon_job *j, const void *data,
				 size_t len);

/* Kills the whole tree; the cause will be "cancelled" unless it had ended. */
CORDON_API void cordon_job_cancel(struct cordon_job *j, const char *reason);

/*
 * Another policy for the network of a run that lives; its other limits stay.
 * `policy` is a file or a preset. What it allows holds for every connection,
 * name and request from then on; an open connection that it does not allow is
 * ended, others go on. A run that began without a network cannot get one, and
 * only ports of its first policy can be reached; rules with methods, paths or
 * secrets need one of those at its start. After an error nothing has changed.
 */
CORDON_API int cordon_job_set_network(struct cordon_job *j, const char *policy,
				      struct cordon_error *err);

/*
 * Frees the job and gives its result; a job that is still running is
 * cancelled first and waited for. NULL only when memory is short.
 */
CORDON_API struct cordon_result *cordon_job_end(struct cordon_job *j);

/* How it ended. Strings live as long as the result. */
CORDON_API const char *cordon_result_status(const struct cordon_result *r);
CORDON_API const char *cordon_result_cause(const struct cordon_result *r);
CORDON_API const char *cordon_result_message(const struct cordon_result *r);
CORDON_API int cordon_result_exit_code(const struct cordon_result *r);
CORDON_API int cordon_result_signal(const struct cordon_result *r);
CORDON_API const char *cordon_result_stdout(const struct cordon_result *r,
					    size_t *ret_len);
CORDON_API const char *cordon_result_stderr(const struct cordon_result *r,
					    size_t *ret_len);

/* The whole result document; the caller frees it with free(3). */
CORDON_API char *cordon_result_json(const struct cordon_result *r);
CORDON_API void cordon_result_free(struct cordon_result *r);

/* The spec as it would run, as JSON; the caller frees it. */
CORDON_API char *cordon_spec_json(const struct cordon_spec *s);

#ifdef __cplusplus
}
#endif

#endif
