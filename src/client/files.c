/* SPDX-License-Identifier: Apache-2.0 */

/* Files of a box: all of them travel as tar. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "client/client.h"
#include "client/tar-file.h"

#define MAX_FILE ((size_t)64 << 20)
#define PUT      "/v1/boxes/%s/files?no_overwrite=1&path=%s"
#define GET      "/v1/boxes/%s/files?path=%s"

/* A connection on which the archive comes or goes; NULL with *err. */
static struct daemon *dial(const struct cordon *c, bool is_put, const char *box,
			   const char *path, struct err *err)
{
	const struct daemon_place *place = far_place(c, err);
	struct daemon *d;
	char url[9000];

	if (!place || daemon_format(url, sizeof(url), err, is_put ? PUT : GET,
				    box, path) < 0)
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	d->place = place;
	if (daemon_ask(d, is_put ? "PUT" : "GET", url, NULL,
		       is_put ? DAEMON_SENDS : 0, err) == 0)
		return d;
	daemon_done(d);
	free(d);
	return NULL;
}

static void hang_up(struct daemon *d)
{
	if (d)
		daemon_done(d);
	free(d);
}

/* one file */

static int send_piece(void *arg, const void *data, size_t len, struct err *err)
{
	return daemon_send(arg, data, len, err);
}

static int send_file(struct daemon *d, const char *name, const void *data,
		     size_t len, unsigned int mode, struct err *err)
{
	const struct tar_out out = { send_piece, d, err };
	const struct tar_entry e = { .name = name,
				     .type = '0',
				     .mode = mode & 0777,
				     .size = len,
				     .mtime = time(NULL) };

	if (tar_put_entry(&out, &e) < 0 || daemon_send(d, data, len, err) < 0 ||
	    tar_put_padding(&out, len) < 0 || tar_put_end(&out) < 0)
		return -err->code;
	return daemon_sent(d, err);
}

/* "/a/b" in "/a" and "b"; the directory is the caller's. */
static char *split(const char *path, const char **ret_name, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char *dir;

	if (path[0] != '/' || !slash[1]) {
		(void)err_set(err, EINVAL,
			      "'%.200s' is not the absolute path of a file",
			      path);
		return NULL;
	}
	*ret_name = slash + 1;
	dir = slash == path ? strdup("/")
			    : strndup(path, (size_t)(slash - path));
	if (!dir)
		(void)err_set(err, ENOMEM, "out of memory");
	return dir;
}

int cordon_box_put(struct cordon *c, const char *box, const char *path,
		   const void *data, size_t len, unsigned int mode,
		   struct cordon_error *out)
{
	struct err err = { 0 };
	const char *name;
	_cleanup_free_ char *dir = split(path, &name, &err);
	struct daemon *d = NULL;

	if (dir && len > MAX_FILE)
		(void)err_set(&err, E2BIG,
			      "a file of more than 64 MiB is put as an "
			      "archive");
	else if (dir)
		d = dial(c, true, box, dir, &err);
	if (d)
		(void)send_file(d, name, data, len, mode, &err);
	hang_up(d);
	return err.code ? far_out(out, &err) : 0;
}

static int receive(struct daemon *d, struct tar_file *t, struct err *err)
{
	char data[32768];
	ssize_t n;

	while ((n = daemon_read(d, data, sizeof(data), err)) > 0)
		if (tar_file_take(t, data, (size_t)n, err) < 0)
			return -err->code;
	if (n < 0 || tar_file_end(t, err) < 0)
		return -err->code;
	t->data.max++; /* the NUL does not count */
	if (buf_add(&t->data, "", 1) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

int cordon_box_get(struct cordon *c, const char *box, const char *path,
		   void **ret, size_t *ret_len, struct cordon_error *out)
{
	struct err err = { 0 };
	struct daemon *d = dial(c, false, box, path, &err);
	struct tar_file t;

	tar_file_init(&t, MAX_FILE);
	if (d && receive(d, &t, &err) == 0) {
		*ret_len = t.data.len - 1;
		*ret = buf_take(&t.data);
	}
	tar_file_done(&t);
	hang_up(d);
	return err.code ? far_out(out, &err) : 0;
}

/* archives */

int cordon_box_put_tar(struct cordon *c, const char *box, const char *dir,
		       int fd, struct cordon_error *out)
{
	struct err err = { 0 };
	struct daemon *d = dial(c, true, box, dir, &err);
	char data[32768];
	ssize_t n = 0;

	while (d && !err.code && (n = read(fd, data, sizeof(data))) != 0)
		if (n > 0)
			(void)daemon_send(d, data, (size_t)n, &err);
		else if (errno != EINTR)
			(void)err_errno(&err, errno, "read the archive");
	if (d && !err.code)
		(void)daemon_sent(d, &err);
	hang_up(d);
	return err.code ? far_out(out, &err) : 0;
}

int cordon_box_get_tar(struct cordon *c, const char *box, const char *path,
		       int fd, struct cordon_error *out)
{
	struct err err = { 0 };
	struct daemon *d = dial(c, false, box, path, &err);
	char data[32768];
	ssize_t n;
	int r;

	while (d && (n = daemon_read(d, data, sizeof(data), &err)) > 0) {
		r = io_write_all(fd, data, (size_t)n);
		if (r < 0) {
			(void)err_errno(&err, -r, "write the archive");
			break;
		}
	}
	hang_up(d);
	return err.code ? far_out(out, &err) : 0;
}
