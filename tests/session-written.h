/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files of boxes that stay: read, written, listed. Part of session.c. */

TEST(s30_files_are_looked_at_and_read)
{
	static struct got g;
	struct box_s *b;
	char seen[512] = "";
	int sock;

	begin();
	b = open_one("");
	CHECK_INT(exit_of(run_sh(b, "mkdir -p d/e; echo hello >d/e/f; "
				    "chmod 640 d/e/f; ln -s /etc/passwd d/l; "
				    "mkfifo d/p; touch -d @1000000 d/e/f; "
				    "ln -s d way; echo no >d/x; chmod 0 d/x")),
		  0);
	CHECK_INT(files_look(b, "/workspace/d/e/f", &g), 0);
	CHECK_INT(g.e.kind, 'f');
	CHECK_INT((long long)g.e.size, 6);
	CHECK_INT(g.e.mode, 0640);
	CHECK_INT(g.e.mtime_ns, 1000000LL * 1000000000);
	CHECK_INT(files_look(b, "/workspace/d/l", &g), 0);
	CHECK_INT(g.e.kind, 'l');
	CHECK_STR(g.link, "/etc/passwd");
	/* On the way there a link is followed. */
	CHECK_INT(files_look(b, "/workspace/way/e/f", &g), 0);
	CHECK_INT(g.e.kind, 'f');
	CHECK_INT(files_look(b, "/workspace/none", &g), ENOENT);
	CHECK_INT(files_look(b, "workspace/d", &g), EINVAL);
	sock = files_ask(b, FILES_READ, "/workspace/d", 0, 0);
	CHECK_INT(files_answer(sock), 0);
	while (files_next(sock, &g)) {
		size_t n = strlen(seen);

		(void)snprintf(seen + n, sizeof(seen) - n, "%c:%.60s ",
			       g.e.kind, g.name);
		if (strcmp(g.name, "e/f") == 0)
			CHECK_STR(g.data, "hello\n");
	}
	CHECK_INT(g.e.kind, 0);
	CHECK(strncmp(seen, "d: ", 3) == 0);
	CHECK_HAS(seen, "d:e ");
	CHECK_HAS(seen, "f:e/f ");
	CHECK_HAS(seen, "l:l ");
	CHECK_HAS(seen, "p:p ");
	/* What could not be read is named. */
	CHECK(!strstr(seen, "f:x "));
	CHECK_INT((long long)g.e.size, 1);
	CHECK_INT(g.e.mode, EACCES);
	CHECK_STR(g.name, "x");
	(void)close(sock);
	close_one(b, false);
	stop_keeper();
}

TEST(s31_reading_never_waits_nor_leaves_the_form)
{
	static struct got g;
	struct box_s *b;
	struct ran *r;
	int n = 0;
	int sock;

	begin();
	b = open_one("");
	/* Files that are now a file, now a pipe, now a link, now longer. */
	r = start_in(b, NOT_HOW, "sh", "-c",
		     "mkdir s; echo up; k=0; while :; do\n"
		     "for i in 0 1 2 3 4 5 6 7 8 9; do\n"
		     "rm -f s/$i; k=$((k + 1))\n"
		     "case $((k % 3)) in\n"
		     "0) mkfifo s/$i;;\n"
		     "1) ln -s /proc/1/mem s/$i;;\n"
		     "2) printf '%05000d' 1 >s/$i; echo short >s/$i;;\n"
		     "esac; done; done",
		     NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 10000));
	for (int i = 0; i < 30; i++) {
		sock = files_ask(b, FILES_READ, "/workspace/s", 0, 0);
		CHECK_INT(files_answer(sock), 0);
		while (files_next(sock, &g))
			n++;
		CHECK_INT(g.e.kind, 0);
		(void)close(sock);
		(void)step(1);
	}
	CHECK(n > 100);
	close_one(b, false);
	stop_keeper();
}

