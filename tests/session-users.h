/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Further users of boxes that stay, and what is theirs. Part of session.c. */

static void as_user(const char *user, uint32_t group)
{
	prepare_as_user = user != NULL;
	prepare_group = group;
}

/* As run_sh(), by another user ("UID:GID"), with one more group or 0. */
static struct ran *run_as(struct box_s *b, const char *user, uint32_t group,
			  const char *script)
{
	char settings[80];
	struct how how = { .settings = settings };
	struct ran *r;

	(void)snprintf(settings, sizeof(settings), "timeout=20s user=%s", user);
	as_user(user, group);
	r = start_in(b, &how, "sh", "-c", script, NULL);
	as_user(NULL, 0);
	CHECK(WAIT_FOR(is_over(r), 20000));
	return r;
}

/* Programs that run until they are ended. */
static struct ran *stay_as(struct box_s *b, const char *user,
			   const char *script)
{
	char settings[80];
	struct how how = { .settings = settings };
	struct ran *r;

	(void)snprintf(settings, sizeof(settings), "timeout=60s user=%s", user);
	as_user(user, 0);
	r = start_in(b, &how, "sh", "-c", script, NULL);
	as_user(NULL, 0);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 5000));
	return r;
}

/* Whether boxes have more than one user here; CI's root has. */
static bool has_users(struct box_s *b)
{
	const char *map = run_sh(b, "cat /proc/self/uid_map")->out;

	return strchr(map, '\n') != strrchr(map, '\n');
}

/* The host's id of an id of the box, as its map says; 0: none. */
static uint32_t host_id(struct box_s *b, uint32_t id)
{
	char text[80];

	(void)snprintf(text, sizeof(text),
		       "awk '$1 <= %u && %u < $1 + $3 {print $2 + %u - $1}' "
		       "/proc/self/uid_map",
		       id, id, id);
	return (uint32_t)strtoul(run_sh(b, text)->out, NULL, 10);
}

/* Where they must; the runner says so of an ordinary user. */
#define MANY (geteuid() == 0 || getenv("CORDON_MANY_IDS"))

#define WHO "id -u; id -g; id -G"

TEST_WHERE(s70_programs_are_other_users, MANY)
{
	static const char *const strangers[] = { "0:5", "5:0", "65536:5",
						 "5:65536", "0:0" };
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_one("user=1000:1001");
	CHECK(has_users(b));
	CHECK_STR(run_sh(b, WHO)->out, "1000\n1001\n1001\n");
	CHECK_STR(run_as(b, "33:44", 0, WHO)->out, "33\n44\n44\n");
	CHECK_STR(run_as(b, "33:44", 55, WHO)->out, "33\n44\n44 55\n");
	CHECK_STR(run_as(b, "1000:1001", 55, WHO)->out,
		  "1000\n1001\n1001 55\n");
	CHECK_STR(run_as(b, "65535:1", 0, WHO)->out, "65535\n1\n1\n");
	/* Root is not there, nor what is beyond the map; and it says so. */
	for (size_t i = 0; i < ARRAY_SIZE(strangers); i++) {
		r = run_as(b, strangers[i], 0, WHO);
		CHECK_STR(r->out, "");
		CHECK_INT(r->outcome.err.code, EINVAL);
		CHECK_HAS(r->outcome.err.text, "this box has no");
	}
	CHECK_INT(run_as(b, "33:44", 70000, WHO)->outcome.err.code, EINVAL);
	CHECK_INT((int)host_id(b, 0), 0);
	/* No right, no way to one, no way to another user. */
	r = run_as(b, "33:44", 0,
		   "grep -E '^Cap|^NoNew|^Seccomp:' /proc/self/status | "
		   "tr -d '\\n\\t'; setpriv --reuid 1000 true; "
		   "setpriv --clear-groups true; "
		   "cp /usr/bin/id /tmp/id; chmod 4755 /tmp/id; "
		   "stat -c %a /tmp/id");
	CHECK_HAS(r->out, "CapInh:0000000000000000CapPrm:0000000000000000"
			  "CapEff:0000000000000000CapBnd:0000000000000000"
			  "CapAmb:0000000000000000NoNewPrivs:1Seccomp:2");
	CHECK(!strstr(r->out, "4755"));
	CHECK_HAS(r->err, "setresuid failed");
	CHECK_HAS(r->err, "setgroups failed");
	/* Nor is anything done for it beforehand with more rights than its. */
	r = run_as(b, "33:44 workdir=/workspace/deep/er", 0, "pwd");
	CHECK_STR(r->out, "");
	CHECK_INT(exit_of(run_sh(b, "test -e /workspace/deep")), 1);
	close_one(b, false);
	stop_keeper();
}

