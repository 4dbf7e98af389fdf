/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The ledger: what was decided and done, in the order in which it was, so
 * that no change afterwards goes unnoticed.
 *
 *	struct ledger *l;
 *
 *	ledger_open(NULL, &l, &err);
 *	ledger_append(l, "run.start", members, NULL, &err);
 *	ledger_sync(l, &err);		// now the program may start
 *	...
 *	ledger_append(l, "run.end", members, NULL, &err);
 *	ledger_sync(l, &err);		// now the result may be shown
 *	if (ledger_take_seal_due(l))
 *		... start `cordon-desk audit seal --quiet` ...
 *	ledger_close(l);
 *
 * A directory with files 000001.jsonl, 000002.jsonl and so on, one record a
 * line (line.h), and the file `head` (head.h). Any number of processes append
 * at once; each record is one write under one lock. A handle is for one
 * thread.
 *
 * Whoever gets an error has recorded nothing that counts, and must not do
 * what the record was to tell of. After a crash the next writer cuts what is
 * torn and says so in a record of its own (`recovery`). A ledger that lost or
 * changed what was already on the disk is not written to any more: -EBADMSG.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

/* A file is followed by the next before it grows beyond this. */
#define LEDGER_FILE_SIZE (64ULL << 20)
/* So many records without a seal make one due. */
#define LEDGER_SEAL_EVERY 1024

struct ledger;

/* The directory `ledger` in the state directory (base/state.h). */
int ledger_dir(char *ret, size_t size, struct err *err);

/*
 * Opens the ledger in `dir` (NULL: ledger_dir()) for writing, and makes it if
 * there is none. It must be ours, and writable for nobody else.
 */
int ledger_open(const char *dir, struct ledger **ret, struct err *err);
void ledger_close(struct ledger *l);

/*
 * Appends one record. `kind` is one of kinds.h; `members` is a JSON object
 * made with base/json.h that has the members of that kind. -EINVAL when it is
 * not that, has a raw control byte or names what is not of the kind; -E2BIG
 * when it is too long. It is on the disk only after ledger_sync().
 */
int ledger_append(struct ledger *l, const char *kind, const char *members,
		  uint64_t *ret_seq, struct err *err);

/*
 * The same for a record that must know its place: `make` writes the members
 * while nobody else can append, given the record's own number and the hash
 * of the one before it.
 */
typedef int (*ledger_make_fn)(void *arg, uint64_t seq,
			      const unsigned char prev[SHA256_SIZE],
			      struct buf *members, struct err *err);
int ledger_append_made(struct ledger *l, const char *kind, ledger_make_fn make,
		       void *arg, uint64_t *ret_seq, struct err *err);

/*
 * Returns when everything this handle appended is on the disk. Processes
 * that wait at once share one fdatasync().
 */
int ledger_sync(struct ledger *l, struct err *err);

/*
 * Whether the records that this handle appended make a seal due. Said once:
 * then not before as many again are without one, so that who cannot sign does
 * not try for each record.
 */
bool ledger_take_seal_due(struct ledger *l);

/*
 * Where the ledger ends as far as it is on the disk: the number of the file in
 * the upper half, the offset in the lower one.
 */
#define LEDGER_START (1ULL << 32)
int ledger_where(struct ledger *l, uint64_t *ret, struct err *err);

/* What it says of a run from such a place on. */
struct ledger_found {
	bool has_start, has_end;
	char cause[16]; /* of its end */
	int exit_code;
};
int ledger_find_run(struct ledger *l, uint64_t from, const char *run,
		    struct ledger_found *ret, struct err *err);

/* Where the last seal is; 0 and the ledger's start if there is none. */
int ledger_last_seal(struct ledger *l, uint64_t *ret_seq, uint32_t *ret_file,
		     uint64_t *ret_offset, struct err *err);
/* One who seals at a time; until ledger_close(). */
int ledger_lock_seal(struct ledger *l);

/* For tests: another size of files. */
void ledger_set_file_size(struct ledger *l, uint64_t size);

/* ---- records of runs (run.c) ---- */

/* A list of names; ended by NULL, may be NULL itself. */
typedef const char *const *names_t;

struct ledger_mount {
	const char *source; /* NULL: a tmpfs or a file of Cordon's own */
	const char *target;
	const char *mode; /* "ro", "rw" */
	uint64_t size;    /* of a tmpfs; 0: not one */
};

struct ledger_code {
	const char *lang;
	const char *text;
	size_t len;
};

struct ledger_limit {
	const char *name; /* as in the result document: "timeout_ms" */
	uint64_t value;
};

/* NULL and 0 stand for what is not known, and are left out. */
struct ledger_run_start {
	const char *run; /* the result's id; required */
	const char *name;
	const char *box;  /* of the daemon: in which one, */
	const char *face; /* how it was asked for, */
	int64_t peer;     /* and by which uid; counts only with a box */
	const char *agent;
	const char *decision; /* "allow", "ask" (and then answered), "deny" */
	const char *rule;     /* which one decided, "cordon.yaml:12" */
	const char *reason;
	const char *approval;    /* the request's id, where it was asked */
	const char *approved_by; /* who said yes */
	const char *policy_file;
	const char *policy_sha256; /* 64 hex */
	names_t argv;
	const struct ledger_code *code;
	size_t n_code;
	bool hide_argv; /* the policy's ledger.keep_text has no commands */
	bool keep_code; /* it has code */
	names_t env;    /* "NAME=value" */
	const char *workdir;
	const char *image;
	const char *isolation;
	const struct ledger_mount *mounts;
	size_t n_mounts;
	names_t network; /* hosts that may be reached; none: no network */
	uint32_t uid, gid;
	const struct ledger_limit *limits;
	size_t n_limits;
	names_t layers;       /* in force */
	names_t not_enforced; /* missing, and accepted */
};

struct ledger_denial {
	const char *layer;
	const char *what;
};

struct ledger_stream {
	uint64_t bytes;   /* that the program wrote */
	const char *kept; /* what was kept of it, hashed */
	size_t len;
};

struct ledger_run_end {
	const char *run; /* required */
	const char *box; /* as of the start */
	const char *face;
	int64_t peer;
	const char *agent;
	const char *status;
	const char *cause; /* required */
	int exit_code;
	int signal; /* 0: none */
	const char *message;
	uint64_t wall_ms, cpu_ms, memory_peak, pids_peak;
	uint64_t oom_kills, pids_refused;
	struct ledger_stream out, err;
	names_t not_enforced;
	const struct ledger_denial *denials;
	size_t n_denials;
	bool keep_output; /* the policy's ledger.keep_text has output */
};

/* The members, redacted, for ledger_append(); the caller frees. NULL: ENOMEM */
char *ledger_run_start_members(const struct ledger_run_start *r);
char *ledger_run_end_members(const struct ledger_run_end *r);

/* Both at once: append and sync. What `cordon run` calls. */
int ledger_run_start(struct ledger *l, const struct ledger_run_start *r,
		     struct err *err);
int ledger_run_end(struct ledger *l, const struct ledger_run_end *r,
		   struct err *err);
