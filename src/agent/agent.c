/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <errno.h>
#include <string.h>

#include "agent/parts.h"
#include "runtime/filter-policy.h"

#define NAME_MAX_LEN 64

bool agent_name_check(const char *name)
{
	static const char first[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char rest[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
		"0123456789";

	return name && *name && strspn(name, first) > 0 &&
	       strspn(name, rest) == strlen(name) &&
	       strlen(name) <= NAME_MAX_LEN;
}

int agent_init(struct agent *a, const struct agent_ops *ops, struct loop *l,
	       const char *name, const json_t *config, struct err *err)
{
	if (!agent_name_check(name))
		return err_set(err, EINVAL,
			       "not a name of an agent: '%.80s': letters, "
			       "digits and '_', no digit first",
			       name ? name : "");
	a->ops = ops;
	a->loop = l;
	a->name = strdup(name);
	a->description = strdup(setting_text(config, "description", ""));
	if (!a->name || !a->description)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

void agent_done(struct agent *a)
{
	free(a->name);
	free(a->description);
	a->name = NULL;
	a->description = NULL;
	screen_unref(take_ptr(a->screen));
	model_unref(take_ptr(a->summariser));
}

void agent_set_screen(struct agent *a, struct screen *s)
{
	screen_unref(a->screen);
	a->screen = s ? screen_ref(s) : NULL;
}

void agent_set_summariser(struct agent *a, struct model *m)
{
	model_unref(a->summariser);
	a->summariser = m ? model_ref(m) : NULL;
}

void agent_go(struct agent *a, struct task *t)
{
	if (!agent_is_held(a, t))
		loop_soon(a->loop, t);
}

bool agent_is_held(struct agent *a, struct task *t)
{
	if (a->is_paused)
		a->held = t;
	return a->is_paused;
}

void agent_let_go(struct agent *a, struct task *t)
{
	if (a->held == t)
		a->held = NULL;
	task_drop(t);
}

void agent_pause(struct agent *a)
{
	a->is_paused = true;
	if (a->ops->pause)
		a->ops->pause(a, true);
}

void agent_unpause(struct agent *a)
{
	struct task *t = take_ptr(a->held);

	a->is_paused = false;
	if (a->ops->pause)
		a->ops->pause(a, false);
	if (t)
		loop_soon(a->loop, t);
}

void agent_reset(struct agent *a)
{
	if (a->turn)
		turn_stop(a->turn, "the agent was reset");
	if (a->ops->reset)
		a->ops->reset(a);
}

json_t *agent_save(struct agent *a)
{
	return a->ops->save ? a->ops->save(a) : NULL;
}

int agent_load(struct agent *a, const json_t *state, struct err *err)
{
	int r;

	if (a->turn)
		return err_set(err, EBUSY, "agent '%s' has a turn that goes on",
			       a->name);
	if (!a->ops->load)
		return 0;
	r = a->ops->load(a, state, err);
	return r < 0 ? err_wrap(err, "agent '%s'", a->name) : r;
}

json_t *agent_dump(struct agent *a)
{
	return a->ops->dump ? a->ops->dump(a) : NULL;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	turn_drop(a->turn);
	a->ops->free(a);
}
