/* SPDX-License-Identifier: Apache-2.0 */

/* The chain of filters: D1 to D3, and what each verdict means. */

#include "tests/tap.h"

#include "tests/agents/runtime.h"

struct rule {
	struct filter filter; /* first */
	enum filter_hook hook;
	int act; /* also one that there is not */
	json_int_t plus;
	const char *to;
	int n_asked, n_freed;
};

static enum filter_act judge(struct filter *f, const struct filter_view *v,
			     struct filter_verdict *ret)
{
	struct rule *r = (struct rule *)f;

	if (v->hook != r->hook)
		return FILTER_PASS;
	r->n_asked++;
	(void)snprintf(ret->reason, sizeof(ret->reason), "because");
	if (r->to)
		(void)snprintf(ret->to, sizeof(ret->to), "%s", r->to);
	if (r->act == FILTER_REPLACE && r->plus)
		ret->message = number(value_of(v->message) + r->plus);
	return (enum filter_act)r->act;
}

static void count_free(struct filter *f)
{
	((struct rule *)f)->n_freed++;
}

static struct rule rule(const char *name, enum filter_hook hook, int act)
{
	return (struct rule){
		.filter = { .name = name, .judge = judge, .free = count_free },
		.hook = hook,
		.act = act
	};
}

enum { CRASH = 77 };

/* One hook, one verdict: a request and an event, and idle within a second. */
static void d1_case(enum filter_hook hook, int act, enum fault_code want)
{
	struct rule r = rule("f", hook, act);
	struct probe_kind k = { .handle = echo };
	struct outcome out = { 0 };
	struct published p = { 0 };
	bool is_send = hook != ON_PUBLISH;
	bool is_publish = hook == ON_PUBLISH;

	start();
	add("a", &k);
	subscribe(SUB_TYPE, "t", "a");
	runtime_add_filter(rt, &r.filter);
	send_to("a/1", 1, &out);
	publish("t/1", 1, &p);
	CHECK_INT(runtime_wait_idle(rt, clock_us() + 1000000, NULL), 0);
	CHECK(runtime_is_idle(rt));
	CHECK_INT(out.n, 1);
	CHECK_INT(p.n, 1);
	CHECK_STR(fault_name(out.code), fault_name(is_send ? want : 0));
	if (is_publish) {
		CHECK_INT(p.count, 0);
		/* Dropped is not an error of the publisher's. */
		CHECK_STR(fault_name(p.code),
			  fault_name(want == FAULT_DROPPED ? 0 : want));
	}
	end();
	CHECK_INT(r.n_freed, 1);
	CHECK(r.n_asked > 0);
}

TEST(d1_whatever_a_filter_does_idle_comes)
{
	for (int hook = ON_SEND; hook <= ON_DELIVER; hook++) {
		d1_case((enum filter_hook)hook, FILTER_DROP, FAULT_DROPPED);
		d1_case((enum filter_hook)hook, FILTER_REJECT, FAULT_REJECTED);
		d1_case((enum filter_hook)hook, CRASH, FAULT_INTERNAL);
		d1_case((enum filter_hook)hook, -1, FAULT_INTERNAL);
		d1_case((enum filter_hook)hook, FILTER_REPLACE,
			FAULT_INTERNAL); /* by nothing */
		d1_case((enum filter_hook)hook, FILTER_REDIRECT,
			FAULT_INTERNAL); /* to nowhere */
	}
}

TEST(d2_the_second_filter_sees_what_the_first_one_made)
{
	struct rule one = rule("one", ON_SEND, FILTER_REPLACE);
	struct rule two = rule("two", ON_SEND, FILTER_REPLACE);
	struct rule event = rule("event", ON_PUBLISH, FILTER_REPLACE);
	struct rule deliver = rule("deliver", ON_DELIVER, FILTER_REPLACE);
	struct rule back = rule("back", ON_RESPONSE, FILTER_REPLACE);
	struct probe_kind k = { .handle = echo };
	struct outcome out = { 0 };
	struct actor *a = NULL;
	struct err err = { 0 };

	start();
	add("a", &k);
	subscribe(SUB_TYPE, "t", "a");
	one.plus = 1;
	two.plus = 2;
	runtime_add_filter(rt, &one.filter);
	runtime_add_filter(rt, &two.filter);
	send_to("a/1", 10, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.value, 13);
	event.plus = 100;
	deliver.plus = 1000;
	back.plus = 10000;
	runtime_add_filter(rt, &event.filter);
	runtime_add_filter(rt, &deliver.filter);
	runtime_add_filter(rt, &back.filter);
	send_to("a/1", 10, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.value, 11013);
	publish("t/2", 5, NULL);
	CHECK_INT(settle(rt), 0);
	CHECK(runtime_get(rt, "a/2", &a, &err) == 0);
	CHECK_INT(((struct probe *)a)->sum, 1105);
	CHECK_INT(count_of("changed"), 2 + 2 + 2 + 2);
	end();
}

TEST(d3_a_filter_that_says_nothing_changes_nothing)
{
	struct rule quiet = rule("quiet", ON_SEND, FILTER_PASS);
	struct probe_kind k = { .handle = echo };
	struct outcome out = { 0 };

	start();
	add("a", &k);
	runtime_add_filter(rt, &quiet.filter);
	send_to("a/1", 7, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(out.value, 7);
	CHECK_INT(quiet.n_asked, 1);
	end();
}

static char log_text[512];

static void write_down(void *arg, const json_t *e)
{
	const char *filter = json_string_value(json_object_get(e, "filter"));
	size_t n = strlen(log_text);

	(void)arg;
	if (filter)
		(void)snprintf(log_text + n, sizeof(log_text) - n, "%s=%s ",
			       filter,
			       json_string_value(json_object_get(e, "event")));
}

TEST(a_request_is_redirected_and_the_log_says_by_whom)
{
	struct rule away = rule("away", ON_SEND, FILTER_REDIRECT);
	struct rule stop = rule("stop", ON_DELIVER, FILTER_DROP);
	struct probe_kind a = { .handle = echo };
	struct probe_kind b = { .handle = echo };
	struct outcome out = { 0 };

	start();
	add("a", &a);
	add("b", &b);
	away.to = "b/9";
	runtime_add_filter(rt, &away.filter);
	runtime_on_event(rt, write_down, NULL);
	send_to("a/1", 7, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_INT(a.seen, 0);
	CHECK_STR(b.last, "b/9");
	CHECK_INT(out.value, 7);
	runtime_add_filter(rt, &stop.filter);
	send_to("a/1", 7, &out);
	CHECK_INT(settle(rt), 0);
	CHECK_STR(fault_name(out.code), "dropped");
	CHECK_HAS(out.text, "stop");
	CHECK_HAS(out.text, "because");
	CHECK_STR(log_text, "away=filter_redirected away=filter_redirected "
			    "stop=filter_dropped ");
	end();
}

TAP_MAIN()
