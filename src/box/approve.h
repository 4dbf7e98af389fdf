/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asking a person, through cordon-desk.
 *
 * approve_ask() starts `cordon-desk approvals ask`, gives it the request and
 * waits for its answer. The desk finds a standing answer, or asks on the
 * terminal or in the store until the request expires (cordon-approvals(1)).
 *
 * Everything but an answer that was understood to its last byte, from a desk
 * that ended with status 0, is a denial: `is_allowed` is false and `reason`
 * says why. The strings of a request are the caller's and only read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define APPROVE_CHANGES 64 /* lines; the desk takes no more */

struct approve_program {
	const char *join; /* before it: "|", "&&", "||", ";"; first: "" */
	const char *const *argv; /* ended by NULL */
};

struct approve_request {
	const char *kind; /* command, code, tool, connection, mount */
	const struct approve_program *programs;
	size_t n_programs;
	const char *language; /* of the code */
	const void *text;     /* the code, or a tool's arguments */
	size_t text_len;
	const char *target;  /* a tool, HOST:PORT, "FROM -> TO rw" */
	const char *agent;   /* NULL: none */
	const char *session; /* NULL: CORDON_SESSION or the terminal's */
	const char *why;
	const char *rule; /* as it stands in the policy */
	const char *file;
	unsigned int line;
	const char *const *changes;   /* ended by NULL, or NULL */
	uint64_t expire_ms;           /* 0: ten minutes */
	bool hide_text;               /* from the ledger */
	const char *run, *box, *face; /* of a daemon's; NULL: none */
	/* Of a tool's call, desk/request.h says what they are; NULL: none. */
	const char *arguments;
	const char *const *code;
	const char *class;
	unsigned int n_told;
	const char *team, *context, *digest;
	bool may_terminal;
	bool may_store;
	const char *resume; /* NULL, or the id of a request made before */
	/*
	 * Nobody waits: where there is no answer yet the request is left in
	 * the store, and -ETIME is returned with its id.
	 */
	bool suspends;
	/*
	 * A descriptor that becomes readable when the caller no longer wants
	 * an answer (its signalfd, an eventfd), or NO_FD. It is not read. The
	 * desk is then ended and the answer is a denial; the request waits on
	 * in the store and can be resumed, unless a SIGINT or SIGQUIT is
	 * pending: that withdraws it.
	 */
	int cancel;
};

struct approve_answer {
	char id[16];
	bool is_allowed;
	bool is_cancelled;
	char scope[8]; /* once, session, always */
	char reason[1024];
	char by[512];
};

/*
 * 0 and an answer, or -errno (the desk could not be asked) and *ret is a
 * denial as well. No process is left in either case.
 */
int approve_ask(const struct approve_request *req, struct approve_answer *ret,
		struct err *err);

/*
 * The same for an event loop: start, poll approve_fd() for reading, call
 * approve_step(), which never blocks.
 */
struct approval;
int approve_start(const struct approve_request *req, struct approval **ret,
		  struct err *err);
int approve_fd(const struct approval *a);
/* 0: it goes on. 1: it is over; *ret_r is what approve_ask() would return. */
int approve_step(struct approval *a, int *ret_r, struct approve_answer *ret,
		 struct err *err);
/* The answer is not wanted any more, and the request is withdrawn. */
void approve_withdraw(struct approval *a);
/* NULL is fine. Ends the desk if it has not ended; the request waits on. */
void approve_free(struct approval *a);

/*
 * Withdraws a request that nobody waits for, as `cordon approvals withdraw`.
 * -EALREADY: it was used, has expired or was denied; *err says which.
 */
int approve_withdraw_id(const char *id, const char *reason, struct err *err);

/* The document for the desk. */
void approve_format(const struct approve_request *req, struct buf *out);

/* Reads the desk's line, strictly; 0 or -EBADMSG. For tests too. */
int approve_parse(const char *text, size_t len, struct approve_answer *ret);

/* How the desk ends where a daemon asked it, besides 0, 1 and 125. */
#define APPROVE_BUSY  75 /* too many wait already */
#define APPROVE_WAITS 76 /* no answer yet; the request is there still */

/*
 * What it said, if that is whole and fits its status (of waitpid(2)): 0, or
 * -errno and *ret is a denial: -EAGAIN for BUSY, -ETIME for WAITS with the id.
 */
int approve_understand(const struct buf *said, int status,
		       struct approve_answer *ret, struct err *err);
