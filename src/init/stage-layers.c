/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A root that is made of layers: an image, or what Cordon itself lays down
 * where a root of the host can be written.
 *
 * Theory of operation. The root that stage-proc.c made becomes a workshop. In
 * it are /dev, /proc and /sys as for every box, the layers of the image (each
 * a mount that the keeper has sent), and WIRE_OWN_LAYER: what Cordon itself
 * adds to the image, and the places to mount on. One overlayfs puts these on
 * top of each other at LAYERS_ROOT; everything else is mounted there, it
 * becomes the root, and the workshop goes with all paths to the single layers.
 *
 * An image is foreign: any name in it may be a link to anywhere. So nothing is
 * mounted through a link, and nothing is made in the image. Where the box has
 * its own places (/dev, /proc, /tmp ...) the top layer has a directory, which
 * hides whatever else the image has there; a place that was asked for must be
 * a real directory or file, or be missing: then it is made in the top layer,
 * with the directories above it as they are in the image. Without an image
 * there are only links of Cordon's and of the box itself: these are followed,
 * as the box would.
 *
 * Parts of the root may have other attributes than the root: volumes can be
 * written where it is read-only, and under a list of commands the root is
 * noexec, which holds for mapping as well (the loader cannot be made to load a
 * program), but for the files of the list and their libraries. Each is a mount
 * of that part on itself.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "init/init.h"
#include "os/below.h"
#include "os/mnt.h"
#include "os/uapi.h"

#define LAYERS "/.layers"
#define UPPER  LAYERS_UPPER
#define PROBE  "/.probe"
#define LOWER  "/.lower"

bool layers_is_dev(const char *path)
{
	return strncmp(path, "/dev/", 5) == 0;
}

static bool is_root_part(const struct wire_mount *m)
{
	return m->kind == WIRE_LAYER || m->kind == WIRE_UPPER;
}

/* Puts a part of the root where the overlayfs finds it by a short name. */
static int attach_part(struct init *in, uint32_t i, const char *name)
{
	int r = mkdir(name, 0755) < 0 ? -errno : 0;

	if (r == 0 && sys_move_mount(in->mounts[i], "", AT_FDCWD, name,
				     UAPI_MOVE_MOUNT_F_EMPTY_PATH) < 0)
		r = -errno;
	fd_close(&in->mounts[i]);
	return r < 0 ? err_errno(&in->err, -r, "attach a layer") : 0;
}

/* In UPPER, which may have been used before. */
static int make_upper(struct init *in)
{
	static const char *const dirs[] = { UPPER "/upper", UPPER "/work" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i], 0755) < 0 && errno != EEXIST)
			return err_errno(&in->err, errno,
					 "make the layer for changes");
	return 0;
}

/* Their number; the lowest is 0, as its directory's name. */
static int attach_parts(struct init *in, bool *ret_has_upper)
{
	uint32_t n = 0;

	if (mkdir(LAYERS, 0755) < 0)
		return err_errno(&in->err, errno, "make a place for layers");
	for (uint32_t i = 0; i < in->box->n_mounts; i++) {
		const struct wire_mount *m = &in->box->mounts[i];
		bool is_upper = m->kind == WIRE_UPPER;
		char name[32];

		if (!is_root_part(m))
			continue;
		if (in->mounts[i] < 0 || n == WIRE_MAX_LAYERS ||
		    (is_upper && *ret_has_upper))
			return err_set(&in->err, EPROTO,
				       "the root is not complete");
		(void)snprintf(name, sizeof(name), LAYERS "/%u", n);
		if (attach_part(in, i, is_upper ? UPPER : name) < 0)
			return -in->err.code;
		if (is_upper)
			*ret_has_upper = true;
		else
			n++;
	}
	if (in->box->image ? n == 0 : n > 0 || !*ret_has_upper)
		return err_set(&in->err, EPROTO, "the root lacks a layer");
	return *ret_has_upper && make_upper(in) < 0 ? -in->err.code : (int)n;
}

/*
 * By mount(2) and from within LAYERS: an option for fsconfig(2) has 255 bytes,
 * and names that are added one by one came with Linux 6.5. Never through "..":
 * that would lead to the old root, which lies on top of this one.
 */
