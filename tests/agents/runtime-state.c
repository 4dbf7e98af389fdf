/* SPDX-License-Identifier: Apache-2.0 */

/* Envelopes, types of messages, state, another bus: D14, D15, D16, D41. */

#include "tests/tap.h"

#include "runtime/bus.h"
#include "tests/agents/runtime.h"

/* --- types --- */

static char handled[64];

static void acme(struct actor *a, struct delivery *d)
{
	(void)a;
	(void)strcat(handled, "acme ");
	delivery_reply(d, number(1));
}

static void zeta(struct actor *a, struct delivery *d)
{
	(void)a;
	(void)strcat(handled, "zeta ");
	delivery_reply(d, number(2));
}

static void any(struct actor *a, struct delivery *d)
{
	(void)a;
	(void)strcat(handled, "any ");
	delivery_reply(d, number(3));
}

static bool is_big(struct actor *a, const struct message *m)
{
	(void)a;
	return value_of(m) > 100;
}

static const struct handler orders[] = {
	{ .type = "acme.Order", .run = zeta, .when = is_big },
	{ .type = "acme.Order", .run = acme },
	{ .type = "zeta.Order", .run = zeta, .only = HANDLE_REQUESTS },
};

static void dispatch(struct probe *p, struct delivery *d)
{
	delivery_dispatch(d, &p->actor, orders, ARRAY_SIZE(orders));
}

static void order(const char *type, json_int_t v, struct outcome *out)
{
	struct message *m = message_new(type, json_pack("{s:I}", "v", v));

	runtime_send(rt, m, "shop/1", NULL, got, out);
	message_unref(m);
	(void)settle(rt);
}

static int needs_v(void *arg, const json_t *schema, const json_t *data,
		   struct err *err)
{
	const char *field = json_string_value(json_object_get(schema, "need"));

	(void)arg;
	return json_object_get(data, field)
		       ? 0
		       : err_set(err, EINVAL, "/%s: missing", field);
}

TEST(d14_two_orders_in_two_namespaces_coexist)
{
	json_t *one = json_pack("{s:s}", "need", "v");
	json_t *two = json_pack("{s:s}", "need", "w");
	struct message_type t = { .name = "acme.Order",
				  .schema = one,
				  .check = needs_v };
	struct message_type z = { .name = "zeta.Order", .schema = two };
	struct message_type other = { .name = "acme.Order", .schema = two };
	struct message_type bare = { .name = "Order", .schema = one };
	struct probe_kind k = { .handle = dispatch };
	struct outcome out = { 0 };
	struct err err = { 0 };
	struct message *m;

	start();
	add("shop", &k);
	CHECK_INT(runtime_register_message(rt, &t, &err), 0);
	CHECK_INT(runtime_register_message(rt, &z, &err), 0);
	CHECK_INT(runtime_register_message(rt, &t, &err), 0); /* the same */
	CHECK_INT(runtime_register_message(rt, &other, &err), -EEXIST);
	CHECK_INT(runtime_register_message(rt, &bare, &err), -EINVAL);
	order("acme.Order", 1, &out);
	CHECK_INT(out.value, 1);
	order("zeta.Order", 1, &out);
	CHECK_INT(out.value, 2);
	order("acme.Order", 500, &out);
	CHECK_INT(out.value, 2);
	CHECK_STR(handled, "acme zeta zeta ");
	m = message_new("acme.Order", json_object());
	runtime_send(rt, m, "shop/1", NULL, got, &out);
	message_unref(m);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "rejected");
	CHECK_HAS(out.text, "/v: missing");
	json_decref(one);
	json_decref(two);
	end();
}

