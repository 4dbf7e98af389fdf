/* SPDX-License-Identifier: Apache-2.0 */

/* Policies as files and presets: found, at most 1 MiB, and what they extend. */

#include "desk/policy-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "base/visible.h"
#include "desk/public-suffix.h"
#include "policy/preset.h"

#define MAX_FILE    (1U << 20)
#define MAX_EXTENDS 8

static int add_source(struct sources *s, const char *shown, const char *name,
		      const void *data, size_t len, struct err *err)
{
	struct source *to = &s->v[s->n];

	if (s->n == FLAT_SOURCES || s->n > MAX_EXTENDS)
		return err_set(err, ELOOP,
			       "%s:1:1: more than %d policies extend each "
			       "other",
			       shown, MAX_EXTENDS);
	visible_sha256(data, len, to->sha256);
	to->shown = strdup(shown);
	to->name = strdup(name);
	if (!to->shown || !to->name)
		abort();
	s->n++;
	return 0;
}

static int read_whole(const char *file, struct buf *ret, struct err *err)
{
	_cleanup_fd_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	char chunk[65536];
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "%s:1:1: cannot be opened", file);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL,
			       "%s:1:1: it is not a regular file; a YAML file "
			       "is allowed",
			       file);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		if (buf_add(ret, chunk, (size_t)n) < 0)
			return err_set(err, EFBIG,
				       "%s:1:1: it is larger than 1 MiB, which "
				       "is the most allowed",
				       file);
	if (n < 0)
		return err_errno(err, errno, "%s:1:1: cannot be read", file);
	return 0;
}

/* An absolute path without links, as far as it exists; the caller frees it. */
static char *absolute(const char *dir, const char *path)
{
	_cleanup_free_ char *joined = NULL;
	char *real;

	while (strncmp(path, "./", 2) == 0)
		path += 2;
	if (path[0] == '/')
		joined = strdup(path);
	else if (asprintf(&joined, "%s/%s", dir, path) < 0)
		joined = NULL;
	if (!joined)
		abort();
	real = realpath(joined, NULL);
	return real ? real : take_ptr(joined);
}

static void make_absolute(struct node *n, const char *dir)
{
	char *path;

	if (!n || !n->value)
		return;
	path = absolute(dir, n->value);
	free(n->value);
	n->value = path;
}

/* Paths of the host in a policy start where the policy file is. */
static void anchor_paths(struct node *tree, const char *dir)
{
	struct node *sandbox = node_find(tree, "sandbox");
	struct node *mounts = sandbox ? node_find(sandbox, "mounts") : NULL;
	struct node *roots = sandbox ? node_find(sandbox, "mount_roots") : NULL;
	struct node *network = node_find(tree, "network");

	if (network)
		make_absolute(node_find(network, "ca"), dir);
	for (size_t i = 0; mounts && i < mounts->n; i++)
		make_absolute(node_find(mounts->items[i], "from"), dir);
	for (size_t i = 0; roots && i < roots->n; i++)
		make_absolute(roots->items[i], dir);
}

static int read_one(const char *file, const char *dir, struct sources *s,
		    struct node **ret, struct err *err);

static int read_preset(const struct preset *preset, struct sources *s,
		       struct node **ret, struct err *err)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "preset:%s", preset->name);
	if (add_source(s, name, name, preset->text, preset->len, err) < 0)
		return -err->code;
	*ret = policy_parse_yaml(s->v[s->n - 1].shown, preset->text,
				 preset->len, err);
	if (!*ret)
		return -err->code;
	anchor_paths(*ret, s->dir);
	return 0;
}

/* Takes a key out of a map, if it is there. */
static void drop_key(struct node *map, const char *name)
{
	struct node *key = node_find(map, name);

	for (size_t i = 0; key && i < map->n; i++)
		if (map->items[i] == key) {
			node_free(key);
			map->n--;
			memmove(map->items + i, map->items + i + 1,
				(map->n - i) * sizeof(struct node *));
			return;
		}
}

