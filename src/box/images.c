/* SPDX-License-Identifier: Apache-2.0 */
#include "box/images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/state.h"
#include "base/util.h"
#include "box/image-parse.h"
#include "box/wire.h"
#include "image/digest.h"
#include "os/below.h"

#define INDEX_MAX (64U << 20)
#define RUN_MAX   (8U << 20)

/* What of the store an image is read from: text and open files. */
struct found {
	char *entry;         /* of the index */
	int fds[IO_MAX_FDS]; /* "run", the hold, the layers */
	int n_fds;
};

_Static_assert(2 + WIRE_MAX_LAYERS <= IO_MAX_FDS, "they fit one message");

/* A whole file of the store as a string; the caller frees it. */
static int read_fd(int fd, size_t max, char **ret, size_t *ret_len)
{
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = io_read_full(fd, text, (size_t)st.st_size);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	*ret_len = (size_t)n;
	*ret = take_ptr(text);
	return 0;
}

static int read_whole(int dir, const char *path, size_t max, char **ret,
		      size_t *ret_len)
{
	_cleanup_fd_ int fd = open_below(dir, path, O_RDONLY | O_NONBLOCK);

	return fd < 0 ? fd : read_fd(fd, max, ret, ret_len);
}

/* The image's entry in the index. */
static int find_entry(int store, const char *text, const struct image_wanted *w,
		      char **ret, struct err *err)
{
	static const char none[] = "{\"version\":1,\"images\":[]}";
	_cleanup_free_ char *index = NULL;
	size_t len = 0;
	int r = read_whole(store, "index.json", INDEX_MAX, &index, &len);

	if (r == -ENOENT) /* nothing was ever taken in */
		return image_entry_find(none, sizeof(none) - 1, text, w, ret,
					err);
	if (r < 0)
		return err_errno(err, -r, "read the index of the image store");
	return image_entry_find(index, len, text, w, ret, err);
}

static int read_run(struct box_image *m, int fd, const char *digest,
		    struct err *err)
{
	_cleanup_free_ char *text = NULL;
	char sum[IMAGE_DIGEST];
	size_t len = 0;
	int r = read_fd(fd, RUN_MAX, &text, &len);

	if (r < 0)
		return err_errno(err, -r, "read a configuration");
	image_digest_of(text, len, sum);
	if (strcmp(sum, digest) != 0)
		return image_corrupt(err, "a configuration");
	return image_run_read(m, text, len, err);
}

/* As image_hold() does: who removes has the lock from the question on. */
static int hold(int store, const char *id, struct err *err)
{
	_cleanup_fd_ int dir = open_below(store, "use", O_RDONLY | O_DIRECTORY);
	_cleanup_fd_ int fd = NO_FD;

	if (dir < 0)
		return err_errno(err, -dir, "open the store's 'use'");
	fd = openat(dir, image_digest_hex(id),
		    O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
		return err_errno(err, errno, "hold image '%s'", id);
	return take_fd(&fd);
}

static int lock_store(int store, struct err *err)
{
	_cleanup_fd_ int fd = open_below(store, "lock", O_RDWR);

	if (fd < 0 && fd != -ENOENT)
		return err_errno(err, -fd, "open the lock of the image store");
	if (fd < 0)
		return NO_FD; /* never used: there is no image */
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_errno(err, errno, "lock the image store");
	return take_fd(&fd);
}

static int open_parts(struct found *f, int store, const struct box_image *m,
		      const char *run, struct err *err)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "blobs/sha256/%s",
		       image_digest_hex(run));
	f->fds[0] = open_below(store, path, O_RDONLY | O_NONBLOCK);
	if (f->fds[0] < 0)
		return err_errno(err, -f->fds[0],
				 "open '%s' of the image store", path);
	f->n_fds = 1;
	f->fds[1] = hold(store, m->id, err);
	if (f->fds[1] < 0)
		return -err->code;
	f->n_fds = 2;
	for (size_t i = 0; i < m->layers.n; i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "layers/sha256/%s/fs",
			       m->layers.v[i]);
		fd = open_below(store, path, O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			return err_errno(err, -fd,
					 "open '%s' of the image store", path);
		f->fds[f->n_fds++] = fd;
	}
	return 0;
}

/* What needs the rights of the store's owner. */
static int locate(const char *text, struct found *f, struct err *err)
{
	_cleanup_fd_ int store = NO_FD;
	_cleanup_fd_ int lock = NO_FD;
	struct box_image *m = calloc(1, sizeof(*m));
	struct image_wanted w;
	char run[IMAGE_DIGEST];
	char path[4096];

	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	m->hold = NO_FD;
	if (image_wanted_parse(text, &w, err) == 0)
		store = state_open("images", path, sizeof(path), err);
	if (store >= 0)
		lock = lock_store(store, err);
	(void)lock; /* held until we return */
	if (!err->code && find_entry(store, text, &w, &f->entry, err) == 0 &&
	    image_entry_read(m, f->entry, &w, run, err) == 0)
		(void)open_parts(f, store, m, run, err);
	box_image_free(m);
	return -err->code;
}

