/* SPDX-License-Identifier: Apache-2.0 */

/* The runtime: requests, events, mailboxes, order. D4 to D6, D8 to D11, D13. */

#include "tests/tap.h"

#include <time.h>

#include "tests/agents/runtime.h"

TEST(a_request_has_its_reply_from_the_loop)
{
	struct probe_kind k = { .handle = echo };
	struct outcome out = { 0 };
	struct outcome empty = { 0 };

	start();
	add("echo", &k);
	CHECK(runtime_is_idle(rt));
	send_to("echo/1", 42, &out);
	CHECK_INT(out.n, 0);
	CHECK_INT(k.n_made, 0);
	CHECK(!runtime_is_idle(rt));
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.good, 1);
	CHECK_INT(out.value, 42);
	send_to("echo/1", 1, &empty);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(k.n_made, 1);
	end();
	CHECK_INT(k.n_freed, 1);
}

TEST(d8_an_unknown_recipient_is_not_found_at_once)
{
	static const char *const nowhere[] = { "nobody/1", "echo", "echo/",
					       "/x",       "",     "e cho/1",
					       "echo/\xff" };
	struct probe_kind k = { .handle = echo };
	int64_t before = clock_us();

	start();
	add("echo", &k);
	for (size_t i = 0; i < ARRAY_SIZE(nowhere); i++) {
		struct outcome out = { 0 };

		send_to(nowhere[i], 1, &out);
		CHECK_INT(settle(rt), 0);
		CHECK_INT(out.n, 1);
		CHECK_STR(fault_name(out.code), "not_found");
	}
	CHECK(clock_us() - before < 100000);
	CHECK_INT(k.n_made, 0);
	end();
}

TEST(a_key_may_have_slashes_and_512_bytes)
{
	struct probe_kind k = { .handle = echo };
	struct outcome a = { 0 };
	struct outcome b = { 0 };
	struct outcome c = { 0 };
	char id[600] = "echo/";

	start();
	add("echo", &k);
	send_to("echo/a/b/\xc3\xa9", 1, &a);
	memset(id + 5, 'k', 512);
	send_to(id, 1, &b);
	id[5 + 512] = 'k';
	send_to(id, 1, &c);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(a.good, 1);
	CHECK_INT(b.good, 1);
	CHECK_STR(fault_name(c.code), "not_found");
	end();
}

TEST(a_factory_that_fails_is_asked_again)
{
	struct probe_kind k = { .handle = echo, .n_fail = 1 };
	struct outcome a = { 0 };
	struct outcome b = { 0 };

	start();
	add("echo", &k);
	send_to("echo/1", 1, &a);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(a.code), "handler_failed");
	CHECK_HAS(a.text, "no luck");
	CHECK(a.is_retryable);
	send_to("echo/1", 2, &b);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(b.value, 2);
	CHECK_INT(count_of("make_failed"), 1);
	end();
}

TEST(types_and_instances_are_there_once)
{
	struct probe_kind k = { .handle = echo };
	struct actor_type t = { .name = "echo", .make = probe_make, .arg = &k };
	struct outcome out = { 0 };
	struct outcome other = { 0 };
	struct err err = { 0 };
	struct actor *a = NULL;
	json_t *m;

	start();
	add("echo", &k);
	CHECK_INT(runtime_register(rt, &t, &err), -EEXIST);
	CHECK(probe_make(&k, rt, "x", &a, &err) == 0);
	CHECK_INT(runtime_register_instance(rt, "solo/1", a, &err), 0);
	CHECK_INT(runtime_register_instance(rt, "solo/1", a, &err), -EEXIST);
	CHECK_INT(runtime_register_instance(rt, "solo", a, &err), -EINVAL);
	CHECK_STR(actor_id(a), "solo/1");
	CHECK_STR(actor_key(a), "1");
	send_to("solo/1", 7, &out);
	send_to("solo/2", 7, &other);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.value, 7);
	CHECK_STR(fault_name(other.code), "not_found");
	CHECK_INT(runtime_get(rt, "echo/now", &a, &err), 0);
	CHECK_INT(runtime_get(rt, "none/now", &a, &err), -ENOENT);
	m = runtime_metadata(rt, "echo/now");
	CHECK_STR(json_string_value(json_object_get(m, "key")), "now");
	json_decref(m);
	CHECK(runtime_metadata(rt, "none/1") == NULL);
	end();
}

