/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The note for whoever comes after a crash.
 *
 * Everything a box has goes with its processes, except cgroup directories. So
 * before the first one is made, the keeper writes `keepers/ID` in the runtime
 * directory, holding the directories in which it will make groups, one a
 * line; their names begin with "cordon-ID-". It keeps the file locked while
 * it lives. A record that can be locked belongs to a dead keeper: its groups
 * are killed, removed, and the record with them. Doing that twice is harmless.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"

#define DIRECTORY "keepers"
#define YOUNG_S   10

static int open_directory(const struct world *w)
{
	if (mkdirat(w->runtime_fd, DIRECTORY, 0700) < 0 && errno != EEXIST)
		return -errno;
	return openat(w->runtime_fd, DIRECTORY,
		      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int record_open(struct keeper *k, struct err *err)
{
	_cleanup_fd_ int dir = open_directory(&k->world);
	static char text[CG_ROLES * (CG_PATH_MAX + 1)];
	char hidden[32];
	size_t len = 0;

	k->record = NO_FD;
	for (int i = 0; i < CG_ROLES; i++) {
		const struct cg_parent *p = &k->cg.role[i];

		if (p->fd >= 0 && (int)p->same == i)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s\n", p->path);
	}
	if (len == 0)
		return 0;
	if (dir < 0)
		return err_errno(err, errno, "make '%s/" DIRECTORY "'",
				 k->world.runtime);
	/* Whoever sweeps sees it under its name only when it is locked. */
	(void)snprintf(hidden, sizeof(hidden), ".%s", k->id);
	k->record = openat(dir, hidden,
			   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			   0600);
	if (k->record < 0 || flock(k->record, LOCK_EX | LOCK_NB) < 0 ||
	    io_write_all(k->record, text, len) < 0 ||
	    renameat(dir, hidden, dir, k->id) < 0) {
		(void)err_errno(err, errno, "write '%s/" DIRECTORY "/%s'",
				k->world.runtime, k->id);
		(void)unlinkat(dir, hidden, 0);
		return -err->code;
	}
	return 0;
}

int record_add(struct keeper *k, const char *path, struct err *err)
{
	char line[CG_PATH_MAX + 2];
	int len = snprintf(line, sizeof(line), "%s\n", path);

	if (k->record < 0 || lseek(k->record, 0, SEEK_END) < 0 ||
	    io_write_all(k->record, line, (size_t)len) < 0)
		return err_errno(err, errno, "write to the record");
	return 0;
}

void record_remove(struct keeper *k)
{
	_cleanup_fd_ int dir = NO_FD;

	if (k->record < 0)
		return;
	dir = open_directory(&k->world);
	if (dir >= 0)
		(void)unlinkat(dir, k->id, 0);
	fd_close(&k->record);
}

static int sweep_parent(const char *path, const char *prefix)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int bad = 0;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while ((e = readdir(d)))
		if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
		    cg_sweep(path, e->d_name) < 0)
			bad = -EBUSY;
	(void)closedir(d);
	return bad;
}

/* One that is still hidden after a while is of a keeper that died early. */
static void sweep_hidden(int dir, const char *name)
{
	struct stat st;

	if (strlen(name) > 2 &&
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    time(NULL) - st.st_mtime > YOUNG_S)
		(void)unlinkat(dir, name, 0);
}

/* False: something of a dead keeper is left. */
static bool sweep_record(int dir, const char *name)
{
	_cleanup_fd_ int fd = openat(dir, name,
				     O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	static char text[CG_ROLES * (CG_PATH_MAX + 1)];
	char prefix[64];
	ssize_t n;
	int bad = 0;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return true;
	n = io_read_full(fd, text, sizeof(text) - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	(void)snprintf(prefix, sizeof(prefix), "cordon-%.40s-", name);
	for (char *line = text; *line;) {
		char *end = strchrnul(line, '\n');
		bool more = *end;

		*end = '\0';
		if (line[0] == '/' && sweep_parent(line, prefix) < 0)
			bad = 1;
		line = end + more;
	}
	if (!bad)
		(void)unlinkat(dir, name, 0);
	return !bad;
}

bool record_sweep(const struct world *w)
{
	int fd = openat(w->runtime_fd, DIRECTORY,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	bool is_clean = true;
	struct dirent *e;

	if (!d) {
		is_clean = fd < 0 && errno == ENOENT;
		fd_close(&fd);
		return is_clean;
	}
	while ((e = readdir(d)))
		if (e->d_name[0] == '.')
			sweep_hidden(dirfd(d), e->d_name);
		else
			is_clean &= sweep_record(dirfd(d), e->d_name);
	(void)closedir(d);
	return is_clean;
}
