/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that runs out: each JSON value in turn cannot be made. A run then
 * ends, or never begins; nothing hangs, nothing crashes, and the next run is
 * as good as ever.
 */

#define TAP_SECONDS 120

#include "tests/tap.h"

#include "team.h"

static long left = -1; /* allocations until one fails; < 0: none does */

static void *scarce(size_t size)
{
	if (!fake_rich && left >= 0 && left-- == 0)
		return NULL;
	return malloc(size);
}

static bool is_done(void *arg)
{
	return ((struct scene *)arg)->is_over;
}

/* Whether the allocation that was to fail was reached. */
static bool one_run(struct scene *s, long n)
{
	json_t *task = json_pack("[o]", chat_text("user", "go"));
	int r;

	s->is_over = false;
	(void)json_array_clear(s->events);
	left = n;
	r = team_run(s->team, task, NULL, &scene_events, s, &s->err);
	if (r == 0) {
		CHECK(loop_run(s->loop, is_done, s));
	}
	n = left;
	left = -1;
	json_decref(task);
	return n < 0;
}

static void try_all(const struct team_kind *kind, const char *config)
{
	long n = 0;
	bool is_reached = true;

	for (; is_reached && n < 5000; n++) {
		struct scene s;
		struct agent *agents[2];
		struct fake_model *m;

		scene_init(&s);
		m = FAKE_MODEL(s.loop, "nobody", "b");
		agents[0] = FAKE(s.loop, "a", "=2 a1", "a2");
		agents[1] = FAKE(s.loop, "b", "#1 b1", "b2");
		scene_team(&s, kind, agents, 2, config,
			   "{\"any\":[{\"max_messages\":5},{\"loop\":9}]}",
			   &m->model);
		is_reached = one_run(&s, n);
		scene_run(&s, "again");
		CHECK_STR(field(s.result, "status"), "completed");
		scene_done(&s);
	}
	printf("# %ld allocations\n", n);
	CHECK(n > 100 && n < 5000);
}

TEST(round_robin)
{
	json_set_alloc_funcs(scarce, free);
	try_all(&team_round_robin, "{\"emit_team_events\":true}");
}

TEST(selector)
{
	json_set_alloc_funcs(scarce, free);
	try_all(&team_selector, "{\"emit_team_events\":true}");
}

TEST(saving)
{
	long n = 0;
	bool is_reached = true;

	json_set_alloc_funcs(scarce, free);
	for (; is_reached && n < 5000; n++) {
		struct scene s;
		struct agent *agents[1];
		json_t *state;
		json_t *good;

		scene_init(&s);
		agents[0] = FAKE(s.loop, "a", "a1");
		scene_team(&s, &team_round_robin, agents, 1, NULL,
			   "{\"max_messages\":3}", NULL);
		scene_run(&s, "go");
		left = n;
		state = team_save(s.team);
		is_reached = left < 0;
		left = -1;
		/* All of it or nothing. */
		good = team_save(s.team);
		CHECK(good != NULL);
		CHECK(!state || json_equal(state, good));
		json_decref(state);
		json_decref(good);
		scene_done(&s);
	}
	CHECK(n > 20 && n < 5000);
}

TAP_MAIN()
