/* SPDX-License-Identifier: Apache-2.0 */

/* What is mounted where, and what of it can be written. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/settings-set.h"

SETTER(set_read_only)
{
	bool ro = false;

	s->stated |= SPEC_STATED_ROOT;
	if (put_bool(v, &ro, err) < 0)
		return -err->code;
	s->writable_root = !ro;
	return 0;
}

/* SRC:DST[:ro|rw] */
SETTER(set_volume)
{
	struct spec_bind *b = &s->binds[s->n_binds];
	char text[8192];
	char *target;
	char *mode;

	if (s->n_binds == SPEC_MAX_ITEMS)
		return err_set(err, E2BIG, "more than %d volumes",
			       SPEC_MAX_ITEMS);
	if ((size_t)snprintf(text, sizeof(text), "%s", v) >= sizeof(text))
		return err_set(err, EINVAL, "the path is too long");
	target = strchr(text, ':');
	if (!target || target == text)
		return err_set(err, EINVAL,
			       "'%s' is not SRC:DST[:ro|rw], such as "
			       "./data:/data:ro",
			       v);
	*target++ = '\0';
	mode = strchr(target, ':');
	if (mode)
		*mode++ = '\0';
	if (mode && strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0)
		return err_set(err, EINVAL, "mode '%s' is neither ro nor rw",
			       mode);
	if (s->is_served && text[0] != '/')
		return err_set(err, EINVAL, "'%s' is not an absolute path",
			       text);
	spec_plain_path(target);
	if (spec_check_path(target, "DST", err) < 0)
		return -err->code;
	b->mode = mode && strcmp(mode, "rw") == 0 ? BIND_RW : BIND_RO;
	if (put_text(&b->source, text, err) < 0 ||
	    put_text(&b->target, target, err) < 0)
		return -err->code;
	s->n_binds++;
	return 0;
}

static int add_tmpfs(struct cordon_spec *s, const char *target, uint64_t bytes,
		     struct err *err)
{
	struct spec_tmpfs *t = &s->tmpfs[s->n_tmpfs];

	if (spec_check_path(target, "the place", err) < 0)
		return -err->code;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, target) == 0) {
			s->tmpfs[i].size = bytes;
			return 0;
		}
	if (s->n_tmpfs == SPEC_MAX_ITEMS - 12)
		return err_set(err, E2BIG, "too many writable places");
	if (put_text(&t->target, target, err) < 0)
		return -err->code;
	t->size = bytes;
	s->n_tmpfs++;
	return 0;
}

static bool is_octal(const char *v, uint32_t *ret)
{
	size_t len = strlen(v);

	if (len == 0 || len > 4 || strspn(v, "01234567") != len)
		return false;
	*ret = (uint32_t)strtoul(v, NULL, 8);
	return *ret != 0 && !(*ret & 06000);
}

/* One option of a place in memory; it never gives more than is there anyway. */
static int tmpfs_option(const char *o, struct spec_tmpfs *t, struct err *err)
{
	static const char *const granted[] = { "rw", "nosuid", "nodev", "exec",
					       "" };

	if (strncmp(o, "size=", 5) == 0) {
		t->has_size = true;
		return put_size(o + 5, 4096, &t->size, err);
	}
	if (strncmp(o, "mode=", 5) == 0 && is_octal(o + 5, &t->mode))
		return 0;
	if (strcmp(o, "ro") == 0)
		t->is_ro = true;
	else if (strcmp(o, "noexec") == 0)
		t->is_noexec = true;
	else {
		for (size_t i = 0; i < ARRAY_SIZE(granted); i++)
			if (strcmp(o, granted[i]) == 0)
				return 0;
		return err_set(err, EINVAL,
			       "'%s' is none of size=SIZE, mode=MODE, ro and "
			       "noexec",
			       o);
	}
	return 0;
}

/* DST[:size=SIZE[,...]] */
SETTER(set_tmpfs)
{
	struct spec_tmpfs t = { .size = 64 << 20 };
	char text[4096];
	char *options;
	char *save;

	if ((size_t)snprintf(text, sizeof(text), "%s", v) >= sizeof(text))
		return err_set(err, EINVAL, "the path is too long");
	options = strchr(text, ':');
	if (options)
		*options++ = '\0';
	spec_plain_path(text);
	for (char *o = options ? strtok_r(options, ",", &save) : NULL; o;
	     o = strtok_r(NULL, ",", &save))
		if (tmpfs_option(o, &t, err) < 0)
			return -err->code;
	if (add_tmpfs(s, text, t.size, err) < 0)
		return -err->code;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, text) == 0) {
			s->tmpfs[i].is_volume = false;
			s->tmpfs[i].has_size = t.has_size;
			s->tmpfs[i].mode = t.mode;
			s->tmpfs[i].is_ro = t.is_ro;
			s->tmpfs[i].is_noexec = t.is_noexec;
		}
	return 0;
}

SETTER(set_shm_size)
{
	uint64_t bytes = 0;

	if (put_size(v, 4096, &bytes, err) < 0)
		return -err->code;
	if (add_tmpfs(s, "/dev/shm", bytes, err) < 0)
		return -err->code;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, "/dev/shm") == 0)
			s->tmpfs[i].has_size = true;
	return 0;
}

