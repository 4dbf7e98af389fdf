/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Remembered answers with a pattern: globs, paths, what a yes must cover and
 * what a no must not be got round by; rules; the store of version 1.
 */

#include "tests/tap.h"

#include <errno.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/util.h"
#include "desk/glob.h"
#include "desk/pattern.h"
#include "desk/request.h"
#include "desk/rules.h"
#include "desk/store.h"

TEST(globs_allow_what_is_meant)
{
	static const struct {
		const char *glob, *text;
		bool allows, denies;
	} rows[] = {
		{ "a", "a", true, true },
		{ "a", "A", false, false },
		{ "a", "ab", false, false },
		{ "*", "abc", true, true },
		{ "*", "", false, false },
		{ "*", "a/b", false, false },
		{ "**", "a/b", true, true },
		{ "src/*", "src/x.c", true, true },
		{ "src/*", "src/", false, false },
		{ "src/*", "src", false, false },
		{ "src/*", "src/a/b", false, false },
		{ "src/**", "src/a/b", true, true },
		{ "src/**", "srcs/a", false, false },
		{ "*.txt", "a.txt", true, true },
		{ "*.txt", ".txt", true, true },
		{ "*.txt", "a.txt\n", false, false },
		{ "re*port*", "report", true, true },
		{ "a?c", "abc", true, true },
		{ "a?c", "a/c", false, false },
		{ "a?c",
		  "a\xc3\xa9"
		  "c",
		  true, true },
		{ "\\*", "*", true, true },
		{ "\\*", "a", false, false },
		{ "a**b**c", "a/xb/y/bc", true, true },
		{ "https://x.org/**", "https://x.org/a/b", true, true },
		/* Places that are not where they seem: no yes, but a no. */
		{ "src/*", "src/..", false, true },
		{ "src/**", "src/../etc/passwd", false, true },
		{ "src/**", "src/./a", false, true },
		{ "src/**", "src//a", false, true },
		{ "src/**", "./src/a", false, true },
		{ "src/**", "b/../src/a", false, true },
		{ "/etc/**", "//etc/passwd", false, true },
		{ "/etc/**", "/../etc/x", false, true },
		{ "https://x.org/**", "https://x.org//a", false, true },
		{ "src/*", "src/%2e%2e%2fetc", false, true },
		{ "src/*", "src/%2E%2E", false, true },
		{ "src/*", "src/..\\etc", false, true },
		/* Unseen: a newline, an escape, a bidi override, a tag. */
		{ "ls *", "ls a\nrm b", false, true },
		{ "ls *", "ls \033[2K", false, true },
		{ "ls *", "ls \xe2\x80\xae", false, true },
		{ "ls *", "ls \xf3\xa0\x81\x81", false, true },
		/* The same to the eye, and other bytes. */
		{ "caf\xc3\xa9", "cafe\xcc\x81", false, false },
		{ "a", "\xd0\xb0", false, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (glob_allows(rows[i].glob, rows[i].text) != rows[i].allows ||
		    glob_denies(rows[i].glob, rows[i].text) != rows[i].denies)
			printf("# %s on '%s'\n", rows[i].glob, rows[i].text);
		CHECK(glob_allows(rows[i].glob, rows[i].text) ==
		      rows[i].allows);
		CHECK(glob_denies(rows[i].glob, rows[i].text) ==
		      rows[i].denies);
	}
}

TEST(globs_that_are_none_and_those_that_are_huge)
{
	static const char *const bad[] = { "",    "[a]", "{a,b}",
					   "a\\", "***", "\xff" };
	static char big[2 * GLOB_TEXT];
	static char stars[GLOB_MAX + 1];
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK(glob_check(bad[i], &err) < 0);
		CHECK(!glob_allows(bad[i], bad[i]));
	}
	memset(big, 'a', sizeof(big) - 1);
	CHECK(glob_check(big, &err) == -E2BIG);
	/* Too long to be looked at: not allowed, and not let through. */
	CHECK(!glob_allows("**", big));
	CHECK(glob_denies("b", big));
	big[GLOB_TEXT] = '\0';
	CHECK(glob_allows("**", big));
	/* No way back: what makes other matchers slow ends at once. */
	for (size_t i = 0; i < GLOB_MAX; i++)
		stars[i] = i % 2 ? 'a' : '*';
	stars[GLOB_MAX - 1] = 'b';
	CHECK(!glob_allows(stars, big));
}

