/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one way from a request to a box: what is asked for is described, the
 * policy decides (policy/decide.h), and what comes out is the request,
 * tightened. Every face starts a run through here.
 *
 *	guard_open()    facts, decision, a tightened spec
 *	guard_make()    directories that it wants on the host
 *	...             the run, with guard.spec
 *	guard_sweep()   when the box is dead: what it must not have made
 *	guard_done()
 *
 * In a directory that is mounted writable the names of never_made[], and the
 * policy's own files, are shown read-only. Those that do not exist cannot be
 * covered without making them on the host; so they are looked for when the
 * box is dead, and moved out of the way under another name, which is told as
 * a violation (P44). They are not deleted: the caller may have made one
 * meanwhile.
 */

#include <stdbool.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/strv.h"
#include "box/approve.h"
#include "box/prepare.h"
#include "box/spec.h"
#include "policy/decide.h"
#include "policy/policy.h"

struct box_image;

struct guard_watch {
	int dir;          /* of the mounted directory */
	char *source;     /* as given */
	uint64_t missing; /* bits of never_made[] */
	uint64_t since; /* links that are newer may not lead out; 0: they may */
	uint64_t clock; /* by which that time was read (guard-links.c) */
	bool is_late;   /* an earlier daemon's: links are told and left */
};

/*
 * Who decides for somebody else: a daemon, whose child this is, which has
 * become the user that asks. Nothing of its own place counts then: no
 * directory that it stands in, no variable.
 */
struct guard_by {
	/* Must be there; stays the caller's. What a request names, this is. */
	const struct policy *policy;
	const char *policy_name;
	const struct policy *const *others; /* NULL-ended; NULL: none */
	const char *policies;      /* a directory of others, without links, */
	const char *policies_name; /* and as it was given; NULL: none */
	const char *state;         /* the daemon's own, without links */
	bool clamps;               /* numbers above a ceiling are lowered */
	/*
	 * Of a face that does so at all: what is above what a box has in any
	 * case counts as well, and is lowered or denied (guard-lower.c).
	 */
	bool judges_rest;
	const struct rlimit *limits; /* WIRE_RLIMITS: what a box's keeper has */
	/* A program more: mounts and hosts were judged with the box. */
	bool is_exec;
	bool may_not_mount; /* we are not who asks, and cannot be */
	bool refuses_links; /* in what is mounted writable */
	bool refuses_pipes; /* and sockets */
	bool sweeps_links;  /* that lead out of it, when the box is dead */
};

struct guard {
	const struct cordon_spec *given;
	const struct guard_by *by; /* NULL: the caller for itself */
	struct cordon_spec *spec; /* tightened; strings are shared with given */
	const struct policy *policy; /* NULL: none applies */
	struct policy *owned_policy;
	char *policy_name; /* by which it was named or found */
	struct policy_verdict verdict;
	enum refusal refused;            /* a result rather than an error */
	const struct command_rule *rule; /* that decided, if one did */
	bool owns_programs;              /* spec->programs is not given's */
	bool was_asked;                  /* a person, whose answer this is */
	struct approve_answer answer;
	struct box_image *image; /* of the root, NULL: none */
	const char *image_name;  /* as it was asked for, NULL: none */
	struct err image_err;    /* why it cannot be had */
	struct strv merged;      /* its command and the request's */
	struct strv owned;
	struct strv notes;   /* what of it is not done, for spec->notes */
	struct strv lowered; /* name, asked, given, name ...; no numbers of p */
	struct guard_watch watches[SPEC_MAX_ITEMS];
	size_t n_watches;
	/* Where results go, opened before the box could put a link there. */
	int copies[SPEC_MAX_ITEMS];
	size_t n_copies;
	struct strv made; /* directories of the host, parents first */
};

/*
 * 0 and ret->spec, or -errno. With ret->refused the run has ended before it
 * began: a rule denies it, which *err names, or a directory is not there; else
 * the policy could not be read. In all cases guard_done() releases.
 */
int guard_open(const struct cordon_spec *s, struct guard *ret, struct err *err);

/*
 * When everything else was found right: makes the work_dir where it is missing,
 * and makes and opens the directories that results go to. As guard_open(); what
 * was made stays until guard_unmake() takes it back, which leaves alone what
 * somebody has put something in.
 */
bool guard_has_to_make(const struct guard *g);
int guard_make(struct guard *g, struct err *err);
void guard_unmake(struct guard *g);

/* The same without asking anybody: ret->verdict may be DECISION_ASK. */
int guard_judge(const struct cordon_spec *s, struct guard *ret,
		struct err *err);

/* The same for somebody else; the policy is not looked for, but given. */
int guard_judge_by(const struct cordon_spec *s, const struct guard_by *by,
		   struct guard *ret, struct err *err);

/*
 * Where the decision is `ask`: asks by `how` (approve_ask()'s promise), and
 * only a yes returns 0. What it says of a question that is not answered yet
 * (-ETIME) or that cannot be put now (-EAGAIN) stays the error's code.
 */
struct guard_asker {
	int (*how)(void *arg, const struct approve_request *req,
		   struct approve_answer *ret, struct err *err);
	void *arg;
	const char *const *changes; /* what else is said yes to, or NULL */
	const char *run, *box, *face;
};
int guard_ask_by(struct guard *g, const struct guard_asker *a, struct err *err);

/* After the box is dead: adds a line to `ret` for each violation. */
void guard_sweep(struct guard *g, struct strv *ret);

/*
 * The same for one directory, by whoever kept what a guard_watch says: the
 * guard of a box that stays has long ended when the box does.
 */
void guard_sweep_dir(const struct guard_watch *w, struct strv *ret);

void guard_done(struct guard *g);
