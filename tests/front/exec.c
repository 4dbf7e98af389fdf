/* SPDX-License-Identifier: Apache-2.0 */

/* Programs in boxes, and where their output goes. */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "front/exec.h"
#include "fake.h"

#define SH(text)                                                               \
	(const char *const[])                                                  \
	{                                                                      \
		"sh", "-c", text, NULL                                         \
	}

static struct box *running(const char *name)
{
	struct box *b = fake_box(name, "sleep 60");

	CHECK_INT(fake_start(b), 0);
	return b;
}

struct started {
	bool is_done;
	struct err err;
};

static void on_started(void *arg, const struct err *err)
{
	struct started *s = arg;

	s->is_done = true;
	if (err)
		s->err = *err;
}

static int start(struct exec *e, struct bag *bag)
{
	struct started s = { 0 };
	struct sink sink = bag_sink(bag);

	(void)exec_start(e, bag ? &sink : NULL, bag ? &bag->feed : NULL,
			 on_started, &s);
	CHECK(fake_until(&s.is_done, 5000));
	fake_err = s.err;
	return s.err.code;
}

static struct exec_view look(const struct exec *e)
{
	struct exec_view v;

	exec_look(e, &v);
	return v;
}

TEST(e01_output_and_code)
{
	struct bag bag;
	struct box *b;
	struct exec *e;

	fake_begin();
	b = running("box");
	bag_init(&bag);
	e = fake_exec(b, SH("echo out; echo err >&2; exit 9"));
	CHECK(e && !look(e).is_started);
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 5000));
	/* at the end of the stream the code is known */
	CHECK(!look(e).is_running);
	CHECK_INT(look(e).exit_code, 9);
	CHECK_STR(look(e).cause, "exited");
	CHECK_INT(bag.n_out, 4);
	CHECK_INT(bag.n_err, 4);
	CHECK_INT(fake_count("run.start"), 2);
	CHECK_INT(fake_count("run.end"), 1);
	/* once is enough */
	CHECK_INT(start(e, &bag), MGR_HAS_RUN);
	CHECK_HAS(fake_err.text, "has already run");
	fake_end();
}

TEST(e02_input)
{
	struct bag bag;
	struct exec *e;

	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"), SH("cat; exit 2"));
	CHECK_INT(start(e, &bag), 0);
	CHECK_INT(feed_input(bag.feed, "hello", 5), 5);
	fake_turn(50);
	CHECK_STR(bag.out, "hello");
	feed_end_input(bag.feed);
	CHECK(fake_until(&bag.is_over, 5000));
	CHECK_INT(look(e).exit_code, 2);
	fake_end();
}

static bool may_write;

static void on_room(void *arg)
{
	(void)arg;
	may_write = true;
}

/* 8 MiB in, through a pipe that holds 64 KiB. */
TEST(e03_much_input)
{
	static char block[100000];
	size_t left = 8 << 20;
	struct bag bag;
	struct exec *e;

	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"), SH("wc -c"));
	CHECK_INT(start(e, &bag), 0);
	feed_on_input(bag.feed, on_room);
	while (left > 0) {
		size_t want = left < sizeof(block) ? left : sizeof(block);
		size_t n = feed_input(bag.feed, block, want);

		left -= n;
		may_write = n == want;
		if (!fake_until(&may_write, 5000))
			break;
	}
	CHECK_INT(left, 0);
	feed_end_input(bag.feed);
	CHECK(fake_until(&bag.is_over, 5000));
	CHECK_STR(bag.out, "8388608\n");
	fake_end();
}

/* A client that reads nothing stops the program, and costs no more memory. */
TEST(e04_back_pressure)
{
	struct bag bag;
	struct exec *e;
	uint64_t before;

	fake_begin();
	bag_init(&bag);
	bag.room = 1000;
	e = fake_exec(running("box"), SH("head -c 4000000 /dev/zero"));
	CHECK_INT(start(e, &bag), 0);
	fake_turn(300);
	before = look(e).out_bytes;
	CHECK(before < 400000);
	CHECK(e->buffered <= (256 << 10));
	CHECK(look(e).is_running);
	fake_turn(100);
	CHECK_INT(look(e).out_bytes, before);
	for (int i = 0; i < 10000 && !bag.is_over; i++) {
		bag.room = 100000;
		feed_ready(bag.feed);
		fake_turn(1);
	}
	CHECK(bag.is_over);
	CHECK_INT(bag.len, 4000000);
	CHECK_INT(look(e).exit_code, 0);
	fake_end();
}