static json_t *pattern(const char *text)
{
	struct err err = { 0 };
	json_t *p = pattern_parse(text, &err);

	if (!p)
		printf("# %s: %s\n", text, err.text);
	CHECK(p);
	return p;
}

#define P(terms)        "[" terms "]"
#define EQ(path, value) "{\"path\":\"" path "\",\"equals\":" value "}"
#define GL(path, value) "{\"path\":\"" path "\",\"glob\":\"" value "\"}"
#define ANY(path)       "{\"path\":\"" path "\",\"any\":true}"

TEST(a_yes_covers_everything_and_a_no_is_not_got_round)
{
	static const struct {
		const char *pattern, *args;
		bool allows, denies;
	} rows[] = {
		{ P(EQ("$.n", "1")), "{\"n\":1}", true, true },
		/* One number is not another thing that looks like it. */
		{ P(EQ("$.n", "1")), "{\"n\":\"1\"}", false, false },
		{ P(EQ("$.n", "\"1\"")), "{\"n\":1}", false, false },
		{ P(EQ("$.n", "1")), "{\"n\":1.0}", false, false },
		{ P(EQ("$.n", "1")), "{\"n\":true}", false, false },
		{ P(EQ("$.n", "0")), "{\"n\":false}", false, false },
		{ P(EQ("$.n", "null")), "{\"n\":null}", true, true },
		{ P(EQ("$.n", "null")), "{}", false, false },
		{ P(EQ("$.n", "[1]")), "{\"n\":[1]}", true, true },
		{ P(EQ("$.n", "[1]")), "{\"n\":[1,2]}", false, false },
		{ P(EQ("$.n", "{\"a\":1}")), "{\"n\":{\"a\":1}}", true, true },
		{ P(EQ("$.n", "{\"a\":1}")), "{\"n\":{\"a\":1,\"b\":2}}", false,
		  false },
		{ P(GL("$.n", "*")), "{\"n\":1}", false, false },
		{ P(GL("$.n", "*")), "{\"n\":[\"a\"]}", false, false },
		{ P(GL("$.n", "*")), "{\"n\":null}", false, false },
		/* What is not told of: no yes, and no way round a no. */
		{ P(EQ("$.a", "1")), "{\"a\":1,\"force\":true}", false, true },
		{ P(EQ("$.a", "1")), "{\"a\":1,\"x\":{}}", false, true },
		{ P(EQ("$.a", "1")), "{\"a\":1,\"x\":[]}", false, true },
		{ P(EQ("$.a", "1")), "{\"a\":1,\"\":1}", false, true },
		{ P(EQ("$.a", "1") "," ANY("$.x")), "{\"a\":1,\"x\":[{}]}",
		  true, true },
		{ P(EQ("$.a", "1") "," ANY("$.x")), "{\"a\":1}", true, true },
		{ P(EQ("$.a", "1") "," ANY("$.x")), "{\"a\":1,\"y\":0}", false,
		  true },
		/* A key twice is no arguments at all. */
		{ P(EQ("$.a", "1")), "{\"a\":1,\"a\":2}", false, true },
		{ P(EQ("$.a", "1")), "{\"a\":2,\"a\":1}", false, true },
		{ P(EQ("$.a", "1")), "{\"a\":1,\"\\u0061\":1}", false, true },
		{ P(EQ("$.a", "1")), "{\"a\":1", false, true },
		{ P(EQ("$.a", "1")), "[1]", false, false },
		{ P(ANY("$")), "{\"a\":[1,{\"b\":2}]}", true, true },
		{ P(ANY("$")), "[1]", false, false },
		/* Within lists and objects. */
		{ P(EQ("$.l[0]", "1") "," EQ("$.l[1]", "2")), "{\"l\":[1,2]}",
		  true, true },
		{ P(EQ("$.l[0]", "1") "," EQ("$.l[1]", "2")), "{\"l\":[1,2,3]}",
		  false, true },
		{ P(EQ("$.l[0]", "1")), "{\"l\":{\"0\":1}}", false, false },
		{ P(EQ("$.l[\\\"0\\\"]", "1")), "{\"l\":[1]}", false, false },
		{ P(EQ("$.o.a", "1") "," ANY("$.o.b")),
		  "{\"o\":{\"a\":1,\"b\":[]}}", true, true },
		{ P(EQ("$.o.a", "1")), "{\"o\":{\"a\":1,\"b\":[]}}", false,
		  true },
		{ P(EQ("$[\\\"a.b\\\"]", "1")), "{\"a.b\":1}", true, true },
		{ P(EQ("$.a.b", "1")), "{\"a.b\":1}", false, false },
		/* Escapes are the characters they stand for. */
		{ P(EQ("$.a", "\"\\u00e9\"")), "{\"a\":\"\xc3\xa9\"}", true,
		  true },
		{ P(EQ("$.a", "\"\xc3\xa9\"")), "{\"a\":\"e\\u0301\"}", false,
		  false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *p = pattern(rows[i].pattern);
		bool allows = pattern_allows(p, rows[i].args);
		bool denies = pattern_denies(p, rows[i].args);

		if (allows != rows[i].allows || denies != rows[i].denies)
			printf("# %s on %s\n", rows[i].pattern, rows[i].args);
		CHECK(allows == rows[i].allows);
		CHECK(denies == rows[i].denies);
		json_decref(p);
	}
}

TEST(patterns_that_are_none)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"[1]",
		"1",
		"[{}]",
		"[{\"path\":\"$.a\"}]",
		"[{\"path\":\"a\",\"any\":true}]",
		"[{\"path\":\"$..a\",\"any\":true}]",
		"[{\"path\":\"$.*\",\"any\":true}]",
		"[{\"path\":\"$[*]\",\"any\":true}]",
		"[{\"path\":\"$[01]\",\"any\":true}]",
		"[{\"path\":\"$[-1]\",\"any\":true}]",
		"[{\"path\":\"$[\\\"\\\"]\",\"any\":true}]",
		"[{\"path\":\"$.a \",\"any\":true}]",
		"[{\"path\":\"$.a\",\"any\":false}]",
		"[{\"path\":\"$.a\",\"glob\":1}]",
		"[{\"path\":\"$.a\",\"glob\":\"[x]\"}]",
		"[{\"path\":\"$.a\",\"glob\":\"x\",\"any\":true}]",
		"[{\"path\":\"$.a\",\"regex\":\"x\"}]",
		"[{\"path\":\"$.a\",\"path\":\"$.b\",\"any\":true}]",
		("[{\"path\":\"$.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a\",\"any\":"
		 "true}]"),
	};
	static char big[PATTERN_MAX + 100];
	struct err err = { 0 };
	json_t *p;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		p = pattern_parse(bad[i], &err);
		if (p)
			printf("# %s\n", bad[i]);
		CHECK(!p);
	}
	memset(big, ' ', sizeof(big) - 1);
	CHECK(!pattern_parse(big, &err));
	CHECK_INT(err.code, E2BIG);
	p = json_array();
	for (int i = 0; i <= PATTERN_TERMS; i++)
		CHECK_INT(pattern_add(p, "any", "$.a", &err), 0);
	{
		char *text = json_dumps(p, 0);

		CHECK(!pattern_parse(text, &err));
		free(text);
	}
	json_decref(p);
}

