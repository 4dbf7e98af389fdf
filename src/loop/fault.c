/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static const struct {
	const char *name;
	bool is_retryable;
} codes[FAULTS] = {
	[FAULT_NONE] = { "none", false },
	[FAULT_NOT_FOUND] = { "not_found", false },
	[FAULT_CANT_HANDLE] = { "cant_handle", false },
	[FAULT_DROPPED] = { "dropped", false },
	[FAULT_REJECTED] = { "rejected", false },
	[FAULT_CANCELLED] = { "cancelled", false },
	[FAULT_DEADLINE] = { "deadline_exceeded", true },
	[FAULT_OVERLOADED] = { "overloaded", true },
	[FAULT_HANDLER] = { "handler_failed", false },
	[FAULT_UNDELIVERABLE] = { "undeliverable", false },
	[FAULT_TOO_LARGE] = { "too_large", false },
	[FAULT_UNAUTHORIZED] = { "unauthorized", false },
	[FAULT_UNAVAILABLE] = { "unavailable", true },
	[FAULT_WOULD_DEADLOCK] = { "would_deadlock", false },
	[FAULT_INTERNAL] = { "internal", false },
};

const char *fault_name(enum fault_code code)
{
	return codes[code].name;
}

enum fault_code fault_parse(const char *name)
{
	int i = 0;

	while (i < FAULTS && strcmp(codes[i].name, name) != 0)
		i++;
	return (enum fault_code)i;
}

void fault_done(struct fault *f)
{
	free(f->message);
	free(f->agent);
	free(f->message_id);
	json_decref(f->cause);
	memset(f, 0, sizeof(*f));
}

void fault_set(struct fault *f, enum fault_code code, const char *fmt, ...)
{
	va_list ap;

	fault_done(f);
	f->code = code;
	f->is_retryable = codes[code].is_retryable;
	va_start(ap, fmt);
	if (vasprintf(&f->message, fmt, ap) < 0)
		f->message = NULL;
	va_end(ap);
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

void fault_copy(struct fault *to, const struct fault *from)
{
	struct fault f = { .code = from->code,
			   .is_retryable = from->is_retryable,
			   .message = copy(from->message),
			   .agent = copy(from->agent),
			   .message_id = copy(from->message_id),
			   .cause = json_incref(from->cause) };

	fault_done(to);
	*to = f;
}

json_t *fault_json(const struct fault *f)
{
	return json_pack("{s:s, s:s, s:b, s:s?, s:s?, s:O*}", "code",
			 fault_name(f->code), "message",
			 f->message ? f->message : "", "retryable",
			 f->is_retryable, "agent", f->agent, "message_id",
			 f->message_id, "cause", f->cause);
}

int fault_load(struct fault *f, const json_t *o, struct err *err)
{
	const char *code = NULL;
	const char *message = NULL;
	json_t *agent = NULL;
	json_t *id = NULL;
	json_t *cause = NULL;
	int is_retryable = 0;
	enum fault_code c;

	if (json_unpack((json_t *)o, "{s:s, s:s, s?b, s?o, s?o, s?o}", "code",
			&code, "message", &message, "retryable", &is_retryable,
			"agent", &agent, "message_id", &id, "cause",
			&cause) < 0)
		return err_set(err, EINVAL, "not an error document");
	c = fault_parse(code);
	if (c == FAULTS)
		return err_set(err, EINVAL, "no such error code: '%s'", code);
	fault_set(f, c, "%s", message);
	f->is_retryable = is_retryable;
	f->agent = copy(json_string_value(agent));
	f->message_id = copy(json_string_value(id));
	f->cause = json_is_object(cause) ? json_incref(cause) : NULL;
	return 0;
}
