/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files of a box, through tars: what clients send and what boxes answer are
 * both foreign. The box's end is played here.
 */

#include "tests/tap.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/util.h"
#include "box/files.h"
#include "front/files.h"
#include "front/tar.h"
#include "fake.h"

/* ---- the box's end ---- */

static struct files_ask asked;
static char asked_path[FILES_MAX_PATH + 1];

static void take_ask(int sock)
{
	(void)io_read_full(sock, &asked, sizeof(asked));
	(void)io_read_full(sock, asked_path,
			   asked.path_len % sizeof(asked_path));
}

static void say_error(int sock, int code, const char *text)
{
	struct files_answer a = { 0 };

	if (code)
		(void)err_set(&a.err, code, "%s", text);
	(void)!write(sock, &a, sizeof(a));
}

static void say_entry(int sock, char kind, const char *name, const char *link,
		      uint64_t size)
{
	struct files_entry e = { .kind = (uint8_t)kind,
				 .mode = 0644,
				 .name_len = (uint32_t)strlen(name),
				 .link_len = (uint32_t)strlen(link),
				 .size = size,
				 .mtime_ns = 1500000000 };

	(void)!write(sock, &e, sizeof(e));
	(void)!write(sock, name, e.name_len);
	(void)!write(sock, link, e.link_len);
}

/* A directory with a file, a link and one below. */
static void good_box(int sock)
{
	take_ask(sock);
	say_error(sock, 0, "");
	if (asked.op == FILES_STAT || asked.op == FILES_LOOK) {
		say_entry(sock, 'd', "", "", 0);
		return;
	}
	say_entry(sock, 'd', "", "", 0);
	say_entry(sock, 'f', "file", "", 5);
	(void)!write(sock, "hello", 5);
	say_entry(sock, 'l', "link", "file", 0);
	say_entry(sock, 's', "socket", "", 0);
	say_entry(sock, 'd', "sub", "", 0);
	say_entry(sock, 'f', "sub/empty", "", 0);
	say_entry(sock, 0, "", "", 0);
}

/* Writes down what it is given, one line an entry, into this file. */
static char list_path[100];

static void listing_box(int sock)
{
	struct files_entry e;
	FILE *f = fopen(list_path, "ae");
	static char name[FILES_MAX_PATH + 1], link[FILES_MAX_PATH + 1];

	take_ask(sock);
	e.kind = 1;
	while (io_read_full(sock, &e, sizeof(e)) == sizeof(e) && e.kind) {
		char data[4096];
		uint64_t left = e.size;

		(void)io_read_full(sock, name, e.name_len);
		(void)io_read_full(sock, link, e.link_len);
		(void)fprintf(f, "%c %.*s %.*s %o %llu\n", e.kind,
			      (int)e.name_len, name, (int)e.link_len, link,
			      e.mode, (unsigned long long)e.size);
		while (left > 0) {
			size_t n = left < sizeof(data) ? (size_t)left
						       : sizeof(data);
			ssize_t got = io_read_full(sock, data, n);

			if (got <= 0)
				_exit(1);
			left -= (uint64_t)got;
		}
	}
	if (e.kind == 0)
		(void)fprintf(f, "end\n");
	(void)fclose(f);
	say_error(sock, 0, "");
}

/* ---- tars ---- */

struct made {
	char data[1 << 20];
	size_t len;
};
static struct made made;

static la_ssize_t keep(struct archive *a, void *arg, const void *data,
		       size_t len)
{
	(void)a;
	(void)arg;
	if (made.len + len <= sizeof(made.data)) {
		memcpy(made.data + made.len, data, len);
		made.len += len;
	}
	return (la_ssize_t)len;
}

struct row {
	const char *name;
	unsigned int type;
	const char *link; /* AE_IFLNK; with type 0: a hard link */
	int64_t size;
};

static void make_tar(const struct row *rows, size_t n, bool gzip)
{
	struct archive *a = archive_write_new();

	made.len = 0;
	(void)archive_write_set_format_pax_restricted(a);
	if (gzip)
		(void)archive_write_add_filter_gzip(a);
	(void)archive_write_open(a, NULL, NULL, keep, NULL);
	for (size_t i = 0; i < n; i++) {
		struct archive_entry *e = archive_entry_new();
		int64_t size = rows[i].size;
		static const char zeros[65536];

		archive_entry_set_pathname(e, rows[i].name);
		archive_entry_set_filetype(e, rows[i].type ? rows[i].type
							   : AE_IFREG);
		archive_entry_set_perm(e, 06755);
		archive_entry_set_size(e, size);
		if (rows[i].type == AE_IFLNK)
			archive_entry_set_symlink(e, rows[i].link);
		else if (rows[i].link)
			archive_entry_set_hardlink(e, rows[i].link);
		(void)archive_write_header(a, e);
		for (; size > 0; size -= 65536)
			(void)archive_write_data(a, zeros,
						 (size_t)(size < 65536
								  ? size
								  : 65536));
		archive_entry_free(e);
	}
	(void)archive_write_close(a);
	(void)archive_write_free(a);
}

