/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An error as data, which reaches whoever asked: {code, message, agent,
 * message_id, retryable, cause}. It crosses processes without loss.
 *
 * Faults are small, owned by value; fault_done() releases what they hold.
 */

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

enum fault_code {
	FAULT_NONE,
	FAULT_NOT_FOUND,
	FAULT_CANT_HANDLE,
	FAULT_DROPPED,
	FAULT_REJECTED,
	FAULT_CANCELLED,
	FAULT_DEADLINE,
	FAULT_OVERLOADED,
	FAULT_HANDLER,
	FAULT_UNDELIVERABLE,
	FAULT_TOO_LARGE,
	FAULT_UNAUTHORIZED,
	FAULT_UNAVAILABLE,
	FAULT_WOULD_DEADLOCK,
	FAULT_INTERNAL,
	FAULTS
};

struct fault {
	enum fault_code code;
	bool is_retryable;
	char *message;
	char *agent;      /* NULL: not known */
	char *message_id; /* NULL: not known */
	json_t *cause;    /* another fault as JSON, or NULL */
};

/* "not_found", "cant_handle", "dropped", ... "deadline_exceeded", ... */
const char *fault_name(enum fault_code code);
enum fault_code fault_parse(const char *name); /* FAULTS: no such */

/* Replaces what was there. */
void fault_set(struct fault *f, enum fault_code code, const char *fmt, ...)
	PRINTF(3, 4);
void fault_copy(struct fault *to, const struct fault *from);
void fault_done(struct fault *f);
json_t *fault_json(const struct fault *f);
int fault_load(struct fault *f, const json_t *o, struct err *err);
