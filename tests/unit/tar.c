/* SPDX-License-Identifier: Apache-2.0 */

/* Archives of `cordon cp`, friendly and hostile; frames of `cordon exec`. */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/util.h"
#include "cli/opts.h"
#include "client/frames.h"
#include "cli/tar.h"

static char dir[64];
static int at; /* the target: dir/in */

static void begin(void)
{
	(void)strcpy(dir, "/tmp/cordon-tar.XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	CHECK(chdir(dir) == 0);
	CHECK(mkdir("in", 0755) == 0);
	at = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void end(void)
{
	char line[100];

	(void)snprintf(line, sizeof(line), "rm -rf %s", dir);
	(void)!system(line);
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "we");

	(void)fputs(text, f);
	(void)fclose(f);
}

static const char *get(const char *name)
{
	static char text[1000];
	FILE *f = fopen(name, "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (!f)
		return "(none)";
	text[n] = '\0';
	(void)fclose(f);
	return text;
}

static int collect(void *arg, const void *data, size_t len, struct err *err)
{
	(void)err;
	return buf_add(arg, data, len);
}

static int n_skipped;

static void skipped(const char *name, const char *why)
{
	(void)name;
	(void)why;
	n_skipped++;
}

static struct err err;

/* In pieces of `step`; 0 or the error's code. */
static int unpack(const struct buf *b, size_t step, const char *rename)
{
	static struct tar_reader t;
	int r = 0;

	err = (struct err){ 0 };
	tar_reader_init(&t, at);
	t.rename = rename;
	t.skipped = skipped;
	for (size_t i = 0; r == 0 && i < b->len; i += step)
		r = tar_reader_take(&t, b->data + i, MIN(step, b->len - i),
				    &err);
	if (r == 0)
		r = tar_reader_end(&t, &err);
	tar_reader_done(&t);
	return -r;
}

/* Without the NUL: what is behind it stays, and a field may be full. */
static void lay(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
}

TEST(t01_there_and_back)
{
	static const size_t steps[] = { 1, 7, 511, 512, 513, 65536 };
	char name[300] = "src/";
	struct stat st;
	struct buf b;

	begin();
	CHECK(mkdir("src", 0755) == 0 && mkdir("src/sub", 0700) == 0);
	put("src/file", "hello");
	put("src/sub/empty", "");
	CHECK(chmod("src/file", 04755) == 0);
	CHECK(symlink("/etc/passwd", "src/link") == 0);
	memset(name + 4, 'n', 200);
	put(name, "long");
	buf_init(&b, 1 << 20);
	CHECK_INT(tar_pack(AT_FDCWD, "src", "src", collect, &b, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		CHECK_INT(unpack(&b, steps[i], NULL), 0);
		CHECK_STR(get("in/src/file"), "hello");
		CHECK_STR(get("in/src/sub/empty"), "");
		lay(name, "src/");
		CHECK_STR(get(name), "long");
		CHECK(lstat("in/src/link", &st) == 0 && S_ISLNK(st.st_mode));
		/* no set-id bit */
		CHECK(stat("in/src/file", &st) == 0);
		CHECK_INT(st.st_mode & 07777, 0755);
	}
	CHECK_INT(unpack(&b, 100, "other"), 0);
	CHECK_STR(get("in/other/file"), "hello");
	CHECK_INT(unpack(&b, 100, ""), 0);
	CHECK_STR(get("in/file"), "hello");
	/* one that is not complete is told */
	b.len -= 1536;
	CHECK_INT(unpack(&b, 100, NULL), EPROTO);
	buf_done(&b);
	end();
}

TEST(t02_a_real_tar_reads_it)
{
	struct buf b;
	FILE *p;

	begin();
	CHECK(mkdir("src", 0755) == 0);
	put("src/file", "hello");
	buf_init(&b, 1 << 20);
	CHECK_INT(tar_pack(AT_FDCWD, "src", "new", collect, &b, &err), 0);
	p = popen("tar x -C in", "we");
	CHECK(fwrite(b.data, 1, b.len, p) == b.len);
	CHECK_INT(pclose(p), 0);
	CHECK_STR(get("in/new/file"), "hello");
	buf_done(&b);
	end();
}

/* A header as somebody might make it. */
static void add(struct buf *b, char type, const char *name, const char *link,
		const char *data)
{
	char h[512] = { 0 };
	unsigned int sum = 0;
	static const char zeros[512];
	size_t len = strlen(data);

	lay(h, name);
	(void)snprintf(h + 100, 8, "%07o", 0644U);
	(void)snprintf(h + 124, 12, "%011o", (unsigned int)len);
	memset(h + 148, ' ', 8);
	h[156] = type;
	lay(h + 157, link);
	(void)memcpy(h + 257, "ustar", 6);
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	(void)snprintf(h + 148, 7, "%06o", sum);
	(void)buf_add(b, h, sizeof(h));
	(void)buf_add(b, data, len);
	(void)buf_add(b, zeros, -len & 511);
}

static int unpack_end(struct buf *b)
{
	static const char zeros[1024];
	int r;

	(void)buf_add(b, zeros, sizeof(zeros));
	r = unpack(b, 512, NULL);
	buf_done(b);
	buf_init(b, 1 << 20);
	return r;
}

TEST(t03_names_that_lead_elsewhere)
{
	static const char *const names[] = { "/abs", "../up", "a/../../up",
					     "..",   "a//b",  "./../up",
					     "a/./b" };
	struct buf b;

	begin();
	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		add(&b, '0', names[i], "", "bad");
		CHECK_INT(unpack_end(&b), EPROTO);
	}
	CHECK_STR(get("up"), "(none)");
	CHECK_STR(get("/abs"), "(none)");
	/* the same in a pax header */
	add(&b, 'x', "pax", "", "14 path=../up\n");
	add(&b, '0', "good", "", "bad");
	CHECK_INT(unpack_end(&b), EPROTO);
	CHECK_STR(get("up"), "(none)");
	buf_done(&b);
	end();
}

TEST(t04_links_are_not_followed)
{
	struct buf b;

	begin();
	buf_init(&b, 1 << 20);
	put("victim", "mine");
	/* a directory that is a link */
	add(&b, '2', "d", "..", "");
	add(&b, '0', "d/victim", "", "bad");
	CHECK(unpack_end(&b) != 0);
	CHECK_STR(get("victim"), "mine");
	/* a file that is a link: it is replaced, not written through */
	add(&b, '2', "f", "../victim", "");
	add(&b, '0', "f", "", "new");
	CHECK_INT(unpack_end(&b), 0);
	CHECK_STR(get("victim"), "mine");
	CHECK_STR(get("in/f"), "new");
	/* one that was there before */
	CHECK(symlink("..", "in/old") == 0);
	add(&b, '0', "old/victim", "", "bad");
	CHECK(unpack_end(&b) != 0);
	CHECK_STR(get("victim"), "mine");
	/* a directory is not made through one either */
	add(&b, '5', "old/new", "", "");
	CHECK(unpack_end(&b) != 0);
	CHECK(access("new", F_OK) < 0);
	buf_done(&b);
	end();
}

TEST(t05_what_is_neither_file_nor_directory_is_left_out)
{
	struct buf b;

	begin();
	buf_init(&b, 1 << 20);
	put("victim", "mine");
	add(&b, '1', "hard", "../victim", "");
	add(&b, '3', "device", "", "");
	add(&b, '6', "fifo", "", "");
	add(&b, '0', "file", "", "yes");
	CHECK_INT(unpack_end(&b), 0);
	CHECK_INT(n_skipped, 3);
	CHECK_STR(get("in/file"), "yes");
	CHECK(access("in/hard", F_OK) < 0 && access("in/device", F_OK) < 0);
	/* a directory is never replaced by a file */
	CHECK(mkdir("in/there", 0755) == 0);
	add(&b, '0', "there", "", "bad");
	CHECK(unpack_end(&b) != 0);
	buf_done(&b);
	end();
}

TEST(t06_damage_is_told)
{
	struct buf b;

	begin();
	buf_init(&b, 1 << 20);
	add(&b, '0', "file", "", "text");
	b.data[0] ^= 1;
	CHECK_INT(unpack_end(&b), EPROTO);
	add(&b, 'x', "pax", "", "999999999 path=a\n");
	CHECK_INT(unpack_end(&b), EPROTO);
	add(&b, 'x', "pax", "", "13 size=-5\n");
	CHECK_INT(unpack_end(&b), EPROTO);
	add(&b, 'x', "pax", "", "nonsense");
	CHECK_INT(unpack_end(&b), EPROTO);
	CHECK(access("in/file", F_OK) < 0);
	buf_done(&b);
	end();
}

/* frames */

static int show(void *arg, int stream, const char *data, size_t len)
{
	return buf_printf(arg, "%d%.*s.", stream, (int)len, data);
}

TEST(t07_frames_in_any_pieces)
{
	static const char text[] = "\1\0\0\0\0\0\0\3abc\2\0\0\0\0\0\0\1x"
				   "\1\0\0\0\0\0\0\2de";

	for (size_t step = 1; step < sizeof(text); step++) {
		struct frames f = { 0 };
		char plain[64] = "";
		struct buf b;

		buf_init(&b, 1000);
		for (size_t i = 0; i < sizeof(text) - 1; i += step)
			CHECK_INT(frames_take(&f, text + i,
					      MIN(step, sizeof(text) - 1 - i),
					      show, &b),
				  0);
		for (size_t i = 0, k = 0; i < b.len; i++)
			if (b.data[i] != '.' && b.data[i] != '1' &&
			    b.data[i] != '2')
				plain[k++] = b.data[i];
		CHECK_STR(plain, "abcxde");
		buf_done(&b);
	}
	CHECK_INT(frames_take(&(struct frames){ 0 }, "\3\0\0\0\0\0\0\1x", 9,
			      show, NULL),
		  -EPROTO);
	CHECK_INT(frames_take(&(struct frames){ 0 }, "HTTP/1.1", 8, show, NULL),
		  -EPROTO);
}

/* flags */

struct flags {
	bool a, b;
	const char *text;
	struct strv list;
};

TEST(t08_flags)
{
	static const struct opt table[] = {
		{ "all", 'a', NULL, "", OPT_SWITCH, offsetof(struct flags, a) },
		{ "bare", 'b', NULL, "", OPT_SWITCH,
		  offsetof(struct flags, b) },
		{ "text", 't', "X", "", OPT_TEXT,
		  offsetof(struct flags, text) },
		{ "list", 'l', "X", "", OPT_LIST,
		  offsetof(struct flags, list) },
	};
	struct opts o = { .usage = "X", .v = table, .n = 4, .max = -1 };
	struct flags f = { 0 };
	const char *words[] = { "cmd", "-ab", "--text=1", "one", "-t2",  "-l",
				"x",   "two", "-lx",      "--",  "-not", NULL };
	const char *stops[] = { "cmd", "-a", "one", "-b", NULL };
	const char *wrong[] = { "cmd", "--nope", NULL };
	const char *missing[] = { "cmd", "-t", NULL };

	CHECK_INT(opts_read(&o, (char **)(uintptr_t)words, &f, &err), 3);
	CHECK(f.a && f.b);
	CHECK_STR(f.text, "2");
	CHECK_INT((long long)f.list.n, 2);
	CHECK_STR(words[3], "-not");
	f = (struct flags){ 0 };
	o.stops = true;
	CHECK_INT(opts_read(&o, (char **)(uintptr_t)stops, &f, &err), 2);
	CHECK(f.a && !f.b);
	CHECK_STR(stops[2], "-b");
	CHECK_INT(opts_read(&o, (char **)(uintptr_t)wrong, &f, &err), -EINVAL);
	CHECK_HAS(err.text, "--nope");
	CHECK_INT(opts_read(&o, (char **)(uintptr_t)missing, &f, &err),
		  -EINVAL);
	CHECK_HAS(err.text, "-t takes X");
}

TAP_MAIN()
