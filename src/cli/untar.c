/* SPDX-License-Identifier: Apache-2.0 */

/* Reading an archive that somebody else made; see tar.h for the rules. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/num.h"
#include "base/util.h"
#include "cli/tar.h"
#include "os/uapi.h"

static int bad(struct err *err, const char *what)
{
	return err_set(err, EPROTO, "the archive %s", what);
}

void tar_reader_init(struct tar_reader *t, int dir)
{
	memset(t, 0, sizeof(*t));
	t->dir = dir;
	t->fd = NO_FD;
	buf_init(&t->extra, TAR_MAX_HEAD);
	buf_init(&t->path, TAR_MAX_HEAD);
	buf_init(&t->link, TAR_MAX_HEAD);
}

void tar_reader_done(struct tar_reader *t)
{
	fd_close(&t->fd);
	buf_done(&t->extra);
	buf_done(&t->path);
	buf_done(&t->link);
}

static void clear(struct buf *b)
{
	buf_done(b);
	buf_init(b, TAR_MAX_HEAD);
}

/* A number of the header: octal, or binary with the high bit set. */
static int parse_number(const char *field, size_t size, uint64_t *ret)
{
	uint64_t n = 0;
	size_t i = 0;

	if ((unsigned char)field[0] & 0x80) {
		for (i = 1; i < size; i++) {
			if (n >> 55)
				return -ERANGE;
			n = n << 8 | (unsigned char)field[i];
		}
		*ret = n;
		return 0;
	}
	while (i < size && field[i] == ' ')
		i++;
	for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
		if (n >> 60)
			return -ERANGE;
		n = n << 3 | (uint64_t)(field[i] - '0');
	}
	if (i < size && field[i] && field[i] != ' ')
		return -EINVAL;
	*ret = n;
	return 0;
}

static bool has_good_sum(const char *h)
{
	uint64_t want;
	unsigned int sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : (unsigned char)h[i];
	return parse_number(h + 148, 8, &want) == 0 && want == sum;
}

/* names */

/* Relative, no part is "." or ".." or empty; a slash at the end goes. */
static bool name_is_good(char *name)
{
	char *part = name;
	size_t len = strlen(name);

	while (len > 0 && name[len - 1] == '/')
		name[--len] = '\0';
	while (*part) {
		size_t n = strcspn(part, "/");

		if (n == 0 || n > 255 || (n == 1 && part[0] == '.') ||
		    (n == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part += n;
		part += *part == '/';
	}
	return len > 0 && len < 4096;
}

/* The directory that holds the last part of `name`; *ret_last points there. */
static int open_parent(struct tar_reader *t, char *name, const char **ret_last,
		       struct err *err)
{
	const struct uapi_open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = UAPI_RESOLVE_BENEATH | UAPI_RESOLVE_NO_SYMLINKS |
			   UAPI_RESOLVE_NO_MAGICLINKS,
	};
	char *slash = strrchr(name, '/');
	int fd;

	*ret_last = slash ? slash + 1 : name;
	if (!slash)
		return fcntl(t->dir, F_DUPFD_CLOEXEC, 3);
	*slash = '\0';
	fd = sys_openat2(t->dir, name, &how);
	if (fd < 0)
		(void)err_errno(err, errno, "open '%s'", name);
	*slash = '/';
	return fd < 0 ? -err->code : fd;
}

/* entries */

static void skip(const struct tar_reader *t, const char *name, const char *why)
{
	if (t->skipped)
		t->skipped(name, why);
}

static int make_directory(int parent, const char *last, unsigned int mode,
			  struct err *err)
{
	struct stat st;

	if (mkdirat(parent, last, mode | 0700) == 0)
		return 0;
	if (errno == EEXIST &&
	    fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode))
		return 0;
	return err_errno(err, errno, "make the directory '%s'", last);
}

/* What is no directory makes room. */
static int make_room(int parent, const char *last, struct err *err)
{
	if (unlinkat(parent, last, 0) == 0 || errno == ENOENT)
		return 0;
	return err_errno(err, errno == EISDIR ? EISDIR : errno, "replace '%s'",
			 last);
}

static int make_file(struct tar_reader *t, int parent, const char *last,
		     unsigned int mode, struct err *err)
{
	if (make_room(parent, last, err) < 0)
		return -err->code;
	t->fd = openat(parent, last,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       mode);
	if (t->fd < 0)
		return err_errno(err, errno, "make '%s'", last);
	return 0;
}

