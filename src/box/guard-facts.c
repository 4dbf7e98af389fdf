/* SPDX-License-Identifier: Apache-2.0 */
#include "box/guard-facts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "base/state.h"
#include "base/util.h"
#include "os/uapi.h"
#include "policy/never.h"

int fd_path(int fd, char *ret, size_t size)
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, size - 1);
	if (n <= 0 || (size_t)n >= size - 1 || ret[0] != '/')
		return -ENOENT;
	ret[n] = '\0';
	return 0;
}

/*
 * The real path of what may not exist yet: that of the nearest directory above
 * it that does, and the rest as it is. The first run makes it, inside what it
 * mounts if nobody looked.
 */
static bool real_place(const char *path, char *ret, size_t size)
{
	char part[PATH_MAX];
	char real[PATH_MAX];
	size_t at = strlen(path);

	if (at >= sizeof(part))
		return false;
	memcpy(part, path, at + 1);
	while (!realpath(at ? part : "/", real)) {
		if (at == 0 || (errno != ENOENT && errno != ENOTDIR))
			return false;
		while (at > 0 && part[--at] != '/')
			;
		part[at] = '\0';
	}
	return snprintf(ret, size, "%s%s", strcmp(real, "/") == 0 ? "" : real,
			path + at) < (int)size;
}

/* A home directory lies at `path` or below it, or will when it is made. */
static bool has_home(const char *path, const char *home, bool is_new)
{
	char real[PATH_MAX];

	if (!home || home[0] != '/' || strcmp(home, "/") == 0)
		return false;
	if (realpath(home, real))
		return path_is_below(real, path);
	if (is_new && errno == ENOENT)
		return !real_place(home, real, sizeof(real)) ||
		       path_is_below(real, path);
	/* Out of sight it is where it says; without means nobody knows. */
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
		return true;
	return errno == EACCES && path_is_below(home, path);
}

/* One line of /etc/passwd: a person's home, root's or our own. */
static bool is_home_line(char *line, const char *path, bool is_new)
{
	char *field[7];
	char *save = line;
	uint64_t uid;
	int n = 0;

	while (n < 7 && (field[n] = strsep(&save, ":")))
		n++;
	if (n < 6 || num_parse(field[2], UINT32_MAX, &uid) < 0)
		return false;
	if (uid != 0 && uid != getuid() && (uid < 1000 || uid >= 65534))
		return false;
	return has_home(path, field[5], is_new);
}

/* True also if nobody knows: whose limits are too low mounts nothing. */
static bool is_home(const char *path, bool is_new)
{
	FILE *f;
	char *line = NULL;
	size_t cap = 0;
	bool found = has_home(path, getenv("HOME"), is_new);

	/* /home/NAME, whoever that is. */
	if (strncmp(path, "/home/", 6) == 0 && !strchr(path + 6, '/'))
		return true;
	if (found)
		return true;
	f = fopen("/etc/passwd", "re");
	if (!f)
		return errno != ENOENT;
	while (!found && getline(&line, &cap, f) >= 0)
		found = is_home_line(line, path, is_new);
	found = found || !feof(f);
	free(line);
	(void)fclose(f);
	return found;
}

static const char *credential_of(int fd)
{
	struct stat st;

	for (size_t i = 0; never_credentials[i]; i++)
		if (fstatat(fd, never_credentials[i], &st,
			    AT_SYMLINK_NOFOLLOW) == 0)
			return never_credentials[i];
	return NULL;
}

static void hold_against(struct request_mount *m, const char *state)
{
	m->is_state |= path_is_below(m->path, state);
	m->holds_state |= path_is_below(state, m->path);
}

/* The daemon's state, and that of whom it asks for: each has a ledger. */
static void look_at_state(struct request_mount *m, const char *other)
{
	struct err ignored = { 0 };
	char path[PATH_MAX];
	char real[PATH_MAX];

	m->is_state = false;
	m->holds_state = false;
	if (other)
		hold_against(m, other);
	if (state_path(path, sizeof(path), &ignored) < 0)
		return; /* then nothing can be recorded, and nothing runs */
	if (!real_place(path, real, sizeof(real))) {
		m->is_state = true; /* nobody knows: not mounted */
		return;
	}
	hold_against(m, real);
}

