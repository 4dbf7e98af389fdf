/* SPDX-License-Identifier: Apache-2.0 */

/* The front's own walls: what it can still do, and what ends it. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../tap.h"
#include "base/util.h"
#include "front/confine.h"

static char dir[] = "/tmp/cordon-confine-XXXXXX";

static void clean(void)
{
	char command[100];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	(void)!system(command);
}

/* Runs it behind the walls, in a child; what waitpid(2) says. */
static int inside(int (*fn)(int state))
{
	int status = -1;
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct err err = { 0 };
		int state = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (front_confine(state, &err) < 0) {
			printf("# %s\n", err.text);
			(void)fflush(NULL);
			_exit(99);
		}
		_exit(fn(state));
	}
	(void)waitpid(pid, &status, 0);
	return status;
}

static void *in_thread(void *arg)
{
	*(int *)arg = 7;
	return NULL;
}

/* All that it must be able to do; the line that failed. */
#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond))                                                   \
			return __LINE__ % 256;                                 \
	} while (0)

static int work(int state)
{
	pthread_t thread;
	int seen = 0;
	int pair[2];
	int fd;

	fd = openat(state, "note", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, "x", 1) == 1 && fsync(fd) == 0);
	MUST(renameat(state, "note", state, "note2") == 0);
	MUST(mkdirat(state, "box", 0700) == 0);
	MUST(unlinkat(state, "note2", 0) == 0);
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	MUST(send(pair[0], "x", 1, 0) == 1);
	MUST(memfd_create("x", MFD_CLOEXEC) >= 0);
	MUST(pthread_create(&thread, NULL, in_thread, &seen) == 0);
	MUST(pthread_join(thread, NULL) == 0 && seen == 7);
	MUST(malloc(4 << 20) != NULL);
	return 0;
}

TEST(it_can_work)
{
	int status;

	CHECK(mkdtemp(dir) != NULL);
	status = inside(work);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
	clean();
}

static int look_around(int state)
{
	(void)state;
	MUST(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0);
	MUST(open("/proc/self/status", O_RDONLY | O_CLOEXEC) < 0);
	MUST(open("/tmp", O_RDONLY | O_CLOEXEC) < 0);
	MUST(open("/tmp/cordon-confine-file", O_CREAT | O_WRONLY | O_CLOEXEC,
		  0600) < 0);
	MUST(openat(state, "../../etc/passwd", O_RDONLY | O_CLOEXEC) < 0);
	MUST(kill(1, 0) < 0);
	MUST(kill(getppid(), SIGTERM) < 0);
	MUST(socketpair(AF_NETLINK, SOCK_RAW, 0, (int[2]){ 0 }) < 0);
	MUST(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
	/* Another process, without a namespace: refused, not deadly. */
	MUST(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) < 0);
	return 0;
}

TEST(it_sees_nothing_of_the_host)
{
	int status;

	CHECK(mkdtemp(dir) != NULL);
	status = inside(look_around);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
	clean();
}

#define DEADLY(name, call)                                                     \
	static int name(int state)                                             \
	{                                                                      \
		(void)state;                                                   \
		(void)(call);                                                  \
		return 0;                                                      \
	}

DEADLY(try_exec, execl("/bin/true", "true", (char *)NULL))
DEADLY(try_execveat, syscall(SYS_execveat, -1, "", NULL, NULL, 0))
DEADLY(try_socket, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
DEADLY(try_unix, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))
DEADLY(try_ptrace, syscall(SYS_ptrace, 0, 0, 0, 0))
DEADLY(try_mount, syscall(SYS_mount, "x", "/", "tmpfs", 0, NULL))
DEADLY(try_bpf, syscall(SYS_bpf, 0, NULL, 0))
DEADLY(try_setuid, syscall(SYS_setuid, 0))
DEADLY(try_setresuid, syscall(SYS_setresuid, 0, 0, 0))
DEADLY(try_unshare, unshare(CLONE_NEWUSER))
DEADLY(try_clone, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0))
DEADLY(try_clone_net, syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0))

TEST(what_only_an_intruder_does_ends_it)
{
	static int (*const tries[])(int) = {
		try_exec,   try_execveat, try_socket,    try_unix,
		try_ptrace, try_mount,    try_bpf,       try_setuid,
		try_clone,  try_unshare,  try_clone_net, try_setresuid,
	};

	CHECK(mkdtemp(dir) != NULL);
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		int status = inside(tries[i]);
		bool is_dead = WIFSIGNALED(status) &&
			       WTERMSIG(status) == SIGSYS;

		if (!is_dead)
			printf("# try %zu: status %d\n", i, status);
		CHECK(is_dead);
	}
	clean();
}

__attribute__((noreturn)) static void *wait_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		(void)pause();
}

TEST(a_thread_outside_the_wall_is_refused)
{
	struct err err = { 0 };
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0);
	CHECK_INT(front_confine(AT_FDCWD, &err), -EBUSY);
	CHECK_HAS(err.text, "2 threads");
}

TAP_MAIN()
