/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The user proxy: a person's turn.
 *
 * With a callback the person is there: the prompt is shown, the loop goes on,
 * and the answer ends the turn; when the token fires the callback ends its
 * prompt. Without one the turn suspends: what is pending has an id, says when
 * it expires and holds all that is needed to take an answer up later, maybe
 * in another process.
 *
 *	{"kind":"input","id","agent","prompt","requested_at","expires_at",
 *	 "state":{"type":"user.turn","version":1,"handoff_from":name or null}}
 *
 * An answer is a text, or an object with `content`, and with `id` where it
 * shall be known to be the answer to this question.
 */

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/chat.h"
#include "agent/parts.h"

#define EXPIRE_S   (24 * 60 * 60)
#define ANSWER_MAX ((size_t)1 << 20)
#define STATE      "user.turn"

struct user {
	struct agent agent;
	json_t *config;
	struct user_prompt prompt;
	struct question *question; /* that the callback has */
	json_t *loaded;
};

/* Stays until the callback has said its word, also when nobody listens. */
struct question {
	struct user *user; /* NULL: the turn is over */
	struct turn *turn;
	char *from; /* whose handoff it answers, or NULL */
	struct cancel *cancel;
};

static const struct setting settings[] = {
	{ "name", SETTING_TEXT },
	{ "description", SETTING_TEXT },
	{ "prompt", SETTING_TEXT },
	{ "expire_seconds", SETTING_POSITIVE },
};

static struct user *user_of(struct agent *agent)
{
	return (struct user *)agent;
}

/* Who handed over to this agent last; NULL: nobody. */
static const char *handoff_from(const struct agent *a, const json_t *messages)
{
	for (size_t i = json_array_size(messages); i > 0; i--) {
		const json_t *m = json_array_get(messages, i - 1);
		const char *type = chat_type(m);

		if (type && strcmp(type, "HandoffMessage") == 0 &&
		    strcmp(setting_text(m, "target", ""), a->name) == 0)
			return chat_source(m);
	}
	return NULL;
}

static json_t *reply(const struct agent *a, const char *from, const char *text)
{
	if (!from)
		return chat_text(a->name, text);
	return chat_new("HandoffMessage", a->name,
			json_pack("{s:s, s:s, s:[]}", "content", text, "target",
				  from, "context"));
}

static void fail(struct turn *t, enum fault_code code, const char *text)
{
	struct fault why = { 0 };

	fault_set(&why, code, "%s", text);
	turn_fail(t, &why);
	fault_done(&why);
}

/* What a person types may be no UTF-8; then it cannot be a message. */
static void end(struct turn *t, const struct agent *a, const char *from,
		const char *text)
{
	json_t *chat;

	if (strlen(text) > ANSWER_MAX) {
		fail(t, FAULT_TOO_LARGE, "the answer is longer than 1 MiB");
		return;
	}
	chat = reply(a, from, text);
	if (chat)
		turn_done(t, chat);
	else
		fail(t, FAULT_HANDLER, "the answer is no text");
}

/* --- the person is there --- */

static void question_free(struct question *q)
{
	cancel_unref(q->cancel);
	free(q->from);
	free(q);
}

static void on_answer(void *arg, const char *answer)
{
	struct question *q = arg;

	if (q->user) {
		q->user->question = NULL;
		if (answer)
			end(q->turn, &q->user->agent, q->from, answer);
		else
			fail(q->turn, FAULT_CANCELLED,
			     "the person gave no answer");
	}
	question_free(q);
}

static void ask_now(struct user *u, struct turn *t, const char *prompt,
		    const char *from)
{
	struct question *q = calloc(1, sizeof(*q));

	if (q && from)
		q->from = strdup(from);
	if (!q || (from && !q->from)) {
		free(q);
		turn_done(t, NULL);
		return;
	}
	q->user = u;
	q->turn = t;
	q->cancel = cancel_ref(turn_cancel(t));
	u->question = q;
	u->prompt.ask(u->prompt.arg, prompt, q->cancel, on_answer, q);
}

static void user_abandon(struct agent *agent, struct turn *t)
{
	struct question *q = take_ptr(user_of(agent)->question);

	(void)t;
	if (q)
		q->user = NULL;
}

/* --- or will be --- */

