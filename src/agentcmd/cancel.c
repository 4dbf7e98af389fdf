/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon agent cancel: ends a run that waits for people, perhaps long after
 * its process.
 *
 * What it asked is withdrawn first, so that no answer can be used any more.
 * Then a checkpoint is written that is as after an interrupt: the turn that
 * waited has not happened. Whoever goes on from an earlier checkpoint finds
 * the question withdrawn, which is a no.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/checkpoint.h"
#include "agentcmd/agentcmd.h"
#include "agentcmd/session.h"
#include "base/util.h"
#include "box/approve.h"

#define MAX_DEPTH 64

static const char *text_of(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text ? text : "";
}

/* The ids of all approval records below, also those of inner turns. */
static void collect(const json_t *v, json_t *ids, int depth)
{
	const char *name;
	json_t *one;
	size_t i;

	if (depth > MAX_DEPTH)
		return;
	if (strcmp(text_of(v, "kind"), "approval") == 0 && *text_of(v, "id"))
		(void)json_object_set_new(ids, text_of(v, "id"), json_true());
	if (json_is_object(v)) {
		json_object_foreach((json_t *)v, name, one)
			collect(one, ids, depth + 1);
	} else {
		json_array_foreach((json_t *)v, i, one)
			collect(one, ids, depth + 1);
	}
}

/* What waits for people: the records' ids; NULL: nobody waits. */
static json_t *find_waiting(const json_t *doc)
{
	json_t *members = json_object_get(json_object_get(doc, "state"),
					  "members");
	json_t *ids = json_object();
	bool is_waiting = false;
	const char *name;
	json_t *m;

	json_object_foreach(members, name, m)
	{
		const json_t *pending = json_object_get(m, "pending");

		is_waiting |= json_is_object(pending);
		collect(pending, ids, 0);
	}
	if (is_waiting)
		return ids;
	json_decref(ids);
	return NULL;
}

/* As turn_undo() and forget() leave it. A new document, or NULL. */
static json_t *without_turn(const json_t *state)
{
	json_t *now = json_deep_copy(state);
	json_t *before = json_object_get(now, "before");
	const char *name;
	json_t *m;
	int bad = 0;

	if (before && !json_is_null(before))
		bad |= json_object_set(now, "own", before);
	bad |= json_object_set_new(now, "before", json_null());
	bad |= json_object_set_new(now, "termination", json_null());
	bad |= json_object_set_new(now, "run", json_null());
	json_object_foreach(json_object_get(now, "members"), name, m)
		bad |= json_object_set_new(m, "pending", json_null());
	if (!bad)
		return now;
	json_decref(now);
	return NULL;
}

/* An answer that was used before is not taken back, and that is said. */
static int withdraw_all(json_t *ids, const char *why, json_t *withdrawn,
			struct err *err)
{
	const char *id;
	json_t *one;

	json_object_foreach(ids, id, one)
	{
		int r = approve_withdraw_id(id, why, err);

		if (r == 0)
			(void)json_array_append_new(withdrawn, json_string(id));
		else if (r != -EALREADY)
			return r;
	}
	return 0;
}

static int write_end(struct checkpoints *store, const json_t *doc,
		     const char *reason, char id[CHECKPOINT_ID],
		     struct err *err)
{
	struct checkpoint p = { .run = text_of(doc, "run"),
				.parent = text_of(doc, "id"),
				.reason = reason,
				.about = json_object_get(doc, "about"),
				.state = without_turn(
					json_object_get(doc, "state")) };
	int r = p.state ? checkpoints_write(store, &p, id, err)
			: err_set(err, ENOMEM, "out of memory");

	json_decref(p.state);
	return r;
}

static void tell(const struct call *c, const json_t *doc, const char *id,
		 const json_t *withdrawn)
{
	json_t *one;
	size_t i;

	if (c->json) {
		json_t *o = json_pack("{s:s, s:s, s:s, s:O}", "run",
				      text_of(doc, "run"), "status",
				      "cancelled", "checkpoint", id,
				      "withdrawn", withdrawn);
		_cleanup_free_ char *text = json_dumps(o, JSON_COMPACT);

		printf("%s\n", text ? text : "");
		json_decref(o);
		return;
	}
	printf("%s cancelled", text_of(doc, "run"));
	json_array_foreach(withdrawn, i, one)
		printf("%s%s",
		       i ? ", " : "; withdrawn: ", json_string_value(one));
	printf("\n");
}

static int cancel(struct call *c, struct checkpoints *store, const json_t *doc,
		  struct err *err)
{
	const char *why = c->reason ? c->reason : "by hand";
	char id[CHECKPOINT_ID];
	char reason[300];
	json_t *ids = find_waiting(doc);
	json_t *withdrawn = json_array();
	int r;

	if (!ids) {
		say("the run waits for nobody: %.200s; one that goes on is "
		    "ended by an interrupt of its process",
		    text_of(doc, "reason"));
		json_decref(withdrawn);
		return EXIT_FAILED;
	}
	(void)snprintf(reason, sizeof(reason), "the run was cancelled: %.200s",
		       why);
	r = withdraw_all(ids, reason, withdrawn, err);
	(void)snprintf(reason, sizeof(reason), "Cancelled: %.200s", why);
	if (r == 0)
		r = write_end(store, doc, reason, id, err);
	if (r == 0)
		tell(c, doc, id, withdrawn);
	json_decref(ids);
	json_decref(withdrawn);
	return r;
}

/* Of a run that went on since only its last checkpoint can be cancelled. */
static int check_last(struct checkpoints *store, const json_t *doc,
		      struct err *err)
{
	json_t *last = NULL;
	int r = checkpoints_read(store, text_of(doc, "run"), &last, err);

	if (r == 0 && strcmp(text_of(last, "id"), text_of(doc, "id")) != 0)
		r = err_set(err, EINVAL,
			    "the run has gone on since; its last checkpoint is "
			    "%s",
			    text_of(last, "id"));
	json_decref(last);
	return r;
}

int run_cancel(struct call *c, struct err *err)
{
	struct checkpoints *store = NULL;
	json_t *doc = NULL;
	int r;

	if (c->reason && strlen(c->reason) > 200)
		return err_set(err, E2BIG, "a reason has at most 200 bytes");
	r = session_checkpoints(CHECKPOINTS_DIR, &store, err);
	if (r < 0)
		return r;
	r = checkpoints_read(store, c->operands[0], &doc, err);
	if (r == 0)
		r = check_last(store, doc, err);
	if (r == 0)
		r = cancel(c, store, doc, err);
	json_decref(doc);
	checkpoints_close(store);
	return r;
}