TEST(s32_files_are_written)
{
	struct box_s *b;
	struct ran *r;
	int sock;

	begin();
	b = open_one("");
	sock = files_ask(b, FILES_WRITE, "/workspace", 0, 0);
	files_send(sock, 'd', "a/", 0755, "");
	files_send(sock, 'f', "./a/one", 0600, "first\n");
	files_send(sock, 'f', "b/c/two", 04755, "second\n");
	files_send(sock, 'l', "three", 0777, "/etc/passwd");
	files_send(sock, 'f', "a/one", 0644, "again\n");
	CHECK_INT(files_end(sock), 0);
	r = run_sh(b, "cat a/one b/c/two; readlink three; "
		      "stat -c %a a/one b/c/two; ls -A . a b/c | grep cordon");
	CHECK_STR(r->out, "again\nsecond\n/etc/passwd\n644\n755\n");
	/* Over a link: it is replaced, what it pointed to is not touched. */
	(void)run_sh(b, "echo safe >safe; ln -sf safe over");
	CHECK_INT(files_put_one(b, "/workspace", 'f', "over", 0644, "new"), 0);
	CHECK_STR(run_sh(b, "cat safe; test -L over || cat over")->out,
		  "safe\nnew");
	/* Kinds: a directory and a file do not replace each other. */
	sock = files_ask(b, FILES_WRITE, "/workspace", FILES_NO_OVERWRITE, 0);
	files_send(sock, 'f', "a", 0644, "x");
	CHECK_INT(files_end(sock), EISDIR);
	sock = files_ask(b, FILES_WRITE, "/workspace", FILES_NO_OVERWRITE, 0);
	files_send(sock, 'd', "safe", 0755, "");
	CHECK_INT(files_end(sock), ENOTDIR);
	CHECK_INT(files_put_one(b, "/workspace", 'f', "a", 0644, "x"),
		  ENOTEMPTY);
	/* Into what is not a directory, what is read-only, too much. */
	CHECK_INT(files_put_one(b, "/workspace/safe", 'f', "x", 0644, "x"),
		  ENOTDIR);
	CHECK_INT(files_put_one(b, "/usr", 'f', "x", 0644, "x"), EROFS);
	sock = files_ask(b, FILES_WRITE, "/workspace", 0, 5);
	files_send(sock, 'f', "five", 0644, "12345");
	files_send(sock, 'f', "more", 0644, "6");
	CHECK_INT(files_end(sock), EFBIG);
	CHECK_STR(run_sh(b, "cat five; ls more 2>/dev/null")->out, "12345");
	sock = files_ask(b, FILES_MAKE, "/workspace/m/n/o", 0, 0);
	CHECK_INT(files_answer(sock), 0);
	(void)close(sock);
	CHECK_INT(exit_of(run_sh(b, "test -d m/n/o")), 0);
	sock = files_ask(b, FILES_CHANGES, "/", 0, 0);
	CHECK_INT(files_answer(sock), ENOSYS);
	(void)close(sock);
	close_one(b, false);
	stop_keeper();
}

/* What does not fit in the memory is refused before it is written. */
TEST(s58_files_fit_in_the_memory)
{
	static char large[40000];
	struct box_s *b;
	int sock;

	begin();
	b = open_one("");
	memset(large, 'x', sizeof(large) - 1);
	files_memory = 100000;
	sock = files_ask(b, FILES_WRITE, "/tmp", 0, 0);
	files_send(sock, 'f', "one", 0644, large);
	files_send(sock, 'f', "two", 0644, large);
	files_send(sock, 'f', "three", 0644, large);
	CHECK_INT(files_end(sock), ENOSPC);
	CHECK_STR(run_sh(b, "cd /tmp && ls -A | sort | tr '\\n' ' '")->out,
		  "one two ");
	/* What is replaced makes room for the next; empty ones need some. */
	sock = files_ask(b, FILES_WRITE, "/tmp", 0, 0);
	for (int i = 0; i < 8; i++)
		files_send(sock, 'f', "one", 0644, large);
	CHECK_INT(files_end(sock), 0);
	sock = files_ask(b, FILES_WRITE, "/tmp", 0, 0);
	for (int i = 0; i < 100; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "n%d", i);
		files_send(sock, 'f', name, 0644, "");
	}
	CHECK_INT(files_end(sock), ENOSPC);
	files_memory = 0;
	close_one(b, false);
	stop_keeper();
}