/* A stalled client does not hide that the program has ended. */
TEST(e05_the_end_is_known_while_a_client_stalls)
{
	struct bag bag;
	struct exec *e;

	fake_begin();
	bag_init(&bag);
	bag.room = 0;
	e = fake_exec(running("box"), SH("head -c 200000 /dev/zero; exit 4"));
	CHECK_INT(start(e, &bag), 0);
	fake_turn(1500);
	CHECK(!bag.is_over);
	CHECK(!look(e).is_running);
	CHECK_INT(look(e).exit_code, 4);
	bag.room = SIZE_MAX;
	feed_ready(bag.feed);
	CHECK(fake_until(&bag.is_over, 5000));
	CHECK_INT(bag.len, 200000);
	fake_end();
}

/* One that holds the pipe does not hold up the end; it gets no SIGPIPE. */
TEST(e06_held_pipe)
{
	struct bag bag;
	struct exec *e;
	uint64_t ms;
	char path[100];
	char script[300];

	fake_begin();
	(void)snprintf(path, sizeof(path), "%s/alive", fake.dir);
	(void)snprintf(script, sizeof(script),
		       "(sleep 1; echo late; sleep 0.3; echo more && "
		       "touch %s) & echo now; exit 6",
		       path);
	bag_init(&bag);
	e = fake_exec(running("box"), SH(script));
	ms = uv_hrtime();
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 5000));
	ms = (uv_hrtime() - ms) / 1000000;
	CHECK(ms >= 240 && ms < 900);
	CHECK_STR(bag.out, "now\n");
	CHECK_INT(look(e).exit_code, 6);
	fake_turn(1600);
	CHECK_INT(look(e).dropped_bytes, 10);
	CHECK(access(path, F_OK) == 0);
	CHECK_INT(unlink(path), 0);
	fake_end();
}

/* One that never stops writing holds it up for two seconds at most. */
TEST(e07_noisy_survivor)
{
	struct bag bag;
	struct exec *e;
	uint64_t ms;

	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"),
		      SH("(while :; do echo x; sleep 0.05; done) & exit 0"));
	ms = uv_hrtime();
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 5000));
	ms = (uv_hrtime() - ms) / 1000000;
	CHECK(ms >= 1900 && ms < 3000);
	fake_end();
}

TEST(e08_detached_attached_killed)
{
	struct bag bag;
	struct sink sink = bag_sink(&bag);
	struct started killed = { 0 };
	struct exec *e;

	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"), SH("echo one; sleep 60"));
	CHECK_INT(start(e, NULL), 0);
	fake_turn(100);
	CHECK(look(e).is_running);
	bag.feed = exec_attach(e, &sink, &fake_err);
	CHECK(bag.feed);
	fake_turn(50);
	CHECK_STR(bag.out, "one\n");
	(void)exec_kill(e, SIGKILL, on_started, &killed);
	CHECK(fake_until(&killed.is_done, 5000));
	CHECK_INT(killed.err.code, 0);
	CHECK_INT(look(e).exit_code, 137);
	CHECK_STR(look(e).cause, "cancelled");
	CHECK(fake_until(&bag.is_over, 1000));
	fake_end();
}

/* Who attaches to one that has ended gets the last of it, and its end. */
TEST(e09_attach_after_the_end)
{
	struct bag bag;
	struct sink sink = bag_sink(&bag);
	struct exec *e;

	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"), SH("head -c 1000000 /dev/zero; echo z"));
	CHECK_INT(start(e, NULL), 0);
	fake_turn(300);
	CHECK(!look(e).is_running);
	CHECK(exec_attach(e, &sink, &fake_err));
	CHECK(fake_until(&bag.is_over, 1000));
	CHECK(bag.len > 100000 && bag.len <= (256 << 10));
	CHECK(bag.len && bag.out[bag.len - 2] == 'z');
	fake_end();
}

