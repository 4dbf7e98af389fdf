/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small things that every layer uses: scoped ownership and array sizes. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define NO_FD         (-EBADF)

/* Closes *fd if it is one, and leaves NO_FD there; errno is kept. */
static inline void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = NO_FD;
	errno = saved;
}

/* Moves the descriptor out of its owner. */
static inline int take_fd(int *fd)
{
	int moved = *fd;

	*fd = NO_FD;
	return moved;
}

static inline void free_ptr(void *p)
{
	free(*(void **)p);
}

#define _cleanup_fd_   __attribute__((cleanup(fd_close)))
#define _cleanup_free_ __attribute__((cleanup(free_ptr)))

#define take_ptr(p)                                                            \
	({                                                                     \
		__typeof__(p) moved_ = (p);                                    \
		(p) = NULL;                                                    \
		moved_;                                                        \
	})

/* <sys/param.h> has them too, and libraries bring it in. */
#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif
