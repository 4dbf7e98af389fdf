/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is mounted into a box, opened here as detached mounts.
 *
 * A source is a path that the client has resolved and looked at; it is opened
 * once more in the keeper's own mount namespace, without following any link,
 * and must be the very file the client saw. From then on only descriptors are
 * used, so nothing that is renamed in between can lead anywhere else.
 *
 * As root a directory of the host is shown to the box with its owner's id
 * turned into the box's user, and back (an id-mapped mount): files that the
 * box makes there belong to the directory's owner.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/mnt.h"
#include "os/uapi.h"

static int open_source(const struct world *w, const char *path, struct stat *st,
		       struct err *err)
{
	const struct uapi_open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = UAPI_RESOLVE_IN_ROOT | UAPI_RESOLVE_NO_SYMLINKS |
			   UAPI_RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_fd_ int fd = sys_openat2(w->root, path, &how);

	if (fd < 0 || fstat(fd, st) < 0)
		return err_errno(err, errno, "open '%s'", path);
	return take_fd(&fd);
}

/* Writes a map of one id of process `pid`. */
static int map_one(const struct world *w, pid_t pid, const char *file,
		   uint32_t inside, uint32_t outside)
{
	char path[64];
	char line[48];

	(void)snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
	(void)snprintf(line, sizeof(line), "%u %u 1", inside, outside);
	return io_write_file(w->proc, path, line);
}

/* In a child that is only there to be looked at; it goes with the keeper. */
static void wait_for_the_end(pid_t keeper) __attribute__((noreturn));
static void wait_for_the_end(pid_t keeper)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	while (getppid() == keeper)
		(void)pause();
	_exit(0);
}

int mounts_map(const struct world *w, struct pair from, struct pair to,
	       struct err *err)
{
	struct uapi_clone_args args = { .flags = UAPI_CLONE_NEWUSER,
					.exit_signal = SIGCHLD };
	char path[64];
	int fd = NO_FD;
	pid_t keeper = getpid();
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		wait_for_the_end(keeper);
	if (pid < 0)
		return err_errno(err, errno, "make a user namespace");
	(void)snprintf(path, sizeof(path), "%ld/ns/user", pid);
	if (map_one(w, (pid_t)pid, "uid_map", from.uid, to.uid) == 0 &&
	    map_one(w, (pid_t)pid, "gid_map", from.gid, to.gid) == 0)
		fd = openat(w->proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		(void)err_errno(err, errno, "map ids for a mount");
	/* Alive, it would be waited for without an end; it goes with us. */
	if (kill((pid_t)pid, SIGKILL) < 0) {
		fd_close(&fd);
		return err_errno(err, errno, "end the process of a map");
	}
	(void)waitpid((pid_t)pid, NULL, 0);
	return fd < 0 ? -err->code : fd;
}

/* Shows files of `from` as belonging to `to`, and the other way round. */
static int id_map(const struct world *w, int mnt, struct pair from,
		  struct pair to, struct err *err)
{
	_cleanup_fd_ int ns = mounts_map(w, from, to, err);
	struct uapi_mount_attr attr = { .attr_set = UAPI_MOUNT_ATTR_IDMAP };

	if (ns < 0)
		return ns;
	attr.userns_fd = (uint64_t)ns;
	if (sys_mount_setattr(mnt, "", AT_EMPTY_PATH, &attr) < 0)
		return err_errno(err, errno,
				 "map ids: its file system cannot do that; "
				 "mount it read-only, or use --workspace and "
				 "--copy-out");
	return 0;
}

static int id_map_bind(const struct world *w, int mnt, const struct stat *st,
		       const struct box *b, bool must, struct err *err)
{
	const struct pair owner = { st->st_uid, peer_group(b->peer, st) };
	const struct pair user = { b->host_uid, b->host_uid };
	int r;

	/* Else what its owner keeps private would be the box's to read. */
	if (!peer_owns(b->peer, st) || (b->stays && w->is_root && !b->peer))
		return must ? err_set(err, EPERM,
				      "it belongs to someone else than who "
				      "asks; mount it read-only")
			    : 0;
	r = id_map(w, mnt, owner, user, err);

	if (r == -EINVAL && !must) {
		err->code = 0; /* read-only: what others may read is shown */
		return 0;
	}
	return r;
}

static uint64_t attributes(const struct wire_mount *m)
{
	uint64_t attr = MNT_SAFE;

	if (m->flags & WIRE_MNT_RO)
		attr |= UAPI_MOUNT_ATTR_RDONLY;
	if (m->flags & WIRE_MNT_NOEXEC)
		attr |= UAPI_MOUNT_ATTR_NOEXEC;
	return attr;
}

/* In a box that stays only with the rights of who asks for it. */
static int open_allowed(struct keeper *k, const struct box *b,
			const struct wire_mount *m, const char *path,
			struct stat *st, struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;

	if (!b->stays || peer_may_see(m, path))
		return open_source(&k->world, path, st, err);
	fd = peer_open(k, b->peer, path, !(m->flags & WIRE_MNT_RO), err);
	if (fd >= 0 && fstat(fd, st) < 0)
		return err_errno(err, errno, "look at '%s'", path);
	return fd < 0 ? fd : take_fd(&fd);
}

static int open_bind(struct keeper *k, const struct box *b,
		     const struct wire_mount *m, const char *path,
		     struct err *err)
{
	const struct world *w = &k->world;
	struct stat st = { 0 };
	_cleanup_fd_ int source = open_allowed(k, b, m, path, &st, err);
	_cleanup_fd_ int mnt = NO_FD;

