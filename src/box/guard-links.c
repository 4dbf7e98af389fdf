/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When the box is dead: links in a writable directory that lead out of it
 * (`docker.bind_symlinks: sweep`).
 *
 * Theory of operation. The directory is walked from its descriptor, one name
 * at a time; no link is followed by the kernel, and nothing on another file
 * system is entered. A link leaves if its text is absolute, if the text alone
 * climbs above the directory, or if it does so through other links, which are
 * read and followed here. It is first renamed, then looked at again, and
 * removed only if it is the same: the caller's programs may be at work.
 *
 * What the caller had there before is not the box's doing. The kernel sets a
 * link's ctime when it is made or moved, and nobody can set it back, so a link
 * that is older than the box is left alone. A relative one must also have
 * stayed where it was: the directories above it are older too. And it must not
 * have been led elsewhere, as a box can do with a link that an earlier one left
 * (and that stayed inside then): it is followed too, and goes if it leaves and
 * any directory or link on its way is new. Where the clock belongs to another
 * machine, all links count as new. Where it was set, or the machine was started
 * again, they do so too, but are told and left: the caller's own cannot be
 * known from the box's. So does a sweep that comes late.
 *
 * Everything is bounded. What was not looked at is told as a violation.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/visible.h"
#include "box/guard-parts.h"

#define MAX_DEPTH   200
#define MAX_ENTRIES 200000
#define MAX_LINKS   40
#define MAX_STEPS   2000000 /* through links, all together */
#define MAX_TOLD    32
#define SECOND      1000000000LL

static int64_t now_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	(void)clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

/* File systems whose times are this kernel's. */
static bool is_local(int dir)
{
	static const uint32_t types[] = {
		0xEF53,     /* ext2, ext3, ext4 */
		0x58465342, /* xfs */
		0x9123683E, /* btrfs */
		0x01021994, /* tmpfs */
		0x794C7630, /* overlayfs */
		0xF2F52010, /* f2fs */
	};
	struct statfs st;

	if (fstatfs(dir, &st) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if ((uint32_t)st.f_type == types[i])
			return true;
	return false;
}

void guard_links_begin(struct guard_watch *w)
{
	int64_t now = now_ns(CLOCK_REALTIME_COARSE);

	w->since = now > 1 && is_local(w->dir) ? (uint64_t)now : 1;
	w->clock = (uint64_t)(now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME));
}

/* Whether `since` says nothing: the clock is another, or the boot is. */
static bool was_set(uint64_t clock)
{
	int64_t shift = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME) -
			(int64_t)clock;

	return shift > SECOND || shift < -SECOND;
}

struct sweep {
	const char *source;
	int64_t since;
	bool only_tells; /* what is found may be the caller's */
	dev_t dev;
	int fds[MAX_DEPTH + 1]; /* the directories from the top to here */
	int depth;
	char path[PATH_MAX]; /* the same as text, for people */
	unsigned int entries;
	unsigned int removed;
	unsigned int steps;
	bool is_cut; /* not all of it was looked at */
	struct strv *ret;
};

static int64_t changed_at(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * SECOND + st->st_ctim.tv_nsec;
}

/* The next name of `text`, which is moved on; false at its end. */
static bool next_name(const char **text, char name[NAME_MAX + 1])
{
	size_t len;

	*text += strspn(*text, "/");
	len = strcspn(*text, "/");
	if (len == 0)
		return false;
	(void)snprintf(name, NAME_MAX + 1, "%.*s", (int)MIN(len, NAME_MAX),
		       *text);
	*text += len;
	return true;
}

/* Whether the text alone leads above the top, `depth` levels up. */
static bool climbs(const char *text, int depth)
{
	char name[NAME_MAX + 1];

	while (next_name(&text, name)) {
		if (strcmp(name, "..") == 0)
			depth--;
		else if (strcmp(name, ".") != 0)
			depth++;
		if (depth < 0)
			return true;
	}
	return false;
}