TEST(terms_of_flags)
{
	json_t *p = json_array();
	struct err err = { 0 };
	struct buf shown;

	CHECK_INT(pattern_add(p, "equals", "$[\"a=b\"]=\"=\"", &err), 0);
	CHECK_INT(pattern_add(p, "glob", "$.path=src/*", &err), 0);
	CHECK_INT(pattern_add(p, "any", "$.x", &err), 0);
	CHECK(pattern_allows(p, "{\"a=b\":\"=\",\"path\":\"src/a\"}"));
	buf_init(&shown, 4096);
	pattern_show(p, &shown);
	CHECK_STR(shown.data, "$[\"a=b\"] equals \"=\", $.path glob "
			      "\"src/*\", $.x any");
	buf_done(&shown);
	CHECK(pattern_add(p, "equals", "$.a=text", &err) < 0);
	CHECK_HAS(err.text, "a text stands in quotes");
	CHECK(pattern_add(p, "equals", "$.a", &err) < 0);
	CHECK(pattern_add(p, "glob", "path=x", &err) < 0);
	CHECK(pattern_add(p, "any", "$.a=1", &err) < 0);
	CHECK(pattern_add(p, "glob", "$.a=\xff", &err) < 0);
	CHECK(pattern_add(p, "glob", "$.a=", &err) < 0);
	json_decref(p);
}

