/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a box may have: what was kept, what its peer may open. Part of
 * session.c. */

static struct box_s *open_shelf(uint32_t shelf)
{
	struct box_s *b = open_want("tmpfs=/data:size=8m", NO_FD, shelf);

	CHECK(WAIT_FOR(b->ready || b->ended, 10000));
	if (b->ended)
		printf("# %s: %s\n", b->outcome.err.stage, b->outcome.err.text);
	return b;
}

TEST(s40_what_is_kept_on_a_shelf)
{
	const char
		*make = "echo one >/tmp/a; echo two >b; echo three >/data/c; "
			"chmod 600 /tmp/a b /data/c";
	const char *look = "cat /tmp/a b /data/c; echo more >>/tmp/a";
	struct box_s *b;
	struct box_s *busy;
	struct ran *r;

	begin();
	b = open_shelf(7);
	CHECK_INT(exit_of(run_sh(b, make)), 0);
	/* While it is in use nobody else gets it. */
	busy = open_shelf(7);
	CHECK(busy->ended);
	CHECK_INT(busy->outcome.err.code, EBUSY);
	close_one(b, true);
	b = open_shelf(7);
	CHECK_STR(run_sh(b, look)->out, "one\ntwo\nthree\n");
	close_one(b, true);
	/* Again, and with another number: nothing. */
	b = open_shelf(7);
	CHECK_STR(run_sh(b, look)->out, "one\nmore\ntwo\nthree\n");
	busy = open_shelf(8);
	CHECK_STR(
		run_sh(busy, "cat /tmp/a b /data/c 2>/dev/null; echo end")->out,
		"end\n");
	close_one(busy, false);
	close_one(b, true);
	/* Not kept, or forgotten: gone. */
	b = open_shelf(7);
	close_one(b, false);
	b = open_shelf(7);
	r = run_sh(b, "cat /tmp/a b /data/c 2>/dev/null; echo end");
	CHECK_STR(r->out, "end\n");
	(void)run_sh(b, make);
	close_one(b, true);
	sessions_forget(all, 7);
	b = open_shelf(7);
	CHECK_STR(run_sh(b, "cat /tmp/a b 2>/dev/null; echo end")->out,
		  "end\n");
	close_one(b, false);
	stop_keeper();
}

/* Whose files */

static char peer_dir[64];

/* A listener with a name, as the daemon has. */
static int listen_there(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/s", peer_dir);
	if (bind(sock, (struct sockaddr *)&name, sizeof(name)) < 0 ||
	    listen(sock, 8) < 0 || chmod(name.sun_path, 0666) < 0)
		_exit(1);
	return sock;
}

/* The daemon's end of a connection by that user (0: ourselves). */
static int connect_as(int listener, uid_t uid)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	pid_t pid = fork();

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/s", peer_dir);
	if (pid == 0) {
		int sock;

		/* Not the keeper's socket above all: it must see us go. */
		for (int fd = 3; fd < 1024; fd++)
			(void)close(fd);
		sock = socket(AF_UNIX, SOCK_STREAM, 0);
		if (uid && (setgroups(0, NULL) < 0 || setgid(uid) < 0 ||
			    setuid(uid) < 0))
			_exit(1);
		if (connect(sock, (struct sockaddr *)&name, sizeof(name)) < 0)
			_exit(1);
		(void)alarm(100);
		(void)pause();
		_exit(0);
	}
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

/* The other end of one: the kernel names who listens, and that is root. */
static int connect_named(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/c", peer_dir);
	if (bind(sock, (struct sockaddr *)&name, sizeof(name)) < 0)
		_exit(1);
	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/s", peer_dir);
	if (connect(sock, (struct sockaddr *)&name, sizeof(name)) < 0)
		_exit(1);
	return sock;
}

static void peer_begin(void)
{
	char line[400];

	begin();
	(void)snprintf(peer_dir, sizeof(peer_dir), "%s",
		       "/tmp/cordon-peer-XXXXXX");
	if (!mkdtemp(peer_dir))
		_exit(1);
	(void)snprintf(line, sizeof(line),
		       "cd %s && chmod 755 . && mkdir mine theirs open && "
		       "echo private >theirs/f && chmod 700 mine theirs && "
		       "echo shown >open/f && echo hidden >open/h && "
		       "chmod 600 open/h && chmod 755 open",
		       peer_dir);
	CHECK_INT(system(line), 0);
}

