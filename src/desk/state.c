/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/state.h"
#include "base/util.h"

/* The directories above it and itself, where they are missing. */
static int make(char *path, struct err *err)
{
	for (char *p = path + 1;; p++) {
		char kept = *p;

		if (kept != '/' && kept != '\0')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST &&
		    errno != EROFS && errno != EACCES)
			return err_errno(err, errno, "make '%s'", path);
		*p = kept;
		if (kept == '\0')
			return 0;
	}
}

static int check(const struct stat *st, const char *name, struct err *err)
{
	if (st->st_uid != geteuid())
		return err_set(err, EPERM, "'%s' belongs to uid %u, not to you",
			       name, st->st_uid);
	if (st->st_mode & 022)
		return err_set(err, EPERM,
			       "'%s' can be written by others: chmod go-w it, "
			       "or remove it",
			       name);
	return 0;
}

int desk_state_open(struct state *s, struct err *err)
{
	char path[sizeof(s->path)] = "";
	char real[PATH_MAX];
	struct stat st;
	size_t len;

	s->fd = NO_FD;
	if (state_path(path, sizeof(path), err) < 0)
		return -err->code;
	for (len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
		path[len - 1] = '\0';
	if (make(path, err) < 0)
		return -err->code;
	/* Above it links are as they are; it is none itself. */
	s->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st) < 0)
		return err_errno(err, errno, "open state directory '%s'", path);
	if (check(&st, path, err) < 0 || !realpath(path, real) ||
	    strlen(real) >= sizeof(s->path)) {
		state_close(s);
		return err->code ? -err->code
				 : err_set(err, EINVAL,
					   "find state directory '%s'", path);
	}
	(void)strcpy(s->path, real);
	return 0;
}

void state_close(struct state *s)
{
	fd_close(&s->fd);
}

/*
 * Not a file that lost its name while it was opened: whoever closes the store
 * last removes what SQLite keeps beside it.
 */
static int open_named(int dir, const char *name, int flags, struct stat *ret_st)
{
	for (int tries = 0; tries < 100; tries++) {
		int fd = openat(dir, name, flags, 0600);
		int code = errno;

		if (fd < 0)
			return -code;
		if (fstat(fd, ret_st) == 0 && ret_st->st_nlink > 0)
			return fd;
		(void)close(fd);
	}
	return -EBUSY;
}

int state_file(const struct state *s, const char *name, int flags,
	       struct err *err)
{
	struct stat st = { 0 };
	_cleanup_fd_ int fd = open_named(
		s->fd, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, &st);

	if (fd < 0)
		return err_errno(err, -fd, "open '%s/%.64s'", s->path, name);
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return err_set(err, EPERM,
			       "'%s/%.64s' is not a file of its own", s->path,
			       name);
	if (check(&st, name, err) < 0)
		return err_wrap(err, "in '%s'", s->path);
	return take_fd(&fd);
}
