/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The bus: what carries posts between runtimes.
 *
 * A runtime gives its bus what its actors say, and gets from it what is for
 * them: bus_arrive(). It keeps the mailboxes, the requests that wait for an
 * answer and the index of its subscriptions; the bus knows who serves which
 * type. The local bus (local.c) brings everything back to the one runtime it
 * has. Actors see none of it.
 *
 * What a bus for several processes owes: a post of its own for each it
 * receives (post_load()), a cancel post where `cancel` is called, an error
 * post for a request that nobody serves, and no order but that between one
 * sender and one actor.
 */

#include "runtime/post.h"

struct ticket;

struct bus {
	const struct bus_ops *ops;
	struct runtime *rt; /* set by runtime_new() */
};

struct bus_ops {
	/*
	 * A request, a response or an error. Returns 0, or -errno with *why:
	 * it is not on its way. Does not take over `p`.
	 */
	int (*send)(struct bus *b, struct post *p, struct fault *why);
	/* An event; `t` hears of it, now or later, if it is not NULL. */
	int (*publish)(struct bus *b, struct post *p, struct ticket *t,
		       struct fault *why);
	/* The request's token has fired. NULL: tokens need no carrying. */
	void (*cancel)(struct bus *b, struct post *request);
	/* This runtime serves the type; NULL: nobody needs to know. */
	int (*serve)(struct bus *b, const char *actor_type, struct err *err);
	void (*free)(struct bus *b);
};

/* A post for this runtime; does not take it over. */
void bus_arrive(struct runtime *rt, struct post *p, struct ticket *t);
/* A request's error goes back to where it came from. */
void bus_refuse(struct runtime *rt, const struct post *request,
		const struct fault *why);

/*
 * What a publisher is told: each ticket_ref() is one who will still say
 * something, each ticket_done() one who has: so many mailboxes took it, or why
 * not. NULL is nobody.
 */
struct ticket *ticket_ref(struct ticket *t);
void ticket_done(struct ticket *t, int count, const struct fault *why);

struct bus *bus_local(void);
