/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The runtime: actors that send each other messages.
 *
 * An actor is what the specification calls an agent at this level: something
 * with an address "type/key", a mailbox, and a handler. Actors are made by
 * their type's factory when the first message for them comes. A handler ends
 * its delivery when it likes, now or later, with exactly one of
 * delivery_reply(), delivery_fail(); until then (concurrency 1) the next
 * message waits in the mailbox.
 *
 * A message is a type name and JSON, counted by reference: in one process it
 * is passed on, not copied, and nobody changes one that was sent.
 *
 * Everything that leaves the process goes through struct bus (bus.h); this
 * file and its users do not know which bus it is.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/cancel.h"
#include "loop/fault.h"
#include "loop/loop.h"

struct runtime;
struct actor;
struct delivery;

/* message.c */
struct message {
	unsigned int refs;
	char *type; /* full name, such as "cordon.TextMessage" */
	json_t *data;
	size_t size; /* at most so many bytes of JSON; 0: not yet known */
};
/* Takes over `data`; NULL when memory is short (data is released then). */
struct message *message_new(const char *type, json_t *data);
struct message *message_ref(struct message *m);
void message_unref(struct message *m);

struct actor_ops {
	void (*handle)(struct actor *a, struct delivery *d);
	/*
	 * NULL: it has no state. Asked for while a message is being handled,
	 * it is the state from before that message.
	 */
	json_t *(*save)(struct actor *a);
	int (*load)(struct actor *a, const json_t *state, struct err *err);
	void (*free)(struct actor *a);
};

/* The first member of whatever a factory makes. */
struct actor {
	const struct actor_ops *ops;
	struct cell *cell; /* the runtime's own */
};

struct actor_type {
	const char *name;
	const char *description;
	const char *const *takes; /* message types, ended by NULL; NULL: all */
	int (*make)(void *arg, struct runtime *rt, const char *key,
		    struct actor **ret, struct err *err);
	void *arg;
	unsigned int concurrency; /* 0 is 1 */
	unsigned int mailbox;     /* 0 is 1024 */
	bool is_reentrant;
};

const char *actor_id(const struct actor *a); /* "type/key" */
const char *actor_key(const struct actor *a);
struct runtime *actor_runtime(const struct actor *a);

struct bus;

struct runtime_options {
	bool self_delivery, strict, require_subscriber;
	size_t max_message;       /* bytes of JSON; 0 is 1 MiB */
	int64_t default_deadline; /* us; 0 is 300 s */
	int64_t cancel_grace;     /* us; 0 is 2 s */
	int64_t stop_limit;       /* us; 0 is 30 s */
	size_t max_actors;        /* instances; 0 is 100,000 */
	struct bus *bus;          /* taken over; NULL: this process alone */
};

struct runtime *runtime_new(struct loop *l, const struct runtime_options *o,
			    struct err *err);
/* What still has no outcome gets none: runtime_stop() comes first. */
void runtime_free(struct runtime *rt);
struct loop *runtime_loop(struct runtime *rt);

/* -EEXIST: there is one of that name. What `t` points to is copied. */
int runtime_register(struct runtime *rt, const struct actor_type *t,
		     struct err *err);
/* Takes over `a`, unless it fails. */
int runtime_register_instance(struct runtime *rt, const char *id,
			      struct actor *a, struct err *err);
/*
 * An instance goes: what waits for it and what it handles fails with
 * `unavailable`, and it is freed. -ENOENT: no such.
 */
int runtime_unregister(struct runtime *rt, const char *id, struct err *err);
/* Makes the actor now; -ENOENT: no such type. NULL in ret: not wanted. */
int runtime_get(struct runtime *rt, const char *id, struct actor **ret,
		struct err *err);
/* {"type","key","description","takes":[...] or null}, or NULL: no such. */
json_t *runtime_metadata(const struct runtime *rt, const char *id);

/*
 * A type of messages: its base type (NULL: none), the schema that names it,
 * and what checks a message when it is sent (NULL: nothing). The same name
 * with another schema or base is -EEXIST. Types need not be registered to be
 * sent.
 */
struct message_type {
	const char *name, *base;
	const json_t *schema;
	int (*check)(void *arg, const json_t *schema, const json_t *data,
		     struct err *err);
	void *arg;
};
int runtime_register_message(struct runtime *rt, const struct message_type *t,
			     struct err *err);

enum subscription_kind { SUB_TYPE, SUB_PREFIX, SUB_DEFAULT };
/* ret_id: 37 bytes, or NULL. */
int runtime_subscribe(struct runtime *rt, enum subscription_kind kind,
		      const char *topic_type, const char *actor_type,
		      char *ret_id, struct err *err);
int runtime_unsubscribe(struct runtime *rt, const char *id, struct err *err);

/* A mailbox is full: wait until the deadline, or ... */
enum overflow { OVERFLOW_WAIT, OVERFLOW_FAIL, OVERFLOW_DROP_OLDEST };

struct send_options {
	struct delivery *in; /* the one being handled: from, path, token */
	const char *from;    /* "type/key" where there is none */
	int64_t deadline;    /* monotonic us, 0: the default */
	struct cancel *cancel;
	const char *message_id;  /* a UUID; NULL: a new one */
	const char *traceparent; /* NULL: that of `in` */
	enum overflow overflow;
};