static struct box *box;

static void begin(void)
{
	fake_begin();
	(void)snprintf(list_path, sizeof(list_path), "%s/list", fake.dir);
	box = fake_box("box", "sleep 60");
}

struct answer {
	bool is_done, may_write;
	struct err err;
	struct file_stat st;
};

static void on_done(void *arg, const struct err *err)
{
	struct answer *a = arg;

	a->is_done = true;
	if (err)
		a->err = *err;
}

static void on_room(void *arg)
{
	((struct answer *)arg)->may_write = true;
}

/* Sends it in pieces; 0 or the error's code. */
static int put(const char *data, size_t len, bool cut)
{
	struct answer a = { 0 };
	struct files_writer *w = files_write(box, "/workspace",
					     FILES_PUT_NO_OVERWRITE, on_done,
					     &a, &fake_err);
	size_t done = 0;

	if (!w)
		return fake_err.code;
	files_writer_on_ready(w, on_room);
	while (done < len && !a.is_done) {
		size_t want = len - done < 7000 ? len - done : 7000;
		size_t n = files_writer_add(w, data + done, want);

		done += n;
		a.may_write = n == want;
		if (!fake_until(&a.may_write, 300) && !a.is_done)
			continue;
	}
	(void)cut;
	files_writer_end(w);
	CHECK(fake_until(&a.is_done, 10000));
	files_writer_drop(w);
	fake_err = a.err;
	return a.err.code;
}

static char *listed(void)
{
	static char text[65536];
	FILE *f = fopen(list_path, "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = '\0';
	if (f)
		(void)fclose(f);
	return text;
}

TEST(t01_in)
{
	static const struct row rows[] = {
		{ "./", AE_IFDIR, NULL, 0 },
		{ "dir/", AE_IFDIR, NULL, 0 },
		{ "dir/file", AE_IFREG, NULL, 70000 },
		{ "/abs", AE_IFREG, NULL, 0 },
		{ "link", AE_IFLNK, "../../etc/passwd", 0 },
		{ "hard", 0, "./dir/file", 0 },
		{ "also", 0, "/abs", 0 },
	};

	begin();
	fake_files = listing_box;
	make_tar(rows, 7, false);
	CHECK_INT(put(made.data, made.len, false), 0);
	/* names are below the directory, set-uid is gone; links are data */
	CHECK_STR(listed(), "d dir  755 0\n"
			    "f dir/file  755 70000\n"
			    "f abs  755 0\n"
			    "l link ../../etc/passwd 755 0\n"
			    "h hard dir/file 755 0\n"
			    "h also abs 755 0\n"
			    "end\n");
	fake_end();
}

TEST(t02_gzip)
{
	static const struct row rows[] = { { "f", AE_IFREG, NULL, 100000 } };

	begin();
	fake_files = listing_box;
	make_tar(rows, 1, true);
	CHECK(made.len < 20000);
	CHECK_INT(put(made.data, made.len, false), 0);
	CHECK_STR(listed(), "f f  755 100000\nend\n");
	fake_end();
}

TEST(t03_hostile_tars)
{
	static char huge[6000];
	static const struct row rows[] = {
		{ "../escape", AE_IFREG, NULL, 0 },
		{ "a/../../b", AE_IFREG, NULL, 0 },
		{ "dev", AE_IFCHR, NULL, 0 },
		{ "disk", AE_IFBLK, NULL, 0 },
		{ "pipe", AE_IFIFO, NULL, 0 },
		{ "hard", 0, "a/../../x", 0 },
		{ "hard", 0, ".", 0 },
		{ "hard", 0, "../x", 0 },
		{ huge, AE_IFREG, NULL, 0 },
		{ "l", AE_IFLNK, huge, 0 },
	};

	(void)memset(huge, 'x', sizeof(huge) - 1);
	begin();
	fake_files = listing_box;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make_tar(&rows[i], 1, false);
		CHECK_INT(put(made.data, made.len, false), MGR_INVALID);
		CHECK_STR(listed(), "");
	}
	fake_end();
}

