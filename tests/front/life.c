/* SPDX-License-Identifier: Apache-2.0 */

/* The life of boxes, as the manager tells it. */

#include "tests/tap.h"

#include "base/buf.h"
#include "fake.h"

static struct box_view look(const struct box *b)
{
	struct box_view v;

	box_look(b, &v);
	return v;
}

TEST(f01_create_start_exit_wait)
{
	struct waited w;
	struct box *b;

	fake_begin();
	b = fake_box("one", "exit 7");
	CHECK(b);
	CHECK_INT(look(b).state, BOX_CREATED);
	fake_wait(&w, "one", WAIT_NEXT_EXIT);
	fake_turn(20);
	CHECK(!w.is_done);
	CHECK_INT(fake_walls, 1); /* built ahead */
	CHECK_INT(fake_start(b), 0);
	CHECK(fake_until(&w.is_done, 5000));
	CHECK_INT(w.code, 7);
	CHECK_STR(w.error, "");
	CHECK_INT(look(b).state, BOX_EXITED);
	CHECK_STR(look(b).cause, "exited");
	CHECK_INT(fake_count("run.start"), 1);
	CHECK_INT(fake_count("run.end"), 1);
	CHECK_HAS(fake.records[0], "run.start");
	CHECK_HAS(fake.records[1], "exited 7");
	CHECK_INT(fake_walls, 0);
	fake_end();
}

TEST(f02_nothing_starts_without_a_record)
{
	struct box *b;

	fake_begin();
	b = fake_box(NULL, "touch /tmp/cordon-front-must-not-be");
	fake.refuse_records = true;
	CHECK_INT(fake_start(b), MGR_SETUP);
	CHECK_HAS(fake_err.text, "record");
	CHECK(access("/tmp/cordon-front-must-not-be", F_OK) < 0);
	CHECK_INT(look(b).state, BOX_EXITED);
	CHECK_INT(look(b).exit_code, 128);
	fake.refuse_records = false;
	fake_end();
}

/* The end is told when it is on the disk, and not before. */
TEST(f03_the_end_waits_for_its_record)
{
	struct waited w;
	struct box *b;

	fake_begin();
	b = fake_box("one", "sleep 0.3; exit 0");
	CHECK_INT(fake_start(b), 0);
	fake.hold_records = true;
	fake_wait(&w, "one", WAIT_NOT_RUNNING);
	fake_turn(800);
	CHECK(!w.is_done);
	CHECK_INT(look(b).state, BOX_RUNNING);
	fake_answer_records();
	CHECK(fake_until(&w.is_done, 5000));
	CHECK_INT(look(b).state, BOX_EXITED);
	fake_end();
}

TEST(f04_removed_is_told_last_and_known_for_a_while)
{
	const char *command[] = { "sh", "-c", "exit 3", NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{}",
				 .name = "gone",
				 .command = command,
				 .auto_remove = true };
	struct waited exit, removed, late;
	char id[65];
	struct box *b;

	fake_begin();
	b = fake_box_of(&fake_alice, &want);
	(void)snprintf(id, sizeof(id), "%s", look(b).id);
	fake_wait(&removed, id, WAIT_REMOVED);
	fake_wait(&exit, id, WAIT_NEXT_EXIT);
	CHECK_INT(fake_start(b), 0);
	CHECK(fake_until(&removed.is_done, 5000));
	CHECK(exit.is_done);
	CHECK_INT(removed.code, 3);
	CHECK(!box_find(fake.m, &fake_alice, id, &fake_err));
	CHECK_INT(fake_err.code, MGR_NOT_FOUND);
	fake_wait(&late, id, WAIT_NOT_RUNNING);
	CHECK(fake_until(&late.is_done, 1000));
	CHECK_INT(late.code, 3);
	/* Its name may be another's by now. */
	CHECK(!box_wait(fake.m, &fake_alice, "gone", WAIT_REMOVED, NULL, NULL,
			&fake_err));
	CHECK_INT(fake_err.code, MGR_NOT_FOUND);
	CHECK_INT(fake_shelves, 0);
	fake_end();
}

TEST(f05_a_name_is_free_when_its_box_is_removed)
{
	struct box *b;

	fake_begin();
	b = fake_box("same", "sleep 60");
	CHECK_INT(fake_start(b), 0);
	CHECK(!fake_box("same", "true"));
	CHECK_INT(fake_err.code, MGR_NAME_TAKEN);
	CHECK_INT(fake_remove(b, false), MGR_IS_RUNNING);
	CHECK_INT(fake_remove(b, true), 0);
	CHECK(fake_box("same", "true"));
	fake_end();
}

