/* SPDX-License-Identifier: Apache-2.0 */

/* An answer, with the rule that goes with "always". */

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "desk/approvals.h"
#include "desk/rules.h"
#include "base/visible.h"

struct always {
	struct store *store;
	bool is_written;
};

/* Made while the store's write lock is held: if this fails, nothing holds. */
static int write_rule(const struct entry *e, void *arg, struct err *err)
{
	struct always *always = arg;
	struct request req;
	struct buf what;
	char when[32];
	struct rule rule;
	int r = approvals_request(e, &req, err);

	if (r < 0)
		return r;
	buf_init(&what, SHOW_MAX);
	request_summary(&req, &what);
	approvals_time(e->answered, when);
	rule = (struct rule){
		.id = (char *)e->id,
		.content = (char *)e->content,
		.kind = (char *)request_kind_name(req.kind),
		.what = what.data,
		.rule = req.rule,
		.by = e->by,
		.when = when,
		.reason = e->reason,
	};
	r = what.error ? err_set(err, E2BIG, "the request is too long")
		       : rules_add(&always->store->state, &rule, err);
	always->is_written = r == 0;
	buf_done(&what);
	request_done(&req);
	return r;
}

static int summarise(struct store *s, const char *id, struct buf *what,
		     struct err *err)
{
	struct entry e = { 0 };
	struct request req;
	int r = store_get(s, id, &e, err);

	if (r < 0)
		return r;
	r = approvals_request(&e, &req, err);
	entry_done(&e);
	if (r < 0)
		return r;
	request_summary(&req, what);
	request_done(&req);
	return what->error ? err_set(err, E2BIG, "the request is too long") : 0;
}

int approvals_answer(struct store *s, const char *id,
		     const struct store_answer *a, struct entry *ret,
		     struct err *err)
{
	struct always always = { .store = s };
	struct store_answer whole = *a;
	struct err ignored = { 0 };
	struct buf what;
	int r;

	*ret = (struct entry){ 0 };
	buf_init(&what, SHOW_MAX);
	r = summarise(s, id, &what, err);
	if (r == 0) {
		whole.what = what.data;
		if (a->is_allowed && a->scope == SCOPE_ALWAYS) {
			whole.also = write_rule;
			whole.arg = &always;
		}
		r = store_answer(s, id, &whole, ret, err);
	}
	if (r < 0 && always.is_written)
		(void)rules_remove(&s->state, id, &ignored);
	buf_done(&what);
	return r;
}
