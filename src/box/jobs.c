/* SPDX-License-Identifier: Apache-2.0 */

/* Runs as the public interface has them, whoever carries them out. */

#include <errno.h>
#include <poll.h>

#include "base/util.h"
#include "box/handle.h"
#include "box/spec.h"

static const struct job_ops *ops_of(const struct cordon_job *j)
{
	return ((const struct job_head *)j)->ops;
}

static struct cordon_job *start(struct cordon *c, const struct cordon_spec *s,
				const struct cordon_events *events, void *arg,
				struct err *err)
{
	return c->ops ? c->ops->start(c, s, events, arg, err)
		      : job_start(c, s, events, arg, err);
}

struct cordon_job *cordon_start(struct cordon *c, const struct cordon_spec *s,
				const struct cordon_events *events, void *arg,
				struct cordon_error *out)
{
	struct err err = { 0 };
	struct cordon_job *j = start(c, s, events, arg, &err);

	if (!j)
		(void)error_out(out, &err);
	return j;
}

int cordon_job_fd(const struct cordon_job *j)
{
	return ops_of(j)->fd(j);
}

int cordon_job_step(struct cordon_job *j)
{
	return ops_of(j)->step(j);
}

long cordon_job_write(struct cordon_job *j, const void *data, size_t len)
{
	return ops_of(j)->write(j, data, len);
}

void cordon_job_cancel(struct cordon_job *j, const char *reason)
{
	ops_of(j)->cancel(j, reason);
}

int cordon_job_set_network(struct cordon_job *j, const char *policy,
			   struct cordon_error *out)
{
	struct err err = { 0 };

	if (!ops_of(j)->set_network)
		(void)err_set(&err, EOPNOTSUPP,
			      "the network of a run of the daemon cannot be "
			      "replaced");
	else if (ops_of(j)->set_network(j, policy, &err) == 0)
		return 0;
	return error_out(out, &err);
}

void job_wait(struct cordon_job *j)
{
	struct pollfd p = { .fd = cordon_job_fd(j), .events = POLLIN };

	while (!cordon_job_step(j))
		(void)poll(&p, 1, -1);
}

struct cordon_result *cordon_job_end(struct cordon_job *j)
{
	return ops_of(j)->end(j);
}

int job_finish(struct cordon_job *j, struct cordon_result **ret,
	       struct err *err)
{
	if (!j)
		return -err->code;
	job_wait(j);
	*ret = cordon_job_end(j);
	return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

int cordon_run(struct cordon *c, const struct cordon_spec *s,
	       struct cordon_result **ret, struct cordon_error *out)
{
	struct err err = { 0 };

	if (job_finish(start(c, s, NULL, NULL, &err), ret, &err) < 0)
		return error_out(out, &err);
	return 0;
}
