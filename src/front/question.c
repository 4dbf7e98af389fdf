/* SPDX-License-Identifier: Apache-2.0 */
#include "front/question.h"

#include <stdlib.h>

#include "front/exec.h"

static bool has_waiting(const struct call *c)
{
	while (c && c->is_dropped)
		c = c->next;
	return c;
}

/* Somebody needs the wall for files, not for a start. */
static bool is_needed(const struct box *b)
{
	for (const struct need *n = b->needs; n; n = n->next)
		if (n != &b->start_need)
			return true;
	return false;
}

static bool box_has_waiting(const struct box *b)
{
	if (b->state == BOX_GONE || b->is_removing)
		return false;
	if (b->create_call)
		return !b->create_call->is_dropped;
	return (has_waiting(b->start_calls) && !b->is_killed) || is_needed(b);
}

static bool exec_has_waiting(const struct exec *e)
{
	return e->start_call && !e->start_call->is_dropped &&
	       e->box->state == BOX_RUNNING && !e->box->is_ending;
}

static void look(struct asking *a)
{
	struct manager *m = a->box->m;
	bool has_any = a->exec ? exec_has_waiting(a->exec)
			       : box_has_waiting(a->box);

	if (a->is_cancelled || (has_any && !m->is_draining))
		return;
	a->is_cancelled = true;
	turn_cancel(m, a);
}

void questions_look(struct manager *m)
{
	for (struct asking *a = m->questions; a; a = a->next)
		look(a);
}

/* Who leaves now is to say so. */
static void mark_calls(const struct asking *a, bool has_question)
{
	if (a->exec && a->exec->start_call)
		a->exec->start_call->has_question = has_question;
	if (a->exec)
		return;
	if (a->box->create_call)
		a->box->create_call->has_question = has_question;
	for (struct call *c = a->box->start_calls; c; c = c->next)
		c->has_question = has_question;
}

void asking_asked(void *arg)
{
	struct asking *a = arg;
	struct manager *m = a->box->m;

	if (a->is_open)
		return;
	a->is_open = true;
	a->next = m->questions;
	m->questions = a;
	mark_calls(a, true);
	look(a); /* it may have left before */
}

void asking_over(struct asking *a)
{
	struct asking **p = &a->box->m->questions;

	if (!a->is_open)
		return;
	while (*p != a)
		p = &(*p)->next;
	*p = a->next;
	a->is_open = false;
	mark_calls(a, false);
}

void asking_free(struct asking *a)
{
	if (a->exec)
		exec_unref(a->exec);
	box_unref(a->box);
	free(a);
}