/* --- events --- */

TEST(d4_an_agent_matched_twice_gets_an_event_once)
{
	struct probe_kind k = { .handle = echo };
	struct published p = { 0 };

	start();
	add("a", &k);
	subscribe(SUB_TYPE, "news", "a");
	subscribe(SUB_TYPE, "news", "a");
	subscribe(SUB_PREFIX, "ne", "a");
	subscribe(SUB_PREFIX, "", "a");
	publish("news/s", 1, &p);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(p.n, 1);
	CHECK_INT(p.count, 1);
	CHECK_INT(k.seen, 1);
	CHECK_STR(k.last, "a/s");
	end();
}

TEST(subscriptions_match_by_type_prefix_default_and_name)
{
	struct probe_kind type = { .handle = echo };
	struct probe_kind prefix = { .handle = echo };
	struct probe_kind other = { .handle = echo };

	start();
	add("type", &type);
	add("prefix", &prefix);
	add("other", &other);
	subscribe(SUB_TYPE, "news.today", "type");
	subscribe(SUB_PREFIX, "news.", "prefix");
	subscribe(SUB_DEFAULT, NULL, "other");
	publish("news.today/x", 1, NULL);
	publish("news.", 1, NULL); /* no topic: refused */
	publish("news./x", 1, NULL);
	publish("news/x", 1, NULL);
	publish("default/x", 1, NULL);
	publish(NULL, 1, NULL);
	publish("other:anything=1/key", 1, NULL);
	publish("other/key", 1, NULL);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(type.seen, 1);
	CHECK_INT(prefix.seen, 2);
	CHECK_INT(other.seen, 3);
	CHECK_STR(other.last, "other/key");
	CHECK_INT(other.n_made, 3); /* x, default, key */
	end();
}

static size_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long all = 0;
	unsigned long here = 0;

	if (!f || fscanf(f, "%lu %lu", &all, &here) != 2)
		abort();
	(void)fclose(f);
	return here * (size_t)sysconf(_SC_PAGESIZE);
}

/* What AddressSanitizer keeps back of what was freed. */
#ifdef __SANITIZE_ADDRESS__
enum { SLACK = 512 << 20 };
#else
enum { SLACK = 1 << 20 };
#endif

TEST(d5_a_million_topics_leave_memory_as_it_was)
{
	struct probe_kind k = { .handle = echo };
	struct message *m = number(1);
	size_t before = 0;
	char topic[64];

	start();
	add("a", &k);
	subscribe(SUB_PREFIX, "t", "a");
	for (int i = 0; i < 1000000; i++) {
		(void)snprintf(topic, sizeof(topic), "t%d/s", i);
		runtime_publish(rt, m, topic, NULL, NULL, NULL);
		if (i % 512 == 0)
			(void)settle(rt);
		if (i == 10000)
			before = resident();
	}
	CHECK_INT(settle(rt), 0);
	CHECK_INT(k.seen, 1000000);
	CHECK(resident() < before + SLACK);
	message_unref(m);
	end();
}

TEST(d6_removing_an_unknown_subscription_is_not_found)
{
	char id[37];
	struct err err = { 0 };
	struct probe_kind k = { .handle = echo };

	start();
	add("a", &k);
	CHECK_INT(runtime_unsubscribe(rt, "nonsense", &err), -ENOENT);
	CHECK_INT(runtime_unsubscribe(rt,
				      "12345678-1234-4234-8234-123456789012",
				      &err),
		  -ENOENT);
	CHECK_INT(runtime_subscribe(rt, SUB_PREFIX, "x.", "a", id, &err), 0);
	publish("x.y/1", 1, NULL);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(runtime_unsubscribe(rt, id, &err), 0);
	CHECK_INT(runtime_unsubscribe(rt, id, &err), -ENOENT);
	publish("x.y/1", 1, NULL);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(k.seen, 1);
	end();
}

