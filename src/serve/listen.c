/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sockets. One is made in a directory in which nobody else can put things, and
 * is there for others only when owner and mode are right: bind(2) makes it
 * with no rights for anybody, and listen(2) comes last.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/num.h"
#include "base/state.h"
#include "base/util.h"
#include "serve/daemon.h"

#define LISTEN_FIRST 3 /* sd_listen_fds(3) */
#define BACKLOG      1024

static int check_dir(const char *path, struct err *err)
{
	char copy[108];
	struct stat st;
	const char *dir;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	dir = dirname(copy);
	if (stat(dir, &st) < 0)
		return err_errno(err, errno, "open '%s'", dir);
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
		return err_set(err, EPERM,
			       "'%s' belongs to someone else, or others may "
			       "write to it: no place for a socket",
			       dir);
	return 0;
}

static int set_address(struct sockaddr_un *a, const char *path, struct err *err)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(a->sun_path))
		return err_set(err, ENAMETOOLONG,
			       "'%s' is too long for a socket's name", path);
	(void)strcpy(a->sun_path, path);
	return 0;
}

/* What a daemon that died left is removed, nothing else. */
static int clear_place(const struct sockaddr_un *a, struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;
	struct stat st;

	if (lstat(a->sun_path, &st) < 0)
		return errno == ENOENT ? 0
				       : err_errno(err, errno, "look at '%s'",
						   a->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, EEXIST,
			       "'%s' is there, and is not a socket",
			       a->sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 ||
	    errno != ECONNREFUSED)
		return err_set(err, EADDRINUSE, "somebody listens on '%s'",
			       a->sun_path);
	if (unlink(a->sun_path) < 0)
		return err_errno(err, errno, "remove '%s'", a->sun_path);
	return 0;
}

struct rights {
	mode_t mode;
	gid_t gid;
	bool has_gid;
};

static int bind_with(int fd, const struct sockaddr_un *a,
		     const struct rights *rights, struct err *err)
{
	mode_t before = umask(0777);
	int r = bind(fd, (const struct sockaddr *)a, sizeof(*a));
	int code = errno;

	(void)umask(before);
	if (r < 0)
		return err_errno(err, code, "bind '%s'", a->sun_path);
	if ((rights->has_gid &&
	     lchown(a->sun_path, (uid_t)-1, rights->gid) < 0) ||
	    chmod(a->sun_path, rights->mode) < 0 || listen(fd, BACKLOG) < 0) {
		(void)err_errno(err, errno, "open '%s' to others", a->sun_path);
		(void)unlink(a->sun_path);
		return -err->code;
	}
	return 0;
}

static int make(struct listener *l, const char *path,
		const struct rights *rights, struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;
	struct sockaddr_un a;
	struct stat st;

	if (path[0] != '/')
		return err_set(err, EINVAL, "'%s' is not an absolute path",
			       path);
	if (set_address(&a, path, err) < 0 || check_dir(path, err) < 0 ||
	    clear_place(&a, err) < 0)
		return -err->code;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(err, errno, "make a socket");
	if (bind_with(fd, &a, rights, err) < 0)
		return -err->code;
	(void)strcpy(l->path, path);
	l->is_made = true;
	if (lstat(path, &st) == 0) {
		l->dev = st.st_dev;
		l->ino = st.st_ino;
	}
	l->fd = take_fd(&fd);
	return 0;
}

/* The directory of the default socket; others may pass, not look around. */
static int default_path(char *ret, size_t size, struct err *err)
{
	char dir[96];
	struct stat st;

	if (runtime_path(dir, sizeof(dir), err) < 0)
		return -err->code;
	if (mkdir(dir, 0711) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", dir);
	if (lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "'%s' is not a directory", dir);
	if (st.st_uid == geteuid() && !(st.st_mode & 022))
		(void)chmod(dir, st.st_mode | 0711);
	(void)snprintf(ret, size, "%s/cordon.sock", dir);
	return 0;
}

static int find_rights(const struct serve_options *o, struct rights *ret,
		       struct err *err)
{
	const struct group *g = NULL;
	char *end = NULL;
	uint64_t gid = 0;

	*ret = (struct rights){ .mode = 0660 };
	if (o->mode) {
		ret->mode = (mode_t)strtoul(o->mode, &end, 8);
		if (!*o->mode || *end || (ret->mode & ~0777U))
			return err_set(err, EINVAL,
				       "--mode '%s' is not one such as 0660",
				       o->mode);
	}
	if (!o->group)
		return 0;
	ret->has_gid = true;
	if (num_parse(o->group, UINT32_MAX - 1, &gid) == 0) {
		ret->gid = (gid_t)gid;
		return 0;
	}
	g = getgrnam(o->group);
	if (!g)
		return err_set(err, EINVAL, "there is no group '%s'", o->group);
	ret->gid = g->gr_gid;
	return 0;
}

/* One that came to us: which it is, tells its path, else its place. */
static int take(int fd, const struct serve_options *o, struct listener *own,
		struct listener *docker, struct err *err)
{
	struct sockaddr_un a = { 0 };
	socklen_t len = sizeof(a) - 1;
	struct listener *l = own->fd < 0 ? own : docker;
	int listens = 0;
	socklen_t size = sizeof(listens);

	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0 ||
	    a.sun_family != AF_UNIX || !a.sun_path[0] ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 ||
	    !listens)
		return err_set(err, EINVAL,
			       "descriptor %d (LISTEN_FDS) is not a unix "
			       "socket that listens",
			       fd);
	if (o->docker_socket && strcmp(a.sun_path, o->docker_socket) == 0)
		l = docker;
	if (l->fd >= 0)
		return err_set(err, EINVAL,
			       "more sockets than are used were passed in");
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	l->fd = fd;
	(void)snprintf(l->path, sizeof(l->path), "%s", a.sun_path);
	return 0;
}

static int take_passed(const struct serve_options *o, struct listener *own,
		       struct listener *docker, struct err *err)
{
	const char *pid = getenv("LISTEN_PID");
	const char *count = getenv("LISTEN_FDS");
	uint64_t whose = 0;
	uint64_t n = 0;

	if (pid && count && num_parse(pid, INT_MAX, &whose) == 0 &&
	    (pid_t)whose == getpid() && num_parse(count, 16, &n) == 0)
		for (int fd = LISTEN_FIRST; fd < LISTEN_FIRST + (int)n; fd++)
			if (take(fd, o, own, docker, err) < 0)
				return -err->code;
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return 0;
}

int listeners_open(const struct serve_options *o, struct listener *own,
		   struct listener *docker, struct err *err)
{
	struct rights rights;
	char path[108] = "";

	if (find_rights(o, &rights, err) < 0 ||
	    take_passed(o, own, docker, err) < 0)
		return -err->code;
	if (own->fd < 0 && !o->socket &&
	    default_path(path, sizeof(path), err) < 0)
		return -err->code;
	if (own->fd < 0 &&
	    make(own, o->socket ? o->socket : path, &rights, err) < 0)
		return -err->code;
	if (docker->fd < 0 && o->docker_socket &&
	    make(docker, o->docker_socket, &rights, err) < 0)
		return -err->code;
	return 0;
}

void listener_close(struct listener *l)
{
	struct stat st;

	if (l->fd >= 0 && l->is_made && lstat(l->path, &st) == 0 &&
	    st.st_dev == l->dev && st.st_ino == l->ino)
		(void)unlink(l->path);
	fd_close(&l->fd);
}
