/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Boxes that stay: src/box/session.h against a real keeper.
 *
 * Whatever is shown not to work is shown to work elsewhere in the same test,
 * or it would prove nothing.
 */

#define TAP_SECONDS 120

#include "session-files.h"
#include "session.h"

#include <dirent.h>
#include <grp.h>
#include <sys/ioctl.h>

/* the machine */

/* Whether this user may have groups; without, tests run all the same. */
static bool has_groups(void)
{
	struct box_s *b = open_want("", NO_FD, 0);
	bool has;

	(void)WAIT_FOR(b->ready || b->ended, 10000);
	has = b->ready;
	if (!b->ended)
		close_one(b, false);
	else if (!strstr(b->outcome.err.text, "cannot limit"))
		die("box", &b->outcome.err);
	return has;
}

static void begin(void)
{
	start_keeper();
	best_effort = !has_groups();
}

/* The directories in which our keeper makes groups, from its record. */
static int count_groups(const char *name)
{
	char dir[200];
	char text[8192];
	int n = 0;
	DIR *d;
	struct dirent *e;
	char id[64] = "";

	(void)snprintf(dir, sizeof(dir), "%s/keepers", runtime_dir);
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			(void)snprintf(id, sizeof(id), "%.60s", e->d_name);
	if (d)
		(void)closedir(d);
	(void)snprintf(text, sizeof(text),
		       "for d in $(cat %s/%s); do find $d -type d -path "
		       "'*cordon-%s-*%s%s' 2>/dev/null; done | wc -l",
		       dir, id, id, *name ? "/" : "", name);
	{
		FILE *p = id[0] ? popen(text, "r") : NULL;

		if (p && fscanf(p, "%d", &n) != 1)
			n = -1;
		if (p)
			(void)pclose(p);
	}
	return n;
}

/* programs */

TEST(s01_opens_and_runs)
{
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_one("");
	r = run_sh(b, "echo out; echo err >&2; exit 7");
	CHECK_STR(r->out, "out\n");
	CHECK_STR(r->err, "err\n");
	CHECK_INT(exit_of(r), 7);
	CHECK_INT(r->outcome.end, WIRE_BY_ITSELF);
	CHECK(r->started);
	CHECK(r->outcome.wall_us > 0);
	close_one(b, false);
	CHECK_INT(b->outcome.end, WIRE_BY_CANCEL);
	CHECK_INT(b->outcome.err.code, 0);
	stop_keeper();
}

