/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writable binds in which no symbolic link, pipe or socket can be made: a
 * program of the host that later writes there would follow it, or hang on it.
 *
 * Theory of operation. A rule of Landlock allows below a place, and can take
 * nothing back: where the whole root may be written, so may what is mounted in
 * it. So this is a domain of its own, inside the other one, that knows only
 * the making of these things. It allows them in every directory beside the way
 * to such a bind:
 *
 *	/  usr  tmp  home  work	     work is one: allowed are usr, tmp, home
 *
 * and neither in the bind nor directly in the directories that lead to it, as
 * they are when the box is made. What cannot be looked at is not allowed.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "init/init.h"
#include "os/landlock.h"

#define MAX_RULES 4096

/* getdents64(2) */
struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

struct walk {
	struct init *in;
	struct landlock l;
	unsigned int rules;
};

static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return strcmp(top, "/") == 0 ||
	       (strncmp(path, top, len) == 0 &&
		(path[len] == '/' || path[len] == '\0'));
}

static const char *denied_at(const struct init *in, uint32_t i)
{
	const struct wire_mount *m = &in->box->mounts[i];

	if (!m->denied || m->kind != WIRE_BIND ||
	    (m->flags & (WIRE_MNT_RO | WIRE_MNT_FILE)) ||
	    !wire_has_mount(&in->conf, i))
		return NULL;
	return wire_str(&in->box->blob, m->target);
}

enum way { BESIDE, ABOVE, INSIDE };

/* Where a path lies, seen from the binds. */
static enum way way_of(const struct init *in, const char *path)
{
	enum way way = BESIDE;

	for (uint32_t i = 0; i < in->box->n_mounts; i++) {
		const char *target = denied_at(in, i);

		if (target && is_below(path, target))
			return INSIDE;
		if (target && is_below(target, path))
			way = ABOVE;
	}
	return way;
}

static int allow_below(struct walk *w, const char *path)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW |
						 O_CLOEXEC);

	if (fd < 0 || w->rules++ > MAX_RULES)
		return 0;
	return landlock_allow_links(&w->l, fd, &w->in->err);
}

/* All directories in `path`, which leads to a bind. */
static int allow_beside(struct walk *w, const char *path)
{
	_cleanup_fd_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
						  O_CLOEXEC);
	char buf[4096] __attribute__((aligned(8)));
	char child[4096];
	long n;

	while (dir >= 0 &&
	       (n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0)
		for (long at = 0; at < n;) {
			const struct entry *e = (const void *)(buf + at);
			const char *dash = strcmp(path, "/") == 0 ? "" : path;

			at += e->len;
			if (strcmp(e->name, ".") == 0 ||
			    strcmp(e->name, "..") == 0 ||
			    snprintf(child, sizeof(child), "%s/%s", dash,
				     e->name) >= (int)sizeof(child) ||
			    way_of(w->in, child) != BESIDE)
				continue;
			if (allow_below(w, child) < 0)
				return -w->in->err.code;
		}
	return 0;
}

/* Each directory on the way to a bind, from the root on. */
static int allow_along(struct walk *w, const char *target)
{
	char path[4096];
	size_t at = 1;

	do {
		(void)snprintf(path, sizeof(path), "%.*s", (int)at, target);
		if (way_of(w->in, path) == ABOVE && allow_beside(w, path) < 0)
			return -w->in->err.code;
		at += at > 1;
		at += strcspn(target + at, "/");
	} while (target[at] && at < sizeof(path));
	return 0;
}

int links_deny(struct init *in)
{
	struct walk w = { .in = in };
	uint16_t denied = 0;

	for (uint32_t i = 0; i < in->box->n_mounts; i++)
		if (denied_at(in, i))
			denied |= in->box->mounts[i].denied;
	if (!denied)
		return 0;
	if (landlock_open_links(&w.l, denied & WIRE_DENY_LINKS, &in->err) < 0)
		return -in->err.code;
	for (uint32_t i = 0; i < in->box->n_mounts; i++) {
		const char *target = denied_at(in, i);

		if (target && allow_along(&w, target) < 0) {
			fd_close(&w.l.fd);
			return -in->err.code;
		}
	}
	return landlock_enter(&w.l, &in->err);
}
