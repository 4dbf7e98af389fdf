/* SPDX-License-Identifier: Apache-2.0 */
#include "box/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/spec.h"
#include "os/clone.h"
#include "os/uapi.h"

#define KEEPER "cordon-keeper"

int program_find(const char *name, char *ret, size_t size, struct err *err)
{
	const char *dir = getenv("CORDON_LIBEXEC");
	size_t room = strlen(name) + sizeof("/");
	ssize_t n;
	char *slash;

	if (dir) {
		(void)snprintf(ret, size, "%s/%s", dir, name);
		if (access(ret, X_OK) == 0)
			return 0;
		return err_errno(err, errno, "find '%s' (CORDON_LIBEXEC)", ret);
	}
	n = readlink("/proc/self/exe", ret, size - room);
	if (n > 0) {
		ret[n] = '\0';
		slash = strrchr(ret, '/');
		(void)strcpy(slash + 1, name);
		if (access(ret, X_OK) == 0)
			return 0;
	}
	(void)snprintf(ret, size, "%s/%s", CORDON_LIBEXECDIR, name);
	if (access(ret, X_OK) == 0)
		return 0;
	return err_errno(err, errno,
			 "find '%s'; install Cordon, or set CORDON_LIBEXEC to "
			 "the directory that has %s",
			 ret, name);
}

/* Only what the keeper reads; nothing of the caller's reaches a box. */
static int keeper_env(char **ret, size_t max)
{
	static const char *const names[] = {
		"CORDON_RUNTIME_DIR=", "XDG_RUNTIME_DIR=", "CORDON_TEST_",
		"CORDON_STATE_DIR=",   "XDG_STATE_HOME=",  "HOME="
	};
	extern char **environ;
	size_t n = 0;

	for (char **e = environ; *e && n < max - 1; e++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (strncmp(*e, names[i], strlen(names[i])) == 0)
				ret[n++] = *e;
	ret[n] = NULL;
	return 0;
}

struct birth {
	const char *path;
	const char *mode;
	char **env;
	int sock, lock;
	volatile int error;
};

/* In the child, with our memory, until it is the keeper. */
static void become_keeper(void *arg)
{
	struct birth *b = arg;
	const char *argv[] = { KEEPER, b->mode, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	(void)sigemptyset(&none);
	if (null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 &&
	    dup2(null, 2) >= 0 && dup2(b->sock, 3) >= 0 &&
	    (b->lock < 0 || dup2(b->lock, 4) >= 0) &&
	    sys_close_range(b->lock < 0 ? 4 : 5, ~0U) == 0 &&
	    sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		(void)execve(b->path, (char **)argv, b->env);
	b->error = errno;
	_exit(127);
}

/*
 * posix_spawn(3) asks for the disposition of each signal; the kernel resets
 * them all with one flag. Nothing of ours may run in the child before that,
 * so signals wait.
 */
static int spawn(const char *path, const struct keeper_wish *wish, pid_t *ret)
{
	struct uapi_clone_args args = { .flags = UAPI_CLONE_CLEAR_SIGHAND,
					.exit_signal = SIGCHLD };
	char *env[16];
	struct birth birth = { .path = path,
			       .mode = wish->mode,
			       .env = env,
			       .sock = wish->sock,
			       .lock = wish->lock };
	sigset_t all;
	sigset_t before;
	pid_t pid;

	(void)keeper_env(env, ARRAY_SIZE(env));
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone_vfork(&args, become_keeper, &birth);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return pid;
	if (birth.error) {
		(void)waitpid(pid, NULL, 0);
		return -birth.error;
	}
	*ret = pid;
	return 0;
}

struct cordon *handle_on(int sock, struct err *err)
{
	struct cordon *c = calloc(1, sizeof(*c));

	if (!c) {
		(void)err_set(err, ENOMEM, "out of memory");
		(void)close(sock);
		return NULL;
	}
	c->sock = sock;
	return c;
}

int keeper_start(const struct keeper_wish *wish, pid_t *ret, struct err *err)
{
	struct keeper_wish high = *wish;
	char path[PATH_MAX];
	_cleanup_fd_ int theirs = NO_FD;
	_cleanup_fd_ int lock = NO_FD;
	int r;

	if (program_find(KEEPER, path, sizeof(path), err) < 0)
		return -err->code;
	/* Above 4, so that the copies made there are not closed on exec. */
	theirs = fcntl(wish->sock, F_DUPFD_CLOEXEC, 10);
	if (wish->lock >= 0)
		lock = fcntl(wish->lock, F_DUPFD_CLOEXEC, 10);
	high.sock = theirs;
	high.lock = lock;
	r = theirs < 0 || (wish->lock >= 0 && lock < 0)
		    ? -errno
		    : spawn(path, &high, ret);
	return r < 0 ? err_errno(err, -r, "start '%s'", path) : 0;
}

static struct cordon *start_keeper(struct err *err)
{
	struct keeper_wish wish = { .mode = "reused", .lock = NO_FD };
	struct cordon *c;
	int pair[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		(void)err_errno(err, errno, "make a socket");
		return NULL;
	}
	c = handle_on(pair[0], err);
	wish.sock = pair[1];
	r = c ? keeper_start(&wish, &c->keeper, err) : -ENOMEM;
	(void)close(pair[1]);
	if (c && r < 0) {
		(void)close(c->sock);
		free(c);
		c = NULL;
	}
	return c;
}

struct cordon *cordon_open(struct cordon_error *out)
{
	struct err err = { 0 };
	struct cordon *c = start_keeper(&err);

	if (!c)
		(void)error_out(out, &err);
	return c;
}

void cordon_close(struct cordon *c)
{
	if (!c)
		return;
	if (c->ops) {
		c->ops->close(c);
		return;
	}
	/* The keeper sees the end of the socket and ends everything. */
	(void)close(c->sock);
	while (c->keeper > 0 && waitpid(c->keeper, NULL, 0) < 0 &&
	       errno == EINTR)
		;
	free(c);
}

static struct cordon_job *find(struct cordon *c, uint32_t number)
{
	struct cordon_job *j = c->jobs;

	while (j && !job_is(j, number))
		j = job_next(j);
	return j;
}

static void lose(struct cordon *c)
{
	struct cordon_job *next;

	c->is_lost = true;
	for (struct cordon_job *j = c->jobs; j; j = next) {
		next = job_next(j);
		job_take(j, NULL, NULL, 0);
	}
}

void handle_pump(struct cordon *c)
{
	while (!c->is_lost) {
		struct wire_msg msg;
		int fds[IO_MAX_FDS];
		int n_fds = 0;
		ssize_t n = io_recv(c->sock, &msg, sizeof(msg), MSG_DONTWAIT,
				    fds, &n_fds);
		struct cordon_job *j;

		if (n == -EAGAIN)
			return;
		/* Told once, for what it left unread, and before its words. */
		if (n == -ECONNRESET)
			continue;
		if (n != sizeof(msg)) {
			lose(c);
			return;
		}
		j = find(c, msg.job);
		if (j)
			job_take(j, &msg, fds, n_fds);
		for (int i = 0; i < n_fds; i++)
			fd_close(&fds[i]);
	}
}