/* One step of a path without links; false: it does not fit. */
static bool enter(char *path, size_t size, const char *name, size_t len)
{
	size_t n = strlen(path);

	if (len == 0 || (len == 1 && name[0] == '.'))
		return true;
	if (len == 2 && name[0] == '.' && name[1] == '.') {
		char *slash = strrchr(path, '/');

		if (slash)
			*slash = '\0';
		return true;
	}
	return snprintf(path + n, size - n, "/%.*s", (int)len, name) <
	       (int)(size - n);
}

/*
 * Whether the way to `path` uses a link that lies in `top`, where the box could
 * put another in its place. True also if nobody knows.
 */
static bool is_led_by(const char *path, const char *top)
{
	char at[PATH_MAX] = "";
	char rest[PATH_MAX];
	char next[PATH_MAX];
	char target[PATH_MAX];
	int links = 0;

	if (path[0] != '/' && !getcwd(at, sizeof(at)))
		return true;
	if (strcmp(at, "/") == 0)
		at[0] = '\0';
	if (snprintf(rest, sizeof(rest), "%s", path) >= (int)sizeof(rest))
		return true;
	while (rest[0]) {
		size_t len = strcspn(rest, "/");
		size_t skip = len + (rest[len] == '/');
		size_t before = strlen(at);
		ssize_t n;

		if (!enter(at, sizeof(at), rest, len))
			return true;
		n = strlen(at) > before
			    ? readlink(at, target, sizeof(target) - 1)
			    : -1;
		if (n < 0) {
			memmove(rest, rest + skip, strlen(rest + skip) + 1);
			continue;
		}
		target[n] = '\0';
		if (path_is_below(at, top) || ++links > 40 ||
		    snprintf(next, sizeof(next), "%s/%s", target,
			     rest + skip) >= (int)sizeof(next))
			return true;
		at[target[0] == '/' ? 0 : before] = '\0';
		memcpy(rest, next, strlen(next) + 1);
	}
	return false;
}

/*
 * Files of the policy itself. Directly in a writable directory they can be
 * covered; further down, a directory above them could be renamed.
 */
static void look_at_sources(const struct flat *f, struct mount_facts *facts,
			    struct request_mount *m)
{
	for (size_t i = 0; i < f->n_sources; i++) {
		const char *name = f->sources[i].name;
		const char *slash = strrchr(name, '/');
		struct stat st;

		/* For a daemon's peer it may be out of sight. */
		memset(&st, 0, sizeof(st));
		if (name[0] != '/' || (stat(name, &st) < 0 && errno != EACCES))
			continue;
		if (st.st_ino && st.st_dev == facts->dev &&
		    st.st_ino == facts->ino)
			m->is_policy = true;
		if (!path_is_below(name, m->path))
			continue;
		if ((size_t)(slash - name) != strlen(m->path))
			(void)snprintf(facts->reason, sizeof(facts->reason),
				       "the policy '%.150s' lies deeper in it; "
				       "mount it read-only, or keep the policy "
				       "elsewhere",
				       name);
		else if (st.st_nlink > 1)
			(void)snprintf(facts->reason, sizeof(facts->reason),
				       "the policy '%.150s' in it has other "
				       "names (hard links)",
				       name);
	}
}

static void look_at_way(const char *name, struct mount_facts *facts)
{
	if (is_led_by(name, facts->path))
		(void)snprintf(facts->reason, sizeof(facts->reason),
			       "the policy '%.150s' is found through a link in "
			       "it",
			       name);
}

static void look_at_policy(const struct mount_ask *ask,
			   struct mount_facts *facts, struct request_mount *m)
{
	for (const struct policy *p = ask->policy; p; p = p->outer)
		look_at_sources(&p->flat, facts, m);
	for (const struct policy *const *o = ask->others; o && *o; o++)
		look_at_sources(&(*o)->flat, facts, m);
	if (ask->policy && ask->is_rw && ask->policy_name)
		look_at_way(ask->policy_name, facts);
	if (!ask->policies)
		return;
	m->is_policy |= path_is_below(m->path, ask->policies);
	if (ask->is_rw)
		look_at_way(ask->policies_name, facts);
	if (path_is_below(ask->policies, m->path))
		(void)snprintf(facts->reason, sizeof(facts->reason),
			       "the policies '%.150s' lie in it; mount it "
			       "read-only, or keep them elsewhere",
			       ask->policies);
}