TEST(what_no_handler_takes_cannot_be_handled)
{
	static const char *const takes[] = { "acme.Order", NULL };
	struct probe_kind k = { .handle = dispatch };
	struct probe_kind few = { .handle = echo };
	struct outcome out = { 0 };
	struct message *m;

	start();
	add("shop", &k);
	add_type((struct actor_type){ .name = "few",
				      .make = probe_make,
				      .arg = &few,
				      .takes = takes });
	order("acme.Other", 1, &out);
	CHECK_STR(fault_name(out.code), "cant_handle");
	send_to("few/1", 1, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "cant_handle");
	CHECK_INT(few.n_made, 0);
	/* A request-only handler does not take an event. */
	m = message_new("zeta.Order", json_object());
	runtime_publish(rt, m, "shop:/1", NULL, NULL, NULL);
	message_unref(m);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(count_of("dead_letters"), 1);
	CHECK_STR(handled, "");
	end();
}

static const struct handler bases[] = {
	{ .run = any },
	{ .type = "acme.Thing", .run = acme },
	{ .type = "acme.Exact", .run = zeta },
};

static void by_base(struct probe *p, struct delivery *d)
{
	delivery_dispatch(d, &p->actor, bases, ARRAY_SIZE(bases));
}

TEST(the_exact_type_then_the_base_then_any)
{
	static const struct message_type types[] = {
		{ .name = "acme.Thing" },
		{ .name = "acme.Exact", .base = "acme.Thing" },
		{ .name = "acme.Near", .base = "acme.Exact" },
		{ .name = "acme.Far", .base = "acme.Thing" },
	};
	static const char *const takes[] = { "acme.Thing", NULL };
	struct message_type lost = { .name = "acme.X", .base = "acme.Y" };
	struct probe_kind k = { .handle = by_base };
	struct outcome out = { 0 };
	struct err err = { 0 };

	start();
	add_type((struct actor_type){ .name = "shop",
				      .make = probe_make,
				      .arg = &k,
				      .takes = takes });
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		CHECK_INT(runtime_register_message(rt, &types[i], &err), 0);
	CHECK_INT(runtime_register_message(rt, &lost, &err), -ENOENT);
	order("acme.Exact", 1, &out);
	order("acme.Near", 1, &out);
	order("acme.Far", 1, &out);
	order("acme.Thing", 1, &out);
	CHECK_STR(handled, "zeta zeta acme acme ");
	order("acme.None", 1, &out);
	CHECK_STR(fault_name(out.code), "cant_handle");
	end();
}

/* --- envelopes --- */

static unsigned int seed = 11;

static json_t *anything(int depth)
{
	static const char *const texts[] = { "", "a\"b\\",
					     "\xc3\xa9\xe2\x82\xac",
					     "line\nline", "\x01\x1f" };
	int what = rand_r(&seed) % (depth > 4 ? 5 : 7);
	json_t *o;

	switch (what) {
	case 0:
		return json_null();
	case 1:
		return json_boolean(rand_r(&seed) % 2);
	case 2:
		return json_integer((json_int_t)rand_r(&seed) * 1000003 -
				    1000000);
	case 3:
		return json_real((double)rand_r(&seed) / 7);
	case 4:
		return json_string(texts[rand_r(&seed) % ARRAY_SIZE(texts)]);
	case 5:
		o = json_array();
		for (int i = rand_r(&seed) % 4; i > 0; i--)
			(void)json_array_append_new(o, anything(depth + 1));
		return o;
	default:
		o = json_object();
		for (int i = rand_r(&seed) % 4; i > 0; i--) {
			char key[16];

			(void)snprintf(key, sizeof(key), "k%d", i);
			(void)json_object_set_new(o, key, anything(depth + 1));
		}
		return o;
	}
}

static struct post *any_post(struct uuid_pool *ids)
{
	static const struct address addresses[] = {
		{ .to = "a/1" },
		{ .from = "a/1",
		  .to = "b.c-d/x/y",
		  .topic = "t:1=2/s",
		  .traceparent = "00-0af7651916cd43dd8448eb211c80319c-"
				 "b7ad6b7169203331-01" },
		{ .topic = "default/" },
	};
	enum post_kind kind = (enum post_kind)(rand_r(&seed) % POST_KINDS);
	struct post *p = post_new(
		kind, &addresses[rand_r(&seed) % ARRAY_SIZE(addresses)]);

