/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the machine says about a directory or file that is to be mounted; the
 * facts that policy/decide.h judges by.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/decide.h"

struct mount_ask {
	const char *source;
	const char *target;
	bool is_rw;
	const struct policy *policy;        /* NULL: none */
	const char *policy_name;            /* as it was given */
	const struct policy *const *others; /* NULL-ended; NULL: none */
	const char *policies;      /* a directory of others, without links, */
	const char *policies_name; /* and as it was given; NULL: none */
	const char *state;         /* Cordon's, without links; NULL: our own */
};

/* The number that no file has. */
#define MOUNT_MISSING UINT64_MAX

struct mount_facts {
	char path[4096]; /* without links */
	uint64_t dev;
	uint64_t ino; /* or MOUNT_MISSING: it is not there yet */
	bool is_dir;
	bool is_ours;     /* who we are owns it */
	bool may_write;   /* and we may write to it */
	char reason[256]; /* why something in it cannot be protected */
};

/* The path without links, of the very file that `fd` is. */
int fd_path(int fd, char *ret, size_t size);

/*
 * The directory that results are copied to, which need not be there yet; its
 * own name is not a link.
 */
int copy_look(const char *dir, const struct policy *policy,
	      const char *policy_name, struct mount_facts *facts,
	      struct request_mount *ret, struct err *err);

/* `ret` points into `facts` and `ask`. -errno if it is not there. */
int mount_look(const struct mount_ask *ask, struct mount_facts *facts,
	       struct request_mount *ret, struct err *err);

/*
 * The same of a directory that need not be there yet: then of what it will be,
 * below the nearest one that is. -errno also if it cannot be made.
 */
int place_look(const struct mount_ask *ask, struct mount_facts *facts,
	       struct request_mount *ret, struct err *err);
