/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages a second through the runtime, on one thread.
 *
 *	agents direct|batch|publish MESSAGES
 *
 * direct: a request, its reply, then the next one. batch: 100 requests at a
 * time. publish: events to one subscriber, 100 at a time. Each message and
 * each reply is made anew, with one number in it; the handler does nothing
 * else. Prints the rate and what a message costs: "rate TAB ns".
 * bench/agents.py has the same in Python.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "runtime/runtime.h"

enum { BATCH = 100 };

static struct loop *loop;
static struct runtime *rt;
static long to_send, n_sent, n_done;

static struct message *make(long n)
{
	json_t *o = json_object();

	(void)json_object_set_new_nocheck(o, "n", json_integer(n));
	return message_new("bench.Number", o);
}

static void handle(struct actor *a, struct delivery *d)
{
	(void)a;
	if (delivery_topic(d)) {
		n_done++;
		delivery_reply(d, NULL);
	} else {
		delivery_reply(d, make(n_done));
	}
}

static const struct actor_ops ops = { .handle = handle };

static int make_actor(void *arg, struct runtime *r, const char *key,
		      struct actor **ret, struct err *err)
{
	static struct actor a = { .ops = &ops };

	(void)arg;
	(void)r;
	(void)key;
	(void)err;
	*ret = &a;
	return 0;
}

static void ask(void);

static void answered(void *arg, struct message *reply, const struct fault *why)
{
	(void)arg;
	if (why || !reply) {
		(void)fprintf(stderr, "agents: %s\n",
			      why ? why->message : "no reply");
		exit(2);
	}
	n_done++;
	if (n_sent < to_send)
		ask();
}

static void ask(void)
{
	struct message *m = make(n_sent++);

	runtime_send(rt, m, "echo/1", NULL, answered, NULL);
	message_unref(m);
}

static bool is_done(void *arg)
{
	(void)arg;
	return n_done >= to_send;
}

static void run_direct(int at_once)
{
	for (int i = 0; i < at_once; i++)
		ask();
	(void)loop_run(loop, is_done, NULL);
}

static void run_publish(void)
{
	while (n_sent < to_send) {
		for (int i = 0; i < BATCH && n_sent < to_send; i++) {
			struct message *m = make(n_sent++);

			runtime_publish(rt, m, "news/1", NULL, NULL, NULL);
			message_unref(m);
		}
		(void)runtime_wait_idle(rt, 0, NULL);
	}
}

static int run(const char *what)
{
	if (strcmp(what, "direct") == 0)
		run_direct(1);
	else if (strcmp(what, "batch") == 0)
		run_direct(BATCH);
	else if (strcmp(what, "publish") == 0)
		run_publish();
	else
		return 2;
	return n_done == to_send ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct actor_type t = { .name = "echo", .make = make_actor };
	struct err err = { 0 };
	int64_t before;
	int64_t took;
	int r;

	to_send = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	if (to_send <= 0 || loop_new(&loop, &err) < 0)
		return 2;
	rt = runtime_new(loop, NULL, &err);
	if (!rt || runtime_register(rt, &t, &err) < 0 ||
	    runtime_subscribe(rt, SUB_TYPE, "news", "echo", NULL, &err) < 0)
		return 2;
	before = clock_us();
	r = run(argv[1]);
	took = MAX(clock_us() - before, 1);
	printf("%.0f\t%.1f\n", (double)n_done * 1e6 / (double)took,
	       (double)took * 1e3 / (double)MAX(n_done, 1));
	runtime_free(rt);
	loop_free(loop);
	return r;
}
