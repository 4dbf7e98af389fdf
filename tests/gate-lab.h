/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two network namespaces and a wire between them, for tests that need
 * addresses which are public: here 11.0.0.1 and 2600::1, there 11.0.0.2 and
 * 2600::2, with listeners at FAR_PORT. No rights are needed, and nothing of
 * the machine is touched.
 */

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "base/util.h"
#include "gate/endpoint.h"
#include "tap.h"

#define FAR_PORT 8443

/* Listens at an address, at a port that it finds if there is none. */
static inline int listener(const char *address, uint16_t *port)
{
	uint8_t bytes[16] = { [10] = 0xff, 0xff };
	union endpoint a;
	socklen_t len = sizeof(a);
	int one = 1;
	int fd;

	if (inet_pton(AF_INET, address, bytes + 12) != 1)
		(void)inet_pton(AF_INET6, address, bytes);
	endpoint_set(&a, bytes, *port);
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &a.any, endpoint_len(&a)) < 0 || listen(fd, 16) < 0) {
		printf("# cannot listen at %s\n", address);
		tap_bad++;
	}
	(void)getsockname(fd, &a.any, &len);
	*port = ntohs(a.in4.sin_port);
	return fd;
}

static inline void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		printf("# cannot write %s\n", path);
		tap_bad++;
	}
	fd_close(&fd);
}

static inline void own_namespaces(void)
{
	char uids[32];
	char gids[32];

	(void)snprintf(uids, sizeof(uids), "0 %d 1", (int)geteuid());
	(void)snprintf(gids, sizeof(gids), "0 %d 1", (int)getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		SKIP("no user namespaces");
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", uids);
	put("/proc/self/gid_map", gids);
}

static inline void sh(const char *command)
{
	if (system(command) != 0) { /* NOLINT(*-env33-c,*-command-processor) */
		printf("# failed: %s\n", command);
		tap_bad++;
	}
}

/* One byte there, or one byte here: the two wait for each other. */
static inline void say(int fd)
{
	CHECK(write(fd, "", 1) == 1);
}

static inline void hear(int fd)
{
	char c;

	CHECK(poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 30000) == 1 &&
	      "the other side goes on");
	CHECK(recv(fd, &c, 1, MSG_DONTWAIT) == 1);
}

_Noreturn static inline void be_far(int near)
{
	uint16_t port = FAR_PORT;

	CHECK(unshare(CLONE_NEWNET) == 0);
	say(near);
	hear(near);
	sh("ip addr add 11.0.0.2/24 dev far &&"
	   "ip addr add 2600::2/64 dev far nodad && ip link set far up");
	(void)listener("11.0.0.2", &port);
	(void)listener("2600::2", &port);
	say(near);
	for (;;)
		(void)pause();
}

/* IPv6 takes a moment after the wire is there. */
static inline void wait_for_far(void)
{
	uint8_t address[16] = { 0x26, [15] = 2 };
	union endpoint a;

	endpoint_set(&a, address, FAR_PORT);
	for (int i = 0; i < 100; i++) {
		_cleanup_fd_ int fd = socket(AF_INET6,
					     SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(fd, &a.any, endpoint_len(&a)) == 0)
			return;
		(void)usleep(10000);
	}
	CHECK(!"IPv6 of the other side");
}

/* After own_namespaces(); the other side ends with the test. 0 or -1. */
static inline int far_side(void)
{
	char number[16];
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		be_far(ends[1]);
	hear(ends[0]);
	(void)snprintf(number, sizeof(number), "%d", (int)pid);
	(void)setenv("FAR", number, 1);
	sh("ip link add near type veth peer name far netns $FAR &&"
	   "ip addr add 11.0.0.1/24 dev near &&"
	   "ip addr add 2600::1/64 dev near nodad &&"
	   "ip link set near up && ip link set lo up");
	say(ends[0]);
	hear(ends[0]);
	wait_for_far();
	return 0;
}