static char events[4096];

static void write_down(void *arg, const json_t *event)
{
	const char *what = json_string_value(json_object_get(event, "event"));
	const char *filter = json_string_value(
		json_object_get(event, "filter"));
	size_t n = strlen(events);

	(void)arg;
	(void)snprintf(events + n, sizeof(events) - n, "%s%s%s ", what,
		       filter ? ":" : "", filter ? filter : "");
}

TEST(d9_an_event_without_subscriber_is_counted_and_logged)
{
	struct runtime_options o = { .require_subscriber = true };
	struct published p = { 0 };
	struct published q = { 0 };

	start();
	runtime_on_event(rt, write_down, NULL);
	publish("news/1", 1, &p);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(p.n, 1);
	CHECK_INT(p.count, 0);
	CHECK_INT((int)p.code, FAULT_NONE);
	CHECK_INT(count_of("no_subscriber"), 1);
	CHECK_HAS(events, "no_subscriber");
	runtime_free(rt);
	start_with(&o);
	publish("news/1", 1, &q);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(q.code), "undeliverable");
	end();
}

TEST(d13_a_failing_handler_of_an_event_leaves_a_dead_letter)
{
	struct probe_kind bad = { .handle = fail };
	struct probe_kind good = { .handle = echo };
	struct published p = { 0 };
	json_t *dead;
	const char *text;

	start();
	add("bad", &bad);
	add("good", &good);
	runtime_on_event(rt, write_down, NULL);
	subscribe(SUB_TYPE, "news", "bad");
	subscribe(SUB_TYPE, "news", "good");
	publish("news/1", 5, &p);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(p.count, 2);
	CHECK_INT((int)p.code, FAULT_NONE);
	CHECK_INT(good.seen, 1);
	CHECK_INT(count_of("dead_letters"), 1);
	CHECK_INT(count_of("events_failed"), 1);
	CHECK_HAS(events, "handler_failed");
	CHECK_HAS(events, "dead_letter");
	dead = runtime_dead_letters(rt);
	CHECK_INT((int)json_array_size(dead), 1);
	CHECK(json_unpack(dead, "[{s:{s:s}}]", "envelope", "to", &text) == 0);
	CHECK_STR(text, "bad/1");
	CHECK(json_unpack(dead, "[{s:{s:s}}]", "reason", "code", &text) == 0);
	CHECK_STR(text, "handler_failed");
	json_decref(dead);
	end();
}

TEST(d13_strict_stops_and_returns_the_error)
{
	struct runtime_options o = { .strict = true };
	struct probe_kind bad = { .handle = fail };
	struct probe_kind slow = { .handle = hold };
	struct fault why = { 0 };
	struct outcome out = { 0 };
	struct outcome after = { 0 };

	start_with(&o);
	add("bad", &bad);
	add("slow", &slow);
	subscribe(SUB_TYPE, "news", "bad");
	send_with("slow/1", 1,
		  &(struct send_options){ .deadline = clock_us() + 200000 },
		  &out);
	publish("news/1", 5, NULL);
	run_until_told(&out.n);
	(void)runtime_wait_idle(rt, clock_us() + 1000, &why);
	CHECK_STR(why.message, "it broke");
	CHECK_STR(why.agent, "bad/1");
	CHECK_INT(out.n, 1);
	fault_done(&why);
	send_to("slow/1", 1, &after);
	run_until_told(&after.n);
	CHECK_STR(fault_name(after.code), "unavailable");
	end();
}