/* requests and rules */

#define TOOL                                                                   \
	"{\"version\":1,\"kind\":\"tool\",\"target\":\"write_file\","          \
	"\"agent\":\"coder\",\"why\":\"w\",\"rule\":\"r\",\"file\":\"f\","     \
	"\"ask\":[\"store\"]"

static void frame(const char *more, bool is_wide, char ret[65])
{
	struct request r;
	struct err err = { 0 };
	char doc[1000];

	(void)snprintf(doc, sizeof(doc), "%s%s}", TOOL, more);
	CHECK_INT(request_parse(doc, strlen(doc), &r, &err), 0);
	request_frame(&r, is_wide, ret);
	request_done(&r);
}

TEST(a_frame_is_all_but_the_arguments)
{
	static const struct {
		const char *more;
		bool same;
	} rows[] = {
		{ ",\"changes\":[\"write b\",\"below /d\"],\"told\":1", true },
		{ ",\"changes\":[\"write b\",\"below /d\"],\"told\":1,"
		  "\"arguments\":\"{}\",\"team\":\"t\"",
		  true },
		{ ",\"changes\":[\"write a\",\"below /e\"],\"told\":1", false },
		{ ",\"changes\":[\"write a\",\"below /d\"]", false },
		{ ",\"changes\":[\"x\",\"below /d\",\"y\"],\"told\":1", false },
		{ ",\"changes\":[\"x\",\"below /d\"],\"told\":1,"
		  "\"code\":[\"python\"]",
		  false },
		{ ",\"changes\":[\"x\",\"below /d\"],\"told\":1,"
		  "\"class\":\"contained\"",
		  false },
	};
	char one[65];
	char other[65];

	frame(",\"changes\":[\"write a\",\"below /d\"],\"told\":1", false, one);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		frame(rows[i].more, false, other);
		CHECK(!strcmp(one, other) == rows[i].same);
	}
	/* A no is for tool and agent, whatever the limits have become. */
	frame(",\"changes\":[\"a\"]", true, one);
	frame(",\"changes\":[\"b\"],\"code\":[\"python\"]", true, other);
	CHECK_STR(one, other);
}

static const char content_a[] =
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char content_b[] =
	"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

TEST(a_deny_wins_and_rules_end)
{
	struct rule v[] = {
		{ .id = (char *)"one",
		  .content = (char *)content_a,
		  .frame = (char *)content_a,
		  .arguments = (char *)P(GL("$.p", "src/**")) },
		{ .id = (char *)"two",
		  .content = (char *)content_a,
		  .decision = (char *)"deny",
		  .frame = (char *)content_b,
		  .arguments = (char *)P(GL("$.p", "src/secret/**")) },
	};
	const struct rules rules = { v, ARRAY_SIZE(v) };
	struct rule_subject s = { .content = content_b,
				  .frame = content_a,
				  .wide = content_b,
				  .arguments = "{\"p\":\"src/secret/x\"}",
				  .now = 1000 };

	CHECK(rules_find(&rules, &s, true) == &v[1]);
	CHECK(rules_find(&rules, &s, false) == &v[0]);
	/* A key more gets round no deny. */
	s.arguments = "{\"p\":\"src/secret/x\",\"q\":1}";
	CHECK(rules_find(&rules, &s, true) == &v[1]);
	CHECK(!rules_find(&rules, &s, false));
	s.arguments = "{\"p\":\"src/a\"}";
	CHECK(!rules_find(&rules, &s, true));
	CHECK(rules_find(&rules, &s, false) == &v[0]);
	/* Another frame, or none: code, or no tool. */
	s.frame = content_b;
	CHECK(!rules_find(&rules, &s, false));
	s.frame = NULL;
	CHECK(!rules_find(&rules, &s, false));
	s.frame = content_a;
	/* A rule with a pattern is not one for the request it came from. */
	s.content = content_a;
	s.arguments = "{\"p\":\"etc\"}";
	CHECK(!rules_find(&rules, &s, false));
	s.arguments = "{\"p\":\"src/a\"}";
	v[0].expires = (char *)"1970-01-01T00:00:01Z";
	CHECK(!rules_find(&rules, &s, false));
	s.now = 999;
	CHECK(rules_find(&rules, &s, false) == &v[0]);
	v[0].expires = (char *)"soon";
	CHECK(!rules_find(&rules, &s, false));
}

