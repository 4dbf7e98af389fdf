/* SPDX-License-Identifier: Apache-2.0 */

/* Whole reads and writes, and messages that carry descriptors. */

#include "tests/tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/util.h"

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

static void pair(int socks[2])
{
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks),
		  0);
}

TEST(io_message_arrives_whole_with_its_descriptors)
{
	int socks[2];
	int sent[IO_MAX_FDS];
	int got[IO_MAX_FDS];
	int n = 0;
	char text[16] = "";
	int before;

	pair(socks);
	for (int i = 0; i < IO_MAX_FDS; i++) {
		unsigned char byte = (unsigned char)i;

		sent[i] = memfd_create("x", MFD_CLOEXEC);
		CHECK_INT(io_write_all(sent[i], &byte, 1), 0);
	}
	before = count_fds();
	CHECK_INT(io_send(socks[0], "hello", 5, sent, IO_MAX_FDS), 0);
	CHECK_INT(io_recv(socks[1], text, sizeof(text), 0, got, &n), 5);
	CHECK_INT(n, IO_MAX_FDS);
	CHECK_STR(text, "hello");
	for (int i = 0; i < n; i++) {
		unsigned char byte = 255;

		/* The right one, and it does not outlive an exec. */
		CHECK_INT(pread(got[i], &byte, 1, 0), 1);
		CHECK_INT(byte, i);
		CHECK_INT(fcntl(got[i], F_GETFD), FD_CLOEXEC);
		(void)close(got[i]);
	}
	CHECK_INT(count_fds(), before);
}

TEST(io_too_many_descriptors_are_refused)
{
	int fds[IO_MAX_FDS + 1] = { 0 };
	int socks[2];

	pair(socks);
	CHECK_INT(io_send(socks[0], "x", 1, fds, IO_MAX_FDS + 1), -E2BIG);
}

TEST(io_unwanted_descriptors_are_closed)
{
	int socks[2];
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int before;
	char text[4];

	pair(socks);
	before = count_fds();
	CHECK_INT(io_send(socks[0], "x", 1, &fd, 1), 0);
	CHECK_INT(io_recv(socks[1], text, sizeof(text), 0, NULL, NULL), 1);
	CHECK_INT(count_fds(), before);
}

TEST(io_longer_message_is_an_error_and_leaks_nothing)
{
	int socks[2];
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int got[IO_MAX_FDS];
	int n = -1;
	int before;
	char text[4];

	pair(socks);
	before = count_fds();
	CHECK_INT(io_send(socks[0], "too long", 8, &fd, 1), 0);
	CHECK_INT(io_recv(socks[1], text, sizeof(text), 0, got, &n), -EMSGSIZE);
	CHECK_INT(n, 0);
	CHECK_INT(count_fds(), before);
	/* The next one is read as if nothing had been. */
	CHECK_INT(io_send(socks[0], "ok", 2, NULL, 0), 0);
	CHECK_INT(io_recv(socks[1], text, sizeof(text), 0, got, &n), 2);
}

TEST(io_a_peer_that_is_gone)
{
	int socks[2];
	int got[IO_MAX_FDS];
	int n = -1;
	char text[4];

	pair(socks);
	(void)close(socks[0]);
	CHECK_INT(io_recv(socks[1], text, sizeof(text), 0, got, &n), 0);
	CHECK_INT(n, 0);
	CHECK_INT(io_send(socks[1], "x", 1, NULL, 0), -EPIPE);
}

TEST(io_nothing_there_and_not_waiting)
{
	int socks[2];
	char text[4];

	pair(socks);
	CHECK_INT(io_recv(socks[1], text, sizeof(text), MSG_DONTWAIT, NULL,
			  NULL),
		  -EAGAIN);
}

/* A reader at the other end that takes a little at a time. */
TEST(io_write_all_and_read_full_pass_a_pipe_in_pieces)
{
	enum { SIZE = 1 << 20 };
	char *data = malloc(SIZE);
	char *back = malloc(SIZE);
	int pipes[2];
	pid_t pid;

	for (int i = 0; i < SIZE; i++)
		data[i] = (char)(i * 31 >> 3);
	CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		_exit(io_write_all(pipes[1], data, SIZE) < 0);
	(void)close(pipes[1]);
	CHECK_INT(io_read_full(pipes[0], back, SIZE), SIZE);
	CHECK(memcmp(data, back, SIZE) == 0);
	CHECK_INT(io_read_full(pipes[0], back, 1), 0);
	free(data);
	free(back);
}

TEST(io_small_files)
{
	char dir[] = "/tmp/cordon-io-XXXXXX";
	char text[8];
	int fd;

	CHECK(mkdtemp(dir) != NULL);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(io_read_file(fd, "f", text, sizeof(text)), -ENOENT);
	/* It writes into what exists, it makes nothing. */
	CHECK_INT(io_write_file(fd, "f", "x"), -ENOENT);
	(void)close(openat(fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	CHECK_INT(io_write_file(fd, "f", "0123456789"), 0);
	/* What does not fit is cut, and still a string. */
	CHECK_INT(io_read_file(fd, "f", text, sizeof(text)), 7);
	CHECK_STR(text, "0123456");
	CHECK_INT(unlinkat(fd, "f", 0), 0);
	CHECK_INT(rmdir(dir), 0);
}

TEST(take_fd_moves_and_close_is_idempotent)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int moved = take_fd(&fd);

	CHECK_INT(fd, NO_FD);
	CHECK(moved >= 0);
	errno = EINTR;
	fd_close(&moved);
	CHECK_INT(moved, NO_FD);
	CHECK_INT(errno, EINTR);
	fd_close(&moved);
}

TAP_MAIN()
