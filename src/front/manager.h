/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The box manager: boxes that live, for any face.
 *
 * A face (Docker's API, our own, later E2B's and MCP) turns what its client
 * sends into the calls below and what comes back into its own words. Nothing
 * here knows of HTTP. One thread, one libuv loop; no call blocks. What takes
 * time calls back, once, never before the call has returned; `err` is NULL when
 * it was done. A face that loses interest cancels with call_drop(): then the
 * callback does not come, and what was begun goes on.
 *
 * Who asks is a peer: it sees and touches its own boxes only; uid 0 all. For
 * anybody else a box does not exist (MGR_NOT_FOUND).
 *
 * A box is created, started (its main program runs), ends, and may be started
 * again; it is there until it is removed. Pointers to boxes and execs are valid
 * until control returns to the loop; keep ids, or hold a reference.
 *
 * Errors are errno values, one meaning each: a face has one table from these
 * to its own statuses.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "base/strv.h"

enum mgr_error {
	MGR_NOT_FOUND = ENOENT,   /* box or exec */
	MGR_AMBIGUOUS = ENOTUNIQ, /* more than one box has it */
	MGR_NAME_TAKEN = EEXIST,
	MGR_INVALID = EINVAL, /* a bad value */
	MGR_DENIED = EPERM,   /* policy or design */
	MGR_ASKED = ETIME,    /* a person was, and has not answered yet */
	MGR_NO_IMAGE = ENODATA,
	MGR_NOT_RUNNING = ESRCH,
	MGR_IS_RUNNING = EALREADY,  /* start; remove without force */
	MGR_PAUSED = EBUSY,         /* exec, files */
	MGR_REMOVING = EINPROGRESS, /* removal goes on */
	MGR_HAS_RUN = ESTALE,       /* an exec, twice */
	MGR_NO_PROGRAM = ENOEXEC,   /* executable file not found */
	MGR_NOT_EXECUTABLE = EACCES,
	MGR_BUSY = EAGAIN, /* a limit of the daemon; text says which */
	MGR_READ_ONLY = EROFS,
	MGR_NO_FILE = ENXIO, /* a path in the box */
	MGR_NO_SPACE = ENOSPC,
	MGR_UNSUPPORTED = ENOSYS,
	MGR_SETUP = EIO, /* the box could not be built */
	MGR_LOST = EPIPE,
};

struct manager;
struct wire_outcome; /* box/wire.h */
struct box;
struct exec;
struct call; /* something that will call back */

struct peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	int fd; /* the connection; the caller's */
};

typedef void mgr_done_fn(void *arg, const struct err *err);
/* A function that returns NULL for one had no memory: nothing will call back */
void call_drop(struct call *c); /* NULL: nothing */

/* ---- making, finding, listing ---- */

/*
 * What a face wants. `settings` is a JSON object as of serve/orders.h; the
 * texts are the caller's. `extra` is the face's own, kept with the box and
 * given back by box_extra() also after a restart (Docker: what was asked for,
 * field by field).
 */
struct box_want {
	const char *face;           /* "docker" ... */
	const char *settings;       /* JSON object */
	const char *name;           /* NULL: one is made up */
	const char *const *command; /* NULL-terminated; NULL: the image's */
	const char *code;  /* JSON list (orders.h), instead of a command */
	const char *input; /* orders.h: stdin, where all of it is known */
	const char *extra; /* JSON, may be NULL */
	bool has_no_main;  /* it lives until it is stopped */
	bool clamp;
	bool tty;
	bool open_stdin;
	bool stdin_once;
	bool auto_remove;
	bool kill_exec_rest; /* what an exec leaves behind is killed */
	bool shims;      /* docker-api.md 11: `timeout N ...`, `pkill -f ...` */
	int stop_signal; /* 0: the image's, else TERM */
	int stop_timeout_s; /* -1: the default, 10 */
	uint64_t idle_us;   /* stopped when nothing was asked of it: 0 never */
	uint64_t life_us;   /* stopped after this time; 0 never */
	uint64_t exec_timeout_us; /* default deadline of each exec; 0 none */
	uint64_t exec_max_output; /* 0: none */
	bool kill_on_disconnect;  /* an exec whose client is gone */
	uint64_t log_max;         /* 0: 64 MiB */
};

