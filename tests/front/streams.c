/* SPDX-License-Identifier: Apache-2.0 */

/* The main program's output: the log, those who are attached, lines. */

#include "tests/tap.h"

#include <stdint.h>

#include "front/front.h"
#include "fake.h"

static struct feed *attach(struct box *b, struct bag *bag, bool logs,
			   bool stream, bool input)
{
	struct attach_want want = { .stdout_ = true,
				    .stderr_ = true,
				    .stdin_ = input,
				    .logs = logs,
				    .stream = stream };
	struct sink sink = bag_sink(bag);

	bag->feed = box_attach(b, &want, &sink, &fake_err);
	return bag->feed;
}

static int run(struct box *b)
{
	struct box_view v;
	struct waited w;

	box_look(b, &v);
	CHECK_INT(fake_start(b), 0);
	fake_wait(&w, v.id, WAIT_NOT_RUNNING);
	CHECK(fake_until(&w.is_done, 20000));
	return w.code;
}

TEST(l01_attach_before_the_start)
{
	struct bag bag, late, logs;
	struct box *b;

	fake_begin();
	bag_init(&bag);
	bag_init(&late);
	bag_init(&logs);
	b = fake_box("box", "echo one; echo two >&2");
	CHECK(attach(b, &bag, false, true, false));
	CHECK_INT(run(b), 0);
	CHECK(fake_until(&bag.is_over, 1000));
	CHECK_INT(bag.n_out, 4);
	CHECK_INT(bag.n_err, 4);
	/* replay from the start, without what comes */
	CHECK(attach(b, &logs, true, false, false));
	CHECK(fake_until(&logs.is_over, 1000));
	CHECK_INT(logs.len, 8);
	/* one that waits for the next start gets the next output only */
	CHECK(attach(b, &late, false, true, false));
	fake_turn(50);
	CHECK(!late.is_over);
	CHECK_INT(run(b), 0);
	CHECK(fake_until(&late.is_over, 1000));
	CHECK_INT(late.len, 8);
	fake_end();
}

/* It ends before a client has read anything; the client gets all of it. */
TEST(l02_a_stalled_client_loses_nothing)
{
	struct bag bag;
	struct box *b;

	fake_begin();
	bag_init(&bag);
	bag.room = 10;
	b = fake_box("box", "head -c 3000000 /dev/zero");
	CHECK(attach(b, &bag, false, true, false));
	CHECK_INT(run(b), 0);
	CHECK(!bag.is_over);
	bag.room = SIZE_MAX;
	feed_ready(bag.feed);
	CHECK(fake_until(&bag.is_over, 5000));
	CHECK_INT(bag.len, 3000000);
	fake_end();
}

/* Slower than the program, and the log is small: nothing is lost. */
TEST(l03_a_slow_client_holds_it_up)
{
	const char *command[] = { "head", "-c", "5000000", "/dev/zero", NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{}",
				 .command = command,
				 .log_max = 1 << 20 };
	struct bag bag;
	struct box *b;

	fake_begin();
	bag_init(&bag);
	bag.room = 0;
	b = fake_box_of(&fake_alice, &want);
	CHECK(attach(b, &bag, false, true, false));
	CHECK_INT(fake_start(b), 0);
	for (int i = 0; i < 4000 && !bag.is_over; i++) {
		bag.room = 30000;
		feed_ready(bag.feed);
		fake_turn(1);
	}
	CHECK(bag.is_over);
	CHECK_INT(bag.len, 5000000);
	fake_end();
}

/* One that stands still does not: the program ends, the log is bounded. */
TEST(l04_a_dead_client_does_not_hold_it_up)
{
	const char *command[] = { "head", "-c", "5000000", "/dev/zero", NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{}",
				 .command = command,
				 .log_max = 1 << 20 };
	struct bag bag, logs;
	struct box *b;

	fake_begin();
	bag_init(&bag);
	bag_init(&logs);
	bag.room = 0;
	b = fake_box_of(&fake_alice, &want);
	CHECK(attach(b, &bag, false, true, false));
	CHECK_INT(run(b), 0);
	CHECK(attach(b, &logs, true, false, false));
	CHECK(fake_until(&logs.is_over, 1000));
	CHECK(logs.len > 400000 && logs.len <= (1 << 20));
	bag.room = SIZE_MAX;
	feed_ready(bag.feed);
	CHECK(fake_until(&bag.is_over, 1000));
	CHECK(bag.len <= (1 << 20));
	fake_end();
}

