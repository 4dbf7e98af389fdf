/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/parent.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/uapi.h"

static void parent_died(uv_poll_t *p, int status, int events)
{
	(void)p;
	(void)status;
	(void)events;
	/* Nobody is left to be told how its connections ended. */
	_exit(0);
}

int parent_watch(uv_loop_t *loop, const char *pid, struct err *err)
{
	static uv_poll_t watch;
	pid_t parent = (pid_t)strtol(pid, NULL, 10);
	int fd = sys_pidfd_open(parent);
	int r;

	/* In this order: it cannot have been another process meanwhile. */
	if (fd < 0 || getppid() != parent)
		return err_set(err, ESRCH, "the client is gone");
	r = uv_poll_init(loop, &watch, fd);
	if (r == 0)
		r = uv_poll_start(&watch, UV_READABLE, parent_died);
	if (r < 0)
		return err_errno(err, -r, "watch the client");
	uv_unref((uv_handle_t *)&watch);
	return 0;
}
