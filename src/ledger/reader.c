/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "ledger/line.h"

#define ROOM ((size_t)2 * LINE_MAX_SIZE)

int reader_open(struct reader *r, const char *dir, uint32_t file,
		uint64_t offset, struct err *err)
{
	*r = (struct reader){ .fd = NO_FD, .file = file, .offset = offset };
	r->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dir_fd < 0)
		return err_errno(err, errno, "open '%s'", dir);
	r->room = malloc(ROOM);
	if (!r->room) {
		reader_close(r);
		return err_errno(err, ENOMEM, "read '%s'", dir);
	}
	return 0;
}

void reader_close(struct reader *r)
{
	fd_close(&r->fd);
	fd_close(&r->dir_fd);
	free(r->room);
	r->room = NULL;
}

static int open_file(struct reader *r, uint32_t n)
{
	struct stat st;
	char name[24];
	int fd;

	(void)snprintf(name, sizeof(name), "%06u.jsonl", n);
	/* Not blocked by a pipe of that name. */
	fd = openat(r->dir_fd, name,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ELOOP ? -EMEDIUMTYPE : -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)close(fd);
		return -EMEDIUMTYPE;
	}
	return fd;
}

/* More bytes of this file behind those that are there; how many. */
static ssize_t fill(struct reader *r)
{
	size_t have = r->len - r->at;
	ssize_t n;

	if (r->at > 0) {
		memmove(r->room, r->room + r->at, have);
		r->at = 0;
		r->len = have;
	}
	do
		n = pread(r->fd, r->room + have, ROOM - have,
			  (off_t)(r->offset + have));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r->len += (size_t)n;
	return n;
}

static int give(struct reader *r, size_t len, bool is_torn,
		struct raw_line *ret)
{
	*ret = (struct raw_line){ .text = r->room + r->at,
				  .len = len,
				  .file = r->file,
				  .offset = r->offset,
				  .is_torn = is_torn };
	len += is_torn ? 0 : 1;
	r->at += len;
	r->offset += len;
	return 1;
}

/*
 * At the end of a file: 1 when there is a next one with something in it, or
 * when this one grew before that was made.
 */
static int next_file(struct reader *r)
{
	struct stat st;
	ssize_t n;
	int fd = open_file(r, r->file + 1);

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || st.st_size == 0) {
		(void)close(fd);
		return 0;
	}
	n = fill(r);
	if (n != 0) {
		(void)close(fd);
		return n < 0 ? (int)n : 1;
	}
	fd_close(&r->fd);
	r->fd = fd;
	r->file++;
	r->offset = 0;
	r->at = r->len = 0;
	return 1;
}

int reader_next(struct reader *r, struct raw_line *ret)
{
	for (;;) {
		size_t have = r->len - r->at;
		char *end = memchr(r->room + r->at, '\n', have);
		ssize_t n;

		if (end)
			return give(r, (size_t)(end - (r->room + r->at)), false,
				    ret);
		if (have >= LINE_MAX_SIZE)
			return give(r, have, true, ret);
		if (r->fd < 0) {
			r->fd = open_file(r, r->file);
			if (r->fd < 0)
				return r->fd == -ENOENT ? 0 : r->fd;
		}
		n = fill(r);
		if (n < 0)
			return (int)n;
		if (n > 0)
			continue;
		if (have > 0)
			return give(r, have, true, ret);
		n = next_file(r);
		if (n <= 0)
			return (int)n;
	}
}

void reader_again(struct reader *r, const struct raw_line *torn)
{
	r->offset = torn->offset;
	r->at = r->len = 0;
}
