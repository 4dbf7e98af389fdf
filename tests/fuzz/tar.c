/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What `cordon cp` unpacks. The first byte says how the rest is cut into
 * pieces. That nothing is made outside of the target is tests/unit/tar.c's.
 */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/tar.h"
#include "fuzz.h"

static char dir_name[64];

static int open_top(void)
{
	struct rlimit limit = { 1 << 20, 1 << 20 };

	(void)strcpy(dir_name, "/dev/shm/cordon-fuzz-tar.XXXXXX");
	if (!mkdtemp(dir_name))
		abort();
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	return open(dir_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void clear(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		_cleanup_fd_ int below = NO_FD;

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, d->d_name, 0) == 0)
			continue;
		below = openat(fd, d->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0)
			clear(below);
		(void)unlinkat(fd, d->d_name, AT_REMOVEDIR);
	}
	if (dir)
		(void)closedir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tar_reader t;
	struct err err = { 0 };
	size_t step;
	int top;

	if (size < 1)
		return 0;
	top = open_top();
	step = data[0] ? data[0] * 7U : 65536;
	data++;
	size--;
	tar_reader_init(&t, top);
	for (size_t at = 0; at < size; at += step)
		if (tar_reader_take(&t, (const char *)data + at,
				    MIN(step, size - at), &err) < 0)
			break;
	(void)tar_reader_end(&t, &err);
	tar_reader_done(&t);
	clear(top);
	(void)close(top);
	(void)rmdir(dir_name);
	return 0;
}
