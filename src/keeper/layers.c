/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The layers of an image, for a box whose root it is.
 *
 * The spec names the image and its layers by digests alone. They are looked
 * for in the store that belongs to whoever runs the keeper, so nobody who can
 * send a spec can have another directory shown. The image is locked, as
 * src/image/store.h says, for as long as the box lives; who wants to remove it
 * sees that.
 *
 * As root, and where the file system can do it, the store's owner is shown as
 * the box's user. Else a layer's files belong to somebody whom the box does
 * not know, and it sees what anybody may.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/state.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/below.h"
#include "os/mnt.h"
#include "os/uapi.h"

static int open_store(const struct world *w, struct err *err)
{
	char path[4096];
	struct stat st;
	_cleanup_fd_ int state = NO_FD;
	_cleanup_fd_ int dir = NO_FD;

	if (state_path(path, sizeof(path), err) < 0)
		return -err->code;
	state = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (state < 0)
		return err_errno(err, errno, "open '%s'", path);
	dir = open_below(state, "images", O_PATH | O_DIRECTORY);
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_errno(err, dir < 0 ? -dir : errno,
				 "open '%s/images'", path);
	if (st.st_uid != w->caller || (st.st_mode & 022))
		return err_set(err, EPERM,
			       "'%s/images' belongs to another user, or others "
			       "may write to it",
			       path);
	return take_fd(&dir);
}

int box_hold_image(const struct world *w, struct box *b,
		   const struct wire_box *spec, struct err *err)
{
	const char *digits = wire_str(&spec->blob, spec->image);
	_cleanup_fd_ int fd = NO_FD;
	char path[80];
	struct stat st;

	b->store = open_store(w, err);
	if (b->store < 0)
		return b->store;
	/* The client has made it, and held it while it read the index. */
	(void)snprintf(path, sizeof(path), "use/%s", digits);
	fd = open_below(b->store, path, O_RDONLY);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || fstat(fd, &st) < 0 ||
	    st.st_nlink == 0)
		return err_set(err, ESTALE,
			       "image 'sha256:%.12s' was removed just now",
			       digits);
	b->hold = take_fd(&fd);
	return 0;
}

/* One map for all layers: they have one owner. */
static int show_owner(const struct world *w, struct box *b, int mnt,
		      const struct stat *st, bool must, struct err *err)
{
	const struct pair owner = { st->st_uid, st->st_gid };
	const struct pair user = { b->host_uid, b->host_uid };
	struct uapi_mount_attr attr = { .attr_set = UAPI_MOUNT_ATTR_IDMAP };

	if (b->layer_map < 0)
		b->layer_map = mounts_map(w, owner, user, err);
	if (b->layer_map < 0)
		return b->layer_map;
	attr.userns_fd = (uint64_t)b->layer_map;
	if (sys_mount_setattr(mnt, "", AT_EMPTY_PATH, &attr) == 0)
		return 0;
	if (errno == EINVAL && !must)
		return 0;
	return err_errno(err, errno,
			 "map ids for a writable root: the file system of the "
			 "image store cannot do that; keep it on ext4, xfs, "
			 "btrfs or tmpfs (CORDON_STATE_DIR), or run with a "
			 "read-only root");
}

int layer_open(const struct world *w, struct box *b, const struct wire_mount *m,
	       struct err *err)
{
	const struct wire_box *spec = b->spec;
	bool must = spec->blob.flags & WIRE_ROOT_RW;
	_cleanup_fd_ int dir = NO_FD;
	_cleanup_fd_ int mnt = NO_FD;
	char path[96];
	struct stat st;

	(void)snprintf(path, sizeof(path), "layers/sha256/%s/fs",
		       wire_str(&spec->blob, m->source));
	dir = open_below(b->store, path, O_PATH | O_DIRECTORY);
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_errno(err, dir < 0 ? -dir : errno,
				 "open '%s' of the image store", path);
	if (st.st_uid != w->caller)
		return err_set(err, EPERM, "'%s' belongs to another user",
			       path);
	mnt = mnt_clone(dir, "", err);
	if (mnt < 0 ||
	    mnt_restrict(mnt, MNT_SAFE | UAPI_MOUNT_ATTR_RDONLY, err) < 0)
		return err_wrap(err, "mount a layer");
	if (w->is_root && show_owner(w, b, mnt, &st, must, err) < 0)
		return -err->code;
	return take_fd(&mnt);
}

void layers_keep(const struct keeper *k, struct box *b)
{
	bool all = b->spec && peer_may_see_all(b->spec);
	char path[32];

	if (b->root >= 0 || (!all && b->hold < 0))
		return;
	(void)snprintf(path, sizeof(path), "%d/%s", (int)b->pid,
		       all ? "ns/mnt" : "root");
	b->root = openat(k->world.proc, path,
			 O_CLOEXEC | (all ? O_RDONLY : O_PATH | O_DIRECTORY));
}

void layers_done(struct box *b)
{
	fd_close(&b->store);
	fd_close(&b->layer_map);
}
