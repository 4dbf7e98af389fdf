/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of the manager share; nobody else includes this.
 *
 *	manager.c  the manager itself, drain; loop.c: tasks, alarms, calls
 *	orders.c   asks parent and clerk
 *	room.c     who may have a box now, and who waits
 *	box.c      making, finding, listing
 *	prepare.c  from wishes to blobs, by the preparer; turns.c: fairly;
 *	           question.c: while a person is asked
 *	sweep.c    what it must not have made, by the preparer too
 *	life.c     start and end; stop.c: stop, kill, pause, remove; wait.c
 *	exec.c     programs in a box; exec-io.c: their streams; shim.c;
 *	           exec-past.c: those that are gone; exec-notes.c: on disk
 *	log.c      a box's output on disk; attach.c, lines.c: its readers
 *	pipes.c    ends of pipes in the loop
 *	notes.c    what survives a restart; runs.c: which runs have no end yet
 *	files.c    files of a box; tar.c: the threads that convert
 *
 * Rules: a callback to a face is made from a task or an event, never inside a
 * call of the face. Whoever waits for an event holds a reference to its box.
 * What a face may drop inside a callback is marked dead and freed by a task.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "box/capture.h"
#include "box/session.h"
#include "front/manager.h"
#include "serve/orders.h"

#define FRONT_SCRATCH   65536               /* one read */
#define FRONT_MAX_BOXES 4096                /* known, in any state */
#define FRONT_MAX_PEER  1024                /* of one peer */
#define FRONT_MAX_EXECS 8192                /* of one box, ended ones too */
#define FRONT_BUFFER    ((size_t)256 << 10) /* waiting in one exec */
#define FRONT_EVENTS    1000
#define FRONT_KEPT      ((uint64_t)32 << 10) /* of a stream, for the record */
#define FRONT_ENDS      1024                 /* of removed boxes */
#define FRONT_ENDS_NS   (60 * (int64_t)1000000000)
#define FRONT_EXEC_HASH 1024
#define FRONT_MAX_TARS  16 /* threads at once */

/* ---- things done soon, from the loop ---- */

struct task {
	struct task *next;
	void (*run)(struct task *t);
	bool is_queued;
};
void soon(struct manager *m, struct task *t, void (*run)(struct task *t));

#define task_of(t, type, member)                                               \
	((type *)(void *)((char *)(t)-offsetof(type, member)))

/* A timer made on use; fires once. Setting it again moves it. */
struct alarm;
void alarm_set(struct manager *m, struct alarm **a, uint64_t us,
	       void (*fn)(void *arg), void *arg);
void alarm_clear(struct alarm **a);

int64_t day_ns(void); /* time of the day */

/* ---- calls ---- */

struct call {
	struct task task;
	struct manager *m;
	void (*deliver)(struct call *c);
	union {
		mgr_done_fn *done;
		box_made_fn *made;
		exec_made_fn *exec_made;
		box_waited_fn *waited;
		file_stat_fn *stat;
		box_usage_fn *usage;
		box_top_fn *top;
		files_changed_fn *changed;
	} fn;
	void *arg;
	bool is_dropped;
	bool has_question; /* a person is asked on its behalf */
	struct err err;
	struct box *box;   /* a reference, or NULL */
	struct exec *exec; /* the same */
	int exit_code;
	char *error;
	int condition; /* of a waiter */
	struct call *next;
};

struct call *call_new(struct manager *m, void *arg);
struct call *call_new_done(struct manager *m, mgr_done_fn *fn, void *arg);
/* Ends it soon; err NULL or code 0: it was done. NULL: nobody waits. */
void call_end(struct call *c, const struct err *err);
void call_end_text(struct call *c, int code, const char *fmt, ...) PRINTF(3, 4);
void call_free(struct call *c); /* without a word */
void calls_add(struct call **list, struct call *c);
void calls_end(struct call **list, const struct err *err);

/* ---- orders.c ---- */