	p->id = uuid_make(ids);
	if (rand_r(&seed) % 2)
		p->reply_to = uuid_make(ids);
	p->attempt = 1 + (unsigned int)rand_r(&seed) % 5;
	p->overflow = (enum overflow)(rand_r(&seed) % 3);
	for (int i = rand_r(&seed) % 4; i > 0; i--) {
		struct hop *h = hop_new(p->path, i % 2 ? "a/1" : "b/2");

		hop_unref(p->path);
		p->path = h;
	}
	if (kind == POST_ERROR || kind == POST_CANCEL) {
		fault_set(&p->why, FAULT_DEADLINE, "number %d", rand_r(&seed));
		p->why.cause = json_pack("{s:s}", "code", "internal");
	} else {
		p->message = message_new("acme.Union", anything(0));
	}
	if (rand_r(&seed) % 2)
		p->headers = json_pack("{s:s}", "x-tenant", "7");
	return p;
}

TEST(d15_every_envelope_comes_back_as_it_was)
{
	static struct uuid_pool ids;

	for (int i = 0; i < 3000; i++) {
		struct post *p = any_post(&ids);
		struct post *q = NULL;
		struct err err = { 0 };
		json_t *one = post_json(p, &ids, NULL);
		char *text = json_dumps(one, JSON_COMPACT);
		json_t *read = json_loads(text, 0, NULL);
		json_t *two = NULL;

		CHECK_INT(post_load(read, &q, &err), 0);
		if (q)
			two = post_json(q, &ids, NULL);
		CHECK(json_equal(one, two));
		if (!json_equal(one, two))
			printf("# %s %s\n", text, err.text);
		json_decref(one);
		json_decref(read);
		json_decref(two);
		free(text);
		post_unref(p);
		post_unref(q);
	}
}

TEST(the_deadline_crosses_by_the_clock_of_the_day)
{
	static struct uuid_pool ids;
	struct address a = { .to = "a/1" };
	struct post *p = post_new(POST_REQUEST, &a);
	struct post *q = NULL;
	struct err err = { 0 };
	json_t *o;

	p->message = number(1);
	p->deadline = clock_us() + 5000000;
	o = post_json(p, &ids, NULL);
	CHECK_INT(post_load(o, &q, &err), 0);
	CHECK(llabs(q->deadline - p->deadline) < 5000);
	json_decref(o);
	post_unref(p);
	post_unref(q);
}

TEST(what_is_no_envelope_is_refused)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"v\":2,\"kind\":\"request\",\"id\":"
		"\"12345678-1234-4234-8234-123456789012\"}",
		"{\"v\":1,\"kind\":\"letter\",\"id\":"
		"\"12345678-1234-4234-8234-123456789012\"}",
		"{\"v\":1,\"kind\":\"request\",\"id\":\"7\",\"type\":\"a.b\","
		"\"data\":{}}",
		"{\"v\":1,\"kind\":\"request\",\"id\":"
		"\"12345678-1234-4234-8234-123456789012\"}",
		"{\"v\":1,\"kind\":\"request\",\"id\":"
		"\"12345678-1234-4234-8234-123456789012\",\"type\":\"a.b\","
		"\"data\":{},\"to\":\"nowhere\"}",
		"{\"v\":1,\"kind\":\"request\",\"id\":"
		"\"12345678-1234-4234-8234-123456789012\",\"type\":\"a.b\","
		"\"data\":{},\"path\":[1]}",
		"{\"v\":1,\"kind\":\"request\",\"id\":"
		"\"12345678-1234-4234-8234-123456789012\",\"type\":\"a.b\","
		"\"data\":{},\"deadline\":\"tomorrow\"}",
		"{\"v\":1,\"kind\":\"error\",\"id\":"
		"\"12345678-1234-4234-8234-123456789012\",\"data\":{}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		json_t *o = json_loads(bad[i], 0, NULL);
		struct post *p = NULL;
		struct err err = { 0 };

		CHECK(o != NULL);
		CHECK(post_load(o, &p, &err) < 0);
		CHECK(err.text[0] != '\0');
		json_decref(o);
	}
}

