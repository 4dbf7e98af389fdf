/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/head.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "ledger/line.h"

#define PLACE    128
#define LOCKS_AT (1LL << 40)

struct place {
	struct mark mark;
	uint32_t crc;
	char rest[PLACE - sizeof(struct mark) - sizeof(uint32_t)];
};
_Static_assert(sizeof(struct place) == PLACE, "a place has its size");

_Static_assert(HEAD_SIZE == MARKS * 2 * PLACE, "all places");

int head_make(int fd)
{
	static const char none[HEAD_SIZE];

	if (pwrite(fd, none, sizeof(none), 0) != (ssize_t)sizeof(none))
		return errno ? -errno : -ENOSPC;
	return fsync(fd) < 0 ? -errno : 0;
}

int head_lock(int fd, enum head_lock which, bool wait)
{
	struct flock lock = { .l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_start = LOCKS_AT + (off_t)which,
			      .l_len = 1 };

	while (fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

void head_unlock(int fd, enum head_lock which)
{
	struct flock lock = { .l_type = F_UNLCK,
			      .l_whence = SEEK_SET,
			      .l_start = LOCKS_AT + (off_t)which,
			      .l_len = 1 };
	int saved = errno;

	(void)fcntl(fd, F_OFD_SETLK, &lock);
	errno = saved;
}

static bool is_empty(const struct place *p)
{
	static const struct place none;

	return memcmp(p, &none, sizeof(none)) == 0;
}

static bool is_whole(const struct place *p)
{
	static const char none[sizeof(p->rest)];

	return p->mark.count > 0 &&
	       p->crc == crc32c(&p->mark, sizeof(p->mark)) &&
	       memcmp(p->rest, none, sizeof(none)) == 0;
}

static int choose(const struct place two[2], struct mark *ret)
{
	bool a = is_whole(&two[0]);
	bool b = is_whole(&two[1]);

	*ret = (struct mark){ 0 };
	if (a && (!b || two[0].mark.count > two[1].mark.count))
		*ret = two[0].mark;
	else if (b)
		*ret = two[1].mark;
	else if (!is_empty(&two[0]) || !is_empty(&two[1]))
		return -EBADMSG;
	return 0;
}

int head_read(int fd, struct mark ret[MARKS])
{
	struct place all[MARKS][2];
	int r = -EBADMSG;

	/* A reader without the mark's lock may meet a place half written. */
	for (int tries = 0; tries < 4 && r == -EBADMSG; tries++) {
		ssize_t n;

		memset(all, 0, sizeof(all));
		n = pread(fd, all, sizeof(all), 0);
		if (n < 0)
			return -errno;
		if (n != sizeof(all)) {
			r = -EBADMSG;
			continue;
		}
		r = choose(all[MARK_APPENDED], &ret[MARK_APPENDED]);
		if (r == 0)
			r = choose(all[MARK_SYNCED], &ret[MARK_SYNCED]);
	}
	return r;
}

int head_write(int fd, enum mark_name which, struct mark *m)
{
	struct place p;
	off_t at;

	m->count++;
	memset(&p, 0, sizeof(p));
	p.mark = *m;
	p.crc = crc32c(&p.mark, sizeof(p.mark));
	at = (off_t)PLACE * (2 * (off_t)which + (off_t)(m->count & 1));
	for (;;) {
		ssize_t n = pwrite(fd, &p, sizeof(p), at);

		if (n == (ssize_t)sizeof(p))
			return 0;
		if (n >= 0)
			return -ENOSPC;
		if (errno != EINTR)
			return -errno;
	}
}

bool head_check(int fd)
{
	struct place all[MARKS * 2 + 1];
	bool is_good = false;

	/* As in head_read(): a place may be just being written. */
	for (int tries = 0; tries < 4 && !is_good; tries++) {
		memset(all, 0, sizeof(all));
		is_good = pread(fd, all, sizeof(all), 0) == HEAD_SIZE;
		for (int i = 0; i < MARKS * 2; i++)
			if (!is_empty(&all[i]) && !is_whole(&all[i]))
				is_good = false;
	}
	return is_good;
}
