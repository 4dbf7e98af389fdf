/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each box has a host uid that no other living box has, of whatever command:
 * the kernel counts pipes, watches, message queues and more per uid. It is the
 * box's user, whatever number that has inside.
 *
 * A box that stays may run programs as other users. Those have the host ids
 * of a block, 65536 in a row that are this box's alone: user N inside is the
 * Nth of it. The block is not where the uids are, so what its users own is
 * nobody's else, and the box's user keeps the one id that volumes know.
 *
 * The file `uids` in the runtime directory stays empty; a lock on its byte N
 * is the right to uid base+N, one on byte BLOCKS+N to block N. The lock belongs
 * to an open file description that box and keeper share, so the ids are free
 * only when both are gone.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/util.h"
#include "keeper/keeper.h"

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

#define BLOCKS (1U << 20)

/* Locks one of `count` bytes; which one, -EAGAIN if none is free. */
static int64_t lock_one(int fd, uint32_t from, uint32_t count)
{
	uint32_t at = 0;

	/* Any place to start from will do. */
	(void)!getrandom(&at, sizeof(at), GRND_NONBLOCK);
	for (uint32_t i = 0; i < count; i++, at++) {
		struct flock lock = { .l_type = F_WRLCK,
				      .l_whence = SEEK_SET,
				      .l_start = from + at % count,
				      .l_len = 1 };

		if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
			return at % count;
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
	}
	return -EAGAIN;
}

int uid_take(const struct world *w, uint32_t *ret_uid, struct err *err)
{
	_cleanup_fd_ int fd = openat(w->runtime_fd, "uids",
				     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
				     0600);
	int64_t n;

	if (fd < 0)
		return err_errno(err, errno, "open '%s/uids'", w->runtime);
	n = lock_one(fd, 0, w->uid_count);
	if (n == -EAGAIN)
		return err_set(err, EAGAIN, "all %u uids for boxes are in use",
			       w->uid_count);
	if (n < 0)
		return err_errno(err, (int)-n, "lock '%s/uids'", w->runtime);
	*ret_uid = w->uid_base + (uint32_t)n;
	return take_fd(&fd);
}

int block_take(const struct world *w, int lock, uint32_t *ret_base)
{
	int64_t n = lock_one(lock, BLOCKS, w->block_count);

	if (n < 0)
		return (int)n;
	*ret_base = w->block_base + (uint32_t)n * WIRE_IDS;
	return 0;
}

/*
 * The box's own id is `outside`; the others are those of the block, less the
 * one that this is. Root is not there unless it was said.
 */
void ids_format(const struct box *b, uint32_t inside, uint32_t outside,
		char *ret, size_t size)
{
	uint32_t first = b->ids.root ? 0 : 1;
	uint32_t next = inside < WIRE_IDS ? inside + 1 : WIRE_IDS;
	uint32_t end = MIN(inside, WIRE_IDS);
	size_t n = (size_t)snprintf(ret, size, "%u %u 1\n", inside, outside);

	if (!b->ids.many)
		return;
	if (end > first)
		n += (size_t)snprintf(ret + n, size - n, "%u %u %u\n", first,
				      b->host_block + first, end - first);
	next = MAX(next, first);
	if (next < WIRE_IDS)
		(void)snprintf(ret + n, size - n, "%u %u %u\n", next,
			       b->host_block + next, WIRE_IDS - next);
}
