/* SPDX-License-Identifier: Apache-2.0 */

/* The filters of a policy on messages: roles, actions, disguises, records. */

#include "tests/tap.h"

#include <errno.h>
#include <jansson.h>
#include <unistd.h>

#include "base/util.h"
#include "ledger/ledger.h"
#include "policy/policy.h"
#include "runtime/filter-policy.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD                                                                   \
	"cordon-policy\t2\t0.1.0\t" HASH "\t/p/cordon.yaml\n"                  \
	"version\t1\tp:1:1\n"

#define KEY "AKIAIOSFODNN7EXAMPLE"

/* on: [user, tool], match: [secrets, host_paths], do: ... */
#define RULE(n, on_, match_, do_)                                              \
	"filters." n ".on.0\t" on_ "\tc.yaml:" n "2:1\n"                       \
	"filters." n ".match.0\t" match_ "\tc.yaml:" n "2:1\n"                 \
	"filters." n ".do\t" do_ "\tc.yaml:" n "2:1\n"

struct fix {
	struct policy *policy;
	struct screen *screen;
	struct ledger *ledger;
	char dir[64];
};

static void setup(struct fix *f, const char *lines)
{
	struct err err = { 0 };
	char text[4096];

	memset(f, 0, sizeof(*f));
	(void)snprintf(text, sizeof(text), HEAD "%s", lines);
	f->policy = policy_parse(text, strlen(text), &err);
	if (!f->policy)
		printf("# %s\n", err.text);
	CHECK(f->policy != NULL);
	(void)strcpy(f->dir, "/tmp/cordon-filter-XXXXXX");
	CHECK(mkdtemp(f->dir) != NULL);
	CHECK_INT(ledger_open(f->dir, &f->ledger, &err), 0);
	CHECK_INT(screen_new(&(struct screen_options){ .policy = f->policy,
						       .ledger = f->ledger,
						       .run = "r1" },
			     &f->screen, &err),
		  0);
}

static void done(struct fix *f)
{
	char command[128];

	screen_unref(f->screen);
	ledger_close(f->ledger);
	policy_free(f->policy);
	(void)snprintf(command, sizeof(command), "rm -r '%s'", f->dir);
	CHECK_INT(system(command), 0);
}

static char reason[256];

/* What becomes of a message; "=" unchanged, "!" refused. */
static char *apply(struct fix *f, const char *text, unsigned int roles)
{
	struct screen_view v = { .from = "a/1", .type = "T", .roles = roles };
	json_t *data = json_loads(text, JSON_DECODE_ANY, NULL);
	json_t *now = NULL;
	char *before = json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY);
	char *after;
	char *ret = NULL;
	enum filter_act act;

	CHECK(data != NULL);
	act = screen_apply(f->screen, &v, data, &now, reason);
	/* Whatever happens, the message itself is as it was. */
	after = json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY);
	CHECK_STR(after, before);
	if (act == FILTER_REPLACE)
		ret = json_dumps(now, JSON_COMPACT | JSON_ENCODE_ANY);
	else
		ret = strdup(act == FILTER_PASS ? "=" : "!");
	json_decref(now);
	json_decref(data);
	free(before);
	free(after);
	return ret;
}

static void check(struct fix *f, const char *text, const char *want)
{
	char *have = apply(f, text, 0);

	CHECK_STR(have, want);
	free(have);
}

/* The records, without what the ledger adds. */
static char *records(struct fix *f)
{
	char path[128];
	static char text[65536];
	FILE *file;
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/000001.jsonl", f->dir);
	file = fopen(path, "re");
	text[0] = '\0';
	if (!file) /* no record yet */
		return text;
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	(void)fclose(file);
	return text;
}

#define TEXT(source, content)                                                  \
	"{\"type\":\"TextMessage\",\"id\":\"i\",\"source\":\"" source          \
	"\",\"content\":\"" content "\"}"

