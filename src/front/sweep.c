/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a box made in a writable volume and must not have (serve/sweep.h).
 *
 * The front cannot look itself: it sees no directory of the host. A preparer
 * does, as the user whose box it is, when nothing is left of the box. That it
 * could not look is told like what it found, never left out.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "base/util.h"
#include "front/doc.h"
#include "front/front.h"

#define MAX_TOLD 64 /* in the box's warnings, of all its runs */

struct sweeping {
	struct box *box; /* a reference */
	void (*then)(struct box *b);
};

bool box_has_watches(const struct box *b)
{
	return b->watches && strcmp(b->watches, "[]") != 0;
}

static json_t *failure(const struct err *err)
{
	char text[sizeof(err->text) + 80];

	(void)snprintf(text, sizeof(text),
		       "violation: protected names in the volumes could not "
		       "be looked for: %s",
		       err->text);
	return json_pack("[o]", doc_string(text));
}

/* Nothing but strings; NULL if the answer is not one. */
static json_t *parse(const char *text, struct err *err)
{
	json_t *o = doc_parse(text, strlen(text), err);
	json_t *list = json_incref(json_object_get(o, "violations"));
	bool is_good = json_is_array(list);
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v) is_good = is_good && json_is_string(v);
	json_decref(o);
	if (is_good)
		return list;
	json_decref(list);
	if (!err->code)
		(void)err_set(err, EPROTO, "the answer is no list");
	return NULL;
}

/* Where the faces show what is to be known of a box. */
void box_warn(struct box *b, json_t *list)
{
	json_t *all = b->warnings ? json_loads(b->warnings, 0, NULL) : NULL;
	char *text;

	if (!all)
		all = json_array();
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_array_size(all) < MAX_TOLD)
			(void)json_array_append(all, json_array_get(list, i));
	text = doc_text(all);
	if (text) {
		free(b->warnings);
		b->warnings = text;
	}
	json_decref(all);
}

/* Without an end on the ledger it is a decision there. */
static void record_one(struct box *b, const char *line)
{
	json_t *o = json_pack("{s:s,s:s,s:s,s:s,s:s}", "run", b->run, "what",
			      "mount", "subject", b->name, "decision", "deny",
			      "reason", line);
	_cleanup_free_ char *text = doc_text(o);
	struct err err = { 0 };

	if (!text ||
	    orders_record(b->m->clerk, "decision", text, NULL, NULL, &err) < 0)
		say("box %.12s: not on the ledger: %s", b->id, line);
	json_decref(o);
}

static void tell(struct box *b, json_t *list)
{
	size_t i;
	json_t *v;

	free(take_ptr(b->violations));
	if (json_array_size(list) == 0)
		return;
	b->violations = doc_text(list);
	box_warn(b, list);
	json_array_foreach(list, i, v)
	{
		say("box %.12s: %s", b->id, json_string_value(v));
		events_denied(b, NULL, json_string_value(v));
		if (!b->is_recorded || !b->violations)
			record_one(b, json_string_value(v));
	}
	/* An end stores it anyway. */
	if (!b->is_ending)
		(void)notes_store(b);
}

static void was_swept(void *arg, const struct order_answer *a, int *fds, int n)
{
	struct sweeping *s = arg;
	struct box *b = s->box;
	struct err err = a->err;
	_cleanup_free_ char *text = NULL;
	json_t *list = NULL;

	if (!err.code && n != 1)
		(void)err_set(&err, EPROTO, "the answer is cut");
	if (!err.code)
		text = doc_read(fds[0], &err);
	if (text)
		list = parse(text, &err);
	if (!list)
		list = failure(&err);
	tell(b, list);
	json_decref(list);
	b->m->n_records--;
	s->then(b);
	box_unref(b);
	free(s);
}

static json_t *sweep_request(const struct box *b)
{
	json_t *o = json_object();

	if (doc_put(o, "sweep", json_loads(b->watches, 0, NULL)) &&
	    doc_put(o, "run", json_string(b->run)) &&
	    doc_put(o, "box", json_string(b->id)) &&
	    doc_put(o, "face", json_string(b->face)))
		return o;
	json_decref(o);
	return NULL;
}

static int ask(struct box *b, int who, bool is_late,
	       void (*then)(struct box *b), struct err *err)
{
	struct sweeping *s;
	json_t *request;
	int r;

	if (who < 0)
		return err_set(err, EPERM, "who made it is not known any more");
	s = malloc(sizeof(*s));
	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	*s = (struct sweeping){ box_ref(b), then };
	request = sweep_request(b);
	r = prepare_ask(b,
			&(struct prepare_want){ request, who, NULL, is_late },
			was_swept, s, err);
	json_decref(request);
	if (r < 0) {
		box_unref(b);
		free(s);
	}
	return r;
}

static void tell_failure(struct box *b, const struct err *err)
{
	json_t *list = failure(err);

	tell(b, list);
	json_decref(list);
}

void box_sweep(struct box *b, void (*then)(struct box *b))
{
	struct err err = { 0 };

	free(take_ptr(b->violations));
	/* Without a keeper we end too: the next front tells what is lost. */
	if (!b->is_unswept || !box_has_watches(b) ||
	    sessions_are_lost(b->m->sessions)) {
		then(b);
		return;
	}
	b->is_unswept = false;
	b->m->n_records++;
	if (ask(b, box_identity(b), false, then, &err) == 0)
		return;
	b->m->n_records--;
	tell_failure(b, &err);
	then(b);
}

static int digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The bytes that `who` spells, as a document; -errno. */
static int who_doc(const char *text, struct err *err)
{
	size_t n = text ? strlen(text) / 2 : 0;
	_cleanup_free_ char *bytes = malloc(n + 1);
	int fd;

	for (size_t i = 0; bytes && i < n; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			n = 0;
		else
			bytes[i] = (char)(high << 4 | low);
	}
	if (!bytes || n == 0)
		return err_set(err, ESRCH,
			       "the daemon ended before the box, and whose it "
			       "was is not known any more");
	fd = doc_seal(bytes, n);
	return fd < 0 ? err_errno(err, -fd, "write a document") : fd;
}

void box_sweep_late(struct box *b, void (*then)(struct box *b))
{
	_cleanup_fd_ int who = NO_FD;
	struct err err = { 0 };

	if (!box_has_watches(b)) {
		then(b);
		return;
	}
	b->m->n_records++;
	if (b->m->is_unclean)
		(void)err_set(&err, EBUSY,
			      "something of it may still be alive");
	else
		who = who_doc(b->who, &err);
	if (who >= 0 && ask(b, who, true, then, &err) == 0)
		return;
	b->m->n_records--;
	tell_failure(b, &err);
	then(b);
}

void box_record_violations(struct box *b)
{
	json_t *list = b->violations ? json_loads(b->violations, 0, NULL)
				     : NULL;
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v) record_one(b, json_string_value(v));
	json_decref(list);
}
