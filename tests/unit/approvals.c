/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Approvals without processes: text made visible, requests, rules, the store,
 * and the reader of the desk's answer.
 */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/util.h"
#include "box/approve.h"
#include "desk/asker.h"
#include "desk/request.h"
#include "desk/rules.h"
#include "desk/state.h"
#include "desk/store.h"
#include "base/visible.h"

static char *shown(void (*show)(struct buf *, const void *, size_t, size_t),
		   const char *text, size_t len, size_t max)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	show(&b, text, len, max);
	buf_puts(&b, "");
	return buf_take(&b);
}

static void show_word(struct buf *out, const void *data, size_t len, size_t max)
{
	(void)len;
	visible_word(out, data, max);
}

TEST(visible_text_writes_out_what_is_strange)
{
	static const struct {
		const char *in;
		const char *out;
	} rows[] = {
		{ "plain text ~!", "plain text ~!" },
		{ "", "" },
		{ "\033[31m", "<U+001B>[31m" },
		{ "a\nb\rc\td", "a<U+000A>b<U+000D>c<TAB>d" },
		{ "\x7f", "<U+007F>" },
		{ "\xc2\x9b"
		  "31m",
		  "<U+009B>31m" }, /* C1 CSI */
		{ "\xc3\xa9\xe2\x82\xac", "\xc3\xa9\xe2\x82\xac" },
		{ "\xe2\x80\xae", "<U+202E>" }, /* RLO */
		{ "\xe2\x81\xa6", "<U+2066>" }, /* LRI */
		{ "\xd7\x90", "<U+05D0>" },     /* alef */
		{ "a\xcc\xb8", "a<U+0338>" },   /* overlay */
		{ "\xc2\xa0", "<U+00A0>" },
		{ "\xf3\xa0\x81\x81", "<U+E0041>" }, /* tag A */
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "\xff\xc2", "<0xFF><0xC2>" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *have = shown(visible_text, rows[i].in, strlen(rows[i].in),
				   100);

		CHECK_STR(have, rows[i].out);
		free(have);
	}
}

TEST(visible_no_control_or_format_character_is_plain)
{
	for (uint32_t c = 0; c < 0xa0; c++)
		CHECK(visible_check(c) == (c >= 0x20 && c < 0x7f));
	for (uint32_t c = 0x202a; c <= 0x202e; c++)
		CHECK(!visible_check(c));
	for (uint32_t c = 0x2066; c <= 0x2069; c++)
		CHECK(!visible_check(c));
	CHECK(!visible_check(0x200e) && !visible_check(0x200f));
	CHECK(!visible_check(0x061c) && !visible_check(0xfeff));
	CHECK(!visible_check(0xfffe) && !visible_check(0x10ffff));
	CHECK(visible_check(0x4e2d) && visible_check(0x430));
}