TEST(f06_restart)
{
	struct waited w;
	struct box *b;

	fake_begin();
	b = fake_box("again", "echo round; exit 5");
	CHECK_INT(fake_start(b), 0);
	fake_wait(&w, "again", WAIT_NOT_RUNNING);
	CHECK(fake_until(&w.is_done, 5000));
	CHECK_INT(fake_start(b), 0);
	fake_wait(&w, "again", WAIT_NOT_RUNNING);
	CHECK(fake_until(&w.is_done, 5000));
	CHECK_INT(w.code, 5);
	CHECK_INT(fake_count("run.start"), 2);
	CHECK_INT(fake_count("run.end"), 2);
	/* two runs, two numbers */
	CHECK(strcmp(fake.records[0], fake.records[2]) != 0);
	fake_end();
}

TEST(f07_stop_by_signal)
{
	struct waited w;
	struct box *b;

	fake_begin();
	b = fake_box("ss", "sleep 60");
	CHECK_INT(fake_start(b), 0);
	CHECK_INT(fake_stop(b, 10), 0);
	CHECK_INT(look(b).exit_code, 143);
	CHECK_INT(fake_stop(b, 10), MGR_NOT_RUNNING);
	fake_wait(&w, "ss", WAIT_NOT_RUNNING);
	CHECK(fake_until(&w.is_done, 1000));
	CHECK_INT(w.code, 143);
	fake_end();
}

/* One that does not catch TERM is not waited for. */
TEST(f08_stop_of_a_deaf_one)
{
	uint64_t begin;
	struct box *b;

	fake_begin();
	fake_caught = 0;
	b = fake_box("deaf", "trap '' TERM; sleep 60 & wait; sleep 60");
	CHECK_INT(fake_start(b), 0);
	fake_turn(100);
	begin = uv_hrtime();
	CHECK_INT(fake_stop(b, 10), 0);
	CHECK((uv_hrtime() - begin) / 1000000 < 2000);
	CHECK_INT(look(b).exit_code, 137);
	CHECK_STR(look(b).cause, "cancelled");
	fake_end();
}

TEST(f09_stop_after_its_time)
{
	uint64_t ms;
	struct box *b;

	fake_begin();
	b = fake_box("slow", "trap 'sleep 60' TERM; sleep 60 & wait");
	CHECK_INT(fake_start(b), 0);
	fake_turn(100);
	ms = uv_hrtime();
	CHECK_INT(fake_stop(b, 1), 0);
	ms = (uv_hrtime() - ms) / 1000000;
	CHECK(ms >= 900 && ms < 3000);
	CHECK_INT(look(b).exit_code, 137);
	fake_end();
}

TEST(f10_no_program)
{
	const char *command[] = { "/no/such/program", NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{}",
				 .command = command,
				 .name = "none" };
	struct waited w;
	struct box *b;

	fake_begin();
	b = fake_box_of(&fake_alice, &want);
	fake_wait(&w, "none", WAIT_NEXT_EXIT);
	CHECK_INT(fake_start(b), MGR_NO_PROGRAM);
	CHECK_HAS(fake_err.text, "executable file not found");
	CHECK(fake_until(&w.is_done, 1000));
	CHECK_INT(w.code, 127);
	CHECK_HAS(w.error, "executable file not found");
	CHECK_INT(fake_count("run.end"), 1);
	CHECK_HAS(fake.records[1], "not_found 127");
	fake_end();
}

TEST(f11_no_wall)
{
	struct box *b;

	fake_begin();
	fake_no_walls = true;
	b = fake_box("ww", "true");
	CHECK(b);
	fake_turn(20);
	CHECK_INT(fake_start(b), MGR_SETUP);
	CHECK_HAS(fake_err.text, "no wall today");
	CHECK_HAS(look(b).error, "no wall today");
	CHECK_INT(fake_count("run.start"), fake_count("run.end"));
	CHECK_INT(fake_remove(b, false), 0);
	fake_end();
}

TEST(f12_refusals_keep_their_kind)
{
	static const struct {
		const char *settings;
		int code;
	} rows[] = {
		{ "{\"refuse\":\"denied\"}", MGR_DENIED },
		{ "{\"refuse\":\"image\"}", MGR_NO_IMAGE },
		/* A directory of the host is no box that was not found. */
		{ "{\"refuse\":\"dir\"}", MGR_SETUP },
		{ "{\"missing\":\"sh\"}", MGR_NO_PROGRAM },
	};
	const char *command[] = { "sh", NULL };

	fake_begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct box_want want = { .face = "docker",
					 .settings = rows[i].settings,
					 .command = command,
					 .name = "no" };
		struct box **list;

		CHECK(!fake_box_of(&fake_alice, &want));
		CHECK_INT(fake_err.code, rows[i].code);
		CHECK_INT(box_list(fake.m, &fake_root, &list), 0);
		free(list);
	}
	fake_end();
}