TEST_WHERE(s71_root_of_a_box_has_no_rights, MANY)
{
	static const char look[] = "cat /proc/sys/net/ipv4/ip_forward";
	struct box_s *b;
	struct ran *before;
	struct ran *r;

	begin();
	prepare_root_user = true;
	b = open_one("");
	before = run_sh(b, look);
	r = run_as(b, "0:0", 0,
		   WHO "; grep CapEff /proc/self/status; "
		       "cd /proc/sys/net/ipv4; "
		       "echo $((1 - $(cat ip_forward))) >ip_forward; "
		       "mount -t tmpfs x /mnt; chown 5 /workspace; "
		       "cat /proc/1/environ; kill -9 1; kill -9 -1; "
		       "ip link set lo down; echo x >/workspace/x; "
		       "head -c1 /proc/1/mem");
	CHECK_HAS(r->out, "0\n0\n0\nCapEff:\t0000000000000000\n");
	CHECK(!strstr(r->out, "PATH"));
	r = run_as(b, "0:0", 0, look);
	CHECK_STR(r->out, before->out);
	CHECK_INT((long long)strlen(r->out), 2);
	prepare_root_user = false;
	close_one(b, false);
	stop_keeper();
}

/* It is ended, stopped and counted as any other; and apart from others. */
TEST_WHERE(s72_other_users_are_held_like_the_first, MANY)
{
	struct box_s *b;
	struct ran *r;
	struct ran *own;

	begin();
	b = open_one("pids=64");
	own = stay_as(b, "65534:65534", "echo up; sleep 100");
	r = stay_as(b, "33:33",
		    "trap 'echo got; exit 7' TERM; echo up; "
		    "while :; do sleep 0.05; done");
	/* Neither sees into the other, nor signals it. */
	CHECK_STR(run_as(b, "33:33", 0,
			 "for p in /proc/[0-9]*; do test -r $p/environ && "
			 "stat -c %u $p; done | sort -u")
			  ->out,
		  "33\n");
	CHECK_INT(exit_of(run_sh(b, "! pkill -u 33")), 0);
	CHECK_INT(exit_of(run_as(b, "33:33", 0, "! pkill -u 65534")), 0);
	CHECK(!r->ended && !own->ended);
	(void)session_signal(b->s, r->number, SIGTERM);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_HAS(r->out, "got");
	CHECK_INT(exit_of(r), 7);
	/* What ignores signals and leaves its session goes with its group. */
	r = stay_as(b, "33:33",
		    "trap '' TERM HUP; setsid sleep 100 & echo up; "
		    "sleep 100");
	(void)session_kill_exec(b->s, r->number);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_INT(r->outcome.end, WIRE_BY_CANCEL);
	if (!best_effort)
		CHECK_STR(run_sh(b, "pgrep -u 33; echo end")->out, "end\n");
	/* The number of processes is the box's, whoever they are of. */
	r = run_as(b, "34:34", 0,
		   "for i in $(seq 100); do sleep 5 & done 2>&1; wait");
	CHECK_HAS(r->out, "fork");
	close_one(b, false);
	CHECK(WAIT_FOR(own->ended, 5000));
	stop_keeper();
}

TEST_WHERE(s73_a_terminal_is_its_users, MANY)
{
	struct how how = {
		.tty = true, .rows = 24, .cols = 80, .settings = "user=33:33"
	};
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_one("");
	as_user("33:33", 0);
	r = start_in(b, &how, "sh", "-c",
		     "stat -c %u $(tty); echo opened >$(tty)", NULL);
	as_user(NULL, 0);
	CHECK(WAIT_FOR(r->ended, 5000));
	CHECK(WAIT_FOR(strstr(r->out, "opened"), 5000));
	CHECK_HAS(r->out, "33\r\n");
	close_one(b, false);
	stop_keeper();
}

static void send_owned(int sock, char kind, const char *name, uint32_t uid,
		       const char *data)
{
	files_uid = uid;
	files_send(sock, kind, name, 0750, data);
	files_uid = UINT32_MAX;
}

