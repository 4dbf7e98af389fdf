/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of the runtime share, and nobody else sees.
 *
 *	runtime_send --filters--> pending + post --bus--> bus_arrive
 *	   --> cell's mailbox --task, filters--> handler --> delivery_reply
 *	   --post, bus--> bus_arrive --filters--> pending --task--> done
 *
 * A *cell* is an actor's place: address, mailbox, what is being handled. It is
 * there before its actor is made and stays when making it failed. A *delivery*
 * is one post at one cell, from its arrival until its handler ended. A
 * *pending* is a request at its sender until its outcome was told; a *ticket*
 * is the same for an event. The runtime is idle when there is none of these
 * three: there is no counter that could be wrong.
 */

#include "runtime/bus.h"
#include "runtime/post.h"
#include "runtime/subs.h"
#include "runtime/table.h"
#include "runtime/trace.h"

enum counter {
	COUNT_SENT,
	COUNT_PUBLISHED,
	COUNT_DELIVERED,
	COUNT_REPLIED,
	COUNT_FAILED,
	COUNT_EVENTS_FAILED,
	COUNT_CHANGED,
	COUNT_DROPPED,
	COUNT_REJECTED,
	COUNT_NO_SUBSCRIBER,
	COUNT_OVERLOADED,
	COUNT_CANCELLED,
	COUNT_LATE,
	COUNT_LATE_REPLIES,
	COUNT_DEAD_LETTERS,
	COUNT_MADE,
	COUNT_MAKE_FAILED,
	COUNTERS
};

struct type {
	struct node node; /* in runtime.types, by name */
	struct type *later;
	struct actor_type is;
	uint64_t mark; /* the last event it was matched for */
	char *name, *description;
	char **takes;
};

enum where { IN_MAILBOX, IN_WAITING, IN_HANDLER, LISTS };

struct delivery {
	struct delivery *next, *prev; /* in the cell's list `where` */
	struct cell *cell;
	struct post *post;
	struct message *message; /* what the handler sees */
	enum where where;
	bool is_inner; /* asked by one that this actor waits for */
	struct cancel_hook hook;
	struct hop *hop; /* the path of what it sends; made when it does */
	struct span *span;
	struct ticket *ticket;
	struct timer wait; /* of an event in IN_WAITING */
	char id[UUID_TEXT];
};

struct list {
	struct delivery *first, *last;
	size_t n;
};

struct cell {
	struct node node; /* in runtime.cells, by id */
	struct cell *later;
	struct runtime *rt;
	struct type *type;
	struct actor *actor; /* NULL: not made yet */
	struct task task;    /* begins the next one */
	struct list lists[LISTS];
	const char *key; /* within id */
	char id[];
};

struct pending {
	struct node node; /* in runtime.pending, by id */
	struct pending *next, *prev;
	struct runtime *rt;
	struct uuid id;
	struct post *post; /* NULL: it never came so far */
	reply_fn *done;
	void *arg;
	bool is_over; /* the outcome is there, only not told */
	bool is_claimable;
	struct message *reply;
	struct fault why;
	struct span *span;
	struct cancel_hook own;   /* on the request's token */
	struct cancel_hook inner; /* on that of the delivery it is sent in */
	struct timer grace;
	struct task tell;
};

struct ticket {
	struct ticket *next, *prev;
	struct runtime *rt;
	published_fn *done;
	void *arg;
	int count;
	unsigned int open; /* who will still say something */
	struct fault why;
	struct task tell;
};

struct dead {
	struct post *post;
	char *to;
	struct fault why;
};
enum { DEAD_MAX = 256 };

struct known {
	struct node node;
	struct known *later;
	char *name, *base;
	json_t *schema;
	int (*check)(void *arg, const json_t *schema, const json_t *data,
		     struct err *err);
	void *arg;
};

enum phase { RUNNING, DRAINING, STOPPED };