TEST(t04_cut_and_garbage)
{
	static const struct row rows[] = { { "f", AE_IFREG, NULL, 100000 } };
	static char noise[100000];

	begin();
	fake_files = listing_box;
	make_tar(rows, 1, false);
	CHECK_INT(put(made.data, 50000, true), MGR_INVALID);
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 2654435761U >> 13);
	CHECK_INT(put(noise, sizeof(noise), false), MGR_INVALID);
	/* nothing at all is an empty archive */
	CHECK_INT(put("", 0, false), 0);
	fake_end();
}

/* The box says that it is full, in the middle of a bomb. */
static void full_box(int sock)
{
	static char sink[65536];

	take_ask(sock);
	for (int i = 0; i < 40; i++)
		(void)!read(sock, sink, sizeof(sink));
	say_error(sock, ENOSPC, "the disk is full \033[31m");
	(void)shutdown(sock, SHUT_WR);
}

TEST(t05_bomb)
{
	/* 900 MiB of zeros in less than a megabyte */
	static const struct row rows[] = { { "f", AE_IFREG, NULL, 900 << 20 } };

	begin();
	fake_files = full_box;
	make_tar(rows, 1, true);
	CHECK(made.len < sizeof(made.data));
	CHECK_INT(put(made.data, made.len, false), MGR_NO_SPACE);
	CHECK_HAS(fake_err.text, "full");
	CHECK(!strchr(fake_err.text, '\033'));
	fake_end();
}

static void read_only_box(int sock)
{
	take_ask(sock);
	say_error(sock, EROFS, "read-only");
}

TEST(t06_errors_keep_their_kind)
{
	static const struct row rows[] = { { "f", AE_IFREG, NULL, 10 } };

	begin();
	fake_files = read_only_box;
	make_tar(rows, 1, false);
	CHECK_INT(put(made.data, made.len, false), MGR_READ_ONLY);
	fake_end();
}

static void telling_box(int sock)
{
	char text[40];

	take_ask(sock);
	(void)snprintf(text, sizeof(text), "room for %llu",
		       (unsigned long long)asked.memory);
	say_error(sock, ENOSPC, text);
}

/* The box is told what its memory has room for, besides what is in use. */
TEST(t16_room_in_the_memory)
{
	static const struct row rows[] = { { "f", AE_IFREG, NULL, 10 } };
	static const struct {
		uint64_t limit;
		const char *text;
	} limits[] = {
		{ 0, "room for 0" },
		{ 64 << 20, "room for 63963136" }, /* 61 MiB */
		{ 2 << 20, "room for 1" },
		{ INT64_MAX - 4095, "room for 0" },
	};

	begin();
	fake_files = telling_box;
	make_tar(rows, 1, false);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		fake_memory_limit = limits[i].limit;
		CHECK_INT(put(made.data, made.len, false), MGR_NO_SPACE);
		CHECK_HAS(fake_err.text, limits[i].text);
	}
	fake_end();
}

/* A client that leaves in the middle leaves no thread behind. */
TEST(t07_dropped)
{
	static const struct row rows[] = { { "f", AE_IFREG, NULL, 100000 } };
	struct answer a = { 0 };
	struct files_writer *w;

	begin();
	fake_files = listing_box;
	make_tar(rows, 1, false);
	w = files_write(box, "/workspace", FILES_PUT_NO_OVERWRITE, on_done, &a,
			&fake_err);
	(void)files_writer_add(w, made.data, 20000);
	fake_turn(50);
	CHECK_INT(fake.m->n_tars, 1);
	files_writer_drop(w);
	fake_turn(200);
	CHECK_INT(fake.m->n_tars, 0);
	CHECK(!a.is_done);
	fake_end();
}

/* ---- out ---- */

static void on_stat(void *arg, const struct file_stat *st,
		    const struct err *err)
{
	struct answer *a = arg;

	a->is_done = true;
	if (err)
		a->err = *err;
	else
		a->st = *st;
}

static int get(const char *path, struct bag *bag)
{
	struct sink sink = bag_sink(bag);
	struct answer a = { 0 };

	(void)files_read(box, path, &sink, &bag->feed, on_stat, &a);
	CHECK(fake_until(&a.is_done, 5000));
	fake_err = a.err;
	if (a.err.code)
		return a.err.code;
	CHECK(fake_until(&bag->is_over, 10000));
	return 0;
}