TEST(s38_hard_links_are_made)
{
	struct box_s *b;
	struct ran *r;
	int sock;

	begin();
	b = open_one("");
	(void)run_sh(b, "mkdir t /tmp/o; echo keep >/tmp/o/keep; "
			"ln -s /tmp/o t/out; echo old >t/two");
	sock = files_ask(b, FILES_WRITE, "/workspace/t", 0, 0);
	files_send(sock, 'f', "a/one", 0640, "one\n");
	files_send(sock, 'h', "two", 0, "a/one");
	files_send(sock, 'h', "b/three", 0, "./a/one");
	/* Once more: two names of one file. */
	files_send(sock, 'h', "two", 0, "a/one");
	CHECK_INT(files_end(sock), 0);
	r = run_sh(b, "cat t/two; stat -c '%h %a' t/a/one t/two t/b/three; "
		      "ls -A t t/a t/b | grep cordon");
	CHECK_STR(r->out, "one\n3 640\n3 640\n3 640\n");
	/* What is not there, is a directory, is outside, is behind a link. */
	CHECK_INT(files_put_one(b, "/workspace/t", 'h', "x", 0, "none"),
		  EINVAL);
	CHECK_INT(files_put_one(b, "/workspace/t", 'h', "x", 0, "a"), EPERM);
	CHECK_INT(files_put_one(b, "/workspace/t", 'h', "x", 0, "../t/two"),
		  EPERM);
	CHECK_INT(files_put_one(b, "/workspace/t", 'h', "x", 0,
				"/workspace/t/two"),
		  EPERM);
	CHECK_INT(files_put_one(b, "/workspace/t", 'h', "x", 0, "out/keep"),
		  EINVAL);
	CHECK_INT(exit_of(run_sh(b, "test -e t/x")), 1);
	close_one(b, false);
	stop_keeper();
}

TEST(s33_hostile_names_are_refused)
{
	static const char *const bad[] = {
		"../x",     "a/../../x", "/etc/x",   "..",
		"a/b/../x", "out/x",     "out/../x",
	};
	struct box_s *b;
	struct ran *r;
	int sock;

	begin();
	b = open_one("");
	(void)run_sh(b, "mkdir -p t/a /tmp/o; ln -s /tmp/o t/out; "
			"echo keep >/tmp/o/keep");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int e = files_put_one(b, "/workspace/t", 'f', bad[i], 0644,
				      "bad");

		CHECK(e != 0);
		CHECK(e == EPERM || e == EINVAL || e == ENOTDIR);
	}
	/* The same one level down is good. */
	CHECK_INT(files_put_one(b, "/workspace/t", 'f', "a/x", 0644, "good"),
		  0);
	/* A link that an archive brings is not followed by its next entry. */
	sock = files_ask(b, FILES_WRITE, "/workspace/t", 0, 0);
	files_send(sock, 'l', "in", 0777, "/tmp/o");
	files_send(sock, 'f', "in/x", 0644, "bad");
	CHECK_INT(files_end(sock), ENOTDIR);
	sock = files_ask(b, FILES_WRITE, "/workspace/t", 0, 0);
	files_send(sock, 'c', "dev", 0644, "");
	CHECK_INT(files_end(sock), EINVAL);
	r = run_sh(b, "find /tmp/o /workspace -name x; ls /tmp/o");
	CHECK_STR(r->out, "/workspace/t/a/x\nkeep\n");
	close_one(b, false);
	stop_keeper();
}

/* Exchanging two names takes python, which the virtual machine has not. */
TEST_WHERE(s34_directories_swapped_meanwhile, !getenv("CORDON_IN_VM"))
{
	struct box_s *b;
	struct ran *swap;
	int good = 0;
	int refused = 0;

	begin();
	b = open_one("cpus=2");
	(void)run_sh(b, "mkdir -p t/a /tmp/o");
	swap = start_in(b, NOT_HOW, "python3", "-c",
			"import os, ctypes\n"
			"swap = ctypes.CDLL(None).renameat2\n"
			"os.chdir('/workspace/t')\n"
			"os.symlink('/tmp/o', 'l')\n"
			"print('up', flush=True)\n"
			"while swap(-100, b'a', -100, b'l', 2) == 0: pass\n",
			NULL);
	CHECK(WAIT_FOR(strstr(swap->out, "up"), 10000));
	for (int i = 0; i < 200; i++) {
		int sock = files_ask(b, FILES_WRITE, "/workspace/t", 0, 0);
		/* Many meet a swap on their way, one alone often none. */
		int n = i % 2 ? 20 : 1;
		int e;

		for (int k = 0; k < n; k++)
			files_send(sock, 'f', "a/x", 0644, "x");
		e = files_end(sock);
		good += e == 0;
		refused += e != 0;
		(void)step(0);
	}
	printf("# %d written, %d refused\n", good, refused);
	CHECK(good > 0);
	CHECK(refused > 0);
	(void)session_kill_exec(b->s, swap->number);
	CHECK(WAIT_FOR(swap->ended, 5000));
	CHECK_STR(run_sh(b, "ls -A /tmp/o")->out, "");
	close_one(b, false);
	stop_keeper();
}

