/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/named.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "box/policy-load.h"
#include "policy/narrow.h"
#include "policy/preset.h"

#define ENDING ".yaml"

static int add(struct named *n, const char *name, const char *file,
	       const struct policy *outer, struct err *err)
{
	struct named_policy *to = &n->v[n->n];

	if (n->n == NAMED_MAX)
		return err_set(err, E2BIG, "more than %d policies with a name",
			       NAMED_MAX);
	*to = (struct named_policy){ 0 };
	(void)snprintf(to->name, sizeof(to->name), "%s", name);
	if (file && !(to->file = strdup(file)))
		return err_set(err, ENOMEM, "out of memory");
	n->n++;
	if (policy_load(file ? file : name, &to->policy, err) < 0)
		return -err->code;
	if (policy_narrow(to->policy, outer, &to->why) == 0)
		return 0;
	policy_free(to->policy);
	to->policy = NULL;
	return 0;
}

/* ---- files ---- */

/* Whoever can write it would decide what others get by its name. */
static int check_owner(const struct stat *st, const char *path, struct err *err)
{
	if ((st->st_uid != geteuid() && st->st_uid != 0) ||
	    (st->st_mode & S_IWOTH))
		return err_set(err, EPERM,
			       "'%s' belongs to someone else or may be written "
			       "by all",
			       path);
	return 0;
}

static bool is_name(const char *name, size_t len)
{
	static const char fit[] = "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789._-";

	return len > 0 && len < NAMED_NAME && name[0] != '.' &&
	       strspn(name, fit) >= len;
}

static int add_file(struct named *n, const char *file,
		    const struct policy *outer, struct err *err)
{
	size_t len = strlen(file) - strlen(ENDING);
	char name[NAMED_NAME];
	char path[PATH_MAX];
	struct stat st;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", n->dir, file) >=
		    sizeof(path) ||
	    !is_name(file, len))
		return err_set(err, EINVAL,
			       "'%s/%.80s': a policy's name has at most 64 "
			       "letters, digits, '.', '_' and '-'",
			       n->dir, file);
	(void)snprintf(name, sizeof(name), "%.*s", (int)len, file);
	if (preset_find(name))
		return err_set(err, EEXIST,
			       "'%s': a preset has that name; choose another",
			       path);
	if (stat(path, &st) < 0)
		return err_errno(err, errno, "policy '%s'", path);
	return check_owner(&st, path, err) < 0 ? -err->code
					       : add(n, name, path, outer, err);
}

static int is_policy(const struct dirent *e)
{
	size_t len = strlen(e->d_name);
	size_t tail = strlen(ENDING);

	return e->d_name[0] != '.' && len > tail &&
	       strcmp(e->d_name + len - tail, ENDING) == 0;
}

static int add_dir(struct named *n, const char *dir, const struct policy *outer,
		   struct err *err)
{
	struct dirent **found = NULL;
	struct stat st;
	int count;
	int r = 0;

	n->dir_name = strdup(dir);
	n->dir = realpath(dir, NULL);
	if (!n->dir_name || !n->dir || stat(n->dir, &st) < 0)
		return err_errno(err, errno, "directory of policies '%s'", dir);
	if (check_owner(&st, n->dir, err) < 0)
		return -err->code;
	count = scandir(n->dir, &found, is_policy, alphasort);
	if (count < 0)
		return err_errno(err, errno, "directory of policies '%s'", dir);
	for (int i = 0; i < count; i++) {
		if (r == 0)
			r = add_file(n, found[i]->d_name, outer, err);
		free(found[i]);
	}
	free((void *)found);
	return r;
}

int named_load(struct named *ret, const char *dir, const struct policy *outer,
	       struct err *err)
{
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	for (const struct preset *p = presets; r == 0 && p->name; p++)
		r = add(ret, p->name, NULL, outer, err);
	if (r == 0 && dir)
		r = add_dir(ret, dir, outer, err);
	for (size_t i = 0, n = 0; i < ret->n; i++)
		if (ret->v[i].policy)
			ret->all[n++] = ret->v[i].policy;
	if (r < 0)
		named_done(ret);
	return r;
}

void named_done(struct named *n)
{
	for (size_t i = 0; i < n->n; i++) {
		policy_free(n->v[i].policy);
		free(n->v[i].file);
	}
	free(n->dir);
	free(n->dir_name);
	memset(n, 0, sizeof(*n));
}

static int not_there(const struct named *n, const char *name, struct err *err)
{
	struct buf list;

	buf_init(&list, 300);
	for (size_t i = 0; i < n->n; i++)
		if (n->v[i].policy)
			(void)buf_printf(&list, "%s%s", list.len ? ", " : "",
					 n->v[i].name);
	(void)err_set(err, ENOENT,
		      "there is no policy '%.64s' here; there are: %s%s", name,
		      list.len ? list.data : "none", list.error ? " ..." : "");
	buf_done(&list);
	return -ENOENT;
}

int named_find(const struct named *n, const char *name,
	       const struct named_policy **ret, struct err *err)
{
	for (size_t i = 0; i < n->n; i++) {
		if (strcmp(n->v[i].name, name) != 0)
			continue;
		*ret = &n->v[i];
		if (n->v[i].policy)
			return 0;
		return err_set(err, EPERM,
			       "policy '%s' is not as strict as the daemon's: "
			       "%.380s",
			       name, n->v[i].why.text);
	}
	return not_there(n, name, err);
}
