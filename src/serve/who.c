/* SPDX-License-Identifier: Apache-2.0 */

/* Who is at the other end of a connection; see daemon.h. */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "serve/daemon.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

static bool has_option(int sock, int name, int want)
{
	int have = -1;
	socklen_t len = sizeof(have);

	return getsockopt(sock, SOL_SOCKET, name, &have, &len) == 0 &&
	       have == want;
}

/*
 * The other end of a connection that somebody made has a listener's name; and
 * of that the kernel would say who listens.
 */
static bool is_connected(int sock)
{
	struct sockaddr_un a;
	socklen_t len = sizeof(a);

	return getpeername(sock, (struct sockaddr *)&a, &len) == 0 &&
	       len > sizeof(a.sun_family);
}

/* A connection that was accepted on one of our sockets. */
static bool is_ours(const struct daemon *d, int sock)
{
	struct sockaddr_un a = { 0 };
	socklen_t len = sizeof(a) - 1;

	if (!has_option(sock, SO_DOMAIN, AF_UNIX) ||
	    !has_option(sock, SO_TYPE, SOCK_STREAM) ||
	    !has_option(sock, SO_ACCEPTCONN, 0) || is_connected(sock) ||
	    getsockname(sock, (struct sockaddr *)&a, &len) < 0 ||
	    !a.sun_path[0])
		return false;
	return strcmp(a.sun_path, d->own.path) == 0 ||
	       strcmp(a.sun_path, d->docker.path) == 0;
}

int who_find(const struct daemon *d, int sock, struct who *ret, struct err *err)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (!is_ours(d, sock))
		return err_set(err, EPROTO,
			       "that is not a connection to this daemon");
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    cred.uid == (uid_t)-1 || cred.gid == (gid_t)-1)
		return err_errno(err, errno, "ask who is there");
	len = sizeof(ret->groups);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, ret->groups, &len) < 0)
		return err_errno(err, errno,
				 "ask for the groups of who is "
				 "there");
	ret->n_groups = len / sizeof(gid_t);
	ret->uid = cred.uid;
	ret->gid = cred.gid;
	ret->pid = cred.pid;
	return 0;
}

bool who_is_same(const struct who *a, const struct who *b)
{
	return a->uid == b->uid && a->gid == b->gid &&
	       a->n_groups == b->n_groups &&
	       memcmp(a->groups, b->groups, a->n_groups * sizeof(gid_t)) == 0;
}
