/* SPDX-License-Identifier: Apache-2.0 */
#include "box/work-bind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "box/guard-parts.h"
#include "os/below.h"

#define WORKSPACE "/workspace"

/* As who mounts it sees it. */
static const char *source_of(const struct cordon_spec *s)
{
	return s->bind_dir ? s->bind_dir : s->work_dir;
}

static bool is_here(const char *dir)
{
	struct stat here;
	struct stat st;

	return stat(".", &here) == 0 && stat(dir, &st) == 0 &&
	       here.st_dev == st.st_dev && here.st_ino == st.st_ino;
}

static int invalid(struct guard *g, struct err *err, const char *text)
{
	g->refused = REFUSED_INVALID;
	return err_set(err, EINVAL, "%s", text);
}

static int add_bind(struct guard *g, const char *dir, const char *target,
		    int mode, struct err *err)
{
	if (guard_add_bind(g, dir, target, mode, NULL, err) < 0)
		return -err->code;
	g->spec->binds[g->spec->n_binds - 1].is_work_dir = true;
	return 0;
}

int guard_add_work_dir(struct guard *g, struct err *err)
{
	struct cordon_spec *s = g->spec;
	int mode = s->is_work_dir_ro ? BIND_RO : BIND_RW;
	const char *dir = source_of(s);
	const char *inside = s->container_dir;
	struct stat st;

	if (!dir)
		return 0;
	if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode)) {
		g->refused = REFUSED_INVALID;
		return err_set(err, ENOTDIR,
			       "work_dir: '%.300s' is not a directory", dir);
	}
	if (s->workspace || guard_has_target(s, WORKSPACE))
		return invalid(g, err,
			       "work_dir: something else is at /workspace "
			       "already; give one of them");
	if (is_here(dir) && !s->allow_cwd)
		return invalid(g, err,
			       "work_dir: it is the current directory; say "
			       "allow_cwd: true if that is meant");
	if (is_here(dir) &&
	    strv_add(&g->notes, "work_dir is the current directory: the code "
				"works on what is in it") < 0)
		return guard_no_memory(err);
	if (add_bind(g, dir, WORKSPACE, mode, err) < 0)
		return -err->code;
	/* Where else the caller wants it. */
	if (!inside || strncmp(inside, WORKSPACE, strlen(WORKSPACE)) == 0 ||
	    guard_has_target(s, inside))
		return 0;
	return add_bind(g, dir, inside, mode, err);
}

static void warn(struct strv *warnings, const char *path, int error)
{
	char text[600];

	(void)snprintf(text, sizeof(text),
		       "delete_files: '%.400s' could not be removed: %s", path,
		       strerror(error));
	(void)strv_add(warnings, text);
}

/* `path` is below `top`; no link is followed on the way. */
static int remove_below(int top, const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent = slash ? strndup(path,
						      (size_t)(slash - path))
					    : strdup(".");
	_cleanup_fd_ int dir = NO_FD;

	if (!parent)
		return -ENOMEM;
	dir = open_below(top, parent, O_PATH | O_DIRECTORY);
	if (dir < 0)
		return dir;
	return unlinkat(dir, slash ? slash + 1 : path, 0) < 0 ? -errno : 0;
}

static int open_source(const struct spec_bind *b)
{
	_cleanup_fd_ int fd = open(b->source, O_PATH | O_DIRECTORY |
						      O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (b->ino && (st.st_ino != b->ino || st.st_dev != b->dev))
		return -ESTALE;
	return take_fd(&fd);
}

void work_dir_clean(const struct cordon_spec *s, const struct prepared *p,
		    struct strv *warnings)
{
	const struct spec_bind *b = NULL;
	_cleanup_fd_ int top = NO_FD;

	for (size_t i = 0; s->delete_files && i < s->n_binds; i++)
		if (strcmp(s->binds[i].target, WORKSPACE) == 0 &&
		    s->binds[i].mode == BIND_RW)
			b = &s->binds[i];
	if (!b)
		return; /* they went with the box */
	top = open_source(b);
	for (size_t i = 0; i < s->n_blocks; i++) {
		const char *path = p->code_files[i];
		int r;

		if (!path ||
		    strncmp(path, WORKSPACE "/", sizeof(WORKSPACE)) != 0)
			continue;
		path += sizeof(WORKSPACE);
		r = top < 0 ? top : remove_below(top, path);
		if (r < 0 && r != -ENOENT)
			warn(warnings, path, -r);
	}
}