/* Called once, from the loop; `why` is NULL when it went well. */
typedef void reply_fn(void *arg, struct message *reply,
		      const struct fault *why);
typedef void published_fn(void *arg, int count, const struct fault *why);

/*
 * Neither takes over `m`. `o` may be NULL. `done` may be NULL for whoever does
 * not care; then nothing is called, and a failure is in the events only. A
 * reply may be NULL too, with `why` NULL: handled, nothing to say.
 */
void runtime_send(struct runtime *rt, struct message *m, const char *to,
		  const struct send_options *o, reply_fn *done, void *arg);
/*
 * `topic` is "type/source"; NULL is "default/" and the publisher's key. Done
 * is called when all mailboxes have taken it; with a fault when one did not,
 * and then `count` says how many did.
 */
void runtime_publish(struct runtime *rt, struct message *m, const char *topic,
		     const struct send_options *o, published_fn *done,
		     void *arg);

/* While it is being handled. */
struct message *delivery_message(const struct delivery *d);
const char *delivery_id(const struct delivery *d);
const char *delivery_from(const struct delivery *d);  /* NULL: from outside */
const char *delivery_topic(const struct delivery *d); /* NULL: sent directly */
const char *delivery_traceparent(const struct delivery *d); /* NULL: none */
struct cancel *delivery_cancel(struct delivery *d);
/* Takes over `reply`, which may be NULL (an event, or nothing to say). */
void delivery_reply(struct delivery *d, struct message *reply);
void delivery_fail(struct delivery *d, const struct fault *why);

/*
 * handler.c: for actors with a handler for each type. The first row that fits
 * is taken: exact types first, then base types (the nearest first), then the
 * rows without a type. None: cant_handle.
 */
struct handler {
	const char *type; /* NULL: any */
	enum { HANDLE_ALL, HANDLE_REQUESTS, HANDLE_EVENTS } only;
	bool (*when)(struct actor *a, const struct message *m); /* NULL: yes */
	void (*run)(struct actor *a, struct delivery *d);
};
void delivery_dispatch(struct delivery *d, struct actor *a,
		       const struct handler *rows, size_t n);

/* filter.c: an ordered list of filters, run one after the other. */
enum filter_hook { ON_SEND, ON_PUBLISH, ON_RESPONSE, ON_DELIVER };
enum filter_act {
	FILTER_PASS,
	FILTER_REPLACE,
	FILTER_DROP,
	FILTER_REJECT,
	FILTER_REDIRECT
};

struct filter_view {
	enum filter_hook hook;
	struct message *message;
	const char *from, *to, *topic; /* NULL: not known, not so */
};

struct filter_verdict {
	struct message *message; /* FILTER_REPLACE: a new one */
	char reason[256];        /* drop, reject */
	char to[560];            /* redirect */
};

struct filter {
	const char *name;
	enum filter_act (*judge)(struct filter *f, const struct filter_view *v,
				 struct filter_verdict *ret);
	void (*free)(struct filter *f);
	struct filter *next;
};
/* At the end of the list; the runtime owns it from now on. */
void runtime_add_filter(struct runtime *rt, struct filter *f);

/*
 * Spans for what is sent, published and handled, each below what caused it
 * (trace.h). NULL: none any more. It lives longer than the runtime.
 */
struct tracer;
void runtime_set_tracer(struct runtime *rt, struct tracer *t);
struct tracer *runtime_tracer(const struct runtime *rt);

/* What happened, as JSON: drops, failures, dead letters ... NULL: nobody. */
void runtime_on_event(struct runtime *rt,
		      void (*event)(void *arg, const json_t *event), void *arg);
json_t *runtime_metrics(const struct runtime *rt);
/* The last ones, oldest first: [{"reason":fault,"envelope":...}]. */
json_t *runtime_dead_letters(struct runtime *rt);

/*
 * Section 6 of the specification. From outside the loop it first lets what is
 * being handled end, while nothing new is begun; so each message is either
 * done or in the queue. From within the loop what is being handled goes into
 * the queue too, to be handled again. NULL: memory is short, or an actor
 * cannot be saved.
 */
json_t *runtime_save(struct runtime *rt);
/* Into a new runtime with the same types; after a failure only to be freed. */
int runtime_load(struct runtime *rt, const json_t *state, struct err *err);
/*
 * A request that was loaded with the state and has no outcome yet: who wants
 * it says so. -ENOENT: there is none, or somebody has it.
 */
int runtime_claim(struct runtime *rt, const char *id, reply_fn *done,
		  void *arg);

/*
 * These run the loop, so they are not for use within it (-EDEADLK). With
 * `strict` the failure of an event's handler is returned here. deadline 0:
 * none. A stopped runtime answers `unavailable` until runtime_start().
 */
bool runtime_is_idle(const struct runtime *rt);
int runtime_wait_idle(struct runtime *rt, int64_t deadline, struct fault *why);
enum stop_mode { STOP_DRAIN, STOP_NOW };
int runtime_stop(struct runtime *rt, enum stop_mode mode, struct fault *why);
void runtime_start(struct runtime *rt);