TEST(s74_owners_of_what_is_written)
{
	static struct got g;
	struct box_s *b;
	bool many;
	int sock;

	begin();
	b = open_one("user=1000:1000");
	many = has_users(b);
	CHECK_INT(many, MANY);
	for (int i = 0; i < 2; i++) { /* over what is there, too */
		sock = files_ask(b, FILES_WRITE, "/tmp", FILES_IDS, 0);
		send_owned(sock, 'd', "d", 33, "");
		send_owned(sock, 'f', "d/own", 1000, "own\n");
		send_owned(sock, 'f', "d/other", 33, "other\n");
		send_owned(sock, 'h', "d/hard", 33, "d/other");
		send_owned(sock, 'l', "d/link", 34, "nowhere");
		send_owned(sock, 'd', "d/deep", 34, "");
		send_owned(sock, 'f', "d/deep/f", 34, "x");
		send_owned(sock, 'f', "d/none", 0, "none\n");
		send_owned(sock, 'f', "d/far", 70000, "far\n");
		CHECK_INT(files_end(sock), 0);
	}
	CHECK_STR(run_as(b, many ? "33:33" : "1000:1000", 0,
			 "cd /tmp/d && stat -c '%n %u %g' . * | sort")
			  ->out,
		  many ? ". 33 33\ndeep 34 34\nfar 1000 1000\nhard 33 33\n"
			 "link 34 34\nnone 1000 1000\nother 33 33\n"
			 "own 1000 1000\n"
		       : ". 1000 1000\ndeep 1000 1000\nfar 1000 1000\n"
			 "hard 1000 1000\nlink 1000 1000\nnone 1000 1000\n"
			 "other 1000 1000\nown 1000 1000\n");
	CHECK_INT(files_look(b, "/tmp/d/other", &g), many ? EACCES : 0);
	/* Without the flag all is the box's user's. */
	sock = files_ask(b, FILES_WRITE, "/workspace", 0, 0);
	send_owned(sock, 'f', "f", 33, "x");
	CHECK_INT(files_end(sock), 0);
	CHECK_INT(files_look(b, "/workspace/f", &g), 0);
	CHECK_INT(g.e.uid, 1000);
	CHECK_INT(g.e.gid, 1000);
	/* Nor has it any right then: what is another's is another's. */
	if (many) {
		CHECK_INT(files_put_one(b, "/tmp/d", 'f', "new", 0644, "x"),
			  EACCES);
	}
	close_one(b, false);
	stop_keeper();
}

/* In a volume there is no other user: nothing is made or given by one. */
TEST_WHERE(s75_volumes_know_one_user, geteuid() == 0)
{
	char path[200];
	char line[600];
	struct box_s *b;
	struct ran *r;
	int sock;
	int other;

	peer_begin();
	(void)snprintf(line, sizeof(line),
		       "cd %s/mine && echo p >private && chmod 600 private && "
		       "echo s >shown && mkdir open group && echo o >open/f && "
		       "chmod 666 open/f && "
		       "chown -R %d:%d . && chmod 755 . && chmod 777 open && "
		       "chmod 770 group",
		       peer_dir, OTHER_UID, OTHER_UID);
	CHECK_INT(system(line), 0);
	other = connect_as(listen_there(), OTHER_UID);
	b = open_volume("mine", "rw", other);
	CHECK(b->ready);
	/* The control: the box's user makes, reads and owns. */
	r = run_sh(b, "cd /v && cat private shown && echo x >open/own && "
		      "stat -c %U open/own");
	CHECK_STR(r->out, "p\ns\nnobody\n");
	r = run_as(b, "33:33", 0,
		   "cd /v; cat shown; cat private; echo x >open/theirs; "
		   "mkdir open/d; ln -s x open/l; mkfifo open/p; "
		   "echo more >>open/f; ls group; chmod 777 open; "
		   "mv /tmp/moved open/ 2>/dev/null; ls open");
	CHECK_STR(r->out, "s\nf\nown\n");
	/* Not even with the box's group. */
	r = run_as(b, "33:65534", 0,
		   "cd /v; echo x >group/theirs; ls group; echo end");
	CHECK_STR(r->out, "end\n");
	/* What is written with owners is given to nobody else. */
	sock = files_ask(b, FILES_WRITE, "/v", FILES_IDS, 0);
	send_owned(sock, 'f', "put", 33, "x");
	send_owned(sock, 'd', "open", 33, "");
	CHECK_INT(files_end(sock), 0);
	close_one(b, false);
	(void)snprintf(line, sizeof(line),
		       "find %s/mine ! -uid %d -o ! -gid %d -o -perm /7000 | "
		       "grep . && exit 1; test -e %s/mine/put",
		       peer_dir, OTHER_UID, OTHER_UID, peer_dir);
	CHECK_INT(system(line), 0);
	/* To append is what everybody may. */
	(void)snprintf(path, sizeof(path), "grep -c more %s/mine/open/f",
		       peer_dir);
	CHECK_INT(system(path), 0);
	peer_end();
}

