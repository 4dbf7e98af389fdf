/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon-front: reads what clients send, and has no rights (docs/daemon.md).
 * It is started by `cordon serve` with the descriptors of serve/orders.h.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/num.h"
#include "base/say.h"
#include "base/util.h"
#include "box/wire.h"
#include "face/docker/docker.h"
#include "face/http.h"
#include "face/own/own.h"
#include "front/confine.h"
#include "front/manager.h"
#include "serve/orders.h"

struct front {
	struct manager *manager;
	struct http *own, *docker;
};

static bool is_listener(int fd)
{
	int is_listening = 0;
	socklen_t len = sizeof(is_listening);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) ==
		       0 &&
	       is_listening;
}

/* A number that is not used yet must not be given to something of ours. */
static int hold_numbers(void)
{
	for (int fd = 0; fd < FRONT_FDS; fd++) {
		int null;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null != fd)
			return -EBADF;
	}
	return 0;
}

static struct http *serve(uv_loop_t *loop, int fd, const struct http_face *face,
			  struct err *err)
{
	if (!face) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
		(void)err_errno(err, errno, "listen");
		return NULL;
	}
	return http_new(loop, fd, face, err);
}

static void on_drain(void *arg)
{
	struct front *f = arg;

	if (f->own)
		http_stop_listening(f->own);
	if (f->docker)
		http_stop_listening(f->docker);
}

static int begin(struct front *f, uv_loop_t *loop,
		 const struct manager_limits *limits, struct err *err)
{
	bool has_own = is_listener(FRONT_FD_OWN);
	bool has_docker = is_listener(FRONT_FD_DOCKER);

	if (hold_numbers() < 0)
		return err_set(err, EBADF, "started without descriptors");
	if (!has_own && !has_docker)
		return err_set(err, ENOTSOCK, "no socket to listen on");
	f->manager = manager_new(loop, limits, err);
	if (!f->manager)
		return -err->code;
	manager_settle(f->manager);
	if (has_own) {
		f->own = serve(loop, FRONT_FD_OWN, own_face(f->manager), err);
		if (!f->own)
			return -err->code;
	}
	if (has_docker) {
		f->docker = serve(loop, FRONT_FD_DOCKER,
				  docker_face(f->manager), err);
		if (!f->docker)
			return -err->code;
	}
	manager_on_drain(f->manager, on_drain, f);
	return front_confine(FRONT_FD_STATE, err);
}

static int read_args(int argc, char **argv, struct manager_limits *limits)
{
	uint64_t n;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--max-boxes") != 0 || ++i == argc ||
		    num_parse(argv[i], WIRE_STAYING, &n) < 0 || n == 0)
			return -EINVAL;
		limits->boxes = (unsigned int)n;
		limits->boxes_a_peer = MIN(limits->boxes_a_peer, limits->boxes);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct front f = { 0 };
	struct manager_limits limits;
	struct err err = { 0 };
	uv_loop_t loop;

	manager_limits_default(&limits);
	if (read_args(argc, argv, &limits) < 0) {
		say("cordon-front takes --max-boxes N, and is started by "
		    "'cordon serve'");
		return 125;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	if (uv_loop_init(&loop) < 0)
		return 125;
	if (begin(&f, &loop, &limits, &err) < 0) {
		say("front: %s", err.text);
		return 125;
	}
	manager_ready(f.manager);
	/* It ends when the parent says so, or is gone: by a signal. */
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	return 0;
}
