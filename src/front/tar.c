/* SPDX-License-Identifier: Apache-2.0 */
#include "front/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "base/visible.h"
#include "box/files.h"
#include "front/manager.h"

#define BLOCK    65536
#define MAX_SIZE (1ULL << 50)

bool files_name_check(const char *name, size_t len)
{
	size_t i = 0;

	if (len > FILES_MAX_PATH || memchr(name, '\0', len) ||
	    (len > 0 && name[0] == '/'))
		return false;
	while (i < len) {
		const char *end = memchr(name + i, '/', len - i);
		size_t n = end ? (size_t)(end - name) - i : len - i;

		if (n == 2 && name[i] == '.' && name[i + 1] == '.')
			return false;
		i += n + 1;
	}
	return true;
}

int files_map_error(const struct err *from, const char *path, struct err *err)
{
	static const struct {
		int code, ours;
	} rows[] = {
		{ ENOENT, MGR_NO_FILE },     { EROFS, MGR_READ_ONLY },
		{ ENOSPC, MGR_NO_SPACE },    { EDQUOT, MGR_NO_SPACE },
		{ EFBIG, MGR_NO_SPACE },     { EISDIR, MGR_INVALID },
		{ ENOTDIR, MGR_INVALID },    { EINVAL, MGR_INVALID },
		{ ELOOP, MGR_INVALID },      { ENAMETOOLONG, MGR_INVALID },
		{ EEXIST, MGR_INVALID },     { ENOTEMPTY, MGR_INVALID },
		{ EACCES, MGR_DENIED },      { EPERM, MGR_DENIED },
		{ ENOSYS, MGR_UNSUPPORTED }, { EOPNOTSUPP, MGR_UNSUPPORTED },
	};
	int code = MGR_SETUP;
	struct buf text;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].code == from->code)
			code = rows[i].ours;
	buf_init(&text, 4096);
	visible_text(&text, from->text, strnlen(from->text, sizeof(from->text)),
		     300);
	(void)err_set(err, code, "'%.120s': %.320s", path,
		      text.data && *text.data ? text.data
					      : strerror(from->code));
	buf_done(&text);
	return -code;
}

int files_send_ask(int sock, const struct files_ask *want, const char *path,
		   struct err *err)
{
	struct files_ask ask = *want;

	ask.path_len = (uint32_t)strlen(path);
	if (ask.path_len == 0 || ask.path_len > FILES_MAX_PATH)
		return err_set(err, MGR_INVALID, "the path is too long");
	if (io_send_all(sock, &ask, sizeof(ask)) < 0 ||
	    io_send_all(sock, path, ask.path_len) < 0)
		return err_set(err, MGR_LOST, "the box does not answer");
	return 0;
}

/* ---- out of a box ---- */

static int cut(struct err *err)
{
	return err_set(err, MGR_LOST, "the box's answer is cut");
}

static int strange(struct err *err)
{
	return err_set(err, MGR_LOST, "the box's answer has no sense");
}

static int read_exactly(int sock, void *data, size_t len, struct err *err)
{
	return io_read_full(sock, data, len) == (ssize_t)len ? 0 : cut(err);
}

/* The answer's head; the box may have had its hand in it. */
static int read_answer(int sock, const char *path, struct err *err)
{
	struct files_answer a;

	if (read_exactly(sock, &a, sizeof(a), err) < 0)
		return -err->code;
	if (a.err.code == 0)
		return 0;
	return files_map_error(&a.err, path, err);
}

static bool entry_check(const struct files_entry *e)
{
	return e->kind && strchr("fdlpscb", e->kind) &&
	       e->name_len <= FILES_MAX_PATH && e->link_len <= FILES_MAX_PATH &&
	       e->size <= MAX_SIZE && (e->kind != 'f' || e->link_len == 0);
}

struct reader {
	int sock, out;
	const char *root;
	struct archive *a;
	bool is_over; /* nothing is written any more */
	char name[2 * FILES_MAX_PATH + 2];
	char link[FILES_MAX_PATH + 1];
	char block[BLOCK];
};

