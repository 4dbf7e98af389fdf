/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the tests of the runtime share: an actor that does as it is told. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "runtime/runtime.h"

struct probe {
	struct actor actor; /* first */
	struct probe_kind *kind;
	json_int_t sum;
	int n; /* messages seen */
	struct delivery *held;
	struct timer timer;
};

struct probe_kind {
	void (*handle)(struct probe *p, struct delivery *d);
	int n_made, n_freed, n_fail; /* n_fail: that many factories fail */
	int seen;                    /* by all of the kind */
	char last[64];               /* id of the last one that saw something */
};

static struct loop *loop;
static struct runtime *rt;

static void probe_handle(struct actor *a, struct delivery *d)
{
	struct probe *p = (struct probe *)a;

	p->n++;
	p->kind->seen++;
	(void)snprintf(p->kind->last, sizeof(p->kind->last), "%s", actor_id(a));
	p->kind->handle(p, d);
}

static json_t *probe_save(struct actor *a)
{
	struct probe *p = (struct probe *)a;

	return json_pack("{s:s, s:i, s:I}", "type", "probe", "version", 1,
			 "sum", p->sum);
}

static int probe_load(struct actor *a, const json_t *state, struct err *err)
{
	struct probe *p = (struct probe *)a;

	p->sum = json_integer_value(json_object_get(state, "sum"));
	(void)err;
	return 0;
}

static void probe_free(struct actor *a)
{
	struct probe *p = (struct probe *)a;

	timer_stop(&p->timer);
	p->kind->n_freed++;
	free(p);
}

static const struct actor_ops probe_ops = { .handle = probe_handle,
					    .save = probe_save,
					    .load = probe_load,
					    .free = probe_free };

static int probe_make(void *arg, struct runtime *r, const char *key,
		      struct actor **ret, struct err *err)
{
	struct probe_kind *k = arg;
	struct probe *p;

	(void)r;
	(void)key;
	if (k->n_fail > 0) {
		k->n_fail--;
		return err_set(err, EIO, "no luck");
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->actor.ops = &probe_ops;
	p->kind = k;
	k->n_made++;
	*ret = &p->actor;
	return 0;
}

static inline void start_with(const struct runtime_options *o)
{
	struct err err = { 0 };

	if (!loop && loop_new(&loop, &err) < 0)
		abort();
	rt = runtime_new(loop, o, &err);
	if (!rt)
		abort();
}

static inline void start(void)
{
	start_with(NULL);
}

static inline void end(void)
{
	runtime_free(rt);
	loop_free(loop);
	rt = NULL;
	loop = NULL;
}

static inline void add_type(struct actor_type t)
{
	struct err err = { 0 };

	if (runtime_register(rt, &t, &err) < 0) {
		printf("# %s\n", err.text);
		abort();
	}
}

static inline void add(const char *name, struct probe_kind *k)
{
	add_type((struct actor_type){
		.name = name, .make = probe_make, .arg = k });
}

static inline void subscribe(enum subscription_kind kind, const char *topic,
			     const char *type)
{
	struct err err = { 0 };

	if (runtime_subscribe(rt, kind, topic, type, NULL, &err) < 0) {
		printf("# %s\n", err.text);
		abort();
	}
}

/* The outcome of one request, or the sum of many. */
struct outcome {
	int n, good;
	enum fault_code code;
	bool is_retryable;
	char text[256], agent[64], cause[64];
	json_int_t value;
	int n_of[FAULTS];
};

static inline void got(void *arg, struct message *reply,
		       const struct fault *why)
{
	struct outcome *o = arg;

	o->n++;
	o->good += why == NULL;
	o->code = why ? why->code : FAULT_NONE;
	o->n_of[o->code]++;
	o->is_retryable = why && why->is_retryable;
	if (why) {
		(void)snprintf(o->text, sizeof(o->text), "%s", why->message);
		(void)snprintf(o->agent, sizeof(o->agent), "%s",
			       why->agent ? why->agent : "");
		(void)snprintf(o->cause, sizeof(o->cause), "%s",
			       why->cause ? json_string_value(
						    json_object_get(why->cause,
								    "message"))
					  : "");
	}
	if (reply)
		o->value = json_integer_value(
			json_object_get(reply->data, "v"));
}

static inline struct message *number(json_int_t v)
{
	return message_new("test.Number", json_pack("{s:I}", "v", v));
}

static inline json_int_t value_of(const struct message *m)
{
	return json_integer_value(json_object_get(m->data, "v"));
}

static inline void send_with(const char *to, json_int_t v,
			     const struct send_options *o, struct outcome *out)
{
	struct message *m = number(v);

	runtime_send(rt, m, to, o, got, out);
	message_unref(m);
}

static inline void send_to(const char *to, json_int_t v, struct outcome *out)
{
	send_with(to, v, NULL, out);
}

struct published {
	int n, count;
	enum fault_code code;
};

static inline void was_published(void *arg, int count, const struct fault *why)
{
	struct published *p = arg;

	p->n++;
	p->count = count;
	p->code = why ? why->code : FAULT_NONE;
}

static inline void publish_with(const char *topic, json_int_t v,
				const struct send_options *o,
				struct published *p)
{
	struct message *m = number(v);

	runtime_publish(rt, m, topic, o, p ? was_published : NULL, p);
	message_unref(m);
}

static inline void publish(const char *topic, json_int_t v, struct published *p)
{
	publish_with(topic, v, NULL, p);
}

/* Long enough for a machine that is shared. */
static inline int settle(struct runtime *r)
{
	struct fault why = { 0 };
	int n = runtime_wait_idle(r, clock_us() + 20000000, &why);

	if (n < 0)
		printf("# not idle: %s\n", why.message);
	fault_done(&why);
	return n;
}

static inline json_int_t count_of(const char *name)
{
	json_t *m = runtime_metrics(rt);
	json_int_t v = json_integer_value(
		json_object_get(json_object_get(m, "counters"), name));

	json_decref(m);
	return v;
}

static inline bool is_counted(void *arg)
{
	return *(int *)arg > 0;
}

/* Until a counter is not 0 any more. */
static inline void run_until_told(int *n)
{
	(void)loop_run(loop, is_counted, n);
}

/* --- handlers --- */

static inline void echo(struct probe *p, struct delivery *d)
{
	p->sum += value_of(delivery_message(d));
	delivery_reply(d, number(value_of(delivery_message(d))));
}

static inline void fail(struct probe *p, struct delivery *d)
{
	struct fault f = { 0 };

	(void)p;
	fault_set(&f, FAULT_HANDLER, "it broke");
	f.cause = json_pack("{s:s, s:s}", "code", "internal", "message",
			    "deeper");
	delivery_fail(d, &f);
	fault_done(&f);
}

static inline void hold(struct probe *p, struct delivery *d)
{
	p->held = d;
}