TEST(e10_disconnect)
{
	const char *command[] = { "sleep", "60", NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{}",
				 .command = command,
				 .kill_on_disconnect = true };
	struct bag bag;
	struct box *b;
	struct exec *e, *kept;

	fake_begin();
	bag_init(&bag);
	kept = fake_exec(running("box"), command);
	CHECK_INT(start(kept, &bag), 0);
	feed_drop(bag.feed);
	b = fake_box_of(&fake_alice, &want);
	CHECK_INT(fake_start(b), 0);
	e = fake_exec(b, command);
	CHECK_INT(start(e, &bag), 0);
	feed_drop(bag.feed);
	fake_turn(4000);
	CHECK(look(e).is_running);
	fake_turn(2000);
	CHECK(!look(e).is_running);
	CHECK_STR(look(e).cause, "cancelled");
	CHECK(look(kept).is_running);
	fake_end();
}

TEST(e11_timeout)
{
	struct exec_want w = { .command = SH("trap '' TERM; sleep 60"),
			       .stdout_ = true,
			       .timeout_us = 300000 };
	struct started made = { 0 };
	struct bag bag;
	struct exec *e;

	(void)w;
	(void)made;
	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"), w.command);
	e->timeout_us = w.timeout_us;
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 3000));
	CHECK_INT(look(e).exit_code, 124);
	CHECK_STR(look(e).cause, "timeout");
	fake_end();
}

TEST(e12_no_such_program)
{
	const char *command[] = { "/no/such", NULL };
	struct bag bag;
	struct exec *e;

	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"), command);
	CHECK_INT(start(e, &bag), MGR_NO_PROGRAM);
	CHECK_HAS(fake_err.text, "executable file not found");
	CHECK(fake_until(&bag.is_over, 1000));
	CHECK_INT(look(e).exit_code, 127);
	CHECK_STR(look(e).cause, "not_found");
	fake_end();
}

TEST(e13_refused_record)
{
	const char *command[] = { "true", NULL };
	struct bag bag;
	struct exec *e;

	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"), command);
	fake.refuse_records = true;
	CHECK_INT(start(e, &bag), MGR_SETUP);
	CHECK(fake_until(&bag.is_over, 1000));
	fake.refuse_records = false;
	fake_end();
}

TEST(e14_the_box_ends_under_it)
{
	struct bag bag;
	struct box *b;
	struct exec *e;

	fake_begin();
	bag_init(&bag);
	b = running("box");
	e = fake_exec(b, SH("echo here; sleep 60"));
	CHECK_INT(start(e, &bag), 0);
	fake_turn(100);
	(void)exec_ref(e);
	CHECK_INT(fake_stop(b, 0), 0);
	CHECK(fake_until(&bag.is_over, 1000));
	CHECK_STR(bag.out, "here\n");
	CHECK_INT(look(e).exit_code, 137);
	CHECK_INT(fake_count("run.start"), 2);
	CHECK_INT(fake_count("run.end"), 2);
	CHECK(!fake_exec(b, SH("true")));
	CHECK_INT(fake_err.code, MGR_NOT_RUNNING);
	exec_unref(e);
	fake_end();
}

TEST(e15_max_output)
{
	const char *command[] = { "sleep", "60", NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{}",
				 .command = command,
				 .exec_max_output = 1000 };
	struct bag bag;
	struct box *b;
	struct exec *e;

	fake_begin();
	bag_init(&bag);
	b = fake_box_of(&fake_alice, &want);
	CHECK_INT(fake_start(b), 0);
	e = fake_exec(b, SH("head -c 5000 /dev/zero"));
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 3000));
	CHECK_INT(bag.n_out, 1000);
	CHECK_HAS(bag.out + 1000, "4000 more bytes");
	CHECK_INT(look(e).exit_code, 0);
	fake_end();
}

TEST(e16_limit_of_programs)
{
	const char *command[] = { "sleep", "60", NULL };
	struct box *b;

	fake_begin();
	fake_crash();
	fake.limits.execs = 2;
	fake_open();
	b = running("box");
	CHECK(fake_exec(b, command));
	CHECK(fake_exec(b, command));
	CHECK(!fake_exec(b, command));
	CHECK_INT(fake_err.code, MGR_BUSY);
	fake_end();
}

