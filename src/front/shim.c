/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two commands that mean more to us than to the box (docker-api.md 11).
 *
 * `timeout N program ...`: our own deadline stands behind that of the program
 * `timeout`: a second after N everything that it started is killed, and the
 * exit code is 124. Where the box has no such program, what stands behind it is
 * run directly, and we send TERM at N.
 *
 * `pkill -f PATTERN`: every program that was executed in this box, and whose
 * words match, is killed with all its processes; it ends when they have. Only
 * where nothing matches the box's own pkill is run.
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/util.h"
#include "front/doc.h"
#include "front/exec.h"
#include "ledger/redact.h"

#define GRACE_US    1000000
#define MAX_TIME_US (30ULL * 24 * 3600 * 1000000)
#define MAX_STEPS   1000000 /* of the matcher */

bool shim_parse_time(const char *text, uint64_t *ret_us)
{
	size_t len = strlen(text);
	char number[32];
	uint64_t unit = 1000;
	uint64_t milli;

	if (len == 0 || len >= sizeof(number))
		return false;
	memcpy(number, text, len + 1);
	switch (number[len - 1]) {
	case 'd':
		unit *= 24;
		/* fallthrough */
	case 'h':
		unit *= 60;
		/* fallthrough */
	case 'm':
		unit *= 60;
		/* fallthrough */
	case 's':
		number[len - 1] = '\0';
	}
	if (num_parse_milli(number, &milli) < 0 || milli == 0 ||
	    milli > MAX_TIME_US / unit)
		return false;
	*ret_us = milli * unit;
	return true;
}

/* ---- patterns: c . \c * ^ $, as in the simplest of grep ---- */

struct match {
	unsigned int steps;
};

static size_t atom_len(const char *p)
{
	return p[0] == '\\' && p[1] ? 2 : 1;
}

static bool atom_is(const char *p, char c)
{
	if (p[0] == '\\' && p[1])
		return p[1] == c;
	return p[0] == '.' || p[0] == c;
}

static bool match_here(struct match *m, const char *p, const char *t)
{
	while (m->steps++ < MAX_STEPS) {
		size_t n = atom_len(p);

		if (!*p)
			return true;
		if (p[0] == '$' && !p[1])
			return !*t;
		if (p[n] == '*') {
			do
				if (match_here(m, p + n + 1, t))
					return true;
			while (*t && atom_is(p, *t++));
			return false;
		}
		if (!*t || !atom_is(p, *t))
			return false;
		p += n;
		t++;
	}
	return false;
}

bool shim_match(const char *pattern, const char *text)
{
	struct match m = { 0 };

	if (strcmp(pattern, text) == 0 || strstr(text, pattern))
		return true;
	if (*pattern == '^')
		return match_here(&m, pattern + 1, text);
	do
		if (match_here(&m, pattern, text))
			return true;
	while (*text++);
	return false;
}

/* ---- looking ---- */

void shim_look(struct exec *e)
{
	const struct strv *c = &e->command;

	if (c->n >= 3 && strcmp(c->v[0], "timeout") == 0 &&
	    shim_parse_time(c->v[1], &e->shim_us))
		e->shim = SHIM_TIMEOUT;
	else if (c->n == 3 && strcmp(c->v[0], "pkill") == 0 &&
		 strcmp(c->v[1], "-f") == 0 && c->v[2][0])
		e->shim = SHIM_PKILL;
}

static bool is_match(const struct exec *killer, const struct exec *e)
{
	struct buf words;
	bool is_it;

	if (e == killer || e->shim == SHIM_PKILL)
		return false;
	buf_init(&words, 1 << 20);
	for (size_t i = 0; i < e->command.n; i++) {
		if (i)
			(void)buf_puts(&words, " ");
		(void)buf_puts(&words, e->command.v[i]);
	}
	is_it = words.data && shim_match(killer->command.v[2], words.data);
	buf_done(&words);
	return is_it;
}

/* ---- pkill ---- */

static void note_it(struct exec *e)
{
	json_t *o = json_object();
	struct err unused;
	struct buf subject;
	char *text;

	buf_init(&subject, 64 << 10);
	(void)buf_puts(&subject, "pkill -f ");
	(void)redact(&subject, e->command.v[2], strnlen(e->command.v[2], 4096));
	(void)json_object_set_new(o, "run", json_string(e->run));
	(void)json_object_set_new(o, "what", json_string("command"));
	(void)json_object_set_new(o, "subject",
				  doc_string(subject.data ? subject.data
							  : "pkill"));
	(void)json_object_set_new(o, "decision", json_string("allow"));
	(void)json_object_set_new(
		o, "reason",
		json_sprintf("done by the daemon: %u programs are ended",
			     e->n_killed));
	text = doc_text(o);
	(void)orders_record(e->m->clerk, "decision", text, NULL, NULL, &unused);
	free(text);
	json_decref(o);
	buf_done(&subject);
}

