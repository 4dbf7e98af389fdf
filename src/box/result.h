/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a run ended.
 *
 * The keeper reports facts (struct wire_outcome); verdict_of() turns them into
 * one cause, by the table of the code-executor specification; the document is
 * written from the result.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cordon/cordon.h>

#include "base/strv.h"
#include "box/capture.h"
#include "box/spec.h"
#include "box/wire.h"
#include "box/workspace.h"

enum cause {
	CAUSE_EXITED,
	CAUSE_SIGNAL,
	CAUSE_TIMEOUT,
	CAUSE_CPU,
	CAUSE_MEMORY,
	CAUSE_PIDS,
	CAUSE_DISK,
	CAUSE_OUTPUT,
	CAUSE_CANCELLED,
	CAUSE_DENIED,
	CAUSE_NOT_FOUND,
	CAUSE_INVALID,
	CAUSE_SETUP,
	CAUSE_LOST,
	CAUSES,
};

struct verdict {
	enum cause cause;
	int exit_code;
	int signal; /* 0: none */
};

/* Pure: the same facts give the same verdict. */
struct verdict verdict_of(const struct wire_outcome *o);

const char *cause_name(enum cause cause);
/* CAUSES: it is none. */
enum cause cause_parse(const char *name);
const char *verdict_status(const struct verdict *v);

struct stream {
	char *data;
	size_t len;
	size_t cut;       /* where bytes are missing */
	uint64_t missing; /* how many */
	uint64_t total;
};

/* One block, or the whole run when there is only one. */
struct run {
	struct verdict verdict;
	struct wire_outcome outcome;
	struct stream out;
	struct stream err;
	char *code_file;
};

/* What a gate has refused, so many times. */
#define RESULT_REFUSED 64

struct refused {
	char *what;         /* HOST:PORT, or a name alone */
	const char *reason; /* of gate/reason.h: a word, a sentence */
	const char *text;
	uint64_t count;
};

struct cordon_result {
	char id[33];
	struct run *runs; /* at least one */
	size_t n_runs;
	char *message; /* why, in words; NULL when there is nothing to say */
	char *cancel_reason;
	struct stream output; /* both streams as they came; code only */
	bool has_output;
	struct listing files;
	struct strv warnings;
	struct strv violations;  /* what the box did and must not have */
	struct refused *refused; /* connections; at most RESULT_REFUSED */
	size_t n_refused;
	uint64_t n_refused_more; /* others; the ledger has them */
	bool has_gate;           /* what was refused are not sockets */
	struct strv labels;
	char *name;
	char *document; /* written by another already; as it is */
	uint32_t not_enforced;
	struct {
		uint64_t timeout_us, cpu_time_us, memory, cpu_quota_us;
		uint64_t cpu_period_us, pids, output, hard_output, disk;
		uint64_t nofile, fsize, total_us, grace_us;
		uint32_t uid, gid;
		bool read_only, has_network;
		struct strv places; /* "SIZE PATH", in memory */
	} limits;
};

/*
 * result-limits.c: the limits of the request; the document's `limits`, which
 * are those that were in force; and a warning for each layer that was not.
 */
struct json;
void result_take_limits(struct cordon_result *r, const struct cordon_spec *s);
void result_put_limits(struct json *j, const struct cordon_result *r);
void result_put_missing(struct json *j, const struct cordon_result *r);
/* One more; what has no room or no memory is counted. */
void result_add_denial(struct cordon_result *r, const char *what,
		       const char *reason, const char *text);
/* Those of another's gate, if it had one; NULL: nobody's. */
void result_add_denials(struct cordon_result *r,
			const struct cordon_result *of);
/* The list `denials` of the document, as far as it is the gate's. */
void result_put_refused(struct json *j, const struct cordon_result *r);
/* KEY=VALUE as the object `labels`. */
void result_put_labels(struct json *j, const struct strv *labels);
/* A copy of what a capture has kept, which is empty then. */
void stream_take(struct stream *s, struct capture *c);
void stream_done(struct stream *s);

/* The document of a request that was never a run; the caller frees it. */
char *result_json_of(enum cause cause, int exit_code, const char *message);
/* A new id for a result. */
void result_new_id(struct cordon_result *r);

const char *layer_name(enum wire_layer layer);
