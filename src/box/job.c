/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One run, from the client's side: how it is begun and looked after. Its
 * streams are in job-streams.c, its end is in job-end.c.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/job-parts.h"
#include "box/message.h"
#include "box/policy-load.h"
#include "box/spec.h"

bool job_is(const struct cordon_job *j, uint32_t number)
{
	return j->number == number;
}

struct cordon_job *job_next(const struct cordon_job *j)
{
	return j->next;
}

const struct cordon_spec *job_spec(const struct cordon_job *j)
{
	return j->spec;
}

const struct cordon_result *job_result(const struct cordon_job *j)
{
	return j->result;
}

static int get_fd(const struct cordon_job *j)
{
	return j->epoll;
}

void job_take(struct cordon_job *j, const struct wire_msg *msg, int *fds,
	      int n_fds)
{
	static const struct wire_outcome lost = { .end = WIRE_BY_LOSS };
	const struct wire_head next = { WIRE_NEXT, j->number };
	const uint64_t one = 1;

	if (j->has_ended)
		return;
	if (!msg) {
		if (!j->is_over)
			job_close_run(j, &lost, NO_FD);
		j->has_ended = true;
	} else if (msg->type == WIRE_STARTED) {
		if (n_fds > 0)
			job_take_tty(j, &fds[0]);
		if (j->events.started)
			j->events.started(j->arg, j->spec->tty ? j->out : -1);
	} else if (msg->type == WIRE_BLOCK) {
		job_drain(j);
		job_append_end(j, job_add_run(j, &msg->outcome), "\n");
		(void)io_send(j->handle->sock, &next, sizeof(next), NULL, 0);
	} else if (msg->type == WIRE_OVER || msg->type == WIRE_ENDED) {
		if (!j->is_over)
			job_close_run(j, &msg->outcome,
				      n_fds > 0 ? fds[0] : NO_FD);
		j->has_ended = msg->type == WIRE_ENDED;
	}
	(void)!write(j->event, &one, sizeof(one));
}

/* Whether nobody did before. */
static bool cancel_first(struct cordon_job *j, const char *reason)
{
	const struct wire_head head = { WIRE_CANCEL, j->number };

	if (atomic_flag_test_and_set(&j->cancel_asked))
		return false;
	atomic_store(&j->cancel_reason, strdup(reason ? reason : "cancelled"));
	(void)io_send(j->handle->sock, &head, sizeof(head), NULL, 0);
	return true;
}

static void cancel(struct cordon_job *j, const char *reason)
{
	(void)cancel_first(j, reason);
}

static void hear_gate(struct cordon_job *j)
{
	const struct err *missing;

	egress_step(&j->egress);
	missing = egress_missing(&j->egress);
	if (missing && cancel_first(j, missing->text))
		j->is_gateless = true;
}

static int step(struct cordon_job *j)
{
	struct epoll_event ev[8];
	uint64_t count;
	int n;

	if (j->has_ended)
		return 1;
	n = epoll_wait(j->epoll, ev, ARRAY_SIZE(ev), 0);
	for (int i = 0; i < n && !j->has_ended; i++) {
		switch (ev[i].data.u32) {
		case TO_SOCK:
			handle_pump(j->handle);
			break;
		case TO_EVENT:
			(void)!read(j->event, &count, sizeof(count));
			break;
		case TO_OUT:
		case TO_ERR:
			(void)job_read(j, ev[i].data.u32 == TO_OUT ? 1 : 2);
			break;
		case TO_IN:
			job_feed(j);
			break;
		case TO_GATE:
			hear_gate(j);
			break;
		default:
			break;
		}
	}
	return j->has_ended;
}

/* start */

static int add_fd(struct cordon_job *j, int fd, uint32_t events, uint32_t what,
		  struct err *err)
{
	struct epoll_event ev = { .events = events, .data.u32 = what };

