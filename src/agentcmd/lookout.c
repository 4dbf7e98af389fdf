/* SPDX-License-Identifier: Apache-2.0 */
#include "agentcmd/lookout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/util.h"
#include "runtime/event-log.h"
#include "runtime/metrics.h"
#include "runtime/trace.h"

#define METRICS_MAX (4U << 20)

struct lookout {
	struct lookout_options o;
	struct tracer *tracer;
	struct event_log *log;
	struct metrics *metrics;
};

static void on_span(void *arg, const json_t *request)
{
	metrics_span(((struct lookout *)arg)->metrics, request);
}

static void on_event(void *arg, const json_t *event)
{
	struct lookout *l = arg;

	event_log_runtime(l->log, event);
	if (l->metrics)
		metrics_event(l->metrics, event);
}

static int open_trace(struct lookout *l, struct err *err)
{
	const struct tracer_options o = { .export = l->metrics ? on_span : NULL,
					  .arg = l };

	if (l->o.trace)
		return tracer_to_file(&o, l->o.trace, &l->tracer, err);
	return tracer_new(&o, &l->tracer, err);
}

static int open_all(struct lookout *l, struct err *err)
{
	int e = 0;

	if (l->o.metrics && !(l->metrics = metrics_new()))
		return err_set(err, ENOMEM, "out of memory");
	if (l->o.log)
		e = event_log_open(l->o.log, false, &l->log, err);
	if (e == 0 && (l->o.trace || l->o.metrics))
		e = open_trace(l, err);
	if (e < 0)
		return e;
	if (l->log || l->metrics)
		runtime_on_event(l->o.runtime, on_event, l);
	runtime_set_tracer(l->o.runtime, l->tracer);
	return 0;
}

int lookout_new(const struct lookout_options *o, struct lookout **ret,
		struct err *err)
{
	struct lookout *l = calloc(1, sizeof(*l));

	if (!l)
		return err_set(err, ENOMEM, "out of memory");
	l->o = *o;
	/* In any case the caller's, who frees it after the runtime. */
	*ret = l;
	return open_all(l, err);
}

void lookout_chat(struct lookout *l, const json_t *chat)
{
	const char *type = json_string_value(json_object_get(chat, "type"));

	/* Of agents that are tools: it counts as what it is. */
	if (type && strcmp(type, "InnerEvent") == 0) {
		lookout_chat(l, json_object_get(chat, "content"));
		return;
	}
	event_log_chat(l->log, chat);
	if (l->metrics)
		metrics_chat(l->metrics, chat);
}

void lookout_end(struct lookout *l)
{
	_cleanup_fd_ int fd = NO_FD;
	struct buf b;

	if (!l || !l->metrics)
		return;
	buf_init(&b, METRICS_MAX);
	fd = open(l->o.metrics, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0 && metrics_text(l->metrics, l->o.runtime, &b) == 0)
		(void)io_write_all(fd, b.data, b.len);
	buf_done(&b);
}

void lookout_free(struct lookout *l)
{
	if (!l)
		return;
	tracer_free(l->tracer);
	event_log_close(l->log);
	metrics_free(l->metrics);
	free(l);
}
