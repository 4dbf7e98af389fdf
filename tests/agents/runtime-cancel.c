/* SPDX-License-Identifier: Apache-2.0 */

/* Deadlines, cancellation, who would wait for itself, stopping: D7. */

#include "tests/tap.h"

#include "tests/agents/runtime.h"

/* --- a handler that asks another one and answers with its answer --- */

struct errand {
	struct delivery *d;
};

static void pass_on(void *arg, struct message *reply, const struct fault *why)
{
	struct errand *e = arg;

	if (why)
		delivery_fail(e->d, why);
	else
		delivery_reply(e->d, message_ref(reply));
	free(e);
}

static const char *next_id = "b/1";

static void ask_next(struct probe *p, struct delivery *d)
{
	struct errand *e = calloc(1, sizeof(*e));
	struct send_options o = { .in = d };

	(void)p;
	if (!e)
		abort();
	e->d = d;
	runtime_send(rt, delivery_message(d), next_id, &o, pass_on, e);
}

/* --- one that ends when its token fires, or after a while --- */

struct slow {
	struct delivery *d;
	struct cancel_hook hook;
	struct timer timer;
};

static char heard[64];

static void slow_cancelled(struct cancel_hook *h, struct cancel *token)
{
	struct slow *s = (struct slow *)((char *)h -
					 offsetof(struct slow, hook));
	struct fault f = { 0 };

	(void)snprintf(heard, sizeof(heard), "%s", cancel_reason(token));
	timer_stop(&s->timer);
	cancel_fault(token, &f);
	delivery_fail(s->d, &f);
	fault_done(&f);
	free(s);
}

static void slow_over(struct timer *t)
{
	struct slow *s = (struct slow *)((char *)t -
					 offsetof(struct slow, timer));

	cancel_unhook(&s->hook);
	delivery_reply(s->d, number(1));
	free(s);
}

static int64_t slow_us = 300000000;

static void be_slow(struct probe *p, struct delivery *d)
{
	struct slow *s = calloc(1, sizeof(*s));

	(void)p;
	if (!s)
		abort();
	s->d = d;
	s->hook.fired = slow_cancelled;
	s->timer.fire = slow_over;
	(void)timer_set(loop, &s->timer, clock_us() + slow_us);
	cancel_hook(delivery_cancel(d), &s->hook);
}

static void spin(int64_t us)
{
	(void)runtime_wait_idle(rt, clock_us() + us, NULL);
}

TEST(a_deadline_reaches_the_handler_and_the_sender)
{
	struct probe_kind k = { .handle = be_slow };
	struct send_options o = { .deadline = clock_us() + 30000 };
	struct outcome out = { 0 };

	start();
	add("a", &k);
	send_with("a/1", 1, &o, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "deadline_exceeded");
	CHECK(out.is_retryable);
	CHECK_STR(out.agent, "a/1");
	CHECK_STR(heard, "deadline exceeded");
	end();
}

TEST(a_deadline_that_has_passed_sends_nothing)
{
	struct probe_kind k = { .handle = echo };
	struct send_options o = { .deadline = 1 };
	struct outcome out = { 0 };

	start();
	add("a", &k);
	send_with("a/1", 1, &o, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "deadline_exceeded");
	CHECK_INT(k.seen, 0);
	end();
}

TEST(a_cancel_reaches_through_two_agents)
{
	struct probe_kind a = { .handle = ask_next };
	struct probe_kind b = { .handle = be_slow };
	struct send_options o = { 0 };
	struct outcome out = { 0 };

	start();
	add("a", &a);
	add("b", &b);
	o.cancel = cancel_new(loop, NULL, 0);
	send_with("a/1", 1, &o, &out);
	spin(5000);
	CHECK_INT(b.seen, 1);
	CHECK_INT(out.n, 0);
	cancel_fire(o.cancel, "the user said so");
	CHECK_INT(settle(rt), 0);
	CHECK_STR(heard, "the user said so");
	CHECK_STR(fault_name(out.code), "cancelled");
	CHECK_STR(out.text, "the user said so");
	CHECK_STR(out.agent, "b/1");
	cancel_unref(o.cancel);
	end();
}

TEST(a_cancel_takes_what_has_not_begun_out_of_the_mailbox)
{
	struct probe_kind k = { .handle = hold };
	struct send_options o = { 0 };
	struct outcome first = { 0 };
	struct outcome queued = { 0 };
	struct published p = { 0 };

	start();
	add("a", &k);
	subscribe(SUB_TYPE, "t", "a");
	send_to("a/1", 1, &first);
	o.cancel = cancel_new(loop, NULL, 0);
	send_with("a/1", 2, &o, &queued);
	publish_with("t/1", 3, &o, &p);
	spin(5000);
	CHECK_INT(p.count, 1);
	cancel_fire(o.cancel, "never mind");
	spin(5000);
	CHECK_STR(fault_name(queued.code), "cancelled");
	CHECK_INT(first.n, 0);
	CHECK_INT(count_of("dead_letters"), 0);
	end();
	cancel_unref(o.cancel);
	CHECK_INT(k.seen, 1);
}

