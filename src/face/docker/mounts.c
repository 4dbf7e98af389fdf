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

static int add_bind(struct making *k, const char *from, const char *to,
		    bool is_ro, const char *where)
{
	char text[8192];

	if (*from != '/')
		return say_no(&k->said, 501,
			      "cordon: %s: the named volume %.60s is not "
			      "supported; bind a directory",
			      where, from);
	if (check_path(k, from, where) < 0 || check_path(k, to, where) < 0)
		return -1;
	if (set_has(k, "volumes", to))
		return say_no(&k->said, 400,
			      "%s: Duplicate mount point: %.100s", where, to);
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

	while (*mode) {
		size_t len = strcspn(mode, ",");
		char word[40];

		(void)snprintf(word, sizeof(word), " %.*s ",
			       (int)MIN(len, sizeof(word) - 3), mode);
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

	if (check_path(k, to, where) < 0)
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
	struct buf out;

	buf_init(&out, size - 1);
	while (*text) {
		size_t len = strcspn(text, ",");
		char word[80];

		(void)snprintf(word, sizeof(word), " %.*s ",
			       (int)MIN(len, sizeof(word) - 3), text);
		text += len + (text[len] == ',');
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

static int mount_bind(struct making *k, json_t *m, const char *where)
{
	json_t *o = json_object_get(m, "BindOptions");
	const char *propagation = member_str(o, "Propagation");
	bool is_ro = json_is_true(json_object_get(m, "ReadOnly"));

	if (is_requested(json_object_get(o, "NonRecursive")) ||
	    is_requested(json_object_get(o, "ReadOnlyNonRecursive")))
		return say_no(&k->said, 501,
			      "cordon: %s.BindOptions.NonRecursive is not "
			      "supported",
			      where);
	if (is_requested(json_object_get(o, "CreateMountpoint")))
		return say_no(&k->said, 501,
			      "cordon: %s.BindOptions.CreateMountpoint is not "
			      "supported: no directory of the host is made",
			      where);
	if (take_mode(k, propagation, &is_ro, where) < 0)
		return -1;
	if (*member_str(m, "Source") != '/')
		return say_no(&k->said, 400,
			      "%s: invalid mount config for type \"bind\": "
			      "mount path must be absolute",
			      where);
	return add_bind(k, member_str(m, "Source"), member_str(m, "Target"),
			is_ro, where);
}

static int mount_tmpfs(struct making *k, json_t *m, const char *where)
{
	json_t *o = json_object_get(m, "TmpfsOptions");
	int64_t bytes = json_integer_value(json_object_get(o, "SizeBytes"));
	int64_t mode = json_integer_value(json_object_get(o, "Mode"));
	struct buf out;
	int r;

	if (is_requested(json_object_get(o, "Options")))
		return say_no(
			&k->said, 501,
			"cordon: %s.TmpfsOptions.Options is not supported",
			where);
	buf_init(&out, 128);
	if (bytes > 0)
		(void)buf_printf(&out, "size=%lld", (long long)bytes);
	if (mode > 0)
		(void)buf_printf(&out, "%smode=%llo", out.len ? "," : "",
				 (unsigned long long)mode);
	if (json_is_true(json_object_get(m, "ReadOnly")))
		(void)buf_printf(&out, "%sro", out.len ? "," : "");
	r = add_tmpfs(k, member_str(m, "Target"), out.data ? out.data : "",
		      where);
	buf_done(&out);
	return r;
}

/* Without a source: a directory of the box's own. */
static int mount_volume(struct making *k, json_t *m, const char *where)
{
	const char *source = member_str(m, "Source");

	if (*source)
		return say_no(&k->said, 501,
			      "cordon: %s: the named volume %.60s is not "
			      "supported; bind a directory",
			      where, source);
	if (is_requested(json_object_get(json_object_get(m, "VolumeOptions"),
					 "DriverConfig")))
		return say_no(&k->said, 403,
			      "cordon: %s.VolumeOptions.DriverConfig is "
			      "refused: there are no volume drivers",
			      where);
	if (check_path(k, member_str(m, "Target"), where) < 0)
		return -1;
	set_add(k, "writable", member_str(m, "Target"));
	return 0;
}

int take_mounts(struct making *k, json_t *v, const char *where)
{
	static const struct {
		const char *type;
		int (*take)(struct making *k, json_t *m, const char *where);
	} types[] = { { "bind", mount_bind },
		      { "tmpfs", mount_tmpfs },
		      { "volume", mount_volume } };
	json_t *m;
	size_t i;

	if (!json_is_array(v))
		return say_no(&k->said, 400, "%s: a list is expected", where);
	json_array_foreach(v, i, m)
	{
		const char *type = member_str(m, "Type");
		size_t t = 0;

		while (t < ARRAY_SIZE(types) &&
		       strcmp(types[t].type, type) != 0)
			t++;
		if (t == ARRAY_SIZE(types))
			return say_no(&k->said, 501,
				      "cordon: %s.Type %.40s is not supported",
				      where, type);
		if (types[t].take(k, m, where) < 0)
			return -1;
	}
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
