/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Boxes that are made before they are asked for. Part of session.c. */

/*
 * The boxes of our keeper whose root is complete, opened or not; the last one
 * of them in *ret_pid.
 */
static int count_complete(pid_t *ret_pid)
{
	static char text[65536];
	static char mounts[65536];
	char path[64];
	char *p = text;
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
		       (int)keeper_pid, (int)keeper_pid);
	if (io_read_file(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	while (*p) {
		long pid = strtol(p, &p, 10);

		p += *p == ' ';
		(void)snprintf(path, sizeof(path), "/proc/%ld/mountinfo", pid);
		if (io_read_file(AT_FDCWD, path, mounts, sizeof(mounts)) <= 0 ||
		    !strstr(mounts, " /workspace "))
			continue;
		*ret_pid = (pid_t)pid;
		n++;
	}
	return n;
}

static void open_and_close(const char *settings, int times)
{
	for (int i = 0; i < times; i++) {
		struct box_s *b = open_one(settings);

		CHECK_STR(run_sh(b, "ls /tmp; echo >/tmp/mine; pwd")->out,
			  "/workspace\n");
		close_one(b, false);
	}
}

TEST(s80_what_is_asked_for_again_is_ready)
{
	struct box_s *b;
	pid_t pid = 0;

	begin();
	open_and_close("hostname=again", 1);
	(void)step(50);
	CHECK_INT(count_complete(&pid), 0);
	open_and_close("hostname=again", 1);
	/* And, when there is time, a second and a third. */
	CHECK(WAIT_FOR(count_complete(&pid) == 3, 10000));
	b = open_one("hostname=again");
	CHECK_STR(run_sh(b, "ls /tmp; echo $$")->out, "2\n");
	/* That was one; and while it runs there are three again. */
	CHECK(WAIT_FOR(count_complete(&pid) == 4, 10000));
	close_one(b, false);
	CHECK(WAIT_FOR(count_complete(&pid) == 3, 10000));
	(void)step(50);
	CHECK_INT(count_complete(&pid), 3);
	open_and_close("hostname=again", 5);
	stop_keeper();
	CHECK_INT(count_groups(""), 0);
	forget_runtime();
}

TEST(s81_made_ahead_and_kept)
{
	struct box_s *b;

	begin();
	for (uint32_t i = 1; i <= 4; i++) {
		b = open_want("", NO_FD, i);
		CHECK(WAIT_FOR(b->ready, 5000));
		CHECK_STR(run_sh(b, "ls; echo kept >note")->out, "");
		close_one(b, true);
		(void)step(30);
	}
	for (uint32_t i = 1; i <= 4; i++) {
		b = open_want("", NO_FD, i);
		CHECK(WAIT_FOR(b->ready, 5000));
		CHECK_STR(run_sh(b, "cat note")->out, "kept\n");
		close_one(b, false);
	}
	stop_keeper();
	forget_runtime();
}

TEST_WHERE(s82_with_somebodys_directory_not_ahead, geteuid() == 0)
{
	pid_t pid = 0;
	int root;

	peer_begin();
	root = connect_as(listen_there(), 0);
	for (int i = 0; i < 4; i++) {
		struct box_s *b = open_volume("open", "ro", root);

		CHECK_STR(run_sh(b, "cat /v/f")->out, "shown\n");
		close_one(b, false);
	}
	(void)step(200);
	CHECK_INT(count_complete(&pid), 0);
	peer_end();
}

TEST(s83_one_that_died_meanwhile)
{
	pid_t pid = 0;

	begin();
	open_and_close("", 3);
	CHECK(WAIT_FOR(count_complete(&pid) >= 2, 10000));
	if (kill(pid, SIGKILL) == 0) {
		/* Until the keeper knows; before, it may still be taken. */
		CHECK(WAIT_FOR(kill(pid, 0) < 0, 10000));
		open_and_close("", 3);
	}
	stop_keeper();
	CHECK_INT(count_groups(""), 0);
	forget_runtime();
}

TEST(s84_only_so_many_wait)
{
	pid_t pid = 0;

	begin();
	for (int i = 0; i < 9; i++) {
		char settings[32];

		(void)snprintf(settings, sizeof(settings), "hostname=h%d", i);
		open_and_close(settings, 2);
		(void)step(50);
	}
	CHECK_INT(count_complete(&pid), 6);
	stop_keeper();
	CHECK_INT(count_groups(""), 0);
	forget_runtime();
}

/* Numbers of shelves that are the keeper's own are not for a client. */
TEST(s85_shelves_of_the_keeper_are_its_own)
{
	struct box_s *b;
	int lost = 0;

	begin();
	b = open_want("", NO_FD, 0x80000001U);
	for (int i = 0; i < 200 && !lost; i++)
		lost = step(20) == -EPIPE;
	CHECK(lost);
	CHECK(b->ended);
	CHECK(!b->ready);
	(void)waitpid(keeper_pid, NULL, 0);
	sessions_free(all);
	forget_runtime();
}

/* What a run mounts is opened with the keeper's rights, not the peer's. */
TEST(s86_a_run_is_not_taken)
{
	const struct wire_head head = { WIRE_RUN, 7 };
	struct prepared p;
	int fds[5];
	int lost = 0;

	begin();
	p = prepare_for("");
	fds[0] = p.box;
	fds[1] = p.work;
	for (int i = 2; i < 5; i++)
		fds[i] = keeper_sock;
	CHECK_INT(io_send(keeper_sock, &head, sizeof(head), fds, 5), 0);
	for (int i = 0; i < 200 && !lost; i++)
		lost = step(20) == -EPIPE;
	CHECK(lost);
	prepared_done(&p);
	(void)waitpid(keeper_pid, NULL, 0);
	sessions_free(all);
	CHECK_INT(count_groups(""), 0);
	forget_runtime();
}

/* Also of users that nobody will ask for again. */
TEST(s87_what_waits_for_nobody_is_bounded)
{
	long unused;

	begin();
	for (int i = 0; i < 12; i++) {
		char settings[32];
		struct box_s *b;

		(void)snprintf(settings, sizeof(settings), "user=%d", 3000 + i);
		b = open_one(settings);
		close_one(b, false);
		(void)step(30);
	}
	CHECK(count_inits(&unused) <= 6);
	stop_keeper();
}
