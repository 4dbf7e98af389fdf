/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A directory of the host in a root that can be written.
 *
 * The root is made of layers without an image (stage-layers.c); /usr of the
 * host is mounted in it, and over that goes an overlayfs whose changes lie
 * beside those to the root: in what the keeper has sent for them, which is
 * limited in size, and is there again when the box is started once more. No
 * path in the box leads to them.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "init/init.h"
#include "os/below.h"
#include "os/mnt.h"
#include "os/uapi.h"

#define HOST_UPPER LAYERS_UPPER "/host"
#define HOST_WORK  LAYERS_UPPER "/host-work"

/*
 * The place, once more: the name becomes an option, so without any link it must
 * lead to what was just mounted.
 */
static int open_place(struct init *in, uint32_t i, const char *target)
{
	_cleanup_fd_ int fd = open_below(in->next, target + strspn(target, "/"),
					 O_PATH | O_DIRECTORY);
	struct stat named;
	struct stat st;

	if (fd < 0 || fstat(fd, &named) < 0 || fstat(in->mounts[i], &st) < 0)
		return err_errno(&in->err, fd < 0 ? -fd : errno, "look at '%s'",
				 target);
	if (named.st_dev != st.st_dev || named.st_ino != st.st_ino)
		return err_set(&in->err, EPROTO, "'%s' is something else",
			       target);
	return take_fd(&fd);
}

static int hold(struct init *in, uint32_t i, const char *target)
{
	struct changes *c = &in->changes;

	c->host = target;
	c->lower[CHANGES_HOST] = fcntl(in->mounts[i], F_DUPFD_CLOEXEC, 5);
	c->upper[CHANGES_HOST] = open(HOST_UPPER,
				      O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (c->lower[CHANGES_HOST] < 0 || c->upper[CHANGES_HOST] < 0)
		return err_errno(&in->err, errno, "hold the layers");
	return 0;
}

static int make_dir(struct init *in, const char *path)
{
	/* It may have been used before. */
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_errno(&in->err, errno, "make the layer for changes");
	return 0;
}

int layers_over_host(struct init *in, uint32_t i, const char *target)
{
	char path[sizeof(LAYERS_ROOT) + 256];
	const char *const options[][2] = {
		{ "lowerdir", path },
		{ "upperdir", HOST_UPPER },
		{ "workdir", HOST_WORK },
		{ "userxattr", NULL },
	};
	_cleanup_fd_ int place = NO_FD;
	_cleanup_fd_ int mnt = NO_FD;

	if (snprintf(path, sizeof(path), LAYERS_ROOT "%s", target) >=
		    (int)sizeof(path) ||
	    in->changes.host)
		return err_set(&in->err, EPROTO, "one layer of the host");
	place = open_place(in, i, target);
	if (place < 0 || make_dir(in, HOST_UPPER) < 0 ||
	    make_dir(in, HOST_WORK) < 0)
		return -in->err.code;
	mnt = mnt_new("overlay", options, ARRAY_SIZE(options), MNT_SAFE,
		      &in->err);
	if (mnt < 0 || mnt_attach(mnt, place, &in->err) < 0)
		return err_wrap(&in->err, "make a layer for '%s'", target);
	return in->conf.stays ? hold(in, i, target) : 0;
}