static int n_late;

static void count_late(void *arg, const json_t *e)
{
	(void)arg;
	n_late += strcmp(json_string_value(json_object_get(e, "event")),
			 "late_reply") == 0;
}

TEST(who_does_not_listen_is_left_after_the_grace)
{
	struct runtime_options ro = { .cancel_grace = 300000 };
	struct probe_kind k = { .handle = hold };
	struct send_options o = { 0 };
	struct outcome out = { 0 };
	struct actor *a = NULL;
	struct err err = { 0 };
	int64_t before;

	start_with(&ro);
	add("a", &k);
	runtime_on_event(rt, count_late, NULL);
	o.cancel = cancel_new(loop, NULL, 0);
	send_with("a/1", 1, &o, &out);
	spin(5000);
	before = clock_us();
	cancel_fire(o.cancel, "enough");
	spin(5000);
	CHECK_INT(out.n, 0);
	run_until_told(&out.n);
	CHECK(clock_us() - before >= 300000);
	CHECK_STR(fault_name(out.code), "cancelled");
	CHECK(runtime_get(rt, "a/1", &a, &err) == 0);
	delivery_reply(((struct probe *)a)->held, number(5));
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.n, 1);
	CHECK_INT(n_late, 1);
	CHECK_INT(count_of("late_replies"), 1);
	cancel_unref(o.cancel);
	end();
}

TEST(events_inherit_the_run_and_not_the_request)
{
	struct probe_kind k = { .handle = be_slow };
	struct send_options o = { 0 };

	start();
	add("a", &k);
	subscribe(SUB_TYPE, "t", "a");
	o.cancel = cancel_new(loop, NULL, 0);
	publish_with("t/1", 1, &o, NULL);
	spin(5000);
	CHECK_INT(k.seen, 1);
	cancel_fire(o.cancel, "run over");
	CHECK_INT(settle(rt), 0);
	CHECK_STR(heard, "run over");
	cancel_unref(o.cancel);
	end();
}

/* --- who waits for itself --- */

TEST(an_agent_that_would_wait_for_itself_is_told)
{
	struct probe_kind a = { .handle = ask_next };
	struct outcome out = { 0 };

	start();
	add("a", &a);
	next_id = "a/1";
	send_to("a/1", 1, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "would_deadlock");
	next_id = "a/2"; /* two agents: a/1 asks a/2, which asks itself */
	send_to("a/1", 1, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "would_deadlock");
	CHECK_INT(a.seen, 3);
	end();
}

static void ask_until_zero(struct probe *p, struct delivery *d)
{
	struct errand *e;
	struct send_options o = { .in = d };
	struct message *m;
	json_int_t v = value_of(delivery_message(d));

	(void)p;
	if (v == 0) {
		delivery_reply(d, number(1000));
		return;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		abort();
	e->d = d;
	m = number(v - 1);
	runtime_send(rt, m, v % 2 ? "b/1" : "a/1", &o, pass_on, e);
	message_unref(m);
}

TEST(a_ring_of_two_is_found_and_reentrant_ones_go_round)
{
	struct probe_kind k = { .handle = ask_until_zero };
	struct outcome out = { 0 };
	struct outcome round = { 0 };

	start();
	add("a", &k);
	add("b", &k);
	send_to("a/1", 5, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "would_deadlock");
	CHECK_STR(out.agent, "a/1");
	runtime_free(rt);
	start();
	add_type((struct actor_type){ .name = "a",
				      .make = probe_make,
				      .arg = &k,
				      .is_reentrant = true });
	add_type((struct actor_type){ .name = "b",
				      .make = probe_make,
				      .arg = &k,
				      .is_reentrant = true });
	send_to("a/1", 5, &round);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(round.value, 1000);
	/* A chain longer than anybody needs has an end too. */
	send_to("a/1", 2000, &round);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(round.code), "would_deadlock");
	end();
}

/* --- stopping --- */

static void busy_types(struct probe_kind *k)
{
	add("a", &k[0]);
	add("b", &k[1]);
	add("c", &k[2]);
	subscribe(SUB_TYPE, "t", "b");
	subscribe(SUB_TYPE, "t", "c");
}

enum { REQUESTS = 30, EVENTS = 10 };

