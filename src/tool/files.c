/* SPDX-License-Identifier: Apache-2.0 */

/*
 * read_file, write_file, list_files: below one directory of the host.
 *
 * Paths are opened from a descriptor, through no link and never above it. A
 * file that is not a regular one is not opened for its content, so nothing
 * waits on a pipe. Nothing that exists is opened for writing: a new file takes
 * its name. Names that tools of the host obey are not written, names that hold
 * credentials neither read nor written, whoever says yes.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io.h"
#include "base/json.h"
#include "base/state.h"
#include "base/util.h"
#include "box/spec.h"
#include "os/below.h"
#include "policy/decide.h"
#include "policy/never.h"
#include "tool/call.h"
#include "tool/kinds.h"

#define MAX_READ    (1U << 20)
#define MAX_ENTRIES 1000

struct file_tool {
	struct tool tool;
	int dir;
	char path[4096]; /* of dir, for people */
};

static const char *path_of(const json_t *args)
{
	const char *path = json_string_value(json_object_get(args, "path"));

	return path && *path ? path : ".";
}

static int check_credentials(const char *path, struct err *err)
{
	_cleanup_free_ char *whole = NULL;
	const char *found;

	if (asprintf(&whole, "/%s", path) < 0) {
		whole = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	found = never_credential_in(whole);
	if (found)
		return err_set(err, EPERM,
			       "'%.200s' holds credentials ('%s'), which no "
			       "tool reads or writes",
			       path, found);
	return 0;
}

/* Why a path did not open, in words that do not need an errno. */
static int not_opened(struct err *err, int r, const char *path)
{
	if (r == -EXDEV || r == -ELOOP)
		return err_set(err, EPERM,
			       "'%.200s' leads out of the workspace, or "
			       "through a link",
			       path);
	return err_errno(err, -r, "'%.200s'", path);
}

/* read_file */

/* Looked at before it is opened: opening can do something already. */
static int open_regular(const struct file_tool *f, const char *path,
			struct stat *st, struct err *err)
{
	_cleanup_fd_ int look = open_below(f->dir, path, O_PATH);
	_cleanup_fd_ int fd = NO_FD;
	struct stat was;

	if (look < 0)
		return not_opened(err, look, path);
	if (fstat(look, &was) < 0)
		return err_errno(err, errno, "'%.200s'", path);
	if (!S_ISREG(was.st_mode))
		return err_set(err, EINVAL, "'%.200s' is not a regular file",
			       path);
	fd = open_below(f->dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return not_opened(err, fd, path);
	if (fstat(fd, st) < 0 || st->st_ino != was.st_ino ||
	    st->st_dev != was.st_dev)
		return err_set(err, ESTALE, "'%.200s' has just changed", path);
	return take_fd(&fd);
}

static json_int_t number_of(const json_t *args, const char *name,
			    json_int_t otherwise)
{
	const json_t *n = json_object_get(args, name);

	return n ? (json_int_t)json_number_value(n) : otherwise;
}

static char *read_part(int fd, off_t from, size_t max, size_t *ret_len,
		       struct err *err)
{
	char *text = malloc(max + 1);
	ssize_t n;

	if (!text) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	n = lseek(fd, from, SEEK_SET) < 0 ? -errno
					  : io_read_full(fd, text, max);
	if (n < 0) {
		(void)err_errno(err, (int)-n, "read");
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*ret_len = (size_t)n;
	return text;
}

/* A cut may have gone through a character. */
static size_t whole_chars(const char *text, size_t len, bool is_cut)
{
	for (size_t n = len; is_cut && n > 0 && len - n < 4; n--)
		if (utf8_check(text, n))
			return n;
	return len;
}

static char *do_read(struct file_tool *f, const json_t *args, struct err *err)
{
	const char *path = path_of(args);
	json_int_t from = number_of(args, "offset", 0);
	size_t max = MIN((size_t)number_of(args, "length", MAX_READ), MAX_READ);
	_cleanup_free_ char *text = NULL;
	_cleanup_fd_ int fd = NO_FD;
	struct stat st = { 0 };
	size_t len = 0;

	if (check_credentials(path, err) < 0)
		return NULL;
	fd = open_regular(f, path, &st, err);
	if (fd < 0)
		return NULL;
	text = read_part(fd, (off_t)from, max, &len, err);
	if (!text)
		return NULL;
	len = whole_chars(text, len, from + (json_int_t)len < st.st_size);
	text[len] = '\0';
	if (!utf8_check(text, len) || memchr(text, '\0', len)) {
		(void)err_set(err, EINVAL,
			      "'%.200s' is not text; it has %lld bytes", path,
			      (long long)st.st_size);
		return NULL;
	}
	return take_ptr(text);
}

/* An image as a whole, for models with eyes; NULL: it is none. */
static json_t *read_image(const struct file_tool *f, const json_t *args)
{
	const char *path = path_of(args);
	_cleanup_free_ char *data = NULL;
	_cleanup_fd_ int fd = NO_FD;
	struct err err = { 0 };
	struct stat st = { 0 };
	size_t len = 0;
	char head[16];

	if (json_object_get(args, "offset") || json_object_get(args, "length"))
		return NULL;
	if (check_credentials(path, &err) < 0)
		return NULL;
	fd = open_regular(f, path, &st, &err);
	if (fd < 0 || st.st_size > (off_t)IMAGE_MAX ||
	    io_read_full(fd, head, sizeof(head)) != (ssize_t)sizeof(head) ||
	    !image_mime(head, sizeof(head)))
		return NULL;
	data = read_part(fd, 0, (size_t)st.st_size, &len, &err);
	return data ? image_part(data, len) : NULL;
}

static bool done_image(struct file_tool *f, struct tool_call *c)
{
	json_t *part = read_image(f, c->args);
	struct tool_result r = { 0 };

	if (!part)
		return false;
	r.content = json_pack("[{s:s, s:o}, o]", "type", "text", "text",
			      json_sprintf("%s: an image", path_of(c->args)),
			      part);
	if (!r.content)
		return false;
	tool_done(c, &r);
	return true;
}

/* write_file */

static int check_name(const char *path, struct err *err)
{
	const char *made = never_made_in(path);

	if (spec_check_filename(path, err) < 0)
		return -err->code;
	if (made)
		return err_set(err, EPERM,
			       "'%.200s' may not be written: tools of the host "
			       "obey '%s'",
			       path, made);
	return check_credentials(path, err);
}

/* The directory that the file is in; missing ones are made. */
static int open_parent(const struct file_tool *f, char *path,
		       const char **ret_name, struct err *err)
{
	_cleanup_fd_ int dir = open_below(f->dir, ".", O_PATH | O_DIRECTORY);
	char *part = path;
	char *slash;

	for (; dir >= 0 && (slash = strchr(part, '/')); part = slash + 1) {
		int next;

		*slash = '\0';
		if (*part == '\0' || strcmp(part, ".") == 0)
			continue;
		next = open_below(dir, part, O_PATH | O_DIRECTORY);
		if (next == -ENOENT && mkdirat(dir, part, 0755) == 0)
			next = open_below(dir, part, O_PATH | O_DIRECTORY);
		if (next == -ENOTDIR || next == -ELOOP)
			return err_set(err, EPERM,
				       "Filename is not a regular file");
		fd_close(&dir);
		dir = next;
	}
	*ret_name = part;
	return dir < 0 ? not_opened(err, dir, path) : take_fd(&dir);
}

static int write_new(int dir, const char *temp, const char *name, mode_t mode,
		     const json_t *content, struct err *err)
{
	_cleanup_fd_ int fd = openat(dir, temp,
				     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
					     O_CLOEXEC,
				     0600);
	int r;

	if (fd < 0)
		return err_errno(err, errno, "make a file");
	r = io_write_all(fd, json_string_value(content),
			 json_string_length(content));
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		r = -errno;
	if (r == 0 && renameat2(dir, temp, dir, name, 0) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, temp, 0);
	return r < 0 ? err_errno(err, -r, "write '%.200s'", name) : 0;
}

static int temp_name(char ret[64], struct err *err)
{
	unsigned char raw[12];
	char hex[2 * sizeof(raw) + 1];

	if (getrandom(raw, sizeof(raw), 0) != sizeof(raw))
		return err_set(err, EIO, "no random bytes");
	hex_format(raw, sizeof(raw), hex);
	(void)snprintf(ret, 64, ".cordon-%s.tmp", hex);
	return 0;
}

static char *do_write(struct file_tool *f, const json_t *args, struct err *err)
{
	const json_t *content = json_object_get(args, "content");
	_cleanup_free_ char *path = strdup(path_of(args));
	_cleanup_fd_ int dir = NO_FD;
	const char *name = "";
	mode_t mode = 0644;
	char temp[64];
	struct stat st;
	char *ret;

	if (!path || check_name(path, err) < 0)
		return NULL;
	dir = open_parent(f, path, &name, err);
	if (dir < 0 || temp_name(temp, err) < 0)
		return NULL;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!S_ISREG(st.st_mode)) {
			(void)err_set(err, EPERM,
				      "Filename is not a regular file");
			return NULL;
		}
		mode = st.st_mode & 0777;
	}
	if (write_new(dir, temp, name, mode, content, err) < 0)
		return NULL;
	if (asprintf(&ret, "wrote %zu bytes to %s", json_string_length(content),
		     path_of(args)) < 0) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	return ret;
}

static int judge_write(struct tool *t, const struct tool_call *c,
		       struct tool_judgement *ret, struct err *err)
{
	const struct file_tool *f = (const struct file_tool *)t;
	const json_t *content = json_object_get(c->args, "content");
	const char *path = path_of(c->args);
	_cleanup_free_ char *line = NULL;
	_cleanup_free_ char *below = NULL;
	struct err why = { 0 };

	if (check_name(path, &why) < 0) {
		ret->decision = DECISION_DENY;
		(void)snprintf(ret->why, sizeof(ret->why), "%s", why.text);
		return 0;
	}
	ret->crosses = true;
	(void)snprintf(ret->why, sizeof(ret->why),
		       "it writes a file of this machine");
	ret->text = strdup(json_string_value(content));
	if (asprintf(&line, "write %s in %s, %zu bytes", path, f->path,
		     json_string_length(content)) < 0)
		line = NULL;
	if (asprintf(&below, "below %s", f->path) < 0)
		below = NULL;
	if (!line || !below || !ret->text ||
	    strv_add(&ret->changes, line) < 0 ||
	    strv_add(&ret->changes, below) < 0)
		return err_set(err, ENOMEM, "out of memory");
	ret->n_told = 1;
	return 0;
}

/* list_files */

static const char *kind_of(mode_t mode)
{
	return S_ISREG(mode)   ? "file"
	       : S_ISDIR(mode) ? "directory"
	       : S_ISLNK(mode) ? "link"
			       : "other";
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static json_t *describe(int dir, const char *name)
{
	json_t *text = result_text(name, strlen(name));
	struct stat st;
	json_t *ret = NULL;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		ret = json_pack("{s:O, s:s, s:I}", "name",
				json_object_get(text, "text"), "type",
				kind_of(st.st_mode), "size",
				(json_int_t)st.st_size);
	json_decref(text);
	return ret;
}

/* The first names in the order of names, however many there are. */
static int read_names(DIR *d, struct strv *ret, size_t *ret_more)
{
	struct dirent *e;

	while ((e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (ret->n == 10 * MAX_ENTRIES)
			++*ret_more;
		else if (strv_add(ret, e->d_name) < 0)
			return -ENOMEM;
	}
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	return 0;
}

static char *do_list(struct file_tool *f, const json_t *args, struct err *err)
{
	const char *path = path_of(args);
	bool is_bad = check_credentials(path, err) < 0;
	int fd = is_bad ? -EPERM
			: open_below(f->dir, path,
				     O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct strv names = { 0 };
	json_t *files = json_array();
	size_t more = 0;
	json_t *o = NULL;
	char *ret = NULL;

	if (fd < 0 && !is_bad)
		(void)not_opened(err, fd, path);
	else if (fd >= 0 && (!d || read_names(d, &names, &more) < 0))
		(void)err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < names.n && i < MAX_ENTRIES; i++)
		(void)json_array_append_new(files, describe(fd, names.v[i]));
	if (names.n > MAX_ENTRIES)
		more += names.n - MAX_ENTRIES;
	if (d)
		o = json_pack("{s:O, s:I}", "files", files, "left_out",
			      (json_int_t)more);
	ret = o ? json_dumps(o, 0) : NULL;
	if (d)
		(void)closedir(d);
	else
		fd_close(&fd);
	json_decref(o);
	json_decref(files);
	strv_done(&names);
	return ret;
}

/* the tools */

#define PATH                                                                   \
	"\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4096,"    \
	"\"description\":\"relative to the workspace\"}"

struct file_row {
	const char *name;
	const char *description;
	const char *schema;
	char *(*run)(struct file_tool *f, const json_t *args, struct err *err);
	bool is_read_only;
	struct tool_ops ops;
};

static void call(struct tool *t, struct tool_call *c);

static void free_tool(struct tool *t)
{
	fd_close(&((struct file_tool *)t)->dir);
	free(t);
}

static const struct file_row rows[] = {
	{ "read_file",
	  "Reads a text file of the workspace, or an image (PNG, JPEG, GIF, "
	  "WebP) as a whole.",
	  "{\"type\":\"object\",\"properties\":{" PATH ",\"offset\":{\"type\":"
	  "\"integer\",\"minimum\":0,\"maximum\":1099511627776,"
	  "\"description\":\"first byte\"},"
	  "\"length\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1048576,"
	  "\"description\":\"at most so many bytes\"}},\"required\":[\"path\"],"
	  "\"additionalProperties\":false}",
	  do_read,
	  true,
	  { .call = call, .free = free_tool } },
	{ "write_file",
	  "Writes a text file of the workspace; one that is there is replaced, "
	  "directories are made.",
	  "{\"type\":\"object\",\"properties\":{" PATH ",\"content\":{\"type\":"
	  "\"string\"}},\"required\":[\"path\",\"content\"],"
	  "\"additionalProperties\":false}",
	  do_write,
	  false,
	  { .call = call, .judge = judge_write, .free = free_tool } },
	{ "list_files",
	  "Lists a directory of the workspace.",
	  "{\"type\":\"object\",\"properties\":{" PATH "},"
	  "\"additionalProperties\":false}",
	  do_list,
	  true,
	  { .call = call, .free = free_tool } },
};

static const struct file_row *row_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

static void call(struct tool *t, struct tool_call *c)
{
	/* By its operations: it may have been given another name. */
	const struct file_row *row =
		(const struct file_row *)((const char *)t->ops -
					  offsetof(struct file_row, ops));
	struct err err = { 0 };
	_cleanup_free_ char *text = NULL;

	if (row->run == do_read && done_image((struct file_tool *)t, c))
		return;
	text = row->run((struct file_tool *)t, c->args, &err);
	tool_done_text(c, !text, "%s",
		       text          ? text
		       : err.text[0] ? err.text
				     : "out of memory");
}

/* Answers are Cordon's own state: whoever could write it could say yes. */
static int check_place(struct file_tool *f, struct err *err)
{
	char link[64];
	char state[4096];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", f->dir);
	n = readlink(link, f->path, sizeof(f->path) - 1);
	if (n < 0)
		return err_errno(err, errno, "look at the workspace");
	f->path[n] = '\0';
	if (state_path(state, sizeof(state), err) < 0)
		return -err->code;
	if (path_is_below(f->path, state) || path_is_below(state, f->path))
		return err_set(err, EPERM,
			       "the workspace '%.200s' has Cordon's own state "
			       "in it",
			       f->path);
	return check_credentials(f->path, err);
}

int tool_files(struct loop *l, int workspace, const char *name,
	       struct tool **ret, struct err *err)
{
	const struct file_row *row = row_of(name);
	_cleanup_free_ struct file_tool *f = calloc(1, sizeof(*f));
	_cleanup_fd_ int dir = fcntl(workspace, F_DUPFD_CLOEXEC, 3);
	json_t *schema;
	struct stat st;
	int r;

	(void)l;
	if (!row)
		return err_set(err, ENOENT,
			       "'%.64s' is not read_file, write_file or "
			       "list_files",
			       name);
	if (!f)
		return err_set(err, ENOMEM, "out of memory");
	if (dir < 0 || fstat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "the workspace is no directory");
	f->dir = dir;
	if (check_place(f, err) < 0)
		return -err->code;
	schema = json_loads(row->schema, 0, NULL);
	r = tool_init(&f->tool, &row->ops, row->name, row->description, schema,
		      err);
	json_decref(schema);
	if (r < 0)
		return r;
	f->tool.kind = row->name;
	f->tool.is_read_only = row->is_read_only;
	(void)take_fd(&dir);
	*ret = &take_ptr(f)->tool;
	return 0;
}