/* Names and types of a tar, one a line; "bad" at the end if it is not whole. */
static const char *list_tar(const struct bag *bag)
{
	static char text[8192];
	struct archive *a = archive_read_new();
	struct archive_entry *e;
	int r;

	text[0] = '\0';
	(void)archive_read_support_format_tar(a);
	r = archive_read_open_memory(a, bag->out, bag->len);
	while (r == ARCHIVE_OK &&
	       (r = archive_read_next_header(a, &e)) == ARCHIVE_OK)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			       "%s %lld\n", archive_entry_pathname(e),
			       (long long)archive_entry_size(e));
	(void)archive_read_free(a);
	return text;
}

/* A tar ends with two blocks of zeros, or it is not whole. */
static bool is_whole(const struct bag *bag)
{
	static const char zeros[1024];

	return bag->len >= 1024 &&
	       memcmp(bag->out + bag->len - 1024, zeros, 1024) == 0;
}

TEST(t08_out)
{
	struct bag bag;

	begin();
	fake_files = good_box;
	bag_init(&bag);
	CHECK_INT(get("/workspace/dir", &bag), 0);
	CHECK_STR(list_tar(&bag), "dir/ 0\ndir/file 5\ndir/link 0\n"
				  "dir/sub/ 0\ndir/sub/empty 0\n");
	CHECK(is_whole(&bag));
	bag_init(&bag);
	CHECK_INT(get("/workspace/dir/.", &bag), 0);
	CHECK_HAS(list_tar(&bag), "./file 5\n");
	fake_end();
}

TEST(t09_out_to_a_slow_client)
{
	struct sink sink;
	struct answer a = { 0 };
	struct bag bag;

	begin();
	fake_files = good_box;
	bag_init(&bag);
	sink = bag_sink(&bag);
	bag.room = 0;
	(void)files_read(box, "/dir", &sink, &bag.feed, on_stat, &a);
	for (int i = 0; i < 5000 && !bag.is_over; i++) {
		bag.room = 100;
		feed_ready(bag.feed);
		fake_turn(1);
	}
	CHECK(bag.is_over);
	CHECK(is_whole(&bag));
	fake_end();
}

static void (*second)(int sock);

/* STAT is answered well, what follows is not. */
static void bad_box(int sock)
{
	take_ask(sock);
	say_error(sock, 0, "");
	say_entry(sock, 'd', "", "", 0);
	if (asked.op == FILES_READ)
		second(sock);
}

static void endless(int sock)
{
	(void)signal(SIGPIPE, SIG_DFL);
	for (;;)
		say_entry(sock, 'f', "x", "", 0);
}

static void lies_size(int sock)
{
	say_entry(sock, 'f', "big", "", 1ULL << 40);
	(void)!write(sock, "short", 5);
}

static void lies_length(int sock)
{
	struct files_entry e = { .kind = 'f', .name_len = 0xffffffff };

	(void)!write(sock, &e, sizeof(e));
}

static void climbs(int sock)
{
	say_entry(sock, 'f', "../../etc/cron.d/x", "", 0);
}

static void absolute(int sock)
{
	say_entry(sock, 'f', "/etc/passwd", "", 0);
}

static void odd_kind(int sock)
{
	say_entry(sock, 'X', "x", "", 0);
}

static void silent(int sock)
{
	(void)sock;
}

TEST(t10_hostile_answers)
{
	static void (*const hosts[])(int) = { lies_size, lies_length, climbs,
					      absolute,  odd_kind,    silent };

	begin();
	fake_files = bad_box;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct bag bag;

		bag_init(&bag);
		second = hosts[i];
		CHECK_INT(get("/dir", &bag), 0);
		CHECK(!is_whole(&bag));
		CHECK(!strstr(list_tar(&bag), ".."));
	}
	CHECK_INT(fake.m->n_tars, 0);
	fake_end();
}

/* Entries that never end: the client leaves, and that is the end. */
TEST(t11_endless)
{
	struct sink sink;
	struct answer a = { 0 };
	struct bag bag;

	begin();
	fake_files = bad_box;
	second = endless;
	bag_init(&bag);
	bag.room = 1 << 20;
	sink = bag_sink(&bag);
	(void)files_read(box, "/dir", &sink, &bag.feed, on_stat, &a);
	fake_turn(500);
	CHECK_INT(bag.len, 1 << 20);
	feed_drop(bag.feed);
	fake_turn(200);
	CHECK_INT(fake.m->n_tars, 0);
	fake_end();
}

