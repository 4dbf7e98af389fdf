/* SPDX-License-Identifier: Apache-2.0 */

/*
 * New files, which have no name before they are whole.
 *
 * Where the file system can, a file is written without any name (O_TMPFILE),
 * and nothing is left of it however its writing ends. Elsewhere it has a name
 * that nobody can know, which goes when whoever sends it does. A directory of
 * the host may be written here, and boxes come and go: such names must neither
 * pile up nor meet again.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/util.h"
#include "init/files.h"

#define TRIES 16

/* The only file that is being written under a name, if there is one. */
static struct {
	int dir;
	char name[FRESH_NAME];
} named = { .dir = NO_FD };

int fresh_name(char ret[FRESH_NAME])
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return -errno;
	(void)snprintf(ret, FRESH_NAME, ".cordon-%016llx",
		       (unsigned long long)n);
	return 0;
}

static int open_named(int dir)
{
	int fd = NO_FD;
	int r = 0;

	for (int i = 0; fd < 0 && r == 0 && i < TRIES; i++) {
		r = fresh_name(named.name);
		if (r == 0)
			fd = openat(dir, named.name,
				    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
					    O_CLOEXEC,
				    0600);
		if (r == 0 && fd < 0 && errno != EEXIST)
			r = -errno;
	}
	if (fd >= 0)
		named.dir = dir;
	else if (r == 0)
		r = -EEXIST;
	return fd < 0 ? r : fd;
}

/* In a test build the other way can be asked for. */
static bool is_refused(void)
{
#ifdef CORDON_TEST_BUILD
	return getenv("CORDON_TEST_NO_TMPFILE");
#else
	return false;
#endif
}

int fresh_open(int dir)
{
	int fd = NO_FD;

	errno = EOPNOTSUPP;
	if (!is_refused())
		fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	/* As open(2) says, of file systems and of kernels that cannot. */
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR ||
		       errno == ENOENT || errno == EINVAL))
		return open_named(dir);
	return fd < 0 ? -errno : fd;
}

int fresh_link(int fd, int dir, char ret[FRESH_NAME])
{
	char path[48];
	int r;

	if (named.dir >= 0) {
		(void)snprintf(ret, FRESH_NAME, "%s", named.name);
		named.dir = NO_FD;
		return 0;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (int i = 0; i < TRIES; i++) {
		r = fresh_name(ret);
		if (r < 0)
			return r;
		if (linkat(AT_FDCWD, path, dir, ret, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

void fresh_drop(void)
{
	if (named.dir >= 0)
		(void)unlinkat(named.dir, named.name, 0);
	named.dir = NO_FD;
}
