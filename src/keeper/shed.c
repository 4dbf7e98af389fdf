/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a keeper of many boxes lets go of, let go of by a child.
 *
 * The last descriptor of a mount, or of a namespace with mounts in it, takes
 * them down when it is closed, and the kernel waits for all processors in
 * between: a twentieth to a fifth of a millisecond each time, half a dozen
 * times for each box, in which nobody else's box could be made or ended. So
 * such descriptors go to a child in a message, and it closes them. It reads
 * nothing, has no right and no other descriptor, and ends with the keeper.
 *
 * Only what nobody waits for goes this way; what is to be used again (a layer
 * for changes has one overlayfs at a time) is waited for, by a message without
 * descriptors, which is answered. Where there is no child, or it has more to do
 * than its socket holds, the keeper closes them itself.
 */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/caps.h"
#include "os/uapi.h"

static void close_all(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
}

static void work(int sock, pid_t keeper) __attribute__((noreturn));
static void work(int sock, pid_t keeper)
{
	struct err unused = { 0 };
	int fds[IO_MAX_FDS];
	int n = 0;
	char byte;

	(void)prctl(PR_SET_NAME, "cordon-shed");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    getppid() != keeper || dup2(sock, 0) < 0 ||
	    sys_close_range(1, ~0U) < 0 || caps_drop_held(&unused) < 0)
		_exit(1);
	while (io_recv(0, &byte, 1, 0, fds, &n) == 1) {
		if (n == 0)
			(void)send(0, "", 1, MSG_NOSIGNAL);
		close_all(fds, n);
	}
	_exit(0);
}

void shed_open(struct keeper *k)
{
	pid_t keeper = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	k->shed = fork();
	if (k->shed == 0)
		work(pair[1], keeper);
	(void)close(pair[1]);
	if (k->shed < 0) {
		k->shed = 0;
		(void)close(pair[0]);
		return;
	}
	k->shed_sock = pair[0];
}

void shed_fds(const struct keeper *k, int *fds, int n)
{
	int some[KEEPER_SHED];
	int count = 0;

	for (int i = 0; i < n && count < KEEPER_SHED; i++)
		if (fds[i] >= 0)
			some[count++] = fds[i];
	if (count > 0 && k->shed > 0)
		(void)io_send_now(k->shed_sock, "", 1, some, count);
	/* Those that went have another holder now. */
	close_all(fds, n);
}

void shed_settle(const struct keeper *k)
{
	char byte;

	if (k->shed > 0 && io_send(k->shed_sock, "", 1, NULL, 0) == 0)
		(void)recv(k->shed_sock, &byte, 1, 0);
}

void shed_close(struct keeper *k)
{
	if (k->shed <= 0)
		return;
	fd_close(&k->shed_sock);
	(void)waitpid(k->shed, NULL, 0);
	k->shed = 0;
}