/* --- another bus: paper. Everything is text between two runtimes --- */

struct paper {
	struct bus bus; /* first */
	struct paper *other;
	struct uuid_pool ids;
	int n_carried;
};

struct letter {
	struct task task; /* first */
	struct paper *to;
	struct ticket *ticket;
	char *text;
};

static void letter_arrives(struct task *t)
{
	struct letter *l = (struct letter *)t;
	json_t *o = json_loads(l->text, 0, NULL);
	struct post *p = NULL;
	struct err err = { 0 };

	if (post_load(o, &p, &err) < 0)
		abort();
	bus_arrive(l->to->bus.rt, p, NULL);
	ticket_done(l->ticket, 1, NULL);
	post_unref(p);
	json_decref(o);
	free(l->text);
	free(l);
}

static int mail(struct paper *b, struct post *p, struct ticket *t)
{
	struct letter *l = calloc(1, sizeof(*l));
	json_t *o = post_json(p, &b->ids, NULL);

	if (!l || !o)
		abort();
	l->task.run = letter_arrives;
	l->to = b->other;
	l->ticket = ticket_ref(t);
	l->text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	b->n_carried++;
	loop_soon(loop, &l->task);
	return 0;
}

static int paper_send(struct bus *b, struct post *p, struct fault *why)
{
	(void)why;
	return mail((struct paper *)b, p, NULL);
}

static int paper_publish(struct bus *b, struct post *p, struct ticket *t,
			 struct fault *why)
{
	(void)why;
	return mail((struct paper *)b, p, t);
}

static void paper_cancel(struct bus *b, struct post *request)
{
	struct address a = { .to = request->to };
	struct post *p = post_new(POST_CANCEL, &a);

	p->reply_to = request->id;
	cancel_fault(request->cancel, &p->why);
	(void)mail((struct paper *)b, p, NULL);
	post_unref(p);
}

static const struct bus_ops paper_ops = { .send = paper_send,
					  .publish = paper_publish,
					  .cancel = paper_cancel };

static struct paper here = { .bus.ops = &paper_ops },
		    there = { .bus.ops = &paper_ops };
static struct runtime *far;

static void start_far(void)
{
	struct runtime_options o = { .bus = &there.bus };
	struct runtime_options own = { .bus = &here.bus,
				       .cancel_grace = 1000000 };
	struct err err = { 0 };

	here.other = &there;
	there.other = &here;
	start_with(&o);
	far = rt;
	rt = runtime_new(loop, &own, &err);
}

static void end_far(void)
{
	runtime_free(far);
	end();
}

static void add_far(const char *name, struct probe_kind *k)
{
	struct actor_type t = { .name = name, .make = probe_make, .arg = k };
	struct err err = { 0 };

	if (runtime_register(far, &t, &err) < 0 ||
	    runtime_subscribe(far, SUB_TYPE, "t", name, NULL, &err) < 0)
		abort();
}

TEST(d41_an_error_from_another_runtime_is_whole)
{
	struct probe_kind bad = { .handle = fail };
	struct probe_kind good = { .handle = echo };
	struct outcome out = { 0 };

	start_far();
	add_far("bad", &bad);
	add_far("good", &good);
	send_to("bad/1", 1, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "handler_failed");
	CHECK_STR(out.text, "it broke");
	CHECK_STR(out.agent, "bad/1");
	CHECK_STR(out.cause, "deeper");
	CHECK(!out.is_retryable);
	send_to("good/1", 12, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.value, 12);
	send_to("nobody/1", 12, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "not_found");
	CHECK_INT(here.n_carried, 3);
	CHECK_INT(there.n_carried, 3);
	end_far();
}