static void check_outcomes(const struct outcome *out, bool is_drain)
{
	for (int i = 0; i < REQUESTS; i++) {
		CHECK_INT(out[i].n, 1);
		CHECK(!is_drain || out[i].good == 1);
		CHECK(out[i].good || out[i].code == FAULT_CANCELLED);
	}
}

static void d7_round(enum stop_mode mode, int64_t after)
{
	static const char *const to[] = { "a/1", "b/1", "c/1" };
	struct runtime_options o = { .cancel_grace = 1000 };
	struct probe_kind k[3] = { { .handle = ask_next },
				   { .handle = be_slow },
				   { .handle = echo } };
	struct outcome out[REQUESTS] = { 0 };
	struct published p[EVENTS] = { 0 };
	struct fault why = { 0 };

	start_with(&o);
	busy_types(k);
	for (int i = 0; i < REQUESTS; i++)
		send_to(to[i % 3], i, &out[i]);
	for (int i = 0; i < EVENTS; i++)
		publish("t/1", i, &p[i]);
	spin(after);
	CHECK_INT(runtime_stop(rt, mode, &why), 0);
	CHECK(runtime_is_idle(rt));
	check_outcomes(out, mode == STOP_DRAIN);
	for (int i = 0; i < EVENTS; i++)
		CHECK_INT(p[i].n, 1);
	fault_done(&why);
	runtime_free(rt);
}

TEST(d7_stopped_under_load_every_request_has_one_outcome)
{
	unsigned int seed = 5;

	next_id = "b/1";
	for (int round = 0; round < 1000; round++) {
		slow_us = round % 16 < 2 ? 200 : 0;
		d7_round(round % 2 ? STOP_DRAIN : STOP_NOW,
			 rand_r(&seed) % 600);
	}
	loop_free(loop);
}

TEST(a_stopped_runtime_answers_unavailable_until_it_is_started)
{
	struct probe_kind k = { .handle = echo };
	struct outcome out = { 0 };
	struct published p = { 0 };

	start();
	add("a", &k);
	CHECK_INT(runtime_stop(rt, STOP_DRAIN, NULL), 0);
	send_to("a/1", 1, &out);
	publish("a:/1", 1, &p);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "unavailable");
	CHECK_STR(fault_name(p.code), "unavailable");
	CHECK(out.is_retryable);
	runtime_start(rt);
	send_to("a/1", 1, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.good, 1);
	end();
}

TEST(a_handler_that_never_ends_does_not_hold_up_the_stop)
{
	struct runtime_options o = { .cancel_grace = 1000,
				     .stop_limit = 20000 };
	struct probe_kind k = { .handle = hold };
	struct outcome out = { 0 };
	struct fault why = { 0 };
	int64_t before = clock_us();

	start_with(&o);
	add("a", &k);
	send_to("a/1", 1, &out);
	spin(2000);
	CHECK_INT(runtime_stop(rt, STOP_DRAIN, &why), -ETIMEDOUT);
	CHECK_HAS(why.message, "1 messages are being handled");
	CHECK_INT(out.n, 1);
	CHECK_STR(fault_name(out.code), "cancelled");
	CHECK(clock_us() - before < 1000000);
	fault_done(&why);
	end();
}

static struct cancel_hook leaving;
static struct probe leaver;

static void leave(struct cancel_hook *h, struct cancel *token)
{
	struct err err = { 0 };

	(void)h;
	(void)token;
	CHECK_INT(runtime_unregister(rt, "x/1", &err), 0);
}

static void leave_when_cancelled(struct probe *p, struct delivery *d)
{
	(void)p;
	leaving.fired = leave;
	cancel_hook(delivery_cancel(d), &leaving);
}

static void keep(struct actor *a)
{
	(void)a;
}

static void handle_leaver(struct actor *a, struct delivery *d)
{
	leave_when_cancelled((struct probe *)a, d);
}

/* The first of three goes while all are being cancelled. */
TEST(an_actor_may_go_when_it_is_cancelled)
{
	static const struct actor_ops ops = { .handle = handle_leaver,
					      .free = keep };
	struct probe_kind k = { .handle = be_slow };
	struct outcome out = { 0 };
	struct err err = { 0 };

	start();
	leaver.actor.ops = &ops;
	CHECK_INT(runtime_register_instance(rt, "x/1", &leaver.actor, &err), 0);
	add("a", &k);
	send_to("x/1", 1, &out);
	send_to("a/1", 1, &out);
	send_to("a/2", 1, &out);
	spin(5000);
	CHECK_INT(k.seen, 2);
	CHECK_INT(runtime_stop(rt, STOP_NOW, NULL), 0);
	CHECK_INT(out.n, 3);
	CHECK_INT(out.good, 0);
	CHECK_STR(heard, "the runtime is stopped");
	end();
}

TAP_MAIN()