	if (source < 0)
		return source;
	if (b->stays && !(m->flags & WIRE_MNT_RO) && !peer_owns(b->peer, &st))
		return err_set(err, EPERM,
			       "mount '%s': it belongs to someone else than "
			       "who asks; mount it read-only",
			       path);
	/* Else what is made there would belong to an id of the box. */
	if (b->stays && w->is_root &&
	    !(m->flags & (WIRE_MNT_RO | WIRE_MNT_IDMAP)))
		return err_set(err, EPERM,
			       "mount '%s': for writing it must be id-mapped",
			       path);
	if (m->source_ino &&
	    (st.st_ino != m->source_ino || st.st_dev != m->source_dev))
		return err_set(err, ESTALE,
			       "'%s' is no longer what it was a moment ago",
			       path);
	mnt = mnt_clone(source, "", err);
	if (mnt < 0 || mnt_restrict(mnt, attributes(m), err) < 0)
		return err_wrap(err, "mount '%s'", path);
	if ((m->flags & WIRE_MNT_IDMAP) && w->is_root &&
	    id_map_bind(w, mnt, &st, b, !(m->flags & WIRE_MNT_RO), err) < 0)
		return err_wrap(err, "mount '%s'", path);
	return take_fd(&mnt);
}

/* A device by its number, not by its name (CVE-2025-31133). */
static int open_dev(const struct world *w, const struct box *b,
		    const struct wire_mount *m, const char *path,
		    struct err *err)
{
	struct stat st = { 0 };
	_cleanup_fd_ int source = NO_FD;
	_cleanup_fd_ int mnt = NO_FD;

	if (b->stays && !peer_may_see(m, path))
		return err_set(err, EPERM, "'%s' is no device for a box", path);
	source = open_source(w, path, &st, err);
	if (source < 0)
		return source;
	if (!S_ISCHR(st.st_mode) ||
	    st.st_rdev != makedev(m->dev >> 8, m->dev & 255))
		return err_set(err, EPERM,
			       "'%s' is not the device %u:%u; the host's /dev "
			       "is not what it should be",
			       path, m->dev >> 8, m->dev & 255);
	mnt = mnt_clone(source, "", err);
	if (mnt < 0 ||
	    mnt_restrict(mnt, UAPI_MOUNT_ATTR_NOSUID | UAPI_MOUNT_ATTR_NOEXEC,
			 err) < 0)
		return err_wrap(err, "mount '%s'", path);
	return take_fd(&mnt);
}

/*
 * Before Linux 6.15 a mount can be copied only while it is attached, so it is,
 * for a moment, in the keeper's own namespace.
 */
static int attached_twin(const struct world *w, int *mnt, struct err *err)
{
	_cleanup_fd_ int place = open(w->runtime, O_PATH | O_CLOEXEC);
	_cleanup_fd_ int twin = NO_FD;
	int other;
	char path[48];

	if (place < 0)
		return err_errno(err, errno, "open '%s'", w->runtime);
	if (mnt_attach(*mnt, place, err) < 0)
		return -err->code;
	twin = mnt_clone(*mnt, "", err);
	other = mnt_clone(*mnt, "", err);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", *mnt);
	(void)umount2(path, MNT_DETACH);
	if (other >= 0) {
		(void)close(*mnt);
		*mnt = other;
	}
	if (twin < 0 || other < 0)
		return -err->code;
	return take_fd(&twin);
}

int mounts_twin(const struct world *w, int *mnt, struct err *err)
{
	struct err unused = { 0 };
	int twin = mnt_clone(*mnt, "", &unused);

	return twin >= 0 ? twin : attached_twin(w, mnt, err);
}

/*
 * The workspace once more, with the box's files shown as the caller's: an
 * ordinary user with a range of uids could not read them otherwise. NO_FD
 * where the kernel cannot do it (before 6.3).
 */
static int open_for_caller(const struct world *w, const struct box *b, int *mnt)
{
	const struct pair user = { b->host_uid, b->host_uid };
	const struct pair caller = { w->caller, w->caller_gid };
	struct err err = { 0 };
	_cleanup_fd_ int ours = mounts_twin(w, mnt, &err);

	if (ours < 0 || id_map(w, ours, user, caller, &err) < 0)
		return NO_FD;
	return take_fd(&ours);
}

static int open_disk(struct keeper *k, struct box *b,
		     const struct wire_mount *m, const char *target,
		     struct err *err)
{
	const struct world *w = &k->world;
	const struct mnt_tmpfs opt = { .size = m->size,
				       .inodes = m->inodes,
				       .mode = m->mode ? m->mode : 0755,
				       .uid = b->host_uid,
				       .gid = b->lock >= 0 ? b->host_uid
							   : w->caller_gid,
				       .attr = attributes(m) };
	_cleanup_fd_ int mnt = NO_FD;
	int kept = NO_FD;

