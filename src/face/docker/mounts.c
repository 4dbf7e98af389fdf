/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Binds, Mounts, Tmpfs and Volumes. Whether a source exists, and whether the
 * peer may have it, is found by the preparer, as that peer.
 */

#include <stdio.h>
#include <string.h>

#include "face/docker/fields.h"

static int check_path(struct making *k, const char *path, const char *where)
{
	if (*path != '/' || strlen(path) > 4000)
		return say_no(
			&k->said, 400,
			"%s: invalid mount path: '%.100s' mount path must "
			"be absolute",
			where, path);
	if (strchr(path, ':'))
		return say_no(&k->said, 400, "%s: '%.100s' has a colon", where,
			      path);
	return 0;
}

/* Two of them at one place: one would hide the other. */
static int check_place(struct making *k, const char *to, const char *where)
{
	if (check_path(k, to, where) < 0)
		return -1;
	if (set_has(k, "volumes", to) || set_has(k, "writable", to) ||
	    json_object_get(json_object_get(k->settings, "tmpfs"), to))
		return say_no(&k->said, 400,
			      "%s: Duplicate mount point: %.100s", where, to);
	return 0;
}

static int add_bind(struct making *k, const char *from, const char *to,
		    bool is_ro, const char *where)
{
	char text[8192];

	if (*from != '/')
		return say_no(&k->said, 501,
			      "cordon: %s: the named volume %.60s is not "
			      "supported; bind a directory",
			      where, from);
	if (check_path(k, from, where) < 0 || check_place(k, to, where) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "%s:%s:%s", from, to,
		       is_ro ? "ro" : "rw");
	set_add(k, "volumes", text);
	return 0;
}

/* "ro", "z", "rprivate" ...: 0 harmless, else -1. */
static int take_mode(struct making *k, const char *mode, bool *ret_ro,
		     const char *where)
{
	static const char fine[] = " rw z Z cached delegated consistent "
				   "default private rprivate nocopy rbind ";
	static const char shared[] = " shared rshared slave rslave ";
	bool is_rw = false;

	while (*mode) {
		size_t len = strcspn(mode, ",");
		char word[40];

		(void)snprintf(word, sizeof(word), " %.*s ",
			       (int)MIN(len, sizeof(word) - 3), mode);
		is_rw |= strcmp(word, " rw ") == 0;
		if (strcmp(word, " ro ") == 0)
			*ret_ro = true;
		else if (strstr(shared, word))
			return say_no(&k->said, 403,
				      "cordon: %s: propagation%sis refused: "
				      "mounts are private",
				      where, word);
		else if (!strstr(fine, word))
			return say_no(&k->said, 400, "%s: invalid mode:%s",
				      where, word);
		mode += len + (mode[len] == ',');
	}
	if (is_rw && *ret_ro)
		return say_no(&k->said, 400,
			      "%s: invalid mode: ro and rw exclude each other",
			      where);
	return 0;
}

/* "src:dst[:opts]" */
static int take_bind(struct making *k, const char *text, const char *where)
{
	char copy[8192];
	char *to;
	char *mode;
	bool is_ro = false;

	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return say_no(&k->said, 400, "%s: too long", where);
	to = strchr(copy, ':');
	if (!to || to == copy)
		return say_no(&k->said, 400,
			      "%s: invalid volume specification: '%.100s'",
			      where, text);
	*to++ = '\0';
	mode = strchr(to, ':');
	if (mode)
		*mode++ = '\0';
	if (mode && take_mode(k, mode, &is_ro, where) < 0)
		return -1;
	return add_bind(k, copy, to, is_ro, where);
}

int take_binds(struct making *k, json_t *v, const char *where)
{
	return need_each(k, v, where, take_bind);
}

static int add_tmpfs(struct making *k, const char *to, const char *options,
		     const char *where)
{
	json_t *map = json_object_get(k->settings, "tmpfs");

	if (check_place(k, to, where) < 0)
		return -1;
	if (!map) {
		map = json_object();
		json_object_set_new(k->settings, "tmpfs", map);
	}
	json_object_set_new(map, to, json_string(options));
	return 0;
}

