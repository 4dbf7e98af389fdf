/* SPDX-License-Identifier: Apache-2.0 */

/* Filters that need no policy. */

#include "tests/tap.h"

#include "base/util.h"
#include "runtime/filter-limits.h"

static enum filter_act judge(struct filter *f, enum filter_hook hook,
			     const char *from, const char *to, const char *text,
			     struct filter_verdict *ret)
{
	struct filter_view v = { .hook = hook, .from = from, .to = to };
	enum filter_act act;

	memset(ret, 0, sizeof(*ret));
	v.message = message_new("acme.Order", json_pack("{s:s}", "t", text));
	act = f->judge(f, &v, ret);
	message_unref(v.message);
	return act;
}

TEST(only_what_a_row_allows)
{
	static const struct allow_row rows[] = {
		{ "writer/*", "checker/*", "acme.Order" },
		{ "", NULL, NULL },
	};
	struct filter *f = filter_allow(rows, ARRAY_SIZE(rows));
	struct filter_verdict v;

	CHECK_INT(judge(f, ON_SEND, "writer/1", "checker/2", "x", &v),
		  FILTER_PASS);
	CHECK_INT(judge(f, ON_SEND, "writer/1", "other/2", "x", &v),
		  FILTER_REJECT);
	CHECK_STR(v.reason,
		  "no rule lets 'writer/1' send 'acme.Order' to 'other/2'");
	CHECK_INT(judge(f, ON_SEND, "writerx", "checker/2", "x", &v),
		  FILTER_REJECT);
	CHECK_INT(judge(f, ON_SEND, NULL, "other/2", "x", &v), FILTER_PASS);
	/* The answer to what was allowed. */
	CHECK_INT(judge(f, ON_RESPONSE, "other/2", "writer/1", "x", &v),
		  FILTER_PASS);
	f->free(f);
	f = filter_allow(NULL, 0);
	CHECK_INT(judge(f, ON_SEND, NULL, "a/b", "x", &v), FILTER_REJECT);
	f->free(f);
}

TEST(none_is_larger)
{
	struct filter *f = filter_size(10); /* {"t":"xx"} */
	struct filter_verdict v;

	CHECK_INT(judge(f, ON_SEND, NULL, "a/b", "xx", &v), FILTER_PASS);
	CHECK_INT(judge(f, ON_SEND, NULL, "a/b", "xxx", &v), FILTER_REJECT);
	CHECK_STR(v.reason, "the message has 11 bytes, at most 10 are allowed");
	CHECK_INT(judge(f, ON_RESPONSE, NULL, "a/b", "xxx", &v), FILTER_REJECT);
	f->free(f);
}

TEST(a_budget_is_used_up)
{
	struct filter *f = filter_budget(2, 0);
	struct filter_verdict v;

	CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "x", &v), FILTER_PASS);
	CHECK_INT(judge(f, ON_RESPONSE, "b/1", "a/1", "x", &v), FILTER_PASS);
	CHECK_INT(judge(f, ON_PUBLISH, "c/1", NULL, "x", &v), FILTER_PASS);
	CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "x", &v), FILTER_REJECT);
	CHECK_STR(v.reason, "Budget exceeded: messages");
	f->free(f);
	f = filter_budget(0, 25);
	CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "xx", &v), FILTER_PASS);
	CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "xx", &v), FILTER_PASS);
	CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "xx", &v), FILTER_REJECT);
	CHECK_STR(v.reason, "Budget exceeded: bytes");
	f->free(f);
}

static int64_t time_us = 1000000;

static int64_t fake_time(void)
{
	return time_us;
}

TEST(each_sender_has_its_rate)
{
	struct filter *f = filter_rate(&(struct rate_limit){
		.per_second = 2, .burst = 3, .now = fake_time });
	struct filter_verdict v;

	for (int i = 0; i < 3; i++)
		CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "x", &v),
			  FILTER_PASS);
	CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "x", &v), FILTER_REJECT);
	CHECK(strstr(v.reason, "more than 2 messages a second") != NULL);
	CHECK_INT(judge(f, ON_SEND, "a/2", "b/1", "x", &v), FILTER_PASS);
	time_us += 500000;
	CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "x", &v), FILTER_PASS);
	CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "x", &v), FILTER_REJECT);
	/* A silence does not save up more than a burst. */
	time_us += 3600000000LL;
	for (int i = 0; i < 3; i++)
		CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "x", &v),
			  FILTER_PASS);
	CHECK_INT(judge(f, ON_SEND, "a/1", "b/1", "x", &v), FILTER_REJECT);
	f->free(f);
}

TEST(many_senders_are_no_way_around_it)
{
	struct filter *f = filter_rate(
		&(struct rate_limit){ .per_second = 1, .now = fake_time });
	struct filter_verdict v;
	int passed = 0;

	for (int i = 0; i < 5000; i++) {
		char from[32];

		(void)snprintf(from, sizeof(from), "a/%d", i);
		passed += judge(f, ON_SEND, from, "b/1", "x", &v) ==
			  FILTER_PASS;
	}
	CHECK_INT(passed, RATE_SENDERS);
	f->free(f);
}

TEST(secrets_are_masked_for_everybody)
{
	struct filter *f = filter_redact();
	struct filter_verdict v;

	CHECK_INT(judge(f, ON_SEND, NULL, "a/b", "nothing", &v), FILTER_PASS);
	CHECK_INT(judge(f, ON_SEND, NULL, "a/b", "AKIAIOSFODNN7EXAMPLE", &v),
		  FILTER_REPLACE);
	CHECK_STR(json_string_value(json_object_get(v.message->data, "t")),
		  "[masked: secret]");
	message_unref(v.message);
	CHECK_STR(f->name, "redact");
	f->free(f);
}

TAP_MAIN()
