/* SPDX-License-Identifier: Apache-2.0 */

/* cordon cp: files into a box and out of it, as tar. */

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "cli/cli.h"
#include "client/daemon.h"
#include "cli/box-commands.h"
#include "cli/opts.h"
#include "cli/tar.h"

struct cp_flags {
	bool archive;
};

static const struct opt cp_table[] = {
	{ "archive", 'a', NULL,
	  "into a box: with their owners, where it has such users", OPT_SWITCH,
	  offsetof(struct cp_flags, archive) },
};

const struct opts cp_opts = {
	.usage = "[-a] BOX:PATH HOST|-   or   [-a] HOST|- BOX:PATH",
	.v = cp_table,
	.n = ARRAY_SIZE(cp_table),
	.min = 2,
	.max = 2,
};

/* "BOX:PATH" in two; a path on the host has a slash before any colon. */
static bool split(char *text, char **box, char **path)
{
	char *colon = strchr(text, ':');
	char *slash = strchr(text, '/');

	if (!colon || colon == text || (slash && slash < colon) ||
	    strcmp(text, "-") == 0)
		return false;
	*colon = '\0';
	*box = text;
	*path = colon + 1;
	return true;
}

static bool ends_with_dot(const char *path)
{
	size_t len = strlen(path);

	return strcmp(path, ".") == 0 ||
	       (len >= 2 && strcmp(path + len - 2, "/.") == 0);
}

/* The last part, in the caller's buffer. */
static const char *last_part(const char *path, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s", path);
	return basename(ret);
}

/* kind: "file", "directory", ..., "" where there is none */
static int stat_in_box(const char *box, const char *path, char *kind,
		       size_t size, struct err *err)
{
	char url[9000];
	struct value v;
	struct buf b;

	kind[0] = '\0';
	if (daemon_format(url, sizeof(url), err, "/v1/boxes/%s/stat?path=%s",
			  box, path) < 0)
		return -err->code;
	if (daemon_call("GET", url, NULL, &b, err) < 0) {
		if (err->code != DAEMON_NO_FILE)
			return -err->code;
		*err = (struct err){ 0 };
		return 0;
	}
	v = (struct value){ b.data, b.len };
	(void)member_text(&v, "kind", kind, size);
	buf_done(&b);
	return 0;
}

/* in */

static int send_piece(void *arg, const void *data, size_t len, struct err *err)
{
	return daemon_send(arg, data, len, err);
}

static int open_put(struct daemon *d, const char *box, const char *path,
		    const struct cp_flags *f, struct err *err)
{
	char url[9000];

	if (daemon_format(url, sizeof(url), err,
			  f->archive ? "/v1/boxes/%s/files?no_overwrite=1"
				       "&owners=1&path=%s"
				     : "/v1/boxes/%s/files?no_overwrite=1"
				       "&path=%s",
			  box, path) < 0)
		return -err->code;
	return daemon_ask(d, "PUT", url, NULL, DAEMON_SENDS, err);
}

static int send_stdin(struct daemon *d, struct err *err)
{
	char data[65536];
	ssize_t n;

	while ((n = read(0, data, sizeof(data))) > 0)
		if (daemon_send(d, data, (size_t)n, err) < 0)
			return -err->code;
	return n < 0 ? err_errno(err, errno, "read standard input") : 0;
}

/* Where it goes and under which name, by what is there (as docker cp does). */
static int aim(const char *from, const char *box, const char *path, char *dir,
	       char *name, size_t size, struct err *err)
{
	char kind[20], copy[4096];
	struct stat st;

	if (lstat(from, &st) < 0)
		return err_errno(err, errno, "open '%s'", from);
	if (stat_in_box(box, path, kind, sizeof(kind), err) < 0)
		return -err->code;
	if (strcmp(kind, "directory") == 0) {
		(void)snprintf(dir, size, "%s", path);
		(void)snprintf(name, size, "%s",
			       ends_with_dot(from)
				       ? ""
				       : last_part(from, copy, sizeof(copy)));
		return 0;
	}
	if (*kind && S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR,
			       "'%s' is a directory, and '%s:%s' is none", from,
			       box, path);
	(void)snprintf(copy, sizeof(copy), "%s", path);
	(void)snprintf(dir, size, "%s", dirname(copy));
	(void)snprintf(name, size, "%s", last_part(path, copy, sizeof(copy)));
	return 0;
}

