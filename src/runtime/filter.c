/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The chain of filters: each sees what the one before made of the message.
 *
 * A filter that answers with something that makes no sense has failed, and
 * the message is refused: closed by default. The message is a reference that
 * judgement holds, so that whatever a filter does, there is one to release.
 */

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "runtime/cell.h"

struct round {
	struct runtime *rt;
	struct filter *filter;
	enum filter_hook hook;
	const struct address *address;
	struct judgement *j;
	struct filter_verdict verdict;
};

static void tell(struct round *r, const char *what)
{
	struct post shown = { .kind = r->hook == ON_PUBLISH    ? POST_EVENT
				      : r->hook == ON_RESPONSE ? POST_RESPONSE
							       : POST_REQUEST,
			      .message = r->j->message,
			      .from = r->address->from,
			      .to = r->address->to,
			      .topic = r->address->topic };

	note(r->rt,
	     &(struct note){ .what = what,
			     .post = &shown,
			     .filter = r->filter->name,
			     .text = r->verdict.reason,
			     .why = r->j->why.code ? &r->j->why : NULL });
}

static bool passes(struct round *r)
{
	(void)r;
	return true;
}

static bool fails(struct round *r, const char *how)
{
	r->rt->counts[COUNT_REJECTED]++;
	fault_set(&r->j->why, FAULT_INTERNAL, "filter '%s' %s", r->filter->name,
		  how);
	tell(r, "filter_failed");
	return false;
}

static bool replaces(struct round *r)
{
	if (!r->verdict.message)
		return fails(r, "replaced the message by nothing");
	if (r->verdict.message != r->j->message)
		message_unref(r->j->message);
	r->j->message = take_ptr(r->verdict.message);
	r->rt->counts[COUNT_CHANGED]++;
	tell(r, "filter_changed");
	return true;
}

static bool drops(struct round *r)
{
	r->j->is_dropped = true;
	r->rt->counts[COUNT_DROPPED]++;
	fault_set(&r->j->why, FAULT_DROPPED, "filter '%s': %s", r->filter->name,
		  r->verdict.reason);
	tell(r, "filter_dropped");
	return false;
}

static bool rejects(struct round *r)
{
	r->rt->counts[COUNT_REJECTED]++;
	fault_set(&r->j->why, FAULT_REJECTED, "filter '%s': %s",
		  r->filter->name, r->verdict.reason);
	tell(r, "filter_rejected");
	return false;
}

static bool redirects(struct round *r)
{
	if (r->hook != ON_SEND || !actor_id_split(r->verdict.to))
		return fails(r, "redirected to nowhere");
	memcpy(r->j->to, r->verdict.to, sizeof(r->j->to));
	r->rt->counts[COUNT_CHANGED]++;
	tell(r, "filter_redirected");
	return true;
}

static bool (*const acts[])(struct round *r) = {
	[FILTER_PASS] = passes,        [FILTER_REPLACE] = replaces,
	[FILTER_DROP] = drops,         [FILTER_REJECT] = rejects,
	[FILTER_REDIRECT] = redirects,
};

static bool ask(struct round *r)
{
	const char *to = r->j->to[0] ? r->j->to : r->address->to;
	struct filter_view v = { .hook = r->hook,
				 .message = r->j->message,
				 .from = r->address->from,
				 .to = to,
				 .topic = r->address->topic };
	unsigned int act = r->filter->judge(r->filter, &v, &r->verdict);
	bool may_go;

	r->verdict.reason[sizeof(r->verdict.reason) - 1] = '\0';
	r->verdict.to[sizeof(r->verdict.to) - 1] = '\0';
	if (act >= ARRAY_SIZE(acts))
		may_go = fails(r, "failed");
	else
		may_go = acts[act](r);
	message_unref(r->verdict.message);
	return may_go;
}

bool filters_pass(struct runtime *rt, enum filter_hook hook,
		  const struct address *a, struct judgement *j)
{
	for (struct filter *f = rt->filters; f; f = f->next) {
		struct round r = { .rt = rt,
				   .filter = f,
				   .hook = hook,
				   .address = a,
				   .j = j };

		if (!ask(&r))
			return false;
	}
	return true;
}

void runtime_add_filter(struct runtime *rt, struct filter *f)
{
	struct filter **at = &rt->filters;

	while (*at)
		at = &(*at)->next;
	f->next = NULL;
	*at = f;
}