TEST(s35_processes_are_listed)
{
	static struct got g;
	struct box_s *b;
	struct ran *r;
	bool has_init = false;
	bool has_mine = false;
	int sock;

	begin();
	b = open_one("");
	r = start_in(b, NOT_HOW, "sh", "-c",
		     "echo up; exec sh -c 'sleep 100; true' "
		     "'a b' \"$(printf 'new\\nline')\"",
		     NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 5000));
	(void)WAIT_FOR(false, 500);
	sock = files_ask(b, FILES_PS, "", 0, 0);
	CHECK_INT(files_answer(sock), 0);
	while (files_next(sock, &g)) {
		int pid = 0;
		int parent = 0;
		char state = 0;
		unsigned long long start = 0;
		unsigned long long cpu = 0;
		unsigned long long rss = 0;
		unsigned long long size = 0;
		unsigned int uid = 0;

		CHECK_INT(sscanf(g.name, "%d %d %c %llu %llu %llu %llu %u",
				 &pid, &parent, &state, &start, &cpu, &rss,
				 &size, &uid),
			  8);
		CHECK(size >= rss);
		CHECK(!strchr(g.name, '\n'));
		CHECK_INT(uid, 65534);
		if (pid == 1 && strstr(g.name, "cordon-init"))
			has_init = true;
		if (strstr(g.name, "\tsh -c sleep") &&
		    strstr(g.name, "a b new?line"))
			has_mine = parent == 1 && rss > 10 && start > 0;
	}
	CHECK_INT(g.e.kind, 0);
	CHECK(has_init);
	CHECK(has_mine);
	close_one(b, false);
	stop_keeper();
}

TEST(s36_broken_requests_for_files_harm_nobody)
{
	static char junk[9000];
	unsigned int n_junk = 1;
	struct box_s *b;
	int sock;
	int socks[40];

	begin();
	b = open_one("pids=64");
	memset(junk, 0xff, sizeof(junk));
	for (int i = 4000; i < 9000; i++)
		junk[i] = "ab./\n"[rand_r(&n_junk) % 5];
	for (int i = 0; i < 20; i++) {
		sock = files_ask(b, FILES_WRITE, "/workspace", 0, 0);
		(void)send(sock, junk, (size_t)i * 250, MSG_NOSIGNAL);
		(void)close(sock);
		(void)step(0);
	}
	/* Of the right form, more or less, with any numbers. */
	for (int i = 0; i < 300; i++) {
		static const char *const paths[] = { "/workspace", "/tmp", "/",
						     "/proc/1", "/dev" };
		struct files_entry e;

		sock = files_ask(b, 1 + (unsigned int)rand_r(&n_junk) % 7,
				 paths[rand_r(&n_junk) % 5],
				 (unsigned int)rand_r(&n_junk),
				 (uint64_t)(rand_r(&n_junk) % 5000));
		for (int k = rand_r(&n_junk) % 4; k > 0; k--) {
			for (size_t j = 0; j < sizeof(e); j++)
				((char *)&e)[j] = (char)rand_r(&n_junk);
			e.kind = (uint8_t) "fdlpX"[rand_r(&n_junk) % 5];
			e.name_len %= 60;
			e.link_len %= 60;
			e.size %= 4000;
			(void)send(sock, &e, sizeof(e), MSG_NOSIGNAL);
			(void)send(sock, junk + 4000,
				   e.name_len + e.link_len + e.size,
				   MSG_NOSIGNAL);
		}
		(void)close(sock);
		(void)step(0);
	}
	/* Init forks for each; a request too many is refused, not queued. */
	for (int i = 0; i < 200; i++)
		(void)step(1);
	CHECK_INT(exit_of(run_sh(b, "exit 7")), 7);
	/* Those that never say anything, and those that never read. */
	for (int i = 0; i < 40; i++) {
		socks[i] = files_ask(b, i % 2 ? FILES_READ : FILES_WRITE,
				     i % 2 ? "/usr/bin" : "/workspace", 0, 0);
		(void)step(1);
	}
	CHECK_INT(exit_of(run_sh(b, "exit 6")), 6);
	for (int i = 0; i < 40; i++)
		(void)close(socks[i]);
	(void)WAIT_FOR(count_groups("p[0-9]*") == 0, 5000);
	CHECK_INT(count_groups("p[0-9]*"), 0);
	close_one(b, false);
	stop_keeper();
}

