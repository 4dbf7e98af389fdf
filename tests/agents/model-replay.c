/* SPDX-License-Identifier: Apache-2.0 */

/* Recordings: played in order and by hash, written, and played again. */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>

#include "model.h"
#include "base/clock.h"
#include "base/util.h"

static char dir[] = "/tmp/cordon-model-XXXXXX";

static const char *put(const char *name, const char *text)
{
	static char path[256];
	FILE *f;

	if (!strstr(dir, "XXXXXX") || mkdtemp(dir)) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
		f = fopen(path, "we");
		if (f) {
			(void)fputs(text, f);
			(void)fclose(f);
		}
	}
	return path;
}

static void clean(void)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK(system(command) == 0);
}

static struct model *play(const char *text)
{
	struct model *m = NULL;
	struct err err = { 0 };

	CHECK(model_replay(the_loop(), put("r.jsonl", text), &m, &err) == 0);
	if (err.code)
		printf("# %s\n", err.text);
	return m;
}

TEST(answers_come_in_order)
{
	struct model *m = play(
		"{\"recording\":1,\"model\":\"gpt-4o\",\"info\":{"
		"\"price_prompt\":2.5,\"price_completion\":10}}\n"
		"# a word for the reader\n\n"
		"{\"result\":{\"content\":\"one\",\"usage\":{\"prompt_tokens\":"
		"10,\"completion_tokens\":5}}}\n"
		"{\"result\":{\"calls\":[{\"name\":\"f\",\"arguments\":{\"a\":1"
		"}}]}}\n"
		"{\"fault\":{\"code\":\"overloaded\",\"message\":\"busy\"}}\n");
	struct said s = ask(m, "hello", false);

	CHECK_STR(model_name(m), "gpt-4o");
	CHECK_STR(s.r.content, "one");
	CHECK_INT((int)s.r.finish, FINISH_STOP);
	said_done(&s);
	s = ask(m, "hello", false);
	CHECK_INT((int)s.r.finish, FINISH_CALLS);
	CHECK_STR(call_text(&s, 0, "name"), "f");
	CHECK_STR(call_text(&s, 0, "arguments"), "{\"a\":1}");
	CHECK_STR(call_text(&s, 0, "id"), "call_5_1");
	said_done(&s);
	s = ask(m, "hello", false);
	CHECK_INT((int)s.why.code, FAULT_OVERLOADED);
	CHECK_STR(s.why.message, "busy");
	said_done(&s);
	s = ask(m, "hello", false);
	CHECK_INT((int)s.why.code, FAULT_NOT_FOUND);
	CHECK_HAS(s.why.message, "at its end");
	said_done(&s);
	CHECK_INT(model_total(m)->prompt, 10);
	CHECK_INT(model_total(m)->completion, 5);
	CHECK_INT(model_total(m)->calls, 2);
	/* 10 tokens at 2.50 and 5 at 10 dollars a million. */
	CHECK(model_total(m)->cost > 0.0000749 &&
	      model_total(m)->cost < 0.0000751);
	model_unref(m);
	clean();
}

TEST(chunks_are_played_and_joined)
{
	struct model *m = play("{\"chunks\":[{\"thought\":\"hm\"},\"He\","
			       "\"llo\"]}\n"
			       "{\"result\":{\"content\":\"whole\"}}\n"
			       "{\"chunks\":[\"a\",\"b\"]}\n");
	struct said s = ask(m, "x", true);

	CHECK_STR(s.r.content, "Hello");
	CHECK_STR(s.r.thought, "hm");
	CHECK_STR(s.chunks, "<hm>[He][llo]");
	said_done(&s);
	s = ask(m, "x", true);
	CHECK_STR(s.chunks, "[whole]");
	said_done(&s);
	s = ask(m, "x", false);
	CHECK_STR(s.r.content, "ab");
	CHECK_STR(s.chunks, "");
	said_done(&s);
	model_unref(m);
	clean();
}