	if (b->n_disks >= BOX_DISKS)
		return err_set(err, E2BIG, "more than %d places in memory",
			       BOX_DISKS);
	/* As it was when the last box was closed. */
	if (b->shelf && shelf_disk(k, b, m, target, &mnt, err) < 0)
		return -err->code;
	if (mnt < 0) {
		mnt = mnt_tmpfs(&opt, err);
		if (mnt < 0)
			return mnt;
		if (b->shelf && shelf_disk(k, b, m, target, &mnt, err) < 0)
			return -err->code;
	}
	if ((m->flags & WIRE_MNT_WORK) && b->lock >= 0 && !w->is_root &&
	    !b->stays)
		kept = open_for_caller(w, b, &mnt);
	if (kept < 0)
		kept = fcntl(mnt, F_DUPFD_CLOEXEC, KEEPER_FIRST_FD);
	if (kept < 0)
		return err_errno(err, errno, "keep a disk");
	b->disks[b->n_disks++] = kept;
	if (m->flags & WIRE_MNT_WORK)
		b->work = kept;
	return take_fd(&mnt);
}

static int open_one(struct keeper *k, struct box *b,
		    const struct wire_box *spec, const struct wire_mount *m,
		    struct err *err)
{
	const struct world *w = &k->world;

	switch ((enum wire_mount_kind)m->kind) {
	case WIRE_BIND:
		return open_bind(k, b, m, wire_str(&spec->blob, m->source),
				 err);
	case WIRE_DEV:
		return open_dev(w, b, m, wire_str(&spec->blob, m->source), err);
	case WIRE_TMPFS:
	case WIRE_UPPER:
		return open_disk(k, b, m, wire_str(&spec->blob, m->target),
				 err);
	case WIRE_LAYER:
		return layer_open(w, b, m, err);
	case WIRE_PLACE:
	case WIRE_VOLUME:
	case WIRE_CODE:
	case WIRE_MOUNT_KINDS:
		break;
	}
	return err_set(err, EPROTO, "unknown kind of mount");
}

int mounts_open(struct keeper *k, struct box *b, const struct wire_box *spec,
		int *ret_fds, int *ret_n, uint64_t *ret_mask, struct err *err)
{
	*ret_n = 0;
	if (spec->image && box_hold_image(&k->world, b, spec, err) < 0)
		return err_stage(err, "mounts");
	for (uint32_t i = 0; i < spec->n_mounts; i++) {
		const struct wire_mount *m = &spec->mounts[i];
		int fd;

		if (wire_is_in_root(m->kind))
			continue;
		fd = open_one(k, b, spec, m, err);
		if (fd == -ENOENT && (m->flags & WIRE_MNT_OPTIONAL)) {
			err->code = 0;
			continue;
		}
		if (fd < 0)
			return err_stage(err, "mounts");
		ret_fds[(*ret_n)++] = fd;
		ret_mask[i / 64] |= 1ULL << i % 64;
	}
	layers_done(b);
	return 0;
}
