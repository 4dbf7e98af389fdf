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
#include "base/sha256.h"
#include "base/state.h"
#include "base/util.h"
#include "box/wire.h"
#include "image/digest.h"
#include "ledger/read.h"
#include "os/uapi.h"

#define INDEX_MAX (64U << 20)
#define RUN_MAX   (8U << 20)
#define TEXT_MAX  (256U << 10)
#define LIST_MAX  4096

/* What of the store an image is read from: text and open files. */
struct found {
	char *entry;         /* of the index */
	int fds[IO_MAX_FDS]; /* "run", the hold, the layers */
	int n_fds;
};

_Static_assert(2 + WIRE_MAX_LAYERS <= IO_MAX_FDS, "they fit one message");

static int corrupt(struct err *err, const char *what)
{
	return err_set(err, IMAGE_CORRUPT,
		       "the image store is damaged (%s); 'cordon image ls' "
		       "says more",
		       what);
}

static int open_below(int dir, const char *path, int flags)
{
	const struct uapi_open_how how = {
		.flags = (uint64_t)flags | O_CLOEXEC,
		.resolve = UAPI_RESOLVE_BENEATH | UAPI_RESOLVE_NO_SYMLINKS |
			   UAPI_RESOLVE_NO_MAGICLINKS,
	};
	int fd = sys_openat2(dir, path, &how);

	return fd < 0 ? -errno : fd;
}

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

/* values of the two documents */

static int copy_text(const struct value *v, char **ret)
{
	struct buf b;

	buf_init(&b, TEXT_MAX);
	if (value_type(v) != '"' || value_text(v, &b) < 0 ||
	    buf_add(&b, "", 1) < 0 || strlen(b.data) + 1 != b.len) {
		buf_done(&b);
		return -EINVAL;
	}
	*ret = buf_take(&b);
	return *ret ? 0 : -ENOMEM;
}

static int get_text(const struct value *object, const char *name, char **ret)
{
	struct value v;

	if (value_get(object, name, &v))
		return copy_text(&v, ret);
	*ret = strdup("");
	return *ret ? 0 : -ENOMEM;
}

/* A member that is a digest, or missing. */
static bool get_digest(const struct value *object, const char *name,
		       bool is_must, char ret[IMAGE_DIGEST])
{
	_cleanup_free_ char *text = NULL;

	if (get_text(object, name, &text) < 0 || (!*text && is_must) ||
	    (*text && !image_digest_check(text)))
		return false;
	(void)strcpy(ret, text);
	return true;
}

/* A list of strings, or with `names` those of an object's members. */
static int get_list(const struct value *object, const char *name, char type,
		    struct strv *ret)
{
	struct value list;
	struct value key;
	struct value item;

