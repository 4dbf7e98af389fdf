/* SPDX-License-Identifier: Apache-2.0 */
#include "box/programs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "box/elf.h"
#include "box/images.h"
#include "box/wire.h"

#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#endif

/* Where loaders look by themselves, on the systems there are. */
static const char *const library_dirs[] = {
	"/usr/local/lib/" TRIPLET, "/usr/lib/" TRIPLET, "/usr/lib64",
	"/usr/local/lib",          "/usr/lib",
};

/* ... and where they are not all the same directories. */
static const char *const image_dirs[] = {
	"/lib/" TRIPLET,
	"/lib64",
	"/lib",
};

/* the root: this machine's, or an image's */

/* Where a path leads, without links; what is mounted for a box is in /usr. */
static bool real_path(const struct programs *p, const char *path, char *ret)
{
	struct image_real real;

	if (!p->image)
		return realpath(path, ret);
	if (box_image_real(p->image, path, false, &real) < 0 ||
	    !S_ISREG(real.mode))
		return false;
	memcpy(ret, real.path, sizeof(real.path));
	return true;
}

_Static_assert(sizeof(((struct image_real *)NULL)->path) == PATH_MAX,
	       "it fits");

static bool may_run(const struct programs *p, const char *path)
{
	struct image_real real;

	if (!p->image)
		return access(path, X_OK) == 0;
	return box_image_real(p->image, path, false, &real) == 0 &&
	       S_ISREG(real.mode) && (real.mode & 0111);
}

static int open_file(const struct programs *p, const char *path)
{
	int fd;

	if (p->image)
		return box_image_open(p->image, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool has(const struct strv *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], text) == 0)
			return true;
	return false;
}

static int add(struct strv *list, const char *text, struct err *err)
{
	if (strv_add(list, text) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

/* "$ORIGIN/../lib" of a library in `dir`; false if it does not fit. */
static bool expand(const char *entry, size_t len, const char *dir, char *ret,
		   size_t size)
{
	static const char *const words[] = { "$ORIGIN", "${ORIGIN}" };
	int n;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t skip = strlen(words[i]);

		if (len >= skip && strncmp(entry, words[i], skip) == 0) {
			n = snprintf(ret, size, "%s%.*s", dir,
				     (int)(len - skip), entry + skip);
			return n > 0 && (size_t)n < size;
		}
	}
	n = snprintf(ret, size, "%.*s", (int)len, entry);
	return n > 0 && (size_t)n < size && ret[0] == '/';
}

static bool is_there(const struct programs *p, const char *dir,
		     const char *name, char *ret)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) <
		       (int)sizeof(path) &&
	       real_path(p, path, ret) &&
	       (p->image || strncmp(ret, "/usr/", 5) == 0);
}

/* The real path of a library that the file in `dir` asks for. */
static bool find_library(const struct programs *p, const struct elf_needs *n,
			 const char *dir, const char *name, char *ret)
{
	char at[PATH_MAX];

	if (strchr(name, '/'))
		return is_there(p, "", name, ret);
	for (const char *e = n->runpath; *e;) {
		size_t len = strcspn(e, ":");

		if (expand(e, len, dir, at, sizeof(at)) &&
		    is_there(p, at, name, ret))
			return true;
		e += len + (e[len] == ':');
	}
	for (size_t i = 0; i < ARRAY_SIZE(library_dirs); i++)
		if (is_there(p, library_dirs[i], name, ret))
			return true;
	for (size_t i = 0; p->image && i < ARRAY_SIZE(image_dirs); i++)
		if (is_there(p, image_dirs[i], name, ret))
			return true;
	return false;
}

/* A library; what it needs itself is for need_rest(). */
static int need_library(const char *file, struct programs *ret, struct err *err)
{
	if (has(&ret->code, file) || has(&ret->files, file))
		return 0;
	if (ret->code.n + ret->files.n >= WIRE_MAX_MOUNTS)
		return err_set(err, E2BIG,
			       "the listed programs need more than %d files",
			       WIRE_MAX_MOUNTS);
	return add(&ret->code, file, err);
}

/* What `file` asks for itself. */
static int need(const char *file, struct programs *ret, struct err *err)
{
	struct elf_needs needs;
	char real[PATH_MAX];
	char dir[PATH_MAX];
	_cleanup_fd_ int fd = open_file(ret, file);
	int r = elf_look(fd, file, &needs, err);

	(void)snprintf(dir, sizeof(dir), "%s", file);
	*strrchr(dir, '/') = '\0';
	if (r == 0 && needs.loader[0] && real_path(ret, needs.loader, real) &&
	    !has(&ret->files, real))
		r = add(&ret->files, real, err);
	for (size_t i = 0; r == 0 && i < needs.libraries.n; i++) {
		const char *name = needs.libraries.v[i];

		/* Nearly all ask for the same few, in the same places. */
		if (!needs.runpath[0] && has(&ret->known, name))
			continue;
		if (!needs.runpath[0])
			r = add(&ret->known, name, err);
		if (r == 0 && find_library(ret, &needs, dir, name, real))
			r = need_library(real, ret, err);
	}
	elf_needs_done(&needs);
	return r;
}

