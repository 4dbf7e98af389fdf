/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of the library's client share. A handle holds the name of a
 * socket and nothing else, so any number of threads may use it; each request
 * is a connection of its own.
 */

#include <cordon/daemon.h>

#include "base/buf.h"
#include "base/err.h"
#include "box/capture.h"
#include "box/handle.h"
#include "client/daemon.h"

struct far_handle {
	struct cordon base; /* first */
	struct daemon_place place;
};

/* The socket of a handle; NULL with *err if it is no daemon's. */
const struct daemon_place *far_place(const struct cordon *c, struct err *err);

/* A request whose path has one or two parts, and its answer, if wanted. */
struct far_ask {
	const char *method;
	const char *form; /* daemon_format() */
	const char *a, *b;
	const char *body;
	int64_t patience_ms;
};
int far_call(const struct cordon *c, const struct far_ask *ask, struct buf *ret,
	     struct err *err);

/* The answer as text, the caller's. */
char *far_document(const struct cordon *c, const struct far_ask *ask,
		   struct cordon_error *out);

/* POSTs `body` where `ask` says; the id of what was made, from its document. */
int far_make(struct cordon *c, struct far_ask *ask, const struct buf *body,
	     char ret_id[CORDON_ID_SIZE], struct err *err);

/* As error_out(), in the words of errno. */
int far_out(struct cordon_error *out, struct err *err);

/* job.c */
enum far_kind {
	FAR_RUN,  /* lines of events, then a result document */
	FAR_EXEC, /* frames, then what is known of a program ... */
	FAR_BOX,  /* ... or of a box */
};
struct far_want {
	enum far_kind kind;
	const char *path;
	const char *body;
	const char *id;                 /* of the run, the program, the box */
	const struct cordon_spec *spec; /* NULL: attached to */
	const struct cordon_events *events;
	void *arg;
};
struct cordon_job *far_start(const struct cordon *c, const struct far_want *w,
			     struct err *err);
/* cordon_start(); `box` NULL: in one of its own */
struct cordon_job *far_run(const struct cordon *c, const char *box,
			   const struct cordon_spec *s,
			   const struct cordon_events *events, void *arg,
			   struct err *err);

/* How a box or a program ended, from what the daemon tells of it. */
struct cordon_result *far_end(const struct daemon_place *place,
			      enum far_kind kind, const char *id,
			      int64_t patience_ms, struct capture *out,
			      struct capture *errors, struct err *err);