/*
 * Whether the way there uses a link. It may lie where a box can write, and
 * then lead to another policy after the next run.
 */
static bool is_linked(const char *path, const char *dir)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS };
	_cleanup_fd_ int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int fd = (int)syscall(SYS_openat2, at, path, &how,
					   sizeof(how));

	return fd < 0 && errno == ELOOP;
}

/* Takes `extends` out of the tree and puts the tree over what it names. */
static int extend(struct node **tree, const char *dir, struct sources *s,
		  struct err *err)
{
	struct node *key = node_find(*tree, "extends");
	const struct preset *preset = key ? preset_find(key->value) : NULL;
	struct node *base = NULL;
	size_t before = s->n;
	int r;

	if (!key)
		return 0;
	if (!preset && !strchr(key->value, '/') && !strchr(key->value, '.'))
		return node_error(key, err, "there is no preset '%s'; write %s",
				  key->value, key->grammar->takes);
	if (!preset && is_linked(key->value, dir))
		return node_error(key, err,
				  "'%s' leads through a symbolic link; name "
				  "the file itself, so that nothing can put "
				  "another in its place",
				  key->value);
	r = preset ? read_preset(preset, s, &base, err)
		   : read_one(key->value, dir, s, &base, err);
	if (r < 0) {
		node_free(base);
		if (s->n > before)
			return r;
		/* It was not even opened: the fault is here. */
		return node_error(key, err, "%.250s", err->text);
	}
	if (!base)
		return node_error(key, err, "'%s' cannot be read", key->value);
	r = extend(&base, dir, s, err);
	drop_key(*tree, "extends");
	/* Tests show what their own file says; a tighter one may differ. */
	drop_key(base, "tests");
	if (r == 0)
		r = policy_merge(base, *tree, err);
	node_free(*tree);
	*tree = base;
	return r;
}

static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return strdup("/");
	return strndup(path, (size_t)(slash - path));
}

static int read_one(const char *file, const char *dir, struct sources *s,
		    struct node **ret, struct err *err)
{
	_cleanup_free_ char *path = absolute(dir, file);
	_cleanup_free_ char *here = dir_of(path);
	struct buf text;
	int n;

	buf_init(&text, MAX_FILE);
	n = read_whole(path, &text, err);
	if (n < 0 && s->n == 0)
		(void)err_set(err, err->code, "%.150s%.250s", file,
			      strstr(err->text, ":1:1:"));
	if (n == 0)
		n = add_source(s, s->n == 0 ? file : path, path, text.data,
			       text.len, err);
	if (n < 0) {
		buf_done(&text);
		return n;
	}
	if (s->n == 1 && !s->dir && !(s->dir = strdup(here)))
		abort();
	*ret = policy_parse_yaml(s->v[s->n - 1].shown,
				 text.data ? text.data : "", text.len, err);
	buf_done(&text);
	if (!*ret)
		return -err->code;
	anchor_paths(*ret, here);
	return extend(ret, here, s, err);
}

int policy_read(const char *file, struct sources *sources, struct node **ret,
		struct err *err)
{
	_cleanup_free_ char *cwd = getcwd(NULL, 0);
	const struct preset *preset = preset_find(
		file + (strncmp(file, "preset:", 7) == 0 ? 7 : 0));
	int r;

	memset(sources, 0, sizeof(*sources));
	*ret = NULL;
	if (preset) {
		sources->dir = strdup(cwd ? cwd : "/");
		if (!sources->dir)
			abort();
		r = read_preset(preset, sources, ret, err);
		if (r == 0)
			r = extend(ret, sources->dir, sources, err);
	} else {
		r = read_one(file, cwd ? cwd : "/", sources, ret, err);
	}
	if (r == 0)
		r = suffix_check_tree(*ret, err);
	if (r < 0) {
		node_free(*ret);
		*ret = NULL;
		sources_done(sources);
	}
	return r;
}