TEST(s02_many_at_once)
{
	struct ran *r[50];
	struct box_s *b;

	begin();
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

TEST(s03_ends_are_told_as_they_were)
{
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_one("");
	CHECK_INT(exit_of(run_sh(b, "exit 0")), 0);
	CHECK_INT(exit_of(run_sh(b, "exit 255")), 255);
	CHECK_INT(exit_of(run_sh(b, "kill -SEGV $$")), 1000 + SIGSEGV);
	r = start_in(b, NOT_HOW, "no-such-program", NULL);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_INT(r->outcome.exec_errno, ENOENT);
	CHECK(!r->started);
	r = start_in(b, NOT_HOW, "/etc/passwd", NULL);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_INT(r->outcome.exec_errno, EACCES);
	/* Where there is no place for its work: what and why is told. */
	r = start_in(b,
		     &(const struct how){ .settings = "workdir=/etc/passwd/x" },
		     "true", NULL);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_INT(r->outcome.err.code, ENOTDIR);
	CHECK_STR(r->outcome.err.stage, "workdir");
	CHECK(!r->started);
	/* And where it is only missing, it is made. */
	r = start_in(b,
		     &(const struct how){
			     .settings = "workdir=/workspace/a/b" },
		     "pwd", NULL);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_STR(r->out, "/workspace/a/b\n");
	close_one(b, false);
	stop_keeper();
}

TEST(s04_standard_input)
{
	const struct how how = { .input = true };
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_one("");
	r = start_in(b, &how, "cat", NULL);
	CHECK_INT(write(r->in, "one ", 4), 4);
	CHECK(WAIT_FOR(strstr(r->out, "one "), 5000));
	CHECK_INT(write(r->in, "two", 3), 3);
	fd_close(&r->in);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_STR(r->out, "one two");
	CHECK_INT(exit_of(r), 0);
	close_one(b, false);
	stop_keeper();
}

TEST(s05_terminal_of_its_own)
{
	const struct how how = { .tty = true, .rows = 33, .cols = 99 };
	struct winsize size = { .ws_row = 11, .ws_col = 22 };
	struct box_s *b;
	struct ran *r;
	struct ran *other;

	begin();
	b = open_one("");
	r = start_in(b, &how, "sh", "-c",
		     "trap 'stty size; exit 5' WINCH; tty; stty size; "
		     "echo up; while :; do sleep 0.05; done",
		     NULL);
	other = start_in(b, &how, "sh", "-c", "tty; echo up; read x; echo $x",
			 NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 5000));
	CHECK(WAIT_FOR(strstr(other->out, "up"), 5000));
	CHECK_HAS(r->out, "33 99");
	CHECK_HAS(r->out, "/dev/pts/");
	CHECK(strncmp(r->out, other->out, 12) != 0);
	CHECK(r->tty >= 0 && ioctl(r->tty, TIOCSWINSZ, &size) == 0);
	CHECK(WAIT_FOR(r->ended, 5000));
	CHECK_HAS(r->out, "11 22");
	CHECK_INT(exit_of(r), 5);
	/* Ctrl-C of one is not for the other. */
	CHECK(!other->ended);
	CHECK_INT(write(other->tty, "\x03", 1), 1);
	CHECK(WAIT_FOR(other->ended, 5000));
	CHECK_INT(exit_of(other) % 870, 1000 + SIGINT - 870);
	close_one(b, false);
	stop_keeper();
}

TEST(s06_signals_reach_the_first_process)
{
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_one("");
	r = start_in(b, NOT_HOW, "sh", "-c",
		     "trap 'echo got usr1; exit 3' USR1; echo up; "
		     "while :; do sleep 0.05; done",
		     NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 5000));
	CHECK_INT(session_signal(b->s, r->number, SIGUSR1), 0);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_STR(r->out, "up\ngot usr1\n");
	CHECK_INT(exit_of(r), 3);
	/* To one that is gone, and to none at all: nothing happens. */
	CHECK_INT(session_signal(b->s, r->number, SIGUSR1), 0);
	CHECK_INT(session_signal(b->s, 123456, SIGUSR1), 0);
	CHECK_INT(session_signal(b->s, r->number, 65), -EINVAL);
	CHECK_INT(exit_of(run_sh(b, "exit 4")), 4);
	close_one(b, false);
	stop_keeper();
}

static void on_mask(void *arg, uint64_t mask)
{
	*(uint64_t *)arg = mask | 1ULL << 63;
}