TEST(f13_others_see_nothing)
{
	struct box_view v;
	struct box **list;
	struct exec *e;
	struct box *b;
	const char *ls[] = { "ls", NULL };
	struct exec_view ev;

	fake_begin();
	b = fake_box("mine", "sleep 60");
	CHECK_INT(fake_start(b), 0);
	box_look(b, &v);
	e = fake_exec(b, ls);
	exec_look(e, &ev);
	CHECK(!box_find(fake.m, &fake_bob, "mine", &fake_err));
	CHECK_INT(fake_err.code, MGR_NOT_FOUND);
	CHECK(!box_find(fake.m, &fake_bob, v.id, &fake_err));
	CHECK(!exec_find(fake.m, &fake_bob, ev.id, &fake_err));
	CHECK_INT(box_list(fake.m, &fake_bob, &list), 0);
	free(list);
	CHECK(!box_wait(fake.m, &fake_bob, v.id, WAIT_REMOVED, NULL, NULL,
			&fake_err));
	CHECK(box_find(fake.m, &fake_root, "mine", &fake_err) == b);
	CHECK(exec_find(fake.m, &fake_root, ev.id, &fake_err) == e);
	/* nor do they learn of its name */
	CHECK(fake_box_of(&fake_bob, &(struct box_want){ .face = "docker",
							 .settings = "{}",
							 .command = ls,
							 .name = "mine" }));
	fake_end();
}

TEST(f14_finding)
{
	struct box *a, *b;
	char text[80];

	fake_begin();
	a = fake_box("first", "true");
	b = fake_box("second", "true");
	CHECK(box_find(fake.m, &fake_alice, "/first", &fake_err) == a);
	(void)snprintf(text, sizeof(text), "%.12s", look(b).id);
	CHECK(box_find(fake.m, &fake_alice, text, &fake_err) == b);
	CHECK(!box_find(fake.m, &fake_alice, "", &fake_err));
	CHECK_INT(fake_err.code, MGR_NOT_FOUND);
	for (int i = 0; i < 17; i++)
		CHECK(fake_box(NULL, "true"));
	/* seventeen ids have two that begin alike */
	text[1] = '\0';
	fake_err.code = 0;
	for (int i = 0; i < 16 && fake_err.code != MGR_AMBIGUOUS; i++) {
		text[0] = "0123456789abcdef"[i];
		(void)box_find(fake.m, &fake_alice, text, &fake_err);
	}
	CHECK_INT(fake_err.code, MGR_AMBIGUOUS);
	CHECK_INT(box_rename(a, "second", &fake_err), -MGR_NAME_TAKEN);
	CHECK_INT(box_rename(a, "-bad", &fake_err), -MGR_INVALID);
	CHECK_INT(box_rename(a, "third", &fake_err), 0);
	CHECK(box_find(fake.m, &fake_alice, "third", &fake_err) == a);
	fake_end();
}

/* Of names that several have, root's own is meant, or none. */
TEST(f32_a_name_of_several_users)
{
	static const char *const sleep[] = { "sleep", "60", NULL };
	const struct box_want want = { .face = "docker",
				       .settings = "{}",
				       .command = sleep,
				       .name = "dup" };
	struct box *alices, *own;

	fake_begin();
	alices = fake_box_of(&fake_alice, &want);
	CHECK(box_find(fake.m, &fake_root, "dup", &fake_err) == alices);
	CHECK(fake_box_of(&fake_bob, &want));
	fake_err.code = 0;
	CHECK(!box_find(fake.m, &fake_root, "dup", &fake_err));
	CHECK_INT(fake_err.code, MGR_AMBIGUOUS);
	CHECK_HAS(fake_err.text, "more than one user");
	CHECK(box_find(fake.m, &fake_alice, "dup", &fake_err) == alices);
	CHECK(box_find(fake.m, &fake_root, look(alices).id, &fake_err) ==
	      alices);
	own = fake_box_of(&fake_root, &want);
	CHECK(own && box_find(fake.m, &fake_root, "/dup", &fake_err) == own);
	fake_end();
}

static void on_made(void *arg, struct box *b, const struct err *err)
{
	(void)err;
	*(bool *)arg = b != NULL;
}

