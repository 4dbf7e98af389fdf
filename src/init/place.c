/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Places to mount on. By now the root is the root, so that no path and no
 * link in it can lead out, and no program runs yet that could change one.
 *
 * What is missing is made, but only in file systems of the box's own: in a
 * directory of the host nothing is ever created for a mount (CVE-2024-45310).
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "init/init.h"

int place_own(struct init *in, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (in->n_own < ARRAY_SIZE(in->own))
		in->own[in->n_own++] = st.st_dev;
	return 0;
}

static bool is_own(const struct init *in, const char *dir)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return false;
	for (size_t i = 0; i < in->n_own; i++)
		if (in->own[i] == st.st_dev)
			return true;
	return false;
}

/* Makes one entry; the directory above it is there. */
static int make_one(const struct init *in, const char *path, bool is_file)
{
	char above[4096];
	size_t len = strlen(path);
	int fd;

	while (len > 1 && path[len - 1] != '/')
		len--;
	memcpy(above, path, len);
	above[len] = '\0';
	if (!is_own(in, above))
		return -EROFS;
	if (!is_file)
		return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	(void)close(fd);
	return 0;
}

int place_make(const struct init *in, const char *path, bool is_file)
{
	char part[4096];
	size_t len = strlen(path);

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	if (access(path, F_OK) == 0)
		return 0;
	for (size_t i = 1; i < len; i++) {
		int r;

		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		r = access(part, F_OK) == 0 ? 0 : make_one(in, part, false);
		if (r < 0)
			return r;
	}
	return make_one(in, path, is_file);
}
