/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way out of one box, from the client's side: its table, its gate, and
 * what the gate says (gate/wire.h).
 *
 *	egress_open()   the table; where the box must know the authority of
 *			its gate, also the gate, and that is waited for
 *	...             the box is prepared (`spec->egress`) and begun
 *	egress_start()  the gate, if it is not there yet; or, where we look
 *			after the run all the time, as soon as the box is made
 *	...             its other socket goes with the work (egress_take_box())
 *	egress_step()   whenever egress_fd() is readable
 *	egress_end()    the box is dead: the last events, and the gate is gone
 *	egress_done()
 *
 * In the daemon this is split: a preparer opens, with egress_start_by() that
 * has the parent start the gate; the front takes over its socket
 * (egress_adopt()), hears and ends it, with a table that is final. What such a
 * gate asks, it asks the parent (serve/gate-ask.h).
 *
 * A gate that cannot be started is an error before anything runs, or ends the
 * run where it is started late; one that dies takes every connection with it,
 * no new one can be made, and that is a warning in the result. It ends with us,
 * however we end.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strv.h"
#include "box/egress-table.h"
#include "box/recorder.h"
#include "box/result.h"
#include "box/spec.h"
#include "gate/wire.h"
#include "policy/policy.h"

/* Questions to people that wait at the same time; more are denied. */
#define EGRESS_QUESTIONS 8

struct egress_question {
	uint32_t number; /* the gate's; 0: free */
	struct approval *approval;
	struct gate_event what;
};

struct egress;

/* What a daemon does in another way. */
struct egress_by {
	/* Starts a gate with these two as its descriptors; NULL: as ours. */
	int (*start)(void *arg, int client, int box, struct err *err);
	/* One record, soon on the disk; NULL: on e->recorder's ledger. */
	int (*record)(void *arg, const struct record_connection *c,
		      struct err *err);
	void *arg;
};

struct egress {
	bool is_open; /* the box has a way out */
	struct egress_by by;
	struct strv said; /* of an adopted one: where each rule stands */
	struct egress_table table;
	struct gate_table *before; /* until the gate has taken a new one */
	struct strv hosts;         /* "api.test:443" */
	struct spec_egress spec;   /* what the box is made with */
	const struct policy *policy;
	const struct cordon_spec *of; /* NULL: adopted */
	struct recorder *recorder;
	struct cordon_result *result;
	int sock;    /* to the gate; NO_FD: there is none, or none any more */
	int box;     /* init's end of its other one, until that is sent */
	int ends[2]; /* the gate's, until it is started */
	int epoll;   /* over `sock` and those who are asked */
	pid_t pid;
	int pidfd;
	char *ca;       /* PEM */
	bool has_begun; /* it has taken a table, and may have decided */
	struct err missing;
	bool is_ending; /* its end is what we wait for */
	uint32_t n_tables;
	uint64_t n_denied; /* on the ledger */
	uint64_t n_more;   /* not, since they were too many */
	/* What was let out is recorded at this pace; egress-events.c. */
	int pause; /* a timer, while the gate is not listened to */
	int64_t credit;
	int64_t credit_at;
	struct egress_question questions[EGRESS_QUESTIONS];
};

/* Before anything else: as if there were none. */
void egress_init(struct egress *e);
/* Nothing at all where no rule lets anything out; then is_open is false. */
int egress_open(struct egress *e, const struct policy *p,
		const struct cordon_spec *s, struct recorder *recorder,
		struct cordon_result *result, struct err *err);
int egress_start(struct egress *e, bool is_late, struct err *err);
/* Why a gate that was to be started late is not there; NULL: it is. */
const struct err *egress_missing(const struct egress *e);
/*
 * A gate that another has started and given its table. Takes `sock` and
 * `said`; who started it ends it if it does not end by itself.
 */
int egress_adopt(struct egress *e, int sock, struct strv *said,
		 struct cordon_result *result, struct err *err);
/*
 * The process alone, ours to reap; the descriptors stay the caller's. `desk`
 * is where it asks (gate/wire.h), or NO_FD.
 */
int egress_spawn(int client, int box, int desk, pid_t *ret_pid, int *ret_pidfd,
		 struct err *err);
/* The socket for the box's init, which is the caller's then; or NO_FD. */
int egress_take_box(struct egress *e);
/* To be watched; NO_FD where there is nothing to see. */
int egress_fd(const struct egress *e);
void egress_step(struct egress *e);
/* A new policy for a box that lives; what it does not allow is ended. */
int egress_replace(struct egress *e, const struct policy *p, struct err *err);
/*
 * The box is dead. What it had sent before it ended by itself still goes out,
 * for a moment; what was killed has nothing more to say.
 */
void egress_end(struct egress *e, const struct wire_outcome *o);
/*
 * The same without waiting: says that it is over. What is still to be heard
 * comes to egress_step(), until egress_is_over().
 */
void egress_close(struct egress *e, bool is_cut);
bool egress_is_over(const struct egress *e);
/* The gate takes too long: what it would have said is lost, which is told. */
void egress_give_up(struct egress *e);
/*
 * The box is dead, and tried so many addresses without a route. No gate saw
 * which they were, so all of them are one record.
 */
void egress_unrouted(struct egress *e, uint64_t n);
void egress_done(struct egress *e);
