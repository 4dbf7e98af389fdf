/* SPDX-License-Identifier: Apache-2.0 */

/* Making, finding and listing boxes. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/util.h"
#include "box/result.h"
#include "front/doc.h"
#include "front/exec.h"
#include "front/front.h"
#include "front/gate.h"

struct box *box_new(struct manager *m)
{
	struct box *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->m = m;
	b->refs = 1;
	b->box_fd = b->work_fd = b->peer_fd = b->asker_fd = NO_FD;
	b->tty_fd = NO_FD;
	b->slot = -1;
	capture_init(&b->kept[0], FRONT_KEPT);
	capture_init(&b->kept[1], FRONT_KEPT);
	b->touched_us = clock_us();
	return b;
}

static void close_all(struct box *b)
{
	fd_close(&b->box_fd);
	fd_close(&b->work_fd);
	fd_close(&b->peer_fd);
	fd_close(&b->tty_fd);
	spout_close(&b->out);
	spout_close(&b->err);
	inlet_close(&b->in);
	alarm_clear(&b->room_alarm);
	alarm_clear(&b->close_alarm);
	alarm_clear(&b->drain_alarm);
	alarm_clear(&b->hold_alarm);
	alarm_clear(&b->stop_alarm);
	alarm_clear(&b->life_alarm);
	alarm_clear(&b->idle_alarm);
}

struct box *box_ref(struct box *b)
{
	b->refs++;
	return b;
}

void box_unref(struct box *b)
{
	char *const texts[] = { b->face,     b->settings,   b->extra,
				b->command,  b->spec,       b->warnings,
				b->clamped,  b->start,      b->image,
				b->error,    b->code,       b->input,
				b->watches,  b->violations, b->who,
				b->programs, b->gate_again, b->gate_used };

	if (--b->refs > 0)
		return;
	box_let_go(b);
	gate_drop(b);
	cordon_result_free(b->net);
	capture_done(&b->kept[0]);
	capture_done(&b->kept[1]);
	close_all(b);
	execs_free(b);
	log_free(b->log);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	free((void *)b->exec_ids);
	free(b);
}

void box_add(struct box *b)
{
	struct manager *m = b->m;

	b->next = m->boxes;
	m->boxes = b;
	m->n_boxes++;
}

void box_unlink(struct box *b)
{
	struct box **p = &b->m->boxes;

	while (*p && *p != b)
		p = &(*p)->next;
	if (*p) {
		*p = b->next;
		b->m->n_boxes--;
	}
}

void box_touch(struct box *b)
{
	b->touched_us = clock_us();
}

bool peer_may(const struct peer *peer, const struct box *b)
{
	return peer->uid == 0 || peer->uid == b->owner;
}

struct box *box_by_name(struct manager *m, uid_t owner, const char *name)
{
	for (struct box *b = m->boxes; b; b = b->next)
		if (b->owner == owner && strcmp(b->name, name) == 0)
			return b;
	return NULL;
}

const char *box_name_holder(struct manager *m, uid_t owner, const char *name)
{
	const struct box *b = box_by_name(m, owner, name);

	return b ? b->id : NULL;
}

/* ---- making ---- */

static int copy(char **to, const char *text)
{
	if (!text)
		return 0;
	*to = strdup(text);
	return *to ? 0 : -ENOMEM;
}

static char *dump_words(const char *const *v)
{
	json_t *list = json_array();
	char *text;

	for (size_t i = 0; v[i]; i++)
		if (json_array_append_new(list, json_string(v[i])) < 0) {
			/* jansson takes only UTF-8 */
			json_decref(list);
			return NULL;
		}
	text = doc_text(list);
	json_decref(list);
	return text;
}

static void copy_flags(struct box *b, const struct box_want *w)
{
	b->has_no_main = w->has_no_main;
	b->clamp = w->clamp;
	b->tty = w->tty;
	b->open_stdin = w->open_stdin;
	b->stdin_once = w->stdin_once;
	b->auto_remove = w->auto_remove;
	b->kill_exec_rest = w->kill_exec_rest;
	b->kill_on_disconnect = w->kill_on_disconnect;
	b->shims = w->shims;
	b->stop_signal = w->stop_signal; /* 0: see take_answer() */
	b->stop_timeout_s = w->stop_timeout_s < 0 ? 10 : w->stop_timeout_s;
	b->idle_us = w->idle_us;
	b->life_us = w->life_us;
	b->exec_timeout_us = w->exec_timeout_us;
	b->exec_max_output = w->exec_max_output;
	b->log_max = w->log_max ? w->log_max : 64 << 20;
}