static void peer_end(void)
{
	char line[200];

	stop_keeper();
	(void)snprintf(line, sizeof(line), "rm -rf %s", peer_dir);
	(void)!system(line);
}

static struct box_s *open_volume(const char *dir, const char *mode, int peer)
{
	char text[300];
	struct box_s *b;

	(void)snprintf(text, sizeof(text), "volume=%s%s:/v:%s",
		       dir[0] == '/' ? "" : peer_dir, dir, mode);
	if (dir[0] != '/')
		(void)snprintf(text, sizeof(text), "volume=%s/%s:/v:%s",
			       peer_dir, dir, mode);
	b = open_want(text, peer, 0);
	CHECK(WAIT_FOR(b->ready || b->ended, 10000));
	if (b->ended)
		printf("# %s: %s\n", b->outcome.err.stage, b->outcome.err.text);
	return b;
}

#define OTHER_UID 64123

TEST_WHERE(s50_binds_have_the_rights_of_the_peer, geteuid() == 0)
{
	char path[200];
	struct box_s *b;
	struct stat st;
	int listener;
	int other;
	int root;

	peer_begin();
	(void)snprintf(path, sizeof(path), "%s/mine", peer_dir);
	CHECK_INT(chown(path, OTHER_UID, OTHER_UID), 0);
	listener = listen_there();
	other = connect_as(listener, OTHER_UID);
	root = connect_as(listener, 0);
	/* What is its own, for writing; files there are its own too. */
	b = open_volume("mine", "rw", other);
	CHECK(b->ready);
	CHECK_INT(exit_of(run_sh(b, "echo x >/v/new")), 0);
	close_one(b, false);
	(void)snprintf(path, sizeof(path), "%s/mine/new", peer_dir);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_uid, OTHER_UID);
	CHECK_INT(st.st_gid, OTHER_UID);
	/* What it cannot open it cannot mount; root can. */
	b = open_volume("theirs", "ro", other);
	CHECK(b->ended);
	CHECK_INT(b->outcome.err.code, EACCES);
	CHECK_STR(b->outcome.err.stage, "mounts");
	b = open_volume("theirs/f", "ro", other);
	CHECK_INT(b->outcome.err.code, EACCES);
	b = open_volume("theirs", "ro", root);
	CHECK(b->ready);
	CHECK_STR(run_sh(b, "cat /v/f")->out, "private\n");
	close_one(b, false);
	/* What all may read it may show, and no more of it than it sees. */
	b = open_volume("open", "ro", other);
	CHECK(b->ready);
	CHECK_STR(run_sh(b, "cat /v/f /v/h 2>/dev/null")->out, "shown\n");
	close_one(b, false);
	b = open_volume("open", "rw", other);
	CHECK(b->ended);
	CHECK_INT(b->outcome.err.code, EACCES);
	/* Writable for all is not its own either. */
	(void)snprintf(path, sizeof(path), "%s/open", peer_dir);
	CHECK_INT(chmod(path, 01777), 0);
	b = open_volume("open", "rw", other);
	CHECK(b->ended);
	CHECK_INT(b->outcome.err.code, EPERM);
	peer_end();
}

TEST_WHERE(s51_nobody_is_taken_for_another, geteuid() == 0)
{
	struct box_s *b;
	int listener;
	int pair[2];
	int root;

	peer_begin();
	listener = listen_there();
	root = connect_as(listener, 0);
	/* The control: it is root who asks. */
	b = open_volume("theirs", "ro", root);
	CHECK(b->ready);
	close_one(b, false);
	/* Nobody is named. */
	b = open_volume("theirs", "ro", NO_FD);
	CHECK(b->ended);
	CHECK_INT(b->outcome.err.code, EPERM);
	/* A pair, whose maker is root; a listener. */
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	b = open_volume("theirs", "ro", pair[0]);
	CHECK(b->ended);
	CHECK_INT(b->outcome.err.code, EPERM);
	CHECK_STR(b->outcome.err.stage, "peer");
	b = open_volume("theirs", "ro", listener);
	CHECK_INT(b->outcome.err.code, EPERM);
	/* A client's own end, which a client can hand to a friend. */
	b = open_volume("theirs", "ro", connect_named());
	CHECK(b->ended);
	CHECK_INT(b->outcome.err.code, EPERM);
	b = open_volume("theirs", "ro",
			open("/dev/null", O_RDONLY | O_CLOEXEC));
	CHECK_INT(b->outcome.err.code, ENOTSOCK);
	/* What every box is made of needs nobody, and is nobody's. */
	b = open_one("");
	CHECK_INT(exit_of(run_sh(b, "test -x /usr/bin/env")), 0);
	close_one(b, false);
	b = open_want("user=1000 volume=/usr:/v:ro", NO_FD, 0);
	CHECK(WAIT_FOR(b->ready || b->ended, 10000));
	CHECK_INT(exit_of(run_sh(b, "test -e /v/bin && ! test -O /v")), 0);
	close_one(b, false);
	peer_end();
}