/* A way through the directory; the first ones are the sweep's own. */
struct trail {
	int fds[MAX_DEPTH + MAX_LINKS];
	int n;
	int borrowed;
	int links;
	bool is_fresh; /* the box changed something on it */
	char todo[PATH_MAX];
};

static void step_back(struct trail *t)
{
	t->n--;
	if (t->n >= t->borrowed)
		(void)close(t->fds[t->n]);
	else
		t->borrowed = t->n;
}

/* In place of a name its link; false if that cannot stay inside. */
static bool expand(struct trail *t, int link)
{
	char text[PATH_MAX];
	char rest[PATH_MAX];
	ssize_t n = readlinkat(link, "", text, sizeof(text) - 1);

	if (n <= 0 || text[0] == '/' || ++t->links > MAX_LINKS)
		return false;
	text[n] = '\0';
	memcpy(rest, t->todo, sizeof(rest));
	return snprintf(t->todo, sizeof(t->todo), "%s/%s", text, rest) <
	       (int)sizeof(t->todo);
}

enum way { GOES_ON, ENDS_INSIDE, LEAVES };

/* One name further. What cannot be looked at is taken to lead out. */
static enum way step(const struct sweep *s, struct trail *t, const char *name)
{
	struct stat st;
	_cleanup_fd_ int fd = openat(t->fds[t->n - 1], name,
				     O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return climbs(t->todo, t->n) ? LEAVES : ENDS_INSIDE;
	if (fd < 0 || fstat(fd, &st) < 0)
		return LEAVES;
	/* Another file system may have another clock. */
	t->is_fresh |= changed_at(&st) >= s->since || st.st_dev != s->dev;
	if (S_ISLNK(st.st_mode))
		return expand(t, fd) ? GOES_ON : LEAVES;
	if (!S_ISDIR(st.st_mode))
		return ENDS_INSIDE;
	if (t->n == (int)ARRAY_SIZE(t->fds))
		return LEAVES;
	t->fds[t->n++] = take_fd(&fd);
	return GOES_ON;
}

static enum way follow(struct sweep *s, struct trail *t)
{
	char name[NAME_MAX + 1];
	enum way way = GOES_ON;

	while (way == GOES_ON) {
		const char *p = t->todo;

		if (!next_name(&p, name))
			return ENDS_INSIDE;
		if (s->steps++ >= MAX_STEPS) {
			s->is_cut = true;
			return LEAVES;
		}
		memmove(t->todo, p, strlen(p) + 1);
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") != 0)
			way = step(s, t, name);
		else if (t->n == 1)
			way = LEAVES;
		else
			step_back(t);
	}
	return way;
}

/*
 * Whether a link with this text, in the directory we are in, leads out; one
 * that is not `is_theirs` only if the box has made it so.
 */
static bool leaves(struct sweep *s, const char *text, bool is_theirs)
{
	struct trail t = { .n = s->depth + 1, .borrowed = s->depth + 1 };
	bool is_out;

	if (is_theirs && (text[0] == '/' || climbs(text, s->depth)))
		return true;
	memcpy(t.fds, s->fds, (size_t)t.n * sizeof(int));
	(void)snprintf(t.todo, sizeof(t.todo), "%s", text);
	is_out = follow(s, &t) == LEAVES && (is_theirs || t.is_fresh);
	while (t.n > t.borrowed)
		step_back(&t);
	return is_out;
}

static void tell(struct sweep *s, const char *name, const char *text,
		 bool is_gone)
{
	struct buf line;

	if (++s->removed > MAX_TOLD)
		return;
	buf_init(&line, 2048);
	(void)buf_printf(&line, "violation: the link '");
	visible_text(&line, s->path, strlen(s->path), 300);
	visible_text(&line, name, strlen(name), 300);
	(void)buf_printf(&line, "' in '%.300s' leads out of it, to '",
			 s->source);
	visible_text(&line, text, strlen(text), 300);
	(void)buf_printf(&line, "'; it %s (docker.bind_symlinks: sweep)",
			 is_gone         ? "was removed"
			 : s->only_tells ? "was left, since it may be older "
					   "than the box"
					 : "could not be removed");
	(void)strv_add(s->ret, line.error ? "violation: a link leads out of a "
					    "writable volume"
					  : line.data);
	buf_done(&line);
}

/* Only the very link that was judged goes. */
static bool remove_link(int dir, const char *name, const struct stat *was)
{
	char away[64];
	struct stat st;

	if (!guard_rename_away(dir, name, ".cordon-swept-", away, sizeof(away)))
		return false;
	if (fstatat(dir, away, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode) && st.st_ino == was->st_ino)
		return unlinkat(dir, away, 0) == 0;
	(void)syscall(SYS_renameat2, dir, away, dir, name, 1);
	return false;
}

static void judge(struct sweep *s, const char *name, const struct stat *st,
		  bool is_moved)
{
	int dir = s->fds[s->depth];
	char text[PATH_MAX];
	ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);
	bool is_new = changed_at(st) >= s->since;

