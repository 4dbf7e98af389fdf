/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who decides.
 *
 * Without a policy the person at the command line is the authority, within
 * the list "Never". With one, a number that it states is a ceiling (and the
 * default), a number that it does not state is left as it was asked for, and
 * a permission that it does not state is not given.
 *
 * Pure: the caller looks at the machine and puts down what it found as facts
 * in the request. Everything in a request is the caller's; the verdict points
 * into the policy.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"

struct request_number {
	bool is_stated; /* asked for, rather than a default */
	uint64_t value;
};

struct request_mount {
	const char *word;   /* what it is for; NULL: a volume */
	const char *source; /* as given */
	const char *path;   /* resolved: no links in it */
	const char *target; /* in the box */
	bool is_rw;
	bool is_declared; /* the policy's own mount */
	/* facts */
	bool is_special;           /* socket, device, pipe */
	bool is_home;              /* a home directory, or one that has some */
	bool is_state;             /* Cordon's own state, or in it */
	bool holds_state;          /* has Cordon's own state below it */
	bool is_policy;            /* the policy file itself */
	const char *credential;    /* the name of one that it holds, or NULL */
	const char *not_protected; /* why a file in it cannot be protected */
};

struct request_place {
	const char *path;
	uint64_t size;
	bool is_stated; /* the size was asked for, rather than a default */
	/* Where a size goes that is lowered; NULL: what is above is denied. */
	uint64_t *ret_size;
};

struct policy_request {
	struct request_number numbers[POLICY_NUMBERS];
	const struct request_mount *mounts;
	size_t n_mounts;
	const struct request_mount *copies; /* where results are copied to */
	size_t n_copies;
	const struct request_place *places; /* writable, asked for */
	size_t n_places;
	const char *const *env; /* NAME=VALUE */
	size_t n_env;
	const char *const *env_from_host; /* names */
	size_t n_env_from_host;
	const char *const *hosts; /* HOST:PORT */
	size_t n_hosts;
	const char *const *secrets; /* NAME@HOST:PORT */
	size_t n_secrets;
	const char *const *best_effort; /* layers that may be missing */
	size_t n_best_effort;
	const char *image;              /* NULL: not asked for */
	const char *const *image_names; /* others of the same one, or NULL */
	const char *isolation;          /* NULL: not asked for */
	bool has_user;
	uint32_t uid;
	uint32_t gid;
	bool states_root; /* asked for one kind of root file system */
	bool wants_writable_root;
	bool is_code;  /* rather than a command */
	bool is_empty; /* rather than anything: nothing runs yet */
	bool has_list; /* it has a list of commands of its own */
	bool clamps;   /* numbers above the ceiling are lowered, not denied */
};

struct policy_verdict {
	enum decision decision;
	char why[480];
	uint64_t numbers[POLICY_NUMBERS]; /* to be enforced */
	uint32_t clamped;                 /* bits of enum policy_number */
	const char *image;
	bool has_user; /* the policy's own */
	uint32_t uid;
	uint32_t gid;
	bool is_writable_root;
};

/* `p` may be NULL: no policy. */
void policy_decide(const struct policy *p, const struct policy_request *req,
		   struct policy_verdict *ret);

/* Whether the box may write at one of its own places, such as "/tmp". */
bool policy_may_write(const struct policy *p, const char *place);

/* Whether a place of its own there is given to who asks for it. */
bool policy_gives_place(const struct policy *p, const char *place);

/* Whether `path` is `top` or lies below it. */
bool path_is_below(const char *path, const char *top);
