/* SPDX-License-Identifier: Apache-2.0 */

/* Each participant in its turn, in the order of the list. */

#include <stdlib.h>

#include "agent/parts.h"
#include "agent/team-parts.h"

#define VERSION 1

struct circle {
	struct team *team;
	size_t next;
	struct task task;
	struct speaker_choice choice;
};

static void decide(struct task *task)
{
	struct circle *c = (struct circle *)((char *)task -
					     offsetof(struct circle, task));
	json_t *names = json_pack("[s]", team_member(c->team, c->next));
	struct fault why = { 0 };

	if (!names) {
		fault_set(&why, FAULT_INTERNAL, "out of memory");
		c->choice.done(c->choice.arg, NULL, &why);
		fault_done(&why);
		return;
	}
	c->next = (c->next + 1) % team_size(c->team);
	c->choice.done(c->choice.arg, names, NULL);
	json_decref(names);
}

static int make(struct team *t, const json_t *config, void **ret,
		struct err *err)
{
	struct circle *c = calloc(1, sizeof(*c));

	(void)config;
	if (!c)
		return err_set(err, ENOMEM, "out of memory");
	c->team = t;
	c->task.run = decide;
	*ret = c;
	return 0;
}

static void next(void *own, const json_t *thread, struct cancel *cancel,
		 struct speaker_choice choice)
{
	struct circle *c = own;

	(void)thread;
	(void)cancel;
	c->choice = choice;
	loop_soon(c->team->loop, &c->task);
}

static void reset(void *own)
{
	((struct circle *)own)->next = 0;
}

static json_t *save(void *own)
{
	const struct circle *c = own;

	return json_pack("{s:s, s:i, s:I}", "type", "round_robin", "version",
			 VERSION, "next", (json_int_t)c->next);
}

static int load(void *own, const json_t *state, struct err *err)
{
	struct circle *c = own;
	json_int_t n = json_integer_value(json_object_get(state, "next"));
	int r = saved_check(state, "round_robin", VERSION, err);

	if (r < 0)
		return r;
	if (n < 0 || (size_t)n >= team_size(c->team))
		return err_set(err, EINVAL, "no participant has number %lld",
			       (long long)n);
	c->next = (size_t)n;
	return 0;
}

static void circle_free(void *own)
{
	struct circle *c = own;

	task_drop(&c->task);
	free(c);
}

const struct team_kind team_round_robin = { .name = "round_robin",
					    .make = make,
					    .next = next,
					    .reset = reset,
					    .save = save,
					    .load = load,
					    .free = circle_free };
