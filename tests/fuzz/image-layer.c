/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A layer of any bytes, unpacked. Beside its directory stand a file and a
 * directory that it must not reach; inside there is nothing that an archive
 * may not bring; and all of it can be removed.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/tree.h"
#include "image/unpack.h"
#include "fuzz.h"

#define WORD "untouched"

static int shm = -1;
static int top = -1; /* made anew for each input */
static char name[] = "cordon-fuzz-0123456789";

static void prepare(void)
{
	int fd;

	shm = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(name, sizeof(name), "cordon-fuzz-%d", (int)getpid());
	MUST(shm >= 0 && mkdirat(shm, name, 0700) == 0);
	top = openat(shm, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(top >= 0 && mkdirat(top, "beside", 0700) == 0);
	fd = openat(top, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	MUST(write(fd, WORD, strlen(WORD)) == (ssize_t)strlen(WORD));
	(void)close(fd);
}

static void clean(void)
{
	MUST(image_tree_remove(shm, name) == 0);
	(void)close(top);
	(void)close(shm);
}

static int count(int fd)
{
	DIR *d = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));
	int n = 0;

	MUST(d);
	rewinddir(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n - 2;
}

static void is_untouched(void)
{
	char have[32] = "";
	struct stat st;
	int fd = openat(top, "file", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int beside = openat(top, "beside",
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	MUST(fd >= 0 && beside >= 0 && fstat(fd, &st) == 0);
	MUST(st.st_nlink == 1 && (st.st_mode & 07777) == 0600);
	MUST(read(fd, have, sizeof(have)) == (ssize_t)strlen(WORD));
	MUST(strcmp(have, WORD) == 0);
	MUST(count(beside) == 0 && count(top) == 3);
	(void)close(fd);
	(void)close(beside);
}

static void is_tame(int dir, const char *at)
{
	struct stat st;
	struct dirent *e;
	DIR *d;

	MUST(fstatat(dir, at, &st, AT_SYMLINK_NOFOLLOW) == 0);
	MUST(!(st.st_mode & 06000) && st.st_uid == geteuid());
	MUST(S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ||
	     S_ISDIR(st.st_mode) || (S_ISCHR(st.st_mode) && st.st_rdev == 0));
	if (!S_ISDIR(st.st_mode) || (st.st_mode & 0700) != 0700)
		return;
	d = fdopendir(openat(dir, at,
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	MUST(d);
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			is_tame(dirfd(d), e->d_name);
	(void)closedir(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct image_limits limits = { .archive = 1 << 20,
					     .size = 1 << 20,
					     .file = 1 << 19,
					     .files = 100,
					     .ratio = 200 };
	struct image_unpacked sum;
	struct err err = { 0 };
	int fd = memfd_create("layer", MFD_CLOEXEC);
	int fs;

	prepare();
	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	MUST(lseek(fd, 0, SEEK_SET) == 0 && mkdirat(top, "fs", 0700) == 0);
	fs = openat(top, "fs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(fs >= 0);
	if (image_unpack(fd, fs, &limits, NULL, &sum, &err) < 0)
		MUST(err.code && err.text[0]);
	MUST(sum.size <= limits.size && sum.files <= limits.files + 1);
	is_untouched();
	is_tame(top, "fs");
	MUST(image_tree_remove(top, "fs") == 0);
	clean();
	(void)close(fs);
	(void)close(fd);
	return 0;
}
