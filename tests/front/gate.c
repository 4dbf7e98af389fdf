/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A gate from the front's side: how long one waits for its wall. The front's
 * clock for that (30 s) is made to run a hundred times as fast here, and no
 * other one: one that is set for another time does not ring in time.
 */

#include "tests/tap.h"

#include "front/front.h"
#include "fake.h"

#define IDLE_US 30000000
#define FAST_US (IDLE_US / 100)

static int n_set; /* how often that clock was */

/* The linker puts these around alarm_set() (meson.build). */
void __real_alarm_set(struct manager *m, struct alarm **a, uint64_t us,
		      void (*fn)(void *arg), void *arg);
void __wrap_alarm_set(struct manager *m, struct alarm **a, uint64_t us,
		      void (*fn)(void *arg), void *arg);
void __wrap_alarm_set(struct manager *m, struct alarm **a, uint64_t us,
		      void (*fn)(void *arg), void *arg)
{
	n_set += us == IDLE_US;
	__real_alarm_set(m, a, us == IDLE_US ? FAST_US : us, fn, arg);
}

/* Room for one wall, which a box without a gate has. */
static struct box *begin_full(void)
{
	struct box *b;

	fake_begin();
	fake_crash();
	fake.limits.boxes = 1;
	fake.limits.wait_us = 5000000;
	fake_open();
	b = fake_box("full", "sleep 60");
	CHECK_INT(fake_start(b), 0);
	fake.has_gates = true;
	return b;
}

static bool is_cut_off(const struct fake_gate *g)
{
	return g->number == 0;
}

TEST(g01_a_gate_without_a_wall_is_dropped)
{
	struct box *full = begin_full();
	struct box *b = fake_box("idle", "exit 3");
	struct waited w;
	int before = fake.n_prepares;

	CHECK_INT(fake.n_gates, 1);
	CHECK_INT(n_set, 1);
	/* Not before its time ... */
	fake_turn(FAST_US / 3000);
	CHECK_INT(fake.n_gate_ends, 0);
	CHECK(!is_cut_off(&fake.gates[0]));
	/* ... and then the parent is told which one is to be gone. */
	fake_turn(FAST_US / 500);
	CHECK_INT(fake.n_gate_ends, 1);
	CHECK(is_cut_off(&fake.gates[0]));
	/* Its start finds nothing of it, and has another made. */
	CHECK_INT(fake_stop(full, 0), 0);
	fake_wait(&w, "idle", WAIT_NEXT_EXIT);
	CHECK_INT(fake_start(b), 0);
	CHECK_INT(fake.n_prepares, before + 1);
	CHECK_INT(fake.n_gates, 2);
	CHECK_INT(fake_gated, 1);
	CHECK(fake_until(&w.is_done, 15000));
	CHECK_INT(w.code, 3);
	fake_turn(50);
	CHECK_INT(fake.n_gate_ends, 2);
	fake_end();
}

TEST(g02_one_whose_box_waits_for_room_stays)
{
	struct box *full = begin_full();
	struct box *b = fake_box("next", "sleep 60");
	int before = fake.n_prepares;

	call_drop(box_start(b, NULL, NULL));
	fake_turn(3 * FAST_US / 1000);
	CHECK(n_set >= 3); /* it was looked at, again and again */
	CHECK_INT(fake.n_gate_ends, 0);
	CHECK_INT(fake_stop(full, 0), 0);
	fake_turn(200);
	CHECK_INT(fake_gated, 1);
	CHECK_INT(fake.n_prepares, before);
	CHECK_INT(fake.n_gates, 1);
	/* With a wall its time is that of the box. */
	fake_turn(2 * FAST_US / 1000);
	CHECK_INT(fake.n_gate_ends, 0);
	CHECK_INT(fake_remove(b, true), 0);
	CHECK_INT(fake.n_gate_ends, 1);
	fake_end();
}

TAP_MAIN()
