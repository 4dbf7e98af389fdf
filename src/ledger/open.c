/* SPDX-License-Identifier: Apache-2.0 */

/* Where the ledger is, and that it is ours. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "base/state.h"
#include "base/util.h"
#include "ledger/internal.h"
#include "ledger/line.h"

int ledger_dir(char *ret, size_t size, struct err *err)
{
	size_t len;
	int r = state_path(ret, size, err);

	if (r < 0)
		return r;
	len = strlen(ret);
	if (len + sizeof("/ledger") > size)
		return err_set(err, ENAMETOOLONG,
			       "the state directory's name is too long");
	(void)strcpy(ret + len, "/ledger");
	return 0;
}

/* Makes what is missing of a path, for its owner only. */
static int make_dirs(const char *path, struct err *err)
{
	char part[4096];

	(void)snprintf(part, sizeof(part), "%s", path);
	for (char *p = part + 1;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return err_errno(err, errno, "make '%s'", part);
		*p = c;
		if (c == '\0')
			return 0;
	}
}

/* Nobody but us (and root, who can do anything) may change it. */
static int check_owner(int fd, const char *what, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "look at '%s'", what);
	if (st.st_uid != geteuid())
		return err_set(err, EPERM,
			       "'%s' belongs to user %u, not to user %u", what,
			       st.st_uid, geteuid());
	if (st.st_mode & 022)
		return err_set(err, EPERM,
			       "'%s' is writable for others; 'chmod go-w' it",
			       what);
	return 0;
}

/* Who may write above it could put another ledger in its place. */
static int check_above(const struct ledger *l, struct err *err)
{
	struct stat st;

	if (fstatat(l->dir_fd, "..", &st, 0) < 0)
		return err_errno(err, errno, "look above '%s'", l->dir);
	if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
		return err_set(err, EPERM,
			       "the directory above '%s' is writable for "
			       "others; 'chmod go-w' it",
			       l->dir);
	return 0;
}

static int open_dir(struct ledger *l, struct err *err)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	int r;

	l->dir_fd = open(l->dir, flags);
	if (l->dir_fd < 0 && errno == ENOENT) {
		r = make_dirs(l->dir, err);
		if (r < 0)
			return r;
		l->dir_fd = open(l->dir, flags);
	}
	if (l->dir_fd < 0)
		return err_errno(err, errno, "open '%s'", l->dir);
	r = check_owner(l->dir_fd, l->dir, err);
	return r < 0 ? r : check_above(l, err);
}

static int64_t size_at(const struct ledger *l, const char *name)
{
	struct stat st;

	return fstatat(l->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0
		       ? 0
		       : (int64_t)st.st_size;
}

/*
 * The file `head` is made only where there is no record yet: without it
 * nobody knows what was acknowledged. Whoever dies in here leaves one that is
 * empty; two that are in here at once wait for each other.
 */
static int make_head(struct ledger *l, struct err *err)
{
	char name[24];
	int r = head_lock(l->head, HEAD_WRITER, true);

	if (r < 0)
		return err_errno(err, -r, "lock '%s/head'", l->dir);
	ledger_file_name(1, name);
	if (size_at(l, "head") == HEAD_SIZE)
		r = 0;
	else if (size_at(l, name) > 0)
		r = err_set(err, EBADMSG,
			    "'%s' has records but no whole file 'head'; look "
			    "with 'cordon audit verify', then move the "
			    "directory away and keep it",
			    l->dir);
	else {
		r = head_make(l->head);
		if (r == 0 && fsync(l->dir_fd) < 0)
			r = -errno;
		if (r < 0)
			r = err_errno(err, -r, "make '%s/head'", l->dir);
	}
	head_unlock(l->head, HEAD_WRITER);
	return r;
}

static int open_head(struct ledger *l, struct err *err)
{
	int r;

	l->head = openat(l->dir_fd, "head",
			 O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->head < 0)
		return err_errno(err, errno, "open '%s/head'", l->dir);
	r = check_owner(l->head, "head", err);
	if (r == 0 && size_at(l, "head") != HEAD_SIZE)
		r = make_head(l, err);
	return r;
}

int ledger_open(const char *dir, struct ledger **ret, struct err *err)
{
	const char *size = getenv("CORDON_LEDGER_FILE_SIZE");
	struct ledger *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_errno(err, ENOMEM, "open the ledger");
	l->dir_fd = l->head = l->fd = NO_FD;
	l->file_size = LEDGER_FILE_SIZE;
	buf_init(&l->line, LINE_MAX_SIZE + 1024);
	if (size && *size && num_parse_size(size, &l->file_size) < 0)
		r = err_set(err, EINVAL,
			    "CORDON_LEDGER_FILE_SIZE is not a size: '%s'",
			    size);
	else if (!dir)
		r = ledger_dir(l->dir, sizeof(l->dir), err);
	else
		r = snprintf(l->dir, sizeof(l->dir), "%s", dir) <
				    (int)sizeof(l->dir)
			    ? 0
			    : err_set(err, ENAMETOOLONG,
				      "the name is too long");
	if (r == 0)
		r = open_dir(l, err);
	if (r == 0)
		r = open_head(l, err);
	if (r < 0) {
		ledger_close(l);
		return err_wrap(err, "ledger");
	}
	*ret = l;
	return 0;
}

void ledger_close(struct ledger *l)
{
	if (!l)
		return;
	fd_close(&l->fd);
	fd_close(&l->head);
	fd_close(&l->dir_fd);
	buf_done(&l->line);
	free(l);
}