TEST(strip_mask_and_reject)
{
	struct fix f;

	setup(&f, RULE("0", "user", "secrets", "strip")
			  RULE("1", "tool", "secrets", "mask")
				  RULE("2", "assistant", "secrets", "reject"));
	check(&f, TEXT("user", "my " KEY " ok"), TEXT("user", "my  ok"));
	check(&f, TEXT("user", "nothing"), "=");
	check(&f,
	      "{\"type\":\"ToolCallExecutionEvent\",\"source\":\"a\","
	      "\"content\":[{\"call_id\":\"c\",\"name\":\"n\",\"content\":"
	      "\"" KEY "\",\"is_error\":false}]}",
	      "{\"type\":\"ToolCallExecutionEvent\",\"source\":\"a\","
	      "\"content\":[{\"call_id\":\"c\",\"name\":\"n\",\"content\":"
	      "\"[masked: secret]\",\"is_error\":false}]}");
	check(&f, TEXT("coder", "it is " KEY), "!");
	CHECK(strstr(reason, "1 secrets") && strstr(reason, "c.yaml:22"));
	CHECK(!strstr(reason, "AKIA"));
	check(&f, TEXT("coder", "it is"), "=");
	done(&f);
}

TEST(the_reason_of_the_rule_is_told)
{
	struct fix f;

	setup(&f, "filters.0.on.0\tassistant\tc:1:1\n"
		  "filters.0.match.regex\t(?i)internal only\tc:1:1\n"
		  "filters.0.do\treject\tc:1:1\n"
		  "filters.0.reason\tmarked internal\tc:1:1\n");
	check(&f, TEXT("coder", "This is INTERNAL only."), "!");
	CHECK_STR(reason, "marked internal");
	check(&f, TEXT("user", "This is INTERNAL only."), "=");
	done(&f);
}

TEST(rules_apply_in_order_each_to_what_is_left)
{
	struct fix f;

	setup(&f, RULE("0", "user", "urls", "strip")
			  RULE("1", "user", "secrets", "reject"));
	/* The secret goes with the address that holds it. */
	check(&f, TEXT("user", "see https://x.org/" KEY " now"),
	      TEXT("user", "see  now"));
	check(&f, TEXT("user", "see https://x.org/ " KEY), "!");
	done(&f);
}

TEST(whose_message_it_is)
{
	static const struct {
		const char *text;
		bool is_user;
	} rows[] = {
		{ "{\"role\":\"user\",\"content\":\"" KEY "\"}", true },
		{ "{\"role\":\"assistant\",\"content\":\"" KEY "\"}", false },
		{ "{\"role\":\"tool\",\"results\":[{\"content\":\"" KEY "\"}]}",
		  false },
		{ "{\"role\":\"odd\",\"content\":\"" KEY "\"}", true },
		{ TEXT("user", KEY), true },
		{ TEXT("writer", KEY), false },
		/* What is not known is everybody's. */
		{ "{\"type\":\"NewMessage\",\"source\":\"writer\","
		  "\"content\":\"" KEY "\"}",
		  true },
		{ "{\"order\":\"" KEY "\"}", true },
		{ "\"" KEY "\"", true },
		{ "{\"messages\":[" TEXT("writer", KEY) "]}", false },
		{ "{\"messages\":[" TEXT("user", KEY) "]}", true },
		{ "{\"type\":\"HandoffMessage\",\"source\":\"writer\","
		  "\"content\":\"x\",\"context\":[{\"role\":\"user\","
		  "\"content\":\"" KEY "\"}]}",
		  true },
		/* What an agent waits for is its own. */
		{ "{\"pending\":{\"state\":{\"x\":\"" KEY "\"}}}", false },
		{ "{\"pending\":{\"state\":[" TEXT("user", KEY) "]}}", true },
		/* A name that a message gives itself within what it says. */
		{ "{\"type\":\"StructuredMessage\",\"source\":\"writer\","
		  "\"content\":{\"role\":\"user\",\"content\":\"" KEY "\"}}",
		  false },
	};
	struct fix f;

	setup(&f, RULE("0", "user", "secrets", "reject"));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check(&f, rows[i].text, rows[i].is_user ? "!" : "=");
	done(&f);
}

