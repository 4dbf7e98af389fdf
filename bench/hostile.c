/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Processes that do not want to end, for deadline.c.
 *
 *	hostile COUNT NAME
 *
 * Starts COUNT processes, each orphaned by a double fork, in a session of
 * its own, deaf to every signal that can be ignored, holding the output
 * open. Each is called NAME and writes one byte when it is ready. When all
 * are, every fourth spins; the others and the first process sleep.
 */

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void be_deaf(const char *name)
{
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_IGN);
	(void)prctl(PR_SET_NAME, name, 0, 0, 0);
}

__attribute__((noreturn)) static void stay(int spins)
{
	volatile unsigned long n = 0;

	for (;;) {
		n++;
		if (!spins)
			(void)pause();
	}
}

int main(int argc, char **argv)
{
	int all[2];
	char byte;

	if (argc != 3 || pipe(all) < 0)
		return 2;
	for (int i = 0; i < atoi(argv[1]); i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 2;
		if (pid > 0) {
			(void)waitpid(pid, NULL, 0);
			continue;
		}
		(void)setsid();
		pid = fork();
		if (pid != 0)
			_exit(0);
		be_deaf(argv[2]);
		(void)close(all[1]);
		(void)!write(1, "+", 1);
		/* Until the first process has let go: all are there. */
		(void)!read(all[0], &byte, 1);
		stay(i % 4 == 0);
	}
	be_deaf(argv[2]);
	(void)close(all[1]);
	stay(0);
}
