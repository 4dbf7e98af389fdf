/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Nothing is left behind, whatever ends. Part of session.c. */

TEST(s60_killed_keeper_leaves_nothing)
{
	struct box_s *b[3];
	struct ran *r;
	int lost = 0;

	begin();
	for (int i = 0; i < 3; i++)
		b[i] = open_one("");
	r = start_in(b[0], NOT_HOW, "sh", "-c", TREE, NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 5000));
	(void)session_freeze(b[1]->s, true);
	(void)step(10);
	CHECK_INT(kill(keeper_pid, SIGKILL), 0);
	(void)waitpid(keeper_pid, NULL, 0);
	for (int i = 0; i < 200 && !lost; i++)
		lost = step(20) == -EPIPE;
	CHECK(lost);
	for (int i = 0; i < 3; i++) {
		CHECK(b[i]->ended);
		CHECK_INT(b[i]->outcome.end, WIRE_BY_LOSS);
	}
	CHECK(r->ended);
	CHECK_INT(r->outcome.end, WIRE_BY_LOSS);
	CHECK(WAIT_FOR(r->fds[0] < 0, 5000)); /* all writers are dead */
	/* Groups are there until the next start, then no more. */
	if (!best_effort)
		CHECK(count_groups("") >= 3);
	sessions_free(all);
	rans = NULL;
	sweep_by_another();
}