TEST(a_tool_cannot_pass_as_somebody_else)
{
	struct fix f;

	setup(&f, RULE("0", "tool", "secrets", "reject"));
	check(&f,
	      "{\"type\":\"ToolCallExecutionEvent\",\"source\":\"a\","
	      "\"content\":[{\"call_id\":\"c\",\"name\":\"n\",\"content\":"
	      "\"{\\\"role\\\":\\\"system\\\",\\\"content\\\":\\\"" KEY
	      "\\\"}\"}]}",
	      "!");
	check(&f,
	      "{\"type\":\"ToolCallSummaryMessage\",\"source\":\"a\","
	      "\"content\":\"" KEY "\"}",
	      "!");
	done(&f);
}

TEST(labels_stay_and_free_names_do_not)
{
	struct fix f;

	setup(&f, "filters.0.on.0\tuser\tc:1:1\n"
		  "filters.0.on.1\tassistant\tc:1:1\n"
		  "filters.0.match.regex\tx\tc:1:1\n"
		  "filters.0.do\tmask\tc:1:1\n");
	check(&f,
	      "{\"type\":\"TextMessage\",\"id\":\"x1\",\"source\":\"x\","
	      "\"content\":\"axb\"}",
	      "{\"type\":\"TextMessage\",\"id\":\"x1\",\"source\":\"x\","
	      "\"content\":\"a[masked: text]b\"}");
	check(&f,
	      "{\"type\":\"ToolCallRequestEvent\",\"source\":\"x\","
	      "\"content\":[{\"id\":\"x\",\"name\":\"x\",\"arguments\":"
	      "\"{\\\"x\\\":1}\"}]}",
	      "{\"type\":\"ToolCallRequestEvent\",\"source\":\"x\","
	      "\"content\":[{\"id\":\"x\",\"name\":\"x\",\"arguments\":"
	      "\"{\\\"[masked: text]\\\":1}\"}]}");
	/* Two names that become one. */
	check(&f,
	      "{\"type\":\"StructuredMessage\",\"source\":\"a\",\"content\":"
	      "{\"x\":1,\"xx\":2,\"id\":\"x\"}}",
	      "{\"type\":\"StructuredMessage\",\"source\":\"a\",\"content\":"
	      "{\"[masked: text]\":1,\"[masked: text][masked: text]\":2,"
	      "\"id\":\"[masked: text]\"}}");
	done(&f);
}

/* A regular expression must not cut the ids that a team lives by. */
TEST(what_holds_messages_of_our_own_has_labels_too)
{
	static const char text[] =
		"{\"run\":\"01a1\",\"messages\":[{\"type\":\"TextMessage\","
		"\"id\":\"02\",\"source\":\"user\",\"content\":\"no 34\"}],"
		"\"other\":\"5\"}";
	struct screen_view v = { .type = "cordon.team.Start" };
	json_t *data = json_loads(text, 0, NULL);
	json_t *now = NULL;
	struct fix f;
	char *have;

	setup(&f, "filters.0.on.0\tuser\tc:1:1\n"
		  "filters.0.match.regex\t[0-9]+\tc:1:1\n"
		  "filters.0.do\tmask\tc:1:1\n");
	CHECK_INT(screen_apply(f.screen, &v, data, &now, reason),
		  FILTER_REPLACE);
	have = json_dumps(now, JSON_COMPACT);
	CHECK_STR(have, "{\"run\":\"01a1\",\"messages\":[{\"type\":"
			"\"TextMessage\",\"id\":\"02\",\"source\":\"user\","
			"\"content\":\"no [masked: text]\"}],"
			"\"other\":\"[masked: text]\"}");
	free(have);
	json_decref(now);
	/* In a message of somebody else's nothing is known to be one. */
	v.type = "acme.Start";
	CHECK_INT(screen_apply(f.screen, &v, data, &now, reason),
		  FILTER_REPLACE);
	CHECK_STR(json_string_value(json_object_get(now, "run")),
		  "[masked: text]a[masked: text]");
	json_decref(now);
	json_decref(data);
	done(&f);
}

