/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How programs ended that are not in a table any more.
 *
 * Those of a box that is still there and which an earlier front ran are the
 * box's (exec-notes.c). Those whose record is gone with their box can be asked
 * for five minutes after their end, by whose they were. Of each user only so
 * many of these are kept, and so many bytes; the oldest make place.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "front/doc.h"
#include "front/exec.h"

#define KEEP_US   300000000LL
#define MAX_COUNT 256
#define MAX_BYTES (256U << 10)

void past_free(struct past *p)
{
	strv_done(&p->command);
	free(p->user);
	free(p);
}

static void past_drop(struct past **at)
{
	struct past *p = *at;

	*at = p->next;
	past_free(p);
}

/* Those whose time is over, and of this user what is too much beside `size`. */
static void make_place(struct manager *m, uid_t owner, size_t size)
{
	size_t count = 1;
	struct past **at = &m->past;

	while (*at) {
		bool is_same = (*at)->owner == owner;

		if (is_same) {
			count++;
			size += (*at)->size;
		}
		if ((*at)->until_us <= clock_us() ||
		    (is_same && (count > MAX_COUNT || size > MAX_BYTES)))
			past_drop(at);
		else
			at = &(*at)->next;
	}
}

static size_t size_of(const struct strv *command, const char *user)
{
	size_t n = sizeof(struct past) + (user ? strlen(user) : 0);

	for (size_t i = 0; i < command->n; i++)
		n += strlen(command->v[i]) + 1 + sizeof(char *);
	return n;
}

/* Its texts are its own from now on. */
static void set_texts(struct past *p)
{
	p->size = size_of(&p->command, p->user);
	p->view.id = p->id;
	p->view.run = p->run;
	p->view.box = p->box;
	p->view.command = (const char *const *)p->command.v;
	p->view.user = p->user ? p->user : "";
}

static struct past *past_new(const struct exec *e)
{
	struct past *p = calloc(1, sizeof(*p));
	int r = p ? 0 : -1;

	for (size_t i = 0; r == 0 && i < e->command.n; i++)
		r = strv_add(&p->command, e->command.v[i]);
	if (r == 0 && e->user && !(p->user = strdup(e->user)))
		r = -1;
	if (r < 0 && p)
		past_free(p);
	if (r < 0)
		return NULL;
	p->owner = e->owner;
	p->until_us = (e->ended_us ? e->ended_us : e->made_us) + KEEP_US;
	memcpy(p->id, e->id, sizeof(p->id));
	memcpy(p->run, e->run, sizeof(p->run));
	(void)snprintf(p->box, sizeof(p->box), "%s", e->box->id);
	exec_look(e, &p->view);
	set_texts(p);
	return p;
}

static int copy_command(struct past *p, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *v = json_string_value(json_array_get(list, i));

		if (!v || strv_add(&p->command, v) < 0)
			return -1;
	}
	return json_is_array(list) ? 0 : -1;
}

struct past *past_parse(const struct box *b, const json_t *o)
{
	const char *id = doc_str(o, "id");
	const char *run = doc_str(o, "run");
	const char *user = doc_str(o, "user");
	int64_t code = doc_int(o, "exit_code", -1);
	struct past *p = calloc(1, sizeof(*p));

	if (!p || !id_check(id, 64) || !id_check(run, 32) || code < 0 ||
	    code > 255 || copy_command(p, json_object_get(o, "command")) < 0 ||
	    (user && !(p->user = strdup(user)))) {
		if (p)
			past_free(p);
		return NULL;
	}
	p->owner = b->owner;
	memcpy(p->id, id, sizeof(p->id));
	memcpy(p->run, run, sizeof(p->run));
	(void)snprintf(p->box, sizeof(p->box), "%s", b->id);
	p->view = (struct exec_view){
		.is_started = true,
		.exit_code = (int)code,
		.cause = cause_name_find(doc_str(o, "cause")),
		.tty = doc_bool(o, "tty"),
		.stdin_ = doc_bool(o, "stdin"),
		.stdout_ = doc_bool(o, "stdout"),
		.stderr_ = doc_bool(o, "stderr"),
		.started_ns = doc_int(o, "started_ns", 0),
		.finished_ns = doc_int(o, "finished_ns", 0),
		.out_bytes = (uint64_t)doc_int(o, "out_bytes", 0),
		.err_bytes = (uint64_t)doc_int(o, "err_bytes", 0),
		.dropped_bytes = (uint64_t)doc_int(o, "dropped_bytes", 0),
	};
	set_texts(p);
	return p;
}

static void add(struct manager *m, struct past *p)
{
	p->next = m->past;
	m->past = p;
}

void exec_past_add(const struct exec *e)
{
	size_t size = size_of(&e->command, e->user);
	struct past *p;

	if (e->state != EXEC_ENDED || size > MAX_BYTES)
		return;
	make_place(e->m, e->owner, size);
	p = past_new(e);
	if (p)
		add(e->m, p);
}

/* The list turned round: its oldest is to be added first. */
static struct past *oldest_first(struct past *list)
{
	struct past *turned = NULL;

	while (list) {
		struct past *next = list->next;

		list->next = turned;
		turned = list;
		list = next;
	}
	return turned;
}

void exec_past_leave(struct box *b)
{
	struct past *list = oldest_first(take_ptr(b->past));

	while (list) {
		struct past *p = list;
		int64_t age_us = (day_ns() - p->view.finished_ns) / 1000;

		list = p->next;
		if (age_us < 0 || age_us >= KEEP_US || p->size > MAX_BYTES) {
			past_free(p);
			continue;
		}
		p->until_us = clock_us() + KEEP_US - age_us;
		make_place(b->m, p->owner, p->size);
		add(b->m, p);
	}
}

static const struct past *find(const struct past *list, const char *id)
{
	while (list && strcmp(list->id, id) != 0)
		list = list->next;
	return list;
}

bool exec_look_past(struct manager *m, const struct peer *peer, const char *id,
		    struct exec_view *ret)
{
	const struct past *p = find(m->past, id);

	if (p && p->until_us <= clock_us())
		p = NULL;
	for (const struct box *b = m->boxes; b && !p; b = b->next)
		p = find(b->past, id);
	if (!p || (peer->uid != 0 && peer->uid != p->owner))
		return false;
	*ret = p->view;
	return true;
}

void exec_past_free(struct manager *m)
{
	while (m->past)
		past_drop(&m->past);
}