TEST(s07_which_signals_are_caught)
{
	uint64_t with = 0;
	uint64_t without = 0;
	uint64_t none = 0;
	struct box_s *b;
	struct ran *r[2];

	begin();
	b = open_one("");
	r[0] = start_in(b, NOT_HOW, "sh", "-c",
			"trap : TERM; echo up; while :; do sleep 0.05; done",
			NULL);
	r[1] = start_in(b, NOT_HOW, "sleep", "100", NULL);
	CHECK(WAIT_FOR(strstr(r[0]->out, "up") && r[1]->started, 5000));
	(void)session_ask_caught(b->s, r[0]->number, on_mask, &with);
	(void)session_ask_caught(b->s, r[1]->number, on_mask, &without);
	(void)session_ask_caught(b->s, 999999, on_mask, &none);
	CHECK(WAIT_FOR(with && without && none, 5000));
	CHECK(with & 1ULL << (SIGTERM - 1));
	CHECK(!(without & 1ULL << (SIGTERM - 1)));
	CHECK(none == 1ULL << 63);
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

#define TREE                                                                   \
	"trap '' TERM; (setsid sh -c 'trap \"\" TERM; (sleep 77777 &) ; "      \
	"sleep 77777' &) ; echo up; sleep 77777"

TEST(s08_kill_ends_the_whole_tree)
{
	struct box_s *b;
	struct ran *r;
	struct ran *other;

	begin();
	if (best_effort)
		SKIP("no group that this user may use");
	b = open_one("");
	other = start_in(b, NOT_HOW, "sleep", "10", NULL);
	r = start_in(b, NOT_HOW, "sh", "-c", TREE, NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 5000));
	CHECK(WAIT_FOR(other->started, 5000));
	CHECK(WAIT_FOR(sleepers(b) == 3, 5000));
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

TEST(s09_what_is_left_and_what_is_not)
{
	const struct how rest = { .kill_rest = true };
	struct box_s *b;
	struct ran *r;

	begin();
	if (best_effort)
		SKIP("no group that this user may use");
	b = open_one("");
	r = start_in(b, &rest, "sh", "-c",
		     "(setsid sleep 77777 >/dev/null 2>&1 &); sleep 0.2; "
		     "exit 9",
		     NULL);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_INT(exit_of(r), 9);
	CHECK_INT(r->outcome.end, WIRE_BY_ITSELF);
	CHECK_INT(sleepers(b), 0);
	/* Without it they live on, and can be ended later. */
	r = run_sh(b, "(setsid sleep 77777 >/dev/null 2>&1 &); sleep 0.2");
	CHECK_INT(exit_of(r), 0);
	CHECK_INT(sleepers(b), 1);
	CHECK(count_groups("p[0-9]*") >= 1);
	CHECK_INT(session_kill_exec(b->s, r->number), 0);
	CHECK(WAIT_FOR(sleepers(b) == 0, 5000));
	CHECK(WAIT_FOR(count_groups("p[0-9]*") == 0, 5000));
	/* One that ends by itself: its group goes without being asked. */
	r = run_sh(b, "(setsid sleep 0.3 >/dev/null 2>&1 &); true");
	CHECK(count_groups("p[0-9]*") >= 1);
	CHECK(WAIT_FOR(count_groups("p[0-9]*") == 0, 5000));
	close_one(b, false);
	stop_keeper();
}

TEST(s10_time_of_one_program)
{
	const struct how brief = { .settings = "timeout=300ms" };
	const struct how grace = { .settings = "timeout=300ms kill-grace=5s" };
	const struct how cpu = { .settings = "cpu-time=200ms timeout=20s" };
	struct box_s *b;
	struct ran *r[4];
	long t = now_ms();

	begin();
	b = open_one("cpus=1");
	r[0] = start_in(b, NOT_HOW, "sleep", "1", NULL);
	r[1] = start_in(b, &brief, "sh", "-c", TREE, NULL);
	r[2] = start_in(b, &grace, "sh", "-c",
			"trap 'echo bye; exit 6' TERM; echo up; "
			"while :; do sleep 0.05; done",
			NULL);
	for (int i = 0; i < 3; i++)
		CHECK(WAIT_FOR(is_over(r[i]), 10000));
	CHECK(now_ms() - t >= 300);
	CHECK_INT(r[0]->outcome.end, WIRE_BY_ITSELF);
	CHECK_INT(exit_of(r[0]), 0);
	CHECK_INT(r[1]->outcome.end, WIRE_BY_TIMEOUT);
	CHECK_INT(r[2]->outcome.end, WIRE_BY_TIMEOUT);
	CHECK_HAS(r[2]->out, "bye");
	if (!best_effort) {
		CHECK_INT(sleepers(b), 0);
		r[3] = start_in(b, &cpu, "sh", "-c", "while :; do :; done",
				NULL);
		CHECK(WAIT_FOR(is_over(r[3]), 10000));
		CHECK_INT(r[3]->outcome.end, WIRE_BY_CPU);
		CHECK(r[3]->outcome.cpu_us >= 200000);
		CHECK(r[3]->outcome.cpu_us < 2000000);
	}
	CHECK_INT(exit_of(run_sh(b, "exit 2")), 2);
	close_one(b, false);
	stop_keeper();
}

static void on_usage(void *arg, const struct session_usage *u)
{
	*(struct session_usage *)arg = *u;
}

TEST(s11_usage)
{
	struct session_usage u = { 0 };
	struct session_usage later = { 0 };
	struct box_s *b;
	struct ran *r;

	begin();
	if (best_effort)
		SKIP("no group that this user may use");
	b = open_one("memory=100m pids=77");
	(void)session_ask_usage(b->s, on_usage, &u);
	CHECK(WAIT_FOR(u.pids, 5000));
	CHECK_INT((long long)u.memory_limit, 100 << 20);
	CHECK_INT((long long)u.pids_limit, 77);
	CHECK_INT((long long)u.pids, 1);
	r = start_in(b, NOT_HOW, "sh", "-c",
		     "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; "
		     "dd if=/dev/zero of=/tmp/x bs=1M count=20 2>/dev/null; "
		     "echo up; exec sleep 100",
		     NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 10000));
	(void)session_ask_usage(b->s, on_usage, &later);
	CHECK(WAIT_FOR(later.pids, 5000));
	CHECK_INT((long long)later.pids, 2);
	CHECK(later.memory >= u.memory + (20 << 20));
	CHECK(later.memory_peak >= later.memory);
	CHECK(later.cpu_us > u.cpu_us);
	CHECK(later.cpu_user_us + later.cpu_system_us > 0);
	close_one(b, false);
	stop_keeper();
}