static char reason[64];
static struct cancel_hook far_hook;
static struct delivery *far_held;

static void far_cancelled(struct cancel_hook *h, struct cancel *c)
{
	struct fault f = { 0 };

	(void)h;
	(void)snprintf(reason, sizeof(reason), "%s", cancel_reason(c));
	cancel_fault(c, &f);
	delivery_fail(far_held, &f);
	fault_done(&f);
}

static void until_cancelled(struct probe *p, struct delivery *d)
{
	(void)p;
	far_held = d;
	far_hook.fired = far_cancelled;
	cancel_hook(delivery_cancel(d), &far_hook);
}

TEST(a_cancel_and_an_event_reach_another_runtime)
{
	struct probe_kind k = { .handle = until_cancelled };
	struct probe_kind e = { .handle = echo };
	struct send_options o = { 0 };
	struct outcome out = { 0 };
	struct published p = { 0 };

	start_far();
	add_far("a", &k);
	add_far("e", &e);
	o.cancel = cancel_new(loop, NULL, 0);
	send_with("a/1", 1, &o, &out);
	(void)runtime_wait_idle(rt, clock_us() + 5000, NULL);
	CHECK_INT(k.seen, 1);
	cancel_fire(o.cancel, "far away");
	CHECK_INT(settle(rt), 0);
	CHECK_STR(reason, "far away");
	CHECK_STR(fault_name(out.code), "cancelled");
	publish("e:x/2", 1, &p);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(settle(far), 0);
	CHECK_INT(p.count, 1);
	CHECK_STR(e.last, "e/2");
	cancel_unref(o.cancel);
	end_far();
}

/* --- state --- */

static json_int_t total;

static void finish_slow(struct timer *t)
{
	struct probe *p = (struct probe *)((char *)t -
					   offsetof(struct probe, timer));
	struct delivery *d = p->held;

	p->sum += value_of(delivery_message(d));
	delivery_reply(d, number(p->sum));
}

static void add_slowly(struct probe *p, struct delivery *d)
{
	p->held = d;
	p->timer.fire = finish_slow;
	(void)timer_set(loop, &p->timer, clock_us() + 50);
}

struct errand {
	struct probe *p;
	struct delivery *d;
};

static void asked(void *arg, struct message *reply, const struct fault *why)
{
	struct errand *e = arg;

	(void)why;
	e->p->sum += 1;
	delivery_reply(e->d, message_ref(reply));
	free(e);
}

/* Adds one itself, and has the adder add the number. */
static void ask_adder(struct probe *p, struct delivery *d)
{
	struct errand *e = calloc(1, sizeof(*e));
	struct send_options o = { .in = d };

	if (!e)
		abort();
	*e = (struct errand){ p, d };
	runtime_send(rt, delivery_message(d), "adder/1", &o, asked, e);
}

static struct probe_kind adder = { .handle = add_slowly },
			 asker = { .handle = ask_adder };

static void start_adders(void)
{
	start();
	add("adder", &adder);
	add("asker", &asker);
}

static json_int_t sum_of(const char *id)
{
	struct actor *a = NULL;
	struct err err = { 0 };

	return runtime_get(rt, id, &a, &err) == 0 ? ((struct probe *)a)->sum
						  : -1;
}

static json_t *through_text(json_t *o)
{
	char *text = json_dumps(o, 0);
	json_t *read = json_loads(text, 0, NULL);

	json_decref(o);
	free(text);
	return read;
}

/*
 * 300 numbers, by request, by event, and through an agent that asks another;
 * saved in the middle, and done in a new runtime: each once.
 */