struct orders;
typedef void order_done_fn(void *arg, const struct order_answer *a, int *fds,
			   int n_fds);
typedef void order_told_fn(void *arg, uint32_t type, int fd);
/* Takes sock. `told` is for what comes without having been asked for. */
struct orders *orders_new(uv_loop_t *loop, int sock, order_told_fn *told,
			  void *arg, struct err *err);
void orders_free(struct orders *o);
/*
 * `done` comes exactly once, never before this has returned; descriptors that
 * it does not take are closed after it. fds stay the caller's. done NULL: no
 * answer is awaited.
 */
struct order_want {
	uint32_t type;
	const char *kind; /* ORDER_RECORD */
	const int *fds;
	int n_fds;
	void (*asked)(void *arg); /* a person is asked about it, or NULL */
	uint32_t number;          /* 0: a new one */
	const char *run;          /* these three: ORDER_SETTLE */
	uint64_t from;
	bool may_be_new;
};
int orders_ask(struct orders *o, const struct order_want *want,
	       order_done_fn *done, void *arg, struct err *err);
/* Of the one with this arg; if a person is asked about it, it ends soon. */
void orders_cancel(struct orders *o, const void *arg);
/* The same with one descriptor, a document made of this text. */
int orders_send_text(struct orders *o, const struct order_want *want,
		     const char *text, order_done_fn *done, void *arg,
		     struct err *err);
/* Of the clerk: where the ledger ended when it last answered; 0: unknown. */
uint64_t orders_position(const struct orders *o);
/* A record; the members are a JSON object. */
int orders_record(struct orders *o, const char *kind, const char *members,
		  order_done_fn *done, void *arg, struct err *err);

/* ---- pipes.c ---- */

/* An end of a pipe that is read; owns fd. */
struct spout;
struct spout *spout_new(struct manager *m, int fd, void (*readable)(void *arg),
			void *arg);
int spout_fd(const struct spout *s);
void spout_go(struct spout *s, bool is_wanted);
void spout_close(struct spout **s);

/* One that is written to; owns fd. */
struct inlet;
struct inlet *inlet_new(struct manager *m, int fd, void (*room)(void *arg),
			void *arg);
/* How much went in; where nobody reads any more, all is gone. */
size_t inlet_write(struct inlet *i, const char *data, size_t len);
void inlet_close(struct inlet **i);

/* Ours [0] for reading (writing: is_input), theirs [1]; 0 or -errno. */
void tty_resize(int fd, unsigned int rows, unsigned int cols);

int pipe_make(int ret[2], bool is_input);

/* ---- log.c: see there for the form on disk ---- */

struct log;
struct log_pos {
	uint64_t half; /* number of the half, from 1 */
	uint64_t off;
};
struct log_entry {
	int64_t time_ns;
	uint32_t len;
	int stream;
	bool is_middle; /* of a line that began before it */
};
struct log *log_new(int dir, const char *id, uint64_t max);
void log_free(struct log *l);
void log_remove(int dir, const char *id);
/* What one entry can have; never more than FRONT_SCRATCH. */
size_t log_room(const struct log *l);
/* One entry of at most log_room() bytes; 0 or -errno. */
int log_add(struct log *l, int stream, int64_t time_ns, const char *data,
	    size_t len);
/* Whether the next one pushes a half out, which this reader has not read. */
bool log_is_pushing(const struct log *l, const struct log_pos *p);
struct log_pos log_start(struct log *l);
struct log_pos log_end(struct log *l);
/*
 * The entry at *p and its bytes (FRONT_SCRATCH of room); 1, and 0 at the end.
 * *p moves on to what is there if its place is gone. log_next() passes it.
 */
int log_get(struct log *l, struct log_pos *p, struct log_entry *ret, char *buf);
void log_next(struct log_pos *p, const struct log_entry *e);
/* Pure: whether a header is one, and what it says. */
bool log_head_parse(const void *bytes, size_t len, struct log_entry *ret);
#define LOG_HEAD 24