static int mount_layers(struct init *in, int n, bool has_upper, const char *at)
{
	unsigned long flags = MS_NOSUID | MS_NODEV |
			      (has_upper ? 0 : MS_RDONLY);
	char options[2048];
	size_t len;

	len = (size_t)snprintf(options, sizeof(options),
			       "userxattr%s,lowerdir=" WIRE_OWN_LAYER,
			       has_upper ? ",upperdir=" UPPER "/upper,"
					   "workdir=" UPPER "/work"
					 : "");
	for (int i = n; i-- > 0;)
		len += (size_t)snprintf(options + len, sizeof(options) - len,
					":%d", i);
	if (mkdir(at, 0755) < 0 || chdir(LAYERS) < 0)
		return err_errno(&in->err, errno, "make a place for the root");
	if (mount("overlay", at, "overlay", flags, options) < 0)
		return err_errno(&in->err, errno,
				 "mount an overlayfs of %d layers", n);
	if (chdir("/") < 0)
		return err_errno(&in->err, errno, "leave the layers");
	return 0;
}

/* One step down; *ret_mode of what is there. A link is never followed. */
static int step(int dir, const char *name, mode_t *ret_mode)
{
	struct stat st;
	_cleanup_fd_ int next = openat(dir, name,
				       O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (next < 0 || fstat(next, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	*ret_mode = st.st_mode;
	return take_fd(&next);
}

static int make_at(int dir, const char *name, mode_t mode, bool is_file)
{
	int r = is_file ? mknodat(dir, name, S_IFREG | 0444, 0)
			: mkdirat(dir, name, 0700);

	/* Whatever the umask. */
	if (r == 0 && !is_file)
		r = fchmodat(dir, name, mode & 01777, 0);
	return r < 0 && errno != EEXIST ? -errno : 0;
}

static bool is_dev_own(const struct init *in, int dir)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return false;
	for (size_t i = 0; i < in->n_own; i++)
		if (in->own[i] == st.st_dev)
			return true;
	return false;
}

/* The next name of a path in `part`; false at the end, or if it is none. */
static bool next_part(const char **path, char part[256], int *ret_error)
{
	size_t len;

	*path += strspn(*path, "/");
	len = strcspn(*path, "/");
	if (len == 0)
		return false;
	if (len > 255 || (len == 2 && memcmp(*path, "..", 2) == 0)) {
		*ret_error = -EINVAL;
		return false;
	}
	memcpy(part, *path, len);
	part[len] = '\0';
	*path += len;
	return true;
}

static bool is_last(const char *path)
{
	return path[strspn(path, "/")] == '\0';
}

static int explain(struct init *in, int r, const char *path)
{
	const char *what = in->box->image ? "image" : "root";

	if (r == -ELOOP)
		return err_set(&in->err, ELOOP,
			       "'%s' leads through a link of the %s; name "
			       "the place that it leads to",
			       path, what);
	if (r == -ENOTDIR)
		return err_set(&in->err, ENOTDIR,
			       "'%s' in the %s is not of the kind that is "
			       "mounted there, or lies below a file",
			       path, what);
	if (r == -EROFS)
		return err_set(&in->err, EROFS,
			       "there is no '%s' to mount on, and nothing is "
			       "made in a directory of the host; make it there "
			       "first",
			       path);
	return err_errno(&in->err, -r, "make the mount point '%s' in the box",
			 path);
}

/* All links lead to somewhere in the root to be, whatever they say. */
static int open_in_next(const struct init *in, const char *path, size_t len)
{
	const struct uapi_open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = UAPI_RESOLVE_IN_ROOT | UAPI_RESOLVE_NO_MAGICLINKS,
	};
	char part[WIRE_MAX_PATH];
	int fd;

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, len);
	part[len] = '\0';
	fd = sys_openat2(in->next, part, &how);
	return fd < 0 ? -errno : fd;
}

