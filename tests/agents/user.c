/* SPDX-License-Identifier: Apache-2.0 */

/* The user proxy (10.3): a person now, or the next day. */

#include "tests/tap.h"

#include "tests/agents/fakes.h"

/* A person who answers at once, later, or when cancelled. */
struct person {
	const char *answer;
	int64_t after_ms; /* < 0: never by itself */
	char *prompt;
	struct timer timer;
	struct cancel_hook hook;
	struct task task;
	user_answer_fn *done;
	void *done_arg;
	bool was_cancelled;
};

static void answer_now(struct timer *t)
{
	struct person *p = (struct person *)((char *)t -
					     offsetof(struct person, timer));

	cancel_unhook(&p->hook);
	p->done(p->done_arg, p->answer);
}

static void leave(struct cancel_hook *h, struct cancel *c)
{
	struct person *p = (struct person *)((char *)h -
					     offsetof(struct person, hook));

	(void)c;
	timer_stop(&p->timer);
	p->was_cancelled = true;
	p->done(p->done_arg, NULL);
}

static void ask_person(void *arg, const char *prompt, struct cancel *cancel,
		       user_answer_fn *done_fn, void *done_arg)
{
	struct person *p = arg;

	free(p->prompt);
	p->prompt = strdup(prompt);
	p->done = done_fn;
	p->done_arg = done_arg;
	p->timer.fire = answer_now;
	p->hook.fired = leave;
	if (p->after_ms == 0) {
		done_fn(done_arg, p->answer);
		return;
	}
	cancel_hook(cancel, &p->hook);
	if (p->after_ms > 0)
		(void)timer_set(the_loop(), &p->timer,
				clock_us() + p->after_ms * 1000);
}

static struct agent *make(const char *config, struct person *p)
{
	struct user_prompt prompt = { ask_person, p };
	struct err err = { 0 };
	json_t *c = doc(config);
	struct agent *a = NULL;

	CHECK_INT(agent_user(the_loop(), "user", c, p ? &prompt : NULL, &a,
			     &err),
		  0);
	CHECK_STR(err.text, "");
	json_decref(c);
	return a;
}

TEST(a_person_answers)
{
	static const int64_t whens[] = { 0, 5 };

	for (size_t i = 0; i < ARRAY_SIZE(whens); i++) {
		struct person p = { .answer = "yes", .after_ms = whens[i] };
		struct agent *a = make("{'prompt':'well? '}", &p);
		struct heard h = { 0 };

		ask(a, "shall I?", &h);
		CHECK_STR(types(&h), "UserInputRequestedEvent");
		CHECK_STR(p.prompt, "well? ");
		CHECK_STR(chat_type(h.chat), "TextMessage");
		CHECK_STR(chat_source(h.chat), "user");
		CHECK_STR(text_of(h.chat), "yes");
		CHECK(event_of(&h, "UserInputRequestedEvent") &&
		      chat_check(event_of(&h, "UserInputRequestedEvent"),
				 NULL) == 0);
		free(p.prompt);
		heard_done(&h);
		agent_free(a);
	}
}

TEST(a_cancelled_run_ends_the_prompt)
{
	struct person p = { .answer = "late", .after_ms = -1 };
	struct agent *a = make("{}", &p);
	struct cancel *c = cancel_new(the_loop(), NULL, clock_us() + 10000);
	struct heard h = { 0 };

	ask_list(a, json_pack("[o]", chat_text("bot", "well?")), c, &h);
	CHECK(p.was_cancelled);
	CHECK_INT((int)h.why.code, FAULT_DEADLINE);
	/* And the next one works. */
	p.after_ms = 1;
	ask(a, "well?", &h);
	CHECK_STR(text_of(h.chat), "late");
	cancel_unref(c);
	free(p.prompt);
	heard_done(&h);
	agent_free(a);
}

static void ask_nobody(void *arg, const char *prompt, struct cancel *cancel,
		       user_answer_fn *done_fn, void *done_arg)
{
	struct person *p = arg;

	(void)prompt;
	(void)cancel;
	p->done = done_fn;
	p->done_arg = done_arg;
}

TEST(a_prompt_that_does_not_end_is_left_behind)
{
	struct person p = { 0 };
	struct user_prompt prompt = { ask_nobody, &p };
	struct agent *a = NULL;
	struct err err = { 0 };
	struct cancel *c = cancel_new(the_loop(), NULL, clock_us() + 10000);
	struct heard h = { 0 };
	int64_t began = clock_us();

	CHECK_INT(agent_user(the_loop(), "user", NULL, &prompt, &a, &err), 0);
	ask_list(a, json_pack("[o]", chat_text("bot", "well?")), c, &h);
	CHECK_INT((int)h.why.code, FAULT_DEADLINE);
	CHECK(clock_us() - began < 3000000);
	/* It answers when nobody waits any more, and not even the agent is
	 * there. */
	agent_free(a);
	p.done(p.done_arg, "too late");
	cancel_unref(c);
	heard_done(&h);
}