/* Proportional memory of a process, in kB. */
static long pss_of(int pid)
{
	char path[64];
	char text[4096];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	if (io_read_file(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return -1;
	at = strstr(text, "Pss:");
	return at ? strtol(at + 4, NULL, 10) : -1;
}

/* The children of our keeper, and the most memory that one of them has. */
/* The keeper has one more child (keeper/shed.c). */
static bool is_shed(int pid)
{
	char path[64];
	char name[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	return io_read_file(AT_FDCWD, path, name, sizeof(name)) > 0 &&
	       strcmp(name, "cordon-shed\n") == 0;
}

static int count_inits(long *ret_pss)
{
	static char text[65536];
	char path[64];
	char *p = text;
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
		       (int)keeper_pid, (int)keeper_pid);
	if (io_read_file(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	*ret_pss = 0;
	while (*p) {
		int pid = (int)strtol(p, &p, 10);

		p += *p == ' ';
		if (is_shed(pid))
			continue;
		*ret_pss = MAX(*ret_pss, pss_of(pid));
		n++;
	}
	return n;
}

TEST_WHERE(s61_two_hundred_boxes, !getenv("CORDON_IN_VM"))
{
	struct box_s *b[200];
	struct ran *r[200];
	long t;
	long pss;

	begin();
	t = now_ms();
	for (int i = 0; i < 200; i++)
		b[i] = open_want("", NO_FD, 0);
	for (int i = 0; i < 200; i++)
		CHECK(WAIT_FOR(b[i]->ready, 60000));
	printf("# 200 boxes in %ld ms\n", now_ms() - t);
	CHECK(count_inits(&pss) >= 200);
	for (int i = 0; i < 200; i++) {
		char script[64];

		(void)snprintf(script, sizeof(script), "echo box %d", i);
		r[i] = start_in(b[i], NOT_HOW, "sh", "-c", script, NULL);
	}
	for (int i = 0; i < 200; i++) {
		char want[32];

		CHECK(WAIT_FOR(is_over(r[i]), 30000));
		(void)snprintf(want, sizeof(want), "box %d\n", i);
		CHECK_STR(r[i]->out, want);
	}
	(void)count_inits(&pss);
	printf("# one idle box: %ld kB, the keeper: %ld kB\n", pss,
	       pss_of(keeper_pid));
	if (geteuid() == 0) {
		CHECK(pss > 0);
		CHECK(pss < 1536);
	}
	for (int i = 0; i < 200; i++)
		session_close(b[i]->s, false);
	for (int i = 0; i < 200; i++)
		CHECK(WAIT_FOR(b[i]->ended, 30000));
	CHECK_INT(count_groups("p[0-9]*"), 0);
	stop_keeper();
}

TEST(s62_a_closed_client_ends_all)
{
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_one("");
	r = start_in(b, NOT_HOW, "sh", "-c", TREE, NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 5000));
	sessions_free(all);
	(void)waitpid(keeper_pid, NULL, 0);
	for (int i = 0; i < 100 && r->fds[0] >= 0; i++) {
		read_some(&r->fds[0], r->out, OUT_MAX, &r->out_len);
		(void)usleep(20000);
	}
	CHECK(r->fds[0] < 0);
	CHECK_INT(count_groups(""), 0);
	forget_runtime();
}

TEST(s63_many_programs_leave_nothing)
{
	struct box_s *b;
	long t;

	begin();
	b = open_one("cpus=1");
	t = now_ms();
	for (int i = 0; i < 200; i++) {
		struct ran *r = start_in(b, NOT_HOW, "true", NULL);

		CHECK(WAIT_FOR(is_over(r), 5000));
		CHECK_INT(exit_of(r), 0);
		rans = NULL;
		free(r);
	}
	printf("# 200 programs in %ld ms\n", now_ms() - t);
	CHECK(WAIT_FOR(count_groups("p[0-9]*") == 0, 3000));
	/* init, sh, ls and wc; the last may be late. */
	CHECK(atoi(run_sh(b, "ls -d /proc/[0-9]* | wc -l")->out) <= 4);
	close_one(b, false);
	stop_keeper();
}

/* With it goes what it started, and what it wrote is kept. */
TEST(s66_a_box_ends_with_its_last_program)
{
	const struct how last = { .is_last = true, .settings = "" };
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_want("", NO_FD, 7);
	CHECK(WAIT_FOR(b->ready, 10000));
	r = start_in(b, &last, "sh", "-c",
		     "sleep 1000 & echo kept >/tmp/x; exit 7", NULL);
	CHECK(WAIT_FOR(b->ended, 10000));
	CHECK(is_over(r));
	CHECK_INT(exit_of(r), 7);
	CHECK_INT(r->outcome.end, WIRE_BY_ITSELF);
	CHECK_INT(b->outcome.end, WIRE_BY_CANCEL);
	CHECK_INT(count_groups("p[0-9]*"), 0);
	b = open_want("", NO_FD, 7);
	CHECK(WAIT_FOR(b->ready, 10000));
	CHECK_STR(run_sh(b, "cat /tmp/x")->out, "kept\n");
	/* Also with one that is killed, and one that cannot be started. */
	r = start_in(b, &last, "sh", "-c", "echo up; sleep 1000", NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 5000));
	CHECK_INT(session_kill_exec(b->s, r->number), 0);
	CHECK(WAIT_FOR(b->ended, 10000));
	CHECK_INT(r->outcome.end, WIRE_BY_CANCEL);
	b = open_one("");
	r = start_in(b, &last, "/no/such/program", NULL);
	CHECK(WAIT_FOR(b->ended, 10000));
	CHECK_INT(r->outcome.exec_errno, ENOENT);
	stop_keeper();
}

TEST(s67_a_program_on_hold)
{
	const struct how held = { .is_held = true,
				  .is_last = true,
				  .settings = "" };
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_one("");
	r = start_in(b, &held, "sh", "-c", "cat /tmp/x; exit 3", NULL);
	/* It has looked at nothing yet, and nobody is told of it. */
	(void)run_sh(b, "echo late >/tmp/x");
	CHECK(!r->started && !r->ended);
	CHECK_INT(let_go(r), 0);
	CHECK(WAIT_FOR(b->ended, 10000));
	CHECK(r->started && is_over(r));
	CHECK_STR(r->out, "late\n");
	CHECK_INT(exit_of(r), 3);
	/* Closed meanwhile, it is as if it had not been there. */
	b = open_one("");
	r = start_in(b, &held, "sh", "-c", "echo never", NULL);
	(void)step(50);
	close_one(b, false);
	CHECK(!r->started && !r->ended);
	CHECK_INT(count_groups("p[0-9]*"), 0);
	/* It is there once. */
	b = open_one("");
	r = start_in(b, &held, "sh", "-c", "sleep 1000", NULL);
	CHECK_INT(let_go(r), 0);
	CHECK(WAIT_FOR(r->started, 5000));
	CHECK_INT(session_kill_exec(b->s, r->number), 0);
	CHECK(WAIT_FOR(b->ended, 10000));
	stop_keeper();
}

/* A keeper that dies at a certain moment, as by kill -9. */
static void die_at(const char *moment)
{
	struct box_s *b;
	char text[64];
	int status = 0;

	(void)snprintf(text, sizeof(text), "keeper-%s", moment);
	(void)setenv("CORDON_TEST_DIE", text, 1);
	start_keeper();
	b = open_want("", NO_FD, 3);
	/* It may have died with the very word that the box is ready. */
	if (b->s && WAIT_FOR(b->ready || b->ended, 5000) && !b->ended) {
		(void)start_in(b, &(struct how){ .may_fail = true }, "sleep",
			       "100", NULL);
		(void)WAIT_FOR(b->ended, 300);
		if (!b->ended)
			session_close(b->s, true);
		(void)WAIT_FOR(b->ended, 5000);
	}
	CHECK(b->ended);
	(void)waitpid(keeper_pid, &status, 0);
	if (!WIFSIGNALED(status))
		printf("# it did not die at '%s'\n", moment);
	CHECK(WIFSIGNALED(status));
	sessions_free(all);
	rans = NULL;
	(void)unsetenv("CORDON_TEST_DIE");
}

TEST(s64_dying_at_any_moment_leaves_nothing)
{
	static const char *const moments[] = {
		"world",  "record", "cgroup", "birth",  "ids",
		"groups", "ready",  "begun",  "closed",
	};
	char libexec[4200];

	(void)snprintf(libexec, sizeof(libexec), "%s/tests", build_dir());
	(void)setenv("CORDON_LIBEXEC", libexec, 1);
	best_effort = true;
	for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
		struct box_s *next;

		die_at(moments[i]);
		/* The next one finds what was left. */
		start_keeper();
		next = open_one("");
		CHECK_INT(exit_of(run_sh(next, "exit 1")), 1);
		close_one(next, false);
		sessions_free(all);
		(void)waitpid(keeper_pid, NULL, 0);
		rans = NULL;
		CHECK_INT(count_groups(""), 0);
		CHECK_STR(first_in("keepers"), "");
	}
	forget_runtime();
}

static unsigned int seed = 1;

static unsigned int any(unsigned int below)
{
	return (unsigned int)rand_r(&seed) % below;
}

/* A message with any numbers and descriptors, often of the right form. */
static int send_any(const int *fds)
{
	struct wire_ask ask;
	int some[5];
	int n = (int)any(6);

	for (int k = 0; k < 5; k++)
		some[k] = fds[any(6)];
	for (size_t k = 0; k < sizeof(ask); k++)
		((unsigned char *)&ask)[k] = (unsigned char)any(256);
	ask.type = WIRE_OPEN + any(12);
	ask.job = 1 + any(3);
	ask.exec = 1 + any(5);
	ask.flags &= 7;
	if (any(2))
		ask.value %= 70;
	if (ask.type == WIRE_OPEN && any(4)) {
		some[0] = fds[0];
		n = 1;
		ask.flags = 0;
	}
	if (ask.type == WIRE_EXEC && any(4)) {
		some[0] = fds[1];
		some[1] = some[2] = some[3] = fds[2];
		n = ask.flags & WIRE_ASK_TTY ? 1 : 4;
	}
	return io_send_now(keeper_sock, &ask, sizeof(ask), some, n);
}

/*
 * A client that has lost its mind. The keeper may cut it off; it must not
 * crash, and leaves nothing.
 */
TEST(s65_any_message_is_survived)
{
	int n_kept = 0;

	best_effort = true;
	for (int round = 0; round < 12; round++) {
		struct prepared p = prepare_for("");
		int pair[2];
		int status = 0;
		int fds[6] = { p.box, p.work };

		start_keeper();
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) <
		    0)
			_exit(1);
		fds[2] = open("/dev/null", O_RDWR | O_CLOEXEC);
		fds[3] = open("/", O_PATH | O_CLOEXEC);
		fds[4] = pair[0];
		fds[5] = pair[1];
		for (int i = 0; i < 150 && send_any(fds) != -EPIPE; i++) {
			if (i % 10 == 0)
				(void)usleep(3000);
			n_kept++;
		}
		prepared_done(&p);
		for (int i = 2; i < 6; i++)
			(void)close(fds[i]);
		sessions_free(all);
		(void)waitpid(keeper_pid, &status, 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		CHECK_INT(count_groups(""), 0);
	}
	printf("# %d messages were taken\n", n_kept);
	CHECK(n_kept > 100);
	forget_runtime();
}