/* What is always so is left out, so that the preparer need not know it. */
static int tmpfs_options(struct making *k, const char *text, char *ret,
			 size_t size, const char *where)
{
	static const char always[] = " rw nosuid nodev exec async noatime "
				     "relatime ";
	bool is_rw = false;
	bool is_ro = false;
	struct buf out;

	buf_init(&out, size - 1);
	while (*text) {
		size_t len = strcspn(text, ",");
		char word[80];

		(void)snprintf(word, sizeof(word), " %.*s ",
			       (int)MIN(len, sizeof(word) - 3), text);
		text += len + (text[len] == ',');
		is_rw |= strcmp(word, " rw ") == 0;
		is_ro |= strcmp(word, " ro ") == 0;
		if (len == 0 || strstr(always, word))
			continue;
		word[strlen(word) - 1] = '\0';
		if (strncmp(word + 1, "size=", 5) != 0 &&
		    strncmp(word + 1, "mode=", 5) != 0 &&
		    strcmp(word + 1, "ro") != 0 &&
		    strcmp(word + 1, "noexec") != 0) {
			buf_done(&out);
			return say_no(&k->said, 400,
				      "%s: invalid tmpfs option:%s", where,
				      word);
		}
		(void)buf_printf(&out, "%s%s", out.len ? "," : "", word + 1);
	}
	(void)snprintf(ret, size, "%s", out.data ? out.data : "");
	buf_done(&out);
	if (is_ro && is_rw)
		return say_no(&k->said, 400,
			      "%s: invalid tmpfs options: ro and rw exclude "
			      "each other",
			      where);
	return 0;
}

int take_tmpfs(struct making *k, json_t *v, const char *where)
{
	const char *to;
	json_t *value;

	if (!json_is_object(v))
		return say_no(&k->said, 400, "%s: a map is expected", where);
	json_object_foreach(v, to, value)
	{
		char options[256];

		if (!json_is_string(value))
			return say_no(&k->said, 400, "%s: a text is expected",
				      where);
		if (tmpfs_options(k, json_string_value(value), options,
				  sizeof(options), where) < 0 ||
		    add_tmpfs(k, to, options, where) < 0)
			return -1;
	}
	return 0;
}

/* ---- Mounts ---- */

/* One of them, as its fields say. */
struct mount_want {
	const char *type, *source, *target, *propagation;
	bool is_ro;
	bool has_bind, has_volume, has_tmpfs; /* options of that kind */
	int64_t bytes, mode;
};

TAKE(take_type)
{
	return need_str(k, v, w, &((struct mount_want *)k->part)->type);
}

TAKE(take_source)
{
	return need_str(k, v, w, &((struct mount_want *)k->part)->source);
}

TAKE(take_target)
{
	return need_str(k, v, w, &((struct mount_want *)k->part)->target);
}

TAKE(take_mount_ro)
{
	return need_bool(k, v, w, &((struct mount_want *)k->part)->is_ro);
}

TAKE(take_propagation)
{
	return need_str(k, v, w, &((struct mount_want *)k->part)->propagation);
}

/* What is read-only is so all the way down. */
TAKE(take_recursive)
{
	bool unused;

	return need_bool(k, v, w, &unused);
}

TAKE(take_tmpfs_size)
{
	return need_int(k, v, w, 4096, INT64_MAX,
			&((struct mount_want *)k->part)->bytes);
}

TAKE(take_tmpfs_mode)
{
	return need_int(k, v, w, 1, 01777,
			&((struct mount_want *)k->part)->mode);
}

#define ALL_OF_IT "a bind has all that is below its source"

const struct field bind_fields[] = {
	{ "Propagation", FIELD_TAKEN, take_propagation, NULL },
	{ "ReadOnlyForceRecursive", FIELD_TAKEN, take_recursive, NULL },
	{ "NonRecursive", FIELD_NOT_THERE, NULL, ALL_OF_IT },
	{ "ReadOnlyNonRecursive", FIELD_NOT_THERE, NULL, ALL_OF_IT },
	{ "CreateMountpoint", FIELD_NOT_THERE, NULL,
	  "no directory of the host is made" },
	{ NULL, 0, NULL, NULL },
};

const struct field volume_fields[] = {
	{ "DriverConfig", FIELD_REFUSED, NULL, "there are no volume drivers" },
	{ "NoCopy", FIELD_NOT_THERE, NULL,
	  "what the image has there is seen; use type tmpfs" },
	{ "Subpath", FIELD_NOT_THERE, NULL, "there are no named volumes" },
	{ "Labels", FIELD_NOTED, NULL, "a volume is part of its box" },
	{ NULL, 0, NULL, NULL },
};

const struct field tmpfs_fields[] = {
	{ "SizeBytes", FIELD_TAKEN, take_tmpfs_size, NULL },
	{ "Mode", FIELD_TAKEN, take_tmpfs_mode, NULL },
	{ "Options", FIELD_NOT_THERE, NULL, "use HostConfig.Tmpfs" },
	{ NULL, 0, NULL, NULL },
};

TAKE(take_bind_options)
{
	((struct mount_want *)k->part)->has_bind = true;
	return fields_part(bind_fields, w, v, k, k->part);
}

TAKE(take_volume_options)
{
	((struct mount_want *)k->part)->has_volume = true;
	return fields_part(volume_fields, w, v, k, k->part);
}

TAKE(take_tmpfs_options)
{
	((struct mount_want *)k->part)->has_tmpfs = true;
	return fields_part(tmpfs_fields, w, v, k, k->part);
}