/* What has a name and what can be found are two things while it is made. */
TEST(f33_a_name_is_taken_before_its_box_is_made)
{
	static const char *const sleep[] = { "sleep", "60", NULL };
	const struct box_want want = { .face = "docker",
				       .settings = "{}",
				       .command = sleep,
				       .name = "dup" };
	bool is_made = false;

	fake_begin();
	CHECK(!box_name_holder(fake.m, fake_alice.uid, "dup"));
	(void)box_create(fake.m, &fake_alice, &want, on_made, &is_made);
	CHECK(!box_find(fake.m, &fake_alice, "dup", &fake_err));
	CHECK(box_name_holder(fake.m, fake_alice.uid, "dup"));
	CHECK(!box_name_holder(fake.m, fake_bob.uid, "dup"));
	CHECK(fake_until(&is_made, 5000));
	CHECK(box_find(fake.m, &fake_alice, "dup", &fake_err));
	fake_end();
}

TEST(f34_the_images_stop_signal)
{
	struct box_want want = { .face = "docker",
				 .settings = "{\"label\":[\"own=1\"]}",
				 .command = (const char *const[]){ "sleep", "9",
								   NULL },
				 .name = "s1" };
	struct box *b;

	fake_begin();
	fake.image_says = "{\"stop_signal\":\"SIGUSR1\"}";
	b = fake_box_of(&fake_alice, &want);
	CHECK_INT(look(b).stop_signal, SIGUSR1);
	CHECK_INT(fake_start(b), 0);
	CHECK_INT(fake_stop(b, 10), 0);
	CHECK_INT(look(b).exit_code, 128 + SIGUSR1);
	/* the request's comes first; nonsense is none */
	want.name = "s2";
	want.stop_signal = SIGINT;
	CHECK_INT(look(fake_box_of(&fake_alice, &want)).stop_signal, SIGINT);
	want.name = "s3";
	want.stop_signal = 0;
	fake.image_says = "{\"stop_signal\":\"SIGNOPE\"}";
	CHECK_INT(look(fake_box_of(&fake_alice, &want)).stop_signal, SIGTERM);
	fake.image_says = NULL;
	want.name = "s4";
	CHECK_INT(look(fake_box_of(&fake_alice, &want)).stop_signal, SIGTERM);
	fake_end();
}

static char labels[200];

static bool on_labels(void *arg, const struct event *e)
{
	(void)arg;
	(void)snprintf(labels, sizeof(labels), "%s", e->attributes);
	return true;
}

TEST(f35_the_images_labels_in_events)
{
	const struct box_want want = {
		.face = "docker",
		.settings = "{\"label\":[\"a=mine\",\"io.cordon.timeout=5\"]}",
		.command = (const char *const[]){ "sleep", "9", NULL },
		.name = "s1"
	};
	struct watch *w;

	fake_begin();
	fake.image_says = "{\"image_labels\":[\"a=its\",\"b=x=y\","
			  "\"io.cordon.policy=no\"]}";
	w = events_watch(fake.m, &fake_alice, 0, on_labels, NULL);
	CHECK(fake_box_of(&fake_alice, &want));
	CHECK_HAS(labels, "\"a\":\"mine\"");
	CHECK_HAS(labels, "\"b\":\"x=y\"");
	CHECK_HAS(labels, "io.cordon.timeout");
	CHECK(!strstr(labels, "io.cordon.policy"));
	events_unwatch(w);
	fake_end();
}

TEST(f15_lost_is_told_once)
{
	const char *command[] = { "sleep", "60", NULL };
	struct box_want rm = { .face = "docker",
			       .settings = "{}",
			       .name = "rm",
			       .command = command,
			       .auto_remove = true };
	struct box *b;
	struct box_view v;

	fake_begin();
	b = fake_box("kept", "sleep 60");
	CHECK_INT(fake_start(b), 0);
	CHECK(fake_exec(b, command));
	b = fake_box_of(&fake_alice, &rm);
	CHECK_INT(fake_start(b), 0);
	CHECK(fake_box("made", "true"));
	CHECK_INT(fake_count("run.end"), 0);
	fake_crash();
	fake_open();
	fake_turn(50);
	CHECK_INT(fake_count("run.end"), 2);
	b = box_find(fake.m, &fake_alice, "kept", &fake_err);
	CHECK(b);
	if (b) {
		box_look(b, &v);
		CHECK_INT(v.state, BOX_EXITED);
		CHECK_STR(v.cause, "lost");
		CHECK_STR(v.error, "lost: the daemon ended");
	}
	CHECK(!box_find(fake.m, &fake_alice, "rm", &fake_err));
	b = box_find(fake.m, &fake_alice, "made", &fake_err);
	CHECK(b && look(b).state == BOX_CREATED);
	fake_crash();
	fake_open();
	fake_turn(50);
	CHECK_INT(fake_count("run.end"), 2);
	CHECK(box_find(fake.m, &fake_alice, "kept", &fake_err));
	fake_end();
}