static int add_writable(struct cordon_spec *s, const char *place,
			struct err *err)
{
	if (add_tmpfs(s, place, s->disk, err) < 0)
		return -err->code;
	for (size_t i = 0; i < s->n_tmpfs; i++)
		if (strcmp(s->tmpfs[i].target, place) == 0)
			s->tmpfs[i].is_volume = true;
	return 0;
}

SETTER(set_writable)
{
	_cleanup_free_ char *place = strdup(v);

	if (!place)
		return no_memory_left(err);
	spec_plain_path(place);
	return add_writable(s, place, err);
}

/*
 * The only writable places: those that are there anyway are not, unless this
 * names them.
 */
SETTER(set_writable_only)
{
	const struct {
		const char *path;
		bool *no;
	} usual[] = { { "/tmp", &s->no_tmp },
		      { "/workspace", &s->no_workspace },
		      { "/dev/shm", &s->no_shm } };
	_cleanup_free_ char *place = strdup(v);

	if (!place)
		return no_memory_left(err);
	spec_plain_path(place);
	if (!s->has_writable)
		s->no_tmp = s->no_workspace = s->no_shm = true;
	s->has_writable = true;
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (strcmp(usual[i].path, place) == 0) {
			*usual[i].no = false;
			return 0;
		}
	return add_writable(s, place, err);
}

SETTER(set_workspace)
{
	if (s->is_served && v[0] != '/')
		return err_set(err, EINVAL, "'%s' is not an absolute path", v);
	return put_text(&s->workspace, v, err);
}

/* Whether a pattern can match a path below the workspace. */
static bool is_inside(const char *glob, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = strcspn(glob + i, "/=");

		if ((n == 2 && glob[i] == '.' && glob[i + 1] == '.') ||
		    (n == 1 && glob[i] == '.'))
			return false;
		i += n + 1;
	}
	return len > 0 && glob[0] != '/';
}

/* GLOB=DIR; the pattern is of paths below the workspace. */
SETTER(set_copy_out)
{
	static const char *const tops[] = { "/workspace/", "./" };
	struct spec_copy *c = &s->copies[s->n_copies];
	const char *eq = strrchr(v, '=');
	char *glob;

	if (!eq || eq == v || !eq[1])
		return err_set(err, EINVAL,
			       "'%s' is not GLOB=DIR, such as '*.png=./out'",
			       v);
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++)
		if (strncmp(v, tops[i], strlen(tops[i])) == 0)
			v += strlen(tops[i]);
	if (v > eq || !is_inside(v, (size_t)(eq - v)))
		return err_set(err, EINVAL,
			       "'%.100s': only files of /workspace are copied; "
			       "a pattern is such as '*.png', 'out/*' or "
			       "'**/*.csv'",
			       v);
	if (s->n_copies == SPEC_MAX_ITEMS)
		return err_set(err, E2BIG, "more than %d", SPEC_MAX_ITEMS);
	glob = strndup(v, (size_t)(eq - v));
	if (!glob)
		return no_memory_left(err);
	free(c->glob);
	c->glob = glob;
	if (put_text(&c->dir, eq + 1, err) < 0)
		return -err->code;
	s->n_copies++;
	return 0;
}

SETTER(set_workdir)
{
	if (strcmp(v, "/") != 0 && spec_check_path(v, "the directory", err) < 0)
		return -err->code;
	if (strncmp(v, "/proc", 5) == 0 && (v[5] == '/' || !v[5]))
		return err_set(err, EINVAL,
			       "the working directory cannot be in /proc");
	return put_text(&s->workdir, v, err);
}

/* The host's own paths are named in a request to the daemon as volumes. */
static int not_served(const struct cordon_spec *s, struct err *err)
{
	return s->is_served
		       ? err_set(err, EINVAL,
				 "a request to the daemon names a volume at "
				 "/workspace instead")
		       : 0;
}

/* DIR[:ro|:rw] */
SETTER(set_work_dir)
{
	size_t len = strlen(v);
	bool has_mode = len > 3 && (strcmp(v + len - 3, ":ro") == 0 ||
				    strcmp(v + len - 3, ":rw") == 0);
	char *dir;

	if (not_served(s, err) < 0)
		return -err->code;
	if (!*v)
		return err_set(err, EINVAL, "the directory is missing");
	dir = strndup(v, has_mode ? len - 3 : len);
	if (!dir)
		return no_memory_left(err);
	free(s->work_dir);
	s->work_dir = dir;
	s->is_work_dir_ro = has_mode && v[len - 1] == 'o';
	return 0;
}

SETTER(set_bind_dir)
{
	if (not_served(s, err) < 0)
		return -err->code;
	if (!*v)
		return err_set(err, EINVAL, "the directory is missing");
	return put_text(&s->bind_dir, v, err);
}

SETTER(set_container_dir)
{
	if (set_workdir(s, v, err) < 0)
		return -err->code;
	return put_text(&s->container_dir, v, err);
}

SETTER(set_delete_files)
{
	bool deletes = false;

	if (put_bool(v, &deletes, err) < 0)
		return -err->code;
	if (deletes && not_served(s, err) < 0)
		return -err->code;
	s->delete_files = deletes;
	return 0;
}
