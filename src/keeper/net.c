/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Network namespaces that are used again.
 *
 * Making one takes the kernel longer than all the others together. As root a
 * keeper of many boxes holds that of a box which has ended, and enters it for
 * the moment of a clone: the next box is born in it. An ordinary user's comes
 * from the clone, as its keeper could not come back to the host's.
 *
 * A box without a network can make no socket but a pair of unnamed ones, and
 * has no right in its namespace or has given it up. So when all its processes
 * are dead the namespace is as new, and the next box of this keeper gets it. A
 * socket that is left (on its way in another one, until the kernel collects
 * both) is seen, and then the namespace goes.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "keeper/keeper.h"

#define KEPT 8

static int own = NO_FD; /* the keeper's namespace, to come back to */

/* Of boxes that have ended. */
static struct {
	int fds[KEPT];
	int n;
} kept;

static int open_own(void)
{
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

void net_close(void)
{
	while (kept.n > 0)
		fd_close(&kept.fds[--kept.n]);
	fd_close(&own);
}

/* Whether there is no socket in the one that we are in: only the heading. */
static bool is_empty(const struct keeper *k)
{
	_cleanup_fd_ int fd = openat(k->world.proc, "thread-self/net/unix",
				     O_RDONLY | O_CLOEXEC);
	char text[256];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	const char *end = n <= 0 ? NULL : memchr(text, '\n', (size_t)n);

	return end && end + 1 == text + n && read(fd, text, 1) == 0;
}

int net_enter(struct keeper *k, struct box *b)
{
	bool is_away = false;

	while (kept.n > 0) {
		int fd = kept.fds[--kept.n];

		if (setns(fd, CLONE_NEWNET) == 0) {
			is_away = true;
			if (is_empty(k)) {
				b->net = fd;
				return 0;
			}
		}
		(void)close(fd);
	}
	if (is_away && setns(own, CLONE_NEWNET) < 0)
		k->is_over = true;
	return -ENOENT;
}

int net_leave(void)
{
	return setns(own, CLONE_NEWNET) < 0 ? -errno : 0;
}

void net_hold(const struct keeper *k, struct box *b)
{
	char path[32];

	if (!k->is_reused || !k->world.is_root)
		return;
	if (own < 0)
		own = open_own();
	(void)snprintf(path, sizeof(path), "%d/ns/net", (int)b->pid);
	if (own >= 0)
		b->net = openat(k->world.proc, path, O_RDONLY | O_CLOEXEC);
}

void net_keep(const struct keeper *k, struct box *b)
{
	uint32_t flags = b->spec ? b->spec->blob.flags : 0;

	if (b->net >= 0 && k->is_reused && kept.n < KEPT &&
	    !(flags & (WIRE_EGRESS | WIRE_WITNESS)))
		kept.fds[kept.n++] = take_fd(&b->net);
	fd_close(&b->net);
}
