/* SPDX-License-Identifier: Apache-2.0 */
#include "image/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/state.h"
#include "base/util.h"
#include "image/digest.h"
#include "image/doc.h"
#include "image/manifest.h"
#include "image/reference.h"
#include "image/tree.h"

#define BLOBS  "blobs/sha256"
#define LAYERS "layers/sha256"

static int make_dirs(struct image_store *s, struct err *err)
{
	static const char *const names[] = { "blobs", BLOBS, "layers",
					     LAYERS,  "tmp", "use" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (mkdirat(s->dir, names[i], 0700) < 0 && errno != EEXIST)
			return err_errno(err, errno, "make '%s/%s'", s->path,
					 names[i]);
	return 0;
}

static int open_dir(struct image_store *s, struct err *err)
{
	struct stat st;

	s->dir = state_open("images", s->path, sizeof(s->path), err);
	if (s->dir < 0)
		return -err->code;
	if (fstat(s->dir, &st) < 0)
		return err_errno(err, errno, "look at '%s'", s->path);
	s->owner = st.st_uid;
	s->who = geteuid();
	return make_dirs(s, err);
}

int image_store_open(struct image_store **ret, struct err *err)
{
	struct image_store *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->dir = NO_FD;
	if (open_dir(s, err) < 0) {
		image_store_close(s);
		return -err->code;
	}
	*ret = s;
	return 0;
}

void image_store_close(struct image_store *s)
{
	if (s)
		fd_close(&s->dir);
	free(s);
}

int image_store_lock(struct image_store *s, struct err *err)
{
	_cleanup_fd_ int fd = openat(s->dir, "lock",
				     O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
				     0600);
	int r;

	if (fd < 0)
		return err_errno(err, errno, "open the store's lock");
	do
		r = flock(fd, LOCK_EX);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return err_errno(err, errno, "lock the store");
	return take_fd(&fd);
}

/* Calls `each` with the names in a directory of the store. */
static int each_name(struct image_store *s, const char *path,
		     int (*each)(void *arg, int dir, const char *name),
		     void *arg)
{
	int fd = image_tree_open(s->dir, path, O_RDONLY | O_DIRECTORY);
	struct dirent *e;
	DIR *d;
	int r = 0;

	if (fd < 0)
		return fd;
	d = fdopendir(fd);
	if (!d) {
		(void)close(fd);
		return -ENOMEM;
	}
	while (r == 0 && (errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = each(arg, fd, e->d_name);
	if (r == 0 && errno)
		r = -errno;
	(void)closedir(d);
	return r;
}

/* The directory of a process that is no more. */
static int sweep_tmp(void *arg, int dir, const char *name)
{
	const struct image_session *ses = arg;
	_cleanup_fd_ int fd = NO_FD;

	if (strcmp(name, ses->name) == 0)
		return 0;
	fd = image_tree_open(dir, name, O_RDONLY | O_DIRECTORY);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	return image_tree_remove(dir, name);
}

struct sweep {
	struct image_session *ses;
	const struct image_list *list;
};

static int move_out(struct image_session *ses, int dir, const char *name)
{
	char gone[24];

	image_session_name(ses, gone);
	return renameat(dir, name, ses->dir, gone) < 0 ? -errno : 0;
}

static bool is_digits(const char *have, const char *digest)
{
	return *digest && strcmp(have, image_digest_hex(digest)) == 0;
}

static int sweep_layer(void *arg, int dir, const char *name)
{
	struct sweep *w = arg;

	for (size_t i = 0; i < w->list->n; i++)
		for (size_t k = 0; k < w->list->v[i].n_layers; k++)
			if (is_digits(name, w->list->v[i].layers[k].diff_id))
				return 0;
	return move_out(w->ses, dir, name);
}

static int sweep_blob(void *arg, int dir, const char *name)
{
	struct sweep *w = arg;

	for (size_t i = 0; i < w->list->n; i++) {
		const struct image *m = &w->list->v[i];

		if (is_digits(name, m->id) || is_digits(name, m->manifest) ||
		    is_digits(name, m->run))
			return 0;
		for (size_t k = 0; k < m->n_layers; k++)
			if (is_digits(name, m->layers[k].blob))
				return 0;
	}
	return move_out(w->ses, dir, name);
}

/* A lock file of an image that is no more. */
static int sweep_use(void *arg, int dir, const char *name)
{
	struct sweep *w = arg;
	_cleanup_fd_ int fd = NO_FD;

	for (size_t i = 0; i < w->list->n; i++)
		if (is_digits(name, w->list->v[i].id))
			return 0;
	fd = image_tree_open(dir, name, O_RDONLY);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)unlinkat(dir, name, 0);
	return 0;
}

int image_store_sweep(struct image_session *ses, const struct image_list *list,
		      struct err *err)
{
	struct sweep w = { ses, list };
	struct image_store *s = ses->store;
	int r = each_name(s, "tmp", sweep_tmp, ses);

	if (r == 0)
		r = each_name(s, LAYERS, sweep_layer, &w);
	if (r == 0)
		r = each_name(s, BLOBS, sweep_blob, &w);
	if (r == 0)
		r = each_name(s, "use", sweep_use, &w);
	return r < 0 ? err_errno(err, -r, "sweep the store") : 0;
}

static int make_session_dir(struct image_session *ses, struct err *err)
{
	struct image_store *s = ses->store;
	char path[64];
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_errno(err, errno, "get random bytes");
	(void)snprintf(ses->name, sizeof(ses->name), "%016llx",
		       (unsigned long long)random);
	(void)snprintf(path, sizeof(path), "tmp/%s", ses->name);
	if (mkdirat(s->dir, path, 0700) < 0)
		return err_errno(err, errno, "make '%s/%s'", s->path, path);
	ses->dir = image_tree_open(s->dir, path, O_RDONLY | O_DIRECTORY);
	if (ses->dir < 0)
		return err_errno(err, -ses->dir, "open '%s/%s'", s->path, path);
	if (flock(ses->dir, LOCK_EX | LOCK_NB) < 0)
		return err_errno(err, errno, "lock '%s/%s'", s->path, path);
	return 0;
}

int image_session_begin(struct image_session *ses, struct image_store *s,
			struct err *err)
{
	struct image_list list = { 0 };
	_cleanup_fd_ int lock = NO_FD;
	int r;

	*ses = (struct image_session){ .store = s, .dir = NO_FD };
	lock = image_store_lock(s, err);
	if (lock < 0)
		return -err->code;
	r = make_session_dir(ses, err);
	/* What cannot be read names nothing; sweeping by it would lose all. */
	if (r == 0)
		r = image_index_load(s, &list, err);
	if (r == 0)
		r = image_store_sweep(ses, &list, err);
	image_list_done(&list);
	if (r < 0)
		image_session_end(ses);
	return r;
}

void image_session_end(struct image_session *ses)
{
	_cleanup_fd_ int tmp = NO_FD;

	/* Unlocked last: nobody else may begin to remove it. */
	if (ses->name[0]) {
		tmp = image_tree_open(ses->store->dir, "tmp",
				      O_RDONLY | O_DIRECTORY);
		if (tmp >= 0)
			(void)image_tree_remove(tmp, ses->name);
	}
	fd_close(&ses->dir);
	free(ses->ready);
	*ses = (struct image_session){ .dir = NO_FD };
}

void image_session_name(struct image_session *ses, char ret[24])
{
	(void)snprintf(ret, 24, "%u", ses->count++);
}

const struct image_ready *image_session_find(const struct image_session *ses,
					     const char *digest, bool is_layer)
{
	for (size_t i = 0; i < ses->n_ready; i++)
		if (ses->ready[i].is_layer == is_layer &&
		    strcmp(ses->ready[i].digest, digest) == 0)
			return &ses->ready[i];
	return NULL;
}

int image_session_add(struct image_session *ses,
		      const struct image_ready *ready, struct err *err)
{
	struct image_ready *v = reallocarray(ses->ready, ses->n_ready + 1,
					     sizeof(*v));

	if (!v)
		return err_set(err, ENOMEM, "out of memory");
	ses->ready = v;
	v[ses->n_ready++] = *ready;
	return 0;
}

int image_session_put(struct image_session *ses, const void *data, size_t len,
		      char ret[IMAGE_DIGEST], struct err *err)
{
	struct image_ready ready = { .size = len };
	_cleanup_fd_ int fd = NO_FD;
	int r;

	image_digest_of(data, len, ret);
	if (image_session_find(ses, ret, false))
		return 0;
	(void)strcpy(ready.digest, ret);
	image_session_name(ses, ready.file);
	fd = openat(ses->dir, ready.file,
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : io_write_all(fd, data, len);
	if (r < 0)
		return err_errno(err, -r, "write a blob");
	return image_session_add(ses, &ready, err);
}

static int move_in(struct image_session *ses, const struct image_ready *ready,
		   struct err *err)
{
	char path[IMAGE_BLOB_PATH + 8];

	(void)snprintf(path, sizeof(path), "%s/%s",
		       ready->is_layer ? LAYERS : BLOBS,
		       image_digest_hex(ready->digest));
	if (renameat2(ses->dir, ready->file, ses->store->dir, path,
		      RENAME_NOREPLACE) < 0 &&
	    errno != EEXIST)
		return err_errno(err, errno, "move '%s' into the store", path);
	return 0;
}

static int sync_dir(struct image_store *s, const char *path, struct err *err)
{
	_cleanup_fd_ int fd = image_tree_open(s->dir, path,
					      O_RDONLY | O_DIRECTORY);

	if (fd < 0 || fsync(fd) < 0)
		return err_errno(err, fd < 0 ? -fd : errno, "sync '%s'", path);
	return 0;
}

/* Whether all that an image needs is there or ready. */
static bool is_whole(const struct image_session *ses, const struct image *m,
		     const struct image_list *have)
{
	for (size_t i = 0; i < m->n_layers; i++) {
		const char *diff = m->layers[i].diff_id;

		if (!image_session_find(ses, diff, true) &&
		    !image_list_layer(have, diff))
			return false;
	}
	return true;
}

/* Its names: those that another image has are taken away, or only judged. */
static int take_names(const struct image_store *s, struct image_list *have,
		      const struct image *new, bool is_done, struct err *err)
{
	const struct image *old = image_list_id(have, new->id);

	for (size_t k = 0; k < new->names.n; k++)
		if ((!old ||
		     image_names_find(&old->names, new->names.v[k]) < 0) &&
		    image_name_free(have, new->names.v[k], err) < 0)
			return -err->code;
	for (size_t i = 0; i < have->n; i++) {
		struct image *m = &have->v[i];

		/* What it has already, it keeps, whoever gave it that. */
		if (strcmp(m->id, new->id) == 0)
			continue;
		for (size_t k = 0; k < new->names.n; k++) {
			long at = image_names_find(&m->names, new->names.v[k]);

			if (at < 0)
				continue;
			if (image_name_check(s, m, (size_t)at, err) < 0)
				return -err->code;
			if (is_done)
				image_name_drop(m, (size_t)at);
		}
	}
	return 0;
}

static int merge(const struct image_store *s, struct image_list *have,
		 const struct image *new, struct err *err)
{
	struct image *old;

	if (take_names(s, have, new, true, err) < 0)
		return -err->code;
	old = image_list_id(have, new->id);
	if (!old) {
		if (image_list_add(have, new, err) < 0)
			return -err->code;
		old = &have->v[have->n - 1];
		old->owner = -1;
		return image_owners_fill(old, s->who, err);
	}
	for (size_t k = 0; k < new->names.n; k++)
		if (image_names_find(&old->names, new->names.v[k]) < 0 &&
		    image_name_add(s, old, new->names.v[k], err) < 0)
			return -err->code;
	return 0;
}

static int commit(struct image_session *ses, const struct image_list *images,
		  struct image_list *have, struct err *err)
{
	struct image_store *s = ses->store;

	for (size_t i = 0; i < images->n; i++)
		if (take_names(s, have, &images->v[i], false, err) < 0)
			return -err->code;
	for (size_t i = 0; i < images->n; i++)
		if (!is_whole(ses, &images->v[i], have))
			return err_set(err, EAGAIN,
				       "a layer was removed meanwhile");
	for (size_t i = 0; i < ses->n_ready; i++)
		if (move_in(ses, &ses->ready[i], err) < 0)
			return -err->code;
	if (sync_dir(s, BLOBS, err) < 0 || sync_dir(s, LAYERS, err) < 0)
		return -err->code;
	for (size_t i = 0; i < images->n; i++)
		if (merge(s, have, &images->v[i], err) < 0)
			return -err->code;
	return image_index_store(s, have, err);
}

int image_session_commit(struct image_session *ses,
			 const struct image_list *images, struct err *err)
{
	struct image_list have = { 0 };
	_cleanup_fd_ int lock = NO_FD;
	int r;

	/* The content, before any name leads to it; without the lock. */
	if (syncfs(ses->dir) < 0)
		return err_errno(err, errno, "write the layers to the disk");
	lock = image_store_lock(ses->store, err);
	if (lock < 0)
		return -err->code;
	r = image_index_load(ses->store, &have, err);
	if (r == 0)
		r = commit(ses, images, &have, err);
	image_list_done(&have);
	return r;
}

int image_blob_open(struct image_store *s, const char *digest, struct err *err)
{
	char path[IMAGE_BLOB_PATH];
	int fd;

	image_blob_path(digest, path);
	fd = image_tree_open(s->dir, path, O_RDONLY);
	if (fd == -ENOENT)
		return err_set(err, IMAGE_CORRUPT, "the store has lost '%s'",
			       digest);
	if (fd < 0)
		return err_errno(err, -fd, "open '%s'", path);
	return fd;
}

int image_blob_read(struct image_store *s, const char *digest, char **ret,
		    size_t *ret_len, struct err *err)
{
	_cleanup_fd_ int fd = image_blob_open(s, digest, err);
	_cleanup_free_ char *data = NULL;
	char have[IMAGE_DIGEST];
	size_t len = 0;

	if (fd < 0 || image_read_doc(fd, &data, &len, err) < 0)
		return -err->code;
	image_digest_of(data, len, have);
	if (strcmp(have, digest) != 0)
		return err_set(err, IMAGE_CORRUPT,
			       "'%s' in the store is not what it was", digest);
	*ret = take_ptr(data);
	*ret_len = len;
	return 0;
}
