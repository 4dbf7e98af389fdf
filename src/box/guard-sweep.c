/* SPDX-License-Identifier: Apache-2.0 */

/* When the box is dead: names that it must not have made (guard.h). */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/guard-parts.h"
#include "policy/never.h"

/* 0 or -errno. */
static int rename_to(int dir, const char *name, const char *away)
{
	return syscall(SYS_renameat2, dir, name, dir, away,
		       1 /* RENAME_NOREPLACE */) < 0
		       ? -errno
		       : 0;
}

bool guard_rename_away(int dir, const char *name, const char *stem, char *away,
		       size_t size)
{
	uint64_t random;
	int r = -EEXIST;

	for (int i = 0; r == -EEXIST && i < 8; i++) {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return false;
		(void)snprintf(away, size, "%s%016llx", stem,
			       (unsigned long long)random);
		r = rename_to(dir, name, away);
	}
	return r == 0;
}

/*
 * Gives it a name that nothing obeys; false if that cannot be done. A short
 * one, unless the box has made those names itself to keep it where it is.
 */
static bool move_away(int dir, const char *name, char *away, size_t size)
{
	char stem[96];
	int r = -EEXIST;

	for (int i = 0; r == -EEXIST && i < 10; i++) {
		(void)snprintf(away, size, "%s.cordon-removed-%d", name, i);
		r = rename_to(dir, name, away);
	}
	(void)snprintf(stem, sizeof(stem), "%s.cordon-removed-", name);
	return r == 0 ||
	       (r == -EEXIST && guard_rename_away(dir, name, stem, away, size));
}

/* A name that is not there is well; one that we may not look for is told. */
static void tell_unseen(const char *source, const char *name, int code,
			struct strv *ret)
{
	char line[600];

	if (code == ENOENT || code == ENOTDIR || code == ELOOP)
		return;
	(void)snprintf(line, sizeof(line),
		       "violation: '%s' in '%.300s' could not be looked for: "
		       "%s",
		       name, source, strerror(code));
	(void)strv_add(ret, line);
}

/*
 * The box may have taken away the owner's rights to a directory, so that what
 * it made there is not found: they are given back while we look. The mode
 * from before, or -1 where nothing was changed.
 */
int guard_unlock_dir(int dir)
{
	char path[64];
	struct stat st;

	if (fstat(dir, &st) < 0 || st.st_uid != geteuid() ||
	    (st.st_mode & 0700) == 0700)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	if (chmod(path, (st.st_mode & 07777) | 0700) < 0)
		return -1;
	return (int)(st.st_mode & 07777);
}

void guard_lock_dir(int dir, int mode)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	if (mode >= 0)
		(void)chmod(path, (mode_t)mode);
}

/*
 * The box is dead, but what it left may be links: the directory above a name
 * is entered without following one, and a rename does not follow either.
 */
static void sweep_name(int dir, const char *source, const char *name,
		       struct strv *ret)
{
	const char *slash = strchr(name, '/');
	const char *last = slash ? slash + 1 : name;
	char away[128];
	char line[600];
	struct stat st;
	bool gone;

	if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		tell_unseen(source, name, errno, ret);
		return;
	}
	gone = move_away(dir, last, away, sizeof(away));
	(void)snprintf(line, sizeof(line),
		       "violation: '%s' was made in '%.300s', where the box "
		       "must not; it %s%s",
		       name, source,
		       gone ? "is now " : "could not be moved away",
		       gone ? away : "");
	(void)strv_add(ret, line);
}

static void sweep_one(int at, const char *source, const char *name,
		      struct strv *ret)
{
	const char *slash = strchr(name, '/');
	_cleanup_fd_ int below = NO_FD;
	char top[64];
	int mode;

	if (!slash) {
		sweep_name(at, source, name, ret);
		return;
	}
	(void)snprintf(top, sizeof(top), "%.*s", (int)(slash - name), name);
	below = openat(at, top, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0) {
		tell_unseen(source, name, errno, ret);
		return;
	}
	mode = guard_unlock_dir(below);
	sweep_name(below, source, name, ret);
	guard_lock_dir(below, mode);
}

void guard_sweep_dir(const struct guard_watch *w, struct strv *ret)
{
	int mode = guard_unlock_dir(w->dir);

	for (size_t k = 0; k < 64 && never_made[k]; k++)
		if (w->missing & 1ULL << k)
			sweep_one(w->dir, w->source, never_made[k], ret);
	if (w->since)
		guard_links_sweep(w->dir, w->source, w->since, w->clock,
				  w->is_late, ret);
	guard_lock_dir(w->dir, mode);
}

void guard_sweep(struct guard *g, struct strv *ret)
{
	for (size_t i = 0; i < g->n_watches; i++)
		guard_sweep_dir(&g->watches[i], ret);
}
