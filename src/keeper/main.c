/* SPDX-License-Identifier: Apache-2.0 */

/* cordon-keeper, as the library starts it: the client's socket is fd 3. */

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "keeper/keeper.h"
#include "os/slice.h"

static struct keeper keeper;

/* Moves the socket away from the numbers that init will have. */
static int take_socket(void)
{
	int sock = fcntl(3, F_DUPFD_CLOEXEC, KEEPER_FIRST_FD);

	/* A lock that says that our boxes are not gone yet; never closed. */
	(void)fcntl(4, F_DUPFD_CLOEXEC, KEEPER_FIRST_FD);
	for (int fd = 3; fd < KEEPER_FIRST_FD; fd++) {
		(void)dup2(0, fd);
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
	return sock;
}

int main(int argc, char **argv)
{
	pid_t client = getppid();

	/* Not in the terminal's process group: Ctrl-C is the client's. */
	(void)setsid();
	(void)!chdir("/");
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	/* A program that ignores it may use the library. */
	(void)signal(SIGCHLD, SIG_DFL);
	slice_short();
	keeper.only_stays = argc > 1 && strcmp(argv[1], "session") == 0;
	keeper_open(&keeper, take_socket(), client,
		    keeper.only_stays ||
			    (argc > 1 && strcmp(argv[1], "reused") == 0));
	while (!keeper.is_over)
		keeper_step(&keeper, keeper_timeout_ms(&keeper));
	keeper_close(&keeper);
	return 0;
}