static size_t n_ends(const char *run)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "run.end %s", run);
	return fake_count(text);
}

/* A front that is killed after this, and what the next one makes of it. */
static struct box *after_a_crash(const char *name)
{
	fake_crash();
	fake.hold_records = fake.lose_records = false;
	fake_open();
	fake_turn(50);
	return box_find(fake.m, &fake_alice, name, &fake_err);
}

/* The clerk has written its end, and we have not heard of it. */
TEST(f25_an_end_of_which_only_the_news_were_lost)
{
	struct box *b;
	char run[33];

	fake_begin();
	b = fake_box("over", "sleep 0.1; exit 5");
	CHECK_INT(fake_start(b), 0);
	(void)snprintf(run, sizeof(run), "%s", look(b).run);
	fake.hold_records = true;
	fake_turn(400);
	CHECK_INT(n_ends(run), 1);
	CHECK_INT(look(b).state, BOX_RUNNING);
	b = after_a_crash("over");
	CHECK(b);
	CHECK_INT(n_ends(run), 1);
	CHECK_INT(look(b).state, BOX_EXITED);
	CHECK_INT(look(b).exit_code, 5);
	CHECK_STR(look(b).cause, "exited");
	CHECK(!look(b).error);
	CHECK_INT(fake.n_settled, 1);
	/* And that is all that a third one hears of it. */
	b = after_a_crash("over");
	CHECK_INT(n_ends(run), 1);
	CHECK_INT(look(b).exit_code, 5);
	CHECK_INT(fake.n_settled, 1);
	fake_end();
}

/* The same of the end that tells that it was lost; and it was not sent. */
TEST(f26_lost_is_told_once_whoever_dies)
{
	struct box *b;
	char run[33];

	fake_begin();
	b = fake_box("kept", "sleep 60");
	CHECK_INT(fake_start(b), 0);
	(void)snprintf(run, sizeof(run), "%s", look(b).run);
	/* One dies before the clerk writes, one before it hears. */
	fake_crash();
	fake.lose_records = true;
	fake_open();
	fake_turn(50);
	CHECK_INT(n_ends(run), 0);
	fake_crash();
	fake.lose_records = false;
	fake.hold_records = true;
	fake_open();
	fake_turn(50);
	CHECK_INT(n_ends(run), 1);
	b = after_a_crash("kept");
	CHECK_INT(n_ends(run), 1);
	CHECK_STR(look(b).cause, "lost");
	CHECK_INT(look(b).exit_code, 125);
	CHECK_INT(look(b).state, BOX_EXITED);
	fake_end();
}

/* A start that is not known to be on the ledger. */
TEST(f27_a_start_that_was_not_answered)
{
	struct box *b;
	char run[33];

	fake_begin();
	fake_alice.uid = getuid();
	b = fake_box("half", "exit 4");
	(void)snprintf(run, sizeof(run), "%s", look(b).run);
	fake.lose_records = true;
	call_drop(box_start(b, NULL, NULL));
	fake_turn(50);
	b = after_a_crash("half");
	CHECK_INT(n_ends(run), 0); /* it has no start */
	CHECK_INT(look(b).state, BOX_CREATED);
	/* Its number is used up all the same, since the next one is not sure */
	fake.hold_records = true;
	call_drop(box_start(b, NULL, NULL));
	fake_turn(50);
	CHECK(strcmp(look(b).run, run) != 0);
	(void)snprintf(run, sizeof(run), "%s", look(b).run);
	CHECK_INT(n_ends(run), 0);
	(void)after_a_crash("half");
	fake_turn(50);
	CHECK_INT(fake_count("run.start"), 1);
	CHECK_INT(fake_count("run.end"), 1);
	fake_end();
}