/* The box is gone; who was attached still gets all that it wrote. */
TEST(l16_removed_under_a_slow_client)
{
	const char *command[] = { "head", "-c", "3000000", "/dev/zero", NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{}",
				 .name = "gone",
				 .command = command,
				 .auto_remove = true };
	struct waited w;
	struct bag bag;
	struct box *b;

	fake_begin();
	bag_init(&bag);
	bag.room = 1000;
	b = fake_box_of(&fake_alice, &want);
	CHECK(attach(b, &bag, false, true, false));
	fake_wait(&w, "gone", WAIT_REMOVED);
	CHECK_INT(fake_start(b), 0);
	CHECK(fake_until(&w.is_done, 5000));
	CHECK_INT(bag.len, 1000);
	bag.room = SIZE_MAX;
	feed_ready(bag.feed);
	CHECK(fake_until(&bag.is_over, 5000));
	CHECK_INT(bag.len, 3000000);
	fake_end();
}

static struct box *with_stdin(const char *script, bool once)
{
	const char *command[] = { "sh", "-c", script, NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{}",
				 .name = "in",
				 .command = command,
				 .open_stdin = true,
				 .stdin_once = once };

	return fake_box_of(&fake_alice, &want);
}

TEST(l05_input)
{
	struct bag bag;
	struct waited w;
	struct box *b;

	fake_begin();
	bag_init(&bag);
	b = with_stdin("cat; exit 3", true);
	CHECK(attach(b, &bag, false, true, true));
	/* before it runs, nothing is taken */
	CHECK_INT(feed_input(bag.feed, "early", 5), 0);
	CHECK_INT(fake_start(b), 0);
	CHECK_INT(feed_input(bag.feed, "hello", 5), 5);
	fake_turn(50);
	CHECK_STR(bag.out, "hello");
	feed_end_input(bag.feed);
	fake_wait(&w, "in", WAIT_NOT_RUNNING);
	CHECK(fake_until(&w.is_done, 5000));
	CHECK_INT(w.code, 3);
	fake_end();
}

/* Without `once` a half-close is nothing, and a second client may go on. */
TEST(l06_input_of_several)
{
	struct bag one, two;
	struct box *b;

	fake_begin();
	bag_init(&one);
	bag_init(&two);
	b = with_stdin("read a; read b; echo $a-$b", false);
	CHECK(attach(b, &one, false, true, true));
	CHECK_INT(fake_start(b), 0);
	CHECK_INT(feed_input(one.feed, "x\n", 2), 2);
	feed_end_input(one.feed);
	feed_drop(one.feed);
	fake_turn(50);
	CHECK(attach(b, &two, false, true, true));
	CHECK_INT(feed_input(two.feed, "y\n", 2), 2);
	CHECK(fake_until(&two.is_over, 2000));
	CHECK_STR(two.out, "x-y\n");
	fake_end();
}

TEST(l07_terminal)
{
	const char *command[] = { "sh", "-c",
				  "test -t 1 && echo tty; read x; echo got-$x",
				  NULL };
	struct box_want want = { .face = "docker",
				 .settings = "{}",
				 .command = command,
				 .tty = true,
				 .open_stdin = true };
	struct bag bag;
	struct box *b;

	fake_begin();
	bag_init(&bag);
	b = fake_box_of(&fake_alice, &want);
	CHECK_INT(box_resize(b, 40, 120, &fake_err), 0);
	CHECK(attach(b, &bag, false, true, true));
	CHECK_INT(fake_start(b), 0);
	CHECK_INT(feed_input(bag.feed, "hi\n", 3), 3);
	CHECK(fake_until(&bag.is_over, 3000));
	CHECK_HAS(bag.out, "tty\r\n");
	fake_end();
}

/* ---- lines ---- */

struct page {
	char text[65536];
	size_t n, room;
	int64_t times[64];
	bool is_over;
};

static size_t on_line(void *arg, int stream, int64_t time_ns, const char *data,
		      size_t len)
{
	struct page *p = arg;

	if (p->room == 0)
		return 0;
	p->room--;
	if (p->n < 64)
		p->times[p->n] = time_ns;
	p->n++;
	(void)snprintf(p->text + strlen(p->text),
		       sizeof(p->text) - strlen(p->text), "%d:%.*s|", stream,
		       (int)(len > 80 ? 80 : len), data);
	return len;
}

static void on_over(void *arg)
{
	struct page *p = arg;

	p->is_over = true;
}

static struct feed *lines(struct box *b, struct page *p, struct log_want want)
{
	struct log_sink sink = { on_line, on_over, p };

	*p = (struct page){ .room = SIZE_MAX };
	return box_logs(b, &want, &sink, &fake_err);
}