/* No two boxes have an id in common, and what is kept keeps its own. */
TEST_WHERE(s76_blocks_are_one_boxes_alone, MANY)
{
	struct box_s *b;
	struct box_s *c;
	uint32_t own;
	uint32_t of_33;

	begin();
	b = open_shelf(9);
	c = open_one("");
	own = host_id(b, 65534);
	of_33 = host_id(b, 33);
	if (geteuid() == 0) {
		CHECK(own >= 0x70000000U && own < 0x70010000U);
		CHECK(of_33 >= 0x70010000U && of_33 < 0x7ffe0000U);
	}
	CHECK_INT(of_33 & 0xffff, 33);
	CHECK(host_id(c, 33) != of_33);
	CHECK((host_id(c, 33) & 0xffff) == 33);
	(void)run_as(b, "33:44", 0, "echo mine >/data/f; echo t >/tmp/f");
	CHECK_INT(exit_of(run_as(b, "33:44", 0, "test -O /tmp/f")), 0);
	close_one(b, true);
	close_one(c, false);
	c = open_one("");
	CHECK(host_id(c, 33) != of_33);
	b = open_shelf(9);
	CHECK_INT((long long)host_id(b, 65534), own);
	CHECK_INT((long long)host_id(b, 33), of_33);
	CHECK_STR(
		run_as(b, "33:44", 0, "cat /tmp/f; stat -c %u:%g /tmp/f")->out,
		"t\n33:44\n");
	close_one(b, false);
	close_one(c, false);
	stop_keeper();
}

TEST_WHERE(s77_other_users_are_not_left_behind, MANY)
{
	char line[200];
	struct box_s *b;
	uint32_t of_33;

	begin();
	b = open_one("");
	of_33 = host_id(b, 33);
	(void)stay_as(b, "33:33", "setsid sleep 100 & echo up; sleep 100");
	(void)snprintf(line, sizeof(line), "pgrep -u %u >/dev/null", of_33);
	CHECK_INT(system(line), 0); /* the control */
	CHECK_INT(kill(keeper_pid, SIGKILL), 0);
	(void)waitpid(keeper_pid, NULL, 0);
	for (int i = 0; i < 200 && step(20) != -EPIPE; i++)
		;
	(void)snprintf(line, sizeof(line),
		       "for i in $(seq 40); do pgrep -u %u >/dev/null || "
		       "exit 0; sleep 0.05; done; exit 1",
		       of_33);
	CHECK_INT(system(line), 0);
	sessions_free(all);
	rans = NULL;
	sweep_by_another();
}

/* Each id once, whatever number the box's own user has. */
TEST_WHERE(s79_the_map_has_no_holes, MANY)
{
	static const struct {
		const char *user, *ids;
	} rows[] = { { "0:0", "65536\n" },
		     { "1:1", "65535\n" },
		     { "2:65535", "65535\n" },
		     { "65535:0", "65535\n" },
		     { "70000:5", "65536\n" } };
	char text[64];

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct box_s *b;

		(void)snprintf(text, sizeof(text), "user=%s", rows[i].user);
		b = open_one(text);
		CHECK_STR(run_sh(b, "awk '{n += $3} END {print n}' "
				    "/proc/self/uid_map")
				  ->out,
			  rows[i].ids);
		(void)snprintf(text, sizeof(text), "%s\n", rows[i].user);
		CHECK_STR(run_sh(b, "echo $(id -u):$(id -g)")->out, text);
		CHECK_STR(run_as(b, "33:44", 0, "echo $(id -u):$(id -g)")->out,
			  "33:44\n");
		close_one(b, false);
	}
	stop_keeper();
}

/* Where there are no ids for it, it is said; nothing runs as somebody else. */
TEST(s78_one_user_is_one_user)
{
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_one("user=1000:1000");
	if (!has_users(b)) {
		r = run_as(b, "33:33", 0, WHO);
		CHECK_STR(r->out, "");
		CHECK_INT(r->outcome.err.code, EOPNOTSUPP);
		CHECK_HAS(r->outcome.err.text, "one user and one group");
		CHECK_INT(run_as(b, "1000:1000", 55, WHO)->outcome.err.code,
			  EOPNOTSUPP);
	}
	CHECK_STR(run_as(b, "1000:1000", 0, WHO)->out, "1000\n1000\n1000\n");
	CHECK_STR(run_as(b, "1000:1000", 1000, WHO)->out, "1000\n1000\n1000\n");
	close_one(b, false);
	stop_keeper();
}