/* A clerk that dies takes us with it; nothing is told that was not recorded. */
TEST(f28_the_clerk_is_gone)
{
	struct waited w;
	struct box *b;
	char run[33];

	fake_begin();
	b = fake_box("over", "sleep 0.1; exit 5");
	CHECK_INT(fake_start(b), 0);
	(void)snprintf(run, sizeof(run), "%s", look(b).run);
	fake.lose_records = true;
	fake_wait(&w, "over", WAIT_NOT_RUNNING);
	(void)uv_poll_stop(&fake.polls[1]);
	(void)shutdown(fake.clerk, SHUT_RDWR);
	fake_turn(400);
	CHECK(!w.is_done);
	b = after_a_crash("over");
	CHECK_INT(n_ends(run), 1);
	CHECK_STR(look(b).cause, "lost");
	fake_end();
}

/* Its owner can start it again, with a new run; root cannot for him. */
TEST(f16_start_after_a_restart_of_the_daemon)
{
	struct box *b;

	fake_begin();
	/* the kernel says that we ourselves are at the other end */
	fake_alice.uid = getuid();
	CHECK(fake_box("kept", "exit 4"));
	fake_crash();
	fake_open();
	b = box_find(fake.m, &fake_alice, "kept", &fake_err);
	CHECK(b);
	CHECK_INT(fake_start(b), 0);
	fake_turn(100);
	CHECK_INT(look(b).exit_code, 4);
	fake_end();
}

TEST(f17_pause)
{
	const char *ls[] = { "ls", NULL };
	bool done = false;
	struct box *b;

	fake_begin();
	b = fake_box("pp", "sleep 60");
	CHECK_INT(fake_start(b), 0);
	(void)done;
	call_drop(box_pause(b, true, NULL, NULL));
	CHECK_INT(look(b).state, BOX_PAUSED);
	CHECK(!fake_exec(b, ls));
	CHECK_INT(fake_err.code, MGR_PAUSED);
	CHECK_HAS(fake_err.text, "is paused");
	CHECK_INT(fake_stop(b, 10), 0);
	CHECK_INT(look(b).state, BOX_EXITED);
	fake_end();
}

TEST(f18_idle_and_life)
{
	const char *command[] = { "sleep", "60", NULL };
	struct box_want want = { .face = "own",
				 .settings = "{}",
				 .command = command,
				 .idle_us = 200000 };
	struct box *b, *c;

	fake_begin();
	b = fake_box_of(&fake_alice, &want);
	want.idle_us = 0;
	want.life_us = 300000;
	want.has_no_main = true;
	c = fake_box_of(&fake_alice, &want);
	CHECK_INT(fake_start(b), 0);
	CHECK_INT(fake_start(c), 0);
	fake_turn(100);
	CHECK_INT(look(b).state, BOX_RUNNING);
	CHECK_INT(look(c).state, BOX_RUNNING);
	fake_turn(900);
	CHECK_INT(look(b).state, BOX_EXITED);
	CHECK_INT(look(c).state, BOX_EXITED);
	CHECK_INT(fake_count("run.start"), 1); /* nothing ran in c */
	fake_end();
}

TEST(f19_busy)
{
	struct box *v[6];
	struct waited w;
	bool done = false;

	(void)done;
	fake_begin();
	fake_end();
	(void)memset(&fake, 0, sizeof(fake));
	fake_begin();
	fake_crash();
	fake.limits.boxes = 2;
	fake.limits.waiting = 1;
	fake.limits.wait_us = 300000;
	fake_open();
	for (int i = 0; i < 5; i++)
		CHECK((v[i] = fake_box(NULL, "sleep 60")));
	CHECK_INT(fake_walls, 2);
	CHECK_INT(fake_start(v[0]), 0);
	CHECK_INT(fake_start(v[1]), 0);
	/* waits, and then there is no room */
	CHECK_INT(fake_start(v[2]), MGR_BUSY);
	CHECK_HAS(fake_err.text, "within 300 ms: 2 boxes are alive");
	CHECK_HAS(fake_err.text, "--max-boxes");
	/* waits, and is let in */
	fake.limits.wait_us = 5000000;
	call_drop(box_start(v[3], NULL, NULL));
	CHECK_INT(fake_start(v[4]), MGR_BUSY); /* nobody more may wait */
	CHECK_HAS(fake_err.text, "limit");
	fake_wait(&w, look(v[0]).id, WAIT_NOT_RUNNING);
	CHECK_INT(fake_stop(v[0], 0), 0);
	fake_turn(100);
	CHECK_INT(look(v[3]).state, BOX_RUNNING);
	CHECK_INT(fake_walls, 2);
	fake_end();
}