/* Programs that nobody starts are bounded by number and by bytes. */
TEST(e25_held_for_one_user)
{
	static char big[100001];
	const char *command[] = { "true", big, NULL };
	const char *small[] = { "true", NULL };
	struct box *b, *c;
	int n = 0;

	memset(big, 'x', sizeof(big) - 1);
	fake_begin();
	fake_crash();
	fake.limits.bytes_a_peer = 2000000;
	fake.limits.execs_a_peer = 40;
	fake_open();
	b = running("one");
	while (n < 100 && fake_exec(b, command))
		n++;
	CHECK(n > 5 && n < 20);
	CHECK_INT(fake_err.code, MGR_BUSY);
	CHECK_HAS(fake_err.text, "held for this user");
	CHECK(fake.m->held_bytes <= 2000000);
	/* Nobody else is held up; and what is small still goes in. */
	c = fake_box_of(&fake_bob,
			&(struct box_want){ .face = "docker",
					    .settings = "{}",
					    .command = (const char *[]){
						    "sleep", "60", NULL } });
	CHECK(c);
	while (n < 100 && fake_exec(b, small))
		n++;
	CHECK_INT(n, 40);
	CHECK_INT(fake_err.code, MGR_BUSY);
	CHECK_HAS(fake_err.text, "40 programs of this user");
	/* A box that is removed takes all of it along. */
	CHECK_INT(fake_remove(b, true), 0);
	fake_turn(50);
	CHECK(fake.m->held_bytes < 20000);
	fake_end();
}

/* How it ended is told when its box is gone, to whose it was. */
TEST(e26_after_its_box)
{
	struct peer owner = { .uid = getuid(), .fd = -1 };
	struct peer other = { .uid = 4711, .fd = -1 };
	struct exec_view v;
	struct bag bag;
	struct box *b;
	char id[65], box[65];

	fake_begin();
	b = running("box");
	for (int i = 0; i < 2; i++) {
		struct exec *e = fake_exec(b, SH("exit 9"));

		bag_init(&bag);
		CHECK_INT(start(e, &bag), 0);
		CHECK(fake_until(&bag.is_over, 5000));
		memcpy(id, look(e).id, sizeof(id));
		e->owner = other.uid;
	}
	memcpy(box, b->id, sizeof(box));
	CHECK(!exec_look_past(fake.m, &owner, id, &v));
	CHECK_INT(fake_remove(b, true), 0);
	fake_turn(50);
	CHECK(!exec_by_id(fake.m, id));
	CHECK(exec_look_past(fake.m, &other, id, &v));
	CHECK_STR(v.id, id);
	CHECK_STR(v.box, box);
	CHECK_INT(v.exit_code, 9);
	CHECK(v.is_started && !v.is_running);
	CHECK_STR(v.command[0], "sh");
	other.uid = 4712;
	CHECK(!exec_look_past(fake.m, &other, id, &v));
	fake_end();
}

/* Of one user only the newest are kept. */
TEST(e27_past_is_bounded)
{
	struct peer owner = { .uid = 4711, .fd = -1 };
	struct exec_view v;
	struct bag bag;
	struct exec *e;
	char id[65];
	unsigned int n = 0;

	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"), SH("exit 0"));
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 5000));
	memcpy(id, e->id, sizeof(id));
	e->owner = owner.uid;
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(e->id, sizeof(e->id), "%064d", i);
		exec_past_add(e);
	}
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(e->id, sizeof(e->id), "%064d", i);
		n += exec_look_past(fake.m, &owner, e->id, &v);
	}
	CHECK_INT(n, 256);
	memcpy(e->id, id, sizeof(id));
	e->owner = getuid();
	fake_end();
}

/* While it is being started, too, nobody else starts it. */
TEST(e28_may_it_start)
{
	struct started first = { 0 };
	struct bag bag;
	struct sink sink;
	struct feed *feed = NULL;
	struct err err = { 0 };
	struct exec *e, *late;

	fake_begin();
	e = fake_exec(running("box"), SH("exit 3"));
	late = fake_exec(e->box, SH("exit 3"));
	bag_init(&bag);
	sink = bag_sink(&bag);
	CHECK_INT(exec_check_start(e, &err), 0);
	(void)exec_start(e, &sink, &bag.feed, on_started, &first);
	CHECK(bag.feed != NULL);
	CHECK_INT(exec_check_start(e, &err), -MGR_HAS_RUN);
	CHECK_HAS(err.text, "is already running");
	CHECK_INT(start(e, NULL), MGR_HAS_RUN);
	CHECK(fake_until(&bag.is_over, 5000));
	CHECK(first.is_done && first.err.code == 0);
	CHECK_INT(exec_check_start(e, &err), -MGR_HAS_RUN);
	CHECK_HAS(err.text, "has already run");
	/* One that is refused has no feed, and so no end. */
	fake_reload();
	fake_turn(50);
	CHECK_INT(exec_check_start(late, &err), -MGR_DENIED);
	(void)exec_start(late, &sink, &feed, on_started, &first);
	CHECK(!feed);
	fake_turn(50);
	CHECK_INT(first.err.code, MGR_DENIED);
	fake_end();
}