TEST(rules_as_text)
{
	const struct rule r = { .id = (char *)"abc234",
				.content = (char *)content_a,
				.what = (char *)"w \xff",
				.decision = (char *)"deny",
				.expires = (char *)"2026-11-15T12:00:00Z",
				.agent = (char *)"coder",
				.frame = (char *)content_b,
				.arguments = (char *)P(ANY("$.a")) };
	static const char *const bad[][2] = {
		{ "\"deny\"", "\"allow\"" },
		{ "2026-11-15T12", "2026-11-15" },
		{ "any", "all" },
		{ "\"frame\"", "\"form\"" },
	};
	struct rule back;
	struct err err = { 0 };
	struct buf b;

	buf_init(&b, 8192);
	rule_format(&r, &b);
	CHECK_INT(rule_parse(b.data, b.len, &back, &err), 0);
	CHECK_STR(back.what, r.what);
	CHECK_STR(back.arguments, r.arguments);
	CHECK_STR(back.expires, r.expires);
	CHECK(rule_is_deny(&back) && !back.user);
	rule_done(&back);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char text[8192];
		char *at;

		(void)snprintf(text, sizeof(text), "%s", b.data);
		at = strstr(text, bad[i][0]);
		CHECK(at);
		memmove(at + strlen(bad[i][1]), at + strlen(bad[i][0]),
			strlen(at + strlen(bad[i][0])) + 1);
		memcpy(at, bad[i][1], strlen(bad[i][1]));
		CHECK(rule_parse(text, strlen(text), &back, &err) < 0);
	}
	buf_done(&b);
}

/* the store */

static char place[] = "/tmp/cordon-patterns-XXXXXX";

static void use_place(void)
{
	(void)strcpy(place, "/tmp/cordon-patterns-XXXXXX");
	CHECK(mkdtemp(place));
	(void)setenv("CORDON_STATE_DIR", place, 1);
}

static void remove_place(void)
{
	char line[200];

	(void)snprintf(line, sizeof(line), "rm -r '%s'", place);
	CHECK_INT(system(line), 0);
}

static struct entry some_entry(void)
{
	struct entry e = { .document = (char *)"{}",
			   .session = (char *)"named s",
			   .user = (char *)"me",
			   .program = (char *)"p",
			   .made = store_now(),
			   .expires = store_now() + 60000 };

	(void)strcpy(e.content, content_a);
	return e;
}

TEST(a_request_that_is_withdrawn_is_not_answered)
{
	const struct store_answer yes = { .is_allowed = true, .by = "one" };
	const struct store_answer gone = { .reason = "why", .by = "two" };
	struct entry e[3] = { some_entry(), some_entry(), some_entry() };
	struct entry now;
	struct err err = { 0 };
	struct store s;

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(store_add(&s, &e[i], 0, &err), 0);
	CHECK_INT(store_withdraw(&s, e[0].id, &gone, &now, &err), 0);
	CHECK_STR(entry_state_name(now.state), "withdrawn");
	CHECK_STR(now.reason, "why");
	entry_done(&now);
	CHECK_INT(store_answer(&s, e[0].id, &yes, &now, &err), -EALREADY);
	CHECK_HAS(err.text, "was withdrawn by two");
	entry_done(&now);
	CHECK_INT(store_withdraw(&s, e[0].id, &gone, &now, &err), -EALREADY);
	entry_done(&now);
	CHECK(store_take(&s, e[0].id, &err) < 0);
	/* A yes that nobody has used is withdrawn too. */
	CHECK_INT(store_answer(&s, e[1].id, &yes, &now, &err), 0);
	entry_done(&now);
	CHECK_INT(store_withdraw(&s, e[1].id, &gone, &now, &err), 0);
	entry_done(&now);
	CHECK(store_take(&s, e[1].id, &err) < 0);
	/* One that was used is not. */
	CHECK_INT(store_answer(&s, e[2].id, &yes, &now, &err), 0);
	entry_done(&now);
	CHECK_INT(store_take(&s, e[2].id, &err), 0);
	CHECK_INT(store_withdraw(&s, e[2].id, &gone, &now, &err), -EALREADY);
	CHECK_HAS(err.text, "was used already");
	entry_done(&now);
	store_close(&s);
	remove_place();
}

