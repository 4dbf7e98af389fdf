/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The second wall. It says again, in the kernel's other language, what the
 * mounts already say: everything may be read, only these places written.
 */

#include <errno.h>
#include <fcntl.h>

#include "base/util.h"
#include "init/init.h"
#include "os/landlock.h"

static int allow_path(struct init *in, struct landlock *l, const char *path,
		      bool is_dir, int what)
{
	_cleanup_fd_ int fd = openat(AT_FDCWD, path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return err_errno(&in->err, errno, "open '%s'", path);
	return landlock_allow(l, fd, is_dir, what, &in->err);
}

/* With a list of commands only what is marked may be executed. */
static int allow_mounts(struct init *in, struct landlock *l, int run)
{
	for (uint32_t i = 0; i < in->box->n_mounts; i++) {
		const struct wire_mount *m = &in->box->mounts[i];
		const char *target = wire_str(&in->box->blob, m->target);
		bool is_dir = m->kind != WIRE_DEV &&
			      !(m->flags & WIRE_MNT_FILE);

		int what = m->flags & WIRE_MNT_RO ? 0 : run | LANDLOCK_WRITE;

		if (!run && (m->flags & WIRE_MNT_PROGRAM))
			what |= LANDLOCK_RUN;
		if (!what || m->kind == WIRE_LAYER || m->kind == WIRE_UPPER ||
		    m->kind == WIRE_PLACE)
			continue;
		if (!wire_has_mount(&in->conf, i) && !wire_is_in_root(m->kind))
			continue;
		if (allow_path(in, l, target, is_dir, what) < 0)
			return -in->err.code;
	}
	return 0;
}

/* No path leads there, so "/" does not include it. */
static int allow_changes(struct init *in, struct landlock *l)
{
	for (int i = 0; i < CHANGES; i++)
		if (in->changes.upper[i] >= 0 &&
		    landlock_allow(l, in->changes.upper[i], true, 0, &in->err) <
			    0)
			return -in->err.code;
	return 0;
}

int stage_landlock(struct init *in)
{
	int run = in->box->blob.flags & WIRE_COMMANDS ? 0 : LANDLOCK_RUN;
	int write = in->box->blob.flags & WIRE_ROOT_RW ? LANDLOCK_WRITE : 0;
	bool tty = in->box->blob.flags & WIRE_TTY || in->pts >= 0;
	struct landlock l;
	int r;

	if (in->conf.skip & 1U << WIRE_L_LANDLOCK) {
		in->not_enforced |= 1U << WIRE_L_LANDLOCK;
		return 0;
	}
	/* Where a box may connect to, its namespace and its gate say. */
	r = init_has_gate(in) ? landlock_open_net(&l, &in->err)
			      : landlock_open(&l, &in->err);
	if (r < 0)
		return r;
	in->landlock_abi = (uint32_t)l.abi;
	if (allow_path(in, &l, "/", true, run | write) < 0 ||
	    allow_mounts(in, &l, run) < 0 ||
	    (tty && allow_path(in, &l, "/dev/pts", true, LANDLOCK_WRITE) < 0) ||
	    allow_changes(in, &l) < 0) {
		fd_close(&l.fd);
		return -in->err.code;
	}
	r = landlock_enter(&l, &in->err);
	return r < 0 ? r : links_deny(in);
}