TEST(two_models_share_a_tape)
{
	struct model *m = play("{\"result\":{\"content\":\"1\"}}\n"
			       "{\"result\":{\"content\":\"2\"}}\n");
	struct model *n = NULL;
	struct err err = { 0 };
	struct said s;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/r.jsonl", dir);
	CHECK(model_replay(the_loop(), path, &n, &err) == 0);
	s = ask(m, "x", false);
	CHECK_STR(s.r.content, "1");
	said_done(&s);
	s = ask(n, "x", false);
	CHECK_STR(s.r.content, "2");
	said_done(&s);
	model_unref(m);
	model_unref(n);
	clean();
}

TEST(bad_recordings_are_refused_with_their_line)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "\n{\"result\":", "line 2" },
		{ "{\"recording\":9}", "version" },
		{ "{}", "neither" },
		{ "{\"result\":{}}", "needs 'content'" },
		{ "{\"result\":{\"content\":\"x\",\"finish_reason\":\"no\"}}",
		  "finish_reason" },
		{ "{\"recording\":1,\"match\":\"luck\"}", "match" },
		{ "{\"fault\":{\"code\":\"nonsense\",\"message\":\"\"}}",
		  "nonsense" },
		{ "{\"recording\":1,\"info\":{\"eyes\":true}}", "eyes" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct model *m = NULL;
		struct err err = { 0 };

		CHECK(model_replay(the_loop(), put("b.jsonl", cases[i].text),
				   &m, &err) < 0);
		CHECK_HAS(err.text, cases[i].says);
		CHECK_HAS(err.text, "b.jsonl");
	}
	clean();
}

/* Records three calls to a replay, two of them at once, and plays that. */
TEST(what_was_recorded_plays_again)
{
	struct model *inner = play(
		"{\"recording\":1,\"model\":\"gpt-4o\",\"info\":{\"vision\":"
		"false}}\n"
		"{\"delay_ms\":50,\"chunks\":[\"sl\",\"ow\"]}\n"
		"{\"result\":{\"content\":\"quick\",\"usage\":{\"prompt_tokens"
		"\":3,\"completion_tokens\":4}}}\n"
		"{\"fault\":{\"code\":\"unavailable\",\"message\":\"gone\"}}"
		"\n");
	struct said a = { 0 };
	struct said b = { 0 };
	struct said c;
	struct model *m = NULL;
	struct err err = { 0 };
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/out.jsonl", dir);
	CHECK(model_record(the_loop(), inner, path, &m, &err) == 0);
	begin(&a, m, "first", true);
	begin(&b, m, "second", false);
	wait_for(&b);
	CHECK(!a.is_over);
	wait_for(&a);
	c = ask(m, "third", false);
	CHECK_INT(model_total(m)->completion, 4);
	said_done(&a);
	said_done(&b);
	said_done(&c);
	model_unref(m);

	m = NULL;
	CHECK(model_replay(the_loop(), path, &m, &err) == 0);
	CHECK(!model_info(m)->vision);
	a = ask(m, "first", true);
	CHECK_STR(a.chunks, "[sl][ow]");
	b = ask(m, "second", false);
	CHECK_STR(b.r.content, "quick");
	CHECK_INT(b.r.usage.prompt, 3);
	c = ask(m, "third", false);
	CHECK_STR(c.why.message, "gone");
	said_done(&a);
	said_done(&b);
	said_done(&c);
	model_unref(m);
	clean();
}