static void publish_on(struct probe *p, struct delivery *d)
{
	struct send_options o = { .in = d };

	if (p->n == 1)
		publish_with("news/1", 1, &o, NULL);
	delivery_reply(d, NULL);
}

TEST(d43_an_agent_gets_none_of_its_own_events)
{
	struct runtime_options o = { .self_delivery = true };
	struct probe_kind k = { .handle = publish_on };
	struct probe_kind other = { .handle = echo };

	start();
	add("a", &k);
	add("b", &other);
	subscribe(SUB_TYPE, "news", "a");
	subscribe(SUB_TYPE, "news", "b");
	publish("a:/1", 0, NULL);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(k.seen, 1);
	CHECK_INT(other.seen, 1);
	runtime_free(rt);
	k.seen = 0;
	start_with(&o);
	add("a", &k);
	subscribe(SUB_TYPE, "news", "a");
	publish("a:/1", 0, NULL);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(k.seen, 2);
	end();
}

static int64_t cpu_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

TEST(d43_agents_that_wait_take_no_cpu)
{
	struct probe_kind k = { .handle = hold };
	struct outcome out = { 0 };
	char id[32];
	int64_t before;

	start();
	add("a", &k);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(id, sizeof(id), "a/%d", i);
		send_to(id, 1, &out);
	}
	(void)runtime_wait_idle(rt, clock_us() + 1000, NULL);
	before = cpu_us();
	(void)runtime_wait_idle(rt, clock_us() + 500000, NULL);
	CHECK(cpu_us() - before < 5000);
	CHECK_INT(k.seen, 100);
	CHECK_INT(out.n, 0);
	end();
}

/* --- one at a time, in order, bounded --- */

static struct delivery *in_hand[64];
static int n_in_hand, max_in_hand;
static json_int_t counter;

static void add_one(struct timer *t)
{
	struct probe *p = (struct probe *)((char *)t -
					   offsetof(struct probe, timer));

	counter = p->sum + 1; /* what was read before the wait */
	p->sum = counter;
	max_in_hand = MAX(max_in_hand, n_in_hand);
	n_in_hand--;
	delivery_reply(p->held, number(counter));
}

/* Reads, waits, writes: two at once would lose one. */
static void slow_count(struct probe *p, struct delivery *d)
{
	n_in_hand++;
	p->held = d;
	p->timer.fire = add_one;
	(void)timer_set(loop, &p->timer, clock_us() + 100);
}

TEST(d10_handlers_of_one_agent_do_not_interleave)
{
	struct probe_kind k = { .handle = slow_count };
	struct outcome out = { 0 };

	start();
	add("a", &k);
	for (int i = 0; i < 200; i++)
		send_to("a/1", i, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.good, 200);
	CHECK_INT(counter, 200);
	CHECK_INT(max_in_hand, 1);
	end();
}

static void take_in_hand(struct probe *p, struct delivery *d)
{
	(void)p;
	in_hand[n_in_hand++] = d;
	max_in_hand = MAX(max_in_hand, n_in_hand);
}

static bool has_three(void *arg)
{
	(void)arg;
	return n_in_hand == 3;
}

TEST(concurrency_is_what_was_declared)
{
	struct probe_kind k = { .handle = take_in_hand };
	struct outcome out = { 0 };

	start();
	add_type((struct actor_type){
		.name = "a", .make = probe_make, .arg = &k, .concurrency = 3 });
	for (int i = 0; i < 9; i++)
		send_to("a/1", i, &out);
	for (int i = 0; i < 3; i++) {
		CHECK(loop_run(loop, has_three, NULL));
		for (int j = 0; j < 20; j++)
			(void)runtime_wait_idle(rt, clock_us() + 100, NULL);
		while (n_in_hand > 0)
			delivery_reply(in_hand[--n_in_hand], NULL);
	}
	CHECK_INT(settle(rt), 0);
	CHECK_INT(max_in_hand, 3);
	CHECK_INT(out.good, 9);
	end();
}