/* Without an image: a place behind links, made where it is missing. */
static int linked_place(const struct init *in, const char *path, bool is_file)
{
	_cleanup_fd_ int dir = fcntl(in->next, F_DUPFD_CLOEXEC, 5);
	const char *rest = path;
	char part[256];
	struct stat root;
	struct stat st;
	int r = dir < 0 ? -errno : 0;

	while (r == 0 && next_part(&rest, part, &r)) {
		int next = open_in_next(in, path, (size_t)(rest - path));

		if (next == -ENOENT && !is_dev_own(in, dir))
			return -EROFS;
		if (next == -ENOENT) {
			r = make_at(dir, part, 0755, is_file && is_last(rest));
			next = r < 0 ? r
				     : open_in_next(in, path,
						    (size_t)(rest - path));
		}
		if (next < 0)
			return next;
		(void)close(dir);
		dir = next;
	}
	if (r < 0 || fstat(in->next, &root) < 0 || fstat(dir, &st) < 0)
		return r < 0 ? r : -errno;
	/* What is mounted on the root itself would hide all the rest. */
	if (st.st_dev == root.st_dev && st.st_ino == root.st_ino)
		return -ELOOP;
	return S_ISDIR(st.st_mode) == is_file ? -ENOTDIR : take_fd(&dir);
}

int layers_place(struct init *in, const char *path, bool is_file)
{
	_cleanup_fd_ int dir = fcntl(in->next, F_DUPFD_CLOEXEC, 5);
	const char *rest = path;
	char part[256];
	mode_t mode = S_IFDIR;
	int r = 0;

	if (dir < 0)
		return err_errno(&in->err, errno, "copy a descriptor");
	while (r == 0 && next_part(&rest, part, &r)) {
		int next = step(dir, part, &mode);

		if (next == -ENOENT) {
			r = is_dev_own(in, dir)
				    ? make_at(dir, part, 0755,
					      is_file && is_last(rest))
				    : -EROFS;
			next = r < 0 ? r : step(dir, part, &mode);
		}
		if (next < 0)
			r = next;
		else
			(void)close(dir), dir = next;
	}
	if (r == 0 && S_ISDIR(mode) == is_file)
		r = -ENOTDIR;
	if (r == -ELOOP && !in->box->image) {
		r = linked_place(in, path, is_file);
		return r < 0 ? explain(in, r, path) : r;
	}
	return r < 0 ? explain(in, r, path) : take_fd(&dir);
}