TEST(s12_freeze)
{
	const char *count = "i=0; while :; do i=$((i+1)); echo $i; "
			    "sleep 0.02; done";
	struct box_s *b;
	struct ran *r[2];
	struct ran *x;
	size_t had;
	int first;

	begin();
	b = open_one("");
	r[0] = start_in(b, NOT_HOW, "sh", "-c", count, NULL);
	r[1] = start_in(b, NOT_HOW, "sh", "-c", count, NULL);
	CHECK(WAIT_FOR(strstr(r[0]->out, "5\n") && strstr(r[1]->out, "5\n"),
		       5000));
	first = session_freeze(b->s, true);
	if (first == -EOPNOTSUPP) {
		close_one(b, false);
		stop_keeper();
		SKIP("no freezer that this user may use");
	}
	CHECK_INT(first, 0);
	(void)WAIT_FOR(false, 200);
	had = r[0]->out_len + r[1]->out_len;
	(void)WAIT_FOR(false, 300);
	CHECK_INT((long long)(r[0]->out_len + r[1]->out_len), (long long)had);
	/* Nothing is started meanwhile, and that is said. */
	x = start_in(b, NOT_HOW, "true", NULL);
	CHECK(WAIT_FOR(x->ended, 5000));
	CHECK_INT(x->outcome.err.code, EBUSY);
	/* One of them is killed as it stands. */
	(void)session_kill_exec(b->s, r[1]->number);
	CHECK(WAIT_FOR(is_over(r[1]), 5000));
	CHECK_INT(r[1]->outcome.end, WIRE_BY_CANCEL);
	CHECK_INT(session_freeze(b->s, false), 0);
	CHECK(WAIT_FOR(r[0]->out_len > had, 5000));
	/* And so is the whole box. */
	CHECK_INT(session_freeze(b->s, true), 0);
	(void)WAIT_FOR(false, 100);
	close_one(b, false);
	CHECK(r[0]->ended);
	stop_keeper();
}

/* What only a box that stays can suffer: its own programs. */