TEST(visible_words_read_back_as_a_shell_would)
{
	static const struct {
		const char *in;
		const char *out;
	} rows[] = {
		{ "ls", "ls" },
		{ "--a=b/c.d", "--a=b/c.d" },
		{ "", "''" },
		{ "a b", "'a b'" },
		{ "$(x)`y`", "'$(x)`y`'" },
		{ "back\\slash", "'back\\slash'" },
		{ "it's", "$'it\\'s'" },
		{ "a\nb\\", "$'a\\nb\\\\'" },
		{ "\033[0m", "$'\\x1b[0m'" },
		{ "\xff"
		  "a",
		  "$'\\xffa'" },
		{ "\xe2\x80\xae", "$'\\u202e'" },
		{ "\xf3\xa0\x81\x81", "$'\\U000e0041'" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *have = shown(show_word, rows[i].in, 0, 100);

		CHECK_STR(have, rows[i].out);
		free(have);
	}
}

TEST(visible_cuts_between_characters_and_tells)
{
	/* "aé" three times is 9 bytes; 8 would cut a character in two. */
	char *have = shown(visible_text,
			   "a\xc3\xa9"
			   "a\xc3\xa9"
			   "a\xc3\xa9",
			   9, 8);

	CHECK_HAS(have, "a\xc3\xa9"
			"a\xc3\xa9"
			"a... (cut; 9 bytes, sha256 ");
	free(have);
	have = shown(visible_text, "abc", 3, 3);
	CHECK_STR(have, "abc");
	free(have);
}

TEST(visible_lines_have_a_gutter_each)
{
	struct buf b;

	buf_init(&b, 4096);
	visible_lines(&b, "if x:\n\tb\tc\n\n\033", 13, "| ", 100);
	CHECK_STR(b.data, "| if x:\n|         b<TAB>c\n| \n| <U+001B>\n");
	buf_done(&b);
}

/* requests */

#define HEAD "{\"version\":1,\"kind\":\"command\",\"why\":\"w\",\"rule\":\"r\","
#define ASK  "\"ask\":[\"store\"]}"
#define ONE  HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a\",\"b\"]}]," ASK

static int parse(const char *text, struct request *ret)
{
	struct err err = { 0 };

	return request_parse(text, strlen(text), ret, &err);
}

TEST(request_reads_what_it_writes)
{
	struct request req;
	struct request again;
	struct buf out;
	char one[65];
	char two[65];

	CHECK_INT(parse(HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a\","
			     "{\"base64\":\"/w==\"}]}],\"agent\":\"x\","
			     "\"changes\":[\"\\u202e\"],\"line\":7," ASK,
			&req),
		  0);
	CHECK_STR(req.programs[0].argv.v[1], "\xff");
	buf_init(&out, 1 << 20);
	request_format(&req, &out);
	CHECK_INT(request_parse(out.data, out.len, &again, NULL), 0);
	request_content(&req, one);
	request_content(&again, two);
	CHECK_STR(one, two);
	CHECK_STR(again.changes.v[0], "\xe2\x80\xae");
	CHECK_INT((long long)again.line, 7);
	CHECK_INT((long long)again.expire_ms, REQUEST_EXPIRE);
	buf_done(&out);
	request_done(&req);
	request_done(&again);
}

TEST(request_content_tells_neighbours_apart)
{
	static const char *const texts[] = {
		ONE,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a b\"]}]," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a\",\"b\",\"\"]"
		     "}]," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"ab\"]}]," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a\"]},"
		     "{\"join\":\";\",\"argv\":[\"b\"]}]," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a\"]},"
		     "{\"join\":\"|\",\"argv\":[\"b\"]}]," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a\",\"b\"]}],"
		     "\"agent\":\"\"," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a\",\"b\"]}],"
		     "\"changes\":[\"\"]," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a\",\"b\"]}],"
		     "\"file\":\"r\"," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a\",\"b\"]}],"
		     "\"peer\":0," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[\"a\",\"b\"]}],"
		     "\"peer\":1000," ASK,
	};
	char sums[ARRAY_SIZE(texts)][65];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct request req;

		CHECK_INT(parse(texts[i], &req), 0);
		request_content(&req, sums[i]);
		request_done(&req);
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(sums[i], sums[k]) != 0);
	}
}

