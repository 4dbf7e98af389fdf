/* SPDX-License-Identifier: Apache-2.0 */
#include "box/workdir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"

#define WORKSPACE "/workspace"

enum where {
	IN_ROOT,  /* nothing is mounted there */
	IN_PLACE, /* in memory, and can be written */
	IN_VOLUME,
	IN_HOST,  /* shown as this machine has it */
	IN_OTHER, /* the kernel's, or a place that is read-only */
};

struct place {
	enum where where;
	const char *top;    /* the mount it is in */
	const char *source; /* of a volume */
};

static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return strncmp(path, top, len) == 0 &&
	       (path[len] == '/' || path[len] == '\0');
}

/* The innermost mount wins. */
static void take(struct place *best, const char *path, const char *top,
		 enum where where, const char *source)
{
	if (is_below(path, top) &&
	    (!best->top || strlen(top) >= strlen(best->top)))
		*best = (struct place){ where, top, source };
}

static struct place find(const struct cordon_spec *s)
{
	static const struct {
		const char *path;
		enum where where;
	} usual[] = {
		{ "/usr", IN_HOST },      { "/bin", IN_HOST },
		{ "/sbin", IN_HOST },     { "/lib", IN_HOST },
		{ "/lib32", IN_HOST },    { "/lib64", IN_HOST },
		{ "/libx32", IN_HOST },   { "/etc/alternatives", IN_HOST },
		{ "/etc/ssl", IN_HOST },  { "/etc/ca-certificates", IN_HOST },
		{ "/dev", IN_OTHER },     { "/sys", IN_OTHER },
		{ "/var/tmp", IN_OTHER }, { "/etc/ld.so.conf.d", IN_HOST },
	};
	const char *dir = s->workdir;
	struct place best = { .where = IN_ROOT };

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		take(&best, dir, usual[i].path, usual[i].where, NULL);
	take(&best, dir, "/tmp", s->no_tmp ? IN_OTHER : IN_PLACE, NULL);
	take(&best, dir, "/dev/shm", s->no_shm ? IN_OTHER : IN_PLACE, NULL);
	take(&best, dir, WORKSPACE, s->no_workspace ? IN_OTHER : IN_PLACE,
	     NULL);
	for (size_t i = 0; i < s->n_tmpfs; i++)
		take(&best, dir, s->tmpfs[i].target,
		     s->tmpfs[i].is_ro ? IN_OTHER : IN_PLACE, NULL);
	for (size_t i = 0; i < s->n_binds; i++)
		take(&best, dir, s->binds[i].target, IN_VOLUME,
		     s->binds[i].source);
	return best;
}

/* A box that stays makes it for each program, as that one's user. */
static bool is_ours(const struct cordon_spec *s)
{
	return s->workdir && !s->root && !s->stays && !s->as_user &&
	       strcmp(s->workdir, "/") != 0;
}

static int no_directory(const struct cordon_spec *s, struct err *err)
{
	return err_set(err, EINVAL,
		       "workdir: '%.300s' is not a directory; name another",
		       s->workdir);
}

/* What is copied in to the workspace is there before the program is. */
static int check_copied(const struct cordon_spec *s, struct err *err)
{
	char path[8192];
	struct stat st;

	if (!s->workspace || !is_below(s->workdir, WORKSPACE))
		return 0;
	(void)snprintf(path, sizeof(path), "%s%s", s->workspace,
		       s->workdir + strlen(WORKSPACE));
	if (lstat(path, &st) < 0)
		return errno == ENOTDIR ? no_directory(s, err) : 0;
	return S_ISREG(st.st_mode) ? no_directory(s, err) : 0;
}

int workdir_check(const struct cordon_spec *s, struct err *err)
{
	struct place p;
	char path[8192];
	struct stat st;

	if (!is_ours(s))
		return 0;
	p = find(s);
	if (p.where == IN_PLACE)
		return check_copied(s, err);
	if (p.where != IN_VOLUME && p.where != IN_HOST)
		return 0;
	(void)snprintf(path, sizeof(path), "%s%s", p.source ? p.source : p.top,
		       s->workdir + strlen(p.top));
	/* A link is looked at inside, where it leads somewhere else. */
	if (lstat(path, &st) == 0)
		return S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode)
			       ? 0
			       : no_directory(s, err);
	if (errno == ENOTDIR)
		return no_directory(s, err);
	if (errno != ENOENT)
		return 0;
	return err_set(err, EINVAL,
		       "workdir: '%.300s' does not exist in %s '%.100s'; make "
		       "it there, or name another",
		       s->workdir, p.source ? "volume" : "the read-only",
		       p.top);
}

bool workdir_is_in_root(const struct cordon_spec *s)
{
	return s->root || find(s).where == IN_ROOT;
}

static bool is_copied(const struct cordon_spec *s, const char *dir)
{
	char path[8192];
	struct stat st;

	if (!s->workspace || !is_below(dir, WORKSPACE))
		return false;
	(void)snprintf(path, sizeof(path), "%s%s", s->workspace,
		       dir + strlen(WORKSPACE));
	return lstat(path, &st) == 0;
}

/* Each directory of the path below `top`, from there on. */
static void pack_dirs(struct pack *p, const struct cordon_spec *s,
		      const char *top)
{
	const struct wire_record rec = { .kind = WIRE_DIR, .mode = 0755 };
	const char *end = s->workdir + strlen(top);

	while (*end) {
		char *dir;

		end += strspn(end, "/");
		end += strcspn(end, "/");
		dir = strndup(s->workdir, (size_t)(end - s->workdir));
		if (!dir) {
			(void)err_set(&p->err, ENOMEM, "out of memory");
			return;
		}
		if (!is_copied(s, dir))
			pack_record(p, &rec, dir, NULL);
		free(dir);
		if (!end[strspn(end, "/")])
			break;
	}
}

void workdir_pack_work(struct pack *p, const struct cordon_spec *s)
{
	struct place place;

	if (!is_ours(s))
		return;
	place = find(s);
	if (place.where == IN_PLACE && strcmp(place.top, s->workdir) != 0)
		pack_dirs(p, s, place.top);
}
