/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names that a box made in a writable volume and must not have (box/guard.h).
 *
 * The guard that knows which were missing ends with the preparer, long before
 * the box does. So its watches go to the front with the answer, and come back
 * with a request when the box is dead. The front could have been taken over
 * meanwhile: each watch is sealed with a key that the parent alone has, and
 * for the user whose volume it is, so that nothing can be swept that was not
 * mounted writable for that user by this daemon.
 *
 * After a crash the same is asked for by the next front, from its notes. The
 * key is kept, so the seals hold; and who it was, which a connection told then,
 * is in a structure of fixed size under a seal of its own.
 */

#include "base/json.h"
#include "base/strv.h"
#include "box/guard.h"
#include "serve/request.h"

#define SWEEP_KEY    32
#define SWEEP_GROUPS 64

/*
 * Whose volumes they are, for a daemon that was started again and has no
 * connection any more of which the kernel could say it. Made by a preparer
 * of what the kernel told it, sealed like a watch, and kept by the front.
 */
struct sweep_who {
	uint32_t uid, gid;
	uint32_t n_groups; /* more than there is room for: it is not made */
	uint32_t groups[SWEEP_GROUPS];
	unsigned char seal[32];
};
void sweep_who_seal(struct sweep_who *who, const unsigned char *key);
bool sweep_who_check(const struct sweep_who *who, const unsigned char *key);
/* Reads one from a document of the front's. */
int sweep_who_read(int fd, const unsigned char *key, struct sweep_who *ret,
		   struct err *err);

/* The key: made once, in a file that nobody but the parent reads. */
int sweep_key_load(int state_fd, unsigned char *ret, struct err *err);

/* The members `watches` and, where there are any, `who` of an answer. */
struct sweep_by {
	const unsigned char *key;
	int64_t peer;
	const struct sweep_who *who; /* NULL: not known */
};
void sweep_put(struct json *j, const struct guard *g,
	       const struct sweep_by *by);

/* What was found, or could not be looked for, a line for each. */
void sweep_all(const struct request *r, const unsigned char *key, int64_t peer,
	       struct strv *ret);
