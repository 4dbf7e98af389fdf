/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that runs out at every moment: the nth allocation of ours and of
 * jansson fails, for n = 1 to the last one. Whatever was begun has exactly one
 * outcome, and idle comes. The linker's --wrap brings the allocations here.
 */

#define TAP_SECONDS 120

#include "tests/tap.h"

#include "fail-malloc.h"
#include "tests/agents/runtime.h"

static int n_begun, n_told;

static void told(void *arg, struct message *reply, const struct fault *why)
{
	(void)arg;
	(void)reply;
	(void)why;
	n_told++;
}

static void published(void *arg, int count, const struct fault *why)
{
	(void)arg;
	(void)count;
	(void)why;
	n_told++;
}

static void answered(void *arg, struct message *reply, const struct fault *why)
{
	struct delivery *d = arg;

	n_told++;
	if (why)
		delivery_fail(d, why);
	else
		delivery_reply(d, message_ref(reply));
}

static void handle_ask(struct actor *a, struct delivery *d)
{
	struct send_options o = { .in = d };

	n_begun++;
	runtime_send(actor_runtime(a), delivery_message(d), "echo/1", &o,
		     answered, d);
}

static void handle_echo(struct actor *a, struct delivery *d)
{
	(void)a;
	(void)delivery_cancel(d);
	delivery_reply(d, message_ref(delivery_message(d)));
}

static json_t *save_it(struct actor *a)
{
	(void)a;
	return json_pack("{s:i}", "version", 1);
}

static int load_it(struct actor *a, const json_t *state, struct err *err)
{
	(void)a;
	(void)state;
	(void)err;
	return 0;
}

static void free_it(struct actor *a)
{
	free(a);
}

static const struct actor_ops ask_ops = { .handle = handle_ask,
					  .free = free_it };
static const struct actor_ops echo_ops = {
	.handle = handle_echo, .save = save_it, .load = load_it, .free = free_it
};

static int make_it(void *arg, struct runtime *r, const char *key,
		   struct actor **ret, struct err *err)
{
	struct actor *a = calloc(1, sizeof(*a));

	(void)r;
	(void)key;
	if (!a)
		return err_set(err, ENOMEM, "out of memory");
	a->ops = arg;
	*ret = a;
	return 0;
}

static enum filter_act change(struct filter *f, const struct filter_view *v,
			      struct filter_verdict *ret)
{
	(void)f;
	ret->message = number(value_of(v->message) + 1);
	return FILTER_REPLACE;
}

static struct filter changer = { .name = "changer", .judge = change };

static void hear(void *arg, const json_t *event)
{
	(void)arg;
	(void)event;
}

static struct runtime *make_runtime(void)
{
	struct actor_type ask = { .name = "ask",
				  .make = make_it,
				  .arg = (void *)&ask_ops };
	struct actor_type echo_type = { .name = "echo",
					.make = make_it,
					.arg = (void *)&echo_ops };
	struct message_type m = { .name = "test.Number" };
	struct runtime *r;
	struct err err = { 0 };

	r = runtime_new(loop, NULL, &err);
	if (!r)
		return NULL;
	runtime_on_event(r, hear, NULL);
	runtime_add_filter(r, &changer);
	if (runtime_register(r, &ask, &err) < 0 ||
	    runtime_register(r, &echo_type, &err) < 0 ||
	    runtime_register_message(r, &m, &err) < 0 ||
	    runtime_subscribe(r, SUB_PREFIX, "ne", "echo", NULL, &err) < 0 ||
	    runtime_subscribe(r, SUB_TYPE, "news", "echo", NULL, &err) < 0) {
		CHECK_INT(err.code, ENOMEM);
		runtime_free(r);
		return NULL;
	}
	return r;
}

static void begin_work(struct runtime *r)
{
	struct message *m = number(1);

	if (!m)
		return;
	n_begun += 4;
	runtime_send(r, m, "ask/1", NULL, told, NULL);
	runtime_send(r, m, "nobody/1", NULL, told, NULL);
	runtime_publish(r, m, "news/2", NULL, published, NULL);
	runtime_publish(r, m, "none/2", NULL, published, NULL);
	message_unref(m);
}

/* Saved with everything in the queue, done by another one. */
static void hand_over(struct runtime *from)
{
	json_t *state = runtime_save(from);
	struct runtime *r = state ? make_runtime() : NULL;
	struct err err = { 0 };

	if (r && runtime_load(r, state, &err) == 0)
		CHECK_INT(runtime_wait_idle(r, 0, NULL), 0);
	runtime_free(r);
	json_decref(state);
}

static void whole_life(void)
{
	struct err err = { 0 };
	struct fault why = { 0 };
	json_t *o;
	int r;

	n_begun = 0;
	n_told = 0;
	if (loop_new(&loop, &err) < 0)
		return;
	rt = make_runtime();
	if (rt) {
		begin_work(rt);
		hand_over(rt);
		r = runtime_stop(rt, STOP_DRAIN, &why);
		CHECK(r == 0 || r == -ENOMEM);
		CHECK_INT(n_told, n_begun);
		CHECK(runtime_is_idle(rt));
		fault_done(&why);
		o = runtime_dead_letters(rt);
		json_decref(o);
	}
	runtime_free(rt);
	loop_free(loop);
}

TEST(every_allocation_may_fail)
{
	long n;

	json_set_alloc_funcs(__wrap_malloc, free);
	whole_life();
	n = calls;
	CHECK(n > 200);
	for (long i = 1; i <= n; i++) {
		calls = 0;
		fail_at = i;
		whole_life();
		fail_at = 0;
		if (tap_bad) {
			printf("# allocation %ld of %ld\n", i, n);
			break;
		}
	}
	CHECK(!__lsan_do_recoverable_leak_check ||
	      __lsan_do_recoverable_leak_check() == 0);
}

TAP_MAIN()