TEST(l08_lines_and_tails)
{
	static struct page p;
	struct box *b;

	fake_begin();
	b = fake_box("box", "printf 'a\\nb\\n'; sleep 0.05; echo x >&2; sleep "
			    "0.05; printf 'c\\nd'");
	CHECK_INT(run(b), 0);
	CHECK(lines(b, &p, (struct log_want){ true, true, false, 0, 0, -1 }));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_STR(p.text, "1:a\n|1:b\n|2:x\n|1:c\n|1:d|");
	CHECK(lines(b, &p, (struct log_want){ true, true, false, 0, 0, 3 }));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_STR(p.text, "2:x\n|1:c\n|1:d|");
	CHECK(lines(b, &p, (struct log_want){ true, false, false, 0, 0, 3 }));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_STR(p.text, "1:b\n|1:c\n|1:d|");
	CHECK(lines(b, &p, (struct log_want){ false, true, false, 0, 0, 9 }));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_STR(p.text, "2:x\n|");
	CHECK(lines(b, &p, (struct log_want){ true, true, false, 0, 0, 0 }));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_STR(p.text, "");
	fake_end();
}

TEST(l09_since_until)
{
	static struct page p;
	int64_t middle;
	struct box *b;

	fake_begin();
	b = fake_box("box", "echo a; sleep 0.2; echo b");
	CHECK_INT(run(b), 0);
	CHECK(lines(b, &p, (struct log_want){ true, true, false, 0, 0, -1 }));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_STR(p.text, "1:a\n|1:b\n|");
	CHECK(p.times[1] - p.times[0] > 100000000);
	middle = p.times[0] + 100000000;
	CHECK(lines(b, &p,
		    (struct log_want){ true, true, false, middle, 0, -1 }));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_STR(p.text, "1:b\n|");
	CHECK(lines(b, &p,
		    (struct log_want){ true, true, true, 0, middle, -1 }));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_STR(p.text, "1:a\n|");
	fake_end();
}

TEST(l10_follow)
{
	static struct page p;
	struct box *b;

	fake_begin();
	b = fake_box("box", "for i in 1 2 3; do echo $i; sleep 0.1; done");
	CHECK_INT(fake_start(b), 0);
	CHECK(lines(b, &p, (struct log_want){ true, true, true, 0, 0, -1 }));
	CHECK(fake_until(&p.is_over, 3000));
	CHECK_STR(p.text, "1:1\n|1:2\n|1:3\n|");
	fake_end();
}

/* A sink that says "not now" gets the same line again, once. */
TEST(l11_lines_wait)
{
	static struct page p;
	struct feed *f;
	struct box *b;

	fake_begin();
	b = fake_box("box", "printf 'a\\nb\\nc\\n'");
	CHECK_INT(run(b), 0);
	f = lines(b, &p, (struct log_want){ true, true, false, 0, 0, -1 });
	p.room = 1;
	fake_turn(50);
	CHECK_STR(p.text, "1:a\n|");
	p.room = 1;
	feed_ready(f);
	fake_turn(50);
	CHECK_STR(p.text, "1:a\n|1:b\n|");
	p.room = SIZE_MAX;
	feed_ready(f);
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_STR(p.text, "1:a\n|1:b\n|1:c\n|");
	fake_end();
}

/* ---- the log itself ---- */

TEST(l12_turning)
{
	char data[1000], buf[FRONT_SCRATCH];
	struct log_entry e;
	struct log_pos p;
	struct log *l;
	uint64_t n = 0;

	fake_begin();
	l = log_new(fake.m->logs_fd, "t", 300000);
	for (int i = 0; i < 1000; i++) {
		(void)memset(data, 'a' + i % 26, sizeof(data));
		CHECK_INT(log_add(l, 1 + i % 2, i, data, sizeof(data)), 0);
	}
	for (p = log_start(l); log_get(l, &p, &e, buf) == 1; log_next(&p, &e)) {
		CHECK_INT(e.len, 1000);
		CHECK(buf[0] == (char)('a' + e.time_ns % 26));
		CHECK_INT(e.stream, 1 + e.time_ns % 2);
		n++;
	}
	CHECK(n >= 146 && n <= 293);
	CHECK_INT(e.time_ns, 999);
	/* one who was in a half that is gone goes on with what is there */
	p = (struct log_pos){ .half = 1, .off = 12345 };
	CHECK_INT(log_get(l, &p, &e, buf), 1);
	log_free(l);
	/* another daemon finds the same */
	l = log_new(fake.m->logs_fd, "t", 300000);
	for (p = log_start(l); log_get(l, &p, &e, buf) == 1; log_next(&p, &e))
		n--;
	CHECK_INT(n, 0);
	log_free(l);
	log_remove(fake.m->logs_fd, "t");
	fake_end();
}

