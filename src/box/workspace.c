/* SPDX-License-Identifier: Apache-2.0 */
#include "box/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "policy/decide.h"
#include "policy/never.h"

#define TOP "/workspace"

static int64_t mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/*
 * A walk without recursion: the stack is the list of open directories, so a
 * deep tree costs descriptors up to a ceiling and never stack.
 */
struct level {
	DIR *dir;
	size_t path_len;
};

struct walk {
	struct level stack[WORKSPACE_MAX_DEPTH];
	size_t depth;
	char path[4096]; /* of the entry, relative */
	size_t entries;
	bool is_cut; /* a ceiling was met */
};

static int walk_push(struct walk *w, int fd)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		int saved = errno;

		if (fd >= 0)
			(void)close(fd);
		return -saved;
	}
	w->stack[w->depth].dir = d;
	w->stack[w->depth].path_len = w->depth ? strlen(w->path) : 0;
	w->depth++;
	return 0;
}

static int walk_open(struct walk *w, int dir)
{
	memset(w, 0, sizeof(*w));
	return walk_push(w,
			 openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static void walk_close(struct walk *w)
{
	while (w->depth > 0)
		(void)closedir(w->stack[--w->depth].dir);
}

/* Puts the entry's name into w->path; false if it does not fit. */
static bool walk_name(struct walk *w, const char *name)
{
	size_t at = w->stack[w->depth - 1].path_len;
	int n = snprintf(w->path + at, sizeof(w->path) - at, "%s%s",
			 at ? "/" : "", name);

	return n > 0 && (size_t)n < sizeof(w->path) - at;
}

/*
 * The next entry: its directory's descriptor and its name, or false at the
 * end. Directories come before what is in them, and are entered afterwards
 * unless `w->is_cut` stops that.
 */
static bool walk_next(struct walk *w, int *ret_dir, const char **ret_name,
		      struct stat *st)
{
	while (w->depth > 0) {
		DIR *d = w->stack[w->depth - 1].dir;
		struct dirent *e = readdir(d);

		if (!e) {
			(void)closedir(d);
			w->depth--;
			continue;
		}
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (++w->entries > WORKSPACE_MAX_FILES ||
		    !walk_name(w, e->d_name)) {
			w->is_cut = true;
			return false;
		}
		if (fstatat(dirfd(d), e->d_name, st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*ret_dir = dirfd(d);
		*ret_name = e->d_name;
		return true;
	}
	return false;
}

static void walk_enter(struct walk *w, int dir, const char *name)
{
	if (w->depth == WORKSPACE_MAX_DEPTH) {
		w->is_cut = true;
		return;
	}
	(void)walk_push(w, openat(dir, name,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
					  O_CLOEXEC));
}

/* in */

static int remember(struct prepared *ret, const char *path,
		    const struct stat *st, uint64_t at)
{
	struct placed *more;

	if ((ret->n_placed & (ret->n_placed + 1)) == 0) {
		more = realloc(ret->placed,
			       2 * (ret->n_placed + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		ret->placed = more;
	}
	more = &ret->placed[ret->n_placed];
	more->path = strdup(path);
	if (!more->path)
		return -ENOMEM;
	more->mtime_ns = mtime_ns(st);
	more->size = (uint64_t)st->st_size;
	more->at = at;
	ret->n_placed++;
	return 0;
}

static int add_file(struct pack *p, int dir, const char *name, const char *path,
		    struct wire_record *rec, struct prepared *ret,
		    struct err *err)
{
	_cleanup_fd_ int fd = openat(dir, name,
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
					     O_CLOEXEC);
	struct stat st;
	uint64_t at;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "workspace: open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL,
			       "workspace: '%s' changed while it was read",
			       path);
	rec->data_len = (uint64_t)st.st_size;
	if (rec->data_len > p->budget)
		return err_set(err, EFBIG,
			       "workspace: it does not fit; raise --disk or "
			       "mount it with --volume");
	p->budget -= rec->data_len;
	rec->mtime_ns = mtime_ns(&st);
	at = pack_record_fd(p, rec, path, fd);
	if (p->err.code)
		return *err = p->err, -err->code;
	if (remember(ret, path + sizeof(TOP), &st, at) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int add_link(struct pack *p, int dir, const char *name, const char *path,
		    struct wire_record *rec, struct err *err)
{
	char target[4096];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));

	if (n < 0)
		return err_errno(err, errno, "workspace: read '%s'", path);
	rec->data_len = (uint64_t)n;
	pack_record(p, rec, path, target);
	return 0;
}

/* Whether it would be written to the host, through a volume. */
static int check_volumes(const struct cordon_spec *s, const char *path,
			 struct err *err)
{
	for (size_t i = 0; i < s->n_binds; i++) {
		const char *target = s->binds[i].target;
		const char *rest = target + sizeof(TOP) - 1;

		if (!path_is_below(target, TOP))
			continue;
		rest += *rest == '/';
		if (!*rest || path_is_below(path, rest))
			return err_set(err, EINVAL,
				       "workspace: '%.150s' would be copied "
				       "into the volume at '%.150s'",
				       path, target);
	}
	return 0;
}

static int add_entry(struct pack *p, struct walk *w, int dir, const char *name,
		     const struct stat *st, struct prepared *ret,
		     struct err *err)
{
	struct wire_record rec = { .mode = st->st_mode & 0777,
				   .mtime_ns = mtime_ns(st) };
	char path[sizeof(w->path) + sizeof(TOP)];

	(void)snprintf(path, sizeof(path), TOP "/%s", w->path);
	if (S_ISDIR(st->st_mode)) {
		rec.kind = WIRE_DIR;
		rec.mode |= 0700;
		pack_record(p, &rec, path, NULL);
		walk_enter(w, dir, name);
		return 0;
	}
	if (S_ISREG(st->st_mode)) {
		rec.kind = WIRE_FILE;
		return add_file(p, dir, name, path, &rec, ret, err);
	}
	if (S_ISLNK(st->st_mode)) {
		rec.kind = WIRE_LINK;
		return add_link(p, dir, name, path, &rec, err);
	}
	(void)snprintf(path, sizeof(path),
		       "workspace: left out '%.3900s': not a file, directory "
		       "or link",
		       w->path);
	(void)strv_add(&ret->warnings, path);
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct placed *)a)->path,
		      ((const struct placed *)b)->path);
}

int workspace_pack(struct pack *p, const struct cordon_spec *s,
		   struct prepared *ret, struct err *err)
{
	_cleanup_fd_ int top = open(s->workspace,
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ struct walk *w = malloc(sizeof(*w));
	const char *name;
	struct stat seen;
	struct stat st;
	int dir;
	int r = 0;

	if (top < 0)
		return err_errno(err, errno, "workspace: open '%s'",
				 s->workspace);
	if (s->workspace_ino &&
	    (fstat(top, &seen) < 0 || seen.st_ino != s->workspace_ino ||
	     seen.st_dev != s->workspace_dev))
		return err_set(err, ESTALE,
			       "workspace: '%s' is no longer what it was a "
			       "moment ago",
			       s->workspace);
	if (!w || walk_open(w, top) < 0)
		return err_set(err, ENOMEM, "workspace: read '%s'",
			       s->workspace);
	p->budget = spec_workspace_size(s);
	while (r == 0 && walk_next(w, &dir, &name, &st)) {
		r = check_volumes(s, w->path, err);
		if (r == 0)
			r = add_entry(p, w, dir, name, &st, ret, err);
	}
	if (r == 0 && w->is_cut)
		r = err_set(err, EFBIG,
			    "workspace: '%s' has more than %d files, or is "
			    "deeper than %d; mount it with --volume",
			    s->workspace, WORKSPACE_MAX_FILES,
			    WORKSPACE_MAX_DEPTH);
	walk_close(w);
	if (ret->n_placed > 0)
		qsort(ret->placed, ret->n_placed, sizeof(*ret->placed),
		      by_path);
	return r;
}

/* out */

/*
 * Times can be set to anything, and two changes in one tick of the clock have
 * the same: so where they say that nothing has changed, the bytes decide. What
 * was there is at `at` of the blob that was sent, or in memory.
 */
struct content {
	int blob;
	uint64_t at;
	const char *data; /* instead of the blob, if there is one */
	uint64_t size;
};

static bool holds(int dir, const char *name, const struct content *c)
{
	_cleanup_fd_ int fd = openat(dir, name,
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
					     O_CLOEXEC);
	char have[8192];
	char want[sizeof(have)];

	for (uint64_t at = 0; at < c->size;) {
		size_t len = (size_t)MIN(c->size - at, sizeof(have));
		const char *was = c->data ? c->data + at : want;

		if (pread(fd, have, len, (off_t)at) != (ssize_t)len ||
		    (!c->data && pread(c->blob, want, len,
				       (off_t)(c->at + at)) != (ssize_t)len) ||
		    memcmp(have, was, len) != 0)
			return false;
		at += len;
	}
	return fd >= 0;
}

/* The file of a block, which is in the workspace, as it was written. */
static bool is_code(const struct cordon_spec *s, const struct prepared *before,
		    const char *path, int dir, const char *name)
{
	for (size_t i = 0; i < s->n_blocks; i++) {
		const char *file = before->code_files[i];
		const struct content c = { .data = s->blocks[i].code,
					   .size = s->blocks[i].len };
		struct stat st;

		if (file && strncmp(file, TOP "/", sizeof(TOP)) == 0 &&
		    strcmp(file + sizeof(TOP), path) == 0 &&
		    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (uint64_t)st.st_size == c.size && holds(dir, name, &c))
			return true;
	}
	return false;
}

static bool is_unchanged(const struct cordon_spec *s,
			 const struct prepared *before, const char *path,
			 int dir, const char *name, const struct stat *st)
{
	const struct placed key = { .path = (char *)path };
	const struct placed *was = NULL;

	if (before->n_placed > 0)
		was = bsearch(&key, before->placed, before->n_placed,
			      sizeof(key), by_path);
	if (was) {
		const struct content c = { .blob = before->work,
					   .at = was->at,
					   .size = was->size };

		return was->mtime_ns == mtime_ns(st) &&
		       was->size == (uint64_t)st->st_size &&
		       holds(dir, name, &c);
	}
	return is_code(s, before, path, dir, name);
}

static void list(struct listing *l, const char *path, const struct stat *st)
{
	struct listed *more;

	if (l->n == WORKSPACE_MAX_LISTED) {
		l->is_cut = true;
		return;
	}
	if ((l->n & (l->n + 1)) == 0) {
		more = realloc(l->files, 2 * (l->n + 1) * sizeof(*more));
		if (!more) {
			l->is_cut = true;
			return;
		}
		l->files = more;
	}
	l->files[l->n].path = strdup(path);
	l->files[l->n].size = (uint64_t)st->st_size;
	if (l->files[l->n].path)
		l->n++;
}

/* "**" before a slash stands for any directories, also none. */
static bool matches(const char *glob, const char *path)
{
	if (strncmp(glob, "**/", 3) == 0) {
		if (matches(glob + 3, path))
			return true;
		path = strchr(path, '/');
		return path && matches(glob, path + 1);
	}
	return fnmatch(glob, path, FNM_PATHNAME | FNM_PERIOD) == 0;
}

static void warn_file(struct strv *warnings, const char *path, const char *why)
{
	char line[4500];

	(void)snprintf(line, sizeof(line), "copy-out: left out '%s': %s", path,
		       why);
	if (warnings->n < 100)
		(void)strv_add(warnings, line);
}

/* Opens the directory of `path` below `top`, made as needed. */
static int open_out_dir(int top, const char *path, const char **ret_name)
{
	int dir = fcntl(top, F_DUPFD_CLOEXEC, 3);

	for (const char *slash = strchr(path, '/'); dir >= 0 && slash;
	     slash = strchr(path, '/')) {
		char name[256];
		int next;

		if ((size_t)(slash - path) >= sizeof(name)) {
			(void)close(dir);
			return -ENAMETOOLONG;
		}
		memcpy(name, path, (size_t)(slash - path));
		name[slash - path] = '\0';
		(void)mkdirat(dir, name, 0777);
		next = openat(dir, name,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		(void)close(dir);
		dir = next;
		path = slash + 1;
	}
	*ret_name = path;
	return dir < 0 ? -errno : dir;
}

static int copy_bytes(int from, int to, uint64_t left)
{
	while (left > 0) {
		ssize_t n = sendfile(to, from, NULL, MIN(left, 1U << 30));

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		left -= (uint64_t)n;
	}
	return 0;
}

/* A new file beside the old one, then over it: a link there is replaced. */
static int put_file(int from, const struct stat *st, int top, const char *path)
{
	const char *name;
	_cleanup_fd_ int dir = open_out_dir(top, path, &name);
	_cleanup_fd_ int to = NO_FD;
	char temp[32];
	int r;

	if (dir < 0)
		return dir;
	(void)snprintf(temp, sizeof(temp), ".cordon-%d", (int)getpid());
	to = openat(dir, temp,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    st->st_mode & 0100 ? 0777 : 0666);
	if (to < 0)
		return -errno;
	r = copy_bytes(from, to, (uint64_t)st->st_size);
	if (r == 0 && renameat(dir, temp, dir, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, temp, 0);
	return r;
}

struct copier {
	const struct cordon_spec *spec;
	uint64_t left;
	const int *dirs;
	struct strv *warnings;
};

static void copy_one(struct copier *c, int dir, const char *name,
		     const char *path, int out)
{
	_cleanup_fd_ int from = openat(dir, name,
				       O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
					       O_CLOEXEC);
	struct stat st;
	int r;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode)) {
		warn_file(c->warnings, path, "it cannot be read");
		return;
	}
	/* Apparent size too: a sparse file would be written out whole. */
	if ((uint64_t)st.st_size > MIN(COPY_OUT_MAX_FILE, c->left)) {
		warn_file(c->warnings, path, "it is too large");
		return;
	}
	c->left -= (uint64_t)st.st_size;
	r = put_file(from, &st, out, path);
	if (r < 0)
		warn_file(c->warnings, path, strerror(-r));
}

static void copy_matching(struct copier *c, int dir, const char *name,
			  const char *path)
{
	for (size_t i = 0; i < c->spec->n_copies; i++) {
		if (!matches(c->spec->copies[i].glob, path))
			continue;
		if (never_made_in(path))
			warn_file(c->warnings, path,
				  "tools of the host obey files of that name");
		else
			copy_one(c, dir, name, path, c->dirs[i]);
	}
}

void workspace_collect(int top, const struct cordon_spec *s, const int *copies,
		       const struct prepared *before, struct listing *ret,
		       struct strv *warnings)
{
	_cleanup_free_ struct walk *w = malloc(sizeof(*w));
	struct copier c = { .spec = s,
			    .left = COPY_OUT_MAX_TOTAL,
			    .dirs = copies,
			    .warnings = warnings };
	const char *name;
	struct stat st;
	int dir;

	*ret = (struct listing){ 0 };
	if (!w || walk_open(w, top) < 0) {
		(void)strv_add(warnings, "the workspace could not be read");
		ret->is_cut = true;
	} else {
		while (walk_next(w, &dir, &name, &st)) {
			if (S_ISDIR(st.st_mode))
				walk_enter(w, dir, name);
			if (!S_ISREG(st.st_mode))
				continue;
			if (!s->no_files &&
			    !is_unchanged(s, before, w->path, dir, name, &st))
				list(ret, w->path, &st);
			copy_matching(&c, dir, name, w->path);
		}
		ret->is_cut = ret->is_cut || w->is_cut;
		walk_close(w);
	}
	if (ret->is_cut)
		(void)strv_add(warnings,
			       "the list of files in the workspace is cut");
}

void listing_done(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->files[i].path);
	free(l->files);
	*l = (struct listing){ 0 };
}