/* Makes in the top layer what the image has above `path`, and the rest. */
static int make_in_own(int probe, const char *path, bool is_file)
{
	_cleanup_fd_ int own = open(WIRE_OWN_LAYER,
				    O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int dir = fcntl(probe, F_DUPFD_CLOEXEC, 5);
	char part[256];
	int r = own < 0 || dir < 0 ? -errno : 0;

	while (r == 0 && next_part(&path, part, &r)) {
		mode_t mode = 0755;
		int below = dir < 0 ? -ENOENT : step(dir, part, &mode);
		int next;

		fd_close(&dir);
		dir = below < 0 ? NO_FD : below;
		if (below < 0 && below != -ENOENT)
			return below;
		r = make_at(own, part, mode, is_file && is_last(path));
		next = r < 0 ? r : step(own, part, &mode);
		if (next < 0)
			return next;
		(void)close(own);
		own = next;
	}
	return r;
}

/* Whether all of `path` is there: 1 or 0, or why it cannot be used. */
static int look_for(int probe, const char *path, bool is_file)
{
	_cleanup_fd_ int dir = fcntl(probe, F_DUPFD_CLOEXEC, 5);
	char part[256];
	mode_t mode = S_IFDIR;
	int r = dir < 0 ? -errno : 0;

	while (r == 0 && next_part(&path, part, &r)) {
		int next = S_ISDIR(mode) ? step(dir, part, &mode) : -ENOTDIR;

		if (next < 0)
			return next == -ENOENT ? 0 : next;
		(void)close(dir);
		dir = next;
	}
	if (r < 0)
		return r;
	return S_ISDIR(mode) == is_file ? -ENOTDIR : 1;
}

/* Whether it lies in something that is mounted before it. */
static bool is_covered(const struct init *in, uint32_t i, const char *path)
{
	for (uint32_t k = 0; k < i; k++) {
		const struct wire_mount *m = &in->box->mounts[k];
		const char *top = wire_str(&in->box->blob, m->target);
		size_t len = strlen(top);

		if (in->mounts[k] >= 0 && !is_root_part(m) && len > 1 &&
		    strncmp(path, top, len) == 0 &&
		    (path[len] == '/' || path[len] == '\0'))
			return true;
	}
	return false;
}

static int make_place(struct init *in, int probe, uint32_t i)
{
	const struct wire_mount *m = &in->box->mounts[i];
	const char *path = wire_str(&in->box->blob, m->target);
	bool is_file = m->flags & WIRE_MNT_FILE;
	int r;

	if (is_covered(in, i, path))
		return 0;
	r = look_for(probe, path, is_file);
	/* Where a program starts may lie behind a link; it goes there itself.
	 */
	if (r < 0 && m->kind == WIRE_PLACE)
		return 0;
	if (r == -ELOOP && !in->box->image)
		return 0; /* it is made when it is mounted on */
	/* A volume is the box's user's, whoever the image's files belong to. */
	if (r == 0 || (r > 0 && m->kind == WIRE_VOLUME))
		r = make_in_own(probe, path, is_file);
	return r < 0 ? explain(in, r, path) : 0;
}

/* The spec has made the usual ones. */
static bool is_in_own(const struct init *in, const char *path)
{
	char full[sizeof(WIRE_OWN_LAYER) + WIRE_MAX_PATH];
	_cleanup_fd_ int fd = NO_FD;

	(void)snprintf(full, sizeof(full), WIRE_OWN_LAYER "%s", path);
	fd = open_below(in->root, full + 1, O_PATH | O_DIRECTORY);
	return fd >= 0;
}

static bool needs_place(const struct init *in, uint32_t i)
{
	const struct wire_mount *m = &in->box->mounts[i];
	const char *path = wire_str(&in->box->blob, m->target);

	if (is_root_part(m) || m->kind == WIRE_DEV || layers_is_dev(path))
		return false;
	if (m->kind != WIRE_PLACE && m->kind != WIRE_VOLUME &&
	    in->mounts[i] < 0)
		return false;
	return (m->flags & WIRE_MNT_FILE) || !is_in_own(in, path);
}

/* The root without its changes; one layer alone makes no overlayfs. */
static int open_unchanged(struct init *in, int n, const char *at)
{
	int fd;

	if (n > 0 && mount_layers(in, n, false, at) < 0)
		return -in->err.code;
	fd = open(n > 0 ? at : WIRE_OWN_LAYER,
		  O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_errno(&in->err, errno, "look at the root") : fd;
}

/* What the top layer lacks is seen in a root that is only looked at. */
static int make_places(struct init *in, int n)
{
	_cleanup_fd_ int probe = NO_FD;
	bool any = false;

	for (uint32_t i = 0; i < in->box->n_mounts && !any; i++)
		any = needs_place(in, i);
	if (!any)
		return 0;
	probe = open_unchanged(in, n, PROBE);
	if (probe < 0)
		return probe;
	for (uint32_t i = 0; i < in->box->n_mounts; i++)
		if (needs_place(in, i) && make_place(in, probe, i) < 0)
			return -in->err.code;
	fd_close(&probe);
	if (n > 0 && umount2(PROBE, MNT_DETACH) < 0)
		return err_errno(&in->err, errno, "let go of the image");
	return 0;
}

/*
 * Who asks a box that stays what has changed in it is answered from these two,
 * to which no path will lead.
 */
static int hold_both(struct init *in, int n)
{
	struct changes *c = &in->changes;

	c->lower[CHANGES_ROOT] = open_unchanged(in, n, LOWER);
	if (c->lower[CHANGES_ROOT] < 0)
		return -in->err.code;
	c->upper[CHANGES_ROOT] = open(UPPER "/upper",
				      O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (c->upper[CHANGES_ROOT] < 0)
		return err_errno(&in->err, errno, "hold the layers");
	return 0;
}

int layers_make(struct init *in)
{
	bool has_upper = false;
	struct stat st;
	int n;

	/* A link would put what it leads to into the box. */
	if (lstat(WIRE_OWN_LAYER, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(&in->err, EPROTO, "the root has no top layer");
	n = attach_parts(in, &has_upper);
	if (n < 0 || make_places(in, n) < 0 ||
	    mount_layers(in, n, has_upper, LAYERS_ROOT) < 0)
		return -in->err.code;
	if (has_upper && in->conf.stays && hold_both(in, n) < 0)
		return -in->err.code;
	in->next = open(LAYERS_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (in->next < 0)
		return err_errno(&in->err, errno, "open the root of layers");
	/* Nothing in it is foreign then: what is missing may be made there. */
	if (!in->box->image && place_own(in, in->next) < 0)
		return err_set(&in->err, EIO, "look at the root");
	return 0;
}

/*
 * A part of the root once more, on itself, with attributes of its own. What
 * is mounted by now must not be there: it would be given what the root's part
 * is meant to have.
 */
static int mount_again(struct init *in, const struct wire_mount *m,
		       uint64_t attr)
{
	const char *path = wire_str(&in->box->blob, m->target);
	bool is_file = m->flags & WIRE_MNT_FILE;
	_cleanup_fd_ int place = layers_place(in, path, is_file);
	_cleanup_fd_ int mnt = NO_FD;
	struct stat root;
	struct stat st;

	if (place < 0)
		return place;
	/* A file of an overlayfs may show the device of its layer. */
	if (fstat(in->next, &root) < 0 || fstat(place, &st) < 0 ||
	    (!is_file && st.st_dev != root.st_dev))
		return err_set(&in->err, EXDEV, "'%s' is not in the image",
			       path);
	mnt = mnt_clone(place, "", &in->err);
	if (mnt < 0 || mnt_restrict(mnt, attr, &in->err) < 0 ||
	    mnt_attach(mnt, place, &in->err) < 0)
		return err_wrap(&in->err, "mount on '%s'", path);
	return 0;
}

int layers_part(struct init *in, const struct wire_mount *m)
{
	uint64_t attr = MNT_SAFE;

	if (m->kind == WIRE_CODE)
		return mount_again(in, m, attr | UAPI_MOUNT_ATTR_RDONLY);
	/* In a root that can be written it is a directory like others. */
	if (m->kind != WIRE_VOLUME || (in->box->blob.flags & WIRE_ROOT_RW))
		return 0;
	if (m->flags & WIRE_MNT_NOEXEC)
		attr |= UAPI_MOUNT_ATTR_NOEXEC;
	return mount_again(in, m, attr);
}

int layers_no_exec(struct init *in)
{
	struct uapi_mount_attr attr = { .attr_set = UAPI_MOUNT_ATTR_NOEXEC };

	if (sys_mount_setattr(in->next, "", AT_EMPTY_PATH, &attr) < 0)
		return err_errno(&in->err, errno,
				 "keep the image from being executed");
	return 0;
}

/* A directory of the workshop, with what is mounted below it, read-only. */
static int take_along(struct init *in, const char *name)
{
	struct uapi_mount_attr ro = { .attr_set = MNT_SAFE |
						  UAPI_MOUNT_ATTR_RDONLY };
	_cleanup_fd_ int place = layers_place(in, name, false);
	_cleanup_fd_ int mnt = NO_FD;

	if (place < 0)
		return place;
	mnt = mnt_clone(AT_FDCWD, name, &in->err);
	if (mnt < 0)
		return mnt;
	if (sys_mount_setattr(mnt, "", AT_EMPTY_PATH, &ro) < 0)
		return err_errno(&in->err, errno, "make '%s' read-only", name);
	return mnt_attach(mnt, place, &in->err);
}

int layers_enter(struct init *in)
{
	if (take_along(in, "/dev") < 0 || take_along(in, "/sys") < 0)
		return -in->err.code;
	if (fchdir(in->next) < 0 || sys_pivot_root(".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_errno(&in->err, errno, "enter the image's root");
	fd_close(&in->root);
	in->root = take_fd(&in->next);
	return 0;
}
