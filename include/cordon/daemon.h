/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORDON_DAEMON_H
#define CORDON_DAEMON_H

/*
 * libcordon: boxes that stay, in the daemon (cordon-serve(1)).
 *
 *	struct cordon *c = cordon_connect(NULL, &err);
 *	char box[CORDON_ID_SIZE];
 *
 *	cordon_box_create(c, settings, box, &err);
 *	cordon_box_start(c, box, &err);
 *	cordon_exec(c, box, program, &result, &err);
 *	cordon_box_remove(c, box, 1, &err);
 *
 * cordon_connect() gives the same kind of handle as cordon_open(): with it
 * cordon_run() and cordon_start() run a spec in a box of its own in the
 * daemon, and jobs and results are those of cordon.h. The daemon's policy
 * decides there; paths of volumes are absolute. "tty", "interactive" and
 * "copy-out" are refused there, and a run takes at most 4 MiB of code and
 * standard input.
 *
 * A box is named by its id, the beginning of it, or its name. It lives on
 * when the handle is closed, until it is removed.
 *
 * Threads: such a handle may be used by any number of threads at once. A job
 * belongs to one thread at a time; cordon_job_cancel() may come from any. End
 * the jobs before the handle is closed.
 *
 * Errors: as in cordon.h. What the daemon refuses has these codes:
 *
 *	EBUSY       no room now; try again later
 *	EPERM       the policy denies it
 *	EINVAL      the request is wrong
 *	ESRCH       there is no such box or program
 *	EBADFD      it is not in the state for that: it runs, it does not run,
 *	            it is paused, it is being removed
 *	EEXIST      another box has that name
 *	ENOTUNIQ    several boxes begin so
 *	ENOENT      there is no such file or program in the box
 *	ENOEXEC     that file of the box is no program
 *	ENOMEDIUM   there is no such image
 *	EROFS, ENOSPC, E2BIG, EOPNOTSUPP
 *	ECONNREFUSED  nobody listens there
 *	EACCES      the socket is not for you
 *	ECONNRESET  the daemon went away, or has lost the box
 *	EPROTO      what came is no answer of a daemon
 *	ETIMEDOUT   the time that was given is over
 *	EIO         the daemon failed; the text says how
 */

#include <cordon/cordon.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Room for the id of a box or of a program. */
#define CORDON_ID_SIZE 65

/*
 * A handle on the daemon that listens at `path`; NULL: CORDON_SOCKET in the
 * environment, else the usual place. The daemon must be there. NULL on failure.
 */
CORDON_API struct cordon *cordon_connect(const char *path,
					 struct cordon_error *err);

/*
 * Makes a box from the settings and the command of a spec; without a command
 * and an image it has no main program, and lives until it is stopped. "name"
 * is its name, "remove" removes it when it ends, "interactive" keeps standard
 * input of its main program open for who attaches. Not started.
 */
CORDON_API int cordon_box_create(struct cordon *c, const struct cordon_spec *s,
				 char ret_id[CORDON_ID_SIZE],
				 struct cordon_error *err);
CORDON_API int cordon_box_start(struct cordon *c, const char *box,
				struct cordon_error *err);

/* By its stop signal, and after so many seconds killed; -1: its own time. */
CORDON_API int cordon_box_stop(struct cordon *c, const char *box, int seconds,
			       struct cordon_error *err);
/* "TERM", "SIGTERM", "15"; NULL: KILL, which ends all of it. */
CORDON_API int cordon_box_kill(struct cordon *c, const char *box,
			       const char *signal, struct cordon_error *err);
CORDON_API int cordon_box_pause(struct cordon *c, const char *box,
				struct cordon_error *err);
CORDON_API int cordon_box_unpause(struct cordon *c, const char *box,
				  struct cordon_error *err);
CORDON_API int cordon_box_rename(struct cordon *c, const char *box,
				 const char *name, struct cordon_error *err);
/* With force also one that runs. Returns when nothing of it is left. */
CORDON_API int cordon_box_remove(struct cordon *c, const char *box, int force,
				 struct cordon_error *err);

