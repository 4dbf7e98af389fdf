/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The three that live as long as the daemon works. They are started together
 * and end together: boxes do not outlive their keeper, nor it its front.
 *
 *	front --- parent     orders
 *	      --- clerk      records
 *	      --- keeper     boxes; its end of the socket is the only one, so
 *	                     the keeper sees the front go
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/say.h"
#include "base/state.h"
#include "base/util.h"
#include "box/handle.h"
#include "os/caps.h"
#include "os/uapi.h"
#include "serve/daemon.h"

/*
 * The first one above those of boxes (keeper/world.c), so that no box ever has
 * it: for a machine where nobody has made a user for the front.
 */
#define FRONT_UID  0x70010000U
#define FRONT_USER "cordon"

#define SECBIT_NO_SETUID_FIXUP 4

#define CLERK_MS  5000
#define KEEPER_MS 20000
#define SEND_S    2
#define LOCK_US   3000000

/* ---- who and where ---- */

static int find_user(struct daemon *d, struct err *err)
{
	const char *name = d->o->user;
	const struct passwd *pw = getpwnam(name ? name : FRONT_USER);
	uint64_t uid = 0;

	d->front_uid = geteuid();
	d->front_gid = getegid();
	if (!d->is_root)
		return name ? err_set(err, EPERM, "--user is for root") : 0;
	if (pw) {
		d->front_uid = pw->pw_uid;
		d->front_gid = pw->pw_gid;
	} else if (!name) {
		d->front_uid = FRONT_UID;
		d->front_gid = FRONT_UID;
	} else if (num_parse(name, UINT32_MAX - 1, &uid) == 0) {
		d->front_uid = (uid_t)uid;
		d->front_gid = (gid_t)uid;
	} else {
		return err_set(err, EINVAL, "there is no user '%s'", name);
	}
	if (d->front_uid == 0)
		return err_set(err, EINVAL, "the front is never root");
	return 0;
}

/*
 * Two daemons with one state would end each other's boxes. The clerk of one
 * that was killed has the lock until what was sent to it is recorded, its
 * keeper until its boxes are gone: only then can be said which runs have no
 * end, and what they left.
 */
