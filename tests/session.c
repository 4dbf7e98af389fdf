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

/* More than the box has. */
#define EAT "dd if=/dev/zero of=/dev/null bs=400M count=1"

/*
 * Begun, and now only waiting: beside a program that runs, nobody is told to
 * have been killed for memory, since that one could have done it.
 */
static void at_rest(const struct ran *r)
{
	CHECK(WAIT_FOR(r->started, 5000));
	(void)WAIT_FOR(false, 300);
}

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
	/* The kernel says EACCES of it too. */
	r = start_in(b, NOT_HOW, "/tmp", NULL);
	CHECK(WAIT_FOR(is_over(r), 5000));
	CHECK_INT(r->outcome.exec_errno, EISDIR);
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
	CHECK_INT(exit_of(run_sh(b, "(setsid sleep 0.3 >/dev/null 2>&1 &)")),
		  0);
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
	CHECK(later.memory >= u.memory + (16 << 20));
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

/* A program may be several blocks of code, one after the other. */
TEST(s13_blocks_of_code)
{
	const struct how on = { .settings = "continue-on-error=true" };
	const struct how brief = {
		.settings = "timeout=400ms total-timeout=400ms"
	};
	struct box_s *b;
	struct ran *r;
	struct ran *other;

	begin();
	b = open_one("");
	other = start_in(b, NOT_HOW, "sleep", "30", NULL);
	r = start_in(b, NOT_HOW, "@sh", "echo one", "@sh",
		     "echo two; (sleep 20 &); exit 3", "@sh", "echo three",
		     NULL);
	CHECK(WAIT_FOR(r->ended, 20000));
	CHECK_STR(r->out, "one\ntwo\n");
	CHECK_INT(exit_of(r), 3);
	CHECK_INT(r->outcome.step, 1);
	CHECK(r->started);
	r = start_in(b, &on, "@sh", "exit 3", "@sh", "echo three", NULL);
	CHECK(WAIT_FOR(is_over(r), 20000));
	CHECK_STR(r->out, "three\n");
	CHECK_INT(exit_of(r), 0);
	/* A signal for it reaches what runs. */
	r = start_in(b, NOT_HOW, "@sh",
		     "trap 'echo got; exit 5' TERM; echo up; "
		     "while :; do sleep 0.05; done",
		     "@sh", "echo never", NULL);
	CHECK(WAIT_FOR(strstr(r->out, "up"), 20000));
	(void)session_signal(b->s, r->number, SIGTERM);
	CHECK(WAIT_FOR(is_over(r), 20000));
	CHECK_STR(r->out, "up\ngot\n");
	CHECK_INT(exit_of(r), 5);
	/* Its time ends all of it, and nothing else. */
	r = start_in(b, &brief, "@sh", "true", "@sh", "sleep 30", NULL);
	CHECK(WAIT_FOR(is_over(r), 20000));
	CHECK_INT(r->outcome.end, WIRE_BY_TOTAL);
	CHECK(!other->ended);
	close_one(b, false);
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
	at_rest(r);
	eater = start_in(b, NOT_HOW, "dd", "if=/dev/zero", "of=/dev/null",
			 "bs=400M", "count=1", NULL);
	CHECK(WAIT_FOR(eater->ended, 20000));
	CHECK_INT(exit_of(eater), 1000 + SIGKILL);
	CHECK(eater->outcome.oom_kills > 0);
	CHECK(!r->ended);
	/* That kill was the eater's, and is nobody else's. */
	(void)session_signal(b->s, r->number, SIGKILL);
	CHECK(WAIT_FOR(r->ended, 5000));
	CHECK_INT(exit_of(r), 1000 + SIGKILL);
	CHECK_INT((long long)r->outcome.oom_kills, 0);
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

/* Its processes count until they are reaped, which may be after that. */
TEST(s_a_killed_crowd_makes_room)
{
	struct box_s *b;

	begin();
	if (best_effort)
		SKIP("no group that this user may use");
	b = open_one("pids=64");
	for (int i = 0; i < 30; i++) {
		struct ran *crowd = start_in(
			b, NOT_HOW, "sh", "-c",
			"f() { f | f & }; f 2>/dev/null; wait; sleep 100",
			NULL);

		CHECK(WAIT_FOR(crowd->started, 5000));
		(void)WAIT_FOR(false, 50);
		(void)session_kill_exec(b->s, crowd->number);
		CHECK(WAIT_FOR(crowd->ended, 10000));
		CHECK_INT(exit_of(run_sh(b, "exit 3")), 3);
	}
	close_one(b, false);
	stop_keeper();
}

/* Three at once: who is killed for memory is told so, and nobody else. */
TEST(s_oom_is_blamed_on_who_was_killed)
{
	const struct how how = { .input = true };
	struct ran *eater, *shot, *shell, *quiet;
	struct box_s *b;

	begin();
	if (best_effort)
		SKIP("no group that this user may use");
	b = open_one("memory=128m");
	shot = start_in(b, &how, "sh", "-c", "read x; kill -9 $$", NULL);
	quiet = start_in(b, &how, "sh", "-c", "read x; exit 137", NULL);
	at_rest(shot);
	at_rest(quiet);
	eater = start_in(b, NOT_HOW, "sh", "-c", "exec " EAT, NULL);
	CHECK(WAIT_FOR(eater->ended, 20000));
	CHECK(eater->outcome.oom_kills > 0);
	/* Both lived while it was killed, and end as if they had been. */
	CHECK(write(shot->in, "\n", 1) == 1);
	CHECK(write(quiet->in, "\n", 1) == 1);
	CHECK(WAIT_FOR(shot->ended && quiet->ended, 5000));
	CHECK_INT(exit_of(shot), 1000 + SIGKILL);
	CHECK_INT(exit_of(quiet), 137);
	CHECK_INT((long long)shot->outcome.oom_kills, 0);
	CHECK_INT((long long)quiet->outcome.oom_kills, 0);
	/* The control: a shell whose command was killed has its kill. */
	shell = start_in(b, NOT_HOW, "sh", "-c", EAT "; exit $?", NULL);
	CHECK(WAIT_FOR(shell->ended, 20000));
	CHECK_INT(exit_of(shell), 137);
	CHECK(shell->outcome.oom_kills > 0);
	close_one(b, false);
	stop_keeper();
}

/* One lets a child be killed for memory, and kills another program then. */
TEST(s_oom_is_not_blamed_on_who_was_shot)
{
	const struct how how = { .input = true };
	struct ran *shot, *shell, *forger, *alone;
	struct box_s *b;

	begin();
	if (best_effort)
		SKIP("no group that this user may use");
	b = open_one("memory=128m");
	forger = start_in(b, &how, "sh", "-c",
			  "read x; " EAT "; echo $?; kill -9 $x; read x", NULL);
	at_rest(forger);
	shot = start_in(b, NOT_HOW, "sh", "-c", "echo $$; exec sleep 100",
			NULL);
	shell = start_in(b, NOT_HOW, "sh", "-c",
			 "sleep 100 & echo $!; wait $!; exit $?", NULL);
	at_rest(shot);
	at_rest(shell);
	CHECK(atoi(shot->out) > 1 && atoi(shell->out) > 1);
	CHECK(dprintf(forger->in, "%d %d\n", atoi(shot->out),
		      atoi(shell->out)) > 0);
	CHECK(WAIT_FOR(shot->ended && shell->ended, 20000));
	CHECK_HAS(forger->out, "137"); /* there was a kill */
	CHECK_INT(exit_of(shot), 1000 + SIGKILL);
	CHECK_INT(exit_of(shell), 137);
	CHECK_INT((long long)shot->outcome.oom_kills, 0);
	CHECK_INT((long long)shell->outcome.oom_kills, 0);
	CHECK(!forger->ended);
	/* The control: while it only waits, what is killed is told so. */
	at_rest(forger);
	alone = start_in(b, NOT_HOW, "sh", "-c", "exec " EAT, NULL);
	CHECK(WAIT_FOR(alone->ended, 20000));
	CHECK_INT(exit_of(alone), 1000 + SIGKILL);
	CHECK(alone->outcome.oom_kills > 0);
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
	CHECK(!strstr(r->out, "1 "));
	CHECK_HAS(r->out, "self mem");
	CHECK_HAS(r->out, "self environ");
	CHECK_HAS(r->out, "self fd");
	close_one(b, false);
	stop_keeper();
}

TEST(s22_posture_is_that_of_a_run)
{
	const char *look =
		"grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups|Uid|Gid)' "
		"/proc/self/status; ls /proc/self/fd | wc -l; "
		"cat /proc/self/oom_score_adj; ulimit -a; "
		"readlink /proc/self/cwd; "
		"cat /proc/self/mounts | "
		"grep -v -e devpts -e /dev/tty | cut -d' ' -f2,3 | sort; "
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

/* The groups of a keeper that was killed are the next one's to remove. */
static void sweep_by_another(void)
{
	start_keeper();
	close_one(open_one(""), false);
	sessions_free(all);
	(void)waitpid(keeper_pid, NULL, 0);
	CHECK_STR(first_in("keepers"), "");
	forget_runtime();
}

#include "session-written.h"

#include "session-peer.h"

#include "session-users.h"

#include "session-end.h"
#include "session-ahead.h"
#include "session-forged.h"
#include "session-kept.h"

TAP_MAIN()
