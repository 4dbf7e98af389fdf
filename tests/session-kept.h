/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The root of the host where it can be written, and files that come and go:
 * what is kept, what is left, what is told. Part of session.c.
 */

/* What has changed, as "C/etc A/etc/new ". */
static const char *changes_of(struct box_s *b)
{
	static char seen[1024];
	static struct got g;
	int sock = files_ask(b, FILES_CHANGES, "/", 0, 0);

	seen[0] = '\0';
	CHECK_INT(files_answer(sock), 0);
	while (files_next(sock, &g)) {
		size_t n = strlen(seen);

		(void)snprintf(seen + n, sizeof(seen) - n, "%c%.60s ", g.e.kind,
			       g.name);
	}
	(void)close(sock);
	CHECK_INT((long long)g.e.size, 0);
	return seen;
}

/* The root `host`, where it can be written, is kept as an image's is. */
TEST(s97_changes_of_the_host_root)
{
	const char *seen;
	struct box_s *b;

	begin();
	b = open_want("read-only=false workdir=/", NO_FD, 6);
	CHECK(WAIT_FOR(b->ready || b->ended, 10000));
	if (b->ended)
		die("box", &b->outcome.err);
	CHECK_STR(changes_of(b), "");
	CHECK_INT(exit_of(run_sh(b, "cd /; echo new >etc/new; echo m >>mark; "
				    "rm etc/nsswitch.conf; mkdir -p d/e")),
		  0);
	CHECK_INT(files_put_one(b, "/", 'f', "put", 0644, "given"), 0);
	close_one(b, true);
	b = open_want("read-only=false workdir=/", NO_FD, 6);
	CHECK(WAIT_FOR(b->ready, 10000));
	CHECK_STR(run_sh(b, "cat /etc/new /mark /put; ls -d /d/e")->out,
		  "new\nm\ngiven/d/e\n");
	seen = changes_of(b);
	printf("# %s\n", seen);
	CHECK_HAS(seen, "C/etc ");
	CHECK_HAS(seen, "A/etc/new ");
	CHECK_HAS(seen, "D/etc/nsswitch.conf ");
	CHECK_HAS(seen, "A/mark ");
	CHECK_HAS(seen, "A/d/e ");
	CHECK(!strstr(seen, "/usr"));
	/* Nothing of how it is made is seen. */
	CHECK_STR(run_sh(b, "ls -d /.[a-z]* 2>/dev/null")->out, "");
	close_one(b, false);
	b = open_want("read-only=false workdir=/", NO_FD, 6);
	CHECK(WAIT_FOR(b->ready, 10000));
	CHECK_STR(run_sh(b, "ls /mark 2>/dev/null")->out, "");
	close_one(b, false);
	stop_keeper();
}

/* As root /usr of the host can be written too, and is told with the rest. */
TEST_WHERE(s98_changes_below_usr, geteuid() == 0)
{
	const char *seen;
	struct box_s *b;

	begin();
	b = open_want("read-only=false workdir=/", NO_FD, 7);
	CHECK(WAIT_FOR(b->ready, 10000));
	CHECK_INT(exit_of(run_sh(b, "echo x >/usr/added; mkdir /usr/new")), 0);
	close_one(b, true);
	b = open_want("read-only=false workdir=/", NO_FD, 7);
	CHECK(WAIT_FOR(b->ready, 10000));
	CHECK_STR(run_sh(b, "cat /usr/added; ls -d /usr/new")->out,
		  "x\n/usr/new\n");
	seen = changes_of(b);
	printf("# %s\n", seen);
	CHECK_HAS(seen, "C/usr ");
	CHECK_HAS(seen, "A/usr/added ");
	CHECK_HAS(seen, "A/usr/new ");
	CHECK(access("/usr/added", F_OK) < 0);
	close_one(b, false);
	stop_keeper();
}

/* Where a program starts is made, also in a root that is read-only. */
TEST(s99_a_place_to_start_is_made)
{
	const struct how there = { .settings = "workdir=/new/place" };
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_want("workdir=/new/place", NO_FD, 0);
	CHECK(WAIT_FOR(b->ready, 10000));
	r = start_in(b, &there, "sh", "-c", "pwd; touch x 2>&- || echo ro",
		     NULL);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_STR(r->out, "/new/place\nro\n");
	close_one(b, false);
	stop_keeper();
}

