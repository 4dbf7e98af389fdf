/* SPDX-License-Identifier: Apache-2.0 */

/* Cancel tokens: D12 and what else cancel.h promises. */

#include "tests/tap.h"

#include <string.h>

#include "base/clock.h"
#include "loop/cancel.h"

static struct loop *loop;
static char steps[64];

static void begin(void)
{
	struct err err = { 0 };

	if (loop_new(&loop, &err) < 0)
		abort();
}

struct note {
	struct cancel_hook hook;
	char name;
	struct note *removes, *adds;
	struct cancel *drops;
	char reason[64];
};

static void noted(struct cancel_hook *h, struct cancel *c)
{
	struct note *n = (struct note *)h;

	steps[strlen(steps)] = n->name;
	(void)snprintf(n->reason, sizeof(n->reason), "%s", cancel_reason(c));
	if (n->removes)
		cancel_unhook(&n->removes->hook);
	if (n->adds)
		cancel_hook(c, &n->adds->hook);
	cancel_unref(n->drops);
}

static struct note note(char name)
{
	return (struct note){ .hook.fired = noted, .name = name };
}

TEST(d12_a_callback_may_use_its_token)
{
	struct cancel *c;
	struct note a = note('a');
	struct note b = note('b');
	struct note d = note('d');
	struct note e = note('e');

	begin();
	c = cancel_new(loop, NULL, 0);
	cancel_hook(c, &a.hook);
	cancel_hook(c, &b.hook);
	cancel_hook(c, &d.hook);
	d.removes = &b;
	d.adds = &e;
	a.drops = cancel_ref(c);
	cancel_unref(c); /* the last one is dropped by a callback */
	CHECK(!cancel_is_fired(c));
	cancel_fire(c, "the user went away");
	CHECK_STR(steps, "dea");
	CHECK_STR(a.reason, "the user went away");
	CHECK_STR(e.reason, "the user went away");
	loop_free(loop);
}

TEST(d12_a_parent_cancels_its_children_and_no_child_its_parent)
{
	struct cancel *top;
	struct cancel *one;
	struct cancel *two;
	struct cancel *deep;
	struct note n = note('n');

	begin();
	top = cancel_new(loop, NULL, 0);
	one = cancel_new(loop, top, 0);
	two = cancel_new(loop, top, 0);
	deep = cancel_new(loop, two, 0);
	cancel_hook(deep, &n.hook);
	cancel_fire(one, "only one");
	CHECK(!cancel_is_fired(top) && !cancel_is_fired(two));
	cancel_fire(top, "all");
	cancel_fire(top, "once more");
	CHECK(cancel_is_fired(two) && cancel_is_fired(deep));
	CHECK_STR(n.reason, "all");
	CHECK_STR(cancel_reason(one), "only one");
	CHECK_STR(steps, "n");
	cancel_unref(top);
	cancel_unref(one);
	cancel_unref(two);
	cancel_unref(deep);
	loop_free(loop);
}

static bool has_steps(void *arg)
{
	(void)arg;
	return steps[0] != '\0';
}

TEST(d12_a_deadline_cancels_and_says_so)
{
	int64_t now = clock_us();
	struct cancel *top;
	struct cancel *child;
	struct note n = note('n');
	struct fault f = { 0 };

	begin();
	top = cancel_new(loop, NULL, now + 20000);
	child = cancel_new(loop, top, now + 60000000);
	CHECK(cancel_deadline(child) == now + 20000);
	cancel_unref(top); /* its child keeps it */
	cancel_hook(child, &n.hook);
	CHECK(loop_run(loop, has_steps, NULL));
	CHECK(clock_us() >= now + 20000);
	CHECK(cancel_is_late(child));
	cancel_fault(child, &f);
	CHECK_STR(fault_name(f.code), "deadline_exceeded");
	CHECK(f.is_retryable);
	fault_done(&f);
	cancel_unref(child);
	loop_free(loop);
}

TEST(a_child_may_end_before_its_parent)
{
	int64_t now = clock_us();
	struct cancel *top;
	struct cancel *child;
	struct note n = note('n');

	begin();
	top = cancel_new(loop, NULL, now + 60000000);
	child = cancel_new(loop, top, now + 10000);
	cancel_hook(child, &n.hook);
	CHECK(loop_run(loop, has_steps, NULL));
	CHECK(cancel_is_late(child) && !cancel_is_fired(top));
	cancel_unref(child);
	cancel_unref(top);
	CHECK(!loop_run(loop, NULL, NULL)); /* nothing is set any more */
	loop_free(loop);
}

TEST(what_is_over_is_over_at_once)
{
	struct cancel *top;
	struct cancel *child;
	struct cancel *late;
	struct note n = note('n');
	struct fault f = { 0 };

	begin();
	top = cancel_new(loop, NULL, 0);
	cancel_fire(top, "gone");
	child = cancel_new(loop, top, clock_us() + 1000000);
	CHECK(cancel_is_fired(child) && !cancel_is_late(child));
	cancel_hook(child, &n.hook);
	CHECK_STR(steps, "n");
	CHECK(n.hook.token == NULL);
	cancel_fault(child, &f);
	CHECK_STR(fault_name(f.code), "cancelled");
	CHECK_STR(f.message, "gone");
	late = cancel_new(loop, NULL, 1);
	CHECK(cancel_is_late(late));
	fault_done(&f);
	cancel_unref(late);
	cancel_unref(child);
	cancel_unref(top);
	loop_free(loop);
}

TEST(a_token_that_goes_calls_nobody)
{
	struct cancel *c;
	struct note n = note('n');

	begin();
	c = cancel_new(loop, NULL, clock_us() + 5000);
	cancel_hook(c, &n.hook);
	cancel_unref(c);
	CHECK(n.hook.token == NULL);
	(void)loop_run(loop, NULL, NULL);
	CHECK_STR(steps, "");
	loop_free(loop);
}

TEST(no_token_never_fires)
{
	cancel_fire(NULL, "x");
	CHECK(!cancel_is_fired(NULL) && !cancel_is_late(NULL));
	CHECK(cancel_reason(NULL) == NULL);
	CHECK(cancel_deadline(NULL) == 0);
	CHECK(cancel_ref(NULL) == NULL);
}

TAP_MAIN()