TEST(two_names_that_become_one_both_stay)
{
	struct fix f;

	setup(&f, "filters.0.on.0\tassistant\tc:1:1\n"
		  "filters.0.match.regex\tx\tc:1:1\n"
		  "filters.0.do\tstrip\tc:1:1\n");
	check(&f,
	      "{\"type\":\"StructuredMessage\",\"source\":\"a\",\"content\":"
	      "{\"ax\":1,\"a\":2,\"xa\":3}}",
	      "{\"type\":\"StructuredMessage\",\"source\":\"a\",\"content\":"
	      "{\"a\":1,\"a 2\":2,\"a 3\":3}}");
	done(&f);
}

/* Each of these holds the key, and none shows it to a plain search. */
TEST(hostile_forms)
{
	static const char *const rows[] = {
		/* split over parts */
		"{\"role\":\"user\",\"content\":[\"AKIAIOSF\","
		"\"ODNN7EXAMPLE\"]}",
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
		"\"see AKIA\"},{\"type\":\"text\",\"text\":\"IOSFODNN7\"},"
		"{\"type\":\"text\",\"text\":\"EXAMPLE.\"}]}",
		/* JSON in a string, with a letter as an escape; twice */
		"{\"role\":\"assistant\",\"calls\":[{\"id\":\"1\",\"name\":"
		"\"f\",\"arguments\":\"{\\\"a\\\":\\\"\\\\u0041KIAIOSFODNN7"
		"EXAMPLE\\\"}\"}]}",
		"{\"a\":\"{\\\"b\\\":\\\"{\\\\\\\"c\\\\\\\":\\\\\\\""
		"\\\\\\\\u0041KIAIOSFODNN7EXAMPLE\\\\\\\"}\\\"}\"}",
		/* JSON that is none, or has a name twice */
		"{\"a\":\"{\\\"b\\\":\\\"\\\\u0041KIAIOSFODNN7EXAMPLE\\\"\"}",
		"{\"a\":\"{\\\"b\\\":\\\"\\\\u0041KIAIOSFODNN7EXAMPLE\\\","
		"\\\"b\\\":1}\"}",
		/* as a name, in base64, with a letter of another script */
		"{\"" KEY "\":1}",
		"{\"a\":\"QUtJQUlPU0ZPRE5ON0VYQU1QTEU=\"}",
		"{\"a\":\"\\u0410KIAIOSFODNN7EXAMPLE\"}",
		/* an image that is none */
		"{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"mime\":"
		"\"image/png\",\"data\":\"" KEY "\"}]}",
		/* by the name of its member alone */
		"{\"db\":{\"password\":\"Tr0ub4dor&3\"}}",
		/* deep in lists */
		"[[[[[[[[[[[[[[[[[[[[\"" KEY "\"]]]]]]]]]]]]]]]]]]]]",
	};
	struct fix f;

	setup(&f, RULE("0", "user", "secrets", "strip") "filters.0.on.1\t"
							"assistant\tc:1:1\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *have = apply(&f, rows[i], 0);

		if (strcmp(have, "=") == 0 || strcmp(have, "!") == 0 ||
		    strstr(have, "EXAMPLE"))
			printf("# row %zu: %s\n", i, have);
		CHECK(strcmp(have, "=") != 0 && strcmp(have, "!") != 0);
		CHECK(!strstr(have, "EXAMPLE") && !strstr(have, "dor&3"));
		free(have);
	}
	done(&f);
}

TEST(a_mask_over_parts_stands_where_it_began)
{
	struct fix f;

	setup(&f, RULE("0", "user", "secrets", "mask"));
	check(&f,
	      "{\"role\":\"user\",\"content\":[\"a AKIA\",\"IOSFODNN7\","
	      "\"EXAMPLE b\"]}",
	      "{\"role\":\"user\",\"content\":[\"a [masked: secret]\",\"\","
	      "\" b\"]}");
	done(&f);
}