/*
 * What the libraries need that were added. A loop, not a recursion: how long a
 * row of them is, the image's maker says. It ends, because nothing is added
 * twice. What need not be there (`is_lax`) may be no library.
 */
static int need_rest(struct programs *ret, bool is_lax, struct err *err)
{
	while (ret->looked < ret->code.n) {
		struct err own = { 0 };

		if (need(ret->code.v[ret->looked++], ret, &own) == 0)
			continue;
		if (!is_lax || own.code == E2BIG || own.code == ENOMEM) {
			*err = own;
			return -err->code;
		}
	}
	return 0;
}

/* It is mounted as it is, so nothing on its way may be a link. */
static bool is_plain_dir(const struct programs *p, const char *dir)
{
	struct image_real real;
	struct stat st;

	if (!p->image)
		return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode);
	return box_image_real(p->image, dir, false, &real) == 0 &&
	       S_ISDIR(real.mode) && strcmp(real.path, dir) == 0;
}

static int list_dir(const struct programs *p, const char *dir, struct strv *ret)
{
	DIR *d;
	int r = 0;

	if (p->image)
		return box_image_list(p->image, dir, ret);
	d = opendir(dir);
	if (!d)
		return 0;
	for (struct dirent *e = readdir(d); r == 0 && e; e = readdir(d))
		r = strv_add(ret, e->d_name);
	(void)closedir(d);
	return r;
}

/* Python's compiled modules: their directory, and what each of them needs. */
static int need_modules(const char *program, struct programs *ret,
			struct err *err)
{
	const char *name = strrchr(program, '/') + 1;
	const char *prefix = strncmp(program, "/usr/local/", 11) == 0 &&
					     ret->image
				     ? "/usr/local"
				     : "/usr";
	struct strv names = { 0 };
	char dir[128];
	char path[PATH_MAX];
	int r;

	if (strncmp(name, "python3.", 8) != 0 || strlen(name) > 32)
		return 0;
	(void)snprintf(dir, sizeof(dir), "%s/lib/%s/lib-dynload", prefix, name);
	if (!is_plain_dir(ret, dir))
		return 0;
	r = list_dir(ret, dir, &names) < 0
		    ? err_set(err, ENOMEM, "list '%s': out of memory", dir)
		    : 0;
	if (r == 0 && names.n > 0)
		r = add(&ret->code, dir, err);
	ret->looked = ret->code.n; /* the directory needs nothing */
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		const char *end = strrchr(names.v[i], '.');
		struct err unused = { 0 };

		if (!end || strcmp(end, ".so") != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names.v[i]);
		(void)need(path, ret, &unused);
		r = need_rest(ret, true, err);
	}
	strv_done(&names);
	return r;
}

static int take(const char *found, const char *real, struct programs *ret,
		struct err *err)
{
	if (!ret->image && strncmp(real, "/usr/", 5) != 0)
		return err_set(err, EINVAL, "the program '%s' is not in /usr",
			       real);
	/* An image has its links itself. */
	if (!ret->image && strcmp(found, real) != 0 &&
	    (add(&ret->links, found, err) < 0 ||
	     add(&ret->targets, real, err) < 0))
		return -err->code;
	if (has(&ret->files, real))
		return 0;
	if (add(&ret->files, real, err) < 0 || need(real, ret, err) < 0 ||
	    need_rest(ret, false, err) < 0)
		return -err->code;
	return need_modules(real, ret, err);
}

/* Along the path: where it was found, and what it really is. */
static bool look_for(const struct programs *p, const char *name,
		     const char *path, char found[PATH_MAX], char *real)
{
	while (*path) {
		size_t len = strcspn(path, ":");

		if (snprintf(found, PATH_MAX, "%.*s/%s", (int)len, path, name) <
			    PATH_MAX &&
		    may_run(p, found) && real_path(p, found, real))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static int find_one(const char *name, const char *path, struct programs *ret,
		    struct err *err)
{
	char found[PATH_MAX];
	char real[PATH_MAX];

	if (strchr(name, '/')) {
		if (name[0] != '/' || !may_run(ret, name) ||
		    !real_path(ret, name, real))
			return 0;
		return take(name, real, ret, err);
	}
	if (look_for(ret, name, path, found, real))
		return take(found, real, ret, err);
	/* As everywhere in the root `host`. */
	if (!ret->image && strcmp(name, "python") == 0 &&
	    look_for(ret, "python3", path, found, real))
		return take("/opt/cordon/bin/python", real, ret, err);
	return 0;
}

int programs_find(const struct strv *names, const char *path,
		  const struct box_image *image, struct programs *ret,
		  struct err *err)
{
	ret->image = image;
	for (size_t i = 0; i < names->n; i++)
		if (find_one(names->v[i], path, ret, err) < 0)
			return -err->code;
	return 0;
}

void programs_done(struct programs *p)
{
	strv_done(&p->files);
	strv_done(&p->code);
	strv_done(&p->links);
	strv_done(&p->targets);
	strv_done(&p->known);
}