static int make_link(int parent, const char *last, const char *target,
		     struct err *err)
{
	if (!*target)
		return bad(err, "has a link to nothing");
	if (make_room(parent, last, err) < 0)
		return -err->code;
	if (symlinkat(target, parent, last) < 0)
		return err_errno(err, errno, "make the link '%s'", last);
	return 0;
}

/* The name with its first part replaced; "" is the target itself. */
static char *final_name(const struct tar_reader *t, const char *name)
{
	const char *rest = name + strcspn(name, "/");
	char *text = NULL;

	if (!t->rename)
		return strdup(name);
	if (!*t->rename)
		return strdup(*rest ? rest + 1 : "");
	if (asprintf(&text, "%s%s", t->rename, rest) < 0)
		return NULL;
	return text;
}

static int make_entry(struct tar_reader *t, char type, char *name,
		      const char *link, unsigned int mode, struct err *err)
{
	_cleanup_fd_ int parent = NO_FD;
	const char *last;

	parent = open_parent(t, name, &last, err);
	if (parent < 0)
		return err->code ? -err->code
				 : err_errno(err, errno, "open '%s'", name);
	switch (type) {
	case '5':
		return make_directory(parent, last, mode, err);
	case '2':
		return make_link(parent, last, link, err);
	default:
		return make_file(t, parent, last, mode, err);
	}
}

/* A field of the header that may fill it to its end. */
static char *take_field(const char *field, size_t size)
{
	return strndup(field, size);
}

/* The name in the header, with its prefix. */
static char *header_name(const char *h)
{
	char *text = NULL;

	if (memcmp(h + 257, "ustar", 5) == 0 && h[345] && h[262] == '\0') {
		if (asprintf(&text, "%.155s/%.100s", h + 345, h) < 0)
			return NULL;
		return text;
	}
	return take_field(h, 100);
}

static int take_entry(struct tar_reader *t, char type, unsigned int mode,
		      struct err *err)
{
	_cleanup_free_ char *raw = t->path.len ? strdup(t->path.data)
					       : header_name(t->block);
	_cleanup_free_ char *link = t->link.len
					    ? strdup(t->link.data)
					    : take_field(t->block + 157, 100);
	_cleanup_free_ char *name = NULL;
	bool is_file = type == '0' || type == '\0' || type == '7';

	if (!raw || !link)
		return err_set(err, ENOMEM, "out of memory");
	/* "./" itself, as some write it: the target, which is there. */
	if (type == '5' && (strcmp(raw, ".") == 0 || strcmp(raw, "./") == 0))
		return 0;
	if (strncmp(raw, "./", 2) == 0)
		memmove(raw, raw + 2, strlen(raw) - 1);
	if (!name_is_good(raw))
		return bad(err, "has a name that leads elsewhere");
	if (!is_file && type != '5' && type != '2') {
		skip(t, raw, "neither a file, a directory nor a link");
		return 0;
	}
	name = final_name(t, raw);
	if (!name)
		return err_set(err, ENOMEM, "out of memory");
	if (!*name)
		return type == '5' ? 0 : bad(err, "is not of a directory");
	return make_entry(t, type, name, link, mode & 0777, err);
}

/* headers of headers */

static int take_record(struct tar_reader *t, const char *key, size_t key_len,
		       const char *value, size_t len, struct err *err)
{
	struct buf *to = NULL;
	char digits[24];

	if (key_len == 4 && memcmp(key, "path", 4) == 0)
		to = &t->path;
	else if (key_len == 8 && memcmp(key, "linkpath", 8) == 0)
		to = &t->link;
	if (to) {
		clear(to);
		if (memchr(value, 0, len) || buf_add(to, value, len) < 0)
			return bad(err, "has a bad name");
		return 0;
	}
	if (key_len != 4 || memcmp(key, "size", 4) != 0)
		return 0;
	if (len >= sizeof(digits))
		return bad(err, "has a bad size");
	memcpy(digits, value, len);
	digits[len] = '\0';
	if (num_parse(digits, TAR_MAX_BYTES, &t->size) < 0)
		return bad(err, "has a bad size");
	t->has_size = true;
	return 0;
}

/* Records "LEN key=value\n". */
static int take_pax(struct tar_reader *t, struct err *err)
{
	const char *p = t->extra.data;
	const char *end = p + t->extra.len;

	while (p < end && *p) {
		const char *space = memchr(p, ' ', (size_t)(end - p));
		size_t len = 0;
		const char *eq;

		for (const char *d = p; space && d < space; d++) {
			if (*d < '0' || *d > '9' || len > TAR_MAX_HEAD)
				return bad(err, "has a bad record");
			len = len * 10 + (size_t)(*d - '0');
		}
		if (!space || len > (size_t)(end - p) ||
		    len < (size_t)(space - p) + 3 || p[len - 1] != '\n')
			return bad(err, "has a bad record");
		eq = memchr(space, '=', len - (size_t)(space - p));
		if (!eq)
			return bad(err, "has a bad record");
		if (take_record(t, space + 1, (size_t)(eq - space - 1), eq + 1,
				(size_t)(p + len - 1 - eq - 1), err) < 0)
			return -err->code;
		p += len;
	}
	return 0;
}