/* ---- feeds ---- */

struct feed_ops {
	void (*pump)(struct feed *f);
	size_t (*input)(struct feed *f, const char *data, size_t len);
	void (*end_input)(struct feed *f);
	void (*gone)(struct feed *f); /* dropped by its face */
	void (*done)(struct feed *f); /* its memory goes now */
};

struct feed {
	struct task task; /* pumps */
	struct task end;  /* frees */
	const struct feed_ops *ops;
	struct manager *m;
	struct box *box;   /* a reference, or NULL */
	struct exec *exec; /* the same */
	struct feed *next; /* of the same owner */
	struct sink sink;
	void (*on_input)(void *arg);
	bool is_dead;
	bool is_blocked; /* the sink takes nothing */
	bool is_over;    /* nothing more will come than is there */
	bool wants_in;   /* took less input than it was given */
	bool has_stdin;
	unsigned int streams; /* bits 1 and 2 */
	struct log_pos pos;   /* attach.c, lines.c */
	size_t inner;         /* in the entry at pos, or in `chunk` */
	int64_t moved_us;     /* when it last took something */
	uint64_t seq;         /* exec-io.c: the next chunk */
	struct lines *lines;  /* lines.c */
	struct tar *tar;      /* files.c */
};

struct feed *feed_new(struct manager *m, const struct feed_ops *ops,
		      const struct sink *sink, struct err *err);
void feed_soon(struct feed *f);    /* pump */
void feed_finish(struct feed *f);  /* end() and away */
void feed_kick(struct feed *list); /* pump all that are not blocked */
void feed_input_ready(struct feed *list);

/* ---- boxes ---- */

/* One waits until the box's wall stands. */
struct need {
	struct task task;
	struct need *next;
	void (*fn)(struct need *n, const struct err *err);
	struct err err;
};

struct box {
	struct manager *m;
	struct box *next; /* newest first */
	unsigned int refs;
	char id[65];
	char name[130];
	uid_t owner;
	uint32_t shelf;
	bool is_shelved; /* something is kept under it */

	/* wishes */
	/* JSON; command and code: lists */
	char *face, *settings, *extra, *command, *code, *input;
	bool has_no_main, clamp, tty, open_stdin, stdin_once, auto_remove;
	bool kill_exec_rest, kill_on_disconnect, shims;
	int stop_signal, stop_timeout_s;
	uint64_t idle_us, life_us, exec_timeout_us, exec_max_output, log_max;

	/* what the preparer made of them */
	char *spec, *warnings, *clamped, *start, *image;
	char *programs;   /* JSON: only these are in it; NULL: any */
	char *watches;    /* JSON, as the preparer wants it back: sweep.c */
	char *who;        /* hex: whose they are, for the next daemon */
	char *gate_again; /* JSON: what its programs know of its gate, or NULL
			   */
	/* JSON, a list: "BYTES RULE", what gates that it had let through; NULL:
	 * nothing */
	char *gate_used;
	struct gate *gate; /* its way out, gate.h; NULL: there is none (now) */
	struct cordon_result *net; /* what that refused; NULL: it had none */
	size_t held;               /* bytes that are counted for its owner */
	char *violations; /* JSON, a list: what the last sweep found, or NULL */
	bool is_unswept;  /* it had a wall since */
	bool has_pkill;   /* one of its execs waits for others to end */
	int box_fd, work_fd;
	uint64_t policy_age; /* the manager's, when they were asked for */
	bool was_asked;      /* a person said yes to what they run, */
	bool is_spent;       /* and that was used: it holds for one start */
	int peer_fd;         /* who made it, as the kernel knows */
	int asker_fd;        /* who looked for it last: maybe another by now */
	int slot;            /* of its run (runs.c) */

	/* the wall */
	struct session *session;
	bool is_ready, is_closing, has_room, is_preparing;
	struct need *needs;
	struct box *room_next; /* in the queue */
	bool is_queued;
	struct alarm *room_alarm;
	struct alarm *close_alarm; /* opened for files only */
	unsigned int n_tars;