typedef void box_made_fn(void *arg, struct box *box, const struct err *err);
struct call *box_create(struct manager *m, const struct peer *peer,
			const struct box_want *want, box_made_fn *done,
			void *arg);

/*
 * By id, the beginning of one, or name (with or without a '/'). For uid 0 also
 * by the name that one other user's box has, where it has none itself.
 */
struct box *box_find(struct manager *m, const struct peer *peer,
		     const char *text, struct err *err);
/* The id of what has this name among the boxes of a user, even if it is only
 * being made; NULL: it is free. */
const char *box_name_holder(struct manager *m, uid_t owner, const char *name);
/* Those the peer may see, newest first; the caller frees the array only. */
size_t box_list(struct manager *m, const struct peer *peer, struct box ***ret);
struct box *box_ref(struct box *b);
void box_unref(struct box *b);

enum box_state {
	BOX_CREATED,
	BOX_RUNNING,
	BOX_PAUSED,
	BOX_EXITED,
	BOX_GONE, /* removed; a reference holds what is left */
};

/* What is known of a box. Strings live as long as it does. */
struct box_view {
	const char *id;   /* 64 hex digits */
	const char *run;  /* of the main program, as on the ledger: 32 */
	const char *name; /* without '/' */
	enum box_state state;
	uid_t owner;
	const char *face;
	int64_t created_ns, started_ns, finished_ns; /* of the day; 0: never */
	const char *spec;     /* JSON, effective (orders.h) */
	const char *warnings; /* JSON list of strings */
	const char *clamped;  /* JSON list */
	/* What its gate refused, of its last start; NULL: it has none. */
	const struct cordon_result *net;
	const char *extra;    /* JSON or NULL */
	const char *settings; /* JSON, as asked */
	int exit_code;
	bool oom_killed;
	const char *cause; /* of cordon-result(5), NULL before the end */
	const char *error; /* why it could not be started, or "lost ..." */
	int64_t pid;       /* 0: does not run. Inside: 2 */
	unsigned int restarts;
	bool tty, open_stdin, stdin_once, auto_remove;
	int stop_signal, stop_timeout_s;
	size_t n_execs;
};
void box_look(const struct box *b, struct box_view *ret);
/* What the box said of the end of its main program; NULL before it. */
const struct wire_outcome *box_outcome(const struct box *b);
/* Ids of its execs that are not forgotten. */
size_t box_execs(const struct box *b, const char *const **ret);

/* ---- life ---- */

struct call *box_start(struct box *b, mgr_done_fn *done, void *arg);
/* signal 0: its own; timeout_s -1: its own, INT_MAX: no limit */
struct call *box_stop(struct box *b, int signal, int timeout_s,
		      mgr_done_fn *done, void *arg);
struct call *box_restart(struct box *b, int signal, int timeout_s,
			 mgr_done_fn *done, void *arg);
struct call *box_kill(struct box *b, int signal, mgr_done_fn *done, void *arg);
struct call *box_pause(struct box *b, bool is_paused, mgr_done_fn *done,
		       void *arg);
struct call *box_remove(struct box *b, bool force, mgr_done_fn *done,
			void *arg);
int box_rename(struct box *b, const char *name, struct err *err);
int box_resize(struct box *b, unsigned int rows, unsigned int cols,
	       struct err *err);
/* E2B and others: another end than was said at the beginning. */
int box_set_life(struct box *b, uint64_t life_us, struct err *err);