static int broken(struct archive *a, struct err *err)
{
	return err_set(err, MGR_INVALID, "the archive: %.200s",
		       archive_error_string(a) ? archive_error_string(a)
					       : "not readable");
}

static int gone(struct err *err)
{
	return err_set(err, MGR_LOST, "the client is gone");
}

static int copy_data(struct reader *r, uint64_t size, struct err *err)
{
	while (size > 0) {
		size_t n = (size_t)MIN(size, (uint64_t)BLOCK);

		if (read_exactly(r->sock, r->block, n, err) < 0)
			return -err->code;
		if (archive_write_data(r->a, r->block, n) != (la_ssize_t)n)
			return broken(r->a, err);
		if (r->is_over)
			return gone(err);
		size -= n;
	}
	return 0;
}

static int put_entry(struct reader *r, const struct files_entry *e,
		     struct err *err)
{
	static const struct {
		uint8_t kind;
		unsigned int type;
	} types[] = { { 'f', AE_IFREG },
		      { 'd', AE_IFDIR },
		      { 'l', AE_IFLNK },
		      { 'p', AE_IFIFO } };
	struct archive_entry *t = NULL;
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].kind == e->kind && (t = archive_entry_new()))
			archive_entry_set_filetype(t, types[i].type);
	if (!t) /* sockets and devices are left out */
		return 0;
	archive_entry_set_pathname(t, *r->root ? r->name : r->name + 1);
	archive_entry_set_perm(t, e->mode & 07777);
	archive_entry_set_uid(t, e->uid);
	archive_entry_set_gid(t, e->gid);
	archive_entry_set_mtime(t, e->mtime_ns / 1000000000,
				(long)(e->mtime_ns % 1000000000));
	archive_entry_set_size(t, e->kind == 'f' ? (la_int64_t)e->size : 0);
	if (e->kind == 'l')
		archive_entry_set_symlink(t, r->link);
	if (archive_write_header(r->a, t) < ARCHIVE_WARN)
		ret = broken(r->a, err);
	archive_entry_free(t);
	return ret;
}

/* Name and link of an entry, checked: what is made of them is a client's. */
static int read_names(struct reader *r, const struct files_entry *e,
		      bool is_first, struct err *err)
{
	size_t root = strlen(r->root);
	char *name = r->name + root + 1;

	memcpy(r->name, r->root, root);
	r->name[root] = '/';
	if (read_exactly(r->sock, name, e->name_len, err) < 0 ||
	    read_exactly(r->sock, r->link, e->link_len, err) < 0)
		return -err->code;
	name[e->name_len] = '\0';
	r->link[e->link_len] = '\0';
	if (!files_name_check(name, e->name_len) ||
	    strlen(r->link) != e->link_len || (e->name_len == 0) != is_first)
		return strange(err);
	if (is_first)
		r->name[root] = '\0';
	return 0;
}

/* What the box's user could not read, as the last entry says. */
static int read_end(struct reader *r, const struct files_entry *e,
		    struct left_out *ret, struct err *err)
{
	struct buf text;

	if (e->name_len > FILES_MAX_PATH)
		return strange(err);
	if (read_exactly(r->sock, r->name, e->name_len, err) < 0)
		return -err->code;
	r->name[e->name_len] = '\0';
	ret->n = e->size;
	buf_init(&text, 4096);
	visible_text(&text, r->name, strlen(r->name), sizeof(ret->first) - 1);
	(void)snprintf(ret->first, sizeof(ret->first), "%s",
		       text.data ? text.data : "");
	buf_done(&text);
	return 0;
}