	/* the main program */
	enum box_state state;
	bool is_made, is_starting, is_ending, is_removing, is_recorded;
	struct need start_need;
	bool has_wall_answer, has_record_answer; /* of a start */
	bool is_run_used; /* the next start gets another number */
	bool is_record_sent;
	bool has_main; /* it was sent to the box and has not ended */
	bool is_killed;
	bool is_end_sent;  /* its end is being recorded, */
	bool is_end_known; /* and now it is */
	bool is_lost;      /* of an earlier daemon */
	struct err start_err;
	char run[33];
	uint32_t number;
	uint32_t parked; /* a process that waits to become it; 0: none */
	struct wire_outcome outcome;
	bool has_outcome;
	int64_t created_ns, started_ns, finished_ns;
	int exit_code;
	bool oom_killed;  /* something in it was, since its start; */
	bool is_main_oom; /* its main program had to do with it */
	const char *cause;
	char *error;
	unsigned int restarts;
	unsigned int rows, cols;
	struct spout *out, *err;
	struct inlet *in;
	int tty_fd;
	bool is_in_closed;
	uint64_t out_bytes, err_bytes;
	bool keep_output; /* the policy wants it on the record */
	struct capture kept[2];
	struct alarm *drain_alarm, *hold_alarm;
	struct log *log;
	struct feed *feeds;

	struct call *create_call, *start_calls, *stop_calls, *remove_calls;
	struct call *restart_call;
	struct call *waiters;
	struct alarm *stop_alarm, *life_alarm, *idle_alarm;
	int64_t touched_us;
	int stop_sent; /* the signal */

	struct exec *execs;     /* newest first */
	size_t n_execs, n_open; /* all; not ended */
	const char **exec_ids;
	struct past *past; /* of an earlier front, newest first */
};

struct manager {
	uv_loop_t *loop;
	struct manager_limits limits;
	struct orders *parent, *clerk;
	struct sessions *sessions;
	uv_poll_t *keeper;
	uv_idle_t *idle;
	struct task *tasks, **tasks_end;
	int state_fd, boxes_fd, logs_fd, runs_fd;
	int null_fd;
	int64_t started_ns;
	uint64_t memory_total;
	unsigned int cpus;
	struct {
		int stat_fd; /* /proc/stat */
		unsigned int cgroup_version;
		bool forwards_ipv4;
		char id[65];
	} machine; /* machine.c */
	char *policy_note;
	uint64_t policy_age; /* how often it was read */
	char scratch[FRONT_SCRATCH];

	struct box *boxes;
	size_t n_boxes;
	uint32_t next_shelf;
	unsigned int n_live; /* boxes that have room */
	struct box *queue;   /* those that wait for it */
	unsigned int n_queued;
	struct exec *hash[FRONT_EXEC_HASH];
	struct past *past; /* newest first; exec-past.c */

	struct ends *ends;
	struct ring *ring;
	struct watch *watches;
	unsigned int n_tars;
	struct asking *questions; /* to a person, open */
	struct turn *turns; /* at the parent's hands, and waiting for one */
	struct runs *runs;
	size_t kept_bytes; /* output of detached execs that have ended */
	struct held *held; /* held.c */
	size_t held_bytes;

	bool is_draining, is_lost;
	bool is_unclean;        /* something of a dead keeper is left */
	unsigned int n_records; /* ends that are being recorded */
	void (*drained)(void *arg);
	void *drained_arg;
	bool tell_drained;
	void (*on_drain)(void *arg);
	void *on_drain_arg;
	struct task drain_task;
	struct alarm *drain_alarm;
};

/* ids.c */
void id_make(char *ret, size_t n); /* n hex digits and NUL */
bool id_check(const char *text, size_t n);
void name_make(char *ret, size_t size);
bool name_check(const char *name);