static char actions[1024];

static bool on_event(void *arg, const struct event *ev)
{
	(void)arg;
	(void)snprintf(actions + strlen(actions),
		       sizeof(actions) - strlen(actions), "%.9s ", ev->action);
	return true;
}

/* The memory is the box's, whoever used it up. */
TEST(e29_out_of_memory)
{
	struct box_view v;
	struct watch *w;
	struct bag bag;
	struct box *b;

	fake_begin();
	b = running("box");
	w = events_watch(fake.m, &fake_alice, 0, on_event, NULL);
	bag_init(&bag);
	fake_oom_kills = 1;
	CHECK_INT(start(fake_exec(b, SH("kill -9 $$")), &bag), 0);
	CHECK(fake_until(&bag.is_over, 5000));
	fake_oom_kills = 0;
	CHECK_STR(actions, "exec_crea exec_star oom exec_die ");
	box_look(b, &v);
	CHECK(v.oom_killed && v.state == BOX_RUNNING);
	/* its own end adds no other, and the next start forgets it */
	actions[0] = '\0';
	CHECK_INT(fake_stop(b, 1), 0);
	CHECK(!strstr(actions, "oom"));
	box_look(b, &v);
	CHECK(v.oom_killed);
	CHECK_INT(fake_start(b), 0);
	box_look(b, &v);
	CHECK(!v.oom_killed);
	events_unwatch(w);
	fake_end();
}

/* As if the front was killed, and another one came. */
static void open_again(void)
{
	fake_crash();
	fake_open();
	fake_turn(50);
}

/* How it ended is known to the next front, as long as its box is. */
TEST(e30_the_next_front)
{
	static const char *const command[] = { "sh", "-c", "exit 7 # \303\251",
					       NULL };
	struct exec_view v;
	struct bag bag;
	struct box *b;
	struct exec *e;
	char id[65], path[200];

	fake_begin();
	b = running("box");
	bag_init(&bag);
	e = fake_exec(b, command);
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 5000));
	memcpy(id, look(e).id, sizeof(id));
	(void)snprintf(path, sizeof(path), "%s/boxes/%s.execs", fake.dir,
		       b->id);
	CHECK_INT(access(path, F_OK), 0);
	open_again();
	CHECK(!exec_by_id(fake.m, id));
	CHECK(exec_look_past(fake.m, &fake_alice, id, &v));
	CHECK(v.is_started && !v.is_running);
	CHECK_INT(v.exit_code, 7);
	CHECK_STR(v.cause, "exited");
	CHECK_STR(v.command[2], command[2]);
	CHECK(!v.command[3] && v.finished_ns > v.started_ns);
	CHECK(exec_look_past(fake.m, &fake_root, id, &v));
	CHECK(!exec_look_past(fake.m, &fake_bob, id, &v));
	/* With the box it goes, but not at once; its file does. */
	b = box_find(fake.m, &fake_alice, "box", &fake_err);
	CHECK_STR(v.box, b->id);
	CHECK_INT(fake_remove(b, true), 0);
	fake_turn(50);
	CHECK(exec_look_past(fake.m, &fake_alice, id, &v));
	CHECK(!exec_look_past(fake.m, &fake_bob, id, &v));
	CHECK(access(path, F_OK) < 0);
	open_again();
	CHECK(!exec_look_past(fake.m, &fake_alice, id, &v));
	fake_end();
}