static json_int_t order[100];
static int n_order;

static void remember(struct probe *p, struct delivery *d)
{
	(void)p;
	order[n_order++] = value_of(delivery_message(d));
	delivery_reply(d, NULL);
}

TEST(one_sender_to_one_agent_arrives_in_order)
{
	struct probe_kind k = { .handle = remember };
	struct outcome out = { 0 };
	bool is_sorted = true;

	start();
	add_type((struct actor_type){
		.name = "a", .make = probe_make, .arg = &k, .mailbox = 8 });
	subscribe(SUB_TYPE, "t", "a");
	for (int i = 0; i < 16; i++) {
		if (i % 2)
			send_to("a/1", i, &out);
		else
			publish("t/1", i, NULL);
	}
	CHECK_INT(settle(rt), 0);
	CHECK_INT(n_order, 16);
	for (int i = 0; i < n_order; i++)
		is_sorted = is_sorted && order[i] == i;
	CHECK(is_sorted);
	end();
}

static void add_small(struct probe_kind *k)
{
	add_type((struct actor_type){
		.name = "a", .make = probe_make, .arg = k, .mailbox = 4 });
	subscribe(SUB_TYPE, "t", "a");
}

static bool has_begun(void *arg)
{
	return ((struct probe_kind *)arg)->seen > 0;
}

static bool is_refused(void *arg)
{
	return ((struct outcome *)arg)->n >= 1000 - 4;
}

static bool is_all(void *arg)
{
	return ((struct outcome *)arg)->n >= 1000;
}

TEST(d11_a_full_mailbox_answers_overloaded_after_the_deadline)
{
	struct probe_kind k = { .handle = hold };
	struct send_options o = { 0 };
	struct outcome held = { 0 };
	struct outcome out = { 0 };
	struct published p = { 0 };

	start();
	add_small(&k);
	for (int i = 0; i < 5; i++)
		send_to("a/1", i, &held);
	CHECK(loop_run(loop, has_begun, &k));
	/* One is handled, four are in the mailbox: four wait, no more. */
	o.deadline = clock_us() + 500000;
	for (int i = 0; i < 1000; i++)
		send_with("a/1", i, &o, &out);
	publish_with("t/1", 1, &o, &p);
	CHECK(loop_run(loop, is_refused, &out));
	run_until_told(&p.n);
	CHECK_STR(fault_name(p.code), "overloaded");
	CHECK_INT(out.n, 1000 - 4);
	CHECK(loop_run(loop, is_all, &out));
	CHECK(clock_us() >= o.deadline);
	CHECK_INT(out.n_of[FAULT_OVERLOADED], 1000);
	o.deadline = clock_us() + 50000;
	p = (struct published){ 0 };
	publish_with("t/1", 1, &o, &p);
	run_until_told(&p.n);
	CHECK(clock_us() >= o.deadline);
	CHECK_STR(fault_name(p.code), "overloaded");
	CHECK_INT(held.n, 0);
	end();
}

static struct delivery *first_held;

static void hold_first(struct probe *p, struct delivery *d)
{
	if (!first_held && p->n == 1)
		first_held = d;
	else
		remember(p, d);
}

static bool is_held(void *arg)
{
	(void)arg;
	return first_held != NULL;
}

TEST(d11_those_who_wait_come_in_when_there_is_room)
{
	struct probe_kind k = { .handle = hold_first };
	struct published p[8] = { 0 };
	int n = 0;

	start();
	add_small(&k);
	publish("t/1", 100, NULL);
	CHECK(loop_run(loop, is_held, NULL));
	for (int i = 0; i < 8; i++)
		publish("t/1", i, &p[i]);
	for (int i = 0; i < 20; i++)
		(void)runtime_wait_idle(rt, clock_us() + 100, NULL);
	for (int i = 0; i < 8; i++)
		n += p[i].n;
	CHECK_INT(n, 4); /* the publishers of the others still wait */
	delivery_reply(first_held, NULL);
	CHECK_INT(settle(rt), 0);
	for (int i = 0; i < 8; i++) {
		CHECK_INT(p[i].count, 1);
		CHECK_INT(order[i], i);
	}
	end();
}