TEST(s20_hostile_programs_do_not_hold_it_up)
{
	struct box_s *b;
	struct ran *bomb;
	struct ran *eater;
	struct ran *r = NULL;
	long t;

	begin();
	if (best_effort)
		SKIP("no group that this user may use");
	b = open_one("pids=64 memory=128m");
	bomb = start_in(b, NOT_HOW, "sh", "-c",
			"f() { f | f & }; f 2>/dev/null; wait; sleep 100",
			NULL);
	CHECK(WAIT_FOR(bomb->started, 5000));
	(void)WAIT_FOR(false, 500);
	/* A process may or may not be had; either is told, and soon. */
	t = now_ms();
	r = start_in(b, NOT_HOW, "true", NULL);
	CHECK(WAIT_FOR(r->ended, 5000));
	CHECK(now_ms() - t < 5000);
	CHECK(r->outcome.exec_errno == 0 || r->outcome.exec_errno == EAGAIN);
	(void)session_kill_exec(b->s, bomb->number);
	CHECK(WAIT_FOR(bomb->ended, 10000));
	CHECK_INT(exit_of(run_sh(b, "exit 3")), 3);
	/* Memory: what eats it is killed, the others live. */
	r = start_in(b, NOT_HOW, "sleep", "100", NULL);
	eater = start_in(b, NOT_HOW, "python3", "-c",
			 "x = bytearray(400 << 20)\n"
			 "for i in range(0, len(x), 4096): x[i] = 1",
			 NULL);
	CHECK(WAIT_FOR(eater->ended, 20000));
	CHECK_INT(exit_of(eater), 1000 + SIGKILL);
	CHECK(eater->outcome.oom_kills > 0);
	CHECK(!r->ended);
	CHECK_INT(exit_of(run_sh(b, "exit 4")), 4);
	/* Stopping everything it can reach. */
	eater = start_in(b, NOT_HOW, "sh", "-c",
			 "kill -STOP 1; kill -KILL 1; kill -TERM 1; "
			 "kill -CHLD 1; kill -STOP -1; echo there",
			 NULL);
	(void)WAIT_FOR(eater->ended, 300);
	t = now_ms();
	CHECK_INT(exit_of(run_sh(b, "exit 5")), 5);
	CHECK(now_ms() - t < 5000);
	close_one(b, false);
	stop_keeper();
}

TEST(s21_nobody_looks_into_init)
{
	struct box_s *b;
	struct ran *r;

	begin();
	b = open_one("");
	/* The control: a program's own memory can be opened. */
	r = run_sh(b, "for f in mem environ maps fd/0 cwd root exe; do "
		      "for p in 1 self; do "
		      "if (exec 3</proc/$p/$f) 2>/dev/null; then echo $p $f; "
		      "fi; done; done; ls /proc/1/fd >/dev/null 2>&1 && "
		      "echo 1 fd; ls /proc/self/fd >/dev/null && echo self fd");
	CHECK_HAS(r->out, "self mem");
	CHECK_HAS(r->out, "self environ");
	CHECK_HAS(r->out, "self fd");
	CHECK(!strstr(r->out, "1 "));
	close_one(b, false);
	stop_keeper();
}

TEST(s22_posture_is_that_of_a_run)
{
	const char
		*look = "grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups|Uid|Gid)' "
			"/proc/self/status; ls /proc/self/fd | wc -l; "
			"cat /proc/self/oom_score_adj; ulimit -a; "
			"readlink /proc/self/cwd; "
			"cat /proc/self/mounts | "
			"grep -v devpts | cut -d' ' -f2,3 | sort; "
			"env | sort; python3 -c 'import os, ctypes; "
			"l = ctypes.CDLL(None, use_errno=True); "
			"print([l.syscall(n, 0, 0, 0, 0, 0) and "
			"ctypes.get_errno() for n in (435, 437, 165, 272, "
			"101, 321, 425)])'";
	struct cordon_result *once;
	struct box_s *b;
	struct ran *r;
	const char *text;
	size_t len = 0;

	begin();
	if (best_effort)
		SKIP("compared only where nothing is missing");
	b = open_one("");
	r = run_sh(b, look);
	once = box_run(BOX_CMD, "sh", "-c", look, NULL);
	text = cordon_result_stdout(once, &len);
	CHECK(len > 500);
	CHECK_STR(r->out, text);
	CHECK_HAS(r->out, "CapEff:\t0000000000000000");
	CHECK_HAS(r->out, "Seccomp:\t2");
	CHECK_HAS(r->out, "NoNewPrivs:\t1");
	cordon_result_free(once);
	close_one(b, false);
	stop_keeper();
}