static int copy_entries(struct reader *r, struct left_out *ret, struct err *err)
{
	for (unsigned int n = 0; n < TAR_MAX_ENTRIES; n++) {
		struct files_entry e;

		if (read_exactly(r->sock, &e, sizeof(e), err) < 0)
			return -err->code;
		/* It was there a moment ago: nothing is no answer. */
		if (e.kind == 0 && n == 0)
			return cut(err);
		if (e.kind == 0)
			return read_end(r, &e, ret, err);
		if (!entry_check(&e))
			return strange(err);
		if (read_names(r, &e, n == 0, err) < 0)
			return -err->code;
		/* Without a name for it, the root itself is left out. */
		if (n == 0 && !*r->root)
			continue;
		if (put_entry(r, &e, err) < 0)
			return -err->code;
		if (e.kind == 'f' && copy_data(r, e.size, err) < 0)
			return -err->code;
		if (r->is_over)
			return gone(err);
	}
	return err_set(err, MGR_LOST, "the box's answer does not end");
}

/*
 * Says that all was written, whatever happens: a write that fails makes
 * libarchive 3.6 forget its last filter and with it 10 KiB.
 */
static la_ssize_t write_out(struct archive *a, void *arg, const void *data,
			    size_t len)
{
	struct reader *r = arg;

	(void)a;
	if (!r->is_over && io_write_all(r->out, data, len) < 0)
		r->is_over = true;
	return (la_ssize_t)len;
}

int tar_from_box(int sock, int out, const char *root, struct left_out *ret,
		 struct err *err)
{
	struct reader *r;
	int done;

	*ret = (struct left_out){ 0 };
	if (strlen(root) > FILES_MAX_PATH)
		return err_set(err, MGR_INVALID, "the path is too long");
	if (read_answer(sock, root, err) < 0)
		return -err->code;
	r = calloc(1, sizeof(*r));
	if (!r || !(r->a = archive_write_new())) {
		free(r);
		return err_set(err, ENOMEM, "out of memory");
	}
	r->sock = sock;
	r->out = out;
	r->root = root;
	(void)archive_write_set_format_pax_restricted(r->a);
	(void)archive_write_set_bytes_per_block(r->a, 10240);
	(void)archive_write_set_bytes_in_last_block(r->a, 1);
	done = archive_write_open(r->a, r, NULL, write_out, NULL) == ARCHIVE_OK
		       ? copy_entries(r, ret, err)
		       : broken(r->a, err);
	/*
	 * A tar that is not whole gets no end, so that nobody takes it for one.
	 * Then it must be closed by hand: archive_write_free() would not.
	 */
	if (done < 0) {
		r->is_over = true;
		(void)archive_write_fail(r->a);
	}
	if (archive_write_close(r->a) != ARCHIVE_OK && done == 0)
		done = broken(r->a, err);
	(void)archive_write_free(r->a);
	free(r);
	return done;
}

/* ---- into a box ---- */

struct writer {
	int sock, in;
	struct archive *a;
	char block[BLOCK];
	bool is_early; /* the box has said something already */
};

static la_ssize_t read_in(struct archive *a, void *arg, const void **ret)
{
	struct writer *w = arg;
	ssize_t n;

	do
		n = read(w->in, w->block, sizeof(w->block));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		archive_set_error(a, errno, "the client is gone");
	*ret = w->block;
	return n;
}

/* What a name is under the archive's root; NULL if it leaves it. */
static const char *below_root(const char *name)
{
	size_t len;

	if (!name)
		return NULL;
	while (name[0] == '/' || (name[0] == '.' && name[1] == '/'))
		name += name[0] == '/' ? 1 : 2;
	if (strcmp(name, ".") == 0)
		name = "";
	len = strlen(name);
	return files_name_check(name, len) ? name : NULL;
}

static int refuse(struct err *err, const char *name, const char *why)
{
	struct buf b;
	int r;

	buf_init(&b, 4096);
	visible_text(&b, name ? name : "?", strlen(name ? name : "?"), 160);
	r = err_set(err, MGR_INVALID, "'%.200s' in the archive: %s",
		    b.data ? b.data : "?", why);
	buf_done(&b);
	return r;
}