	if (epoll_ctl(j->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_errno(err, errno, "watch a run");
	return 0;
}

static int watch_all(struct cordon_job *j, struct err *err)
{
	j->epoll = epoll_create1(EPOLL_CLOEXEC);
	j->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (j->epoll < 0 || j->event < 0)
		return err_errno(err, errno, "watch a run");
	if (add_fd(j, j->handle->sock, EPOLLIN, TO_SOCK, err) < 0 ||
	    add_fd(j, j->event, EPOLLIN, TO_EVENT, err) < 0 ||
	    add_fd(j, j->out, EPOLLIN, TO_OUT, err) < 0 ||
	    add_fd(j, j->err, EPOLLIN, TO_ERR, err) < 0)
		return -err->code;
	if (egress_fd(&j->egress) >= 0 &&
	    add_fd(j, egress_fd(&j->egress), EPOLLIN, TO_GATE, err) < 0)
		return -err->code;
	if (j->in >= 0 && j->spec->has_input)
		return add_fd(j, j->in, EPOLLOUT, TO_IN, err);
	return 0;
}

static int new_result(struct cordon_job *j, struct err *err)
{
	const struct cordon_spec *s = j->spec;
	size_t n = MAX(s->n_blocks, 1);
	struct cordon_result *r = calloc(1, sizeof(*r));

	if (!r || !(r->runs = calloc(n, sizeof(*r->runs)))) {
		free(r);
		return err_set(err, ENOMEM, "out of memory");
	}
	j->result = r;
	result_new_id(r);
	r->has_output = s->n_blocks > 0;
	result_take_limits(r, s);
	r->name = s->name ? strdup(s->name) : NULL;
	for (size_t i = 0; i < s->labels.n; i++)
		(void)strv_add(&r->labels, s->labels.v[i]);
	return 0;
}

static int send_run(struct cordon_job *j, struct err *err)
{
	const struct wire_head head = { WIRE_RUN, j->number };
	int fds[6] = { NO_FD, NO_FD, NO_FD, NO_FD, NO_FD, NO_FD };
	int n = j->egress.is_open ? 6 : 5;
	int r = job_open_streams(j, fds + 2, err);

	if (r == 0)
		r = watch_all(j, err);
	fds[0] = j->prep.box;
	fds[1] = j->prep.work;
	fds[5] = egress_take_box(&j->egress);
	if (r == 0)
		r = io_send(j->handle->sock, &head, sizeof(head), fds, n);
	if (r == -EPIPE || r == -ECONNRESET) {
		j->handle->is_lost = true;
		r = 0;
	} else if (r < 0 && !err->code) {
		(void)err_errno(err, -r, "talk to the keeper");
	}
	for (int i = 2; i < 6; i++)
		fd_close(&fds[i]);
	fd_close(&j->prep.box);
	/* What was put into the workspace is held against what is left. */
	if (j->prep.n_placed == 0 || j->spec->no_files)
		fd_close(&j->prep.work);
	return r;
}

static void job_free(struct cordon_job *j)
{
	struct cordon_job **at = &j->handle->jobs;

	while (*at && *at != j)
		at = &(*at)->next;
	if (*at)
		*at = j->next;
	fd_close(&j->epoll);
	fd_close(&j->event);
	fd_close(&j->out);
	fd_close(&j->err);
	fd_close(&j->in);
	capture_done(&j->out_cap);
	capture_done(&j->err_cap);
	capture_done(&j->both_cap);
	prepared_done(&j->prep);
	egress_done(&j->egress);
	policy_free(j->network);
	recorder_done(&j->recorder);
	guard_done(&j->guard);
	cordon_result_free(j->result);
	free(atomic_load(&j->cancel_reason));
	free(j);
}

static struct cordon_job *job_new(struct cordon *c, const struct cordon_spec *s)
{
	struct cordon_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->handle = c;
	j->spec = s;
	j->number = ++c->next_job;
	j->epoll = NO_FD;
	j->event = NO_FD;
	j->out = NO_FD;
	j->err = NO_FD;
	j->in = NO_FD;
	j->prep.box = NO_FD;
	j->prep.work = NO_FD;
	egress_init(&j->egress);
	return j;
}

/* What was refused is on the record too, with the reason in *why. */
static int record_start(struct cordon_job *j, struct err *why)
{
	struct record_decision d;
	struct err err = { 0 };

	record_decision_of(&d, &j->guard, j->prep.refused, why);
	if (recorder_start(&j->recorder, j->spec, j->result, &d, &err) == 0)
		return 0;
	*why = err;
	return -err.code;
}

/*
 * The box is made while the record of its run is written. What cannot be
 * said to the keeper now fails when the run itself is sent.
 */
static void send_ahead(struct cordon_job *j)
{
	const struct wire_head head = { WIRE_AHEAD, j->number };
	struct cordon *c = j->handle;

	if (!c->turn)
		return;
	(void)io_send(c->sock, &head, sizeof(head), &j->prep.box, 1);
	c->turn(c->turn_arg);
}

/* Directories of the host come when nothing of the request is wrong. */
static int make_places(struct cordon_job *j, struct err *err)
{
	if (prepare_check(j->spec, &j->prep, err) < 0)
		return -err->code;
	if (guard_make(&j->guard, err) == 0)
		return 0;
	j->prep.refused = j->guard.refused;
	return -err->code;
}

/* What is to be prepared, with the way out that the policy gives it. */
static int prepare_all(struct cordon_job *j, struct err *err)
{
	if (egress_open(&j->egress, j->guard.policy, j->spec, &j->recorder,
			j->result, err) < 0)
		return err_stage(err, "gate");
	if (j->egress.is_open)
		j->guard.spec->egress = &j->egress.spec;
	if (guard_has_to_make(&j->guard) && make_places(j, err) < 0)
		return -err->code;
	return prepare(j->spec, &j->prep, err);
}

/* The policy's word, then everything that can be wrong, then the record. */
static int job_prepare(struct cordon_job *j, struct err *err)
{
	int r = guard_open(j->spec, &j->guard, err);

	if (j->guard.spec)
		j->spec = j->guard.spec;
	capture_init(&j->out_cap, j->spec->output);
	capture_init(&j->err_cap, j->spec->output);
	capture_init(&j->both_cap, j->spec->output);
	if (r < 0 && !j->guard.refused)
		return r;
	if (new_result(j, err) < 0)
		return -err->code;
	if (r < 0)
		j->prep.refused = j->guard.refused;
	else
		r = prepare_all(j, err);
	if (r < 0 && !j->prep.refused)
		return r;
	if (!j->prep.refused)
		send_ahead(j);
	/* Beside the box; in a single run, which has us wait for it, after it.
	 */
	if (!j->prep.refused &&
	    egress_start(&j->egress, j->handle->keeper == 0, err) < 0)
		return err_stage(err, "gate");
	if (record_start(j, err) < 0)
		return -err->code;
	if (j->prep.refused)
		job_refuse(j, err);
	return 0;
}

static int job_begin(struct cordon_job *j, struct err *err)
{
	struct cordon *c = j->handle;

	if (job_prepare(j, err) < 0)
		return -err->code;
	for (size_t i = 0; i < j->prep.warnings.n; i++)
		(void)strv_add(&j->result->warnings, j->prep.warnings.v[i]);
	j->next = c->jobs;
	c->jobs = j;
	if (j->has_ended) {
		/* Something to poll, ready at once. */
		j->epoll = eventfd(1, EFD_CLOEXEC);
		return 0;
	}
	if (send_run(j, err) < 0)
		return -err->code;
	if (c->is_lost)
		job_take(j, NULL, NULL, 0);
	return 0;
}

/* Of files that are ours, which the box's own limits do not concern. */
static void explain(struct err *err)
{
	size_t len = strlen(err->text);

	if (err->code == EFBIG)
		(void)snprintf(err->text + len, sizeof(err->text) - len, "%s",
			       MESSAGE_FILE_SIZE);
}

static struct cordon_result *end(struct cordon_job *j)
{
	struct cordon_result *r;

	if (!j->has_ended) {
		cancel(j, JOB_LET_GO);
		job_wait(j);
	}
	r = take_ptr(j->result);
	job_free(j);
	return r;
}

static int set_network(struct cordon_job *j, const char *file, struct err *err)
{
	struct policy *next = NULL;

	if (policy_load(file, &next, err) < 0)
		return -err->code;
	if (egress_replace(&j->egress, next, err) < 0) {
		policy_free(next);
		return -err->code;
	}
	policy_free(j->network);
	j->network = next;
	return 0;
}

static const struct job_ops ops = {
	.fd = get_fd,
	.step = step,
	.write = job_write,
	.cancel = cancel,
	.end = end,
	.set_network = set_network,
};

struct cordon_job *job_start(struct cordon *c, const struct cordon_spec *s,
			     const struct cordon_events *events, void *arg,
			     struct err *err)
{
	struct cordon_job *j = job_new(c, s);

	if (!j) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	j->head.ops = &ops;
	if (events)
		j->events = *events;
	j->arg = arg;
	if (job_begin(j, err) < 0) {
		explain(err);
		guard_unmake(&j->guard);
		job_free(j);
		return NULL;
	}
	return j;
}