static int copy_in(char *from, const char *box, const char *path,
		   const struct cp_flags *f, struct err *err)
{
	static struct daemon d;
	char dir[4096], name[4096];
	bool is_stdin = strcmp(from, "-") == 0;
	int r;

	if (is_stdin)
		(void)snprintf(dir, sizeof(dir), "%s", path);
	else if (aim(from, box, path, dir, name, sizeof(dir), err) < 0)
		return -err->code;
	r = open_put(&d, box, dir, f, err);
	if (r == 0)
		r = is_stdin ? send_stdin(&d, err)
			     : tar_pack(AT_FDCWD, from, name, send_piece, &d,
					err);
	if (r == 0)
		r = daemon_sent(&d, err);
	daemon_done(&d);
	return r;
}

/* out */

static void on_skipped(const char *name, const char *why)
{
	say("'%s' is left out: %s", name, why);
}

static int open_target(const char *to, const char *source, char *name,
		       size_t size, struct err *err)
{
	char copy[4096];
	struct stat st;
	int fd;

	if (stat(to, &st) == 0 && S_ISDIR(st.st_mode)) {
		(void)snprintf(copy, sizeof(copy), "%s", to);
		(void)snprintf(name, size, "%s",
			       ends_with_dot(source)
				       ? ""
				       : last_part(source, copy, sizeof(copy)));
		fd = open(to, O_PATH | O_DIRECTORY | O_CLOEXEC);
	} else {
		(void)snprintf(name, size, "%s",
			       last_part(to, copy, sizeof(copy)));
		(void)snprintf(copy, sizeof(copy), "%s", to);
		fd = open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	return fd < 0 ? err_errno(err, errno, "open '%s'", to) : fd;
}

static int receive(struct daemon *d, struct tar_reader *t, struct err *err)
{
	char data[65536];
	ssize_t n;

	while ((n = daemon_read(d, data, sizeof(data), err)) > 0) {
		int r = t ? tar_reader_take(t, data, (size_t)n, err)
			  : io_write_all(1, data, (size_t)n);

		if (r < 0 && !t)
			return err_errno(err, -r, "write to standard output");
		if (r < 0)
			return r;
	}
	if (n < 0)
		return -err->code;
	return t ? tar_reader_end(t, err) : 0;
}

static int copy_out(const char *box, const char *path, const char *to,
		    struct err *err)
{
	static struct daemon d;
	static struct tar_reader t;
	_cleanup_fd_ int dir = NO_FD;
	bool is_stream = strcmp(to, "-") == 0;
	char url[9000], name[4096];
	int r;

	if (!is_stream) {
		dir = open_target(to, path, name, sizeof(name), err);
		if (dir < 0)
			return -err->code;
	}
	if (daemon_format(url, sizeof(url), err, "/v1/boxes/%s/files?path=%s",
			  box, path) < 0)
		return -err->code;
	r = daemon_ask(&d, "GET", url, NULL, 0, err);
	if (r == 0 && is_stream) {
		r = receive(&d, NULL, err);
	} else if (r == 0) {
		tar_reader_init(&t, dir);
		t.rename = name;
		t.skipped = on_skipped;
		r = receive(&d, &t, err);
		tar_reader_done(&t);
	}
	daemon_done(&d);
	return r;
}

int cmd_cp(int argc, char **argv)
{
	char *box_a = NULL, *path_a, *box_b = NULL, *path_b;
	struct err err = { 0 };
	struct cp_flags flags = { 0 };
	bool is_out, is_in;
	int r;

	(void)argc;
	if (opts_read(&cp_opts, argv, &flags, &err) < 0) {
		if (err.text[0])
			say("%s", err.text);
		return err.text[0] ? EXIT_OURS : 0;
	}
	is_out = split(argv[1], &box_a, &path_a);
	is_in = split(argv[2], &box_b, &path_b);
	if (is_out == is_in) {
		say("one of both is in a box: BOX:PATH");
		return EXIT_OURS;
	}
	r = is_out ? copy_out(box_a, path_a, argv[2], &err)
		   : copy_in(argv[1], box_b, path_b, &flags, &err);
	if (r == 0)
		return 0;
	say("%s", err.text);
	return EXIT_OURS;
}