/* What is left must not be what was looked for. */
TEST(stripping_does_not_join)
{
	static const char *const rows[] = {
		"https:/https://x.org :/y.org",
		"/et/etc/passwd c/shadow",
		"a(/etc/x)etc/passwd",
		("AK(" KEY ")IAIOSFODNN7EXAMPLE"),
		"x<http://a>://b",
	};
	struct fix f;

	setup(&f, RULE("0", "user", "secrets", "strip") "filters.0.match.1\t"
							"urls\tc:1:1\n"
							"filters.0.match.2\t"
							"host_paths\tc:1:1\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct screen_view v = { .roles = ROLE_USER };
		char *once = NULL;
		char *twice = NULL;
		enum filter_act act = screen_text(f.screen, &v, rows[i], &once,
						  reason);

		CHECK(act == FILTER_REPLACE || act == FILTER_PASS);
		act = screen_text(f.screen, &v, once ? once : rows[i], &twice,
				  reason);
		if (once && act != FILTER_PASS)
			printf("# %s: %s: %s\n", rows[i], once, twice);
		CHECK(!once || act == FILTER_PASS);
		free(once);
		free(twice);
	}
	done(&f);
}

/* A message goes through more than once. */
TEST(a_mask_is_not_masked)
{
	struct screen_view v = { .roles = ROLE_USER };
	struct fix f;
	char *once = NULL;
	char *twice = NULL;

	setup(&f, "filters.0.on.0\tuser\tc:1:1\n"
		  "filters.0.match.regex\t[a-f]+|text\tc:1:1\n"
		  "filters.0.do\tmask\tc:1:1\n");
	CHECK_INT(screen_text(f.screen, &v, "x beef text", &once, reason),
		  FILTER_REPLACE);
	CHECK_STR(once, "x [masked: text] [masked: text]");
	CHECK_INT(screen_text(f.screen, &v, once, &twice, reason), FILTER_PASS);
	free(once);
	/* What only looks like one is none. */
	CHECK_INT(screen_text(f.screen, &v, "[masked: beef]", &twice, reason),
		  FILTER_REPLACE);
	free(twice);
	done(&f);
}

TEST(images_pass_untouched)
{
	struct fix f;

	setup(&f, RULE("0", "user", "secrets", "strip"));
	/* The head of a PNG, then digits that would be a token. */
	check(&f,
	      "{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"mime\":"
	      "\"image/png\",\"data\":\"iVBORw0KGgoAAAANSUhEUgAA/" KEY "\"}]}",
	      "=");
	done(&f);
}

TEST(pieces_of_an_answer_wait_for_the_whole)
{
	struct fix f;

	setup(&f, RULE("0", "assistant", "secrets", "strip"));
	check(&f,
	      "{\"type\":\"ModelClientStreamingChunkEvent\",\"source\":\"a\","
	      "\"content\":\"AKIAIO\"}",
	      "{\"type\":\"ModelClientStreamingChunkEvent\",\"source\":\"a\","
	      "\"content\":\"\"}");
	check(&f,
	      "{\"type\":\"ThoughtChunkEvent\",\"source\":\"a\",\"content\":"
	      "\"AKIAIO\"}",
	      "{\"type\":\"ThoughtChunkEvent\",\"source\":\"a\",\"content\":"
	      "\"\"}");
	CHECK(!strstr(records(&f), "message.filter"));
	done(&f);
}

TEST(what_cannot_be_looked_at_is_refused)
{
	struct fix f;
	struct screen_view v = { 0 };
	json_t *data = json_string("x");
	json_t *now = NULL;

	setup(&f, RULE("0", "user", "secrets", "strip"));
	for (int i = 0; i < 200; i++)
		data = json_pack("[o]", data);
	CHECK_INT(screen_apply(f.screen, &v, data, &now, reason),
		  FILTER_REJECT);
	json_decref(data);
	/* JSON in JSON in JSON in JSON in JSON */
	data = json_pack("{s:s}", "a", "b");
	for (int i = 0; i < 6; i++) {
		char *text = json_dumps(data, JSON_COMPACT);

		json_decref(data);
		data = json_pack("{s:s}", "a", text);
		free(text);
	}
	CHECK_INT(screen_apply(f.screen, &v, data, &now, reason),
		  FILTER_REJECT);
	CHECK(strstr(reason, "too deep") != NULL);
	json_decref(data);
	done(&f);
}