TEST(l13_torn)
{
	char buf[FRONT_SCRATCH];
	struct log_entry e;
	struct log_pos p;
	struct log *l;
	FILE *f;
	char path[100];
	int n = 0;

	fake_begin();
	l = log_new(fake.m->logs_fd, "t", 1 << 20);
	CHECK_INT(log_add(l, 1, 1, "whole", 5), 0);
	log_free(l);
	(void)snprintf(path, sizeof(path), "%s/logs/t.1", fake.dir);
	f = fopen(path, "ae");
	(void)fputs("LOG1 and then nothing", f);
	(void)fclose(f);
	l = log_new(fake.m->logs_fd, "t", 1 << 20);
	CHECK_INT(log_add(l, 2, 2, "next", 4), 0);
	for (p = log_start(l); log_get(l, &p, &e, buf) == 1; log_next(&p, &e))
		n++;
	CHECK_INT(n, 2);
	log_free(l);
	log_remove(fake.m->logs_fd, "t");
	fake_end();
}

/* The log of a box is there after the daemon was restarted. */
TEST(l14_log_after_a_crash)
{
	static struct page p;
	struct box *b;

	fake_begin();
	CHECK_INT(run(fake_box("box", "echo kept")), 0);
	fake_crash();
	fake_open();
	b = box_find(fake.m, &fake_alice, "box", &fake_err);
	CHECK(b);
	CHECK(lines(b, &p, (struct log_want){ true, true, false, 0, 0, -1 }));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_STR(p.text, "1:kept\n|");
	fake_end();
}

/* A face may drop its feed from inside of its own callback. */
static struct bag *dropper;

static size_t drop_it(void *arg, int stream, const char *data, size_t len)
{
	(void)arg;
	(void)stream;
	(void)data;
	feed_drop(dropper->feed);
	return len;
}

static void never(void *arg)
{
	(void)arg;
	CHECK(false);
}

TEST(l15_drop_inside)
{
	struct attach_want want = { .stdout_ = true, .stream = true };
	struct sink sink = { drop_it, never, NULL };
	struct bag bag;
	struct box *b;

	fake_begin();
	bag_init(&bag);
	dropper = &bag;
	b = fake_box("box", "echo a; sleep 0.1; echo b");
	bag.feed = box_attach(b, &want, &sink, &fake_err);
	CHECK_INT(run(b), 0);
	fake_end();
}

/* A small log is no larger than it may be, and begins with a whole line. */
TEST(l16_a_small_log)
{
	static struct page p;
	struct log_want all = { true, true, false, 0, 0, -1 };
	struct stat st[2];
	char path[200];
	struct box *b;

	fake_begin();
	b = fake_box("box",
		     "i=0; while [ $i -lt 3000 ]; do "
		     "echo \"line $i of the program\"; i=$((i+1)); done; "
		     "echo done");
	b->log_max = 8192;
	CHECK_INT(run(b), 0);
	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/logs/%s.%d", fake.dir,
			       b->id, i);
		CHECK_INT(stat(path, &st[i]), 0);
	}
	CHECK(st[0].st_size + st[1].st_size <= 8192);
	CHECK(st[0].st_size > 2048);
	CHECK(lines(b, &p, all));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK(p.n > 50 && p.n < 400);
	CHECK(strncmp(p.text, "1:line ", 7) == 0);
	CHECK_HAS(p.text, "1:line 2999 of the program\n|1:done\n|");
	/* As many as there are whole ones. */
	all.tail = (int64_t)p.n;
	CHECK(lines(b, &p, all));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_INT((long)p.n, all.tail);
	CHECK(strncmp(p.text, "1:line ", 7) == 0);
	fake_end();
}

/* What has no line in it at all is shown from the newer half on. */
TEST(l17_a_line_longer_than_the_log)
{
	static struct page p;
	struct log_want all = { true, true, false, 0, 0, -1 };
	struct box *b;

	fake_begin();
	b = fake_box("box", "head -c 50000 /dev/zero | tr '\\0' x");
	b->log_max = 8192;
	CHECK_INT(run(b), 0);
	CHECK(lines(b, &p, all));
	CHECK(fake_until(&p.is_over, 1000));
	CHECK_INT((long)p.n, 1);
	fake_end();
}

TAP_MAIN()
