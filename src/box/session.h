/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Boxes that stay: the client's side of a keeper, for a program with an event
 * loop that has many of them.
 *
 *	struct sessions *all = sessions_new(sock, &err);
 *	struct session *s = session_open(all, &want, &events, arg, &err);
 *	... events.ready: the wall stands, nothing runs in it yet
 *	session_exec(s, &exec, &exec_events, arg, &number, &err);
 *	... exec_events.started, exec_events.ended
 *	session_close(s, false);
 *	... events.ended: nothing of the box is left; `s` is gone
 *
 * Poll sessions_fd() for reading and call sessions_step() when it is ready; all
 * callbacks come from there, and none before the function that leads to it has
 * returned. A callback may call anything here but sessions_free(). No call
 * blocks. When the keeper is gone, sessions_step() returns -EPIPE, once all
 * `ended` callbacks were called with WIRE_BY_LOSS.
 *
 * Standard streams are the caller's pipes: the box's ends are handed over in
 * session_exec(), and the caller reads and writes the other ends itself.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "box/wire.h"

struct sessions;
struct session;

struct sessions *sessions_new(int sock, struct err *err); /* takes sock */
void sessions_free(struct sessions *all);
int sessions_fd(const struct sessions *all);
/* The keeper is gone; that their boxes are lost was told, or is being told. */
bool sessions_are_lost(const struct sessions *all);
int sessions_step(struct sessions *all);

struct session_want {
	int box;  /* sealed memfd of prepare(); stays the caller's */
	int peer; /* a connection whose other end asks, NO_FD: we ourselves */
	/*
	 * The box's disks (places in memory, a writable layer) and its uid are
	 * kept under this number when it is closed with `keep`, and used again
	 * by the next box that is opened with it. 0: none.
	 */
	uint32_t shelf;
};

struct session_events {
	void (*ready)(void *arg);
	/* err.code != 0: it could not be built. */
	void (*ended)(void *arg, const struct wire_outcome *o);
};

struct session *session_open(struct sessions *all,
			     const struct session_want *want,
			     const struct session_events *events, void *arg,
			     struct err *err);

struct session_exec {
	int work;     /* sealed memfd of prepare(); stays the caller's */
	int stdio[3]; /* the box's ends, closed when sent; unused with tty */
	bool tty;     /* a terminal of its own */
	uint16_t rows, cols;
	bool kill_rest; /* what it leaves behind is killed when it ends */
	/*
	 * When it has ended, or could not be started, the box ends as by
	 * session_close(s, true), which may be called all the same.
	 */
	bool is_last;
};

struct session_exec_events {
	/* It runs. `tty`: our side of its terminal, taken over, or NO_FD. */
	void (*started)(void *arg, int tty);
	/*
	 * Its first process has ended (or could not be started: exec_errno) and
	 * was reaped. Others of its group may live on, unless kill_rest, or
	 * it was killed: then none does.
	 */
	void (*ended)(void *arg, const struct wire_outcome *o);
};

/*
 * Starts a program; any number at once. The time limits of `work` hold for it
 * (0: none). *ret_number names it from now on.
 */
int session_exec(struct session *s, const struct session_exec *exec,
		 const struct session_exec_events *events, void *arg,
		 uint32_t *ret_number, struct err *err);

/*
 * The first half of session_exec(): a process for it waits behind the wall and
 * in its group. It has looked at nothing in the box, and nobody is told of it,
 * also not of its end; the box can be closed as if it were not there.
 */
int session_hold(struct session *s, int work, bool is_last,
		 uint32_t *ret_number);
/* The other half. Its streams are closed then; -ESRCH: it is not there. */
int session_let(struct session *s, uint32_t number, const int stdio[3],
		const struct session_exec_events *events, void *arg);

/* A signal for the first process of a program; ESRCH comes to nobody. */
int session_signal(struct session *s, uint32_t number, int signal);
/* Ends all of a program's group; its end says WIRE_BY_CANCEL. */
int session_kill_exec(struct session *s, uint32_t number);
/* Also what programs that have ended left behind, by their number. */

/* All processes of the box stand still, or go on. */
int session_freeze(struct session *s, bool is_frozen);

/*
 * What catches which signals, for stopping: calls back with the mask SigCgt of
 * the first process of a program (0 where there is none).
 */
int session_ask_caught(struct session *s, uint32_t number,
		       void (*done)(void *arg, uint64_t mask), void *arg);

struct session_usage {
	uint64_t memory, memory_limit, memory_peak, inactive_file, active_file;
	uint64_t cpu_us, cpu_user_us, cpu_system_us;
	uint64_t throttled, throttled_us, periods;
	uint64_t pids, pids_limit;
	uint64_t oom_kills, pids_refused;
};
int session_ask_usage(struct session *s,
		      void (*done)(void *arg, const struct session_usage *u),
		      void *arg);

/*
 * Init serves requests for files on `sock` (its end, handed over), a stream
 * socket, in the form of box/files.h: as the box's user, behind its wall.
 */
int session_files(struct session *s, int sock);

/*
 * The socket to its gate, on which init gives that the box's sockets; of a box
 * with WIRE_EGRESS, once, when it is ready and before any program. Closed when
 * sent.
 */
int session_gate(struct session *s, int sock);

/* Ends it: everything in it is killed. With `keep` its disks stay. */
void session_close(struct session *s, bool keep);

/* Lets go of what is kept under a number. */
void sessions_forget(struct sessions *all, uint32_t shelf);

/*
 * Has the keeper end whatever keepers that were killed have left, and calls
 * back when nothing of that is there any more, or something will not go. Once.
 */
int sessions_ask_swept(struct sessions *all,
		       void (*done)(void *arg, bool is_clean), void *arg);