static void pkill_over(struct exec *e, int exit_code)
{
	e->state = EXEC_ENDING;
	if (!e->started_ns)
		e->started_ns = day_ns();
	e->is_drained = e->is_end_sent = true;
	e->exit_code = exit_code;
	e->cause = "exited";
	exec_told(e);
}

static bool has_victims(const struct exec *killer)
{
	for (const struct exec *e = killer->box->execs; e; e = e->next)
		if (e->is_killed && e->state != EXEC_ENDED &&
		    is_match(killer, e))
			return true;
	return false;
}

void shim_victim_ended(struct exec *victim)
{
	struct exec *next;

	if (!victim->box->has_pkill)
		return;
	victim->box->has_pkill = false;
	for (struct exec *e = victim->box->execs; e; e = next) {
		next = e->next;
		if (e->shim != SHIM_PKILL || e->state != EXEC_STARTING ||
		    e->n_killed == 0)
			continue;
		if (has_victims(e))
			victim->box->has_pkill = true;
		else
			pkill_over(e, 0);
	}
}

static bool pkill_start(struct exec *e)
{
	for (struct exec *v = e->box->execs; v; v = v->next)
		if (v->state == EXEC_RUNNING && is_match(e, v)) {
			exec_kill_group(v);
			e->n_killed++;
		}
	if (e->n_killed == 0 && !e->has_no_program)
		return false;
	e->started_ns = day_ns();
	call_end(take_ptr(e->start_call), NULL);
	e->box->has_pkill = e->box->has_pkill || e->n_killed > 0;
	if (e->n_killed == 0)
		pkill_over(e, 1);
	else
		note_it(e);
	return true;
}

/* ---- timeout ---- */

static void too_late(void *arg)
{
	struct exec *e = arg;

	if (e->state == EXEC_RUNNING)
		e->is_timed_out = true;
	exec_kill_group(e); /* also what is left of one that has ended */
}

static void at_time(void *arg)
{
	struct exec *e = arg;

	if (e->is_replaced && e->state == EXEC_RUNNING && e->box->session &&
	    !e->box->is_closing) {
		e->is_timed_out = true;
		(void)session_signal(e->box->session, e->number, SIGTERM);
	}
	/* What has ended before its time may leave something behind. */
	if (e->state == EXEC_RUNNING ||
	    day_ns() - e->finished_ns < GRACE_US * 1000LL / 4)
		alarm_set(e->m, &e->shim_alarm, GRACE_US, too_late, e);
}

bool shim_start(struct exec *e)
{
	if (e->shim == SHIM_PKILL)
		return pkill_start(e);
	alarm_set(e->m, &e->shim_alarm, e->shim_us, at_time, e);
	return false;
}

static void prepared_again(void *arg, struct exec_made *made,
			   const struct err *err)
{
	struct exec *e = arg;

	if (err) {
		e->outcome.exec_errno = made->no_program ? ENOENT : 0;
		exec_begin_failed(e, err);
		return;
	}
	fd_close(&e->work_fd);
	free(e->start);
	e->work_fd = take_fd(&made->work);
	e->start = take_ptr(made->start);
	e->keep_output = made->keep_output;
	exec_begin(e);
}

/* The run of `timeout` itself is over: it was not there. */
static void end_first(struct exec *e)
{
	struct end_facts facts = { .run = e->run,
				   .cause = "not_found",
				   .status = "error",
				   .message = "the box has no 'timeout'; what "
					      "it was to run is run directly",
				   .box = e->box,
				   .exit_code = 127 };

	if (e->is_recorded)
		runs_end(e->m, e->slot, &facts);
	else
		runs_drop(e->m, e->slot);
	e->slot = -1;
	e->is_recorded = false;
	id_make(e->run, 32);
	exec_io_close(e);
}

bool shim_replace(struct exec *e)
{
	struct err err = { 0 };
	int r;

	if (e->shim != SHIM_TIMEOUT || e->is_replaced)
		return false;
	e->is_replaced = true;
	e->shim_skip = 2;
	if (e->state == EXEC_CREATED)
		return exec_prepare_again(e, &err) == 0;
	end_first(e);
	r = exec_prepare(e, prepared_again, e, &err);
	if (r < 0)
		exec_begin_failed(e, &err);
	return true;
}
