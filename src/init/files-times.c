/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When directories were changed, as an archive says: whatever is put into one
 * changes that, so it is set when all else is done. What is to be set waits in
 * a file in memory, there is no heap: for each its time, the length of its
 * name, its name. What does not fit keeps the time it has.
 */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "init/files.h"

#define MAX_SIZE (16U << 20)

struct later {
	int64_t mtime_ns;
	uint32_t len;
};

static int list = NO_FD;
static size_t size;

void times_fill(int64_t mtime_ns, struct timespec ret[2])
{
	ret[0].tv_sec = mtime_ns / 1000000000;
	ret[0].tv_nsec = mtime_ns % 1000000000;
	ret[1] = ret[0];
}

void times_later(const char *name, size_t len, int64_t mtime_ns)
{
	const struct later l = { .mtime_ns = mtime_ns, .len = (uint32_t)len };

	if (list < 0)
		list = memfd_create("times", MFD_CLOEXEC);
	if (list < 0 || mtime_ns <= 0 || size + sizeof(l) + len > MAX_SIZE)
		return;
	size += sizeof(l) + len;
	if (io_write_all(list, &l, sizeof(l)) < 0 ||
	    io_write_all(list, name, len) < 0)
		size = MAX_SIZE; /* no more of them */
}

void times_set(void (*set)(const char *name, const struct timespec t[2],
			   int top),
	       int top)
{
	static char name[FILES_MAX_PATH + 1];
	struct timespec t[2];
	struct later l;

	if (list < 0 || lseek(list, 0, SEEK_SET) < 0)
		return;
	while (io_read_full(list, &l, sizeof(l)) == (ssize_t)sizeof(l) &&
	       l.len <= FILES_MAX_PATH &&
	       io_read_full(list, name, l.len) == (ssize_t)l.len) {
		name[l.len] = '\0';
		times_fill(l.mtime_ns, t);
		set(name, t, top);
	}
	fd_close(&list);
}
