/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Volumes of an image's root: directories of it that can be written though the
 * rest cannot. The request asks for some (`writable`, Docker's Volumes), the
 * policy for others, and the image itself has a list. What it has there is
 * seen; what is written goes to the box's own layer and is gone with it.
 *
 * The image's own list is a wish: what the policy does not give, and what is
 * no place for a volume, is not made, and that is told.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "box/guard-parts.h"
#include "box/images.h"

static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return strncmp(path, top, len) == 0 &&
	       (path[len] == '/' || path[len] == '\0');
}

/* Places that every box has, writable as far as they may be. */
static bool is_usual(const char *path)
{
	return strcmp(path, "/tmp") == 0 || strcmp(path, "/workspace") == 0 ||
	       strcmp(path, "/dev/shm") == 0;
}

/* Whether something else is mounted there, or above it. */
static bool is_covered(const struct cordon_spec *s, const char *path)
{
	static const char *const own[] = { "/proc", "/sys", "/dev", "/tmp",
					   "/workspace" };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (is_below(path, own[i]))
			return true;
	for (size_t i = 0; i < s->n_binds; i++)
		if (is_below(path, s->binds[i].target))
			return true;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (!s->tmpfs[i].is_volume &&
		    is_below(path, s->tmpfs[i].target))
			return true;
	return false;
}

/* Where it is in the image; -errno if no directory can be there. */
static int locate(const struct guard *g, const char *path,
		  struct image_real *ret)
{
	int r = box_image_real(g->image, path, true, ret);

	if (r == 0 && ret->mode && !S_ISDIR(ret->mode))
		r = -ENOTDIR;
	if (r == 0 && strcmp(ret->path, "/") == 0)
		r = -EINVAL;
	return r;
}

/*
 * What was asked for. In a mount it is an empty place of its own, as ever;
 * two names of one directory are one.
 */
static int place_one(struct guard *g, size_t i, struct err *err)
{
	struct cordon_spec *s = g->spec;
	struct spec_tmpfs t = s->tmpfs[i];
	struct image_real real;
	int r;

	if (is_usual(t.target) || is_covered(s, t.target)) {
		s->tmpfs[i].is_volume = false;
		return 0;
	}
	r = locate(g, t.target, &real);
	if (r < 0) {
		g->refused = REFUSED_INVALID;
		return err_errno(err, -r, "make '%s' of the image writable",
				 t.target);
	}
	if (strcmp(real.path, t.target) == 0)
		return 0;
	s->tmpfs[i].is_volume = !is_covered(s, real.path);
	s->tmpfs[i].target = guard_own(g, real.path);
	return s->tmpfs[i].target ? 0 : guard_no_memory(err);
}

static void drop_doubles(struct cordon_spec *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_tmpfs; i++) {
		bool is_new = true;

		for (size_t k = 0; k < n; k++)
			is_new &= strcmp(s->tmpfs[k].target,
					 s->tmpfs[i].target) != 0;
		if (is_new)
			s->tmpfs[n++] = s->tmpfs[i];
	}
	s->n_tmpfs = n;
}

static int tell(struct guard *g, const char *path, const char *why,
		struct err *err)
{
	char text[300];

	(void)snprintf(text, sizeof(text),
		       "the image's volume '%.100s' is not made: %.150s", path,
		       why);
	return strv_add(&g->notes, text) < 0 ? guard_no_memory(err) : 0;
}

/* What the image says of itself; "/data/" and "//data" are "/data". */
static int add_one(struct guard *g, const char *path, struct err *err)
{
	struct image_real real;
	struct err why = { 0 };
	int r = path[0] == '/' ? locate(g, path, &real) : -EINVAL;

	if (r == 0 && spec_check_path(real.path, "it", &why) < 0)
		r = -EINVAL;
	if (r < 0)
		return tell(g, path,
			    r == -EINVAL ? "it is no path for one"
					 : strerror(-r),
			    err);
	if (is_usual(real.path) || guard_has_target(g->spec, real.path))
		return 0;
	if (is_covered(g->spec, real.path))
		return tell(g, path, "something else is mounted there", err);
	if (!policy_gives_place(g->policy, real.path))
		return tell(g, path,
			    "the policy does not give it (sandbox.writable)",
			    err);
	return guard_add_place(g, real.path, g->spec->disk, true, err);
}

int guard_add_volumes(struct guard *g, struct err *err)
{
	const struct strv *own = &g->image->volumes;

	for (size_t i = 0; i < g->spec->n_tmpfs; i++)
		if (g->spec->tmpfs[i].is_volume && place_one(g, i, err) < 0)
			return -err->code;
	drop_doubles(g->spec);
	for (size_t i = 0; i < own->n; i++)
		if (add_one(g, own->v[i], err) < 0)
			return -err->code;
	g->spec->notes = &g->notes;
	return 0;
}