static int lock_state(struct daemon *d, struct err *err)
{
	int64_t end = clock_us() + LOCK_US;
	int r;

	d->lock = openat(d->state_fd, "serve.lock",
			 O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (d->lock < 0)
		return err_errno(err, errno, "open '%s/serve.lock'", d->state);
	while ((r = flock(d->lock, LOCK_EX | LOCK_NB)) < 0 && clock_us() < end)
		(void)poll(NULL, 0, 20);
	if (r < 0)
		return err_set(err, EADDRINUSE,
			       "another daemon has the state '%s'", d->state);
	return 0;
}

static int open_front_dir(struct daemon *d, struct err *err)
{
	struct stat st;
	bool is_new = mkdirat(d->state_fd, "front", 0700) == 0;

	d->front_dir = openat(d->state_fd, "front",
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->front_dir < 0 || fstat(d->front_dir, &st) < 0)
		return err_errno(err, errno, "open '%s/front'", d->state);
	if (is_new && d->is_root &&
	    fchown(d->front_dir, d->front_uid, d->front_gid) < 0)
		return err_errno(err, errno, "give '%s/front' away", d->state);
	if (!is_new && st.st_uid != d->front_uid)
		return err_set(err, EPERM,
			       "'%s/front' belongs to uid %u and the front "
			       "is %u; remove it, or say --user %u",
			       d->state, (unsigned int)st.st_uid,
			       (unsigned int)d->front_uid,
			       (unsigned int)st.st_uid);
	if (fchmod(d->front_dir, 0700) < 0)
		return err_errno(err, errno, "close '%s/front'", d->state);
	return 0;
}

int state_take(struct daemon *d, struct err *err)
{
	char path[PATH_MAX];

	if (find_user(d, err) < 0)
		return -err->code;
	d->state_fd = state_open(".", path, sizeof(path), err);
	if (d->state_fd < 0)
		return d->state_fd;
	if (!realpath(path, d->state))
		return err_errno(err, errno, "find '%s'", path);
	if (lock_state(d, err) < 0)
		return -err->code;
	return open_front_dir(d, err);
}

/* ---- a child of ours ---- */

int child_keep(const int *fds, int n)
{
	int high[16];

	for (int i = 0; i < n; i++) {
		high[i] = fds[i] < 0 ? NO_FD
				     : fcntl(fds[i], F_DUPFD_CLOEXEC, 32);
		if (fds[i] >= 0 && high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < n; i++) {
		(void)close(3 + i);
		if (high[i] >= 0 && dup2(high[i], 3 + i) < 0)
			return -errno;
	}
	return sys_close_range((unsigned int)(3 + n), ~0U) < 0 ? -errno : 0;
}

int child_settle(pid_t parent)
{
	const struct rlimit no_core = { 0, 0 };
	sigset_t none;

	(void)sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0 ||
	    setrlimit(RLIMIT_CORE, &no_core) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

/* ---- the front ---- */

/* Its own user, and nothing of root's left in any set. */
static int drop_rights(const struct daemon *d, struct err *err)
{
	if (!d->is_root)
		return caps_drop_held(err);
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0 ||
	    setgroups(0, NULL) < 0 ||
	    setresgid(d->front_gid, d->front_gid, d->front_gid) < 0 ||
	    setresuid(d->front_uid, d->front_uid, d->front_uid) < 0)
		return err_errno(err, errno, "become uid %u",
				 (unsigned int)d->front_uid);
	return caps_drop_all(err);
}

static void front_env(char **ret, size_t max)
{
	static char path[] = "PATH=/usr/bin:/bin";
	static char lang[] = "LANG=C.UTF-8";
	extern char **environ;
	size_t n = 0;

	ret[n++] = path;
	ret[n++] = lang;
	for (char **e = environ; *e && n < max - 1; e++)
		if (strncmp(*e, "CORDON_TEST_", 12) == 0)
			ret[n++] = *e;
	ret[n] = NULL;
}

static void become_front(const struct daemon *d, const char *path,
			 const int *fds, pid_t parent)
{
	static char flag[] = "--max-boxes";
	static char name[] = "cordon-front";
	char *argv[] = { name, d->o->max_boxes ? flag : NULL,
			 (char *)d->o->max_boxes, NULL };
	char *env[16];
	struct err err = { 0 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	front_env(env, ARRAY_SIZE(env));
	(void)setsid();
	(void)umask(077);
	if (null < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0 || chdir("/") < 0 ||
	    child_keep(fds, FRONT_FDS - 3) < 0)
		(void)err_errno(&err, errno, "arrange the front");
	else if (drop_rights(d, &err) == 0 && child_settle(parent) == 0)
		(void)execve(path, argv, env);
	if (!err.code)
		(void)err_errno(&err, errno, "start '%s'", path);
	say("%s", err.text);
	_exit(127);
}

/* ---- together ---- */

struct pairs {
	int parent[2]; /* [0] is the front's */
	int clerk[2];
	int keeper[2];
	int control[2]; /* [0] is the clerk's */
};

static int pairs_open(struct pairs *p, struct err *err)
{
	int *all = (int *)p;

	for (size_t i = 0; i < sizeof(*p) / sizeof(int); i++)
		all[i] = NO_FD;
	for (size_t i = 0; i < sizeof(*p) / sizeof(int); i += 2)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			       all + i) < 0)
			return err_errno(err, errno, "make a socket");
	return 0;
}

static void pairs_close(struct pairs *p)
{
	int *all = (int *)p;

	for (size_t i = 0; i < sizeof(*p) / sizeof(int); i++)
		fd_close(&all[i]);
}

static int note(struct part *p, pid_t pid, struct err *err)
{
	p->pid = pid;
	p->pidfd = sys_pidfd_open(pid);
	return p->pidfd < 0 ? err_errno(err, errno, "watch a child") : 0;
}

static int start_clerk(struct daemon *d, const struct pairs *p, struct err *err)
{
	const int fds[] = { p->clerk[1], p->control[0], d->lock };
	pid_t pid = fork();

	if (pid == 0) {
		(void)setsid();
		if (chdir("/") < 0 || child_keep(fds, 3) < 0)
			_exit(127);
		clerk_run(3, 4);
	}
	if (pid < 0)
		return err_errno(err, errno, "start the clerk");
	return note(&d->parts[PART_CLERK], pid, err);
}

static int start_front(struct daemon *d, const struct pairs *p, struct err *err)
{
	const int fds[FRONT_FDS - 3] = { p->parent[0], p->clerk[0],
					 p->keeper[0], d->front_dir,
					 d->own.fd,    d->docker.fd };
	pid_t parent = getpid();
	char path[PATH_MAX];
	pid_t pid;

	if (program_find("cordon-front", path, sizeof(path), err) < 0)
		return -err->code;
	pid = fork();
	if (pid == 0)
		become_front(d, path, fds, parent);
	if (pid < 0)
		return err_errno(err, errno, "start the front");
	return note(&d->parts[PART_FRONT], pid, err);
}

static int start_all(struct daemon *d, struct pairs *p, struct err *err)
{
	const struct timeval patience = { .tv_sec = SEND_S };
	struct keeper_wish wish = { .mode = "session", .lock = d->lock };
	pid_t pid = 0;

	if (pairs_open(p, err) < 0)
		return -err->code;
	wish.sock = p->keeper[1];
	/* A front that does not listen may not hold us up. */
	(void)setsockopt(p->parent[1], SOL_SOCKET, SO_SNDTIMEO, &patience,
			 sizeof(patience));
	if (keeper_start(&wish, &pid, err) < 0 ||
	    note(&d->parts[PART_KEEPER], pid, err) < 0 ||
	    start_clerk(d, p, err) < 0 || start_front(d, p, err) < 0)
		return -err->code;
	d->front = take_fd(&p->parent[1]);
	d->ledger = take_fd(&p->control[1]);
	return rules_tell(d) < 0 ? err_set(err, EPIPE, "talk to the front") : 0;
}

int parts_start(struct daemon *d, struct err *err)
{
	struct pairs p;
	int r;

	d->is_ready = false;
	r = start_all(d, &p, err);
	pairs_close(&p);
	if (r < 0)
		parts_stop(d);
	return r;
}

/* Until it has ended, the time is over, or a signal says: at once. */
static bool has_ended(const struct daemon *d, int pidfd, int ms)
{
	struct pollfd fds[] = { { .fd = pidfd, .events = POLLIN },
				{ .fd = d->signals, .events = POLLIN } };
	int64_t end = clock_us() + (int64_t)ms * 1000;
	int64_t left;

	/* The first one that asks us to stop does not hurry anybody. */
	if (!d->is_stopping)
		fds[1].fd = -1;
	while ((left = end - clock_us()) > 0) {
		if (poll(fds, 2, (int)(left / 1000) + 1) < 0)
			continue;
		if (fds[0].revents)
			return true;
		if (fds[1].revents)
			return false;
	}
	return false;
}

static void end_part(const struct daemon *d, struct part *p, int ms)
{
	if (p->pid <= 0)
		return;
	if (ms == 0 || p->pidfd < 0 || !has_ended(d, p->pidfd, ms))
		(void)kill(p->pid, SIGKILL);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	fd_close(&p->pidfd);
	p->pid = 0;
}

void parts_stop(struct daemon *d)
{
	errands_kill(d);
	end_part(d, &d->parts[PART_FRONT], 0);
	fd_close(&d->front);
	gates_kill(d);
	/* What the front has sent is still recorded; then both see its end. */
	end_part(d, &d->parts[PART_CLERK], CLERK_MS);
	fd_close(&d->ledger);
	end_part(d, &d->parts[PART_KEEPER], KEEPER_MS);
	d->is_ready = false;
}

/* ---- who is nobody's ---- */

static bool is_known(const struct daemon *d, pid_t pid)
{
	for (int i = 0; i < PARTS; i++)
		if (d->parts[i].pid == pid)
			return true;
	for (int i = 0; i < ALL_QUESTIONS; i++)
		if (d->questions[i].pid == pid)
			return true;
	if (gates_have(d, pid))
		return true;
	for (int i = 0; i < MAX_ERRANDS; i++)
		if (d->errands[i].kind != ERRAND_NONE &&
		    d->errands[i].pid == pid)
			return true;
	return false;
}

/* One that is known has its turn in the loop; then the next ones have. */
void parts_reap(const struct daemon *d)
{
	siginfo_t info = { 0 };

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid > 0 && !is_known(d, info.si_pid)) {
		(void)waitpid(info.si_pid, NULL, WNOHANG);
		info.si_pid = 0;
	}
}