/* One that goes before it has sent all leaves nothing. */
static void send_halves(void)
{
	static const char *const dirs[] = { "/", "/tmp", "/workspace" };
	struct box_s *b;

	begin();
	b = open_want("read-only=false", NO_FD, 0);
	CHECK(WAIT_FOR(b->ready, 10000));
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		const struct files_entry e = {
			.kind = 'f', .mode = 0644, .name_len = 4, .size = 1000
		};
		int sock = files_ask(b, FILES_WRITE, dirs[i], 0, 0);
		char none;

		(void)send(sock, &e, sizeof(e), MSG_NOSIGNAL);
		(void)send(sock, "half", 4, MSG_NOSIGNAL);
		(void)send(sock, "only some of it", 15, MSG_NOSIGNAL);
		(void)shutdown(sock, SHUT_WR);
		(void)!read(sock, &none, 1); /* its end */
		(void)close(sock);
		CHECK_INT(files_put_one(b, dirs[i], 'f', "whole", 0644, "x"),
			  0);
	}
	CHECK_STR(run_sh(b, "cd /; ls -A / /tmp /workspace | "
			    "grep -e cordon- -e half; "
			    "cat whole tmp/whole workspace/whole")
			  ->out,
		  "xxx");
	close_one(b, false);
	stop_keeper();
}

TEST(s100_what_is_not_whole_leaves_nothing)
{
	send_halves();
}

/* The same where a file must have a name from the beginning. */
TEST(s103_nor_under_a_name)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/tests", build_dir());
	(void)setenv("CORDON_LIBEXEC", path, 1);
	(void)setenv("CORDON_TEST_NO_TMPFILE", "1", 1);
	send_halves();
}

/* What is asked for itself is there, or it is said why not. */
TEST(s101_what_cannot_be_read_is_no_empty_answer)
{
	static const struct {
		const char *path;
		int code;
	} cases[] = {
		{ "/workspace/no", EACCES },  { "/workspace/nodir", EACCES },
		{ "/dev/null", EINVAL },      { "/workspace/d", 0 },
		{ "/workspace/d/f", 0 },      { "/workspace/l", 0 },
		{ "/workspace/none", ENOENT }
	};
	struct box_s *b;

	begin();
	b = open_one("");
	CHECK_INT(exit_of(run_sh(b, "mkdir d nodir; echo 1 >d/f; echo 2 >no; "
				    "ln -s none l; chmod 0 no nodir")),
		  0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int sock = files_ask(b, FILES_LOOK, cases[i].path, 0, 0);

		CHECK_INT(files_answer(sock), cases[i].code);
		(void)close(sock);
	}
	close_one(b, false);
	stop_keeper();
}

/* Times as the archive has them, also of links and of what holds others. */
TEST(s102_times_are_those_of_the_archive)
{
	static struct got g;
	static const char *const names[] = { "d", "d/e", "d/e/f", "d/l" };
	const struct files_entry end = { 0 };
	struct box_s *b;
	int sock;

	begin();
	b = open_one("");
	sock = files_ask(b, FILES_WRITE, "/workspace", 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct files_entry e = {
			.kind = (uint8_t) "ddfl"[i],
			.mode = 0755,
			.name_len = (uint32_t)strlen(names[i]),
			.link_len = i == 3 ? 1 : 0,
			.mtime_ns = (int64_t)(1000000 + i) * 1000000000,
		};

		(void)send(sock, &e, sizeof(e), MSG_NOSIGNAL);
		(void)send(sock, names[i], e.name_len, MSG_NOSIGNAL);
		(void)send(sock, "e", e.link_len, MSG_NOSIGNAL);
	}
	(void)send(sock, &end, sizeof(end), MSG_NOSIGNAL);
	CHECK_INT(files_answer(sock), 0);
	(void)close(sock);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "/workspace/%s", names[i]);
		CHECK_INT(files_look(b, path, &g), 0);
		CHECK_INT(g.e.mtime_ns, (int64_t)(1000000 + i) * 1000000000);
	}
	/* A directory with something in it is not replaced by a file. */
	CHECK_INT(files_put_one(b, "/workspace", 'f', "d", 0644, "x"),
		  ENOTEMPTY);
	close_one(b, false);
	stop_keeper();
}