static int take_parts(struct box_image *m, const char *text, struct found *f,
		      struct err *err)
{
	struct image_wanted w;
	char run[IMAGE_DIGEST];

	if (image_wanted_parse(text, &w, err) < 0 ||
	    image_entry_read(m, f->entry, &w, run, err) < 0)
		return -err->code;
	if ((size_t)f->n_fds != m->layers.n + 2)
		return image_corrupt(err, "its librarian");
	m->hold = f->fds[1];
	f->fds[1] = NO_FD;
	for (size_t i = 0; i < m->layers.n; i++) {
		m->layer_fds[i] = f->fds[i + 2];
		f->fds[i + 2] = NO_FD;
	}
	m->n_layer_fds = m->layers.n;
	return read_run(m, f->fds[0], run, err);
}

static void found_done(struct found *f)
{
	for (int i = 0; i < f->n_fds; i++)
		fd_close(&f->fds[i]);
	free(f->entry);
}

/* the librarian: finds for a process that has become another user */

static int librarian = NO_FD;

#define ENTRY_MAX (64U << 10)

static int answer(int sock, const char *name)
{
	struct found *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	int r;

	if (!f)
		return -ENOMEM;
	if (locate(name, f, &err) == 0 &&
	    (!f->entry || strlen(f->entry) >= ENTRY_MAX))
		(void)err_set(&err, E2BIG, "an entry of the index is too long");
	r = err.code || !f->entry ? io_send(sock, &err, sizeof(err), NULL, 0)
				  : io_send(sock, f->entry, strlen(f->entry),
					    f->fds, f->n_fds);
	found_done(f);
	free(f);
	return r;
}

/* Names come from whoever asked; nothing else of theirs does. */
static void serve_names(int sock)
{
	char name[1024];
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	ssize_t n;

	while ((n = io_recv(sock, name, sizeof(name) - 1, 0, fds, &n_fds)) >
	       0) {
		name[n] = '\0';
		for (int i = 0; i < n_fds; i++)
			(void)close(fds[i]);
		if (answer(sock, name) < 0)
			break;
	}
}

int images_librarian(struct err *err)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, errno, "make a socket");
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		serve_names(pair[1]);
		_exit(0);
	}
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return err_errno(err, errno, "start a librarian");
	}
	librarian = pair[0];
	return pid;
}

/* Both have the first byte that cannot be the other's: '{', or a code. */
static int ask(const char *text, struct found *f, struct err *err)
{
	ssize_t n;

	f->entry = malloc(ENTRY_MAX + 1);
	if (!f->entry)
		return err_set(err, ENOMEM, "out of memory");
	if (strlen(text) >= 1000)
		return err_set(err, IMAGE_BAD_NAME,
			       "the name of an image is too long");
	if (io_send(librarian, text, strlen(text), NULL, 0) < 0)
		return err_set(err, EPIPE, "the image store cannot be read");
	n = io_recv(librarian, f->entry, ENTRY_MAX, 0, f->fds, &f->n_fds);
	if (n <= 0)
		return err_set(err, EPIPE, "the image store cannot be read");
	f->entry[n] = '\0';
	if (f->n_fds > 0)
		return 0;
	if (n != sizeof(*err))
		return image_corrupt(err, "its librarian");
	memcpy(err, f->entry, sizeof(*err));
	err->text[sizeof(err->text) - 1] = '\0';
	if (!err->code)
		err->code = EIO;
	return -err->code;
}

int images_check_name(const char *text, struct err *err)
{
	struct image_wanted w;

	return image_wanted_parse(text, &w, err);
}

int images_find(const char *text, struct box_image **ret, struct err *err)
{
	struct box_image *m = calloc(1, sizeof(*m));
	struct found *f = calloc(1, sizeof(*f));
	int r;

	*ret = NULL;
	if (!m || !f) {
		free(m);
		free(f);
		return err_set(err, ENOMEM, "out of memory");
	}
	m->hold = NO_FD;
	r = librarian >= 0 ? ask(text, f, err) : locate(text, f, err);
	if (r == 0)
		r = take_parts(m, text, f, err);
	found_done(f);
	free(f);
	if (r < 0)
		box_image_free(m);
	else
		*ret = m;
	return r;
}

void box_image_free(struct box_image *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_layer_fds; i++)
		fd_close(&m->layer_fds[i]);
	fd_close(&m->hold);
	strv_done(&m->names);
	strv_done(&m->layers);
	strv_done(&m->env);
	strv_done(&m->cmd);
	strv_done(&m->entrypoint);
	strv_done(&m->volumes);
	strv_done(&m->ports);
	strv_done(&m->labels);
	free(m->workdir);
	free(m->user);
	free(m->stop_signal);
	free(m);
}