struct runtime {
	struct loop *loop;
	struct bus *bus;
	struct runtime_options options;
	enum phase phase;
	bool is_resting;    /* nothing new is begun, for runtime_save() */
	bool has_failed;    /* strict, and an event's handler failed */
	struct fault first; /* that failure */
	struct task fail;   /* stops everything for it */
	struct table types, cells, pending, messages;
	struct type *first_type;
	struct cell *first_cell, **last_cell;
	struct cell *gone; /* unregistered, freed by the loop */
	struct pending *first_pending, *last_pending;
	/* Whoever asks must hear: one of each is kept for bad times. */
	struct pending *spare_pending;
	struct ticket *spare_ticket;
	struct ticket *first_ticket;
	struct known *known;
	struct subs subs;
	struct filter *filters;
	struct tracer *tracer;
	size_t n_cells, n_deliveries, n_tickets;
	size_t n_untold; /* requests with an outcome, not told yet */
	size_t n_in[LISTS];
	json_t *unknown; /* of a state that was loaded; kept */
	uint64_t mark;
	uint64_t counts[COUNTERS];
	struct dead dead[DEAD_MAX];
	size_t dead_at, n_dead, dead_bytes;
	struct uuid_pool ids;
	void (*event)(void *arg, const json_t *event);
	void *event_arg;
};

/* message.c */
bool message_fits(struct message *m, size_t max);
const char *message_base(const struct runtime *rt, const char *type);
bool message_check(const struct runtime *rt, const struct message *m,
		   struct fault *why);
void known_free(struct known *k);

/* cell.c */
struct type *type_find(const struct runtime *rt, const char *name, size_t len);
/* NULL and *why: it is not there and cannot be. */
struct cell *cell_need(struct runtime *rt, const char *id, struct fault *why);
struct cell *cell_find(const struct runtime *rt, const char *id);
struct cell *cell_add(struct runtime *rt, struct type *t, const char *id);
int cell_make(struct cell *c, struct err *err);
void cell_free(struct cell *c);
/* Into the mailbox, or it is refused (and a ticket is told). */
void cell_accept(struct cell *c, struct post *p, struct ticket *t);
void cell_wake(struct cell *c);

/* delivery.c */
struct delivery *delivery_new(struct cell *c, struct post *p);
void delivery_put(struct delivery *d, enum where where);
void delivery_take(struct delivery *d);
/* Whatever state it is in; takes over `reply`. */
void delivery_end(struct delivery *d, struct message *reply,
		  const struct fault *why);
void delivery_free(struct delivery *d);
struct hop *delivery_hop(struct delivery *d); /* NULL: no memory */

/* request.c */
void pending_answer(struct runtime *rt, struct post *p);
void pending_finish(struct pending *q, struct message *reply,
		    const struct fault *why);
void pending_free(struct pending *q);
struct pending *pending_add(struct runtime *rt, struct uuid id, reply_fn *done,
			    void *arg);
struct pending *pending_find(const struct runtime *rt, struct uuid id);
bool may_send(struct runtime *rt, struct message *m,
	      const struct send_options *o, struct fault *why);
const char *trace_of(const struct send_options *o);

/* publish.c */
void event_arrive(struct runtime *rt, struct post *p, struct ticket *t);
void ticket_free(struct ticket *t);

/* filter.c */
struct judgement {
	struct message *message; /* a reference of the caller's */
	char to[560];
	bool is_dropped; /* `why` says so */
	struct fault why;
};
/* true: it may go on, with message and `to` as they are now. */
bool filters_pass(struct runtime *rt, enum filter_hook hook,
		  const struct address *a, struct judgement *j);

/* note.c */
struct note {
	const char *what;
	const struct post *post;
	const char *to, *filter, *text;
	const struct fault *why;
};
void note(struct runtime *rt, const struct note *n);
void dead_letter(struct runtime *rt, struct post *p, const char *to,
		 const struct fault *why);
void dead_done(struct runtime *rt);

/* tracing.c; nothing happens without a tracer. */
/* What is sent carries the new span: the address has it. */
struct span *trace_begin(struct runtime *rt, enum span_kind k,
			 const struct message *m, struct address *a);
void trace_handle(struct delivery *d);

/* stop.c */
void stop_for_failure(struct task *t); /* runtime.fail */
/* Runs the loop until it is over: 0, -ETIMEDOUT, -EDEADLK. */
int run_until(struct runtime *rt, bool (*over)(void *rt), int64_t deadline);