	if (n <= 0)
		return;
	text[n] = '\0';
	if (!is_new && text[0] == '/')
		return;
	if (leaves(s, text, is_new || is_moved))
		tell(s, name, text,
		     !s->only_tells && remove_link(dir, name, st));
}

static void walk(struct sweep *s, bool is_moved);

static void enter(struct sweep *s, const char *name, const struct stat *st,
		  bool is_moved)
{
	size_t len = strlen(s->path);
	int fd;
	int mode;

	if (st->st_dev != s->dev)
		return;
	if (s->depth == MAX_DEPTH) {
		s->is_cut = true;
		return;
	}
	fd = openat(s->fds[s->depth], name,
		    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		s->is_cut |= errno != ENOENT;
		return;
	}
	(void)snprintf(s->path + len, sizeof(s->path) - len, "%s/", name);
	s->fds[++s->depth] = fd;
	mode = guard_unlock_dir(fd);
	walk(s, is_moved || changed_at(st) >= s->since);
	guard_lock_dir(fd, mode);
	s->depth--;
	s->path[len] = '\0';
	(void)close(fd);
}

static void look_at(struct sweep *s, const char *name, bool is_moved)
{
	struct stat st;

	if (fstatat(s->fds[s->depth], name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		s->is_cut |= errno != ENOENT;
	else if (S_ISLNK(st.st_mode))
		judge(s, name, &st, is_moved);
	else if (S_ISDIR(st.st_mode))
		enter(s, name, &st, is_moved);
}

static void walk(struct sweep *s, bool is_moved)
{
	int fd = openat(s->fds[s->depth], ".",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		s->is_cut = true;
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (s->entries++ >= MAX_ENTRIES) {
			s->is_cut = true;
			break;
		}
		look_at(s, e->d_name, is_moved);
	}
	(void)closedir(d);
}

void guard_links_sweep(int dir, const char *source, uint64_t since,
		       uint64_t clock, bool is_late, struct strv *ret)
{
	_cleanup_free_ struct sweep *s = calloc(1, sizeof(*s));
	struct stat st;
	char line[600];

	if (s && fstat(dir, &st) == 0) {
		s->source = source;
		s->only_tells = is_late || was_set(clock);
		s->since = was_set(clock) ? 1 : (int64_t)since;
		s->dev = st.st_dev;
		s->fds[0] = dir;
		s->ret = ret;
		walk(s, false);
	}
	if (!s || s->dev != st.st_dev || s->is_cut) {
		(void)snprintf(line, sizeof(line),
			       "violation: not all of '%.300s' could be looked "
			       "through for links that lead out of it",
			       source);
		(void)strv_add(ret, line);
	}
	if (s && s->removed > MAX_TOLD) {
		(void)snprintf(line, sizeof(line),
			       "violation: %u more links led out of '%.300s'",
			       s->removed - MAX_TOLD, source);
		(void)strv_add(ret, line);
	}
}