/* box.c */
bool peer_may(const struct peer *peer, const struct box *b);
struct box *box_new(struct manager *m);
struct box *box_by_name(struct manager *m, uid_t owner, const char *name);
void box_add(struct box *b);    /* to the list, newest first */
void box_unlink(struct box *b); /* from it */
void box_touch(struct box *b);

/* sweep.c: into its warnings, a list of strings */
void box_warn(struct box *b, json_t *list);

/* turns.c */
enum turn_kind { TURN_PREPARE, TURN_IMAGE, TURN_ARCHIVE, TURN_SWEEP };
struct turn_want {
	enum turn_kind kind;
	uid_t owner;
	/* A person is asked about it: it is nobody's turn until the answer. */
	void (*asked)(void *arg);
};
#define TURN_MAX_FDS 5
/* As orders_ask() of the parent, when it is this peer's turn. */
int turn_ask(struct manager *m, const struct turn_want *w, const int *fds,
	     int n, order_done_fn *done, void *arg, struct err *err);
/* Nobody waits any more for the one with this arg. */
void turn_cancel(struct manager *m, const void *arg);

/* prepare.c */
typedef void prepared_fn(void *arg, const struct err *err);
/* Fills in what the preparer made; b->box_fd is there after it. */
int box_prepare(struct box *b, prepared_fn *done, void *arg, struct err *err);
struct exec_made {
	int work;
	char *start;
	bool keep_output;
	bool no_program; /* it is not in the box */
};
typedef void exec_prepared_fn(void *arg, struct exec_made *made,
			      const struct err *err);
int exec_prepare(struct exec *e, exec_prepared_fn *done, void *arg,
		 struct err *err);

/* The connection that says who asks; -errno if there is none that may. */
int box_identity(const struct box *b);
/* ORDER_PREPARE with this document; NULL is refused. */
struct json_t;
struct prepare_want {
	const struct json_t *request;
	int who;
	void (*asked)(void *arg); /* NULL: nobody is to be told */
	bool is_late; /* ORDER_SWEEP, for which `who` is a document */
};
int prepare_ask(struct box *b, const struct prepare_want *want,
		order_done_fn *done, void *arg, struct err *err);

/* question.c: requests about which a person is asked just now */
struct asking;
/* Withdraws those for which nobody waits any more. */
void questions_look(struct manager *m);

/* sweep.c */
/*
 * For a box of which nothing is left: `then` comes when all is looked at, or
 * at once; b->violations is there before.
 */
bool box_has_watches(const struct box *b);
void box_sweep(struct box *b, void (*then)(struct box *b));
/* The same for one of an earlier daemon; `then` may come at once. */
void box_sweep_late(struct box *b, void (*then)(struct box *b));
/* What was found, where its end was on the ledger before that. */
void box_record_violations(struct box *b);

/* held.c */
/* Counts what it has now; err NULL: whatever the limit is. */
int box_hold(struct box *b, struct err *err);
void box_let_go(struct box *b);
void held_free(struct manager *m);

/* room.c */
bool room_take(struct box *b);
/* 0: it waits, box_have_room() or box_no_room() follow. */
int room_wait(struct box *b, struct err *err);
void room_leave(struct box *b);                       /* the queue */
void room_none(const struct box *b, struct err *err); /* why it has none */
int room_check_kept(const struct box *b, struct err *err);
/* An error of keeper or box as one of ours. */
int session_error(const struct err *err);
void room_give(struct box *b); /* back */

/* wall.c: the box's wall, whether or not its main program runs */
void box_need(struct box *b, struct need *n,
	      void (*fn)(struct need *n, const struct err *err));