enum box_condition { WAIT_NOT_RUNNING, WAIT_NEXT_EXIT, WAIT_REMOVED };
typedef void box_waited_fn(void *arg, int exit_code, const char *error);
/*
 * By id or name, since with WAIT_REMOVED it may be gone: ends of removed boxes
 * are known for 60 s, by their whole id: a name may be another's by then. NULL
 * with *err if it is not known.
 */
struct call *box_wait(struct manager *m, const struct peer *peer,
		      const char *text, enum box_condition condition,
		      box_waited_fn *done, void *arg, struct err *err);

/* ---- streams ---- */

/*
 * Where output goes. write() takes some or all bytes and returns how many; less
 * than all means: no more until feed_ready(). `stream` is 1 or 2 (a terminal:
 * 1). end() comes once, after the last byte; the sink is then forgotten.
 */
struct sink {
	size_t (*write)(void *arg, int stream, const char *data, size_t len);
	void (*end)(void *arg);
	void *arg;
};
struct feed;                     /* one sink, attached */
void feed_ready(struct feed *s); /* it may be written to again */
void feed_drop(struct feed *s);  /* the client is gone; no end() */
/* Input for what it is attached to; how many bytes were taken. */
size_t feed_input(struct feed *s, const char *data, size_t len);
/* To be told when input is taken again after less than all was. */
void feed_on_input(struct feed *s, void (*ready)(void *arg));
void feed_end_input(struct feed *s); /* half-close; docker-api.md 6.4 */

struct attach_want {
	bool stdout_, stderr_, stdin_;
	bool logs;   /* from the start, before what comes now */
	bool stream; /* what comes now */
};
/* Works before the start, too. Output is fed from the log. */
struct feed *box_attach(struct box *b, const struct attach_want *want,
			const struct sink *sink, struct err *err);

/* ---- logs ---- */

struct log_want {
	bool stdout_, stderr_, follow;
	int64_t since_ns, until_ns; /* 0: any */
	int64_t tail;               /* lines; -1: all */
};
/* One line a call, without splitting; its '\n' included where it has one. */
struct log_sink {
	size_t (*line)(void *arg, int stream, int64_t time_ns, const char *data,
		       size_t len); /* 0: not now, later again; len: taken */
	void (*end)(void *arg);
	void *arg;
};
struct feed *box_logs(struct box *b, const struct log_want *want,
		      const struct log_sink *sink, struct err *err);

/* ---- execs ---- */

struct exec_want {
	const char *const *command;
	const char *code;       /* JSON list (orders.h), instead of it */
	const char *input;      /* as in box_want */
	const char *const *env; /* K=V or K */
	const char *workdir;    /* NULL: the box's */
	const char *user;       /* NULL or "": the box's */
	bool tty, stdin_, stdout_, stderr_;
	unsigned int rows, cols;
	uint64_t timeout_us; /* 0: the box's default */
};
typedef void exec_made_fn(void *arg, struct exec *exec, const struct err *err);
/* Judged by the policy now; nothing runs yet. */
struct call *exec_create(struct box *b, const struct exec_want *want,
			 exec_made_fn *done, void *arg);
struct exec *exec_find(struct manager *m, const struct peer *peer,
		       const char *id, struct err *err);

/* Whether exec_start() would begin it now; 0, or why not. */
int exec_check_start(const struct exec *e, struct err *err);
/*
 * Starts it. `done` comes when its program runs, or could not be started: then
 * nothing was written to the sink, whose end() follows if there is a feed. With
 * a sink its output goes there, with back-pressure; NULL: detached, its output
 * goes to a log of its own (256 KiB kept), from where exec_attach() begins.
 */
struct call *exec_start(struct exec *e, const struct sink *sink,
			struct feed **ret_feed, mgr_done_fn *done, void *arg);
struct feed *exec_attach(struct exec *e, const struct sink *sink,
			 struct err *err);
int exec_resize(struct exec *e, unsigned int rows, unsigned int cols,
		struct err *err);
struct call *exec_kill(struct exec *e, int signal, mgr_done_fn *done,
		       void *arg);