TEST(no_answer_is_an_error)
{
	struct person p = { .answer = NULL, .after_ms = 0 };
	struct agent *a = make("{}", &p);
	struct heard h = { 0 };

	ask(a, "well?", &h);
	CHECK(h.chat == NULL);
	CHECK_INT((int)h.why.code, FAULT_CANCELLED);
	p.answer = "not \xff utf-8";
	ask(a, "well?", &h);
	CHECK_INT((int)h.why.code, FAULT_HANDLER);
	free(p.prompt);
	heard_done(&h);
	agent_free(a);
}

TEST(an_answer_to_a_handoff_is_a_handoff_back)
{
	struct person p = { .answer = "take it", .after_ms = 0 };
	struct agent *a = make("{}", &p);
	struct heard h = { 0 };
	json_t *handoff = chat_new("HandoffMessage", "bot",
				   doc("{'content':'you decide',"
				       "'target':'user','context':[]}"));

	ask_list(a, json_pack("[O, o]", handoff, chat_text("other", "hm")),
		 NULL, &h);
	CHECK_STR(chat_type(h.chat), "HandoffMessage");
	CHECK_STR(json_string_value(json_object_get(h.chat, "target")), "bot");
	CHECK_STR(text_of(h.chat), "take it");
	CHECK_INT(chat_check(h.chat, NULL), 0);
	/* One that is meant for somebody else is not. */
	(void)json_object_set_new(handoff, "target", json_string("eve"));
	ask_list(a, json_pack("[O]", handoff), NULL, &h);
	CHECK_STR(chat_type(h.chat), "TextMessage");
	json_decref(handoff);
	free(p.prompt);
	heard_done(&h);
	agent_free(a);
}

/* --- the next day --- */

TEST(d35_an_answer_comes_after_a_restart_by_its_id)
{
	struct agent *a = make("{'prompt':'name? '}", NULL);
	struct heard h = { 0 };
	json_t *pending;
	json_t *handoff = chat_new("HandoffMessage", "bot",
				   doc("{'content':'you decide',"
				       "'target':'user','context':[]}"));
	const char *id;
	char answer[128];
	char *text;

	ask_list(a, json_pack("[o]", handoff), NULL, &h);
	CHECK_STR(types(&h), "UserInputRequestedEvent");
	CHECK(h.chat == NULL && h.pending);
	CHECK_STR(json_string_value(json_object_get(h.pending, "kind")),
		  "input");
	CHECK_STR(json_string_value(json_object_get(h.pending, "prompt")),
		  "name? ");
	CHECK(json_equal(json_object_get(h.pending, "id"),
			 json_object_get(event_of(&h,
						  "UserInputRequestedEvent"),
					 "request_id")));
	/* All that is left is a text on a disk. */
	text = json_dumps(h.pending, 0);
	agent_free(a);
	pending = json_loads(text, 0, NULL);
	id = json_string_value(json_object_get(pending, "id"));

	a = make("{'prompt':'name? '}", NULL);
	(void)snprintf(answer, sizeof(answer),
		       "{\"id\":\"%s\",\"content\":\"Ada\"}", id);
	resume(a, pending, answer, &h);
	CHECK_STR(text_of(h.chat), "Ada");
	CHECK_STR(chat_type(h.chat), "HandoffMessage");
	CHECK_STR(json_string_value(json_object_get(h.chat, "target")), "bot");
	/* A bare text will do as well. */
	resume(a, pending, "\"Grace\"", &h);
	CHECK_STR(text_of(h.chat), "Grace");
	free(text);
	json_decref(pending);
	heard_done(&h);
	agent_free(a);
}

TEST(d35_wrong_and_late_answers_are_refused)
{
	struct agent *a = make("{'expire_seconds':60}", NULL);
	struct heard h = { 0 };
	json_t *pending;
	int64_t until;

	ask(a, "name?", &h);
	pending = json_deep_copy(h.pending);
	until = chat_when(
		json_string_value(json_object_get(pending, "expires_at")));
	CHECK(until > chat_now() + 50000 && until <= chat_now() + 60000);
	resume(a, pending, "{\"id\":\"another\",\"content\":\"x\"}", &h);
	CHECK_INT((int)h.why.code, FAULT_CANT_HANDLE);
	CHECK_HAS(h.why.message, "another question");
	resume(a, pending, "{\"approved\":true}", &h);
	CHECK_HAS(h.why.message, "no content");
	resume(a, pending, NULL, &h);
	CHECK_HAS(h.why.message, "no content");
	(void)json_object_set_new(pending, "expires_at",
				  json_string("2020-01-01T00:00:00.000Z"));
	resume(a, pending, "\"x\"", &h);
	CHECK_INT((int)h.why.code, FAULT_DEADLINE);
	/* A time that cannot be read is no time without an end. */
	(void)json_object_set_new(pending, "expires_at", json_string("never"));
	resume(a, pending, "\"x\"", &h);
	CHECK_INT((int)h.why.code, FAULT_CANT_HANDLE);
	(void)json_object_del(pending, "state");
	resume(a, pending, "\"x\"", &h);
	CHECK_INT((int)h.why.code, FAULT_CANT_HANDLE);
	json_decref(pending);
	heard_done(&h);
	agent_free(a);
}

TAP_MAIN()