/* The same recording, matched by hash: any order, but nothing unknown. */
TEST(by_hash_the_order_does_not_matter)
{
	struct model *inner = play("{\"result\":{\"content\":\"A\"}}\n"
				   "{\"result\":{\"content\":\"B\"}}\n");
	struct model *m = NULL;
	struct err err = { 0 };
	struct said s;
	char path[128];
	char command[512];

	(void)snprintf(path, sizeof(path), "%s/h.jsonl", dir);
	CHECK(model_record(the_loop(), inner, path, &m, &err) == 0);
	s = ask(m, "a?", false);
	said_done(&s);
	s = ask(m, "b?", false);
	said_done(&s);
	model_unref(m);
	(void)snprintf(command, sizeof(command),
		       "sed -i s/order/hash/ %s && grep -q '\"last\":\"b?\"' "
		       "%s",
		       path, path);
	CHECK(system(command) == 0);

	m = NULL;
	CHECK(model_replay(the_loop(), path, &m, &err) == 0);
	s = ask(m, "b?", false);
	CHECK_STR(s.r.content, "B");
	said_done(&s);
	s = ask(m, "a?", false);
	CHECK_STR(s.r.content, "A");
	said_done(&s);
	s = ask(m, "a?", false);
	CHECK_INT((int)s.why.code, FAULT_NOT_FOUND);
	CHECK_HAS(s.why.message, "no answer");
	said_done(&s);
	model_unref(m);
	clean();
}

/* The page that says how recordings look has one; it plays. */
TEST(the_example_of_the_docs_plays)
{
	char text[16384];
	FILE *f = fopen("docs/models.md", "re");
	char *from;
	char *to;
	struct model *m;
	struct said s;

	if (!f)
		SKIP("not in the top directory");
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	(void)fclose(f);
	from = strstr(text, "```json\n");
	to = from ? strstr(from + 8, "```") : NULL;
	CHECK(to != NULL);
	if (!to)
		return;
	*to = '\0';
	m = play(from + 8);
	s = ask(m, "x", false);
	CHECK_STR(call_text(&s, 0, "name"), "run_python");
	said_done(&s);
	s = ask(m, "x", true);
	CHECK_STR(s.r.content, "It is 42.");
	CHECK_STR(s.chunks, "<easy>[It is ][42.]");
	said_done(&s);
	s = ask(m, "x", true);
	CHECK_INT((int)s.why.code, FAULT_UNAVAILABLE);
	said_done(&s);
	CHECK_INT(model_total(m)->completion, 24);
	model_unref(m);
	clean();
}

TEST(a_call_is_cancelled_and_dropped)
{
	struct model *m = play("{\"delay_ms\":20000,\"chunks\":[\"x\"]}\n"
			       "{\"delay_ms\":20000,\"chunks\":[\"x\"]}\n"
			       "{\"chunks\":[\"x\",\"y\"]}\n"
			       "{\"chunks\":[\"x\",\"y\"]}\n"
			       "{\"result\":{\"content\":\"last\"}}\n");
	struct said s = { 0 };
	struct said drop = { .drop_at = 1 };
	struct said end = { .cancel_at = 1 };

	s.cancel = cancel_new(the_loop(), NULL, clock_us() + 30000);
	begin(&s, m, "x", false);
	wait_for(&s);
	CHECK_INT((int)s.why.code, FAULT_DEADLINE);
	said_done(&s);

	/* Cancelled before it starts: nothing of the tape is used. */
	s = (struct said){ .cancel = cancel_new(the_loop(), NULL, 0) };
	cancel_fire(s.cancel, "not wanted");
	begin(&s, m, "x", false);
	CHECK(!s.is_over);
	wait_for(&s);
	CHECK_INT((int)s.why.code, FAULT_CANCELLED);
	CHECK_HAS(s.why.message, "not wanted");
	said_done(&s);

	s = (struct said){ 0 };
	begin(&s, m, "x", false);
	model_drop(s.call);
	said_done(&s);

	/* Both from within a chunk. */
	begin(&drop, m, "x", true);
	wait_for(&drop);
	CHECK_STR(drop.chunks, "[x]");
	CHECK_INT(drop.n_ends, 0);
	said_done(&drop);
	end.cancel = cancel_new(the_loop(), NULL, 0);
	begin(&end, m, "x", true);
	wait_for(&end);
	CHECK_STR(end.chunks, "[x]");
	CHECK_INT((int)end.why.code, FAULT_CANCELLED);
	CHECK_INT(end.n_ends, 1);
	said_done(&end);

	s = ask(m, "x", false);
	CHECK_STR(s.r.content, "last");
	said_done(&s);
	model_unref(m);
	clean();
}

TAP_MAIN()
