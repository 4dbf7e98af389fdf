/* SPDX-License-Identifier: Apache-2.0 */
#include "box/binds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "box/guard-facts.h"

/* Never shown to a box, nor anything below them. */
static const char *const never[] = { "/proc", "/sys", "/dev" };

/* Never mounted over in a box. */
static const char *const taken[] = { "/proc", "/sys", "/dev", "/usr" };

static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return strncmp(path, top, len) == 0 &&
	       (path[len] == '/' || path[len] == '\0');
}

static int check_source(const char *path, const struct stat *st,
			struct err *err)
{
	if (strcmp(path, "/") == 0)
		return err_set(err, EPERM, "the host's root is never mounted");
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (is_below(path, never[i]))
			return err_set(err, EPERM,
				       "%s is never mounted into a box",
				       never[i]);
	if (S_ISSOCK(st->st_mode))
		return err_set(err, EPERM,
			       "a unix socket is never mounted into a box");
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return err_set(err, EPERM,
			       "it is neither a directory nor a file");
	return 0;
}

static int check_target(const struct wire_box *box, const char *path,
			struct err *err)
{
	/* The last one is the root's own only where that is this machine's. */
	for (size_t i = 0; i < ARRAY_SIZE(taken) - (box->image != 0); i++)
		if (is_below(path, taken[i]))
			return err_set(err, EPERM,
				       "nothing can be mounted at '%s'", path);
	return 0;
}

/* The path without links, of the very file that `fd` is. */
static int real_path(int fd, char *ret, size_t size)
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, size - 1);
	if (n <= 0 || ret[0] != '/')
		return -ENOENT;
	ret[n] = '\0';
	return 0;
}

/* Under a list of commands nothing that can be written can be executed. */
static int no_exec(const struct wire_box *box)
{
	return box->blob.flags & WIRE_COMMANDS ? WIRE_MNT_NOEXEC : 0;
}

static int add_bind(struct pack *p, struct wire_box *box,
		    const struct cordon_spec *s, const struct spec_bind *b,
		    struct err *err)
{
	bool is_to_come = s->is_dry && b->ino == MOUNT_MISSING;
	_cleanup_fd_ int fd = is_to_come ? NO_FD
					 : open(b->source, O_PATH | O_CLOEXEC);
	char path[4096];
	struct stat st;
	struct wire_mount *m;
	int flags = no_exec(box);

	if (is_to_come)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "volume: open '%s'", b->source);
	if (b->ino && (st.st_ino != b->ino || st.st_dev != b->dev))
		return err_set(err, ESTALE,
			       "volume: '%s' is no longer what it was a moment "
			       "ago",
			       b->source);
	if (real_path(fd, path, sizeof(path)) < 0)
		return err_set(err, ENOENT, "volume: '%s' has no path",
			       b->source);
	if (check_source(path, &st, err) < 0)
		return err_wrap(err, "volume '%s'", b->source);
	if (check_target(box, b->target, err) < 0)
		return err_wrap(err, "volume");
	/* Of someone else's, a peer's box sees what everybody may. */
	if (!s->is_peer || st.st_uid == geteuid())
		flags |= WIRE_MNT_IDMAP;
	if (b->mode == BIND_RO)
		flags |= WIRE_MNT_RO;
	else
		box->blob.flags |= WIRE_CALLER_UID;
	if (!S_ISDIR(st.st_mode))
		flags |= WIRE_MNT_FILE;
	m = pack_mount(p, box, WIRE_BIND, flags, path, b->target);
	m->source_dev = st.st_dev;
	m->source_ino = st.st_ino;
	m->denied = (s->no_links ? WIRE_DENY_LINKS : 0) |
		    (s->no_pipes ? WIRE_DENY_PIPES : 0);
	return 0;
}

/* What is mounted, in the order of its target's length: parents first. */
struct item {
	const char *target;
	const struct spec_bind *bind;
	const struct spec_tmpfs *tmpfs;
};

static int by_length(const void *a, const void *b)
{
	size_t x = strlen(((const struct item *)a)->target);
	size_t y = strlen(((const struct item *)b)->target);

	return (x > y) - (x < y);
}

int binds_pack(struct pack *p, struct wire_box *box,
	       const struct cordon_spec *s, struct err *err)
{
	struct item items[2 * SPEC_MAX_ITEMS];
	size_t n = 0;

	for (size_t i = 0; i < s->n_binds; i++)
		items[n++] = (struct item){ .target = s->binds[i].target,
					    .bind = &s->binds[i] };
	for (size_t i = 0; i < s->n_tmpfs; i++)
		items[n++] = (struct item){ .target = s->tmpfs[i].target,
					    .tmpfs = &s->tmpfs[i] };
	qsort(items, n, sizeof(items[0]), by_length);
	for (size_t i = 0; i < n; i++) {
		const struct spec_tmpfs *t = items[i].tmpfs;
		struct wire_mount *m;

		if (items[i].bind) {
			if (add_bind(p, box, s, items[i].bind, err) < 0)
				return -err->code;
			continue;
		}
		if (strcmp(t->target, "/dev/shm") != 0 &&
		    check_target(box, t->target, err) < 0)
			return err_wrap(err,
					t->is_volume ? "writable" : "tmpfs");
		if (t->is_volume && s->root) {
			(void)pack_mount(p, box, WIRE_VOLUME, no_exec(box),
					 NULL, t->target);
			continue;
		}
		m = pack_mount(p, box, WIRE_TMPFS, no_exec(box), NULL,
			       t->target);
		m->size = t->size;
		m->mode = t->mode;
		if (t->is_ro)
			m->flags |= WIRE_MNT_RO;
		if (t->is_noexec)
			m->flags |= WIRE_MNT_NOEXEC;
		m->inodes = MAX(t->size >> 20, 4) * 512;
		if (strcmp(t->target, "/workspace") == 0)
			m->flags |= WIRE_MNT_WORK;
	}
	return 0;
}