const struct field mount_fields[] = {
	{ "Type", FIELD_TAKEN, take_type, NULL },
	{ "Source", FIELD_TAKEN, take_source, NULL },
	{ "Target", FIELD_TAKEN, take_target, NULL },
	{ "ReadOnly", FIELD_TAKEN, take_mount_ro, NULL },
	{ "Consistency", FIELD_QUIET, NULL, NULL },
	{ "BindOptions", FIELD_TAKEN, take_bind_options, NULL },
	{ "VolumeOptions", FIELD_TAKEN, take_volume_options, NULL },
	{ "TmpfsOptions", FIELD_TAKEN, take_tmpfs_options, NULL },
	{ "ImageOptions", FIELD_NOT_THERE, NULL, "images are not mounted" },
	{ "ClusterOptions", FIELD_NOT_THERE, NULL, "there is no cluster" },
	{ NULL, 0, NULL, NULL },
};

static int mount_bind(struct making *k, const struct mount_want *m,
		      const char *where)
{
	bool is_ro = m->is_ro;

	if (take_mode(k, m->propagation, &is_ro, where) < 0)
		return -1;
	if (*m->source != '/')
		return say_no(&k->said, 400,
			      "%s: invalid mount config for type \"bind\": "
			      "mount path must be absolute",
			      where);
	return add_bind(k, m->source, m->target, is_ro, where);
}

static int mount_tmpfs(struct making *k, const struct mount_want *m,
		       const char *where)
{
	struct buf out;
	int r;

	if (*m->source)
		return say_no(&k->said, 400,
			      "%s: invalid mount config for type \"tmpfs\": "
			      "field Source must not be specified",
			      where);
	buf_init(&out, 128);
	if (m->bytes > 0)
		(void)buf_printf(&out, "size=%lld", (long long)m->bytes);
	if (m->mode > 0)
		(void)buf_printf(&out, "%smode=%llo", out.len ? "," : "",
				 (unsigned long long)m->mode);
	if (m->is_ro)
		(void)buf_printf(&out, "%sro", out.len ? "," : "");
	r = add_tmpfs(k, m->target, out.data ? out.data : "", where);
	buf_done(&out);
	return r;
}

/* Without a source: a directory of the box's own. */
static int mount_volume(struct making *k, const struct mount_want *m,
			const char *where)
{
	if (*m->source)
		return say_no(&k->said, 501,
			      "cordon: %s: the named volume %.60s is not "
			      "supported; bind a directory",
			      where, m->source);
	if (m->is_ro)
		return say_no(&k->said, 501,
			      "cordon: %s.ReadOnly is not supported for a "
			      "volume without a source, which is there to be "
			      "written; use type tmpfs, or none",
			      where);
	if (check_place(k, m->target, where) < 0)
		return -1;
	set_add(k, "writable", m->target);
	return 0;
}

static const struct mount_type {
	const char *type;
	int (*take)(struct making *k, const struct mount_want *m,
		    const char *where);
} mount_types[] = { { "bind", mount_bind },
		    { "tmpfs", mount_tmpfs },
		    { "volume", mount_volume } };

static int take_mount(struct making *k, json_t *v, const char *where)
{
	struct mount_want m = {
		.type = "", .source = "", .target = "", .propagation = ""
	};
	const struct mount_type *t = NULL;

	if (fields_part(mount_fields, where, v, k, &m) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(mount_types); i++)
		if (strcmp(mount_types[i].type, m.type) == 0)
			t = &mount_types[i];
	if (!t)
		return say_no(&k->said, 501,
			      "cordon: %s.Type %.40s is not supported", where,
			      m.type);
	if ((m.has_bind && t->take != mount_bind) ||
	    (m.has_volume && t->take != mount_volume) ||
	    (m.has_tmpfs && t->take != mount_tmpfs))
		return say_no(&k->said, 400,
			      "%s: invalid mount config for type \"%s\": "
			      "options of another type must not be specified",
			      where, m.type);
	return t->take(k, &m, where);
}

int take_mounts(struct making *k, json_t *v, const char *where)
{
	json_t *m;
	size_t i;

	if (!json_is_array(v))
		return say_no(&k->said, 400, "%s: a list is expected", where);
	json_array_foreach(v, i, m) if (take_mount(k, m, where) < 0) return -1;
	return 0;
}

/* {"/p":{}}; one that is bound already is meant for the bind. */
int take_volumes(struct making *k, json_t *v)
{
	const char *path;
	json_t *unused;

	json_object_foreach(v, path, unused)
	{
		if (check_path(k, path, "Volumes") < 0)
			return -1;
		if (set_has(k, "volumes", path) ||
		    set_has(k, "writable", path) ||
		    json_object_get(json_object_get(k->settings, "tmpfs"),
				    path))
			continue;
		set_add(k, "writable", path);
	}
	return 0;
}