TEST(request_refuses_and_leaves_nothing)
{
	static const char *const texts[] = {
		"",
		"{}",
		ONE "x",
		ONE ONE,
		HEAD HEAD,
		HEAD
		"\"programs\":[{\"join\":\"\",\"argv\":[\"a\"],\"x\":1}]," ASK,
		HEAD "\"programs\":[{\"join\":\"\"}]," ASK,
		HEAD "\"programs\":{}," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[{\"base64\":\"!\"}"
		     "]}]," ASK,
		HEAD "\"programs\":[{\"join\":\"\",\"argv\":[{\"base64\":"
		     "\"AA==\"}]}]," ASK, /* a NUL */
		HEAD "\"version\":1,\"programs\":[{\"join\":\"\",\"argv\":["
		     "\"a\"]}]," ASK,
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct request req;

		CHECK(parse(texts[i], &req) < 0);
		CHECK(!req.programs && !req.why);
	}
}

/* the store, in a directory of the test's own */

static char place[] = "/tmp/cordon-approvals-XXXXXX";

static void remove_place(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", place);
	(void)!system(command); // NOLINT(*-env33-c,*system*)
}

static void use_place(void)
{
	CHECK(mkdtemp(place) != NULL);
	(void)setenv("CORDON_STATE_DIR", place, 1);
}

static struct entry some_entry(void)
{
	struct entry e = { .document = (char *)"{}",
			   .session = (char *)"named s",
			   .user = (char *)"u",
			   .program = (char *)"p",
			   .made = store_now() };

	e.expires = e.made + 60000;
	memset(e.content, 'a', 64);
	return e;
}

TEST(store_one_answer_holds_and_is_used_once)
{
	struct store_answer yes = { .is_allowed = true, .by = "one" };
	struct store_answer no = { .by = "two", .reason = "late" };
	struct entry e = some_entry();
	struct entry now;
	struct err err = { 0 };
	struct store s;

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	CHECK_INT(store_add(&s, &e, 0, &err), 0);
	CHECK_INT((long long)strlen(e.id), STORE_ID);
	CHECK_INT(store_take(&s, e.id, &err), -EPERM);
	CHECK_INT(store_answer(&s, e.id, &yes, &now, &err), 0);
	CHECK_INT(now.state, ENTRY_ALLOWED);
	entry_done(&now);
	CHECK_INT(store_answer(&s, e.id, &no, &now, &err), -EALREADY);
	CHECK_STR(now.by, "one");
	CHECK_INT(now.state, ENTRY_ALLOWED);
	entry_done(&now);
	CHECK_INT(store_expire(&s, e.id, &err), -EALREADY);
	CHECK_INT(store_take(&s, e.id, &err), 0);
	CHECK_INT(store_take(&s, e.id, &err), -EALREADY);
	store_close(&s);
	remove_place();
}

/* In a child: answers when the pipe is closed; 0 won, 1 lost, 2 broken. */
static int contend(int gate, const char *id, int number)
{
	char by[16];
	struct store_answer a = { .is_allowed = number % 2, .by = by };
	struct entry now = { 0 };
	struct err err = { 0 };
	struct store s;
	char c;
	int r;

	(void)snprintf(by, sizeof(by), "%d", number);
	if (store_open(&s, &err) < 0)
		return 2;
	while (read(gate, &c, 1) < 0)
		;
	r = store_answer(&s, id, &a, &now, &err);
	if (r == -EALREADY && (!now.by || !*now.by || strcmp(now.by, by) == 0))
		return 2; /* the loser is told who won */
	return r == 0 ? 0 : r == -EALREADY ? 1 : 2;
}

static void one_round(void)
{
	struct entry e = some_entry();
	struct err err = { 0 };
	struct store s;
	int count[3] = { 0 };
	int gate[2];

	CHECK_INT(store_open(&s, &err), 0);
	CHECK_INT(store_add(&s, &e, 0, &err), 0);
	store_close(&s);
	CHECK_INT(pipe2(gate, O_CLOEXEC), 0);
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			(void)close(gate[1]);
			_exit(contend(gate[0], e.id, i));
		}
	(void)close(gate[0]);
	(void)usleep(10000);
	(void)close(gate[1]);
	for (int i = 0; i < 4; i++) {
		int status = 0;

		CHECK(wait(&status) > 0 && WIFEXITED(status));
		count[MIN(WEXITSTATUS(status), 2)]++;
	}
	CHECK_INT(count[0], 1);
	CHECK_INT(count[1], 3);
}

TEST(store_of_concurrent_answers_exactly_one_wins)
{
	use_place();
	for (int round = 0; round < 60; round++)
		one_round();
	remove_place();
}

static void make_and_remove(const char *path)
{
	for (;;) {
		(void)close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		(void)unlink(path);
	}
}

/* As SQLite's files go when another closes the store last. */
TEST(store_files_may_go_while_they_are_opened)
{
	struct state s;
	struct err err = { 0 };
	char path[64];
	int strange = 0;
	int seen = 0;
	pid_t pid;

	use_place();
	CHECK_INT(desk_state_open(&s, &err), 0);
	(void)snprintf(path, sizeof(path), "%s/x", place);
	pid = fork();
	if (pid == 0)
		make_and_remove(path);
	for (int i = 0; i < 50000; i++) {
		int fd = state_file(&s, "x", O_RDWR, &err);

		seen += fd >= 0;
		if (fd >= 0)
			(void)close(fd);
		else
			strange += fd != -ENOENT;
	}
	CHECK(seen > 0);
	CHECK_INT(strange, 0);
	(void)kill(pid, SIGKILL);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK_INT(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
	CHECK_INT(linkat(s.fd, "x", s.fd, "y", 0), 0);
	CHECK_INT(state_file(&s, "x", O_RDWR, &err), -EPERM);
	state_close(&s);
	remove_place();
}

static int fails(const struct entry *e, void *arg, struct err *err)
{
	(void)e;
	(void)arg;
	return err_set(err, EIO, "on purpose");
}

TEST(store_an_answer_whose_rule_fails_does_not_hold)
{
	struct store_answer yes = { .is_allowed = true,
				    .scope = SCOPE_ALWAYS,
				    .by = "one",
				    .also = fails };
	struct entry e = some_entry();
	struct entry now;
	struct err err = { 0 };
	struct store s;

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	CHECK_INT(store_add(&s, &e, 0, &err), 0);
	CHECK_INT(store_answer(&s, e.id, &yes, &now, &err), -EIO);
	CHECK_INT(store_get(&s, e.id, &now, &err), 0);
	CHECK_INT(now.state, ENTRY_WAITING);
	entry_done(&now);
	store_close(&s);
	remove_place();
}

TEST(store_expired_requests_are_not_answered)
{
	struct store_answer yes = { .is_allowed = true, .by = "one" };
	struct entry e = some_entry();
	struct entry now;
	struct err err = { 0 };
	struct store s;

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	e.expires = e.made; /* at once */
	CHECK_INT(store_add(&s, &e, 0, &err), 0);
	CHECK_INT(store_answer(&s, e.id, &yes, &now, &err), -ETIME);
	entry_done(&now);
	/* Made in the future: the clock was set back. */
	e.made += 3600000;
	e.expires = e.made + 60000;
	CHECK_INT(store_add(&s, &e, 0, &err), 0);
	CHECK_INT(store_answer(&s, e.id, &yes, &now, &err), -ETIME);
	entry_done(&now);
	store_close(&s);
	remove_place();
}

TEST(store_holds_no_more_than_it_may)
{
	struct entry e = some_entry();
	struct err err = { 0 };
	struct store s;
	int r = 0;
	int n = 0;

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	for (; n <= STORE_WAITING && r == 0; n++)
		r = store_add(&s, &e, 0, &err);
	CHECK_INT(r, -EBUSY);
	CHECK_INT(n, STORE_WAITING + 1);
	store_close(&s);
	remove_place();
}

TEST(store_holds_so_many_of_one_user)
{
	struct entry e = some_entry();
	struct err err = { 0 };
	struct store s;
	int r = 0;
	int n = 0;

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	for (; n <= STORE_PEER && r == 0; n++)
		r = store_add(&s, &e, STORE_PEER, &err);
	CHECK_INT(r, -EBUSY);
	CHECK_INT(n, STORE_PEER + 1);
	e.user = (char *)"another";
	CHECK_INT(store_add(&s, &e, STORE_PEER, &err), 0);
	store_close(&s);
	remove_place();
}

/* A request of a million bytes. */
static char *large_document(void)
{
	static char word[100001];
	struct buf b;

	memset(word, 'x', 100000);
	buf_init(&b, REQUEST_MAX);
	buf_puts(&b, "{\"version\":1,\"kind\":\"command\",\"programs\":"
		     "[{\"join\":\"\",\"argv\":[\"git\"");
	for (int i = 0; i < 9; i++)
		if (buf_puts(&b, ",\"") == 0 && buf_puts(&b, word) == 0)
			buf_puts(&b, "\"");
	buf_puts(&b, "]}],\"why\":\"w\",\"rule\":\"the rule\",\"changes\":[\"");
	buf_puts(&b, word);
	buf_puts(&b, "\"],\"ask\":[\"store\"]}");
	return buf_take(&b);
}

/* Its document was cut, and still tells what it was. */
static void check_small(struct store *s, const char *id, enum entry_state state)
{
	struct entry e;
	struct request req;
	struct err err = { 0 };

	CHECK_INT(store_get(s, id, &e, &err), 0);
	CHECK_INT(e.state, state);
	CHECK(strlen(e.document) < STORE_SMALL);
	CHECK(strncmp(e.document, REQUEST_CUT, strlen(REQUEST_CUT)) == 0);
	CHECK_INT(request_parse(e.document, strlen(e.document), &req, &err), 0);
	CHECK(req.is_cut);
	CHECK_STR(req.rule, "the rule");
	CHECK_STR(req.programs[0].argv.v[0], "git");
	request_done(&req);
	entry_done(&e);
}

TEST(store_keeps_little_of_what_ended)
{
	struct store_answer no = { .by = "one" };
	struct store_answer yes = { .is_allowed = true, .by = "one" };
	struct entry e = some_entry();
	struct entry now;
	struct err err = { 0 };
	struct store s;
	char ids[5][STORE_ID + 1];

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	e.document = large_document();
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		e.expires = e.made + (i == 0 ? 0 : 60000);
		CHECK_INT(store_add(&s, &e, STORE_PEER, &err), 0);
		(void)strcpy(ids[i], e.id);
	}
	CHECK_INT(store_expire(&s, ids[1], &err), 0);
	CHECK_INT(store_answer(&s, ids[2], &no, &now, &err), 0);
	entry_done(&now);
	CHECK_INT(store_answer(&s, ids[3], &yes, &now, &err), 0);
	entry_done(&now);
	CHECK_INT(store_add(&s, &e, STORE_PEER, &err), 0);
	check_small(&s, ids[0], ENTRY_EXPIRED);
	check_small(&s, ids[1], ENTRY_EXPIRED);
	check_small(&s, ids[2], ENTRY_DENIED);
	/* What a person said yes to, and what waits, is whole. */
	for (size_t i = 3; i < ARRAY_SIZE(ids); i++) {
		CHECK_INT(store_get(&s, ids[i], &now, &err), 0);
		CHECK_STR(now.document, e.document);
		entry_done(&now);
	}
	free(e.document);
	store_close(&s);
	remove_place();
}

static int count(const struct entry *e, void *arg)
{
	(void)e;
	++*(int *)arg;
	return 0;
}

TEST(store_keeps_so_many_of_one_user)
{
	struct entry e = some_entry();
	struct err err = { 0 };
	struct store s;
	char first[STORE_ID + 1];
	int n = 0;

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	e.user = (char *)"another";
	e.made -= 10;
	e.expires = e.made;
	CHECK_INT(store_add(&s, &e, STORE_PEER, &err), 0);
	e.user = (char *)"u";
	CHECK_INT(store_add(&s, &e, STORE_PEER, &err), 0);
	(void)strcpy(first, e.id);
	e.made += 10;
	e.expires = e.made;
	for (int i = 0; i < STORE_ENDED + 10; i++)
		CHECK_INT(store_add(&s, &e, STORE_PEER, &err), 0);
	CHECK_INT(store_list(&s, true, count, &n, &err), 0);
	CHECK_INT(n, STORE_ENDED + 2); /* the last, and another's */
	CHECK_INT(store_get(&s, first, &e, &err), -ENOENT);
	store_close(&s);
	remove_place();
}

static int add_grant(const struct entry *e, void *arg, struct err *err)
{
	const struct rule rule = { .id = (char *)e->id,
				   .content = (char *)e->content,
				   .by = e->by };

	return grant_add(arg, e->session, &rule, e->answered, err);
}

static bool has_grant(struct store *s, const char *session, const char *content)
{
	const struct rule_subject what = { .content = content };
	struct rules have;
	struct err err = { 0 };
	bool ret;

	CHECK_INT(grants_load(s, session, &have, &err), 0);
	ret = rules_find(&have, &what, false) != NULL;
	rules_done(&have);
	return ret;
}

TEST(store_grants_are_for_session_and_content)
{
	struct store s;
	struct store_answer yes = { .is_allowed = true,
				    .scope = SCOPE_SESSION,
				    .by = "one",
				    .also = add_grant,
				    .arg = &s };
	struct entry e = some_entry();
	struct entry now;
	struct err err = { 0 };
	char other[65];

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	CHECK_INT(store_add(&s, &e, 0, &err), 0);
	CHECK(!has_grant(&s, "named s", e.content));
	CHECK_INT(store_answer(&s, e.id, &yes, &now, &err), 0);
	entry_done(&now);
	CHECK(has_grant(&s, "named s", e.content));
	(void)strcpy(other, e.content);
	other[63] = 'b';
	CHECK(!has_grant(&s, "named s", other));
	CHECK(!has_grant(&s, "named t", e.content));
	CHECK(!has_grant(&s, "", e.content));
	CHECK_INT(grant_remove(&s, e.id, &err), 0);
	CHECK(!has_grant(&s, "named s", e.content));
	/* Without a session there is none to bind it to. */
	e.session = (char *)"";
	CHECK_INT(store_add(&s, &e, 0, &err), 0);
	CHECK_INT(store_answer(&s, e.id, &yes, &now, &err), -EINVAL);
	store_close(&s);
	remove_place();
}

/* Reads the whole file. */
static size_t slurp(const char *path, unsigned char *data, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(data, 1, size, f) : 0;

	if (f)
		(void)fclose(f);
	return n;
}

static void spill(const char *path, const unsigned char *data, size_t size)
{
	FILE *f = fopen(path, "we");

	CHECK(f && fwrite(data, 1, size, f) == size);
	if (f)
		(void)fclose(f);
}

/*
 * One request was denied, one waits, one was allowed and used. Whatever byte
 * of the file is changed, none of them can be taken.
 */
TEST(store_no_flipped_byte_makes_an_answer)
{
	static unsigned char good[1 << 20];
	static unsigned char bad[1 << 20];
	struct store_answer no = { .by = "one" };
	struct store_answer yes = { .is_allowed = true, .by = "one" };
	struct entry e[3] = { some_entry(), some_entry(), some_entry() };
	struct entry now;
	struct err err = { 0 };
	struct store s;
	char path[128];
	size_t size;
	int opened = 0;
	int tried = 0;

	use_place();
	(void)snprintf(path, sizeof(path), "%s/approvals.sqlite", place);
	CHECK_INT(store_open(&s, &err), 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(store_add(&s, &e[i], 0, &err), 0);
	CHECK_INT(store_answer(&s, e[0].id, &no, &now, &err), 0);
	entry_done(&now);
	CHECK_INT(store_answer(&s, e[2].id, &yes, &now, &err), 0);
	entry_done(&now);
	CHECK_INT(store_take(&s, e[2].id, &err), 0);
	store_close(&s);
	size = slurp(path, good, sizeof(good));
	CHECK(size > 4096 && size < sizeof(good));
	for (size_t at = 0; at < size; at++) {
		/* Where there is nothing, a change means nothing. */
		if (!good[at])
			continue;
		memcpy(bad, good, size);
		bad[at] ^= (unsigned char)(1U << at % 8);
		spill(path, bad, size);
		tried++;
		if (store_open(&s, &err) < 0)
			continue;
		opened++;
		for (int k = 0; k < 3; k++)
			CHECK(store_take(&s, e[k].id, &err) < 0);
		store_close(&s);
	}
	/* The control: an unchanged copy can still be answered and taken. */
	spill(path, good, size);
	CHECK_INT(store_open(&s, &err), 0);
	CHECK_INT(store_answer(&s, e[1].id, &yes, &now, &err), 0);
	entry_done(&now);
	CHECK_INT(store_take(&s, e[1].id, &err), 0);
	store_close(&s);
	CHECK(tried > 1000 && opened > 0);
	printf("# %d of %d damaged files could be opened\n", opened, tried);
	remove_place();
}

/* One change behind the store's back: nothing of the row is believed. */
static void check_change(struct store *s, const char *change, bool answered)
{
	struct store_answer yes = { .is_allowed = true, .by = "one" };
	struct err err = { 0 };
	struct entry e = some_entry();
	struct entry now;

	CHECK_INT(store_add(s, &e, 0, &err), 0);
	if (answered) {
		CHECK_INT(store_answer(s, e.id, &yes, &now, &err), 0);
		entry_done(&now);
		CHECK_INT(store_take(s, e.id, &err), 0);
	}
	CHECK_INT(sqlite3_exec(s->db, change, NULL, NULL, NULL), 0);
	CHECK_INT(store_take(s, e.id, &err), -EBADMSG);
	CHECK_INT(store_get(s, e.id, &now, &err), -EBADMSG);
	CHECK_INT(store_answer(s, e.id, &yes, &now, &err), -EBADMSG);
	CHECK_INT(sqlite3_exec(s->db, "DELETE FROM requests", NULL, NULL, NULL),
		  0);
}

/* A row whose pages are whole, and that is not what was written. */
TEST(store_a_row_without_its_seal_is_not_believed)
{
	static const char *const changes[] = {
		"UPDATE requests SET state = 'allowed'",
		"UPDATE requests SET state = 'waiting', taken = 0",
		"UPDATE requests SET taken = 0",
		"UPDATE requests SET scope = 'always'",
		"UPDATE requests SET expires = expires + 1000000",
		"UPDATE requests SET document = '{ }'",
		"UPDATE requests SET content = replace(content, 'a', 'b')",
	};
	struct err err = { 0 };
	struct store s;

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		check_change(&s, changes[i], i > 0);
	store_close(&s);
	remove_place();
}

/* rules */

TEST(rules_are_added_found_and_removed)
{
	struct rule one = { .id = (char *)"abc234",
			    .kind = (char *)"command",
			    .what = (char *)"ls \xff",
			    .rule = (char *)"r",
			    .by = (char *)"me",
			    .when = (char *)"now",
			    .reason = (char *)"\"quoted\"\n" };
	struct rules have;
	struct state s;
	struct err err = { 0 };
	char content[65] = { 0 };
	const struct rule_subject what = { .content = content };

	use_place();
	memset(content, 'b', 64);
	one.content = content;
	CHECK_INT(desk_state_open(&s, &err), 0);
	CHECK_INT(rules_load(&s, &have, &err), 0);
	CHECK_INT((long long)have.n, 0);
	CHECK_INT(rules_add(&s, &one, &err), 0);
	one.id = (char *)"xyz234";
	content[0] = 'c';
	CHECK_INT(rules_add(&s, &one, &err), 0);
	CHECK_INT(rules_load(&s, &have, &err), 0);
	CHECK_INT((long long)have.n, 2);
	CHECK(rules_find(&have, &what, false) == &have.v[1]);
	CHECK(!rules_find(&have, &what, true));
	CHECK_STR(have.v[0].what, "ls \xff");
	CHECK_STR(have.v[0].reason, "\"quoted\"\n");
	content[63] = 'a';
	CHECK(!rules_find(&have, &what, false));
	rules_done(&have);
	CHECK_INT(rules_remove(&s, "abc", &err), -ENOENT);
	CHECK_INT(rules_remove(&s, "abc234", &err), 0);
	CHECK_INT(rules_load(&s, &have, &err), 0);
	CHECK_INT((long long)have.n, 1);
	rules_done(&have);
	state_close(&s);
	remove_place();
}

TEST(asker_a_process_is_known_by_its_start)
{
	CHECK(process_start(getpid()) > 0);
	CHECK(process_start(getpid()) == process_start(getpid()));
	CHECK_INT(process_start(0), -1);
	CHECK_INT(process_start(-5), -1);
	CHECK_INT(process_start(2147483647), -1);
}

/* the desk's answer */

#define ANSWER(d, s)                                                           \
	"{\"id\":\"abc234\",\"decision\":\"" d "\",\"scope\":\"" s             \
	"\",\"reason\":\"a \\\"b\\\"\\n\\u001b\",\"by\":\"me\"}\n"

TEST(approve_reads_an_answer)
{
	struct approve_answer a;
	const char *text = ANSWER("allow", "session");

	CHECK_INT(approve_parse(text, strlen(text), &a), 0);
	CHECK(a.is_allowed);
	CHECK_STR(a.id, "abc234");
	CHECK_STR(a.scope, "session");
	CHECK_STR(a.reason, "a \"b\"\n\033");
	CHECK_STR(a.by, "me");
	text = ANSWER("deny", "once");
	CHECK_INT(approve_parse(text, strlen(text), &a), 0);
	CHECK(!a.is_allowed);
}

TEST(approve_reads_no_part_and_no_more)
{
	static const char *const bad[] = {
		"",
		"{}\n",
		"allow\n",
		ANSWER("allowed", "once"),
		ANSWER("Allow", "once"),
		ANSWER("", "once"),
		ANSWER("allow", "ever"),
		ANSWER("allow", "once") "\n",
		ANSWER("allow", "once") ANSWER("allow", "once"),
		" " ANSWER("allow", "once"),
		"{\"decision\":\"allow\"}\n",
		"{\"id\":\"x\",\"decision\":\"deny\",\"decision\":\"allow\","
		"\"scope\":\"once\",\"reason\":\"\",\"by\":\"\"}\n",
		"{\"id\":\"much too long an id\",\"decision\":\"allow\","
		"\"scope\":\"once\",\"reason\":\"\",\"by\":\"\"}\n",
		"{\"id\":\"x\",\"decision\":\"allow\",\"scope\":\"once\","
		"\"reason\":\"\\u0000\",\"by\":\"\"}\n",
		"{\"id\":\"x\",\"decision\":\"allow\",\"scope\":\"once\","
		"\"reason\":\"\\q\",\"by\":\"\"}\n",
	};
	const char *whole = ANSWER("allow", "once");
	struct approve_answer a;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_INT(approve_parse(bad[i], strlen(bad[i]), &a), -EBADMSG);
	for (size_t n = 0; n < strlen(whole); n++)
		CHECK_INT(approve_parse(whole, n, &a), -EBADMSG);
	CHECK_INT(approve_parse(whole, strlen(whole), &a), 0);
}

static int understand(const char *text, int code, struct approve_answer *ret)
{
	struct err err = { 0 };
	struct buf said;
	int r;

	buf_init(&said, 4096);
	buf_puts(&said, text);
	r = approve_understand(&said, code << 8, ret, &err);
	buf_done(&said);
	return r;
}

TEST(approve_understands_only_what_fits_the_status)
{
#define TAIL ",\"scope\":\"once\",\"reason\":\"r\",\"by\":\"b\"}\n"
	const char *yes = "{\"id\":\"abc\",\"decision\":\"allow\"" TAIL;
	const char *no = "{\"id\":\"abc\",\"decision\":\"deny\"" TAIL;
	struct approve_answer a;

	CHECK_INT(understand(yes, 0, &a), 0);
	CHECK(a.is_allowed);
	CHECK_INT(understand(no, 1, &a), 0);
	CHECK(!a.is_allowed);
	CHECK_INT(understand(no, APPROVE_BUSY, &a), -EAGAIN);
	CHECK(!a.is_allowed);
	CHECK_INT(understand(no, APPROVE_WAITS, &a), -ETIME);
	CHECK(!a.is_allowed);
	CHECK_STR(a.id, "abc");
	for (int code = 1; code < 256; code++) {
		CHECK(understand(yes, code, &a) < 0);
		CHECK(!a.is_allowed);
	}
	CHECK_INT(understand(no, 0, &a), -EIO);
	CHECK_INT(understand("", 0, &a), -EBADMSG);
	CHECK(!a.is_allowed);
}

TEST(approve_writes_what_the_desk_reads)
{
	const char *const argv[] = { "git", "p\xff", "", NULL };
	const struct approve_program programs[] = { { "", argv },
						    { "&&", argv } };
	const char *const changes[] = { "a", NULL };
	const struct approve_request ask = {
		.kind = "command",
		.programs = programs,
		.n_programs = 2,
		.why = "w",
		.rule = "r",
		.file = "/f",
		.line = 3,
		.changes = changes,
		.expire_ms = 5,
		.may_terminal = true,
		.hide_text = true,
		.run = "1",
		.box = "2",
		.face = "3",
	};
	struct request req;
	struct buf out;

	buf_init(&out, 1 << 20);
	approve_format(&ask, &out);
	CHECK_INT(request_parse(out.data, out.len, &req, NULL), 0);
	CHECK_INT((long long)req.n_programs, 2);
	CHECK_STR(req.programs[1].join, "&&");
	CHECK_STR(req.programs[1].argv.v[1], "p\xff");
	CHECK_INT((long long)req.programs[1].argv.n, 3);
	CHECK_INT((long long)req.expire_ms, 5);
	CHECK(req.may_terminal && !req.may_store);
	CHECK(req.hide_text && !req.has_peer);
	CHECK_STR(req.run, "1");
	CHECK_STR(req.box, "2");
	CHECK_STR(req.face, "3");
	request_done(&req);
	buf_done(&out);
}

TEST(approve_long_code_goes_by_its_hash)
{
	static char code[400 << 10];
	struct approve_request ask = { .kind = "code",
				       .language = "sh",
				       .text = code,
				       .text_len = sizeof(code),
				       .why = "w",
				       .rule = "r",
				       .may_store = true };
	struct request req;
	struct buf out;
	char one[65];
	char two[65];

	memset(code, 'x', sizeof(code));
	buf_init(&out, 2 << 20);
	approve_format(&ask, &out);
	CHECK_INT(request_parse(out.data, out.len, &req, NULL), 0);
	CHECK_INT((long long)req.text_bytes, sizeof(code));
	CHECK_INT((long long)req.text_len, REQUEST_TEXT);
	request_content(&req, one);
	request_done(&req);
	buf_done(&out);
	/* The last byte, which is not shown, counts. */
	code[sizeof(code) - 1] = 'y';
	approve_format(&ask, &out);
	CHECK_INT(request_parse(out.data, out.len, &req, NULL), 0);
	request_content(&req, two);
	CHECK(strcmp(one, two) != 0);
	request_done(&req);
	buf_done(&out);
}

TAP_MAIN()
