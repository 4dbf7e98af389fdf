/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whose rights a bind mount of a box that stays is opened with.
 *
 * The client that asks for such boxes has no rights and serves others. For
 * each box it shows the connection over which that other one asked, and the
 * kernel says who that is. A directory of the host is then opened as that
 * user would open it, with its uid, gid and groups and without the keeper's
 * capabilities over files; so nobody gets into a box what they could not have
 * opened themselves, whatever the client says.
 *
 * What every box is made of (/usr and a few files of /etc, read-only, and six
 * devices) is opened with the keeper's own rights. A path is one of those or
 * it is the peer's; there is no third kind, and no flag that makes it one.
 *
 * The keeper is one thread, so it can be somebody else for a moment. Because
 * of SECBIT_NO_SETUID_FIXUP (world.c) the kernel does not take capabilities
 * over files away with the fsuid, so that is done here.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/util.h"
#include "keeper/keeper.h"
#include "os/caps.h"
#include "os/uapi.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

/* What root-host.c mounts; all of it read-only. */
static const char *const shown[] = {
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/etc/ld.so.cache",
	"/etc/ld.so.conf",
	"/etc/ld.so.conf.d",
	"/etc/alternatives",
	"/etc/ca-certificates",
	"/etc/ssl/certs",
	"/etc/mime.types",
};

/* null, zero, full, random, urandom; tty */
static const uint16_t devices[] = { 1 << 8 | 3, 1 << 8 | 5, 1 << 8 | 7,
				    1 << 8 | 8, 1 << 8 | 9, 5 << 8 | 0 };

/*
 * Only a connection that was accepted from a listener with a name tells who
 * is at its other end: of a socketpair, or a listener, the kernel would name
 * whoever made it, which may be root. So it would of a client's own end, which
 * can have a name too; but then the listener at its other end has one.
 */
static int check_socket(int sock, struct err *err)
{
	struct sockaddr_un name;
	struct sockaddr_un other;
	socklen_t len = sizeof(name);
	socklen_t other_len = sizeof(other);
	int type = 0;
	int listens = 1;
	socklen_t size = sizeof(int);

	memset(&name, 0, sizeof(name));
	if (getsockname(sock, (struct sockaddr *)&name, &len) < 0 ||
	    getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
	    getsockopt(sock, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0)
		return err_errno(err, errno, "look at the peer's connection");
	if (name.sun_family != AF_UNIX || type != SOCK_STREAM || listens ||
	    len <= sizeof(name.sun_family) || name.sun_path[0] != '/' ||
	    getpeername(sock, (struct sockaddr *)&other, &other_len) < 0 ||
	    other_len > sizeof(other.sun_family))
		return err_set(err, EPERM,
			       "the peer's connection is not one that a "
			       "listener took");
	return 0;
}

int peer_read(int sock, struct peer *ret, struct err *err)
{
	struct ucred cred = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
	socklen_t size = sizeof(cred);

	memset(ret, 0, sizeof(*ret));
	if (check_socket(sock, err) < 0)
		return -err->code;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0 ||
	    cred.uid == (uid_t)-1 || cred.gid == (gid_t)-1)
		return err_set(err, EPERM, "the peer cannot be known");
	ret->uid = cred.uid;
	ret->gid = cred.gid;
	size = sizeof(ret->groups);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, ret->groups, &size) < 0)
		return err_errno(err, errno, "know the peer's groups");
	ret->n_groups = (int)(size / sizeof(gid_t));
	return 0;
}

static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return strncmp(path, top, len) == 0 &&
	       (path[len] == '/' || path[len] == '\0');
}

static bool has_dots(const char *path)
{
	for (const char *p = path; (p = strstr(p, "/..")); p += 3)
		if (p[3] == '/' || p[3] == '\0')
			return true;
	return false;
}

bool peer_may_see(const struct wire_mount *m, const char *path)
{
	if (m->kind == WIRE_DEV) {
		for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
			if (m->dev == devices[i])
				return true;
		return false;
	}
	if (!(m->flags & WIRE_MNT_RO) || has_dots(path))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		if (is_below(path, shown[i]))
			return true;
	return false;
}

bool peer_may_see_all(const struct wire_box *spec)
{
	for (uint32_t i = 0; i < spec->n_mounts; i++) {
		const struct wire_mount *m = &spec->mounts[i];

		if ((m->kind == WIRE_BIND || m->kind == WIRE_DEV) &&
		    !peer_may_see(m, wire_str(&spec->blob, m->source)))
			return false;
	}
	return true;
}

/* Changes who files are opened as; the keeper's own ids otherwise. */
static int become(const struct keeper *k, const struct peer *p)
{
	if (setgroups(p ? (size_t)p->n_groups : 0, p ? p->groups : NULL) < 0)
		return -errno;
	(void)setfsgid(p ? p->gid : k->world.caller_gid);
	(void)setfsuid(p ? p->uid : k->world.caller);
	/* What they are now is all that these two tell. */
	if (setfsgid((gid_t)-1) != (int)(p ? p->gid : k->world.caller_gid) ||
	    setfsuid((uid_t)-1) != (int)(p ? p->uid : k->world.caller))
		return -EPERM;
	return caps_over_files(!p || p->uid == 0);
}

static int open_as(const struct keeper *k, const char *path, bool may_write,
		   struct err *err)
{
	const struct uapi_open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = UAPI_RESOLVE_IN_ROOT | UAPI_RESOLVE_NO_SYMLINKS |
			   UAPI_RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_fd_ int fd = sys_openat2(k->world.root, path, &how);
	struct stat st;
	int need;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", path);
	need = R_OK | (S_ISDIR(st.st_mode) ? X_OK : 0) | (may_write ? W_OK : 0);
	if (sys_faccessat2(fd, "", need, AT_EMPTY_PATH | AT_EACCESS) < 0)
		return err_errno(err, errno, "open '%s'%s", path,
				 may_write ? " for writing" : "");
	return take_fd(&fd);
}

int peer_open(struct keeper *k, const struct peer *p, const char *path,
	      bool may_write, struct err *err)
{
	bool is_other = k->world.is_root && p && p->uid != 0;
	int fd;

	if (!p && k->world.is_root)
		return err_set(err, EPERM,
			       "'%s' is not what every box is made of, and "
			       "nobody is named who asks for it",
			       path);
	if (!k->world.is_root && p && p->uid != k->world.caller)
		return err_set(err, EPERM,
			       "'%s': this keeper is uid %u and cannot open "
			       "files as uid %u",
			       path, k->world.caller, p->uid);
	fd = is_other ? become(k, p) : 0;
	if (fd < 0)
		(void)err_errno(err, -fd, "become uid %u", p->uid);
	else
		fd = open_as(k, path, may_write, err);
	/* Never go on as somebody else. */
	if (is_other && become(k, NULL) < 0) {
		k->is_over = true;
		if (fd >= 0)
			(void)close(fd);
		return err_set(err, EPERM, "become ourselves again");
	}
	return fd < 0 ? -err->code : fd;
}

bool peer_owns(const struct peer *p, const struct stat *st)
{
	return !p || p->uid == 0 || p->uid == st->st_uid;
}

gid_t peer_group(const struct peer *p, const struct stat *st)
{
	if (!p || p->uid == 0 || p->gid == st->st_gid)
		return st->st_gid;
	for (int i = 0; i < p->n_groups; i++)
		if (p->groups[i] == st->st_gid)
			return st->st_gid;
	return p->gid;
}