struct exec_view {
	const char *id; /* 64 hex digits */
	const char *run;
	const char *box;
	bool is_started, is_running;
	int exit_code;     /* valid when it was started and does not run */
	const char *cause; /* NULL before the end */
	int64_t pid;
	bool tty, stdin_, stdout_, stderr_;
	const char *const *command;
	const char *user;
	int64_t started_ns, finished_ns;
	uint64_t out_bytes, err_bytes, dropped_bytes;
};
void exec_look(const struct exec *e, struct exec_view *ret);
/* One that has ended and is gone with its box, for a while; false: unknown. */
bool exec_look_past(struct manager *m, const struct peer *peer, const char *id,
		    struct exec_view *ret);
const struct wire_outcome *exec_outcome(const struct exec *e);

/* ---- files ---- */

struct file_stat {
	const char *name; /* last part of the path */
	uint64_t size;
	uint32_t st_mode; /* as of stat(2) */
	int64_t mtime_ns;
	const char *link; /* "" where it is none */
};
typedef void file_stat_fn(void *arg, const struct file_stat *st,
			  const struct err *err);
struct call *files_stat(struct box *b, const char *path, file_stat_fn *done,
			void *arg);
/*
 * A tar of the path into the sink (stream 1); of "", all of the root, with
 * names that begin there. `done` comes first: it exists. If it says that it
 * does not, the feed is gone, without an end(). A tar that could not be
 * completed ends without its two blocks of zeros.
 */
struct call *files_read(struct box *b, const char *path,
			const struct sink *sink, struct feed **ret_feed,
			file_stat_fn *done, void *arg);

enum {
	FILES_PUT_NO_OVERWRITE = 1 << 0, /* a file for a directory, or back */
	FILES_PUT_IDS = 1 << 1, /* the archive's owners, where the box has
				 * such users; else all is its own user's */
};

/* A tar (plain or gzip), piece by piece, unpacked at a directory. */
struct files_writer;
struct files_writer *files_write(struct box *b, const char *path,
				 unsigned int flags, mgr_done_fn *done,
				 void *arg, struct err *err);
/* How many bytes were taken; less: wait for `ready` (arg: that of `done`). */
size_t files_writer_add(struct files_writer *w, const char *data, size_t len);
void files_writer_on_ready(struct files_writer *w, void (*ready)(void *arg));
void files_writer_end(struct files_writer *w); /* all was given; done follows */
/* The client is gone; or, after `done`, all that is left of it goes. */
void files_writer_drop(struct files_writer *w);

struct file_change {
	const char *path;
	int kind; /* 0 modified, 1 added, 2 deleted */
};
typedef void files_changed_fn(void *arg, const struct file_change *v, size_t n,
			      const struct err *err);
struct call *files_changes(struct box *b, files_changed_fn *done, void *arg);

/* ---- figures ---- */

struct box_usage {
	int64_t time_ns;
	uint64_t memory, memory_limit, memory_peak, inactive_file;
	uint64_t cpu_us, cpu_user_us, cpu_system_us, cpus;
	uint64_t throttled, throttled_us, periods;
	uint64_t pids, pids_limit;
	/* Of all CPUs of the machine since it began, idle time too. */
	uint64_t system_ns;
};
typedef void box_usage_fn(void *arg, const struct box_usage *u,
			  const struct err *err);
struct call *box_usage(struct box *b, box_usage_fn *done, void *arg);

struct box_process {
	int64_t pid, ppid;
	uint32_t uid;
	char state;
	uint64_t start_s; /* since the box's start */
	uint64_t cpu_ms;
	uint64_t rss;
	uint64_t size; /* of its addresses */
	const char *comm, *args;
};
typedef void box_top_fn(void *arg, const struct box_process *v, size_t n,
			const struct err *err);
struct call *box_top(struct box *b, box_top_fn *done, void *arg);

/* ---- events ---- */