TEST(d11_those_who_wait_come_in_when_others_are_cancelled)
{
	struct probe_kind k = { .handle = hold_first };
	struct send_options o = { 0 };
	struct outcome gone = { 0 };
	struct published p[3] = { 0 };

	start();
	add_small(&k);
	publish("t/1", 100, NULL);
	CHECK(loop_run(loop, is_held, NULL));
	o.cancel = cancel_new(loop, NULL, 0);
	for (int i = 0; i < 4; i++)
		send_with("a/1", i, &o, &gone);
	for (int i = 0; i < 3; i++)
		publish("t/1", i, &p[i]);
	cancel_fire(o.cancel, "never mind");
	run_until_told(&p[2].n);
	delivery_reply(first_held, NULL);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(gone.n_of[FAULT_CANCELLED], 4);
	CHECK_INT(n_order, 3);
	CHECK_INT(order[2], 2);
	cancel_unref(o.cancel);
	end();
}

TEST(d11_overflow_fail_and_drop_oldest)
{
	struct probe_kind k = { .handle = hold_first };
	struct send_options now = { .overflow = OVERFLOW_FAIL };
	struct send_options oldest = { .overflow = OVERFLOW_DROP_OLDEST };
	struct outcome out = { 0 };
	struct outcome refused = { 0 };
	struct published p = { 0 };

	start();
	add_small(&k);
	publish("t/1", 100, NULL);
	CHECK(loop_run(loop, is_held, NULL));
	for (int i = 0; i < 4; i++)
		send_to("a/1", i, &out);
	send_with("a/1", 4, &now, &refused);
	publish_with("t/1", 5, &now, &p);
	publish_with("t/1", 6, &oldest, NULL);
	for (int i = 0; i < 20; i++)
		(void)runtime_wait_idle(rt, clock_us() + 100, NULL);
	CHECK_STR(fault_name(refused.code), "overloaded");
	CHECK(refused.is_retryable);
	CHECK_STR(fault_name(p.code), "overloaded");
	CHECK_INT(p.count, 0);
	CHECK_INT(out.n_of[FAULT_OVERLOADED], 1); /* the oldest's sender */
	delivery_reply(first_held, NULL);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(n_order, 4);
	CHECK_INT(order[0], 1);
	CHECK_INT(order[3], 6);
	end();
}

TEST(there_are_only_so_many_agents)
{
	struct runtime_options o = { .max_actors = 3 };
	struct probe_kind k = { .handle = echo };
	struct outcome out = { 0 };
	char id[32];

	start_with(&o);
	add("a", &k);
	for (int i = 0; i < 5; i++) {
		(void)snprintf(id, sizeof(id), "a/%d", i);
		send_to(id, 1, &out);
	}
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.good, 3);
	CHECK_INT(out.n_of[FAULT_OVERLOADED], 2);
	end();
}

TEST(what_is_too_large_is_refused)
{
	struct runtime_options o = { .max_message = 1000 };
	struct probe_kind k = { .handle = echo };
	struct outcome big = { 0 };
	struct outcome fits = { 0 };
	struct message *m;
	char text[1200];

	start_with(&o);
	add("a", &k);
	memset(text, 'x', sizeof(text));
	m = message_new("test.Text", json_pack("{s:s#}", "t", text, 995));
	runtime_send(rt, m, "a/1", NULL, got, &big);
	message_unref(m);
	m = message_new("test.Text", json_pack("{s:s#}", "t", text, 990));
	runtime_send(rt, m, "a/1", NULL, got, &fits);
	message_unref(m);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(big.code), "too_large");
	CHECK_INT(fits.good, 1);
	end();
}

TAP_MAIN()
