/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a box's main program wrote, on disk.
 *
 * Two files below `logs`: ID.1 is written to, ID.0 is the half before it. When
 * ID.1 has reached half of the log's ceiling it becomes ID.0, whose former
 * content is gone: together they are never larger than the ceiling. Each file
 * is entries one after the other:
 *
 *	0   4  magic, "LOG1"
 *	4   4  length of the bytes, 1 to 65536
 *	8   8  time in nanoseconds since 1970
 *	16  1  stream, 1 or 2
 *	17  1  1: its first byte is in the middle of a line of that stream, so
 *	       that who begins there can leave out the rest of the line; else 0
 *	18  6  zero
 *	24     the bytes
 *
 * in the machine's byte order: nobody reads it elsewhere. A daemon that was
 * killed may leave a torn entry at the end; it is cut when the log is opened
 * again. Halves are counted from 1, so that a reader knows whether its own is
 * still there.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/util.h"
#include "front/front.h"

#define LOG_MAGIC 0x31474f4cU
#define LEAST     512 /* of a half */

struct head {
	uint32_t magic;
	uint32_t len;
	int64_t time_ns;
	uint8_t stream;
	uint8_t is_middle;
	uint8_t zero[6];
};
_Static_assert(sizeof(struct head) == LOG_HEAD, "no holes");

struct log {
	int dir;
	char name[2][72]; /* the half before, the half now */
	int fd[2];
	uint64_t size[2];
	uint64_t half;     /* number of the half now */
	uint64_t max;      /* of a half */
	bool is_middle[2]; /* what comes next, by stream */
};

bool log_head_parse(const void *bytes, size_t len, struct log_entry *ret)
{
	static const uint8_t zero[6];
	struct head h;

	if (len < sizeof(h))
		return false;
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != LOG_MAGIC || h.len == 0 || h.len > FRONT_SCRATCH ||
	    (h.stream != 1 && h.stream != 2) || h.is_middle > 1 ||
	    memcmp(h.zero, zero, sizeof(zero)) != 0)
		return false;
	ret->len = h.len;
	ret->stream = h.stream;
	ret->time_ns = h.time_ns;
	ret->is_middle = h.is_middle;
	return true;
}

static bool head_at(int fd, uint64_t size, uint64_t off, struct log_entry *ret)
{
	char bytes[LOG_HEAD];

	return off + LOG_HEAD <= size &&
	       pread(fd, bytes, LOG_HEAD, (off_t)off) == LOG_HEAD &&
	       log_head_parse(bytes, LOG_HEAD, ret) &&
	       off + LOG_HEAD + ret->len <= size;
}

/* How much of a file of an earlier daemon is whole entries. */
static uint64_t whole(struct log *l, int fd)
{
	struct log_entry e;
	uint64_t off = 0;
	struct stat st;
	char last;

	if (fstat(fd, &st) < 0)
		return 0;
	while (head_at(fd, (uint64_t)st.st_size, off, &e)) {
		off += LOG_HEAD + e.len;
		if (pread(fd, &last, 1, (off_t)off - 1) == 1)
			l->is_middle[e.stream - 1] = last != '\n';
	}
	return off;
}

size_t log_room(const struct log *l)
{
	return (size_t)MIN(l->max - LOG_HEAD, (uint64_t)FRONT_SCRATCH);
}

struct log *log_new(int dir, const char *id, uint64_t max)
{
	struct log *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->dir = dir;
	l->max = MAX(max / 2, (uint64_t)LEAST);
	l->half = 2;
	for (int i = 0; i < 2; i++) {
		(void)snprintf(l->name[i], sizeof(l->name[i]), "%.64s.%d", id,
			       i);
		l->fd[i] = openat(dir, l->name[i],
				  O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (l->fd[i] < 0)
			continue;
		l->size[i] = whole(l, l->fd[i]);
		if (ftruncate(l->fd[i], (off_t)l->size[i]) < 0)
			fd_close(&l->fd[i]);
	}
	return l;
}

void log_free(struct log *l)
{
	if (!l)
		return;
	fd_close(&l->fd[0]);
	fd_close(&l->fd[1]);
	free(l);
}

void log_remove(int dir, const char *id)
{
	char name[72];

	for (int i = 0; i < 2; i++) {
		(void)snprintf(name, sizeof(name), "%.64s.%d", id, i);
		(void)unlinkat(dir, name, 0);
	}
}

static void turn(struct log *l)
{
	(void)renameat(l->dir, l->name[1], l->dir, l->name[0]);
	fd_close(&l->fd[0]);
	l->fd[0] = take_fd(&l->fd[1]);
	l->size[0] = l->size[1];
	l->size[1] = 0;
	l->half++;
}

bool log_is_pushing(const struct log *l, const struct log_pos *p)
{
	return l->size[1] + LOG_HEAD + log_room(l) > l->max &&
	       p->half < l->half && p->off < l->size[0];
}

int log_add(struct log *l, int stream, int64_t time_ns, const char *data,
	    size_t len)
{
	struct head h = { .magic = LOG_MAGIC,
			  .len = (uint32_t)len,
			  .time_ns = time_ns,
			  .stream = (uint8_t)stream,
			  .is_middle = l->is_middle[stream == 2] };
	struct iovec v[2] = { { &h, sizeof(h) }, { (void *)data, len } };
	ssize_t n;

	if (len == 0 || len > log_room(l))
		return -EINVAL;
	if (l->size[1] > 0 && l->size[1] + LOG_HEAD + len > l->max)
		turn(l);
	if (l->fd[1] < 0) {
		l->fd[1] = openat(l->dir, l->name[1],
				  O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC |
					  O_NOFOLLOW,
				  0600);
		if (l->fd[1] < 0)
			return -errno;
	}
	n = pwritev(l->fd[1], v, 2, (off_t)l->size[1]);
	if (n != (ssize_t)(LOG_HEAD + len))
		return n < 0 ? -errno : -ENOSPC; /* the next overwrites it */
	l->size[1] += LOG_HEAD + len;
	l->is_middle[stream == 2] = data[len - 1] != '\n';
	return 0;
}

struct log_pos log_start(struct log *l)
{
	return (struct log_pos){ .half = l->half - (l->size[0] > 0), .off = 0 };
}

struct log_pos log_end(struct log *l)
{
	return (struct log_pos){ .half = l->half, .off = l->size[1] };
}

int log_get(struct log *l, struct log_pos *p, struct log_entry *ret, char *buf)
{
	for (;;) {
		int i;

		if (p->half + 1 < l->half) /* it was pushed out */
			*p = (struct log_pos){ .half = l->half - 1 };
		i = p->half == l->half;
		if (l->fd[i] >= 0 &&
		    head_at(l->fd[i], l->size[i], p->off, ret) &&
		    pread(l->fd[i], buf, ret->len,
			  (off_t)(p->off + LOG_HEAD)) == (ssize_t)ret->len)
			return 1;
		if (i)
			return 0;
		*p = (struct log_pos){ .half = l->half };
	}
}

void log_next(struct log_pos *p, const struct log_entry *e)
{
	p->off += LOG_HEAD + e->len;
}