TEST(changes_are_on_the_ledger_by_hash)
{
	struct fix f;
	struct err err = { 0 };
	const char *text;

	setup(&f, RULE("0", "user", "secrets", "mask")
			  RULE("1", "assistant", "urls", "reject"));
	check(&f, TEXT("user", KEY " and " KEY),
	      TEXT("user", "[masked: secret] and [masked: secret]"));
	check(&f, TEXT("coder", "http://x.org/secretpath"), "!");
	check(&f, TEXT("coder", "fine"), "=");
	CHECK_INT(ledger_sync(f.ledger, &err), 0);
	text = records(&f);
	CHECK(strstr(text, "\"message.filter\"") != NULL);
	CHECK(strstr(text, "\"found\":{\"secrets\":2}") != NULL);
	CHECK(strstr(text, "\"decision\":\"allow\"") != NULL);
	CHECK(strstr(text, "\"decision\":\"deny\"") != NULL);
	CHECK(strstr(text, "\"rule\":\"c.yaml:02\"") == NULL);
	CHECK(strstr(text, "\"rule\":\"c.yaml:12\"") != NULL);
	CHECK(strstr(text, "\"before\":{\"sha256\":\"") != NULL);
	CHECK(strstr(text, "\"after\":{\"sha256\":\"") != NULL);
	CHECK(strstr(text, "\"run\":\"r1\"") != NULL);
	CHECK(strstr(text, "AKIA") == NULL);
	CHECK(strstr(text, "secretpath") == NULL);
	done(&f);
}

static const char *run_of(void *arg)
{
	int *n = arg;

	return ++*n == 1 ? NULL : "run-2";
}

/* A screen outlives a run: whose it is is asked for each record. */
TEST(a_record_has_the_run_of_its_moment)
{
	struct fix f;
	struct err err = { 0 };
	struct screen *s = NULL;
	struct screen_view v = { 0 };
	json_t *data = json_string(KEY);
	json_t *now = NULL;
	int n = 0;

	setup(&f, RULE("0", "user", "secrets", "mask"));
	CHECK_INT(screen_new(&(struct screen_options){ .policy = f.policy,
						       .ledger = f.ledger,
						       .run_of = run_of,
						       .arg = &n },
			     &s, &err),
		  0);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(screen_apply(s, &v, data, &now, reason),
			  FILTER_REPLACE);
		json_decref(take_ptr(now));
		CHECK_INT(ledger_sync(f.ledger, &err), 0);
		CHECK(!strstr(records(&f), "\"run\":\"run-2\"") == !i);
	}
	screen_unref(s);
	json_decref(data);
	done(&f);
}

TEST(a_change_that_cannot_be_recorded_is_not_made)
{
	struct fix f;
	struct err err = { 0 };
	size_t len = 4U << 20;
	char *run = malloc(len + 1);
	struct screen *s = NULL;
	struct screen_view v = { 0 };
	json_t *data = json_string(KEY);
	json_t *now = NULL;

	setup(&f, RULE("0", "user", "secrets", "mask"));
	/* No record may be that long. */
	memset(run, 'r', len);
	run[len] = '\0';
	CHECK_INT(screen_new(&(struct screen_options){ .policy = f.policy,
						       .ledger = f.ledger,
						       .run = run },
			     &s, &err),
		  0);
	CHECK_INT(screen_apply(s, &v, data, &now, reason), FILTER_REJECT);
	CHECK(now == NULL);
	screen_unref(s);
	json_decref(data);
	free(run);
	done(&f);
}

/* --- in the runtime --- */

struct heard {
	struct actor actor;
	char *text;
	int n;
};

static struct heard heard;

static void hear(struct actor *a, struct delivery *d)
{
	struct heard *h = (struct heard *)a;

	free(h->text);
	h->text = json_dumps(delivery_message(d)->data, JSON_COMPACT);
	h->n++;
	/* An answer with a secret of its own. */
	delivery_reply(d, message_new("T", json_pack("{s:s}", "answer",
						     "see " KEY)));
}