static int copy_want(struct box *b, const struct peer *peer,
		     const struct box_want *w, struct err *err)
{
	copy_flags(b, w);
	b->owner = peer->uid;
	b->created_ns = day_ns();
	b->shelf = ++b->m->next_shelf;
	id_make(b->id, 64);
	id_make(b->run, 32);
	if (copy(&b->face, w->face ? w->face : "cordon") < 0 ||
	    copy(&b->settings, w->settings ? w->settings : "{}") < 0 ||
	    copy(&b->extra, w->extra) < 0 || copy(&b->code, w->code) < 0 ||
	    copy(&b->input, w->input) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (w->command && !(b->command = dump_words(w->command)))
		return err_set(err, MGR_INVALID,
			       "the command is not valid UTF-8");
	if (peer->fd >= 0) {
		b->peer_fd = fcntl(peer->fd, F_DUPFD_CLOEXEC, 3);
		if (b->peer_fd < 0)
			return err_errno(err, errno, "keep a connection");
	}
	return 0;
}

static int set_name(struct box *b, const char *name, struct err *err)
{
	struct box *other;

	if (name && *name == '/')
		name++;
	if (!name || !*name) {
		do
			name_make(b->name, sizeof(b->name));
		while (box_by_name(b->m, b->owner, b->name));
		return 0;
	}
	if (!name_check(name))
		return err_set(err, MGR_INVALID,
			       "name '%.140s' is not [a-zA-Z0-9]"
			       "[a-zA-Z0-9_.-]+",
			       name);
	other = box_by_name(b->m, b->owner, name);
	if (other)
		return err_set(err, MGR_NAME_TAKEN,
			       "name '%s' is taken by box %s", name, other->id);
	(void)snprintf(b->name, sizeof(b->name), "%s", name);
	return 0;
}

static int check_limits(struct manager *m, const struct peer *peer,
			struct err *err)
{
	size_t n = 0;

	for (const struct box *b = m->boxes; b; b = b->next)
		n += b->owner == peer->uid;
	if (m->is_draining)
		return err_set(err, MGR_BUSY, "the daemon is stopping");
	if (m->n_boxes >= FRONT_MAX_BOXES)
		return err_set(err, MGR_BUSY,
			       "%d boxes are known, which is the limit; "
			       "remove some",
			       FRONT_MAX_BOXES);
	if (n >= FRONT_MAX_PEER)
		return err_set(err, MGR_BUSY,
			       "%d boxes of one user are known, which is the "
			       "limit; remove some",
			       FRONT_MAX_PEER);
	return 0;
}

static void deliver_made(struct call *c)
{
	bool is_bad = c->err.code;

	c->fn.made(c->arg, is_bad ? NULL : c->box, is_bad ? &c->err : NULL);
}

/* Built ahead where there is room: a start then only sends the program. */
static void build_ahead(struct box *b)
{
	struct err err = { 0 };

	/* What is wrong with it is found again, and told, at the start. */
	if (!b->m->queue && room_check_kept(b, &err) == 0 && room_take(b))
		(void)box_open_wall(b, &err);
}

static void was_made(void *arg, const struct err *err)
{
	struct box *b = arg;
	struct call *c = take_ptr(b->create_call);
	struct err drain = { 0 };

	b->is_preparing = false;
	if (!err && box_hold(b, &drain) < 0)
		err = &drain;
	if (!err && b->m->is_draining) {
		(void)err_set(&drain, MGR_BUSY, "the daemon is stopping");
		err = &drain;
	}
	if (err) {
		box_unlink(b);
		b->state = BOX_GONE;
		call_end(c, err);
		box_unref(b); /* of the list */
		return;
	}
	b->is_made = true;
	(void)notes_store(b);
	events_box(b, "create", NULL, NULL);
	events_clamped(b);
	build_ahead(b);
	c->box = box_ref(b);
	call_end(c, NULL);
}

struct call *box_create(struct manager *m, const struct peer *peer,
			const struct box_want *want, box_made_fn *done,
			void *arg)
{
	struct call *c = call_new(m, arg);
	struct box *b = c ? box_new(m) : NULL;
	struct err err = { 0 };

	if (!b) {
		free(c);
		return NULL;
	}
	c->fn.made = done;
	c->deliver = deliver_made;
	if (check_limits(m, peer, &err) < 0 ||
	    copy_want(b, peer, want, &err) < 0 || box_hold(b, &err) < 0 ||
	    set_name(b, want->name, &err) < 0) {
		call_end(c, &err);
		box_unref(b);
		return c;
	}
	/* From here on its name is taken. */
	box_add(b);
	b->create_call = c;
	b->is_preparing = true;
	if (box_prepare(b, was_made, b, &err) < 0)
		was_made(b, &err);
	return c;
}

/* ---- finding ---- */

static bool has_prefix(const char *id, const char *text, size_t len)
{
	return len <= 64 && strncmp(id, text, len) == 0;
}

static struct box *find_prefix(struct manager *m, const struct peer *peer,
			       const char *text, struct err *err)
{
	size_t len = strlen(text);
	struct box *found = NULL;

	for (struct box *b = m->boxes; b && len > 0; b = b->next) {
		if (!b->is_made || !peer_may(peer, b) ||
		    !has_prefix(b->id, text, len))
			continue;
		if (found) {
			(void)err_set(err, MGR_AMBIGUOUS,
				      "'%.64s' is the beginning of more than "
				      "one id",
				      text);
			return NULL;
		}
		found = b;
	}
	return found;
}

/* uid 0 sees all names; its own come first. */
static struct box *find_name(struct manager *m, const struct peer *peer,
			     const char *text, struct err *err)
{
	struct box *found = NULL;
	struct box *b = box_by_name(m, peer->uid, text);

	if (b && b->is_made)
		return b;
	if (peer->uid != 0)
		return NULL;
	for (b = m->boxes; b; b = b->next) {
		if (!b->is_made || strcmp(b->name, text) != 0)
			continue;
		/* Which of them was meant is not ours to guess. */
		if (found) {
			(void)err_set(err, MGR_AMBIGUOUS,
				      "more than one user has a box '%.140s'; "
				      "give its id",
				      text);
			return NULL;
		}
		found = b;
	}
	return found;
}

struct box *box_find(struct manager *m, const struct peer *peer,
		     const char *text, struct err *err)
{
	struct err none = { 0 };
	struct box *b;

	if (*text == '/')
		text++;
	b = strlen(text) == 64 ? find_prefix(m, peer, text, &none) : NULL;
	if (!b)
		b = find_name(m, peer, text, &none);
	if (!b && !none.code)
		b = find_prefix(m, peer, text, &none);
	if (b) {
		b->asker_fd = peer->fd;
		return b;
	}
	if (none.code)
		*err = none;
	else
		(void)err_set(err, MGR_NOT_FOUND, "no box '%.140s'", text);
	return NULL;
}

size_t box_list(struct manager *m, const struct peer *peer, struct box ***ret)
{
	struct box **v = calloc(m->n_boxes + 1, sizeof(struct box *));
	size_t n = 0;

	for (struct box *b = m->boxes; v && b; b = b->next)
		if (b->is_made && peer_may(peer, b))
			v[n++] = b;
	*ret = v;
	return n;
}

static const char *exec_id(const struct exec *e)
{
	return e->id;
}

size_t box_execs(const struct box *b, const char *const **ret)
{
	struct box *w = (struct box *)b;
	size_t n = 0;

	free((void *)w->exec_ids);
	w->exec_ids = calloc(b->n_execs + 1, sizeof(*w->exec_ids));
	for (struct exec *e = b->execs; w->exec_ids && e; e = e->next)
		w->exec_ids[n++] = exec_id(e);
	*ret = w->exec_ids;
	return n;
}

void box_look(const struct box *b, struct box_view *ret)
{
	*ret = (struct box_view){
		.id = b->id,
		.run = b->run,
		.name = b->name,
		.state = b->state,
		.owner = b->owner,
		.face = b->face,
		.created_ns = b->created_ns,
		.started_ns = b->started_ns,
		.finished_ns = b->finished_ns,
		.spec = b->spec ? b->spec : "{}",
		.warnings = b->warnings ? b->warnings : "[]",
		.clamped = b->clamped ? b->clamped : "[]",
		.net = b->net,
		.extra = b->extra,
		.settings = b->settings,
		.exit_code = b->exit_code,
		.oom_killed = b->oom_killed,
		.cause = b->cause,
		.error = b->error,
		.pid = b->state == BOX_RUNNING || b->state == BOX_PAUSED ? 2
									 : 0,
		.restarts = b->restarts,
		.tty = b->tty,
		.open_stdin = b->open_stdin,
		.stdin_once = b->stdin_once,
		.auto_remove = b->auto_remove,
		.stop_signal = b->stop_signal,
		.stop_timeout_s = b->stop_timeout_s,
		.n_execs = b->n_execs,
	};
}

const struct wire_outcome *box_outcome(const struct box *b)
{
	return b->state == BOX_EXITED && b->has_outcome ? &b->outcome : NULL;
}

int box_rename(struct box *b, const char *name, struct err *err)
{
	char old[sizeof(b->name)];

	if (*name == '/')
		name++;
	if (!*name)
		return err_set(err, MGR_INVALID, "a name is missing");
	if (b->state == BOX_GONE || b->is_removing)
		return err_set(err, MGR_REMOVING, "it is being removed");
	memcpy(old, b->name, sizeof(old));
	if (set_name(b, name, err) < 0)
		return -err->code;
	(void)notes_store(b);
	events_box(b, "rename", "oldName", old);
	return 0;
}

int box_resize(struct box *b, unsigned int rows, unsigned int cols,
	       struct err *err)
{
	if (!b->is_starting && b->state != BOX_RUNNING &&
	    b->state != BOX_PAUSED && b->state != BOX_CREATED)
		return err_set(err, MGR_NOT_RUNNING, "it is not running");
	if (rows == 0 || cols == 0)
		return 0;
	b->rows = rows;
	b->cols = cols;
	if (b->tty_fd >= 0)
		tty_resize(b->tty_fd, rows, cols);
	return 0;
}