/* Of a link what it leads to: any text, or a name in the archive. */
static int fill_link(struct archive_entry *t, struct files_entry *e,
		     const char **ret_link, struct err *err)
{
	const char *hard = archive_entry_hardlink(t);

	*ret_link = hard ? below_root(hard) : archive_entry_symlink(t);
	if (!*ret_link || !**ret_link || strlen(*ret_link) > FILES_MAX_PATH)
		return refuse(err, archive_entry_pathname(t),
			      hard ? "it is a hard link to something outside"
				   : "its target is not valid");
	e->link_len = (uint32_t)strlen(*ret_link);
	return 0;
}

/* Ids that no box has stay its user's. */
static uint32_t fill_id(la_int64_t id)
{
	return id >= 0 && id < UINT32_MAX ? (uint32_t)id : UINT32_MAX;
}

static int fill_kind(struct archive_entry *t, struct files_entry *e,
		     struct err *err)
{
	const char *name = archive_entry_pathname(t);

	if (archive_entry_hardlink(t)) {
		e->kind = 'h';
		return 0;
	}
	switch (archive_entry_filetype(t)) {
	case AE_IFREG:
		e->kind = 'f';
		e->size = (uint64_t)archive_entry_size(t);
		break;
	case AE_IFDIR:
		e->kind = 'd';
		break;
	case AE_IFLNK:
		e->kind = 'l';
		break;
	default:
		return refuse(err, name,
			      "device nodes, sockets and pipes are "
			      "refused");
	}
	if (e->size > MAX_SIZE)
		return refuse(err, name, "its size is not valid");
	return 0;
}

static int fill_entry(struct archive_entry *t, struct files_entry *e,
		      const char **ret_link, struct err *err)
{
	*ret_link = "";
	if (fill_kind(t, e, err) < 0)
		return -err->code;
	if ((e->kind == 'l' || e->kind == 'h') &&
	    fill_link(t, e, ret_link, err) < 0)
		return -err->code;
	e->uid = fill_id(archive_entry_uid(t));
	e->gid = fill_id(archive_entry_gid(t));
	e->mode = archive_entry_perm(t) & 01777; /* no set-uid, set-gid */
	e->mtime_ns = (int64_t)archive_entry_mtime(t) * 1000000000 +
		      archive_entry_mtime_nsec(t);
	return 0;
}

/* Exactly as many bytes as were announced; what a hole has is zeros. */
static int give_data(struct writer *w, uint64_t size, struct err *err)
{
	char buf[16384];

	while (size > 0) {
		size_t n = (size_t)MIN(size, sizeof(buf));
		la_ssize_t got = archive_read_data(w->a, buf, n);

		if (got < 0)
			return broken(w->a, err);
		if (got == 0)
			return err_set(err, MGR_INVALID, "the archive is cut");
		if (io_send_all(w->sock, buf, (size_t)got) < 0) {
			w->is_early = true;
			return err_set(err, MGR_LOST, "the box took no more");
		}
		size -= (uint64_t)got;
	}
	return 0;
}

static int give_entry(struct writer *w, struct archive_entry *t,
		      struct err *err)
{
	const char *name = below_root(archive_entry_pathname(t));
	const char *link = "";
	struct files_entry e = { 0 };

	if (!name)
		return refuse(err, archive_entry_pathname(t),
			      "the name leaves the directory, or is too long");
	if (fill_entry(t, &e, &link, err) < 0)
		return -err->code;
	if (!*name) /* the directory itself: it is there */
		return e.kind == 'd' ? 0 : refuse(err, "/", "it has no name");
	e.name_len = (uint32_t)strlen(name);
	while (e.name_len > 1 && name[e.name_len - 1] == '/')
		e.name_len--;
	if (io_send_all(w->sock, &e, sizeof(e)) < 0 ||
	    io_send_all(w->sock, name, e.name_len) < 0 ||
	    io_send_all(w->sock, link, e.link_len) < 0) {
		w->is_early = true;
		return err_set(err, MGR_LOST, "the box took no more");
	}
	return e.kind == 'f' ? give_data(w, e.size, err) : 0;
}

