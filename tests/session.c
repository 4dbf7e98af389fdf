/* SPDX-License-Identifier: Apache-2.0 */

/* Boxes that stay: src/box/session.h against a real keeper. */

#include "session.h"

/* programs */

TEST(s01_opens_and_runs)
{
	struct box_s *b;
	struct ran *r;

	start_keeper();
	b = open_one("");
	r = run_sh(b, "echo out; echo err >&2; exit 7");
	CHECK_STR(r->out, "out\n");
	CHECK_STR(r->err, "err\n");
	CHECK_INT(exit_of(r), 7);
	CHECK_INT(r->outcome.end, WIRE_BY_ITSELF);
	CHECK(r->started);
	close_one(b, false);
	CHECK_INT(b->outcome.end, WIRE_BY_CANCEL);
	CHECK_INT(b->outcome.err.code, 0);
	stop_keeper();
}

TEST(s02_many_at_once)
{
	struct ran *r[50];
	struct box_s *b;

	start_keeper();
	b = open_one("pids=256");
	for (int i = 0; i < 50; i++) {
		char script[64];

		(void)snprintf(script, sizeof(script),
			       "sleep 0.3; echo it is %d; exit %d", i, i);
		r[i] = start_in(b, NOT_HOW, "sh", "-c", script, NULL);
	}
	for (int i = 0; i < 50; i++) {
		char want[32];

		CHECK(WAIT_FOR(is_over(r[i]), 20000));
		(void)snprintf(want, sizeof(want), "it is %d\n", i);
		CHECK_STR(r[i]->out, want);
		CHECK_INT(exit_of(r[i]), i);
	}
	close_one(b, false);
	stop_keeper();
}

/* Processes in the box that are `sleep 77777`. */
static int sleepers(struct box_s *b)
{
	const struct ran *r = run_sh(b, "for p in /proc/[0-9]*; do "
					"tr '\\0' ' ' <$p/cmdline; echo; "
					"done 2>/dev/null | "
					"grep -c '^sleep 77777 '");

	return atoi(r->out);
}

TEST(s03_kill_ends_the_whole_tree)
{
	struct box_s *b;
	struct ran *r;
	struct ran *other;

	start_keeper();
	b = open_one("");
	other = start_in(b, NOT_HOW, "sleep", "10", NULL);
	r = start_in(b, NOT_HOW, "sh", "-c",
		     "trap '' TERM; (setsid sh -c 'trap \"\" TERM; "
		     "(sleep 77777 &) ; sleep 77777' &) ; echo up; sleep 77777",
		     NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 5000));
	CHECK(WAIT_FOR(other->started, 5000));
	CHECK_INT(sleepers(b), 3);
	(void)session_signal(b->s, r->number, SIGTERM);
	(void)WAIT_FOR(r->ended, 300);
	CHECK(!r->ended);
	(void)session_kill_exec(b->s, r->number);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_INT(r->outcome.end, WIRE_BY_CANCEL);
	CHECK_INT(sleepers(b), 0);
	CHECK(!other->ended);
	close_one(b, false);
	CHECK(other->ended);
	CHECK_INT(other->outcome.end, WIRE_BY_CANCEL);
	stop_keeper();
}

TAP_MAIN()
