/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Opening what is below a directory, through no link and never above it. */

#include <errno.h>
#include <fcntl.h>

#include "os/uapi.h"

/* A descriptor, or -errno. */
static inline int open_below(int dir, const char *path, int flags)
{
	const struct uapi_open_how how = {
		.flags = (uint64_t)flags | O_CLOEXEC,
		.resolve = UAPI_RESOLVE_BENEATH | UAPI_RESOLVE_NO_SYMLINKS |
			   UAPI_RESOLVE_NO_MAGICLINKS,
	};
	int fd = sys_openat2(dir, path, &how);

	return fd < 0 ? -errno : fd;
}