static int take_extra(struct tar_reader *t, struct err *err)
{
	size_t len = t->extra.len ? strnlen(t->extra.data, t->extra.len) : 0;
	struct buf *to = t->extra_type == 'L' ? &t->path : &t->link;
	int r = 0;

	if (t->extra_type == 'x') {
		r = t->extra.len ? take_pax(t, err) : 0;
	} else if (t->extra_type != 'g') {
		clear(to);
		if (len && buf_add(to, t->extra.data, len) < 0)
			r = bad(err, "has a bad name");
	}
	clear(&t->extra);
	return r;
}

static bool is_zero(const char *block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

static void forget_extra(struct tar_reader *t)
{
	clear(&t->path);
	clear(&t->link);
	t->has_size = false;
}

/* A header block is complete. */
static int take_header(struct tar_reader *t, struct err *err)
{
	char type = t->block[156];
	uint64_t size, mode;

	if (is_zero(t->block)) {
		if (++t->zeros == 2)
			t->state = TAR_AT_END;
		return 0;
	}
	t->zeros = 0;
	if (!has_good_sum(t->block) ||
	    parse_number(t->block + 124, 12, &size) < 0 ||
	    parse_number(t->block + 100, 8, &mode) < 0)
		return bad(err, "is damaged");
	if (++t->entries > TAR_MAX_ENTRIES)
		return bad(err, "has too many entries");
	if (type && strchr("xgLK", type)) {
		if (size > TAR_MAX_HEAD - 1)
			return bad(err, "has too large a header");
		t->extra_type = type;
		t->state = TAR_AT_EXTRA;
	} else {
		if (t->has_size)
			size = t->size;
		/* Only files have bytes. */
		if (type && strchr("123456", type))
			size = 0;
		if (size > TAR_MAX_BYTES - t->bytes)
			return bad(err, "is too large; take it as a stream, "
					"with '-'");
		t->bytes += size;
		if (take_entry(t, type, (unsigned int)(mode & 07777), err) < 0)
			return -err->code;
		forget_extra(t);
		t->state = TAR_AT_DATA;
	}
	t->left = size;
	t->pad = -size & (TAR_BLOCK - 1);
	return 0;
}

static int end_entry(struct tar_reader *t, struct err *err)
{
	int r = t->state == TAR_AT_EXTRA ? take_extra(t, err) : 0;

	fd_close(&t->fd);
	t->state = TAR_AT_HEAD;
	return r;
}

static int take_bytes(struct tar_reader *t, const char *data, size_t len,
		      struct err *err)
{
	int r = 0;

	if (t->state == TAR_AT_EXTRA && buf_add(&t->extra, data, len) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (t->state == TAR_AT_DATA && t->fd >= 0)
		r = io_write_all(t->fd, data, len);
	return r < 0 ? err_errno(err, -r, "write a file") : 0;
}

int tar_reader_take(struct tar_reader *t, const char *data, size_t len,
		    struct err *err)
{
	while (len > 0 && t->state != TAR_AT_END) {
		size_t n;

		if (t->state == TAR_AT_HEAD) {
			n = MIN(len, TAR_BLOCK - t->have);
			memcpy(t->block + t->have, data, n);
			t->have += n;
			if (t->have == TAR_BLOCK) {
				t->have = 0;
				if (take_header(t, err) < 0)
					return -err->code;
			}
		} else if (t->left > 0) {
			n = (size_t)MIN(len, t->left);
			if (take_bytes(t, data, n, err) < 0)
				return -err->code;
			t->left -= n;
		} else {
			n = (size_t)MIN(len, t->pad);
			t->pad -= n;
		}
		data += n;
		len -= n;
		if (t->state != TAR_AT_HEAD && t->state != TAR_AT_END &&
		    t->left == 0 && t->pad == 0 && end_entry(t, err) < 0)
			return -err->code;
	}
	return 0;
}

int tar_reader_end(struct tar_reader *t, struct err *err)
{
	if (t->state != TAR_AT_END)
		return bad(err, "was cut off");
	return 0;
}
