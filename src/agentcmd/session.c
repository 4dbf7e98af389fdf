/* SPDX-License-Identifier: Apache-2.0 */
#include "agentcmd/session.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/checkpoint.h"
#include "agentcmd/fields.h"
#include "agentcmd/prompt.h"
#include "base/state.h"
#include "ledger/redact.h"
#include "base/util.h"

#define TITLE_MAX 200

struct session {
	struct session_options o;
	struct loop *loop;
	struct crew *crew;
	struct prompt prompt;
	struct user_prompt ask;
	struct checkpoints *store;
	struct cancel *cancel;
	int wake; /* eventfd: somebody wants it to end */
	struct watch watch;
	bool is_watching;
	json_t *result;
};

void session_cancel(struct session *s)
{
	uint64_t one = 1;
	ssize_t n = write(s->wake, &one, sizeof(one));

	(void)n;
}

static void on_wake(struct watch *w)
{
	struct session *s = (struct session *)((char *)w -
					       offsetof(struct session, watch));
	uint64_t count;

	if (read(s->wake, &count, sizeof(count)) > 0 && s->cancel)
		cancel_fire(s->cancel, "interrupted");
}

static void on_event(void *arg, json_t *event)
{
	struct session *s = arg;

	if (s->crew)
		crew_heard(s->crew, event);
	if (s->o.crew.event)
		s->o.crew.event(s->o.crew.arg, event);
}

static void on_over(void *arg, json_t *result)
{
	struct session *s = arg;

	s->result = json_incref(result);
}

static bool is_over(void *arg)
{
	return ((struct session *)arg)->result != NULL;
}

int session_checkpoints(const char *name, struct checkpoints **ret,
			struct err *err)
{
	char path[4096];
	int fd = state_open(name, path, sizeof(path), err);

	if (fd < 0)
		return fd;
	(void)close(fd);
	return checkpoints_open(path, 0, ret, err);
}

/*
 * What the task was about, to tell runs apart. It is kept as it was typed, so
 * without secrets, and not at all where the policy has filters of its own.
 */
static char *title(const struct session *s)
{
	struct buf b;

	if (!s->o.task || crew_has_filters(s->crew))
		return NULL;
	buf_init(&b, 4 * TITLE_MAX + strlen(s->o.task) * 2);
	if (redact(&b, s->o.task, strlen(s->o.task)) < 0) {
		buf_done(&b);
		return NULL;
	}
	return buf_take(&b);
}

/* The beginning of it, not within a character. */
static json_t *short_title(const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return json_null();
	if (len > TITLE_MAX)
		for (len = TITLE_MAX; len && (text[len] & 0xc0) == 0x80;)
			len--;
	return json_stringn(text, len);
}

/* What a later process needs to go on; nothing secret is in it. */
static json_t *about(const struct session *s)
{
	const struct config *c = s->o.crew.config;
	_cleanup_free_ char *dir = realpath(c->dir, NULL);
	_cleanup_free_ char *task = title(s);

	return json_pack("{s:O, s:s, s:s, s:o, s:s?, s:s?, s:s}", "config",
			 c->component, "dir", dir ? dir : c->dir, "file",
			 c->file, "task", short_title(task), "replay",
			 s->o.crew.replay, "model", s->o.crew.model, "policy",
			 crew_policy_name(s->crew));
}

static int keep(struct session *s, struct err *err)
{
	json_t *doc;
	int e;

	if (!s->o.checkpoints)
		return 0;
	e = session_checkpoints(s->o.checkpoints, &s->store, err);
	if (e < 0)
		return err_wrap(err, "checkpoints");
	doc = about(s);
	team_keep(crew_team(s->crew), s->store, doc);
	json_decref(doc);
	return 0;
}

static int open_parts(struct session *s, struct err *err)
{
	struct crew_options o = s->o.crew;
	int e = loop_new(&s->loop, err);

	if (e < 0)
		return e;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake < 0)
		return err_errno(err, errno, "make an eventfd");
	prompt_init(&s->prompt, s->loop);
	o.loop = s->loop;
	o.event = on_event;
	o.arg = s;
	s->ask = (struct user_prompt){ .ask = prompt_ask, .arg = &s->prompt };
	o.prompt = s->o.has_prompt ? &s->ask : NULL;
	e = crew_new(&o, &s->crew, err);
	return e < 0 ? e : keep(s, err);
}

int session_open(const struct session_options *o, struct session **ret,
		 struct err *err)
{
	struct session *s = calloc(1, sizeof(*s));
	int e;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->o = *o;
	s->wake = NO_FD;
	e = open_parts(s, err);
	if (e < 0)
		session_close(s);
	else
		*ret = s;
	return e;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	crew_free(s->crew);
	prompt_done(&s->prompt);
	cancel_unref(s->cancel);
	if (s->store)
		checkpoints_close(s->store);
	if (s->loop)
		loop_free(s->loop);
	fd_close(&s->wake);
	json_decref(s->result);
	free(s);
}

const char *session_policy(const struct session *s)
{
	return crew_policy_name(s->crew);
}