/*
 * Waits until its main program has ended, for at most so many milliseconds
 * (-1: without end). Its streams in the result are what the log has, each
 * within 1 MiB. The caller frees *ret, which may be NULL. -EBADFD: it has not
 * run; -ESRCH: it is not there, or was removed meanwhile or with its end, and
 * of an end other than exit code 0 only that code is left, in the error's text.
 */
CORDON_API int cordon_box_wait(struct cordon *c, const char *box,
			       int64_t milliseconds, struct cordon_result **ret,
			       struct cordon_error *err);

/* Documents of api/openapi.yaml as text; the caller frees it, NULL: failed. */
CORDON_API char *cordon_box_list(struct cordon *c, int all,
				 struct cordon_error *err);
CORDON_API char *cordon_box_inspect(struct cordon *c, const char *box,
				    struct cordon_error *err);
CORDON_API char *cordon_box_stats(struct cordon *c, const char *box,
				  struct cordon_error *err);

/* What its main program wrote: the last `tail` lines, or all (-1). */
CORDON_API int cordon_box_logs(struct cordon *c, const char *box, long tail,
			       const struct cordon_events *events, void *arg,
			       struct cordon_error *err);

/*
 * Its main program as a job: output from the log's start and as it comes,
 * cordon_job_write() where it is "interactive". Cancelling it kills the box.
 * cordon_job_end() before its end only lets go of it, and gives NULL.
 */
CORDON_API struct cordon_job *cordon_box_attach(
	struct cordon *c, const char *box, const struct cordon_events *events,
	void *arg, struct cordon_error *err);

/*
 * Another program in a box that runs: the command or code of a spec, its
 * standard input, and of its settings "env", "workdir", "user", "timeout",
 * "tty" and "interactive"; others are the box's and refused. Without "timeout"
 * it has the box's own, or none. cordon_exec() waits for the end;
 * cordon_exec_start() gives a job, and `s` has to live as long.
 */
CORDON_API int cordon_exec(struct cordon *c, const char *box,
			   const struct cordon_spec *s,
			   struct cordon_result **ret,
			   struct cordon_error *err);
CORDON_API struct cordon_job *cordon_exec_start(
	struct cordon *c, const char *box, const struct cordon_spec *s,
	const struct cordon_events *events, void *arg,
	struct cordon_error *err);

/*
 * The same without anybody who waits. The daemon keeps some of its output;
 * attached to, it begins with that. As cordon_box_attach() is a box's.
 */
CORDON_API int cordon_exec_detach(struct cordon *c, const char *box,
				  const struct cordon_spec *s,
				  char ret_id[CORDON_ID_SIZE],
				  struct cordon_error *err);
CORDON_API struct cordon_job *cordon_exec_attach(
	struct cordon *c, const char *exec, const struct cordon_events *events,
	void *arg, struct cordon_error *err);
/* NULL: KILL, which ends all that it started. */
CORDON_API int cordon_exec_kill(struct cordon *c, const char *exec,
				const char *signal, struct cordon_error *err);
CORDON_API char *cordon_exec_inspect(struct cordon *c, const char *exec,
				     struct cordon_error *err);

/*
 * One regular file, at most 64 MiB, in a directory that is there. What is got
 * is followed by a NUL that does not count, and freed by the caller.
 */
CORDON_API int cordon_box_put(struct cordon *c, const char *box,
			      const char *path, const void *data, size_t len,
			      unsigned int mode, struct cordon_error *err);
CORDON_API int cordon_box_get(struct cordon *c, const char *box,
			      const char *path, void **ret, size_t *ret_len,
			      struct cordon_error *err);

/* A tar archive, read from a descriptor and unpacked at a directory ... */
CORDON_API int cordon_box_put_tar(struct cordon *c, const char *box,
				  const char *dir, int fd,
				  struct cordon_error *err);
/* ... or made of a file or directory and written to one. */
CORDON_API int cordon_box_get_tar(struct cordon *c, const char *box,
				  const char *path, int fd,
				  struct cordon_error *err);

#ifdef __cplusplus
}
#endif

#endif