	if (!value_get(object, name, &list) || value_type(&list) == 'n')
		return 0;
	if (value_type(&list) != type)
		return -EINVAL;
	for (struct walk w = walk_start(&list); walk_next(&w, &key, &item);) {
		_cleanup_free_ char *text = NULL;
		int r = copy_text(type == '{' ? &key : &item, &text);

		if (r < 0 || ret->n >= LIST_MAX)
			return r < 0 ? r : -E2BIG;
		if (strv_add(ret, text) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int get_labels(const struct value *object, struct strv *ret)
{
	struct value list;
	struct value key;
	struct value item;

	if (!value_get(object, "Labels", &list) || value_type(&list) == 'n')
		return 0;
	if (value_type(&list) != '{')
		return -EINVAL;
	for (struct walk w = walk_start(&list); walk_next(&w, &key, &item);) {
		_cleanup_free_ char *name = NULL;
		_cleanup_free_ char *text = NULL;
		_cleanup_free_ char *both = NULL;

		if (ret->n >= LIST_MAX || copy_text(&key, &name) < 0 ||
		    copy_text(&item, &text) < 0)
			return -EINVAL;
		if (asprintf(&both, "%s=%s", name, text) < 0) {
			both = NULL;
			return -ENOMEM;
		}
		if (strv_add(ret, both) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* the index */

/* What is looked for: a name with tag or digest, or the beginning of an id. */
struct wanted {
	struct image_ref ref;
	char name[IMAGE_REF_MAX];
	bool is_name;
	const char *digits; /* NULL: it cannot be an id */
};

static int parse_wanted(const char *text, struct wanted *ret, struct err *err)
{
	struct err bad = { 0 };
	const char *digits = image_digest_hex(text);
	size_t len = strlen(digits);

	memset(ret, 0, sizeof(*ret));
	if (len > 0 && len <= 64 && image_digest_digits(digits) == len)
		ret->digits = digits;
	if (digits == text && image_ref_parse(text, &ret->ref, &bad) == 0) {
		ret->is_name = true;
		image_ref_format(&ret->ref, ret->name);
	}
	if (!ret->is_name && !ret->digits) {
		if (digits != text)
			return err_set(err, IMAGE_BAD_NAME,
				       "'%.100s' is not an id", text);
		*err = bad;
		return -err->code;
	}
	return 0;
}

/* An image of that name, whatever its tag, with that digest. */
static bool has_digest(const struct box_image *m, const struct image_ref *ref)
{
	size_t len = strlen(ref->name);

	if (strcmp(m->id, ref->digest) != 0 &&
	    strcmp(m->manifest, ref->digest) != 0)
		return false;
	for (size_t i = 0; i < m->names.n; i++)
		if (strncmp(m->names.v[i], ref->name, len) == 0 &&
		    m->names.v[i][len] == ':')
			return true;
	return false;
}

static bool has_name(const struct box_image *m, const struct wanted *w)
{
	if (!w->is_name)
		return false;
	if (*w->ref.digest)
		return has_digest(m, &w->ref);
	for (size_t i = 0; i < m->names.n; i++)
		if (strcmp(m->names.v[i], w->name) == 0)
			return true;
	return false;
}

static bool has_id(const struct box_image *m, const struct wanted *w)
{
	return w->digits && strncmp(image_digest_hex(m->id), w->digits,
				    strlen(w->digits)) == 0;
}

static int read_head(const struct value *v, struct box_image *ret)
{
	if (value_type(v) != '{' || !get_digest(v, "id", true, ret->id) ||
	    !get_digest(v, "manifest", false, ret->manifest) ||
	    get_list(v, "names", '[', &ret->names) < 0)
		return -EINVAL;
	return 0;
}

/*
 * By name first; by the beginning of an id only if that is of one image alone.
 */
static int choose(const struct value *images, const struct wanted *w,
		  const char *text, struct value *ret, struct err *err)
{
	struct value none;
	struct value item;
	int by_id = 0;

	for (struct walk k = walk_start(images); walk_next(&k, &none, &item);) {
		struct box_image head = { 0 };
		int r = read_head(&item, &head);
		bool is_it = r == 0 && has_name(&head, w);

		if (is_it || (r == 0 && has_id(&head, w) && by_id++ == 0))
			*ret = item;
		strv_done(&head.names);
		if (r < 0)
			return corrupt(err, "index.json");
		if (is_it)
			return 0;
	}
	if (by_id > 1)
		return err_set(err, IMAGE_AMBIGUOUS,
			       "more than one image has an id that begins with "
			       "'%.64s'",
			       w->digits);
	if (by_id == 0)
		return err_set(
			err, IMAGE_NOT_FOUND,
			"No such image: %.200s; 'cordon image ls' shows "
			"what there is, 'cordon image load' and 'import' "
			"take archives in; pulling is not in this build",
			text);
	return 0;
}

/* The lower one of two that are the same layer changes nothing. */
static int keep_last(struct strv *all, struct strv *ret)
{
	for (size_t i = 0; i < all->n; i++) {
		bool again = false;

		for (size_t k = i + 1; k < all->n && !again; k++)
			again = strcmp(all->v[i], all->v[k]) == 0;
		if (!again && strv_add(ret, all->v[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_layers(const struct value *image, struct strv *ret)
{
	struct strv all = { 0 };
	struct value list;
	struct value none;
	struct value item;
	int r = value_get(image, "layers", &list) && value_type(&list) == '['
			? 0
			: -EINVAL;

	for (struct walk w = walk_start(&list);
	     r == 0 && walk_next(&w, &none, &item);) {
		char digest[IMAGE_DIGEST];

		if (!get_digest(&item, "diff_id", true, digest))
			r = -EINVAL;
		else if (strv_add(&all, image_digest_hex(digest)) < 0)
			r = -ENOMEM;
	}
	if (r == 0)
		r = keep_last(&all, ret);
	strv_done(&all);
	return r;
}

static int set_name(struct box_image *m, const struct wanted *w)
{
	const char *name = m->id;

	if (has_name(m, w) && !*w->ref.digest)
		name = w->name;
	else if (m->names.n > 0)
		name = m->names.v[0];
	return (size_t)snprintf(m->name, sizeof(m->name), "%s", name) <
			       sizeof(m->name)
		       ? 0
		       : -ENAMETOOLONG;
}

/* The image's entry in the index; the caller frees it. */
static int find_entry(int store, const char *text, const struct wanted *w,
		      char **ret, struct err *err)
{
	_cleanup_free_ char *index = NULL;
	struct value top = { 0 };
	struct value images = { "[]", 2 };
	struct value version;
	struct value chosen = { 0 };
	int r = read_whole(store, "index.json", INDEX_MAX, &index, &top.len);

	top.p = index;
	if (r < 0 && r != -ENOENT) /* where it is missing, nothing is there */
		return err_errno(err, -r, "read the index of the image store");
	if (r == 0 &&
	    (!value_check(top.p, top.len) || value_type(&top) != '{' ||
	     !value_get(&top, "version", &version) ||
	     value_int(&version, 0) != 1 ||
	     !value_get(&top, "images", &images) || value_type(&images) != '['))
		return corrupt(err, "index.json");
	if (choose(&images, w, text, &chosen, err) < 0)
		return -err->code;
	*ret = strndup(chosen.p, chosen.len);
	return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int read_entry(struct box_image *m, const char *entry,
		      const struct wanted *w, char run[IMAGE_DIGEST],
		      struct err *err)
{
	const struct value v = { entry, strlen(entry) };

	if (!value_check(v.p, v.len) || read_head(&v, m) < 0 ||
	    set_name(m, w) < 0 || !get_digest(&v, "run", true, run) ||
	    read_layers(&v, &m->layers) < 0)
		return corrupt(err, "index.json");
	if (m->layers.n == 0 || m->layers.n > WIRE_MAX_LAYERS)
		return err_set(err, IMAGE_REFUSED,
			       "image '%.100s' has %zu layers; a box takes 1 "
			       "to %d",
			       m->name, m->layers.n, WIRE_MAX_LAYERS);
	return 0;
}

/* what the image says */

static int read_config(struct box_image *m, const struct value *top)
{
	struct value config;
	struct value empty = { "{}", 2 };

	if (!value_get(top, "config", &config))
		config = empty;
	if (get_text(&config, "WorkingDir", &m->workdir) < 0 ||
	    get_text(&config, "User", &m->user) < 0 ||
	    get_text(&config, "StopSignal", &m->stop_signal) < 0 ||
	    get_list(&config, "Env", '[', &m->env) < 0 ||
	    get_list(&config, "Cmd", '[', &m->cmd) < 0 ||
	    get_list(&config, "Entrypoint", '[', &m->entrypoint) < 0 ||
	    get_list(&config, "ExposedPorts", '{', &m->ports) < 0 ||
	    get_list(&config, "Volumes", '{', &m->volumes) < 0 ||
	    get_labels(&config, &m->labels) < 0)
		return -EINVAL;
	for (size_t i = 0; i < m->env.n; i++)
		if (!strchr(m->env.v[i], '=') || m->env.v[i][0] == '=')
			return -EINVAL;
	return 0;
}

static int check_machine(const struct value *top, const struct box_image *m,
			 struct err *err)
{
#if defined(__x86_64__)
	static const char here[] = "amd64";
#elif defined(__aarch64__)
	static const char here[] = "arm64";
#endif
	_cleanup_free_ char *os = NULL;
	_cleanup_free_ char *arch = NULL;

	if (get_text(top, "os", &os) < 0 ||
	    get_text(top, "architecture", &arch) < 0)
		return corrupt(err, "a configuration");
	if (strcmp(os, "linux") != 0 || strcmp(arch, here) != 0)
		return err_set(err, IMAGE_REFUSED,
			       "image '%.100s' is for %.20s/%.20s; this "
			       "machine runs linux/%s",
			       m->name, os, arch, here);
	return 0;
}

static int read_run(struct box_image *m, int fd, const char *digest,
		    struct err *err)
{
	_cleanup_free_ char *text = NULL;
	struct value top = { 0 };
	char sum[IMAGE_DIGEST];
	int r = read_fd(fd, RUN_MAX, &text, &top.len);

	if (r < 0)
		return err_errno(err, -r, "read a configuration");
	image_digest_of(text, top.len, sum);
	top.p = text;
	if (strcmp(sum, digest) != 0 || !value_check(top.p, top.len) ||
	    read_config(m, &top) < 0)
		return corrupt(err, "a configuration");
	return check_machine(&top, m, err);
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
	struct wanted w;
	char run[IMAGE_DIGEST];
	char path[4096];

	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	m->hold = NO_FD;
	if (parse_wanted(text, &w, err) == 0)
		store = state_open("images", path, sizeof(path), err);
	if (store >= 0)
		lock = lock_store(store, err);
	if (!err->code && find_entry(store, text, &w, &f->entry, err) == 0 &&
	    read_entry(m, f->entry, &w, run, err) == 0)
		(void)open_parts(f, store, m, run, err);
	box_image_free(m);
	return -err->code;
}

static int take_parts(struct box_image *m, const char *text, struct found *f,
		      struct err *err)
{
	struct wanted w;
	char run[IMAGE_DIGEST];

	if (parse_wanted(text, &w, err) < 0 ||
	    read_entry(m, f->entry, &w, run, err) < 0)
		return -err->code;
	if ((size_t)f->n_fds != m->layers.n + 2)
		return corrupt(err, "its librarian");
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
	if (locate(name, f, &err) == 0 && strlen(f->entry) >= ENTRY_MAX)
		(void)err_set(&err, E2BIG, "an entry of the index is too long");
	r = err.code ? io_send(sock, &err, sizeof(err), NULL, 0)
		     : io_send(sock, f->entry, strlen(f->entry), f->fds,
			       f->n_fds);
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
		return corrupt(err, "its librarian");
	memcpy(err, f->entry, sizeof(*err));
	err->text[sizeof(err->text) - 1] = '\0';
	if (!err->code)
		err->code = EIO;
	return -err->code;
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
