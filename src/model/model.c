/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "model/provider.h"

#define CALL_OF(ptr, member)                                                   \
	((struct model_call *)((char *)(ptr)-offsetof(struct model_call,       \
						      member)))

struct model *provider_new(const struct model_ops *ops, struct loop *l,
			   const char *name)
{
	struct model *m = calloc(1, ops->model_size);

	if (!m)
		return NULL;
	m->name = strdup(name);
	if (!m->name) {
		free(m);
		return NULL;
	}
	m->ops = ops;
	m->loop = l;
	m->refs = 1;
	info_find(name, &m->info);
	return m;
}

struct model *model_ref(struct model *m)
{
	if (m)
		m->refs++;
	return m;
}

void model_unref(struct model *m)
{
	if (!m || --m->refs)
		return;
	m->ops->free(m);
	free(m->name);
	free(m);
}

const char *model_name(const struct model *m)
{
	return m->name;
}

const struct model_info *model_info(const struct model *m)
{
	return &m->info;
}

const struct model_usage *model_total(const struct model *m)
{
	return &m->total;
}

int64_t model_count_tokens(const struct model *m, const json_t *messages,
			   const json_t *tools)
{
	(void)m;
	return tokens_of_request(messages, tools);
}

/* --- results --- */

void result_done(struct model_result *r)
{
	free(r->content);
	free(r->thought);
	free(r->raw_id);
	free(r->model);
	json_decref(r->calls);
	memset(r, 0, sizeof(*r));
}

static int copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

int result_copy(struct model_result *to, const struct model_result *from)
{
	struct model_result r = *from;
	int bad = 0;

	bad |= copy(&r.content, from->content);
	bad |= copy(&r.thought, from->thought);
	bad |= copy(&r.raw_id, from->raw_id);
	bad |= copy(&r.model, from->model);
	r.calls = from->calls ? json_deep_copy(from->calls) : NULL;
	if (bad || (from->calls && !r.calls)) {
		result_done(&r);
		return -ENOMEM;
	}
	*to = r;
	return 0;
}

/* --- the end of a call --- */

static void release(struct model_call *c)
{
	struct model *m = c->model;

	task_drop(&c->task);
	cancel_unhook(&c->hook);
	m->ops->stop(c);
	m->ops->done(c);
	cancel_unref(c->cancel);
	result_done(&c->result);
	fault_done(&c->why);
	free(c);
	model_unref(m);
}

static void tell(struct task *t)
{
	struct model_call *c = CALL_OF(t, task);
	bool is_good = c->why.code == FAULT_NONE;

	if (!c->is_dropped) {
		c->is_telling = true;
		c->events.done(c->arg, is_good ? &c->result : NULL,
			       is_good ? NULL : &c->why);
	}
	release(c);
}

static void over(struct model_call *c)
{
	c->is_over = true;
	cancel_unhook(&c->hook);
	c->model->ops->stop(c);
	loop_soon(c->model->loop, &c->task);
}

static void add_usage(struct model_usage *sum, const struct model_usage *u)
{
	sum->prompt += u->prompt;
	sum->completion += u->completion;
	sum->cached += u->cached;
	sum->reasoning += u->reasoning;
	sum->calls += u->calls;
	sum->cost += u->cost;
}

void call_end(struct model_call *c)
{
	struct model_usage *u = &c->result.usage;

	if (c->is_over)
		return;
	u->calls = 1;
	if (u->cost <= 0)
		u->cost = info_cost(&c->model->info, u);
	add_usage(&c->model->total, u);
	over(c);
}

void call_fail(struct model_call *c)
{
	if (c->is_over)
		return;
	if (c->why.code == FAULT_NONE)
		fault_set(&c->why, FAULT_INTERNAL, "out of memory");
	over(c);
}

static void is_cancelled(struct cancel_hook *h, struct cancel *token)
{
	struct model_call *c = CALL_OF(h, hook);

	if (c->is_over)
		return;
	cancel_fault(token, &c->why);
	call_fail(c);
}

void call_chunk(struct model_call *c, bool is_thought, const char *text,
		size_t len)
{
	if (c->is_over || c->is_dropped || !c->events.chunk || len == 0)
		return;
	c->is_telling = true;
	c->events.chunk(c->arg, is_thought, text, len);
	c->is_telling = false;
}

/* --- its beginning --- */

struct model_call *model_start(struct model *m, const struct model_request *q,
			       const struct model_events *e, void *arg)
{
	struct model_call *c = calloc(1, m->ops->call_size);

	if (!c)
		return NULL;
	c->model = model_ref(m);
	c->events = *e;
	c->arg = arg;
	c->task.run = tell;
	c->hook.fired = is_cancelled;
	c->is_stream = q->is_stream;
	c->cancel = cancel_ref(q->cancel);
	/* One that has fired ends it here; then nothing is begun. */
	cancel_hook(c->cancel, &c->hook);
	if (!c->is_over && m->ops->start(c, q) < 0)
		call_fail(c);
	return c;
}

void model_drop(struct model_call *c)
{
	if (!c)
		return;
	c->is_dropped = true;
	if (!c->is_telling) {
		release(c);
		return;
	}
	/* It is up the stack: freed from the loop, or at the end of tell(). */
	if (!c->is_over)
		over(c);
}