/* The text says whose limit it is. */
TEST(f29_busy_for_one_user)
{
	struct box *v[2];

	fake_begin();
	fake_crash();
	fake.limits.boxes_a_peer = 1;
	fake.limits.wait_us = 100000;
	fake_open();
	for (int i = 0; i < 2; i++)
		CHECK((v[i] = fake_box(NULL, "sleep 60")));
	CHECK_INT(fake_start(v[0]), 0);
	CHECK_INT(fake_start(v[1]), MGR_BUSY);
	CHECK_HAS(fake_err.text, "of this user are alive");
	fake_end();
}

/* Walls that were built ahead make room for who wants to run something. */
TEST(f20_room_is_made)
{
	struct box *v[3];

	fake_begin();
	fake_crash();
	fake.limits.boxes = 2;
	fake_open();
	for (int i = 0; i < 3; i++)
		CHECK((v[i] = fake_box(NULL, "sleep 60")));
	CHECK_INT(fake_start(v[2]), 0);
	CHECK_INT(fake_start(v[1]), 0);
	CHECK_INT(fake_walls, 2);
	CHECK_INT(look(v[0]).state, BOX_CREATED);
	fake_end();
}

/* Made under one policy, started under another; read again in between. */
static void start_reloaded(bool has_no_main)
{
	const char *const command[] = { "sh", "-c", "sleep 60", NULL };
	const struct box_want w = { .face = "test",
				    .settings = "{}",
				    .command = has_no_main ? NULL : command,
				    .has_no_main = has_no_main,
				    .stop_timeout_s = -1 };
	struct box *b = fake_box_of(&fake_root, &w);
	int before;

	CHECK(b != NULL);
	fake_reload();
	fake_turn(50);
	before = fake.n_prepares;
	fake.reloads = 1;
	CHECK_INT(fake_start(b), 0);
	CHECK_INT(fake.n_prepares - before, 2);
	/* What runs is left alone. */
	fake_reload();
	fake_turn(50);
	CHECK_INT(look(b).state, BOX_RUNNING);
	CHECK_INT(fake.n_prepares - before, 2);
}

TEST(f31_the_policy_of_the_moment_it_starts)
{
	fake_begin();
	start_reloaded(false);
	start_reloaded(true);
	fake_end();
}

TEST(f21_drain)
{
	struct box *b;

	fake_begin();
	b = fake_box("aa", "sleep 60");
	CHECK_INT(fake_start(b), 0);
	CHECK(fake_box("bb", "true"));
	fake_end(); /* aborts if something is left */
	CHECK_INT(fake_walls, 0);
}

static size_t n_events;
static char seen[4096];

static bool on_event(void *arg, const struct event *e)
{
	(void)arg;
	n_events++;
	(void)snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s ",
		       e->action);
	return true;
}

TEST(f22_events)
{
	struct watch *w, *other;
	struct waited wait;
	struct box *b;

	fake_begin();
	w = events_watch(fake.m, &fake_alice, 0, on_event, NULL);
	b = fake_box("ee", "exit 1");
	CHECK_INT(fake_start(b), 0);
	fake_wait(&wait, "ee", WAIT_NOT_RUNNING);
	CHECK(fake_until(&wait.is_done, 5000));
	CHECK_INT(fake_remove(b, false), 0);
	CHECK_STR(seen, "create start die destroy ");
	events_unwatch(w);
	n_events = 0;
	seen[0] = '\0';
	other = events_watch(fake.m, &fake_bob, 1, on_event, NULL);
	CHECK_INT(n_events, 0);
	events_unwatch(other);
	w = events_watch(fake.m, &fake_root, 1, on_event, NULL);
	CHECK_INT(n_events, 4);
	events_unwatch(w);
	fake_end();
}

static char attributes[1 << 17];

static bool on_attributes(void *arg, const struct event *e)
{
	(void)arg;
	(void)snprintf(attributes, sizeof(attributes), "%s", e->attributes);
	return true;
}

/* Long names too; what is too much is left out, and not all of them. */
TEST(f22_labels_of_events)
{
	static const char *const command[] = { "true", NULL };
	struct watch *w;
	struct buf s;

	buf_init(&s, 1 << 20);
	(void)buf_puts(&s, "{\"label\":[\"");
	for (int i = 0; i < 300; i++)
		(void)buf_puts(&s, "n");
	(void)buf_puts(&s, "=long\"");
	for (int k = 0; k < 12; k++) {
		(void)buf_printf(&s, ",\"k%d=", k);
		for (int i = 0; i < 3000; i++)
			(void)buf_puts(&s, "v");
		(void)buf_puts(&s, "\"");
	}
	(void)buf_puts(&s, ",\"last=one\"]}");
	fake_begin();
	w = events_watch(fake.m, &fake_alice, 0, on_attributes, NULL);
	CHECK(fake_box_of(&fake_alice,
			  &(struct box_want){ .face = "docker",
					      .settings = s.data,
					      .name = "ll",
					      .command = command,
					      .stop_timeout_s = -1 }));
	CHECK_HAS(attributes, "nnn\":\"long\"");
	CHECK_HAS(attributes, "\"k9\"");
	CHECK(!strstr(attributes, "\"k10\"") && !strstr(attributes, "\"k11\""));
	CHECK_HAS(attributes, "\"last\":\"one\"");
	events_unwatch(w);
	fake_end();
	buf_done(&s);
}