/* files */

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
	r = start_in(b, NOT_HOW, "python3", "-c",
		     "import os\n"
		     "os.makedirs('s')\n"
		     "print('up', flush=True)\n"
		     "while True:\n"
		     " for i in range(20):\n"
		     "  p = 's/%d' % i\n"
		     "  try: os.unlink(p)\n"
		     "  except OSError: pass\n"
		     "  k = (i + os.getpid() + hash(os.times())) % 3\n"
		     "  if k == 0: os.mkfifo(p)\n"
		     "  elif k == 1: os.symlink('/proc/1/mem', p)\n"
		     "  else:\n"
		     "   f = open(p, 'w'); f.write('x' * 5000); f.flush()\n"
		     "   f.truncate(10); f.close()\n",
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

TEST(s34_directories_swapped_meanwhile)
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
		int e;

		for (int k = 0; k < 20; k++)
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
		     "echo up; exec python3 -c 'import time; time.sleep(100)' "
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
		unsigned int uid = 0;

		CHECK_INT(sscanf(g.name, "%d %d %c %llu %llu %llu %u", &pid,
				 &parent, &state, &start, &cpu, &rss, &uid),
			  7);
		CHECK(!strchr(g.name, '\n'));
		CHECK_INT(uid, 65534);
		if (pid == 1 && strstr(g.name, "cordon-init"))
			has_init = true;
		if (strstr(g.name, "\tpython3 -c") &&
		    strstr(g.name, "a b new?line"))
			has_mine = parent == 1 && rss > 100 && start > 0;
	}
	CHECK_INT(g.e.kind, 0);
	CHECK(has_init);
	CHECK(has_mine);
	close_one(b, false);
	stop_keeper();
}

TEST(s36_broken_requests_for_files_harm_nobody)
{
	static char junk[5000];
	struct box_s *b;
	int sock;
	int socks[40];

	begin();
	b = open_one("pids=64");
	memset(junk, 0xff, sizeof(junk));
	for (int i = 0; i < 20; i++) {
		sock = files_ask(b, FILES_WRITE, "/workspace", 0, 0);
		(void)send(sock, junk, (size_t)(i * 250), MSG_NOSIGNAL);
		(void)close(sock);
		(void)step(0);
	}
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

/* What is kept */

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
	b = open_volume("theirs", "ro", open("/dev/null", O_RDONLY));
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

/* Nothing is left */

/* The first name in a directory of the runtime directory, "": it is empty. */
static const char *first_in(const char *name)
{
	static char ret[300];
	char path[200];
	DIR *d;
	struct dirent *e;

	(void)snprintf(path, sizeof(path), "%s/%s", runtime_dir, name);
	ret[0] = '\0';
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			(void)snprintf(ret, sizeof(ret), "%s", e->d_name);
	if (d)
		(void)closedir(d);
	return ret;
}

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
	start_keeper();
	b[0] = open_one("");
	close_one(b[0], false);
	sessions_free(all);
	(void)waitpid(keeper_pid, NULL, 0);
	CHECK_STR(first_in("keepers"), "");
	forget_runtime();
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
		long pss = pss_of((int)strtol(p, &p, 10));

		p += *p == ' ';
		*ret_pss = MAX(*ret_pss, pss);
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

/* A keeper that dies at a certain moment, as by kill -9. */
TEST(s64_dying_at_any_moment_leaves_nothing)
{
	static const char *const moments[] = {
		"world",  "record", "cgroup", "birth",  "ids",
		"groups", "ready",  "begun",  "closed",
	};
	char libexec[4200];
	char die_at[64];

	(void)snprintf(libexec, sizeof(libexec), "%s/tests", build_dir());
	for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
		static const struct session_events events = { on_ready,
							      on_ended };
		struct box_s b = { 0 };
		struct prepared p;
		struct session_want want = { .peer = NO_FD, .shelf = 3 };
		struct err err = { 0 };
		int status = 0;

		(void)snprintf(die_at, sizeof(die_at), "keeper-%s", moments[i]);
		(void)setenv("CORDON_TEST_DIE", die_at, 1);
		(void)setenv("CORDON_LIBEXEC", libexec, 1);
		start_keeper();
		best_effort = true;
		p = prepare_for("");
		want.box = p.box;
		b.s = session_open(all, &want, &events, &b, &err);
		if (b.s && WAIT_FOR(b.ready || b.ended, 5000) && b.ready) {
			(void)start_in(&b, NOT_HOW, "sleep", "100", NULL);
			(void)WAIT_FOR(b.ended, 300);
			if (!b.ended)
				session_close(b.s, true);
			(void)WAIT_FOR(b.ended, 5000);
		}
		CHECK(!b.s || b.ended);
		(void)waitpid(keeper_pid, &status, 0);
		if (!WIFSIGNALED(status))
			printf("# it did not die at '%s'\n", moments[i]);
		CHECK(WIFSIGNALED(status));
		prepared_done(&p);
		sessions_free(all);
		rans = NULL;
		/* The next one finds what was left. */
		(void)unsetenv("CORDON_TEST_DIE");
		start_keeper();
		{
			struct box_s *next = open_one("");

			CHECK_INT(exit_of(run_sh(next, "exit 1")), 1);
			close_one(next, false);
		}
		sessions_free(all);
		(void)waitpid(keeper_pid, NULL, 0);
		rans = NULL;
		CHECK_INT(count_groups(""), 0);
		CHECK_STR(first_in("keepers"), "");
	}
	forget_runtime();
}

