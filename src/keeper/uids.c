/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each box has a host uid that no other living box has, of whatever command:
 * the kernel counts pipes, watches, message queues and more per uid.
 *
 * The file `uids` in the runtime directory stays empty; a lock on its byte N
 * is the right to uid base+N. The lock belongs to an open file description
 * that box and keeper share, so the uid is free only when both are gone.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/util.h"
#include "keeper/keeper.h"

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

int uid_take(const struct world *w, uint32_t *ret_uid, struct err *err)
{
	_cleanup_fd_ int fd = openat(w->runtime_fd, "uids",
				     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
				     0600);
	uint32_t at = 0;

	if (fd < 0)
		return err_errno(err, errno, "open '%s/uids'", w->runtime);
	/* Any place to start from will do. */
	(void)!getrandom(&at, sizeof(at), GRND_NONBLOCK);
	for (uint32_t i = 0; i < w->uid_count; i++, at++) {
		struct flock lock = { .l_type = F_WRLCK,
				      .l_whence = SEEK_SET,
				      .l_start = at % w->uid_count,
				      .l_len = 1 };

		if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
			*ret_uid = w->uid_base + at % w->uid_count;
			return take_fd(&fd);
		}
		if (errno != EAGAIN && errno != EACCES)
			return err_errno(err, errno, "lock '%s/uids'",
					 w->runtime);
	}
	return err_set(err, EAGAIN, "all %u uids for boxes are in use",
		       w->uid_count);
}