/* A store of our own with one small image; its name is "small". */
static void make_image(void)
{
	char line[2048];
	struct err err = { 0 };

	(void)snprintf(line, sizeof(line), "%s/state", runtime_dir);
	(void)setenv("CORDON_STATE_DIR", line, 1);
	(void)snprintf(line, sizeof(line),
		       "set -e; mkdir -p %s/state; chmod 700 %s/state; "
		       "d=%s/root; mkdir -p $d/bin $d/etc $d/old $d/usr; "
		       "cp /bin/busybox $d/bin/; "
		       "for n in sh cat rm mkdir tty echo sleep chmod; do "
		       "ln -s busybox $d/bin/$n; done; "
		       "echo one >$d/etc/one; echo two >$d/etc/two; "
		       "echo three >$d/old/three; "
		       "tar -cf $d.tar -C $d .; "
		       "%s/cordon image import $d.tar small >/dev/null",
		       runtime_dir, runtime_dir, runtime_dir, build_dir());
	CHECK_INT(system(line), 0);
	if (images_find("small", &image_root, &err) < 0)
		die("image", &err);
}

TEST_WHERE(s37_changes_of_an_image, geteuid() == 0 && !getenv("CORDON_IN_VM"))
{
	static struct got g;
	const struct how tty = { .tty = true, .rows = 5, .cols = 6 };
	char seen[1024] = "";
	struct box_s *b;
	struct ran *r;
	int sock;

	own_runtime();
	make_image();
	begin();
	b = open_want("read-only=false workdir=/", NO_FD, 5);
	CHECK(WAIT_FOR(b->ready || b->ended, 10000));
	if (b->ended)
		die("box", &b->outcome.err);
	r = run_sh(b, "cd /; echo new >etc/new; echo changed >etc/one; "
		      "rm etc/two; rm -r old; mkdir dir; echo x >dir/x");
	CHECK_INT(exit_of(r), 0);
	CHECK_STR(r->err, "");
	/* A terminal has a name in the image's own root. */
	r = start_in(b, &tty, "sh", "-c", "tty", NULL);
	CHECK(WAIT_FOR(r->ended && r->tty < 0, 5000));
	CHECK_HAS(r->out, "/dev/pts/0");
	/* The same again when it was stopped and started. */
	close_one(b, true);
	b = open_want("read-only=false workdir=/", NO_FD, 5);
	CHECK(WAIT_FOR(b->ready, 10000));
	CHECK_STR(run_sh(b, "cat /etc/one /dir/x")->out, "changed\nx\n");
	sock = files_ask(b, FILES_CHANGES, "/", 0, 0);
	CHECK_INT(files_answer(sock), 0);
	while (files_next(sock, &g)) {
		size_t n = strlen(seen);

		(void)snprintf(seen + n, sizeof(seen) - n, "%c%.60s ", g.e.kind,
			       g.name);
	}
	(void)close(sock);
	CHECK_INT(g.e.kind, 0);
	CHECK_INT((long long)g.e.size, 0);
	printf("# %s\n", seen);
	CHECK_HAS(seen, "C/etc ");
	CHECK_HAS(seen, "A/etc/new ");
	CHECK_HAS(seen, "C/etc/one ");
	CHECK_HAS(seen, "D/etc/two ");
	CHECK_HAS(seen, "D/old ");
	CHECK_HAS(seen, "A/dir ");
	CHECK_HAS(seen, "A/dir/x ");
	CHECK(!strstr(seen, "/bin"));
	/* No path leads to where they are kept. */
	r = run_sh(b, "cat /.upper/upper/etc/new /.lower/etc/one "
		      "/proc/1/fd/5/etc/one /proc/1/root/etc/one; echo $?");
	CHECK_STR(r->out, "1\n");
	close_one(b, false);
	stop_keeper();
}
