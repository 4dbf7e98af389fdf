/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Directories of the host that a run makes: its work_dir where that is missing,
 * and those that results are copied to. They are judged by the path that they
 * will have (guard-facts.h), and made when nothing else of the request can be
 * wrong; what turns out to be for nothing is taken back.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "box/guard-facts.h"
#include "box/guard-parts.h"

/* 0 also if somebody else was faster; a link is never followed. */
static int make_one(struct guard *g, int dir, const char *name,
		    const char *path, mode_t mode)
{
	if (mkdirat(dir, name, mode) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (strv_add(&g->made, path) == 0)
		return 0;
	(void)unlinkat(dir, name, AT_REMOVEDIR);
	return -ENOMEM;
}

/* The directory at `path`, made as needed; no part of it is a link. */
static int open_made(struct guard *g, const char *path)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_fd_ int dir = open("/", flags);
	char part[4096];
	int r = dir < 0 ? -errno : 0;

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t at = 1; r == 0 && path[at];) {
		size_t len = strcspn(path + at, "/");
		int next;

		memcpy(part, path, at + len);
		part[at + len] = '\0';
		next = openat(dir, part + at, flags);
		if (next < 0 && errno == ENOENT) {
			r = make_one(g, dir, part + at, part, 0755);
			next = openat(dir, part + at, flags);
		}
		if (r == 0 && next < 0)
			r = -errno;
		fd_close(&dir);
		dir = next;
		at += len + (path[at + len] == '/');
	}
	return r < 0 ? r : take_fd(&dir);
}

static int is_stale(const char *what, const char *path, struct err *err)
{
	return err_set(err, ESTALE,
		       "%s: '%.300s' is no longer what it was a moment ago",
		       what, path);
}

/* Somebody else may have made it, and filled it, since it was judged. */
static int look_again(const struct guard *g, struct spec_bind *b, int fd,
		      struct err *err)
{
	const struct mount_ask ask = { .source = b->source,
				       .target = b->target,
				       .is_rw = b->mode == BIND_RW,
				       .policy = g->policy,
				       .policy_name = g->policy_name };
	struct mount_facts facts;
	struct request_mount now;
	struct stat st;

	if (fstat(fd, &st) < 0 || mount_look(&ask, &facts, &now, err) < 0 ||
	    st.st_ino != facts.ino || st.st_dev != facts.dev ||
	    strcmp(facts.path, b->source) != 0 || now.credential ||
	    now.not_protected)
		return is_stale("work_dir", b->source, err);
	b->dev = facts.dev;
	b->ino = facts.ino;
	return 0;
}

static int make_work_dir(struct guard *g, size_t i, struct err *err)
{
	const struct cordon_spec *s = g->given;
	struct spec_bind *b = &g->spec->binds[i];
	_cleanup_fd_ int fd = open_made(g, b->source);

	g->refused = REFUSED_INVALID;
	if (fd < 0)
		return err_errno(err, -fd, "work_dir: make '%s'", b->source);
	if (look_again(g, b, fd, err) < 0)
		return -err->code;
	if (b->mode == BIND_RW &&
	    guard_protect_dir(g, b, s->bind_dir ? s->bind_dir : s->work_dir,
			      err) < 0)
		return -err->code;
	g->refused = REFUSED_NOT;
	return 0;
}

/*
 * Before the box lives: what it can write on the host might be, or lie above,
 * such a directory, and a link there would lead us anywhere.
 */
static int open_copies(struct guard *g, struct err *err)
{
	for (size_t i = 0; i < g->spec->n_copies; i++) {
		const char *dir = g->spec->copies[i].dir;
		int r = make_one(g, AT_FDCWD, dir, dir, 0777);
		_cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY |
							O_NOFOLLOW | O_CLOEXEC);
		char path[4096];

		if (fd < 0) {
			g->refused = REFUSED_INVALID;
			return err_errno(err, r < 0 ? -r : errno,
					 "copy-out: open '%s'", dir);
		}
		if (fd_path(fd, path, sizeof(path)) < 0 ||
		    strcmp(path, dir) != 0)
			return is_stale("copy-out", dir, err);
		g->copies[g->n_copies++] = take_fd(&fd);
	}
	return 0;
}

static bool is_missing(const struct spec_bind *b)
{
	return b->is_work_dir && b->ino == MOUNT_MISSING;
}

bool guard_has_to_make(const struct guard *g)
{
	for (size_t i = 0; i < g->spec->n_binds; i++)
		if (is_missing(&g->spec->binds[i]))
			return true;
	return g->spec->n_copies > 0;
}

int guard_make(struct guard *g, struct err *err)
{
	/* What protects one may add others. */
	for (size_t i = 0, n = g->spec->n_binds; i < n; i++)
		if (is_missing(&g->spec->binds[i]) &&
		    make_work_dir(g, i, err) < 0)
			return -err->code;
	return open_copies(g, err);
}

void guard_unmake(struct guard *g)
{
	for (size_t i = g->made.n; i > 0; i--)
		(void)rmdir(g->made.v[i - 1]);
	strv_done(&g->made);
}