int box_open_wall(struct box *b, struct err *err);
void box_close_wall(struct box *b);
/* Forgets what was prepared under a policy that is no longer in force. */
void box_renew(struct box *b);
/* What was prepared is not to be used; the next wall is prepared anew. */
void box_forget_blobs(struct box *b);
/* Before a start: also what a person said yes to, for a start before. */
void box_renew_start(struct box *b);
/* Whether what was prepared may not be started any more. */
bool box_is_stale(const struct box *b);
void box_have_room(struct box *b);
void box_no_room(struct box *b);
void box_wall_idle(struct box *b); /* files are done; maybe close it */

/* life.c */
void box_begin(struct box *b);
void box_hold_main(struct box *b); /* its wall stands: all but its start */
void box_main_readable(void *arg); /* read what its main program wrote */
void box_wall_gone(struct box *b, const struct wire_outcome *o);
void box_gate_over(struct box *b);
void box_end_now(struct box *b); /* kill all; the end follows */
void box_finish(struct box *b);  /* the end was recorded: tell it */
void box_lost(struct box *b);    /* found in the notes */
/* stop.c */
void box_remove_now(struct box *b);
void box_watch_time(struct box *b); /* idle and life */
/* wait.c */
void box_tell_waiters(struct box *b, bool is_removed);
void ends_add(struct box *b);
void ends_free(struct manager *m);

/* attach.c */
struct log *box_log(struct box *b);
void box_feeds_over(struct box *b);
bool box_has_laggard(struct box *b);

/* notes.c */
const char *cause_name_find(const char *name); /* NULL: there is none */
int notes_store(struct box *b);
void notes_remove(struct box *b);
int notes_load(struct manager *m, struct err *err);
/* Pure but for memory: a note's text into a new box; NULL if it is none. */
struct box *note_parse(struct manager *m, const char *text, size_t len);
char *note_dump(const struct box *b); /* NULL: no memory */
/* machine.c */
void machine_open(struct manager *m);
void machine_close(struct manager *m);
uint64_t machine_cpu_ns(const struct manager *m);
bool machine_stat_parse(const char *text, uint64_t *ret_ns); /* pure */
/* events.c */
void events_cordon(struct box *b, const char *action, const char *reason);
void events_denied(struct box *b, const struct exec *e, const char *reason);
void events_clamped(struct box *b);
void events_exec_end(struct exec *e);
void events_box(struct box *b, const char *action, const char *name,
		const char *value);
void events_free(struct manager *m);

/* record.c: the members of run.end */
struct end_facts {
	const char *run, *cause, *status, *message;
	const struct box *box; /* NULL: not known any more */
	int exit_code, signal;
	const struct wire_outcome *outcome;
	uint64_t out_bytes, err_bytes;
	const char *violations;          /* JSON, a list */
	const struct cordon_result *net; /* what its gate refused, or NULL */
	struct capture *kept; /* of two streams, or NULL; they are emptied */
};
char *record_end(const struct end_facts *f);
/* The same members of run.start for another run. */
char *record_start(const char *start, const char *run);

/* runs.c: runs that may be without an end on the ledger */
int runs_open(struct manager *m, struct err *err); /* after notes_load() */
void runs_close(struct manager *m);
/* Sees to it that each run of an earlier front has an end, and one. */
int runs_reconcile(struct manager *m, struct err *err);
/* Before its start is sent; a slot, or -errno: then it may not start. */
int runs_add(struct manager *m, const char *run, struct err *err);
void runs_began(struct manager *m, int slot, const char *run);
void runs_ending(struct manager *m, int slot, const char *run); /* before */
void runs_drop(struct manager *m, int slot); /* its end is on the disk */
/* Records an end for which nobody waits, and then drops the slot. */
void runs_end(struct manager *m, int slot, const struct end_facts *facts);
/* ORDER_SETTLE for the slot of an earlier front, -1: it left none. */
int runs_settle(struct manager *m, int slot, const struct end_facts *facts,
		order_done_fn *done, void *arg, struct err *err);

/* exec.c */
struct exec *exec_ref(struct exec *e);
void exec_unref(struct exec *e);
void execs_wall_gone(struct box *b, const struct wire_outcome *o);
void execs_free(struct box *b);