struct event {
	const char *type;   /* "container", "image", "cordon" */
	const char *action; /* "create", "start", "exec_create: ls -l" ... */
	const char *id;
	uid_t owner;
	int64_t time_ns;
	const char *attributes; /* JSON object: name, image, labels, exitCode */
};
/* False: not now. It comes again, and what is behind it, when resumed. */
typedef bool event_fn(void *arg, const struct event *e);
struct watch;
/* Calls back at once for those since `since_ns` that are still known (1000). */
struct watch *events_watch(struct manager *m, const struct peer *peer,
			   int64_t since_ns, event_fn *fn, void *arg);
/*
 * Goes on where the callback said no: 1 all was taken, 0 it said no again,
 * -ENOENT what it did not take is no longer known, and the rest is held back.
 */
int events_resume(struct watch *w);
void events_unwatch(struct watch *w);
void events_tell(struct manager *m, const struct event *e);

/* ---- images: cordon-image, run by the parent ---- */

struct image_run; /* one of these */

/* How it ended, as an error: beyond all of MGR_*. */
#define IMAGE_STATUS(status) (1000 + (status))

/*
 * `args` as of cordon-image(1), NULL-terminated. Its standard output goes to
 * `sink` (stream 1), what it says on standard error is kept for `done`, whose
 * err has its last line when it failed, and its exit status as IMAGE_STATUS().
 * Without input, its standard input is empty.
 */
struct image_run *image_run(struct manager *m, const struct peer *peer,
			    const char *const *args, bool has_input,
			    const struct sink *sink, mgr_done_fn *done,
			    void *arg, struct err *err);
size_t image_run_add(struct image_run *r, const char *data, size_t len);
void image_run_on_ready(struct image_run *r, void (*ready)(void *arg));
void image_run_end_input(struct image_run *r);
void image_run_ready(struct image_run *r); /* the sink takes more */
void image_run_drop(struct image_run *r);

/* ---- the manager itself ---- */

struct manager_limits {
	unsigned int boxes;        /* alive at once, all peers: 512, at most */
	unsigned int boxes_a_peer; /* 256 */
	unsigned int waiting;      /* starts that wait for room: 64 */
	uint64_t wait_us;          /* that long at most: 10 s */
	unsigned int execs;        /* running in one box: 256 */
	unsigned int execs_a_peer; /* made or running, in all boxes: 2048 */
	size_t bytes_a_peer;       /* of requests that are held: 128 MiB */
	size_t bytes;              /* the same of all peers: 512 MiB */
};
void manager_limits_default(struct manager_limits *l);

/* Takes the descriptors of orders.h from 3 on; reads its notes. */
struct manager *manager_new(uv_loop_t *loop, const struct manager_limits *l,
			    struct err *err);
/*
 * Turns the loop until it is known what became of boxes of an earlier daemon,
 * for some seconds at most; before anybody can ask.
 */
void manager_settle(struct manager *m);
/* The faces listen: the parent is told. */
void manager_ready(struct manager *m);
/*
 * The parent wants an end: `fn` stops the listeners. The manager drains itself,
 * and tells the parent when it has.
 */
void manager_on_drain(struct manager *m, void (*fn)(void *arg), void *arg);
/* No new work; ends all boxes; then `done`. */
void manager_drain(struct manager *m, void (*done)(void *arg), void *arg);
void manager_free(struct manager *m);

struct manager_view {
	unsigned int created, running, paused, exited;
	int64_t started_ns;
	uint64_t memory_total;
	unsigned int cpus;
	unsigned int cgroup_version; /* 1 or 2 */
	bool forwards_ipv4;
	const char *machine_id;  /* 64 digits, of this machine alone */
	const char *policy_note; /* JSON: which policy is in force */
};
void manager_look(struct manager *m, const struct peer *peer,
		  struct manager_view *ret);
/* The loop it was made with. */
uv_loop_t *manager_loop(const struct manager *m);
