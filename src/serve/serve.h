/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon, as `cordon serve` starts it: docs/daemon.md.
 *
 *	listen.c    sockets: made, inherited, removed
 *	rules.c     the policy: found, read again, told
 *	parts.c     keeper, clerk and front: started, ended
 *	daemon.c    the parent's loop: signals, orders, who died
 *	errand.c    children for one order
 *	preparer.c  a request to two blobs, as the user who asked
 *	asking.c    it asks a person; question.c: the parent's part in that
 *	request.c   the request's document
 *	named.c     policies that a request may name
 *	answer.c    the answer's document
 *	image.c     cordon-image, on behalf of the front
 *	clerk.c     the ledger
 *	notify.c    what systemd is told
 */

#include <sys/types.h>

struct serve_options {
	const char *socket;        /* NULL: cordon.sock, in the runtime's */
	const char *docker_socket; /* NULL: none */
	const char *group;         /* of the sockets; NULL: our own */
	const char *mode;          /* of the sockets; NULL: 0660 */
	const char *user;          /* of the front; NULL: as parts.h says */
	const char *policy;        /* NULL: found, else the preset daemon */
	const char *policies;      /* NULL: none but the presets */
	const char *max_boxes;     /* NULL: the front's own default */
	const char *ask_wait;      /* of Docker's clients; NULL: 45s */
};

/* Serves until it is told to stop; the exit status. */
int serve(const struct serve_options *o);