TEST(uses_are_counted)
{
	struct err err = { 0 };
	struct store s;
	int64_t n = -1;

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	CHECK_INT(uses_get(&s, "abc234", &n, &err), 0);
	CHECK_INT(n, 0);
	CHECK_INT(uses_add(&s, "abc234", &err), 0);
	CHECK_INT(uses_add(&s, "abc234", &err), 0);
	CHECK_INT(uses_get(&s, "abc234", &n, &err), 0);
	CHECK_INT(n, 2);
	CHECK_INT(uses_remove(&s, "abc234", &err), 0);
	CHECK_INT(uses_get(&s, "abc234", &n, &err), 0);
	CHECK_INT(n, 0);
	store_close(&s);
	remove_place();
}

/* Back to the tables of version 1, with what is in them. */
static const char to_1[] =
	"ALTER TABLE requests RENAME TO r2;"
	"DROP INDEX requests_state; DROP INDEX requests_content;"
	"DROP TABLE grants; DROP TABLE uses;"
	"CREATE TABLE requests (id TEXT PRIMARY KEY NOT NULL,"
	" content TEXT NOT NULL,"
	" document TEXT NOT NULL, session TEXT NOT NULL, user TEXT NOT NULL,"
	" program TEXT NOT NULL, pid INTEGER NOT NULL,"
	" waiter INTEGER NOT NULL, started INTEGER NOT NULL,"
	" made INTEGER NOT NULL,"
	" expires INTEGER NOT NULL, state TEXT NOT NULL"
	" CHECK (state IN ('waiting', 'allowed', 'denied', 'expired')),"
	" scope TEXT NOT NULL"
	" CHECK (scope IN ('once', 'session', 'always')),"
	" reason TEXT NOT NULL, by TEXT NOT NULL, answered INTEGER NOT NULL,"
	" taken INTEGER NOT NULL CHECK (taken IN (0, 1)),"
	" seal TEXT NOT NULL) STRICT;"
	"CREATE INDEX requests_state ON requests (state, made);"
	"CREATE INDEX requests_content ON requests (content);"
	"INSERT INTO requests SELECT * FROM r2; DROP TABLE r2;"
	"CREATE TABLE grants ("
	" id TEXT PRIMARY KEY NOT NULL, content TEXT NOT NULL,"
	" session TEXT NOT NULL, what TEXT NOT NULL, reason TEXT NOT NULL,"
	" by TEXT NOT NULL, made INTEGER NOT NULL, seal TEXT NOT NULL) STRICT;"
	"CREATE INDEX grants_session ON grants (session, content);"
	"PRAGMA user_version = 1";

TEST(a_store_of_version_1_goes_on)
{
	const struct store_answer yes = { .is_allowed = true, .by = "one" };
	struct entry e[2] = { some_entry(), some_entry() };
	struct entry now;
	struct rules grants;
	struct err err = { 0 };
	struct store s;

	use_place();
	CHECK_INT(store_open(&s, &err), 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(store_add(&s, &e[i], 0, &err), 0);
	CHECK_INT(store_answer(&s, e[0].id, &yes, &now, &err), 0);
	entry_done(&now);
	CHECK_INT(sqlite3_exec(s.db, to_1, NULL, NULL, NULL), SQLITE_OK);
	store_close(&s);
	CHECK_INT(store_open(&s, &err), 0);
	CHECK_INT(store_take(&s, e[0].id, &err), 0);
	CHECK_INT(store_withdraw(&s, e[1].id, &yes, &now, &err), 0);
	entry_done(&now);
	CHECK_INT(grants_load(&s, NULL, &grants, &err), 0);
	CHECK_INT((int)grants.n, 0);
	/* A version that is not known is left alone. */
	CHECK_INT(sqlite3_exec(s.db, "PRAGMA user_version = 3", NULL, NULL,
			       NULL),
		  SQLITE_OK);
	store_close(&s);
	CHECK_INT(store_open(&s, &err), -EPROTO);
	remove_place();
}

TAP_MAIN()