static void no_file(int sock)
{
	take_ask(sock);
	say_error(sock, ENOENT, "not there");
}

TEST(t12_stat)
{
	struct answer a = { 0 };
	struct bag bag;

	begin();
	fake_files = no_file;
	bag_init(&bag);
	CHECK_INT(get("/nowhere", &bag), MGR_NO_FILE);
	fake_files = good_box;
	(void)files_stat(box, "/a/b/", on_stat, &a);
	CHECK(fake_until(&a.is_done, 2000));
	CHECK_INT(a.st.st_mode, S_IFDIR | 0644);
	fake_files = NULL; /* it closes at once */
	a = (struct answer){ 0 };
	(void)files_stat(box, "/x", on_stat, &a);
	CHECK(fake_until(&a.is_done, 2000));
	CHECK_INT(a.err.code, MGR_LOST);
	a = (struct answer){ 0 };
	(void)files_stat(box, "", on_stat, &a);
	CHECK(fake_until(&a.is_done, 2000));
	CHECK_INT(a.err.code, MGR_INVALID);
	fake_end();
}

/* A box that has ended is opened again for its files, and closed after. */
TEST(t13_files_of_a_stopped_box)
{
	struct bag bag;

	begin();
	fake_files = good_box;
	CHECK_INT(fake_start(box), 0);
	CHECK_INT(fake_stop(box, 0), 0);
	CHECK_INT(fake_walls, 0);
	CHECK_INT(fake_shelves, 1);
	bag_init(&bag);
	CHECK_INT(get("/workspace/dir", &bag), 0);
	CHECK(is_whole(&bag));
	CHECK_INT(fake_walls, 1);
	fake_turn(2500);
	CHECK_INT(fake_walls, 0);
	CHECK_INT(fake_remove(box, false), 0);
	CHECK_INT(fake_shelves, 0);
	fake_end();
}

/* ---- processes ---- */

TEST(t14_processes)
{
	static const char *const bad[] = {
		"",
		"1",
		"1 0 S 5 6 7 8 9",
		"x 0 S 5 6 7 8 9 sh\tsh",
		"1 0 SS 5 6 7 8 9 sh\tsh",
		"1 0 S 5 6 7 8 -9 sh\tsh",
		"1 0 S 5 6 7 -8 9 sh\tsh",
		"1 0 S 5 6 7 8\t9 sh",
		"1 0 S 5 6 99999999999999999999 8 9 x\t"
	};
	char line[] = "12 1 S 500 250 3 20480 65534 a b\tsh -c x\ty";
	struct box_process p;

	CHECK(process_parse(line, &p));
	CHECK_INT(p.pid, 12);
	CHECK_INT(p.ppid, 1);
	CHECK(p.state == 'S');
	CHECK_INT(p.start_s, 5);
	CHECK_INT(p.cpu_ms, 2500);
	CHECK_INT(p.rss, 12288);
	CHECK_INT(p.size, 20480);
	CHECK_INT(p.uid, 65534);
	CHECK_STR(p.comm, "a b");
	CHECK_STR(p.args, "sh -c x\ty");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char copy[100];

		(void)snprintf(copy, sizeof(copy), "%s", bad[i]);
		CHECK(!process_parse(copy, &p));
	}
}

/* ---- images ---- */

TEST(t15_image)
{
	const char *args[] = { "ls", "--json", NULL };
	struct answer a = { 0 };
	struct bag bag;
	struct sink sink;
	struct image_run *r;

	fake_begin();
	bag_init(&bag);
	sink = bag_sink(&bag);
	r = image_run(fake.m, &fake_alice, args, true, &sink, on_done, &a,
		      &fake_err);
	CHECK(r);
	CHECK_INT(image_run_add(r, "data", 4), 4);
	image_run_end_input(r);
	CHECK(fake_until(&a.is_done, 2000));
	CHECK(bag.is_over);
	CHECK_INT(bag.len, 14);
	CHECK(bag.len == 14 && memcmp(bag.out, "ls\0--json\0data", 14) == 0);
	CHECK_INT(a.err.code, 1003);
	CHECK_STR(a.err.text, "last words");
	/* one whose client is gone */
	a = (struct answer){ 0 };
	r = image_run(fake.m, &fake_alice, args, false, &sink, on_done, &a,
		      &fake_err);
	image_run_drop(r);
	fake_turn(100);
	CHECK(!a.is_done);
	CHECK(!fake.m->turns);
	fake_end();
}

TAP_MAIN()