/* What is on disk has a bound, and what is torn does no harm. */
TEST(e31_notes_of_ends)
{
	struct exec_view v;
	struct stat st;
	struct bag bag;
	struct exec *e;
	struct box *b;
	char path[200], other[200];
	unsigned int n = 0;
	FILE *f;

	fake_begin();
	b = running("box");
	bag_init(&bag);
	e = fake_exec(b, SH("exit 0"));
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 5000));
	for (int i = 0; i < 2000; i++) {
		(void)snprintf(e->id, sizeof(e->id), "%064d", i);
		exec_note(e);
	}
	(void)snprintf(path, sizeof(path), "%s/boxes/%s.execs", fake.dir,
		       b->id);
	CHECK(stat(path, &st) == 0 && st.st_size <= 140000);
	/* one more, of many words: they are left out */
	(void)memset(e->id, 'a', 64);
	for (int i = 0; i < 2000; i++)
		CHECK_INT(strv_add(&e->command, "word"), 0);
	exec_note(e);
	f = fopen(path, "ae");
	(void)fputs("{\"id\":\"no\"}\n[]\n\n{\"id\":\"0000", f);
	(void)fclose(f);
	/* and one of a box that is not known */
	(void)snprintf(other, sizeof(other), "%s/boxes/%064d.execs", fake.dir,
		       1);
	f = fopen(other, "we");
	(void)fclose(f);
	open_again();
	CHECK(access(other, F_OK) < 0);
	CHECK(exec_look_past(fake.m, &fake_alice,
			     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			     &v));
	CHECK_STR(v.command[0], "sh");
	CHECK(!v.command[1]);
	for (int i = 0; i < 2000; i++) {
		char id[65];

		(void)snprintf(id, sizeof(id), "%064d", i);
		n += exec_look_past(fake.m, &fake_alice, id, &v);
		if (i == 1999)
			CHECK(exec_look_past(fake.m, &fake_alice, id, &v));
	}
	CHECK(n >= 100 && n <= 400);
	fake_end();
}

TEST(e17_terminal)
{
	struct exec_want w = { .command = SH("test -t 0 && echo yes; stty "
					     "size"),
			       .tty = true,
			       .rows = 33,
			       .cols = 77 };
	struct bag bag;
	struct exec *e;

	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"), w.command);
	e->tty = true;
	CHECK_INT(exec_resize(e, 33, 77, &fake_err), 0);
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 3000));
	CHECK_HAS(bag.out, "yes\r\n");
	fake_end();
}

/* Many at once, each with all of its output. */
TEST(e18_many)
{
	enum { N = 100 };
	static struct bag bags[N];
	static struct exec *v[N];
	struct box *b;

	fake_begin();
	b = running("box");
	for (int i = 0; i < N; i++) {
		bag_init(&bags[i]);
		v[i] = fake_exec(b, SH("echo x"));
		CHECK_INT(start(v[i], &bags[i]), 0);
	}
	for (int i = 0; i < N; i++) {
		CHECK(fake_until(&bags[i].is_over, 5000));
		CHECK_STR(bags[i].out, "x\n");
		CHECK_INT(look(v[i]).exit_code, 0);
	}
	CHECK_INT(fake_count("run.start"), N + 1);
	CHECK_INT(fake_count("run.end"), N);
	fake_end();
}

/* ---- shims ---- */

