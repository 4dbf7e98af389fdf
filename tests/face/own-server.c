/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The own face on the real manager, with the rest of the daemon faked
 * (tests/front/fake.h): own-server SOCKET. It says "ready" and serves until its
 * standard input ends; boxes are plain processes.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "face/http.h"
#include "face/own/own.h"
#include "fake.h"

static bool is_over;

static void on_stdin(uv_poll_t *poll, int status, int events)
{
	char c;

	(void)status;
	(void)events;
	if (read(0, &c, 1) > 0)
		return;
	uv_close((uv_handle_t *)poll, NULL);
	is_over = true;
}

int main(int argc, char **argv)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct err err = { 0 };
	static uv_poll_t input;
	struct http *h;

	if (argc != 2 || fd < 0)
		return 2;
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", argv[1]);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(fd, 128) < 0)
		return 2;
	/* The low numbers are the manager's. */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 50);
	fake_begin();
	h = http_new(&fake.loop, fd, own_face(fake.m), &err);
	if (!h)
		return 2;
	(void)uv_poll_init(&fake.loop, &input, 0);
	(void)uv_poll_start(&input, UV_READABLE, on_stdin);
	printf("ready\n");
	(void)fflush(stdout);
	while (!is_over)
		(void)uv_run(&fake.loop, UV_RUN_ONCE);
	http_free(h);
	fake_turn(50);
	printf("%u walls\n", fake_walls);
	fake_end();
	return 0;
}
