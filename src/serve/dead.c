/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which part of the daemon died, when one did. The others see the end of it
 * and end as well, so the first that is seen to be gone need not be the one:
 * that is one that was killed by a signal; where there is none, one that ended
 * with an error. Nothing is reaped here.
 */

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/util.h"
#include "serve/daemon.h"

/* What closes its sockets is gone a moment later. */
#define WAIT_US 200000

static const char *const part_names[] = {
	[PART_KEEPER] = "keeper", [PART_CLERK] = "clerk", [PART_FRONT] = "front"
};
_Static_assert(ARRAY_SIZE(part_names) == PARTS, "a name for each");

/* Its end, if there is one: *ret_signal or *ret_code. */
static bool has_ended(const struct part *p, int *ret_signal, int *ret_code)
{
	siginfo_t info = { 0 };

	*ret_signal = *ret_code = 0;
	if (p->pid <= 0 ||
	    waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) <
		    0 ||
	    info.si_pid != p->pid)
		return false;
	*(info.si_code == CLD_EXITED ? ret_code : ret_signal) = info.si_status;
	return true;
}

/* Adds those that were killed, or those that failed; how many are gone. */
static int look(const struct daemon *d, bool killed, char *ret, size_t size)
{
	int n = 0;

	ret[0] = '\0';
	for (int i = 0; i < PARTS; i++) {
		int signal;
		int code;
		size_t len = strlen(ret);

		if (!has_ended(&d->parts[i], &signal, &code))
			continue;
		n++;
		if (killed ? !signal : !code)
			continue;
		(void)snprintf(ret + len, size - len, "%sthe %s died (%s %d)",
			       len ? ", " : "", part_names[i],
			       killed ? "signal" : "exit status",
			       killed ? signal : code);
	}
	return n;
}

void parts_dead(const struct daemon *d, int first, char *ret, size_t size)
{
	int64_t end = clock_us() + WAIT_US;

	while (look(d, true, ret, size) < PARTS && !ret[0] && clock_us() < end)
		(void)poll(NULL, 0, 10);
	if (!ret[0])
		(void)look(d, false, ret, size);
	if (!ret[0])
		(void)snprintf(ret, size, "the %s ended", part_names[first]);
}