TEST(s01_times)
{
	static const struct {
		const char *text;
		int64_t us;
	} rows[] = {
		{ "60", 60000000 },   { "1s", 1000000 },
		{ "2m", 120000000 },  { "0.5", 500000 },
		{ "1h", 3600000000 }, { "1d", 86400000000 },
		{ "0", -1 },          { "-1", -1 },
		{ "x", -1 },          { "1x", -1 },
		{ "", -1 },           { "s", -1 },
		{ "1e3", -1 },        { "99999999999d", -1 },
		{ "-k", -1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t us = 0;
		bool is_one = shim_parse_time(rows[i].text, &us);

		CHECK(is_one == (rows[i].us >= 0));
		if (is_one)
			CHECK_INT(us, rows[i].us);
	}
}

TEST(s02_patterns)
{
	char stars[200], text[300];

	CHECK(shim_match("timeout 60 python x.py", "timeout 60 python x.py"));
	CHECK(shim_match("python x", "timeout 60 python x.py"));
	CHECK(shim_match("^timeout.*py$", "timeout 60 python x.py"));
	CHECK(shim_match("x\\.py", "timeout 60 python x.py"));
	CHECK(!shim_match("x\\.py", "timeout 60 python x_py"));
	CHECK(!shim_match("^python", "timeout 60 python x.py"));
	CHECK(!shim_match("sleep", "timeout 60 python x.py"));
	CHECK(shim_match("a*$", "bbb"));
	/* one that would take for ever matches nothing */
	stars[0] = '\0';
	for (int i = 0; i < 60; i++)
		(void)snprintf(stars + 3 * (size_t)i, 4, "a*b");
	(void)snprintf(stars + 180, 2, "c");
	(void)memset(text, 'a', 299);
	text[299] = '\0';
	CHECK(!shim_match(stars, text));
}

TEST(s03_timeout_kills)
{
	const char *command[] = { "timeout",
				  "1",
				  "sh",
				  "-c",
				  "trap '' TERM; echo part; sleep 60; sleep 60",
				  NULL };
	struct bag bag;
	struct exec *e;
	uint64_t ms;

	fake_begin();
	bag_init(&bag);
	e = fake_exec(running("box"), command);
	ms = uv_hrtime();
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 5000));
	ms = (uv_hrtime() - ms) / 1000000;
	CHECK(ms >= 1900 && ms < 3500);
	CHECK_STR(bag.out, "part\n");
	CHECK_INT(look(e).exit_code, 124);
	fake_end();
}

TEST(s04_no_timeout_in_the_box)
{
	const char *command[] = {
		"timeout", "1", "sh", "-c", "echo direct; sleep 60", NULL
	};
	const char *main[] = { "sleep", "60", NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{\"missing\":\"timeout\"}",
				 .command = main,
				 .shims = true };
	struct bag bag;
	struct box *b;
	struct exec *e;
	uint64_t ms;

	fake_begin();
	bag_init(&bag);
	b = fake_box_of(&fake_alice, &want);
	CHECK_INT(fake_start(b), 0);
	e = fake_exec(b, command);
	CHECK(e);
	ms = uv_hrtime();
	CHECK_INT(start(e, &bag), 0);
	CHECK(fake_until(&bag.is_over, 5000));
	ms = (uv_hrtime() - ms) / 1000000;
	CHECK(ms >= 900 && ms < 2500);
	CHECK_STR(bag.out, "direct\n");
	CHECK_INT(look(e).exit_code, 124);
	/* what the client asked for is what it sees */
	CHECK_STR(look(e).command[0], "timeout");
	fake_end();
}

TEST(s05_pkill)
{
	const char *victim[] = { "timeout", "60", "sleep", "61", NULL };
	const char *other[] = { "sleep", "62", NULL };
	const char *kill[] = { "pkill", "-f", "timeout 60 sleep 61", NULL };
	struct bag out, dead;
	struct exec *v, *o, *k;
	struct box *b;

	fake_begin();
	bag_init(&out);
	bag_init(&dead);
	b = running("box");
	v = fake_exec(b, victim);
	o = fake_exec(b, other);
	CHECK_INT(start(v, &dead), 0);
	CHECK_INT(start(o, NULL), 0);
	k = fake_exec(b, kill);
	CHECK_INT(start(k, &out), 0);
	CHECK(fake_until(&out.is_over, 3000));
	CHECK_INT(look(k).exit_code, 0);
	CHECK(!look(v).is_running);
	CHECK_STR(look(v).cause, "cancelled");
	CHECK(look(o).is_running);
	CHECK_INT(fake_count("decision"), 1);
	fake_end();
}

TEST(s06_pkill_of_nothing)
{
	const char *main[] = { "sleep", "60", NULL };
	const char *kill[] = { "pkill", "-f", "no such words anywhere", NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{\"missing\":\"pkill\"}",
				 .command = main,
				 .shims = true };
	struct bag out;
	struct exec *k;
	struct box *b;

	fake_begin();
	bag_init(&out);
	b = fake_box_of(&fake_alice, &want);
	CHECK_INT(fake_start(b), 0);
	k = fake_exec(b, kill);
	CHECK(k);
	CHECK_INT(start(k, &out), 0);
	CHECK(fake_until(&out.is_over, 3000));
	CHECK_INT(look(k).exit_code, 1);
	fake_end();
}

TAP_MAIN()