/* Before anything of the one that goes on is touched. */
static int check_idle(const struct session *s, struct err *err)
{
	return s->is_watching ? err_set(err, EBUSY, "it runs already") : 0;
}

static int begin(struct session *s, struct err *err)
{
	uint64_t late;
	int e;

	/* A cancellation that came after the end is not for the next. */
	(void)!read(s->wake, &late, sizeof(late));
	json_decref(s->result);
	s->result = NULL;
	cancel_unref(s->cancel);
	s->cancel = cancel_new(s->loop, NULL, 0);
	if (!s->cancel)
		return err_set(err, ENOMEM, "out of memory");
	s->watch.ready = on_wake;
	e = watch_start(s->loop, &s->watch, s->wake);
	if (e < 0)
		return err_errno(err, -e, "watch an eventfd");
	s->is_watching = true;
	return 0;
}

/* Runs until the result is there. */
static int finish(struct session *s, int e, json_t **ret, struct err *err)
{
	if (e == 0 && !loop_run(s->loop, is_over, s))
		e = err_set(err, EIO, "the run has stopped without an end");
	if (s->is_watching)
		watch_stop(&s->watch);
	s->is_watching = false;
	if (e == 0)
		*ret = json_incref(s->result);
	return e;
}

static const struct team_events events = { on_event, on_over };

int session_run(struct session *s, const char *task, json_t **ret,
		struct err *err)
{
	json_t *list;
	int e = check_idle(s, err);

	if (e < 0)
		return e;
	list = task ? json_pack("[o]", chat_text("user", task)) : NULL;
	e = begin(s, err);
	if (e == 0)
		e = team_run(crew_team(s->crew), list, s->cancel, &events, s,
			     err);
	json_decref(list);
	return finish(s, e, ret, err);
}

static const char *id_of(const json_t *o)
{
	return json_string_value(json_object_get(o, "id"));
}

/* What this participant waits for, if it is a person's words. */
static const json_t *input_of(const json_t *member)
{
	const json_t *what = json_object_get(json_object_get(member, "pending"),
					     "what");
	const char *kind = json_string_value(json_object_get(what, "kind"));

	return kind && strcmp(kind, "input") == 0 && id_of(what) ? what : NULL;
}

const json_t *session_waits_for(const json_t *checkpoint)
{
	json_t *members = json_object_get(json_object_get(checkpoint, "state"),
					  "members");
	const char *name;
	json_t *m;

	json_object_foreach(members, name, m)
	{
		if (input_of(m))
			return input_of(m);
	}
	return NULL;
}

/* For everyone who waits for input; approvals have their answers elsewhere. */
static json_t *answers_for(json_t *members, const char *answer)
{
	json_t *ret = json_object();
	const char *name;
	json_t *m;

	json_object_foreach(members, name, m)
	{
		const json_t *what = input_of(m);

		if (what && answer)
			json_object_set_new(ret, id_of(what),
					    json_string(answer));
	}
	return ret;
}

/* The same from the result of a run that this process has suspended. */
static json_t *answers_now(const json_t *result, const char *answer)
{
	json_t *ret = json_object();
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(result, "pending"), i, p)
	{
		const char *kind = json_string_value(
			json_object_get(p, "kind"));

		if (answer && kind && strcmp(kind, "input") == 0 && id_of(p))
			json_object_set_new(ret, id_of(p), json_string(answer));
	}
	return ret;
}

int session_resume(struct session *s, const json_t *checkpoint,
		   const char *answer, json_t **ret, struct err *err)
{
	const json_t *state = json_object_get(checkpoint, "state");
	json_t *answers;
	int e = check_idle(s, err);

	if (e < 0)
		return e;
	answers = checkpoint ? answers_for(json_object_get(state, "members"),
					   answer)
			     : answers_now(s->result, answer);
	if (checkpoint)
		e = team_load(crew_team(s->crew), state, err);
	if (e == 0 && checkpoint)
		team_set_checkpoint(crew_team(s->crew), id_of(checkpoint));
	if (e == 0)
		e = begin(s, err);
	if (e == 0)
		e = team_resume(crew_team(s->crew), answers, s->cancel, &events,
				s, err);
	json_decref(answers);
	return finish(s, e, ret, err);
}

int session_config(const json_t *checkpoint, struct config *ret,
		   struct err *err)
{
	const json_t *doc = json_object_get(checkpoint, "about");
	const char *dir = json_string_value(json_object_get(doc, "dir"));
	const char *file = json_string_value(json_object_get(doc, "file"));
	_cleanup_free_ char *text = json_dumps(json_object_get(doc, "config"),
					       0);
	char *copy = dir ? strdup(dir) : NULL;
	int e;

	if (!text || !copy || !file) {
		free(copy);
		return err_set(err, EINVAL,
			       "the checkpoint does not say whose it is");
	}
	/* It is checked again: a checkpoint is a file like others. */
	e = config_parse(file, text, strlen(text), NULL, ret, err);
	if (e < 0) {
		free(copy);
		return e;
	}
	free(ret->dir);
	ret->dir = copy;
	return 0;
}