static void hear_no_more(struct actor *a)
{
	(void)a;
}

static const struct actor_ops hear_ops = { .handle = hear,
					   .free = hear_no_more };

struct outcome {
	char *reply;
	enum fault_code code;
	char *why;
};

static void on_reply(void *arg, struct message *reply, const struct fault *why)
{
	struct outcome *o = arg;

	o->reply = reply ? json_dumps(reply->data, JSON_COMPACT) : NULL;
	o->code = why ? why->code : FAULT_NONE;
	o->why = why && why->message ? strdup(why->message) : NULL;
}

static struct outcome say(struct runtime *rt, const char *text)
{
	struct outcome o = { 0 };
	struct message *m = message_new("T", json_pack("{s:s}", "text", text));

	runtime_send(rt, m, "ear/1", NULL, on_reply, &o);
	message_unref(m);
	CHECK_INT(runtime_wait_idle(rt, 0, NULL), 0);
	return o;
}

static void outcome_done(struct outcome *o)
{
	free(o->reply);
	free(o->why);
}

static int n_events;

static void on_event(void *arg, const json_t *event)
{
	const char *filter = json_string_value(
		json_object_get(event, "filter"));
	char *text = json_dumps(event, JSON_COMPACT);

	(void)arg;
	n_events += filter && strcmp(filter, "policy") == 0;
	CHECK(!strstr(text, "AKIA"));
	free(text);
}

TEST(in_the_runtime)
{
	struct fix f;
	struct err err = { 0 };
	struct loop *l = NULL;
	struct runtime *rt;
	struct outcome o;

	setup(&f, RULE("0", "user", "secrets", "mask")
			  RULE("1", "user", "host_paths", "reject"));
	CHECK_INT(loop_new(&l, &err), 0);
	rt = runtime_new(l, NULL, &err);
	CHECK(rt != NULL);
	runtime_on_event(rt, on_event, NULL);
	heard.actor.ops = &hear_ops;
	CHECK_INT(runtime_register_instance(rt, "ear/1", &heard.actor, &err),
		  0);
	runtime_add_filter(rt, screen_filter(f.screen));
	o = say(rt, "use " KEY);
	CHECK_STR(heard.text, "{\"text\":\"use [masked: secret]\"}");
	CHECK_STR(o.reply, "{\"answer\":\"see [masked: secret]\"}");
	CHECK_INT(o.code, FAULT_NONE);
	outcome_done(&o);
	o = say(rt, "cat /etc/passwd");
	CHECK_INT(o.code, FAULT_REJECTED);
	CHECK(o.why && strstr(o.why, "1 host_paths"));
	CHECK_INT(heard.n, 1);
	outcome_done(&o);
	CHECK_INT(n_events, 3);
	CHECK_INT(runtime_stop(rt, STOP_NOW, NULL), 0);
	runtime_free(rt);
	loop_free(l);
	free(heard.text);
	done(&f);
}

TEST(a_text_by_hand)
{
	struct fix f;
	struct screen_view v = { .from = "coder", .roles = ROLE_TOOL };
	char *now = NULL;

	setup(&f, RULE("0", "tool", "host_paths", "mask"));
	CHECK_INT(screen_text(f.screen, &v, "root:x in /etc/passwd", &now,
			      reason),
		  FILTER_REPLACE);
	CHECK_STR(now, "root:x in [masked: host path]");
	free(now);
	now = NULL;
	CHECK_INT(screen_text(f.screen, &v, "/workspace/a", &now, reason),
		  FILTER_PASS);
	v.roles = ROLE_USER;
	CHECK_INT(screen_text(f.screen, &v, "/etc/passwd", &now, reason),
		  FILTER_PASS);
	CHECK(now == NULL);
	done(&f);
}

TEST(without_filters_everything_passes)
{
	struct fix f;

	setup(&f, "");
	check(&f, TEXT("user", KEY), "=");
	done(&f);
}

TAP_MAIN()
