/* SPDX-License-Identifier: Apache-2.0 */

/* One request for files: read, handed on, answered. See files.h. */

#include "init/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "init/init.h"
#include "os/caps.h"

void files_flush(struct files *f)
{
	if (f->n_out > 0 && io_write_all(f->sock, f->out, f->n_out) < 0)
		_exit(0);
	f->n_out = 0;
}

void files_put(struct files *f, const void *data, size_t len)
{
	if (len > sizeof(f->out) - f->n_out)
		files_flush(f);
	if (len > sizeof(f->out)) {
		if (io_write_all(f->sock, data, len) < 0)
			_exit(0);
		return;
	}
	memcpy(f->out + f->n_out, data, len);
	f->n_out += len;
}

void files_get(struct files *f, void *data, size_t len)
{
	if (io_read_full(f->sock, data, len) == (ssize_t)len)
		return;
	fresh_drop();
	_exit(0);
}

void files_answer(struct files *f)
{
	const struct files_answer a = { .err = f->err };

	files_put(f, &a, sizeof(a));
}

void files_put_entry(struct files *f, const struct files_entry *e,
		     const char *name, const char *link)
{
	files_put(f, e, sizeof(*e));
	files_put(f, name, e->name_len);
	files_put(f, link, e->link_len);
}

void files_put_end(struct files *f, uint64_t n_left_out, int code,
		   const char *name)
{
	const struct files_entry end = { .mode = (uint32_t)code,
					 .name_len = (uint32_t)strlen(name),
					 .size = n_left_out };

	files_put_entry(f, &end, name, "");
}

void files_describe(const struct stat *st, struct files_entry *ret)
{
	static const struct {
		mode_t type;
		uint8_t kind;
	} kinds[] = {
		{ S_IFREG, 'f' }, { S_IFDIR, 'd' },  { S_IFLNK, 'l' },
		{ S_IFIFO, 'p' }, { S_IFSOCK, 's' }, { S_IFCHR, 'c' },
		{ S_IFBLK, 'b' },
	};

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((st->st_mode & S_IFMT) == kinds[i].type)
			ret->kind = kinds[i].kind;
	ret->mode = st->st_mode & 07777;
	ret->uid = st->st_uid;
	ret->gid = st->st_gid;
	ret->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 +
			st->st_mtim.tv_nsec;
	if (ret->kind == 'f')
		ret->size = (uint64_t)st->st_size;
}

int files_step(int dir, const char *name, size_t len)
{
	char copy[256];
	int fd;

	if (len >= sizeof(copy))
		return -ENAMETOOLONG;
	memcpy(copy, name, len);
	copy[len] = '\0';
	fd = openat(dir, copy, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

const char *dents_next(struct dents *d)
{
	for (;;) {
		const struct dirent64 *e;

		if (d->at >= d->len) {
			d->at = 0;
			d->len = syscall(SYS_getdents64, d->fd, d->buf,
					 sizeof(d->buf));
			if (d->len <= 0)
				return NULL;
		}
		e = (const void *)(d->buf + d->at);
		d->at += e->len;
		if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
			return e->name;
	}
}

/* The request; a path is absolute and has no NUL in it. */
static int receive(struct files *f)
{
	files_get(f, &f->ask, sizeof(f->ask));
	if (f->ask.path_len > FILES_MAX_PATH)
		return err_set(&f->err, ENAMETOOLONG, "the path is too long");
	files_get(f, f->path, f->ask.path_len);
	f->path[f->ask.path_len] = '\0';
	if (f->ask.op == FILES_PS)
		return 0;
	if (f->path[0] != '/' || strlen(f->path) != f->ask.path_len)
		return err_set(&f->err, EINVAL, "the path is not absolute");
	return 0;
}

static void refuse(struct files *f)
{
	if (!f->err.code)
		(void)err_set(&f->err, ENOSYS, "request %u is not served",
			      f->ask.op);
	files_answer(f);
}

/*
 * None but over owners, where owners are to be set and the box has others than
 * its user; else this takes away what there was.
 */
static int take_rights(struct files *f)
{
	bool has_owners = f->ask.op == FILES_WRITE &&
			  (f->ask.flags & FILES_IDS);
	int r = has_owners ? caps_in_force(CAPS_OVER_OWNERS)
			   : caps_keep_only(0);

	return r < 0 ? err_errno(&f->err, -r, "give up rights") : 0;
}

static void serve(struct files *f)
{
	if (receive(f) < 0) {
		refuse(f);
		return;
	}
	if (take_rights(f) < 0) {
		refuse(f);
		return;
	}
	switch (f->ask.op) {
	case FILES_STAT:
	case FILES_LOOK:
		files_stat(f);
		break;
	case FILES_READ:
		files_read(f);
		break;
	case FILES_WRITE:
		files_write(f);
		break;
	case FILES_MAKE:
		files_make(f);
		break;
	case FILES_PS:
		files_ps(f);
		break;
	case FILES_CHANGES:
		files_changes(f);
		break;
	default:
		refuse(f);
		break;
	}
}

void files_serve(int sock, const struct changes *changes)
{
	static struct files f;

	f.sock = sock;
	f.changes = *changes;
	serve(&f);
	files_flush(&f);
	(void)shutdown(sock, SHUT_WR);
	_exit(0);
}
