/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A terminal of the box's own: its devpts has one terminal, whose other end
 * goes to the client. The host's terminals do not exist in the box.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/util.h"
#include "init/init.h"
#include "os/mnt.h"
#include "os/uapi.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

/* A new instance is what every devpts mount is since Linux 4.7. */
static int mount_pts(struct init *in, const char *max)
{
	const char *const options[][2] = {
		{ "ptmxmode", "0666" },
		{ "mode", "0620" },
		{ "max", max },
	};

	return mnt_new("devpts", options, ARRAY_SIZE(options),
		       UAPI_MOUNT_ATTR_NOSUID | UAPI_MOUNT_ATTR_NOEXEC,
		       &in->err);
}

/*
 * Any program of a box that stays may ask for one, so all such boxes have the
 * place. It is held open: by then the box may have changed what leads there.
 */
int stage_terminals(struct init *in)
{
	_cleanup_fd_ int pts = NO_FD;

	if (!in->conf.stays)
		return 0;
	if (place_make(in, "/dev/pts", false) < 0)
		return err_set(&in->err, EIO, "make /dev/pts");
	/* Where the root has its own way to name it, that stays. */
	(void)symlink("pts/ptmx", "/dev/ptmx");
	pts = mount_pts(in, "1024");
	if (pts < 0 || mnt_attach_at(pts, in->root, "/dev/pts", &in->err) < 0)
		return -in->err.code;
	in->pts = take_fd(&pts);
	return 0;
}

int stage_tty(struct init *in)
{
	const struct winsize size = {
		.ws_row = (unsigned short)in->box->tty_rows,
		.ws_col = (unsigned short)in->box->tty_cols
	};
	_cleanup_fd_ int pts = NO_FD;
	int unlock = 0;

	/* An image's root has been entered since: this is the one in it. */
	if (in->pts >= 0) {
		fd_close(&in->pts);
		in->pts = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
		return in->pts < 0 ? err_errno(&in->err, errno, "open /dev/pts")
				   : 0;
	}
	if (!(in->box->blob.flags & WIRE_TTY))
		return 0;
	pts = mount_pts(in, "64");
	if (pts < 0 || mnt_attach_at(pts, in->root, "/dev/pts", &in->err) < 0)
		return -in->err.code;
	in->tty = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (in->tty < 0)
		return err_errno(&in->err, errno, "open a terminal");
	if (ioctl(in->tty, TIOCSPTLCK, &unlock) < 0 ||
	    ioctl(in->tty, TIOCSWINSZ, &size) < 0)
		return err_errno(&in->err, errno, "set up the terminal");
	/* The peer by descriptor, not by a name that could be another. */
	for (int i = 0; i < 3; i++) {
		fd_close(&in->stdio[i]);
		in->stdio[i] = ioctl(in->tty, TIOCGPTPEER,
				     O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (in->stdio[i] < 0)
			return err_errno(&in->err, errno,
					 "open the terminal's other end");
	}
	return 0;
}
