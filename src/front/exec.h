/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A program in a box, beside its main program. */

#include "front/front.h"

enum exec_state {
	EXEC_CREATED,
	EXEC_STARTING, /* being recorded, sent */
	EXEC_RUNNING,
	EXEC_ENDING, /* its first process has ended; output is read, recorded */
	EXEC_ENDED,
};

/* A piece of output that somebody has not read. */
struct chunk {
	struct chunk *next;
	uint64_t seq;
	int stream;
	size_t len;
	char data[];
};

enum shim_kind { SHIM_NONE, SHIM_TIMEOUT, SHIM_PKILL };

struct exec {
	struct manager *m;
	struct box *box; /* not a reference: it holds us */
	struct exec *next, *hash_next;
	unsigned int refs;
	char id[65];
	char run[33];
	uid_t owner;
	size_t held; /* bytes that are counted for its owner */
	enum exec_state state;

	struct strv command, env;
	char *workdir, *user, *code, *input;
	bool tty, has_stdin, has_stdout, has_stderr;
	unsigned int rows, cols;
	uint64_t timeout_us;

	enum shim_kind shim;
	uint64_t shim_us;       /* of `timeout` */
	size_t shim_skip;       /* words in front of what is run */
	bool is_replaced;       /* its program was not there; see shim.c */
	bool has_no_program;    /* pkill is not in the box */
	unsigned int n_victims; /* that have not ended yet */
	unsigned int n_killed;

	int work_fd;
	uint64_t policy_age; /* the manager's, when it was judged */
	char *start;         /* members of run.start */
	uint32_t number;
	int slot; /* in the list of runs */
	bool is_detached, is_recorded, is_timed_out, is_killed;
	struct wire_outcome outcome;
	int64_t made_us, started_ns, finished_ns;
	int exit_code;
	const char *cause;

	struct spout *out, *err;
	struct inlet *in;
	int tty_fd;
	bool is_in_closed, has_had_feed;
	uint64_t out_bytes, err_bytes, dropped, given;
	bool keep_output; /* the policy wants it on the record */
	struct capture noted[2];
	struct chunk *chunks, **chunks_end;
	uint64_t next_seq;
	size_t buffered;
	struct feed *feeds;
	bool is_drained; /* no output will be passed on any more */
	int64_t ended_us, quiet_us;
	bool is_end_sent, is_kept; /* kept: counted in m->kept_bytes */
	size_t kept;
	struct alarm *drain_alarm, *time_alarm, *shim_alarm, *gone_alarm;

	struct call *start_call, *kill_calls;
};

/* exec.c */
struct exec *exec_by_id(struct manager *m, const char *id);
void exec_run_ended(struct exec *e); /* output is read: record and tell */
void exec_told(struct exec *e);      /* one that ran nothing has ended */
void exec_kill_group(struct exec *e);
void exec_begin(struct exec *e); /* record, then send */
int exec_prepare_again(struct exec *e, struct err *err);
void exec_begin_failed(struct exec *e, const struct err *err);

/* exec-past.c: how one has ended that is in no table. */
struct past {
	struct past *next; /* older */
	uid_t owner;
	int64_t until_us; /* of one whose box is gone */
	size_t size;
	char id[65], run[33], box[65];
	struct strv command;
	char *user;
	struct exec_view view; /* its texts are the ones above */
};
void past_free(struct past *p);
/* A line of exec-notes.c; NULL if it is none. */
struct past *past_parse(const struct box *b, const json_t *o);
void exec_past_add(const struct exec *e); /* it goes; */
void exec_past_leave(struct box *b);      /* so does its box; */
void exec_past_free(struct manager *m);   /* and in the end all do */

/* exec-notes.c: the same on disk, until the box is removed. */
void exec_note(const struct exec *e); /* it has ended */
void exec_notes_load(struct box *b);
void exec_notes_remove(const struct box *b);
bool exec_notes_name(const char *name); /* pure: of such a file */

/* held.c */
int exec_hold(struct exec *e, struct err *err);
void exec_let_go(struct exec *e);

/* exec-io.c */
int exec_io_open(struct exec *e, int stdio[3], struct err *err);
void exec_io_started(struct exec *e, int tty);
void exec_io_ended(struct exec *e); /* the first process is gone */
void exec_io_close(struct exec *e);
void exec_io_free(struct exec *e);
void exec_io_say(struct exec *e, const char *text); /* on stream 2 */
void exec_feeds_end(struct exec *e);
struct feed *exec_feed(struct exec *e, const struct sink *sink,
		       struct err *err);

/* shim.c */
void shim_look(struct exec *e);
/* Pure: the seconds of `timeout N`, in microseconds; false if it is none. */
bool shim_parse_time(const char *text, uint64_t *ret_us);
/* Pure: a pattern of pkill -f against a joined command. */
bool shim_match(const char *pattern, const char *text);
/* Begins what it stands for; true if that was all and nothing is run. */
bool shim_start(struct exec *e);
void shim_victim_ended(struct exec *e);
/* Its program is not in the box: whether something else is tried. */
bool shim_replace(struct exec *e);