static int give_entries(struct writer *w, struct err *err)
{
	struct files_entry end = { 0 };

	for (unsigned int n = 0; n < TAR_MAX_ENTRIES; n++) {
		struct archive_entry *t;
		int r = archive_read_next_header(w->a, &t);

		if (r == ARCHIVE_EOF) {
			if (io_send_all(w->sock, &end, sizeof(end)) < 0)
				w->is_early = true;
			return 0;
		}
		if (r < ARCHIVE_WARN)
			return broken(w->a, err);
		if (give_entry(w, t, err) < 0)
			return -err->code;
	}
	return err_set(err, MGR_INVALID, "the archive has too many entries");
}

int tar_to_box(int sock, int in, const char *path, const struct files_ask *ask,
	       struct err *err)
{
	struct writer *w = calloc(1, sizeof(*w));
	struct err said = { 0 };
	int ret;

	if (!w || !(w->a = archive_read_new())) {
		free(w);
		return err_set(err, ENOMEM, "out of memory");
	}
	w->sock = sock;
	w->in = in;
	(void)archive_read_support_filter_gzip(w->a);
	(void)archive_read_support_format_tar(w->a);
	(void)archive_read_support_format_empty(w->a);
	ret = files_send_ask(sock, ask, path, err);
	if (ret == 0 &&
	    archive_read_open(w->a, w, NULL, read_in, NULL) != ARCHIVE_OK)
		ret = broken(w->a, err);
	if (ret == 0)
		ret = give_entries(w, err);
	/* Where the box has stopped it, it says why. */
	if (ret == 0 || w->is_early) {
		int r = read_answer(sock, path, &said);

		if (r < 0) {
			*err = said;
			ret = r;
		} else if (w->is_early) {
			ret = err_set(err, MGR_LOST, "the box took no more");
		}
	}
	(void)archive_read_free(w->a);
	free(w);
	return ret;
}

/* ---- whole answers ---- */

void files_list_done(struct files_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].name);
		free(l->v[i].link);
	}
	free(l->v);
	*l = (struct files_list){ 0 };
}

static int add_item(struct files_list *l, const struct files_entry *e,
		    const char *bytes)
{
	struct files_item *v = l->v;

	if ((l->n & (l->n - 1)) == 0)
		v = realloc(l->v, MAX(2 * l->n, (size_t)1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	l->v = v;
	v[l->n] = (struct files_item){
		.kind = e->kind,
		.mode = e->mode & 07777,
		.size = e->size,
		.mtime_ns = e->mtime_ns,
		.name = strndup(bytes, e->name_len),
		.link = strndup(bytes + e->name_len, e->link_len),
	};
	l->n++;
	return v[l->n - 1].name && v[l->n - 1].link ? 0 : -ENOMEM;
}

static int parse_entries(const char *p, size_t left, bool is_stat,
			 struct files_list *ret, struct err *err)
{
	for (;;) {
		struct files_entry e;

		if (left < sizeof(e))
			return cut(err);
		memcpy(&e, p, sizeof(e));
		p += sizeof(e);
		left -= sizeof(e);
		if (e.kind == 0)
			return is_stat ? strange(err) : 0;
		if (e.name_len > left || e.link_len > left - e.name_len)
			return cut(err);
		if (add_item(ret, &e, p) < 0)
			return err_set(err, ENOMEM, "out of memory");
		p += e.name_len + e.link_len;
		left -= e.name_len + e.link_len;
		if (is_stat)
			return 0;
	}
}

int files_parse(const void *data, size_t len, bool is_stat,
		struct files_list *ret, struct err *err)
{
	struct files_answer a;

	*ret = (struct files_list){ 0 };
	if (len < sizeof(a))
		return cut(err);
	memcpy(&a, data, sizeof(a));
	if (a.err.code) {
		a.err.text[sizeof(a.err.text) - 1] = '\0';
		*err = a.err;
		return -EREMOTEIO; /* the box's own words, to be mapped */
	}
	if (parse_entries((const char *)data + sizeof(a), len - sizeof(a),
			  is_stat, ret, err) < 0) {
		files_list_done(ret);
		return -err->code;
	}
	return 0;
}
