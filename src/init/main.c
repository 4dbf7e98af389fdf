/* SPDX-License-Identifier: Apache-2.0 */

/* cordon-init; see init.h. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "init/init.h"

#define PATIENCE_US 500

static struct init init;

static void fail(void) __attribute__((noreturn));
static void fail(void)
{
	struct wire_msg msg = { .type = WIRE_FAILED, .job = init.job };

	msg.outcome.err = init.err;
	(void)io_send(INIT_SOCK, &msg, sizeof(msg), NULL, 0);
	_exit(1);
}

const void *init_map(struct init *in, int fd, uint64_t *ret_size)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0) {
		(void)err_errno(&in->err, errno, "look at the spec");
		return NULL;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (p == MAP_FAILED) {
		(void)err_errno(&in->err, errno, "map the spec");
		return NULL;
	}
	*ret_size = (uint64_t)st.st_size;
	return p;
}

/*
 * What comes at once is looked for before it is waited for: a CPU that has
 * gone to sleep, above all a virtual one, takes longer to wake up.
 */
static ssize_t receive(void *msg, size_t size, int *fds, int *ret_n)
{
	int64_t end = init.go.is_next ? clock_us() + PATIENCE_US : 0;
	ssize_t len;

	do
		len = io_recv(INIT_SOCK, msg, size, end ? MSG_DONTWAIT : 0, fds,
			      ret_n);
	while (len == -EAGAIN && clock_us() < end);
	return len != -EAGAIN ? len
			      : io_recv(INIT_SOCK, msg, size, 0, fds, ret_n);
}

/* One message of exactly this form; the keeper's end is ours too. */
static int expect(void *msg, size_t size, uint32_t type, int *fds, int n_fds)
{
	int n = 0;
	ssize_t len = receive(msg, size, fds, &n);

	if (len == 0)
		_exit(0);
	if (len != (ssize_t)size || *(uint32_t *)msg != type || n < n_fds)
		return err_set(&init.err, EPROTO, "expected message %u", type);
	return n;
}

static int receive_ids(void)
{
	int fds[IO_MAX_FDS];
	int n = expect(&init.go, sizeof(init.go), WIRE_GO, fds, 0);

	return n < 0 ? n : 0;
}

static int receive_spec(void)
{
	struct wire_head head = { 0 };
	int fds[IO_MAX_FDS];
	int n = expect(&head, sizeof(head), WIRE_SPEC, fds, 1);
	uint64_t size = 0;

	if (n < 0)
		return n;
	init.box = init_map(&init, fds[0], &size);
	if (!init.box || wire_check_box(init.box, size, &init.err) < 0)
		return -init.err.code;
	return 0;
}

static int receive_conf(void)
{
	int fds[IO_MAX_FDS];
	int n = expect(&init.conf, sizeof(init.conf), WIRE_CONF, fds, 0);
	int at = 0;

	if (n < 0)
		return n;
	for (uint32_t i = 0; i < init.box->n_mounts; i++) {
		init.mounts[i] = NO_FD;
		if (!wire_has_mount(&init.conf, i))
			continue;
		if (at >= n)
			return err_set(&init.err, EPROTO, "a mount is missing");
		init.mounts[i] = fds[at++];
	}
	return 0;
}

static int receive_bounds(void)
{
	int fds[IO_MAX_FDS];
	int n = expect(&init.bounds, sizeof(init.bounds), WIRE_BOUNDS, fds, 0);

	if (n < 0)
		return n;
	if (init.bounds.n_tasks > WIRE_MAX_TASKS ||
	    (int)init.bounds.n_tasks > n)
		return err_set(&init.err, EPROTO, "a group is missing");
	for (uint32_t i = 0; i < init.bounds.n_tasks; i++)
		init.tasks[i] = fds[i];
	return 0;
}

static int receive_work(void)
{
	struct wire_head head = { 0 };
	int fds[IO_MAX_FDS];
	bool has_gate = init_has_gate(&init);
	int n = expect(&head, sizeof(head), WIRE_WORK, fds, has_gate ? 5 : 4);
	uint64_t size = 0;

	if (n < 0)
		return n;
	init.job = head.job;
	if (has_gate)
		init.gate = fds[4];
	init.work = init_map(&init, fds[0], &size);
	if (!init.work || wire_check_work(init.work, size, &init.err) < 0)
		return -init.err.code;
	/* On a terminal, the terminal is all three. */
	for (int i = 0; i < 3; i++) {
		if (init.tty >= 0)
			(void)close(fds[i + 1]);
		else
			init.stdio[i] = fds[i + 1];
	}
	return 0;
}

int main(void)
{
	/* Pid 1 gets only signals it handles; a broken socket is an errno. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(022);
	(void)prctl(PR_SET_NAME, "cordon-init");
	init.root = NO_FD;
	init.old = NO_FD;
	init.next = NO_FD;
	init.tty = NO_FD;
	init.witness = NO_FD;
	init.pts = NO_FD;
	for (int i = 0; i < CHANGES; i++)
		init.changes.upper[i] = init.changes.lower[i] = NO_FD;
	init.gate = NO_FD;
	for (int i = 0; i < 3; i++)
		init.stdio[i] = NO_FD;
	if (receive_ids() < 0 || stages_run(&init, STAGES_OWN) < 0 ||
	    receive_spec() < 0 || stages_run(&init, STAGES_ROOT) < 0 ||
	    receive_conf() < 0 || stages_run(&init, STAGES_BOX) < 0 ||
	    receive_bounds() < 0 || stages_run(&init, STAGES_WALL) < 0)
		fail();
	/* From here on init holds no directory that a path could lead to. */
	fd_close(&init.root);
	if (init.conf.stays)
		session_serve(&init);
	if (receive_work() < 0 || stages_run(&init, STAGES_WORK) < 0)
		fail();
	steps_run(&init);
}
