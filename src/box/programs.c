/* SPDX-License-Identifier: Apache-2.0 */
#include "box/programs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "box/elf.h"

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

static bool is_there(const char *dir, const char *name, char *ret)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) <
		       (int)sizeof(path) &&
	       realpath(path, ret) && strncmp(ret, "/usr/", 5) == 0;
}

/* The real path of a library that the file in `dir` asks for. */
static bool find_library(const struct elf_needs *n, const char *dir,
			 const char *name, char *ret)
{
	char at[PATH_MAX];

	if (strchr(name, '/'))
		return is_there("", name, ret);
	for (const char *p = n->runpath; *p;) {
		size_t len = strcspn(p, ":");

		if (expand(p, len, dir, at, sizeof(at)) &&
		    is_there(at, name, ret))
			return true;
		p += len + (p[len] == ':');
	}
	for (size_t i = 0; i < ARRAY_SIZE(library_dirs); i++)
		if (is_there(library_dirs[i], name, ret))
			return true;
	return false;
}

static int need(const char *file, struct programs *ret, struct err *err);

/* A library, and what it needs itself. */
static int need_library(const char *file, struct programs *ret, struct err *err)
{
	if (has(&ret->code, file) || has(&ret->files, file))
		return 0;
	if (add(&ret->code, file, err) < 0)
		return -err->code;
	return need(file, ret, err);
}

/* All that `file` needs. It ends, because nothing is added twice. */
static int need(const char *file, struct programs *ret, struct err *err)
{
	struct elf_needs needs;
	char real[PATH_MAX];
	char dir[PATH_MAX];
	int r = elf_look(file, &needs, err);

	(void)snprintf(dir, sizeof(dir), "%s", file);
	*strrchr(dir, '/') = '\0';
	if (r == 0 && needs.loader[0] && realpath(needs.loader, real) &&
	    !has(&ret->files, real))
		r = add(&ret->files, real, err);
	for (size_t i = 0; r == 0 && i < needs.libraries.n; i++) {
		const char *name = needs.libraries.v[i];

		/* Nearly all ask for the same few, in the same places. */
		if (!needs.runpath[0] && has(&ret->known, name))
			continue;
		if (!needs.runpath[0])
			r = add(&ret->known, name, err);
		if (r == 0 && find_library(&needs, dir, name, real))
			r = need_library(real, ret, err);
	}
	elf_needs_done(&needs);
	return r;
}

/* Python's compiled modules: their directory, and what each of them needs. */
static int need_modules(const char *program, struct programs *ret,
			struct err *err)
{
	const char *name = strrchr(program, '/') + 1;
	char dir[128];
	char path[PATH_MAX];
	DIR *d;
	int r;

	if (strncmp(name, "python3.", 8) != 0 || strlen(name) > 32)
		return 0;
	(void)snprintf(dir, sizeof(dir), "/usr/lib/%s/lib-dynload", name);
	d = opendir(dir);
	if (!d)
		return 0;
	r = add(&ret->code, dir, err);
	for (struct dirent *e = readdir(d); r == 0 && e; e = readdir(d)) {
		const char *end = strrchr(e->d_name, '.');
		struct err unused = { 0 };

		if (!end || strcmp(end, ".so") != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		(void)need(path, ret, &unused);
	}
	(void)closedir(d);
	return r;
}

static int take(const char *found, const char *real, struct programs *ret,
		struct err *err)
{
	if (strncmp(real, "/usr/", 5) != 0)
		return err_set(err, EINVAL, "the program '%s' is not in /usr",
			       real);
	if (strcmp(found, real) != 0 && (add(&ret->links, found, err) < 0 ||
					 add(&ret->targets, real, err) < 0))
		return -err->code;
	if (has(&ret->files, real))
		return 0;
	if (add(&ret->files, real, err) < 0 || need(real, ret, err) < 0)
		return -err->code;
	return need_modules(real, ret, err);
}

/* Along the path: where it was found, and what it really is. */
static bool look_for(const char *name, const char *path, char *found,
		     size_t size, char *real)
{
	while (*path) {
		size_t len = strcspn(path, ":");

		if (snprintf(found, size, "%.*s/%s", (int)len, path, name) <
			    (int)size &&
		    access(found, X_OK) == 0 && realpath(found, real))
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
		if (name[0] != '/' || access(name, X_OK) < 0 ||
		    !realpath(name, real))
			return 0;
		return take(name, real, ret, err);
	}
	if (look_for(name, path, found, sizeof(found), real))
		return take(found, real, ret, err);
	/* As everywhere in the root `host`. */
	if (strcmp(name, "python") == 0 &&
	    look_for("python3", path, found, sizeof(found), real))
		return take("/opt/cordon/bin/python", real, ret, err);
	return 0;
}

int programs_find(const struct strv *names, const char *path,
		  struct programs *ret, struct err *err)
{
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