static void d16_round(int64_t after)
{
	struct outcome out = { 0 };
	struct err err = { 0 };
	json_t *state;
	int before;

	start_adders();
	subscribe(SUB_TYPE, "numbers", "adder");
	for (int i = 1; i <= 100; i++) {
		send_to("adder/1", i, &out);
		publish("numbers/1", i, NULL);
		send_to("asker/1", i, &out);
	}
	(void)runtime_wait_idle(rt, clock_us() + after, NULL);
	state = runtime_save(rt);
	before = out.n;
	CHECK(state != NULL);
	CHECK_INT(out.good, out.n);
	runtime_free(rt);
	loop_free(loop);
	loop = NULL;
	state = through_text(state);
	start_adders();
	CHECK_INT(runtime_load(rt, state, &err), 0);
	total = 0;
	for (size_t i = 0;
	     i < json_array_size(json_object_get(state, "pending_requests"));
	     i++)
		total += runtime_claim(
				 rt,
				 json_string_value(json_array_get(
					 json_object_get(state,
							 "pending_requests"),
					 i)),
				 got, &out) == 0;
	CHECK_INT(before + total, 200);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.good, 200);
	CHECK_INT(sum_of("adder/1"), 3 * 5050);
	CHECK_INT(sum_of("asker/1"), 100);
	publish("numbers/1", 1, NULL); /* the subscription is there too */
	CHECK_INT(settle(rt), 0);
	CHECK_INT(sum_of("adder/1"), 3 * 5050 + 1);
	json_decref(state);
	end();
}

TEST(d16_saved_under_load_all_work_is_done_once)
{
	static const int64_t when[] = { 1, 500, 2000, 5000, 9000, 15000 };

	for (size_t i = 0; i < ARRAY_SIZE(when); i++)
		d16_round(when[i]);
}

static json_t *saved_within;

static void save_within(struct task *t)
{
	(void)t;
	saved_within = runtime_save(rt);
}

static bool is_saved(void *arg)
{
	(void)arg;
	return saved_within != NULL;
}

/* From within the loop: what was being handled is handled again. */
TEST(d16_saved_from_within_the_loop_nothing_is_lost)
{
	struct task t = { .run = save_within };
	struct outcome out = { 0 };
	struct err err = { 0 };
	int attempt = 0;
	json_t *queue;

	adder.handle = hold;
	start_adders();
	for (int i = 1; i <= 20; i++)
		send_to("asker/1", i, &out);
	(void)runtime_wait_idle(rt, clock_us() + 5000, NULL);
	loop_soon(loop, &t);
	(void)loop_run(loop, is_saved, NULL);
	queue = json_object_get(saved_within, "queue");
	CHECK_INT((int)json_array_size(queue), 20); /* not what asker asked */
	CHECK(json_unpack(json_array_get(queue, 0), "{s:i}", "attempt",
			  &attempt) == 0);
	CHECK_INT(attempt, 2);
	runtime_free(rt);
	loop_free(loop);
	loop = NULL;
	adder.handle = add_slowly;
	start_adders();
	CHECK_INT(runtime_load(rt, saved_within, &err), 0);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(sum_of("asker/1"), 20);
	CHECK_INT(sum_of("adder/1"), 210);
	json_decref(saved_within);
	end();
}

TEST(state_that_is_not_ours_is_refused_and_what_is_unknown_kept)
{
	static const char *const bad[] = {
		"{}",
		"{\"version\":9}",
		"{\"version\":1,\"type\":\"cordon.Team\"}",
		"{\"version\":1,\"agents\":{\"nobody/1\":{}}}",
		"{\"version\":1,\"subscriptions\":[{}]}",
		"{\"version\":1,\"queue\":[{}]}",
	};
	struct err err = { 0 };
	json_t *o;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		start_adders();
		o = json_loads(bad[i], 0, NULL);
		CHECK(runtime_load(rt, o, &err) < 0);
		CHECK(err.text[0]);
		json_decref(o);
		end();
	}
	start_adders();
	o = json_pack("{s:i, s:s}", "version", 1, "later", "more");
	CHECK_INT(runtime_load(rt, o, &err), 0);
	json_decref(o);
	o = runtime_save(rt);
	CHECK_STR(json_string_value(json_object_get(o, "later")), "more");
	json_decref(o);
	end();
}

TAP_MAIN()
