/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Copying out of a workspace that a box has filled with whatever it likes:
 * only regular files, no link followed, nothing without a ceiling.
 */

#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cordon/cordon.h>

#include "base/io.h"
#include "base/util.h"
#include "box/prepare.h"
#include "box/spec.h"
#include "box/workspace.h"

static char place[] = "/tmp/cordon-unit-XXXXXX";
static int work = -1; /* place/work */
static struct listing found;
static struct strv warnings;

static void enter(void)
{
	if (!mkdtemp(place) || chdir(place) < 0 || mkdir("work", 0755) < 0)
		abort();
	work = open("work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void leave(void)
{
	listing_done(&found);
	strv_done(&warnings);
	(void)close(work);
	CHECK_INT(chdir("/"), 0);
	CHECK_INT(nftw(place, remove_one, 32, FTW_DEPTH | FTW_PHYS), 0);
}

static void put(const char *path, const char *text)
{
	int fd = openat(work, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0644);

	CHECK(fd >= 0);
	CHECK_INT(io_write_all(fd, text, strlen(text)), 0);
	(void)close(fd);
}

/* Collects with one copy-out of GLOB=DIR, or none. */
static void collect(const char *copy_out)
{
	struct cordon_spec *s = cordon_spec_new();
	struct prepared before = { .box = NO_FD, .work = NO_FD };

	_cleanup_fd_ int dir = NO_FD;

	if (copy_out) {
		CHECK_INT(cordon_spec_set(s, "copy-out", copy_out, NULL), 0);
		(void)mkdir(s->copies[0].dir, 0777);
		dir = open(s->copies[0].dir,
			   O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(dir >= 0);
	}
	workspace_collect(work, s, &dir, &before, &found, &warnings);
	cordon_spec_free(s);
}

static bool is_listed(const char *path)
{
	for (size_t i = 0; i < found.n; i++)
		if (strcmp(found.files[i].path, path) == 0)
			return true;
	return false;
}

static bool is_warned(const char *part)
{
	for (size_t i = 0; i < warnings.n; i++)
		if (strstr(warnings.v[i], part))
			return true;
	return false;
}

static bool holds(const char *path, const char *text)
{
	char have[64] = "";

	return io_read_file(AT_FDCWD, path, have, sizeof(have)) >= 0 &&
	       strcmp(have, text) == 0;
}

TEST(workspace_lists_regular_files_alone)
{
	enter();
	put("a", "one");
	CHECK_INT(mkdirat(work, "sub", 0755), 0);
	put("sub/b", "two");
	CHECK_INT(symlinkat("/etc/passwd", work, "link"), 0);
	CHECK_INT(symlinkat("/etc", work, "dir"), 0);
	CHECK_INT(mkfifoat(work, "fifo", 0644), 0);
	collect(NULL);
	CHECK_INT((long long)found.n, 2);
	CHECK(is_listed("a") && is_listed("sub/b"));
	CHECK(!found.is_cut);
	leave();
}

TEST(workspace_copies_what_matches)
{
	enter();
	put("a.txt", "one");
	put("b.dat", "two");
	put(".hidden.txt", "three");
	CHECK_INT(mkdirat(work, "sub", 0755), 0);
	put("sub/c.txt", "four");
	collect("*.txt=out");
	CHECK(holds("out/a.txt", "one"));
	CHECK(access("out/b.dat", F_OK) < 0);
	CHECK(access("out/.hidden.txt", F_OK) < 0);
	CHECK(access("out/sub", F_OK) < 0);
	leave();
}

TEST(workspace_two_stars_reach_below)
{
	enter();
	put("a.txt", "one");
	CHECK_INT(mkdirat(work, "x", 0755), 0);
	CHECK_INT(mkdirat(work, "x/y", 0755), 0);
	put("x/y/b.txt", "two");
	collect("**/*.txt=out");
	CHECK(holds("out/a.txt", "one"));
	CHECK(holds("out/x/y/b.txt", "two"));
	leave();
}

TEST(workspace_follows_no_link)
{
	enter();
	CHECK_INT(symlinkat("/etc/passwd", work, "a.txt"), 0);
	CHECK_INT(symlinkat("/etc", work, "etc"), 0);
	CHECK_INT(mkfifoat(work, "b.txt", 0644), 0);
	CHECK_INT(mkdirat(work, "c.txt", 0755), 0);
	collect("**/*=out");
	CHECK(access("out/a.txt", F_OK) < 0);
	CHECK(access("out/b.txt", F_OK) < 0);
	CHECK(access("out/c.txt", F_OK) < 0);
	CHECK(access("out/etc", F_OK) < 0);
	leave();
}

/* Links planted where we write: replaced, or refused, never followed. */
TEST(workspace_writes_through_no_link)
{
	enter();
	put("a.txt", "evil");
	CHECK_INT(mkdirat(work, "sub", 0755), 0);
	put("sub/b.txt", "evil");
	CHECK_INT(mkdir("out", 0755), 0);
	CHECK_INT(mkdir("elsewhere", 0755), 0);
	CHECK_INT(symlink("../victim", "out/a.txt"), 0);
	CHECK_INT(symlink("../elsewhere", "out/sub"), 0);
	collect("**/*.txt=out");
	CHECK(access("victim", F_OK) < 0);
	CHECK(holds("out/a.txt", "evil"));
	CHECK(access("elsewhere/b.txt", F_OK) < 0);
	CHECK(is_warned("sub/b.txt"));
	leave();
}

TEST(workspace_large_file_is_left_out)
{
	int fd;

	enter();
	put("small.txt", "one");
	fd = openat(work, "big.txt", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK_INT(ftruncate(fd, (off_t)COPY_OUT_MAX_FILE + 1), 0);
	(void)close(fd);
	collect("*.txt=out");
	CHECK(holds("out/small.txt", "one"));
	CHECK(access("out/big.txt", F_OK) < 0);
	CHECK(is_warned("big.txt") && is_warned("too large"));
	leave();
}

TEST(workspace_too_many_files_are_cut_and_said)
{
	enter();
	for (int i = 0; i < WORKSPACE_MAX_LISTED + 5; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "f%d", i);
		put(name, "");
	}
	collect(NULL);
	CHECK_INT((long long)found.n, WORKSPACE_MAX_LISTED);
	CHECK(found.is_cut);
	CHECK(is_warned("is cut"));
	leave();
}

TEST(workspace_deep_tree_is_cut_and_said)
{
	int dir;

	enter();
	dir = fcntl(work, F_DUPFD_CLOEXEC, 3);
	for (int i = 0; i < WORKSPACE_MAX_DEPTH + 20; i++) {
		int next;

		CHECK_INT(mkdirat(dir, "d", 0755), 0);
		next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)close(dir);
		dir = next;
	}
	(void)close(dir);
	collect("**/*=out");
	CHECK(found.is_cut);
	leave();
}

/* In: links stay links, odd things are left out and named. */
TEST(workspace_goes_in_as_it_is)
{
	struct cordon_spec *s = cordon_spec_new();
	const char *const command[] = { "true", NULL };
	struct prepared p;
	struct err err = { 0 };

	enter();
	put("a", "one");
	CHECK_INT(symlinkat("/etc/passwd", work, "link"), 0);
	CHECK_INT(mkfifoat(work, "fifo", 0644), 0);
	CHECK_INT(cordon_spec_command(s, command, NULL), 0);
	CHECK_INT(cordon_spec_set(s, "workspace", "work", NULL), 0);
	CHECK_INT(prepare(s, &p, &err), 0);
	CHECK_INT((long long)p.n_placed, 1);
	CHECK_INT((long long)p.warnings.n, 1);
	CHECK_HAS(p.warnings.v[0], "fifo");
	prepared_done(&p);
	cordon_spec_free(s);
	leave();
}

TEST(workspace_that_does_not_fit_is_refused)
{
	struct cordon_spec *s = cordon_spec_new();
	const char *const command[] = { "true", NULL };
	struct prepared p;
	struct err err = { 0 };
	int fd;

	enter();
	fd = openat(work, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK_INT(ftruncate(fd, 2 << 20), 0);
	(void)close(fd);
	CHECK_INT(cordon_spec_command(s, command, NULL), 0);
	CHECK_INT(cordon_spec_set(s, "workspace", "work", NULL), 0);
	CHECK_INT(cordon_spec_set(s, "disk", "1m", NULL), 0);
	CHECK(prepare(s, &p, &err) < 0);
	CHECK_INT(p.refused, REFUSED_INVALID);
	CHECK_HAS(err.text, "--disk");
	prepared_done(&p);
	cordon_spec_free(s);
	leave();
}

TAP_MAIN()