/* Opens a box whose first mount of that kind was changed after prepare(). */
static struct box_s *open_changed(uint8_t kind, const char *source, int flags,
				  uint16_t dev)
{
	static const struct session_events events = { on_ready, on_ended };
	struct prepared p = prepare_for("");
	struct box_s *b = calloc(1, sizeof(*b));
	struct err err = { 0 };
	struct session_want want = { .peer = NO_FD };
	struct stat st;
	struct wire_box *box;
	char *copy;
	size_t len = strlen(source) + 1;

	(void)fstat(p.box, &st);
	copy = calloc(1, (size_t)st.st_size + len);
	(void)!pread(p.box, copy, (size_t)st.st_size, 0);
	box = (struct wire_box *)copy;
	memcpy(copy + st.st_size, source, len);
	box->blob.size = (uint64_t)st.st_size + len;
	for (uint32_t i = 0; i < box->n_mounts; i++)
		if (box->mounts[i].kind == kind) {
			box->mounts[i].source = (uint32_t)st.st_size;
			box->mounts[i].flags = (uint8_t)flags;
			box->mounts[i].dev = dev;
			break;
		}
	want.box = memfd_create("box", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	(void)io_write_all(want.box, copy, box->blob.size);
	(void)fcntl(want.box, F_ADD_SEALS, 0xf);
	b->s = session_open(all, &want, &events, b, &err);
	(void)WAIT_FOR(b->ready || b->ended, 10000);
	if (b->ended)
		printf("# %s\n", b->outcome.err.text);
	return b;
}

TEST_WHERE(s52_a_client_cannot_smuggle, geteuid() == 0)
{
	static const char *const bad[] = { "/root",        "/",
					   "/etc",         "/etc/shadow",
					   "/usr/../root", "/usrx",
					   "/etc/ssl",     "/tmp" };
	struct box_s *b;

	begin();
	/* The control: the same with what it was. */
	b = open_changed(WIRE_BIND, "/usr", WIRE_MNT_RO, 0);
	CHECK(b->ready);
	close_one(b, false);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		b = open_changed(WIRE_BIND, bad[i], WIRE_MNT_RO, 0);
		CHECK(b->ended);
		CHECK_INT(b->outcome.err.code, EPERM);
	}
	b = open_changed(WIRE_BIND, "/usr", 0, 0);
	CHECK_INT(b->outcome.err.code, EPERM);
	b = open_changed(WIRE_BIND, "/usr", WIRE_MNT_IDMAP, 0);
	CHECK_INT(b->outcome.err.code, EPERM);
	b = open_changed(WIRE_DEV, "/dev/null", 0, 1 << 8 | 3);
	CHECK(b->ready);
	close_one(b, false);
	b = open_changed(WIRE_DEV, "/dev/mem", 0, 1 << 8 | 1);
	CHECK_INT(b->outcome.err.code, EPERM);
	b = open_changed(WIRE_DEV, "/dev/kvm", 0, 10 << 8 | 232);
	CHECK_INT(b->outcome.err.code, EPERM);
	stop_keeper();
}

TEST_WHERE(s53_an_ordinary_keeper_serves_its_own_user, geteuid() != 0)
{
	struct box_s *b;
	int listener;
	int self;

	peer_begin();
	listener = listen_there();
	self = connect_as(listener, 0);
	b = open_volume("open", "ro", self);
	CHECK(b->ready);
	CHECK_STR(run_sh(b, "cat /v/f")->out, "shown\n");
	close_one(b, false);
	peer_end();
}