/*
 * A client that has lost its mind: messages of all kinds with any numbers and
 * any descriptors. The keeper may cut it off; it must not crash.
 */
TEST(s65_any_message_is_survived)
{
	unsigned int seed = 1;
	int n_kept = 0;

	for (int round = 0; round < 12; round++) {
		struct prepared p;
		int fds[6];
		int pair[2];
		int status = 0;

		start_keeper();
		best_effort = true;
		p = prepare_for("");
		fds[0] = p.box;
		fds[1] = p.work;
		fds[2] = open("/dev/null", O_RDWR | O_CLOEXEC);
		fds[3] = open("/", O_PATH | O_CLOEXEC);
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) <
		    0)
			_exit(1);
		fds[4] = pair[0];
		fds[5] = memfd_create("x", MFD_CLOEXEC);
		for (int i = 0; i < 150; i++) {
			struct wire_ask ask;
			int some[5];
			int n = (int)(rand_r(&seed) % 6);

			for (int k = 0; k < n; k++)
				some[k] = fds[rand_r(&seed) % 6];
			for (size_t k = 0; k < sizeof(ask); k++)
				((unsigned char *)&ask)[k] = (unsigned char)
					rand_r(&seed);
			ask.type = WIRE_OPEN + rand_r(&seed) % 12;
			ask.job = 1 + rand_r(&seed) % 3;
			ask.exec = 1 + rand_r(&seed) % 5;
			ask.flags &= 7;
			if (rand_r(&seed) % 2)
				ask.value %= 70;
			if (ask.type == WIRE_OPEN && rand_r(&seed) % 4) {
				some[0] = p.box;
				n = 1;
				ask.flags = 0;
			}
			if (ask.type == WIRE_EXEC && rand_r(&seed) % 4) {
				some[0] = p.work;
				some[1] = some[2] = some[3] = fds[2];
				n = ask.flags & WIRE_ASK_TTY ? 1 : 4;
			}
			if (rand_r(&seed) % 40 == 0)
				n = 5;
			if (io_send_now(keeper_sock, &ask, sizeof(ask), some,
					n) == -EPIPE)
				break;
			if (i % 10 == 0)
				(void)usleep(3000);
			n_kept++;
		}
		prepared_done(&p);
		for (int i = 2; i < 6; i++)
			(void)close(fds[i]);
		(void)close(pair[1]);
		sessions_free(all);
		(void)waitpid(keeper_pid, &status, 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		CHECK_INT(count_groups(""), 0);
	}
	printf("# %d messages were taken\n", n_kept);
	CHECK(n_kept > 100);
	forget_runtime();
}

TAP_MAIN()
