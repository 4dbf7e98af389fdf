/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Private to teams: what team*.c, manager.c, participant.c and the kinds of
 * teams share.
 *
 * A team is three sorts of actors: the manager ("<team>.group"), one for each
 * participant ("<team>.<participant>") and one that hears what comes out
 * ("<team>.output"). Each is subscribed to the topic of its own name. They
 * speak by messages of the runtime, so its filters see every word:
 *
 *	cordon.team.Start   the caller -> manager   {"messages"}
 *	cordon.team.Speak   manager -> participant  {"messages","upto","used"}
 *	cordon.team.Resume  manager -> participant  {"suspended","answer",...}
 *	                    and back: {"chat","error","pending"}
 *	cordon.<type>       participant -> manager  an event of its turn
 *	cordon.<type>       manager -> output       a message or an event
 *	cordon.team.End     manager -> output       the result, no messages
 *
 * A turn is recorded as a whole or not at all: the thread, who has heard how
 * much of it, and the kind's own state change when the answer is there; an
 * agent whose answer never arrives gets its state from before back. What was
 * in vain is still in the result, since it was said and paid for.
 */

#include "agent/account.h"
#include "agent/chat.h"
#include "agent/checkpoint.h"
#include "agent/team.h"

#define TEAM_MAX_THREAD 100000 /* messages */
#define TEAM_NAME_MAX   64

enum team_state {
	TEAM_IDLE,
	TEAM_STARTING, /* the task is on its way to the manager */
	TEAM_READY,    /* between two turns */
	TEAM_CHOOSING,
	TEAM_SPEAKING,
	TEAM_ENDING, /* the result is on its way to the caller */
};

enum on_error { ERROR_STOP, ERROR_SKIP, ERROR_RETRY };

struct member {
	struct actor actor;
	struct team *team;
	struct agent *agent;
	char *id;
	size_t heard; /* messages of the thread */

	/* participant.c: the turn that goes on. */
	struct delivery *delivery;
	struct turn *turn;
	struct cancel *cancel;
	json_t *queue;       /* events to be told */
	size_t n_sent;       /* of them */
	unsigned int n_open; /* on their way */
	bool has_lost;       /* one of them */
	unsigned int turn_serial;
	struct account used;
	size_t upto;
	bool is_over; /* the agent has ended it: */
	json_t *chat, *waits;
	struct fault why;
	bool has_said; /* the agent's history has the turn */

	/* manager.c */
	bool is_asked;
	json_t *was; /* the agent's state before the turn that goes on */
	unsigned int serial;   /* of the run it was asked in */
	unsigned int failures; /* one after the other, in this turn */
	json_t *pending;       /* {"upto","what"}: suspended; or NULL */
};

/* One run, from a task to its result; it may be suspended in between. */
struct run {
	char id[CHAT_ID];
	bool is_open;
	json_t *messages; /* of the result */
	json_t *fresh;    /* what conditions will look at after the turn */
	json_t *open;     /* of the turn that goes on, in none of the two yet */
	struct account used;
	int64_t started; /* monotonic; of a resumed one: as if in one piece */
	int64_t elapsed; /* of one that is suspended */
	int64_t turns;

	struct span *span; /* above all that is done for it */
	struct cancel *cancel;
	struct cancel_hook hook;
	struct timer timer; /* of what ends it by time alone */
	const struct team_events *events;
	void *arg;

	/* Why it ends. */
	json_t *spare;    /* the result where no other could be made */
	struct task mute; /* tells that one */
	const char *status;
	char *reason;
	struct fault why;
};

struct team_actor {
	struct actor actor;
	struct team *team;
};

/* Actors are parts of the team; each holds a reference to it. */

struct team {
	unsigned int refs; /* the owner, each actor, each message sent */
	bool is_dead;      /* the owner has gone */
	struct runtime *runtime;
	struct loop *loop;
	char *name, *description;
	char key[9];
	char manager_id[TEAM_NAME_MAX + 32], output_topic[TEAM_NAME_MAX + 32];

	const struct team_kind *kind;
	void *own;
	struct model *model;
	struct termination *stop;
	struct member **members;
	size_t n_members;

	/* settings */
	int64_t max_turns; /* 0: no limit */
	bool emit_events, output_task;
	struct budget budget;
	enum on_error on_error;
	unsigned int max_retries;

	json_t *thread; /* chat messages */
	bool is_paused;
	enum team_state state;
	struct run run;
	json_t *before; /* the kind's state before the turn that goes on */
	json_t *rest;   /* of a state that was loaded: what is not known here */
	unsigned int serial; /* of the run */
	struct task step;
	struct team_actor manager, output;
	char (*subscriptions)[37];
	size_t n_subscriptions, n_actors;

	struct checkpoints *checkpoints; /* borrowed; NULL: none */
	json_t *about;
	char checkpoint[CHAT_ID]; /* the last one, or "" */
};

/* team.c */
struct team *team_ref(struct team *t);
void team_unref(struct team *t);
struct member *team_find(struct team *t, const char *name);

/* team-setup.c: the settings of a config; the actors. */
int team_settings(struct team *t, const json_t *config, struct err *err);
int team_join(struct team *t, struct err *err);
void team_leave(struct team *t);

/* manager.c */
extern const struct actor_ops manager_ops;
void manager_step(struct task *task);
/* Goes on with the run as it is: open, maybe with something pending. */
void manager_resume(struct team *t, const json_t *answers);
/* The task could not be given to the manager. */
void manager_refused(struct team *t, const struct fault *why);

/* manager-turn.c */
void manager_ask(struct team *t, struct member *m);
/* It was suspended; `answers` are those of people. */
void manager_ask_again(struct team *t, struct member *m, const json_t *answers);
/* An event of a turn; borrowed. */
void team_hear(struct team *t, const struct member *m, json_t *event);
/* Says it on the output; borrowed. */
void team_emit(struct team *t, const char *from, json_t *event);
/* Says it, and it is part of the result; takes it over. */
void team_note(struct team *t, json_t *event);

/* team-end.c: an open turn is closed or undone; the rest may end the run. */
void turn_take(struct team *t); /* what came of it is part of the run */
void turn_close(struct team *t);
void turn_undo(struct team *t);
/* By its conditions. */
bool team_is_stopped(struct team *t, bool is_task);
/* By its budget. */
bool team_is_spent(struct team *t);
/* The turn was cut by the run's token, or by its budget. */
bool team_cut_short(struct team *t);
void run_short(struct team *t); /* of memory */
char *team_reason(const char *what, const char *why);

/* participant.c */
extern const struct actor_ops participant_ops;
void participant_drop(struct member *m);

/* team-run.c: a run's begin and end, and its result. */
/* For what is sent for it. */
const char *run_trace(const struct team *t);
int run_begin(struct team *t, struct cancel *cancel,
	      const struct team_events *e, void *arg, struct err *err);
/* Sets its timer, by what ends it by time alone. 0 or -errno. */
int run_watch(struct team *t);
/* Ends it; `reason` is taken over. */
void run_end(struct team *t, const char *status, char *reason);
void run_fail(struct team *t, const struct fault *why);
/* Forgets it; what was suspended is given up. */
void run_clear(struct team *t);
extern const struct actor_ops output_ops;

/* For all three sorts. */
void team_actor_free(struct actor *a);

/* A copy that shares what is in it, whole or NULL. */
json_t *team_copy(const json_t *v);

/* team-state.c; what cannot be written is an event of its own. */
void team_checkpoint(struct team *t, const char *reason);