static size_t may_take;

static bool on_paced(void *arg, const struct event *e)
{
	(void)arg;
	(void)e;
	if (may_take == 0)
		return false;
	may_take--;
	n_events++;
	return true;
}

/* What a watcher does not take waits for it, while it is known at all. */
TEST(f22_events_are_paced)
{
	struct watch *w;

	fake_begin();
	CHECK(fake_box("pp", "true"));
	for (int i = 0; i < 9; i++)
		events_tell(fake.m, &(struct event){ .type = "container",
						     .action = "x",
						     .id = "y" });
	may_take = 3;
	w = events_watch(fake.m, &fake_root, 1, on_paced, NULL);
	CHECK_INT(n_events, 3);
	events_tell(fake.m,
		    &(struct event){ .type = "a", .action = "b", .id = "c" });
	CHECK_INT(events_resume(w), 0);
	may_take = 100;
	CHECK_INT(n_events, 3);
	CHECK_INT(events_resume(w), 1);
	CHECK_INT(n_events, 11);
	may_take = 0;
	for (int i = 0; i < 1001; i++)
		events_tell(fake.m, &(struct event){ .type = "a",
						     .action = "b",
						     .id = "c" });
	CHECK_INT(events_resume(w), -ENOENT);
	events_unwatch(w);
	fake_end();
}

/* Nothing is told before its volumes were looked at. */
TEST(f23_swept_before_its_end)
{
	struct waited w;
	struct box *b;

	fake_begin();
	fake.has_watches = true;
	fake.violation = "violation: a name";
	fake.n_sweeps = 0;
	b = fake_box("swept", "exit 4");
	CHECK_INT(fake_start(b), 0);
	fake_wait(&w, "swept", WAIT_NOT_RUNNING);
	CHECK(fake_until(&w.is_done, 5000));
	CHECK_INT(fake.n_sweeps, 1);
	CHECK_HAS(fake.records[fake.n_records - 1],
		  "exited 4 violation: a name");
	CHECK_HAS(look(b).warnings, "violation: a name");
	/* A sweep that fails is told, and ends the box as well. */
	fake.violation = NULL;
	CHECK_INT(fake_start(b), 0);
	fake_wait(&w, "swept", WAIT_NOT_RUNNING);
	CHECK(fake_until(&w.is_done, 5000));
	CHECK_INT(fake.n_sweeps, 2);
	CHECK_HAS(fake.records[fake.n_records - 1],
		  "could not be looked for: the preparer died");
	fake.has_watches = false;
	fake_end();
}

/* Volumes of one that an earlier daemon had are looked at by the next one. */
TEST(f24_lost_is_swept_late)
{
	struct box *b;

	fake_begin();
	fake.has_watches = true;
	fake.violation = "violation: a name";
	fake.n_sweeps = 0;
	b = fake_box("gone", "sleep 60");
	CHECK_INT(fake_start(b), 0);
	b = after_a_crash("gone");
	CHECK_INT(fake.n_sweeps, 1);
	CHECK_INT(fake.n_late, 1);
	CHECK_HAS(fake.records[fake.n_records - 1],
		  "lost 125 violation: a name");
	CHECK_HAS(look(b).warnings, "violation: a name");
	/* Once. */
	(void)after_a_crash("gone");
	CHECK_INT(fake.n_sweeps, 1);
	fake.has_watches = false;
	fake_end();
}

/* One that cannot be looked at is told, and has an end all the same. */
TEST(f30_lost_and_not_swept)
{
	struct box *b;

	fake_begin();
	fake.has_watches = true;
	fake.violation = NULL;
	b = fake_box("gone", "sleep 60");
	CHECK_INT(fake_start(b), 0);
	b = after_a_crash("gone");
	CHECK_HAS(fake.records[fake.n_records - 1],
		  "could not be looked for: the preparer died");
	CHECK_INT(look(b).state, BOX_EXITED);
	fake.has_watches = false;
	fake_end();
}

TAP_MAIN()
