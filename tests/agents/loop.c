/* SPDX-License-Identifier: Apache-2.0 */

/* The loop of agents: order of tasks and timers, descriptors, the end. */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/util.h"
#include "loop/loop.h"

static struct loop *loop;
static char steps[256];
static int n_runs;

static void begin(void)
{
	struct err err = { 0 };

	if (loop_new(&loop, &err) < 0)
		abort();
}

static void step(char c)
{
	size_t n = strlen(steps);

	if (n + 1 < sizeof(steps))
		steps[n] = c;
}

struct named {
	struct task task;
	struct timer timer;
	char name;
	struct named *queues, *drops;
};

static void say_task(struct task *t)
{
	struct named *n = (struct named *)t;

	step(n->name);
	if (n->queues)
		loop_soon(loop, &n->queues->task);
	if (n->drops)
		task_drop(&n->drops->task);
}

static void say_timer(struct timer *t)
{
	struct named *n = (struct named *)((char *)t -
					   offsetof(struct named, timer));

	step(n->name);
	if (n->queues)
		(void)timer_set(loop, &n->queues->timer, 0);
}

static struct named named(char name)
{
	return (struct named){ .task.run = say_task,
			       .timer.fire = say_timer,
			       .name = name };
}

TEST(tasks_run_in_order_and_once)
{
	struct named a = named('a');
	struct named b = named('b');
	struct named c = named('c');

	begin();
	a.queues = &c;
	loop_soon(loop, &a.task);
	loop_soon(loop, &b.task);
	loop_soon(loop, &a.task);
	CHECK_STR(steps, "");
	CHECK(!loop_run(loop, NULL, NULL));
	CHECK_STR(steps, "abc");
	CHECK(a.task.loop == NULL);
	loop_free(loop);
}

TEST(a_task_that_is_taken_back_does_not_run)
{
	struct named a = named('a');
	struct named b = named('b');
	struct named c = named('c');

	begin();
	a.drops = &b;
	loop_soon(loop, &a.task);
	loop_soon(loop, &b.task);
	loop_soon(loop, &c.task);
	task_drop(&c.task);
	task_drop(&c.task);
	(void)loop_run(loop, NULL, NULL);
	CHECK_STR(steps, "a");
	loop_free(loop);
}

TEST(timers_fire_in_order_of_time_then_of_setting)
{
	int64_t now = clock_us();
	struct named t[] = { named('a'), named('b'), named('c'), named('d'),
			     named('e') };

	begin();
	CHECK(timer_set(loop, &t[0].timer, now + 30000) == 0);
	CHECK(timer_set(loop, &t[1].timer, now + 10000) == 0);
	CHECK(timer_set(loop, &t[2].timer, now + 10000) == 0);
	CHECK(timer_set(loop, &t[3].timer, now + 20000) == 0);
	CHECK(timer_set(loop, &t[4].timer, now + 5000) == 0);
	CHECK(timer_set(loop, &t[1].timer, now + 40000) == 0);
	timer_stop(&t[4].timer);
	(void)loop_run(loop, NULL, NULL);
	CHECK_STR(steps, "cdab");
	CHECK(clock_us() >= now + 40000);
	CHECK(clock_us() < now + 5000000);
	loop_free(loop);
}

static bool three(void *arg)
{
	(void)arg;
	return strlen(steps) >= 3;
}

TEST(a_timer_set_for_the_past_by_itself_lets_others_run)
{
	struct named a = named('a');
	struct named b = named('b');

	begin();
	a.queues = &a;
	(void)timer_set(loop, &a.timer, 0);
	loop_soon(loop, &b.task);
	CHECK(loop_run(loop, three, NULL));
	CHECK_STR(steps, "aba");
	timer_stop(&a.timer);
	loop_free(loop);
}

static bool is_sorted;
static int64_t last_at;

static void count_timer(struct timer *t)
{
	is_sorted = is_sorted && t->at >= last_at;
	last_at = t->at;
	n_runs++;
}

TEST(thousands_of_timers_keep_their_order)
{
	static struct timer t[5000];
	int64_t now = clock_us();
	unsigned int seed = 7;

	begin();
	is_sorted = true;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		t[i].fire = count_timer;
		CHECK(timer_set(loop, &t[i], now + rand_r(&seed) % 50000) == 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(t); i += 3)
		timer_stop(&t[i]);
	(void)loop_run(loop, NULL, NULL);
	CHECK_INT(n_runs, 5000 - 1667);
	CHECK(is_sorted);
	loop_free(loop);
}

static int read_end;

static void read_one(struct watch *w)
{
	char c;

	if (read(read_end, &c, 1) == 1)
		step(c);
	else
		watch_stop(w);
}

TEST(a_descriptor_is_read_until_its_end)
{
	struct watch w = { .ready = read_one };
	int p[2];

	begin();
	CHECK(pipe2(p, O_CLOEXEC) == 0);
	read_end = p[0];
	CHECK(watch_start(loop, &w, p[0]) == 0);
	CHECK(write(p[1], "xyz", 3) == 3);
	(void)close(p[1]);
	(void)loop_run(loop, NULL, NULL);
	CHECK_STR(steps, "xyz");
	(void)close(p[0]);
	loop_free(loop);
}

TEST(a_regular_file_cannot_be_watched)
{
	struct watch w = { .ready = read_one };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	begin();
	CHECK(fd >= 0);
	CHECK_INT(watch_start(loop, &w, fd), -EPERM);
	(void)close(fd);
	loop_free(loop);
}

static void again(struct task *t)
{
	n_runs++;
	loop_soon(loop, t);
}

static void stop_it(struct timer *t)
{
	(void)t;
	step('!');
}

static bool has_stepped(void *arg)
{
	(void)arg;
	return steps[0] != '\0';
}

TEST(a_task_that_queues_itself_starves_no_timer)
{
	struct task t = { .run = again };
	struct timer end = { .fire = stop_it };

	begin();
	loop_soon(loop, &t);
	(void)timer_set(loop, &end, clock_us() + 20000);
	CHECK(loop_run(loop, has_stepped, NULL));
	CHECK(n_runs > 100);
	task_drop(&t);
	loop_free(loop);
}

static bool is_done(void *arg)
{
	return *(int *)arg > 0;
}

static void run_within(struct task *t)
{
	(void)t;
	n_runs++;
	CHECK(!loop_run(loop, NULL, NULL));
}

TEST(the_loop_does_not_run_within_itself)
{
	struct task t = { .run = run_within };
	struct task after = { .run = again };

	begin();
	loop_soon(loop, &t);
	loop_soon(loop, &after);
	CHECK(loop_run(loop, is_done, &n_runs));
	CHECK_INT(n_runs, 1);
	task_drop(&after);
	loop_free(loop);
}

static int64_t cpu_us(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
	       u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

/* Under a percent of a processor, with something to wait for. */
TEST(d43_a_loop_that_waits_takes_no_cpu)
{
	struct named end = named('.');
	struct named never = named('x');
	int64_t before;

	begin();
	(void)timer_set(loop, &end.timer, clock_us() + 1000000);
	(void)timer_set(loop, &never.timer, clock_us() + 300000000);
	before = cpu_us();
	CHECK(loop_run(loop, has_stepped, NULL));
	CHECK(cpu_us() - before < 10000);
	timer_stop(&never.timer);
	loop_free(loop);
}

TAP_MAIN()
