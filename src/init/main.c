/* SPDX-License-Identifier: Apache-2.0 */

/* cordon-init; see init.h. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "init/init.h"

static struct init init;

static void fail(void) __attribute__((noreturn));
static void fail(void)
{
	struct wire_msg msg = { .type = WIRE_FAILED, .job = init.conf.job };

	msg.outcome.err = init.err;
	(void)io_send(INIT_SOCK, &msg, sizeof(msg), NULL, 0);
	_exit(1);
}

static int map_spec(int fd)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0)
		return err_errno(&init.err, errno, "look at the spec");
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_errno(&init.err, errno, "map the spec");
	init.spec = p;
	return wire_check(init.spec, (uint64_t)st.st_size, &init.err);
}

/* The keeper's one message: spec, stdio, then the mounts in order. */
static int receive(void)
{
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	int at = 4;
	ssize_t n = io_recv(INIT_SOCK, &init.conf, sizeof(init.conf), 0, fds,
			    &n_fds);

	if (n == 0)
		_exit(0);
	if (n != sizeof(init.conf) || n_fds < 4)
		return err_set(&init.err, EPROTO, "expected a configuration");
	if (map_spec(fds[0]) < 0)
		return -init.err.code;
	(void)close(fds[0]);
	memcpy(init.stdio, fds + 1, sizeof(init.stdio));
	for (uint32_t i = 0; i < init.spec->n_mounts; i++) {
		init.mounts[i] = NO_FD;
		if (!(init.conf.mount_mask & 1ULL << i))
			continue;
		if (at >= n_fds)
			return err_set(&init.err, EPROTO, "a mount is missing");
		init.mounts[i] = fds[at++];
	}
	return 0;
}

int main(void)
{
	/* Pid 1 gets only signals it handles; a broken socket is an errno. */
	(void)signal(SIGPIPE, SIG_IGN);
	init.root = NO_FD;
	init.tty = NO_FD;
	if (stages_run_early(&init) < 0 || receive() < 0 ||
	    stages_run(&init) < 0)
		fail();
	fd_close(&init.root);
	steps_run(&init);
}