static void look_at_names(int fd, struct mount_facts *facts)
{
	for (size_t i = 0; never_made[i]; i++) {
		struct stat st;

		if (fstatat(fd, never_made[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
			(void)snprintf(facts->reason, sizeof(facts->reason),
				       "'%s' in it is neither a file nor a "
				       "directory, and cannot be protected",
				       never_made[i]);
	}
}

int mount_look(const struct mount_ask *ask, struct mount_facts *facts,
	       struct request_mount *ret, struct err *err)
{
	const struct uapi_open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = UAPI_RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_fd_ int fd = sys_openat2(AT_FDCWD, ask->source, &how);
	struct stat st;

	memset(ret, 0, sizeof(*ret));
	memset(facts, 0, sizeof(*facts));
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", ask->source);
	if (fd_path(fd, facts->path, sizeof(facts->path)) < 0)
		return err_set(err, ENOENT, "'%s' has no path", ask->source);
	facts->dev = st.st_dev;
	facts->ino = st.st_ino;
	facts->is_dir = S_ISDIR(st.st_mode);
	facts->is_ours = st.st_uid == geteuid();
	facts->may_write = sys_faccessat2(fd, "", W_OK,
					  AT_EMPTY_PATH | AT_EACCESS) == 0;
	ret->source = ask->source;
	ret->path = facts->path;
	ret->target = ask->target;
	ret->is_rw = ask->is_rw;
	ret->is_special = !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode);
	look_at_state(ret, ask->state);
	look_at_policy(ask, facts, ret);
	if (facts->is_dir) {
		ret->is_home = is_home(facts->path, false);
		ret->credential = credential_of(fd);
		if (ask->is_rw)
			look_at_names(fd, facts);
	}
	ret->not_protected = facts->reason[0] ? facts->reason : NULL;
	return 0;
}

/* A file of the policy that is not left out by its name (never_made). */
static void look_at_overwriting(const struct policy *policy,
				struct mount_facts *facts,
				struct request_mount *m)
{
	const struct flat *f = policy ? &policy->flat : NULL;

	for (size_t i = 0; f && i < f->n_sources; i++) {
		const char *name = f->sources[i].name;

		if (name[0] == '/' && path_is_below(name, facts->path) &&
		    !never_made_in(strrchr(name, '/') + 1))
			(void)snprintf(facts->reason, sizeof(facts->reason),
				       "the policy '%.150s' lies in it", name);
	}
	m->not_protected = facts->reason[0] ? facts->reason : NULL;
}

/*
 * From what is known of the directory above it to what will be true of `path`,
 * which is not there.
 */
static int look_ahead(const struct mount_ask *ask, const char *path,
		      struct mount_facts *facts, struct request_mount *ret,
		      struct err *err)
{
	if (!facts->may_write)
		return err_set(err, EACCES,
			       "'%.300s' cannot be made: you may not write to "
			       "'%.100s'",
			       ask->source, facts->path);
	if (path != facts->path &&
	    snprintf(facts->path, sizeof(facts->path), "%s", path) >=
		    (int)sizeof(facts->path))
		return err_set(err, ENAMETOOLONG, "the path is too long");
	facts->dev = 0;
	facts->ino = MOUNT_MISSING;
	facts->reason[0] = '\0';
	ret->source = ask->source;
	ret->is_home = is_home(facts->path, true);
	ret->credential = NULL;
	ret->is_policy = false;
	ret->not_protected = NULL;
	look_at_state(ret, ask->state);
	return 0;
}

/*
 * The path that `source`, which is not there, will have: that of the nearest
 * directory above it that is, and the rest by its text, which has no links.
 */
static int place_to_be(const char *source, char *ret, size_t size,
		       struct err *err)
{
	const char *top = source[0] == '/' ? "/" : ".";
	char part[PATH_MAX];
	size_t at = strlen(source);
	struct stat st;

	if (at >= sizeof(part))
		return err_set(err, ENAMETOOLONG, "the path is too long");
	memcpy(part, source, at + 1);
	while (!realpath(at ? part : top, ret)) {
		if (errno != ENOENT || at == 0)
			return err_errno(err, errno, "open '%s'", source);
		while (at > 0 && part[at - 1] == '/')
			part[--at] = '\0';
		if (at > 0 && lstat(part, &st) == 0)
			return err_set(err, ENOENT,
				       "'%.300s' is a link that leads nowhere",
				       part);
		while (at > 0 && part[at - 1] != '/')
			part[--at] = '\0';
	}
	if (strcmp(ret, "/") == 0)
		ret[0] = '\0';
	for (const char *p = source + at; *p;) {
		size_t n = strcspn(p, "/");

		if (!enter(ret, size, p, n))
			return err_set(err, ENAMETOOLONG,
				       "the path is too long");
		p += n + (p[n] == '/');
	}
	if (!ret[0])
		(void)strcpy(ret, "/");
	return 0;
}

int place_look(const struct mount_ask *ask, struct mount_facts *facts,
	       struct request_mount *ret, struct err *err)
{
	char first[PATH_MAX];
	char path[PATH_MAX];
	char above[PATH_MAX];
	struct mount_ask other = *ask;
	struct stat st;
	int r;

	if (stat(ask->source, &st) == 0 || errno != ENOENT)
		return mount_look(ask, facts, ret, err);
	/* Twice: ".." in what is missing may lead to what is not. */
	if (place_to_be(ask->source, first, sizeof(first), err) < 0 ||
	    place_to_be(first, path, sizeof(path), err) < 0)
		return -err->code;
	memcpy(above, path, sizeof(above));
	while (stat(above, &st) < 0 && errno == ENOENT) {
		char *slash = strrchr(above, '/');

		slash[slash == above] = '\0';
	}
	other.source = above;
	r = mount_look(&other, facts, ret, err);
	ret->source = ask->source;
	if (r < 0 || strcmp(above, path) == 0)
		return r;
	return look_ahead(ask, path, facts, ret, err);
}

/* It will be made, in a directory that is there. */
static int look_above(const struct mount_ask *ask, struct mount_facts *facts,
		      struct request_mount *ret, struct err *err)
{
	const char *slash = strrchr(ask->source, '/');
	const char *name = slash ? slash + 1 : ask->source;
	size_t len = slash ? (size_t)(slash - ask->source) : 0;
	char above[PATH_MAX];
	struct mount_ask parent = *ask;
	size_t n;

	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(err, ENOENT, "'%s' is not there", ask->source);
	if (len >= sizeof(above))
		return err_set(err, ENAMETOOLONG, "the path is too long");
	(void)snprintf(above, sizeof(above), "%.*s", (int)len, ask->source);
	parent.source = !slash ? "." : len == 0 ? "/" : above;
	if (mount_look(&parent, facts, ret, err) < 0)
		return -err->code;
	n = strlen(facts->path);
	if (snprintf(facts->path + n, sizeof(facts->path) - n, "%s%s",
		     n > 1 ? "/" : "", name) >= (int)(sizeof(facts->path) - n))
		return err_set(err, ENAMETOOLONG, "the path is too long");
	return look_ahead(ask, facts->path, facts, ret, err);
}

int copy_look(const char *dir, const struct policy *policy,
	      const char *policy_name, struct mount_facts *facts,
	      struct request_mount *ret, struct err *err)
{
	const struct mount_ask ask = { .source = dir,
				       .target = "/workspace",
				       .is_rw = true,
				       .policy = policy,
				       .policy_name = policy_name };
	struct stat st;
	int r;

	if (lstat(dir, &st) < 0)
		r = errno == ENOENT ? look_above(&ask, facts, ret, err)
				    : err_errno(err, errno, "open '%s'", dir);
	else if (S_ISLNK(st.st_mode))
		r = err_set(err, ELOOP,
			    "'%s' is a link; name the directory itself", dir);
	else
		r = mount_look(&ask, facts, ret, err);
	if (r < 0)
		return r;
	if (!facts->is_dir)
		return err_set(err, ENOTDIR, "'%.300s' is not a directory",
			       dir);
	/* Links and the like there are replaced, not followed. */
	if (facts->is_dir && strncmp(facts->reason, "the policy", 10) != 0)
		facts->reason[0] = '\0';
	look_at_overwriting(policy, facts, ret);
	return 0;
}