static json_t *pending(const struct user *u, const char *id, const char *prompt,
		       const char *from)
{
	int64_t now = chat_now();
	int64_t life = setting_int(u->config, "expire_seconds", EXPIRE_S);
	char asked[32];
	char until[32];
	json_t *state = saved_new(STATE, 1, NULL);

	chat_time(now, asked);
	chat_time(now + life * 1000, until);
	if (json_object_set_new(state, "handoff_from",
				from ? json_string(from) : json_null()) < 0) {
		json_decref(state);
		return NULL;
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "kind", "input",
			 "id", id, "agent", u->agent.name, "prompt", prompt,
			 "requested_at", asked, "expires_at", until, "state",
			 state);
}

static void user_begin(struct agent *agent, struct turn *t)
{
	struct user *u = user_of(agent);
	const char *prompt = setting_text(u->config, "prompt",
					  "Enter your response: ");
	const char *from = handoff_from(agent, turn_messages(t));
	char id[CHAT_ID];

	chat_id(id);
	turn_event(t, chat_new("UserInputRequestedEvent", agent->name,
			       json_pack("{s:s, s:s}", "request_id", id,
					 "prompt", prompt)));
	if (u->prompt.ask)
		ask_now(u, t, prompt, from);
	else
		turn_suspend(t, pending(u, id, prompt, from));
}

static const char *answer_text(const json_t *answer)
{
	return json_is_string(answer) ? json_string_value(answer)
				      : setting_text(answer, "content", NULL);
}

/* NULL: it can be taken up. */
static const char *refusal(const json_t *suspended, const json_t *answer)
{
	const char *id = setting_text(suspended, "id", "");
	int64_t until = chat_when(setting_text(suspended, "expires_at", NULL));

	if (saved_check(json_object_get(suspended, "state"), STATE, 1, NULL) <
		    0 ||
	    until < 0)
		return "what was suspended is no question to a person";
	if (!answer_text(answer))
		return "the answer has no content";
	if (strcmp(setting_text(answer, "id", id), id) != 0)
		return "the answer is to another question";
	return NULL;
}

static void user_resume(struct agent *agent, struct turn *t,
			const json_t *suspended, const json_t *answer)
{
	const json_t *state = json_object_get(suspended, "state");
	const char *why = refusal(suspended, answer);

	if (why) {
		fail(t, FAULT_CANT_HANDLE, why);
		return;
	}
	if (chat_now() >
	    chat_when(setting_text(suspended, "expires_at", NULL))) {
		fail(t, FAULT_DEADLINE, "the question has expired");
		return;
	}
	end(t, agent, setting_text(state, "handoff_from", NULL),
	    answer_text(answer));
}

/* --- the agent --- */

static json_t *user_save(struct agent *agent)
{
	return saved_new("user", 1, user_of(agent)->loaded);
}

static int user_load(struct agent *agent, const json_t *state, struct err *err)
{
	struct user *u = user_of(agent);
	int r = saved_check(state, "user", 1, err);

	if (r == 0) {
		json_decref(u->loaded);
		u->loaded = json_incref((json_t *)state);
	}
	return r;
}

static json_t *user_dump(struct agent *agent)
{
	return json_deep_copy(user_of(agent)->config);
}

static void user_free(struct agent *agent)
{
	struct user *u = user_of(agent);

	if (u->question)
		u->question->user = NULL;
	json_decref(u->config);
	json_decref(u->loaded);
	agent_done(agent);
	free(u);
}

static const struct agent_ops ops = {
	.begin = user_begin,
	.resume = user_resume,
	.abandon = user_abandon,
	.save = user_save,
	.load = user_load,
	.dump = user_dump,
	.free = user_free,
};

int agent_user(struct loop *l, const char *name, const json_t *config,
	       const struct user_prompt *prompt, struct agent **ret,
	       struct err *err)
{
	struct user *u;
	int r = settings_check(config, settings, ARRAY_SIZE(settings), err);

	if (r < 0)
		return r;
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_set(err, ENOMEM, "out of memory");
	if (prompt)
		u->prompt = *prompt;
	u->config = config ? json_deep_copy(config) : json_object();
	r = u->config ? agent_init(&u->agent, &ops, l, name, u->config, err)
		      : err_set(err, ENOMEM, "out of memory");
	if (r < 0)
		user_free(&u->agent);
	else
		*ret = &u->agent;
	return r;
}
