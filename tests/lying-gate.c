/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What tests/serve.c puts in the place of cordon-gate: one that a box has taken
 * over. What its client sends, after the table, is what it asks at its desk:
 *
 *	NUMBER HOST PORT   as a gate does
 *	short              a message that is none
 *	listen             nothing more
 *
 * It tells its client what it heard: "NUMBER yes", "NUMBER no".
 */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "gate/wire.h"

static void ask(const char *text)
{
	struct gate_ask a = { .head.type = GATE_ASKED };

	if (strcmp(text, "listen") == 0)
		return;
	if (strcmp(text, "short") == 0) {
		(void)io_send(GATE_FD_DESK, "what", 4, NULL, 0);
		return;
	}
	(void)sscanf(text, "%u %255s %u", &a.head.number, a.host, &a.port);
	(void)io_send(GATE_FD_DESK, &a, sizeof(a), NULL, 0);
}

/* False: whose it is, is gone. */
static bool hear_client(void)
{
	union {
		struct gate_head head;
		char text[512];
	} m = { 0 };
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	ssize_t n = io_recv(GATE_FD_CLIENT, &m, sizeof(m) - 1, 0, fds, &n_fds);

	for (int i = 0; i < n_fds; i++)
		(void)close(fds[i]);
	if (n > 0 && m.head.type != GATE_TABLE)
		ask(m.text);
	return n > 0;
}

static bool hear_desk(void)
{
	struct gate_answer a;
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	char text[32];

	if (io_recv(GATE_FD_DESK, &a, sizeof(a), 0, fds, &n_fds) != sizeof(a))
		return false;
	(void)snprintf(text, sizeof(text), "%u %s", a.head.number,
		       a.is_allowed ? "yes" : "no");
	(void)io_send(GATE_FD_CLIENT, text, strlen(text), NULL, 0);
	return true;
}

int main(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[2], GATE_HAS_DESK) != 0)
		return 2;
	for (;;) {
		struct pollfd p[] = {
			{ .fd = GATE_FD_CLIENT, .events = POLLIN },
			{ .fd = GATE_FD_DESK, .events = POLLIN },
		};

		if (poll(p, 2, -1) < 0)
			return 3;
		if ((p[0].revents && !hear_client()) ||
		    (p[1].revents && !hear_desk()))
			return 0;
	}
}
