/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

int io_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int io_send_all(int sock, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = send(sock, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

void io_hold_below(int first)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd < first);
	if (fd >= first)
		(void)close(fd);
}

int io_seal(int fd)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW |
			  F_SEAL_WRITE;

	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

ssize_t io_read_full(int fd, void *data, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = read(fd, (char *)data + have, len - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

ssize_t io_read_file(int dirfd, const char *path, char *buf, size_t size)
{
	_cleanup_fd_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = io_read_full(fd, buf, size - 1);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

int io_write_file(int dirfd, const char *path, const char *text)
{
	_cleanup_fd_ int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return io_write_all(fd, text, strlen(text));
}

union control {
	char space[CMSG_SPACE(sizeof(int) * IO_MAX_FDS)];
	struct cmsghdr align;
};

static int send_message(int sock, const void *data, size_t len, const int *fds,
			int n_fds, int flags)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control ctl;

	if (n_fds > IO_MAX_FDS)
		return -E2BIG;
	if (n_fds > 0) {
		size_t size = sizeof(int) * (size_t)n_fds;

		memset(&ctl, 0, CMSG_SPACE(size));
		msg.msg_control = &ctl;
		msg.msg_controllen = CMSG_SPACE(size);
		ctl.align.cmsg_level = SOL_SOCKET;
		ctl.align.cmsg_type = SCM_RIGHTS;
		ctl.align.cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(&ctl.align), fds, size);
	}
	for (;;) {
		ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);

		if (n >= 0)
			return (size_t)n == len ? 0 : -EMSGSIZE;
		if (errno != EINTR)
			return -errno;
	}
}

int io_send(int sock, const void *data, size_t len, const int *fds, int n_fds)
{
	return send_message(sock, data, len, fds, n_fds, 0);
}

int io_send_now(int sock, const void *data, size_t len, const int *fds,
		int n_fds)
{
	return send_message(sock, data, len, fds, n_fds, MSG_DONTWAIT);
}

static int take_fds(struct msghdr *msg, int *fds)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t size;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	size = c->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(c), size);
	return (int)(size / sizeof(int));
}

ssize_t io_recv(int sock, void *data, size_t len, int flags, int *ret_fds,
		int *ret_n_fds)
{
	struct iovec iov = { .iov_base = data, .iov_len = len };
	union control ctl;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[IO_MAX_FDS];
	int n_fds;
	ssize_t n;

	msg.msg_control = &ctl;
	msg.msg_controllen = sizeof(ctl);
	do
		n = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	n_fds = take_fds(&msg, fds);
	if (!ret_fds || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		bool cut = msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC);

		for (int i = 0; i < n_fds; i++)
			(void)close(fds[i]);
		if (ret_n_fds)
			*ret_n_fds = 0;
		return cut ? -EMSGSIZE : n;
	}
	memcpy(ret_fds, fds, sizeof(int) * (size_t)n_fds);
	*ret_n_fds = n_fds;
	return n;
}
